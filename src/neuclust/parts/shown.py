"""Profiles that are shown again and again: what was made of them is kept while they stay the same tensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from neuclust.core import Round
from neuclust.kernels import rows
from neuclust.kernels.columns import Columns
from neuclust.kernels.rows import Floats, Integers, Rows


class ShownProfiles:
    """Profiles by column, and distinct ones as sparse rows: made when the same tensor, unchanged, is shown again.

    A round with profiles of its own would pay for them and never use them again.
    """

    def __init__(self) -> None:
        self._seen: tuple[Tensor, int] | None = None
        self._kept: tuple[Rows, Integers] | None = None
        self._whole: tuple[float, Rows] | None = None  # ρ and distinct profiles / ρ
        self._columns: Floats | None = None

    def columns(self, round: Round, rho: float) -> Columns:
        """z/ρ by active column; CPU, float64."""
        if self._again(round.profiles) and self._columns is None:
            self._columns = np.ascontiguousarray(round.profiles.numpy().T)
        active = round.active.numpy()
        query = np.ones(len(active)) if round.query is None else round.query.numpy()[active].astype(np.float64)
        if self._columns is not None:
            return Columns(self._columns, active, query, rho)
        return Columns(np.ascontiguousarray(round.profiles.numpy()[:, active].T), np.arange(len(active)), query, rho)

    def contexts(self, round: Round, rho: float) -> tuple[Rows, Integers]:
        """Distinct z/ρ on the active columns, and every arm's number among them (n,); CPU, float64."""
        again = self._again(round.profiles)
        if again and self._kept is None:
            self._kept = rows.distinct(rows.sparse_rows(round.profiles.contiguous().numpy()))
        if self._kept is None:
            return rows.distinct(_masked(rows.sparse_rows(round.profiles.contiguous().numpy()), round, rho))
        profiles, group = self._kept
        if round.query is None:  # nothing masked: distinct profiles stay distinct
            if self._whole is None or self._whole[0] != rho:
                self._whole = (rho, _masked(profiles, round, rho))
            return self._whole[1], group
        contexts, merged = rows.distinct(_masked(profiles, round, rho))
        return contexts, merged[group]

    def _again(self, profiles: Tensor) -> bool:
        version = -1 if profiles.is_inference() else profiles._version  # torch counts no changes in inference mode
        known = version >= 0 and self._seen is not None and self._seen[0] is profiles and self._seen[1] == version
        if not known:
            self._seen, self._kept, self._whole, self._columns = (profiles, version), None, None, None
        return known


def _masked(profiles: Rows, round: Round, rho: float) -> Rows:
    if round.query is None:
        return replace(profiles, value=profiles.value / rho)
    active = round.active
    return rows.masked(profiles, active.numpy(), round.query[active].to(torch.float64).numpy(), rho)
