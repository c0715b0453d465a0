"""The arms of a run with their profiles: what a writer has written, and what a reader knows at a line."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Round
from neuclust.errors import DataError

Floats = NDArray[np.float64]


class WrittenArms:
    """Arms whose profiles stand in the log, in the order in which they were written first."""

    def __init__(self) -> None:
        self._profiles: dict[int, bytes] = {}
        self._ids: list[int] = []
        self._last: tuple[Tensor, Tensor] | None = None  # of the last round: mostly the same objects come again
        self._versions = (-1, -1)
        self._whole = False

    def new(self, round: Round) -> Iterator[tuple[int, list[float]]]:
        """Arms of a round that are new or have another profile than the one that was written; they are now."""
        now, versions = (round.arm_ids, round.profiles), (_version(round.arm_ids), _version(round.profiles))
        same = self._last is not None and all(map(_is, self._last, now)) and self._versions == versions
        self._last, self._versions = now, versions
        if same and min(versions) >= 0:
            return
        profiles = np.ascontiguousarray(round.profiles.cpu().numpy())
        for arm, row in zip(round.arm_ids.tolist(), profiles, strict=True):
            content = row.tobytes()
            if self._profiles.get(arm) != content:
                if arm not in self._profiles:
                    self._ids.append(arm)
                self._profiles[arm] = content
                yield arm, row.tolist()
        self._whole = len(round.arm_ids) == len(self._ids) and self._ids == round.arm_ids.tolist()

    @property
    def whole(self) -> bool:
        """Whether the round that `new` went through offers all arms, in the catalogue's order."""
        return self._whole


def _is(one: Tensor, other: Tensor) -> bool:
    return one is other


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version  # torch counts no changes in inference mode


class ReadArms:
    """Profiles of a run by arm id, in the order of their first event; a later event of an id replaces its profile."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}  # arm id -> row of the profiles
        self._profiles: list[Floats] = []
        self._matrix: Floats | None = None
        self._table: Tensor | None = None
        self._ids: Tensor | None = None

    def put(self, arm: int, profile: Sequence[float]) -> None:
        """Add or replace an arm; profiles of one run have one length."""
        values = np.array(profile, np.float64)
        if self._profiles and len(values) != self.width:
            raise DataError(f"expected profiles of {self.width} numbers, as before, got {len(values)}")
        if arm in self.rows:
            self._profiles[self.rows[arm]] = values
        else:
            self.rows[arm] = len(self._profiles)
            self._profiles.append(values)
            self._ids = None
        self._matrix = self._table = None

    @property
    def width(self) -> int:
        return len(self._profiles[0]) if self._profiles else 0

    @property
    def ids(self) -> Tensor:
        """(N,) int64, the same tensor while no arm is added."""
        if self._ids is None:
            self._ids = torch.tensor(list(self.rows), dtype=torch.int64)
        return self._ids

    @property
    def table(self) -> Tensor:
        """Profiles (N, d), the same tensor while none changes."""
        if self._table is None:
            self._table = torch.from_numpy(self._array())
        return self._table

    def profiles(self, ids: Sequence[int]) -> Tensor:
        """Profiles of these arms, (n, d)."""
        rows = [self.rows[arm] for arm in ids]
        if self._matrix is None:  # arms still come: stacking the rows asked for does not grow with the catalogue
            return torch.from_numpy(np.array([self._profiles[row] for row in rows]).reshape(len(rows), self.width))
        return torch.from_numpy(self._matrix[rows])  # NumPy indexes small lists faster

    def _array(self) -> Floats:
        if self._matrix is None:
            self._matrix = np.array(self._profiles, np.float64).reshape(len(self.rows), self.width)
        return self._matrix
