"""From a round's masked contexts z = x ⊙ a to what models read: encoded at the encoder's scale, equal ones once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import POSITIVE, checked
from neuclust.core import Round
from neuclust.errors import DataError
from neuclust.kernels.regions import group_rows
from neuclust.models.state import take_scale


@dataclass(frozen=True, slots=True)
@checked(rho=POSITIVE)
class EncoderConfig:
    """`raw` z; `scale` z/ρ; `unit` z/‖z‖; `lift` [z/ρ, √(1 − ‖z‖²/ρ²)]; `duplicate` adds [φ, φ]/√2.
    rho None: ρ = largest profile norm × largest |query entry| of the first round where that is not 0, so that ‖z‖ ≤ ρ
    (the paper's Assumption 4) and magnitudes stay."""

    kind: Literal["raw", "scale", "unit", "lift"] = "scale"
    rho: float | None = 5.0
    duplicate: bool = False


class Encoder:
    """Encodes contexts given on their active columns; owns ρ, computed from each round until `settle` fixes it."""

    def __init__(self, config: EncoderConfig, dim: int, even: bool) -> None:
        self.config = config
        self.half = dim + (config.kind == "lift")
        if even and not config.duplicate:
            self.half += self.half % 2  # a zero column, for initialisations that halve the input
        self.dim = self.half * (2 if config.duplicate else 1)
        self._lifted = dim
        self.rho: float | None = None  # None: not settled yet

    def scale_of(self, round: Round) -> float:
        """ρ: settled, from the configuration, or as a bound on the norm of contexts like this round's."""
        known = self.rho if self.rho is not None else self.config.rho
        if known is not None:
            return known
        bound = float(torch.linalg.vector_norm(round.profiles, dim=1).max())
        bound *= 1.0 if round.query is None else float(round.query.abs().max())
        return bound if bound > 0 else 1.0

    def settle(self, round: Round) -> None:
        """Fix ρ for good, unless it is automatic and the round's profiles or its query are 0."""
        asked = round.query is None or bool(round.query.any())
        if self.rho is None and (self.config.rho is not None or (asked and bool(round.profiles.any()))):
            self.rho = self.scale_of(round)

    def saved_rho(self) -> Tensor:
        """ρ as a state keeps it: NaN while it is not settled."""
        return torch.tensor(math.nan if self.rho is None else self.rho, dtype=torch.float64)

    def load_rho(self, state: Mapping[str, Tensor]) -> None:
        """Take ρ back from a state that keeps it as `rho`."""
        self.rho = take_scale(state)

    def encode(self, z: Tensor, active: Tensor, rho: float) -> tuple[Tensor, Tensor]:
        """φ of contexts z (n, q) on columns `active` (q,): encoded columns (n, q') and their numbers (q',)."""
        x, columns = self._plain(z, active, rho)
        if self.config.duplicate:
            return torch.cat([x, x], 1) / math.sqrt(2), torch.cat([columns, columns + self.half])
        return x, columns

    def full(self, z: Tensor, active: Tensor, rho: float) -> Tensor:
        """φ with its zero columns, (n, d')."""
        x, columns = self.encode(z, active, rho)
        out = x.new_zeros(len(x), self.dim)
        out[:, columns] = x
        return out

    def _plain(self, z: Tensor, active: Tensor, rho: float) -> tuple[Tensor, Tensor]:
        if self.config.kind == "raw":
            return z, active
        if self.config.kind == "scale":
            return z / rho, active
        if self.config.kind == "unit":
            norm = torch.linalg.vector_norm(z, dim=1, keepdim=True)
            return torch.where(norm > 0, z / norm.clamp(min=torch.finfo(z.dtype).tiny), 0.0), active
        x = z / rho
        rest = 1 - (x * x).sum(1, keepdim=True)
        if float(rest.min()) < -1e-9:
            norm = rho * math.sqrt(1 - float(rest.min()))
            raise DataError(f"encoder 'lift': expected norms of at most encoder.rho = {rho:g}, got {norm:g}; raise it")
        return torch.cat([x, rest.clamp(min=0).sqrt()], 1), torch.cat([active, active.new_tensor([self._lifted])])


def active_contexts(round: Round, positions: Tensor | None = None) -> Tensor:
    """z = x ⊙ a on the round's active columns, of all arms (n, q) or of those at `positions` (k,): (k, q)."""
    profiles = round.profiles if positions is None else round.profiles[positions]
    if round.query is None:
        return profiles
    active = round.active
    return profiles[:, active] * round.query[active]


def distinct(encoder: Encoder, round: Round) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct contexts encoded (u, q'), the numbers of their columns (q',) and the row of every arm (n,).
    Equal contexts are computed once, so that their scores are exactly equal and ties stay ties."""
    contexts = active_contexts(round)
    first, group = group_rows(contexts)
    if len(first) == len(contexts):  # no two are equal, as nearly always among items of a shop
        group = torch.arange(len(contexts), device=group.device)
    else:
        contexts = contexts[first]
    return (*encoder.encode(contexts, round.active, encoder.scale_of(round)), group)


def encoded(encoder: Encoder, round: Round, positions: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Encoded contexts (k, q') of all arms or of those at `positions` (k,), and the numbers of their columns (q',)."""
    return encoder.encode(active_contexts(round, positions), round.active, encoder.scale_of(round))


def full_at(encoder: Encoder, round: Round, positions: Tensor) -> Tensor:
    """Encoded contexts of the arms at `positions` with all columns, (k, d')."""
    return encoder.full(active_contexts(round, positions), round.active, encoder.scale_of(round))
