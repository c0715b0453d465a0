"""From a masked context z = x ⊙ a to what the network reads."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.models.state import take_scale


@dataclass(frozen=True, slots=True)
class EncoderConfig:
    """`raw` z; `scale` z/ρ; `unit` z/‖z‖; `lift` [z/ρ, √(1 − ‖z‖²/ρ²)]; `duplicate` adds [φ, φ]/√2.

    rho None takes ρ from the first round that tells it, largest profile norm × largest |query entry|, so that ‖z‖ ≤ ρ:
    the unit ball of the paper's Assumption 4 without losing the magnitude that row-wise normalising would destroy.
    """

    kind: Literal["raw", "scale", "unit", "lift"] = "scale"
    rho: float | None = 5.0
    duplicate: bool = False

    def __post_init__(self) -> None:
        check_entries(self)
        if self.rho is not None and not self.rho > 0:
            raise ConfigError(f"encoder.rho: expected a positive number or none (automatic), got {self.rho}")


class Encoder:
    """Encodes contexts given on their active columns; never builds the columns that are zero anyway.

    Owns ρ: read from each round until `settle` fixes it for good, by the first round that tells it.
    """

    def __init__(self, config: EncoderConfig, dim: int, even: bool) -> None:
        self.config = config
        self.half = dim + (config.kind == "lift")
        if even and not config.duplicate:
            self.half += self.half % 2  # a zero column, for initialisations that halve the input
        self.dim = self.half * (2 if config.duplicate else 1)
        self._lifted = dim
        self.rho: float | None = None  # settled by the first update that tells it

    def scale_of(self, round: Round) -> float:
        """ρ: settled, from the configuration, or as a bound on the norm of contexts like this round's."""
        known = self.rho if self.rho is not None else self.config.rho
        if known is not None:
            return known
        bound = float(torch.linalg.vector_norm(round.profiles, dim=1).max())
        bound *= 1.0 if round.query is None else float(round.query.abs().max())
        return bound if bound > 0 else 1.0

    def settle(self, round: Round) -> None:
        """Fix ρ for good, if this round tells it: one without profiles or without a query other than 0 does not."""
        if self.rho is None and self._told_by(round):
            self.rho = self.scale_of(round)

    def _told_by(self, round: Round) -> bool:
        asked = round.query is None or bool(round.query.any())
        return self.config.rho is not None or (asked and bool(round.profiles.any()))

    def saved_rho(self) -> Tensor:
        """ρ as a state keeps it: NaN while nothing has told it."""
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
            raise DataError(
                f"encoder 'lift': expected contexts of norm at most encoder.rho = {rho:g}, got "
                f"{rho * math.sqrt(1 - float(rest.min())):g}; raise encoder.rho"
            )
        return torch.cat([x, rest.clamp(min=0).sqrt()], 1), torch.cat([active, active.new_tensor([self._lifted])])


def active_contexts(round: Round) -> Tensor:
    """z = x ⊙ a on the round's active columns only, (n, q)."""
    if round.query is None:
        return round.profiles
    active = round.active
    return round.profiles[:, active] * round.query[active]


def contexts_at(round: Round, positions: Tensor) -> Tensor:
    """z = x ⊙ a of the given arms only, on the round's active columns: (k,) -> (k, q)."""
    profiles = round.profiles[positions]
    if round.query is None:
        return profiles
    active = round.active
    return profiles[:, active] * round.query[active]
