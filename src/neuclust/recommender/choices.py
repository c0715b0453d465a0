"""What a request gets: the items, what the policy believed of each, and what learning will need of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Slate
from neuclust.errors import DataError
from neuclust.recommender.values import Id

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Shown:
    """The encoded rows of a decision, from which its features are made again, and the slate as it was selected.

    Later changes of an item do not alter it.
    """

    codes: NDArray[np.int64]  # (k,) of the items, in slot order
    items: Matrix  # (k, d_i)
    user: Matrix  # (d_u,)
    slate: Slate  # positions 0, 1, …, k − 1
    t: int
    draw: int
    version: int  # of the schema

    def to_json(self) -> dict[str, Any]:
        slate = self.slate
        return {
            "codes": self.codes.tolist(), "items": self.items.tolist(), "user": self.user.tolist(),
            "means": slate.means.tolist(), "bonuses": slate.bonuses.tolist(),
            "propensities": None if slate.propensities is None else slate.propensities.tolist(),
            "explored": None if slate.explored is None else slate.explored.tolist(),
            "cluster": slate.cluster, "t": self.t, "draw": self.draw, "version": self.version,
        }  # fmt: skip

    @classmethod
    def from_json(cls, saved: Any) -> "Shown":
        """What `to_json` wrote."""
        try:
            codes = np.array(saved["codes"], dtype=np.int64).reshape(-1)
            items = np.array(saved["items"], dtype=np.float64).reshape(len(codes), -1)
            user = np.array(saved["user"], dtype=np.float64).reshape(-1)
            slate = _slate(saved, len(codes))
            numbers = [int(saved[name]) for name in ("t", "draw", "version")]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"choice: expected the rows of a decision, got others ({error!s:.100})") from None
        if not (np.isfinite(items).all() and np.isfinite(user).all()):
            raise DataError("choice: expected finite rows of a decision, got NaN or infinity")
        return cls(codes, items, user, slate, *numbers)


def _slate(saved: Mapping[str, Any], k: int) -> Slate:
    propensities, explored, cluster = (saved[name] for name in ("propensities", "explored", "cluster"))
    for name in ("means", "bonuses"):
        if len(saved[name]) != k:
            raise ValueError(f"{len(saved[name])} {name} for {k} items")
    return Slate(
        torch.arange(k), numbers(saved["means"]), numbers(saved["bonuses"]),
        None if propensities is None else numbers(propensities),
        None if cluster is None else int(cluster),
        None if explored is None else torch.tensor([bool(each) for each in explored]),
    )  # fmt: skip


def numbers(values: Any) -> Tensor:
    """Values as float64, (k,)."""
    return torch.tensor([float(value) for value in values], dtype=torch.float64)


@dataclass(frozen=True)
class Choice:
    """The answer to a request: items in display order, slot 1 first, and the id to hand back with the clicks.

    `propensities` are the exact chances of each slot's item given the slots before it, None where the policy's own
    randomness has no closed form. `means` and `bonuses` are what the policy expected of each item and what it added to
    find out. `short` says that fewer items than asked for could be shown, `reason` why. `ignored` are eligible ids that
    are unknown or came twice.
    """

    id: str
    items: list[Id]
    propensities: list[float] | None
    means: list[float]
    bonuses: list[float]
    short: bool = False
    reason: str = ""
    ignored: list[Id] = field(default_factory=list)
    explored: list[bool] = field(default_factory=list)
    required: list[bool] = field(default_factory=list)  # by slot; empty: the request required none
    request_id: Id | None = None
    user: Id | None = None
    time: float = math.nan
    policy: str = ""
    version: int = 1
    shown: Shown | None = field(default=None, repr=False, compare=False)

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def to_json(self) -> dict[str, Any]:
        """Everything, with its rows, as JSON values: to be handed from a reader to `Recommender.accept`."""
        plain = {name: getattr(self, name) for name in _PLAIN}
        return {**plain, "shown": None if self.shown is None else self.shown.to_json()}

    @classmethod
    def from_json(cls, saved: Any) -> "Choice":
        """What `to_json` wrote."""
        if not isinstance(saved, Mapping) or set(saved) != {*_PLAIN, "shown"}:
            raise DataError(f"choice: expected what Choice.to_json gave, got {saved!r:.100}")
        shown = saved["shown"]
        return cls(**{name: saved[name] for name in _PLAIN}, shown=None if shown is None else Shown.from_json(shown))


_PLAIN = tuple(name for name in Choice.__dataclass_fields__ if name != "shown")
