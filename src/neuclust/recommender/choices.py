"""What a request gets: the items, what the policy believed of each, and what learning will need of it."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Slate
from neuclust.errors import DataError
from neuclust.recommender.drawn import Drawn
from neuclust.recommender.requests import Request, request_from_json, request_to_json
from neuclust.recommender.tables.values import Id

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
            "means": _listed(slate.means.tolist()), "bonuses": _listed(slate.bonuses.tolist()),
            "propensities": None if slate.propensities is None else _listed(slate.propensities.tolist()),
            "explored": None if slate.explored is None else slate.explored.tolist(),
            "cluster": slate.cluster, "t": self.t, "draw": self.draw, "version": self.version,
        }  # fmt: skip

    @classmethod
    def from_json(cls, saved: Any) -> "Shown":
        """What `to_json` wrote."""
        try:
            codes = np.array([_whole(code) for code in saved["codes"]], dtype=np.int64)
            items = _matrix(saved["items"], len(codes))
            user = np.array([float(number) for number in saved["user"]], dtype=np.float64)
            slate = _slate(saved, len(codes))
            counts = [_whole(saved[name]) for name in ("t", "draw", "version")]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"choice: expected the rows of a decision, got others ({error!s:.100})") from None
        if not (np.isfinite(items).all() and np.isfinite(user).all()):
            raise DataError("choice: expected finite rows of a decision, got NaN or infinity")
        return cls(codes, items, user, slate, *counts)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r:.50} in the place of a whole number")
    return value


def _matrix(rows: Any, count: int) -> Matrix:
    """(k, d_i), also where k or d_i is 0."""
    if len(rows) != count or len({len(row) for row in rows}) > 1:
        raise ValueError(f"{len(rows)} rows for {count} items, or rows of several lengths")
    width = len(rows[0]) if count else 0
    return np.array([[float(number) for number in row] for row in rows], dtype=np.float64).reshape(count, width)


def _slate(saved: Mapping[str, Any], k: int) -> Slate:
    propensities, explored, cluster = (saved[name] for name in ("propensities", "explored", "cluster"))
    for name in ("means", "bonuses", "propensities", "explored"):
        if saved[name] is not None and len(saved[name]) != k:
            raise ValueError(f"{len(saved[name])} {name} for {k} items")
    return Slate(
        torch.arange(k), numbers(saved["means"]), numbers(saved["bonuses"]),
        None if propensities is None else numbers(propensities),
        None if cluster is None else _whole(cluster),
        None if explored is None else torch.tensor([bool(each) for each in explored], dtype=torch.bool),
    )  # fmt: skip


def numbers(values: Any) -> Tensor:
    """Values as float64, (k,)."""
    return torch.tensor([float(value) for value in values], dtype=torch.float64)


def _listed(values: list[float]) -> list[float | str]:
    """Numbers as JSON, which has no NaN and no infinity: those are texts that `float` reads."""
    return [value if math.isfinite(value) else repr(value) for value in values]


@dataclass(frozen=True)
class Choice:
    """The answer to a request: items in display order, slot 1 first, and the id to hand back with the clicks.

    `propensities` are the exact chances of each slot's item given the slots before it, None where the policy's own
    randomness has no closed form. `means` and `bonuses` are what the policy expected of each item and what it added to
    find out, in the units of the rewards. `short` says that fewer items than asked for could be shown, `reason` why.
    `ignored` are eligible ids that are unknown or came twice.
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
    model: int = 0  # lessons that the policy had learned
    design: Drawn | None = field(default=None, repr=False, compare=False)  # how the slate was drawn
    shown: Shown | None = field(default=None, repr=False, compare=False)
    request: Request | None = field(default=None, repr=False, compare=False)  # of a reader, for the shop's log

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def logged(self) -> tuple[list[float], list[float]]:
        """Means and bonuses on the policy's scale of 0 to 1, which logs have."""
        slate = None if self.shown is None else self.shown.slate
        return (self.means, self.bonuses) if slate is None else (slate.means.tolist(), slate.bonuses.tolist())

    def to_json(self) -> dict[str, Any]:
        """Everything, with its rows, as JSON values: to be handed from a reader to `Recommender.accept`."""
        plain = {name: getattr(self, name) for name in _CHECKS}
        for name in ("means", "bonuses", "propensities"):
            plain[name] = None if plain[name] is None else _listed(plain[name])
        plain["time"] = _listed([self.time])[0]
        shown = None if self.shown is None else self.shown.to_json()
        design = None if self.design is None else {**self.design.to_json(), "sizes": list(self.design.sizes)}
        request = None if self.request is None else request_to_json(self.request)
        return {**plain, "design": design, "shown": shown, "request": request}

    @classmethod
    def from_json(cls, saved: Any) -> "Choice":
        """What `to_json` wrote, as JSON values or as their text."""
        if isinstance(saved, str | bytes):
            saved = _parsed(saved)
        if not isinstance(saved, Mapping) or set(saved) | _LATER.keys() != {*_CHECKS, "design", "shown", "request"}:
            raise DataError(f"choice: expected what Choice.to_json gave, got {saved!r:.100}")
        saved = _LATER | dict(saved)
        read = {name: _entry(saved, name, check) for name, check in _CHECKS.items()}
        given = ("items", "means", "bonuses", "explored", "propensities")
        if len({len(read[name]) for name in given if read[name] is not None}) > 1:
            raise DataError("choice: expected a mean, a bonus and a propensity for each of its items, got others")
        design, shown, request = saved["design"], saved["shown"], saved["request"]
        return cls(
            **read, design=None if design is None else Drawn.from_json(design),
            shown=None if shown is None else Shown.from_json(shown),
            request=None if request is None else request_from_json(request),
        )  # fmt: skip


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"choice: expected the JSON text of a choice, got other text ({error!s:.100})") from None


def _entry(saved: Mapping[str, Any], name: str, check: Callable[[Any], Any]) -> Any:
    try:
        return check(saved[name])
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"choice: expected {name} as Choice.to_json gave it, got {saved[name]!r:.100}") from None


def _of(*kinds: type) -> Callable[[Any], Any]:
    """The same value, where it is of one of these types."""

    def check(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError
        return value

    return check


def _list_of(check: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    def read(values: Any) -> list[Any]:
        if not isinstance(values, list):
            raise TypeError
        return [check(value) for value in values]

    return read


def _number(value: Any) -> float:
    """A number, or one of the texts of `_listed`."""
    if type(value) not in (int, float) and value not in ("nan", "inf", "-inf"):
        raise TypeError
    return float(value)


_LATER = {"model": 0, "design": None}  # entries that choices of earlier versions do not have
_NOTHING = type(None)
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "id": _of(str), "items": _list_of(_of(str, int)),
    "propensities": lambda value: None if value is None else _list_of(_number)(value),
    "means": _list_of(_number), "bonuses": _list_of(_number), "short": _of(bool), "reason": _of(str),
    "ignored": _list_of(_of(str, int)), "explored": _list_of(_of(bool)), "required": _list_of(_of(bool)),
    "request_id": _of(str, int, _NOTHING),
    "user": _of(str, int, _NOTHING), "time": _number, "policy": _of(str), "version": _of(int),
    "model": _of(int),
}  # fmt: skip
