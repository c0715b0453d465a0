"""A cache of what is computed from profiles alone, kept while rounds show the same unchanged tensor."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from neuclust.core import Round
from neuclust.kernels import rows
from neuclust.kernels.columns import Columns
from neuclust.kernels.rows import Floats, Integers, Rows


@dataclass(slots=True)
class _Entry:
    """One tensor of profiles, as it was when last seen, and what was computed from it."""

    profiles: Tensor
    version: int
    columns: Floats | None = None
    distinct: tuple[Rows, Integers] | None = None
    whole: tuple[float, Rows] | None = None  # ρ and distinct profiles / ρ


class ProfileCache:
    """Profiles by column, and distinct ones as sparse rows: cached when the same unchanged tensor is shown again, since
    profiles of one round only would never be used again. A thread looks its one entry up once, so that others cannot
    mix theirs into it."""

    def __init__(self) -> None:
        self._last: _Entry | None = None

    def columns(self, round: Round, rho: float) -> Columns:
        """z/ρ by active column; CPU, float64."""
        entry = self._again(round.profiles)
        active = round.active.numpy()
        query = np.ones(len(active)) if round.query is None else round.query.numpy()[active].astype(np.float64)
        if entry is None:
            own = np.ascontiguousarray(round.profiles.numpy()[:, active].T)
            return Columns(own, np.arange(len(active)), query, rho)
        if entry.columns is None:
            entry.columns = np.ascontiguousarray(round.profiles.numpy().T)
        return Columns(entry.columns, active, query, rho)

    def contexts(self, round: Round, rho: float) -> tuple[Rows, Integers]:
        """Distinct z/ρ on the active columns, and every arm's number among them (n,); CPU, float64."""
        entry = self._again(round.profiles)
        if entry is None:
            return rows.distinct(_masked(rows.sparse_rows(round.profiles.contiguous().numpy()), round, rho))
        if entry.distinct is None:
            entry.distinct = rows.distinct(rows.sparse_rows(round.profiles.contiguous().numpy()))
        profiles, group = entry.distinct
        if round.query is None:  # nothing masked: distinct profiles stay distinct
            whole = entry.whole
            if whole is None or whole[0] != rho:
                whole = entry.whole = (rho, _masked(profiles, round, rho))
            return whole[1], group
        contexts, merged = rows.distinct(_masked(profiles, round, rho))
        return contexts, merged[group]

    def _again(self, profiles: Tensor) -> _Entry | None:
        """The entry of these profiles; None where they are new, or changed since."""
        version = -1 if profiles.is_inference() else profiles._version  # torch counts no changes in inference mode
        entry = self._last
        if entry is not None and entry.profiles is profiles and entry.version == version >= 0:
            return entry
        self._last = _Entry(profiles, version)
        return None


def _masked(profiles: Rows, round: Round, rho: float) -> Rows:
    if round.query is None:
        return replace(profiles, value=profiles.value / rho)
    active = round.active
    return rows.masked(profiles, active.numpy(), round.query[active].to(torch.float64).numpy(), rho)
