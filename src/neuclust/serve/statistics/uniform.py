"""How much more often evenly drawn slates would have shown an item in its slot: exact weights from a logged design.

Of a decision without rules among n items, P(slot j holds a) is 1/n under evenly drawn slates, and μ_j(a) under the
design that drew it (`evaluation.moments`), so that the weights of item-position IPS are w_j = 1/(n·μ_j(a_j)).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.evaluation.moments import Shape, first_moments

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UniformWeights:
    """Of a logged slate: w_j of every slot, and the mean over slots of E[w_j²], known before it was drawn."""

    weights: tuple[float, ...]
    second_moment: float


def uniform_weights(choice: Mapping[str, Any]) -> UniformWeights | None:
    """The weights of `Choice.to_json`; None where some item had no chance, rules bound it or the design is unknown."""
    design, items = choice.get("design"), choice["items"]
    if not design or not items or _ruled(choice, design, len(items)):
        return None
    n = int(design["sizes"][0])
    if design["kind"] == "uniform":
        return UniformWeights((1.0,) * len(items), 1.0)
    if design["kind"] not in ("sequential", "one-coin") or design["share"] <= 0:
        return None
    try:
        shape, labels = _shape(design, items, n)
        chances = _chances(design, shape)
    except DataError:  # slates too long to be summed over
        return None
    sizes = np.array(shape.sizes, np.float64)
    if not (chances[:, sizes > 0] > 0).all():
        return None
    moments = (sizes / np.where(sizes > 0, chances, 1.0)).sum(1) / n**2
    weights = 1 / (n * chances[np.arange(len(items)), labels])
    return UniformWeights(tuple(weights.tolist()), float(moments.mean()))


def _ruled(choice: Mapping[str, Any], design: Mapping[str, Any], slots: int) -> bool:
    """Whether the request had rules, told by itself or by numbers of options that are not n, n − 1, …"""
    request = choice.get("request") or {}
    if choice.get("required") or request.get("required") or request.get("at_most"):
        return True
    sizes = list(design.get("sizes") or ())
    return len(sizes) != slots or sizes != list(range(sizes[0], sizes[0] - slots, -1))


def _shape(design: Mapping[str, Any], items: Sequence[Any], n: int) -> tuple[Shape, list[int]]:
    """The design's shape, and the class of every shown item."""
    base = list(dict.fromkeys(design["base"]))[: len(items)]
    pool = set(design["pool"]) if design["kind"] == "sequential" else set()
    anywhere = float(design["anywhere"]) if design["kind"] == "sequential" else 1.0
    flags = tuple(item in pool for item in base)
    places = {item: index for index, item in enumerate(base)}
    labels = [places.get(item, len(base) + (item not in pool)) for item in items]
    return Shape(n, len(items), flags, len(pool), float(design["share"]), anywhere), labels


def _chances(design: Mapping[str, Any], shape: Shape) -> Floats:
    """P(slot j holds one certain item of class c): (k, c)."""
    if design["kind"] == "sequential":
        return first_moments(shape).of_arms()
    certain, even = (
        first_moments(Shape(shape.arms, shape.slots, shape.base, 0, share, 1.0)).of_arms() for share in (0.0, 1.0)
    )
    return np.asarray((1 - shape.share) * certain + shape.share * even)


def exploring_slots(choice: Mapping[str, Any]) -> int:
    """How many slots show another item than the policy's own choice for them, or one that was drawn evenly."""
    items, flags, design = choice["items"], choice.get("explored") or [], choice.get("design") or {}
    drawn = [bool(flags[slot]) if slot < len(flags) else False for slot in range(len(items))]
    if design.get("kind") == "uniform":
        return len(items)
    if design.get("kind") not in ("sequential", "one-coin"):
        return sum(drawn)
    taken: set[Any] = set()
    found = 0
    for item, explored in zip(items, drawn, strict=True):
        best = next((each for each in design["base"] if each not in taken), None)
        found += explored or item != best
        taken.add(item)
    return found
