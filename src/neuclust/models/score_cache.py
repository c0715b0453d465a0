"""Profiles that are shown again and again: what was made of them is kept while they stay the same tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from neuclust.core import Round
from neuclust.kernels import rows
from neuclust.kernels.columns import Columns
from neuclust.kernels.rows import Floats, Integers, Rows


@dataclass(slots=True)
class _Kept:
    """One tensor of profiles, as it was when last seen, and what was made of it."""

    profiles: Tensor
    version: int
    columns: Floats | None = None
    distinct: tuple[Rows, Integers] | None = None
    whole: tuple[float, Rows] | None = None  # ρ and distinct profiles / ρ


class ShownProfiles:
    """Profiles by column, and distinct ones as sparse rows: made when the same tensor, unchanged, is shown again.

    A round with profiles of its own would pay for them and never use them again. All that is kept of a tensor stands in
    one record, which a thread looks up once: others that look at other profiles cannot mix theirs into it.
    """

    def __init__(self) -> None:
        self._last: _Kept | None = None

    def columns(self, round: Round, rho: float) -> Columns:
        """z/ρ by active column; CPU, float64."""
        kept = self._again(round.profiles)
        active = round.active.numpy()
        query = np.ones(len(active)) if round.query is None else round.query.numpy()[active].astype(np.float64)
        if kept is None:
            own = np.ascontiguousarray(round.profiles.numpy()[:, active].T)
            return Columns(own, np.arange(len(active)), query, rho)
        if kept.columns is None:
            kept.columns = np.ascontiguousarray(round.profiles.numpy().T)
        return Columns(kept.columns, active, query, rho)

    def contexts(self, round: Round, rho: float) -> tuple[Rows, Integers]:
        """Distinct z/ρ on the active columns, and every arm's number among them (n,); CPU, float64."""
        kept = self._again(round.profiles)
        if kept is None:
            return rows.distinct(_masked(rows.sparse_rows(round.profiles.contiguous().numpy()), round, rho))
        if kept.distinct is None:
            kept.distinct = rows.distinct(rows.sparse_rows(round.profiles.contiguous().numpy()))
        profiles, group = kept.distinct
        if round.query is None:  # nothing masked: distinct profiles stay distinct
            whole = kept.whole
            if whole is None or whole[0] != rho:
                whole = kept.whole = (rho, _masked(profiles, round, rho))
            return whole[1], group
        contexts, merged = rows.distinct(_masked(profiles, round, rho))
        return contexts, merged[group]

    def _again(self, profiles: Tensor) -> _Kept | None:
        """What is kept of these profiles; None where they are new, or changed since."""
        version = -1 if profiles.is_inference() else profiles._version  # torch counts no changes in inference mode
        kept = self._last
        if kept is not None and kept.profiles is profiles and kept.version == version >= 0:
            return kept
        self._last = _Kept(profiles, version)
        return None


def _masked(profiles: Rows, round: Round, rho: float) -> Rows:
    if round.query is None:
        return replace(profiles, value=profiles.value / rho)
    active = round.active
    return rows.masked(profiles, active.numpy(), round.query[active].to(torch.float64).numpy(), rho)
