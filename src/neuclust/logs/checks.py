"""Checks of single events: what a row must hold, and the sentence that says what it does not."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from neuclust.core import LARGEST, Design
from neuclust.errors import DataError, brief, one_of
from neuclust.logs.events import FORMAT, KINDS, RunStart

Event = dict[str, Any]


class Drawn(NamedTuple):
    """The slate of a decision as positions among its eligible arms, and how it was drawn."""

    slate: list[int]
    propensities: list[float] | None
    design: Design


# --- entries of the right type --------------------------------------------------------------------------------------


def text(event: Event, name: str) -> str:
    """A text that is not empty."""
    value = event.get(name)
    if not isinstance(value, str) or not value:
        raise DataError(f"expected a text as {name}, got {brief(value)}; write one")
    return value


def whole(event: Event, name: str, least: int = 1) -> int:
    """A whole number of at least `least`."""
    value = event.get(name)
    if type(value) is not int or value < least:
        raise DataError(f"expected a whole number of at least {least} as {name}, got {brief(value)}; correct it")
    return value


def number(event: Event, name: str) -> float | None:
    """A finite number; None where there is none."""
    value = event.get(name)
    if value is None:
        return None
    if not _is_number(value):
        raise DataError(f"expected a finite number as {name}, got {brief(value)}; null is what was not seen")
    return float(value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -LARGEST <= value <= LARGEST


def numbers(event: Event, name: str, length: int | None = None) -> list[float]:
    """Finite numbers, `length` of them where it is given."""
    values = listed(event, name, length)
    for value in values:
        if not _is_number(value):
            raise DataError(f"expected finite numbers as {name}, got {brief(value)}; fill or drop it")
    return values


def rewards(event: Event, name: str, length: int) -> list[float]:
    """Finite numbers, NaN where a value is null."""
    values = listed(event, name, length)
    for value in values:
        if value is not None and not _is_number(value):
            raise DataError(f"expected finite numbers as {name}, got {brief(value)}; null is what was not seen")
    return [math.nan if value is None else float(value) for value in values]


def ids(event: Event, name: str) -> list[int]:
    """Arm ids, every one once; none where the entry is null."""
    values = [] if event.get(name) is None else listed(event, name)
    for value in values:
        if type(value) is not int or not -(2**63) <= value < 2**63:
            raise DataError(f"expected arm ids as {name}, whole numbers, got {brief(value)}; number the arms")
    if len(set(values)) != len(values):
        twice = next(value for place, value in enumerate(values) if value in values[:place])
        raise DataError(f"expected every arm of {name} once, got {twice} twice; drop one of them")
    return values


def flags(event: Event, name: str, length: int) -> list[bool] | None:
    """Yes or no for every slot; None where nothing is said."""
    if event.get(name) is None:
        return None
    values = listed(event, name, length)
    if any(type(value) is not bool for value in values):
        raise DataError(f"expected true or false for every slot as {name}, got {brief(values)}; correct it")
    return values


def listed(event: Event, name: str, length: int | None = None) -> list[Any]:
    """A list, of `length` entries where it is given."""
    values = event.get(name)
    if not isinstance(values, list):
        raise DataError(f"expected a list as {name}, got {brief(values)}; write one")
    if length is not None and len(values) != length:
        raise DataError(f"expected {length} entries of {name}, got {len(values)}; give one for each")
    return values


# --- whole events ---------------------------------------------------------------------------------------------------


def run_start(event: Event) -> RunStart:
    """What the first event of a run says."""
    if event.get("format") != FORMAT:
        got = f"got {brief(event.get('format'))}; the log of a recommender has 1 and is read by it"
        raise DataError(f"expected format {FORMAT}, {got}")
    size, values, reward = whole(event, "slate_size"), event.get("reward_values"), event.get("reward")
    learning = event.get("learning")
    if type(learning) is not bool:
        raise DataError(f"expected true or false as learning, got {brief(learning)}; say whether the policy learned")
    if reward is not None and not isinstance(reward, str):
        raise DataError(f"expected a name or null as reward, got {brief(reward)}; write its name")
    table = None if values is None else tuple(map(float, numbers(event, "reward_values", size + 1)))
    policy = event.get("policy")
    return RunStart(text(event, "run"), str(policy or ""), size, whole(event, "dim"), learning, reward, table)


def drawn(event: Event, places: dict[int, int], ruled: bool) -> Drawn:
    """Slate and design as positions, `places` being those of the eligible arms by their ids."""
    slate, k = ids(event, "slate"), whole(event, "k", 0)
    if len(slate) > len(places):
        raise DataError(f"expected a slate of at most its {len(places)} eligible arms, got {len(slate)}; drop the row")
    if len(slate) > k or (len(slate) < k and not ruled):
        raise DataError(f"expected a slate of k = {k} arms, got {len(slate)}; write its length as k")
    positions = _positions(slate, places, "slate")
    design = event.get("design")
    if design is None or (isinstance(design, dict) and not any(value is not None for value in design.values())):
        design = {"kind": "unknown"}  # Parquet has an object of nulls for null
    if not isinstance(design, dict) or design.get("kind") not in KINDS:
        said = design.get("kind") if isinstance(design, dict) else design
        raise DataError(f"design: {one_of(said, KINDS)}; write unknown where it is none of them")
    kind: Any = design["kind"]
    chances = _propensities(event, kind, len(slate))
    base, pool = (_positions(ids(design, name), places, f"design.{name}") for name in ("base", "pool"))
    if kind == "deterministic":
        base = _certain(base, positions, chances)
    if kind == "one-coin" and not base and slate:
        raise DataError("expected the slate that one coin is thrown for as design.base, got none; write it or unknown")
    share, anywhere = (_share(design, name, default) for name, default in (("share", 0.0), ("anywhere", 1.0)))
    return Drawn(positions, chances, Design(kind, tuple(base), share, tuple(pool), anywhere))


def _positions(arms: Sequence[int], places: dict[int, int], name: str) -> list[int]:
    try:
        return [places[arm] for arm in arms]
    except KeyError as missing:
        raise DataError(f"expected eligible arms as {name}, got {missing}, which is not; correct one of them") from None


def _propensities(event: Event, kind: str, k: int) -> list[float] | None:
    """In (0, 1] for every slot; None where an unknown design has none."""
    if event.get("propensities") is None:
        if kind == "unknown":
            return None
        raise DataError(f"expected propensities, since the design is {kind}, got none; write them or unknown")
    values = listed(event, "propensities", k)
    for value in values:
        if type(value) not in (int, float) or not 0 < value <= 1:
            got = f"got {brief(value)}; log the chance of the arm given the slots before it"
            raise DataError(f"expected propensities above 0 and at most 1, {got}")
    return [float(value) for value in values]


def _certain(base: list[int], slate: list[int], chances: list[float] | None) -> list[int]:
    """The base slate of a deterministic design: the slate itself."""
    if chances is not None and any(chance != 1 for chance in chances):
        raise DataError(f"expected propensities of 1 of a deterministic design, got {brief(chances)}; correct the kind")
    if base and base != slate:
        raise DataError("expected design.base to be the slate of a deterministic design, got another; correct the kind")
    return slate


def _share(design: Event, name: str, default: float) -> float:
    value = design.get(name)
    if value is None:
        return default
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise DataError(f"expected a number from 0 to 1 as design.{name}, got {brief(value)}; correct it")
    return float(value)
