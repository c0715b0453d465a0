"""Encoded columns of invented tables, and what the label of a feature says it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.recommender.crossing.design import Design
from neuclust.recommender.crossing.inferred import FACTOR

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """Columns of given widths; those of a name in `texts` are levels."""

    widths: Mapping[str, int]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.widths)

    @property
    def slices(self) -> dict[str, slice]:
        ends = np.cumsum([0, *self.widths.values()]).tolist()
        return {name: slice(*ends[at : at + 2]) for at, name in enumerate(self.widths)}

    @property
    def labels(self) -> tuple[str, ...]:
        found: list[str] = []
        for name, width in self.widths.items():
            levels = [f"{name}={level}" for level in self.texts.get(name, ())]
            others = [f"{name}[{at}]" for at in range(width)] if width > 1 else [name]
            found += (levels + [f"{name}=other"] * (width - len(levels))) if levels else others
        return tuple(found)

    @property
    def width(self) -> int:
        return sum(self.widths.values())

    def levels(self, name: str) -> tuple[str, ...] | None:
        return self.texts.get(name)


@dataclass(frozen=True)
class Spec:
    cross: Sequence[Sequence[str]] | None = None
    match: Sequence[Sequence[str]] | None = None
    width: int = 128


ITEMS = Side({"price": 1, "kind": 3, "tags": 4}, {"kind": ("shoe", "hat"), "tags": ("red", "blue", "wool")})
USER = Side({"segment": 2, "age": 1, "tastes": 3}, {"segment": ("gold", "new"), "tastes": ("blue", "silk", "red")})


PLAIN = Side({"segment": 2, "age": 1, "city": 3}, {"segment": ("gold", "new"), "city": ("red", "Oslo", "Rome")})


def rows(side: Side, count: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).normal(size=(count, side.width))


def fit(spec: Spec, items: Side = ITEMS, user: Side = USER, count: int = 40) -> Design:
    return Design.fit(spec, items, user, rows(items, count), rows(user, count, 1))


def value(label: str, x: Matrix, u: Matrix, user: Side) -> Any:
    """What a label of plain columns says, item by item."""
    out: Any = np.ones(len(x))
    for part in label.split(" x "):
        if part in ITEMS.labels:
            out = out * x[:, ITEMS.labels.index(part)]
        elif part in user.labels:
            out = out * u[user.labels.index(part)]
        else:
            assert part == "constant"
    return out


def check(design: Design, user: Side = USER, reduced: int | None = None) -> None:
    """Every feature is what its label says; those from `reduced` on are half of it."""
    x, u = rows(ITEMS, 5, 2), rows(user, 1, 3)[0]
    z = design.rows(x, u)
    assert z.shape == (5, design.width)
    z[:, design.width if reduced is None else reduced :] /= FACTOR
    for at, label in enumerate(design.labels):
        np.testing.assert_allclose(z[:, at], value(label, x, u, user), atol=1e-12, err_msg=label)
