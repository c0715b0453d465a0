"""Stated crosses and matches: which entries of encoded user and item rows are multiplied, and the name of each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, Protocol

from neuclust.errors import ConfigError, suggestion
from neuclust.recommender.crossing.basis import Columns

Side = Literal["items", "user"]
Function = tuple[int, ...] | int  # the product of these entries, () for the constant; or a direction by its number
GENERAL = frozenset({"yes", "no", "true", "false", "y", "n", "t", "f", "none", "unknown", "other"})
PREFIXES: dict[str, Side] = {"items": "items", "users": "user", "context": "user"}


class Crossing(Protocol):
    """How user and item columns meet: outer products, matches by level, and a bound on the number of features.

    Where both are None the default applies; an empty list states that nothing is crossed.
    """

    @property
    def cross(self) -> Sequence[Sequence[str]] | None: ...

    @property
    def match(self) -> Sequence[Sequence[str]] | None: ...

    @property
    def width(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Term:
    """One feature: a function of the item row times a function of the user row, and a constant factor."""

    items: Function
    user: Function
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Member:
    """A column of one side: its name, the positions of its encoded columns and their labels."""

    side: Side
    name: str
    positions: range
    labels: tuple[str, ...]
    levels: tuple[str, ...] | None

    @property
    def is_vector(self) -> bool:
        """Whether its columns are entries of a vector, which are labelled name[0], name[1], …"""
        return self.levels is None and all(label.startswith(f"{self.name}[") for label in self.labels)


@dataclass(frozen=True)
class Sides:
    """The encoded columns of items and of the user (the users' table, then the request's context)."""

    items: Columns
    user: Columns

    def member(self, name: str, field: str) -> Member:
        """The column of this name, or of `items.name`, `users.name` or `context.name`."""
        sides = self._found(name)
        if len(sides) > 1:
            both = f"items.{name} or users.{name}"
            raise ConfigError(f"expected a column of one table, got {name!r:.100}; write {both}", field=field)
        if not sides:
            known = [*self.items.names, *self.user.names]
            close = suggestion(name, known) if known else "there are none"
            raise ConfigError(f"expected columns that are encoded, got {name!r:.100}; {close}", field=field)
        ((side, plain),) = sides.items()
        member = self.of(side, plain)
        if not member.positions:
            raise ConfigError(f"expected columns that are encoded, got {name!r:.100}, which is ignored", field=field)
        return member

    def of(self, side: Side, name: str) -> Member:
        """The column of this name on one side."""
        columns = self.items if side == "items" else self.user
        place = columns.slices[name]
        return Member(side, name, range(place.start, place.stop), columns.labels[place], columns.levels(name))

    def _found(self, name: str) -> dict[Side, str]:
        found: dict[Side, str] = {}
        if name in self.items.names:
            found["items"] = name
        if name in self.user.names:
            found["user"] = name
        prefix, _, rest = name.partition(".")
        if not found and prefix in PREFIXES:
            side = PREFIXES[prefix]
            if rest in (self.items if side == "items" else self.user).names:
                found[side] = rest
        return found


@dataclass(frozen=True)
class Stated:
    """One stated cross or match: its name for people, how many products it has at most, and those products."""

    name: str
    members: tuple[Member, ...]
    matched: bool = False

    @property
    def count(self) -> int:
        if self.matched:
            return len(self._shared())
        return math.prod(len(member.positions) for member in self.members)

    @property
    def line(self) -> str:
        """For the table of features."""
        return f"{self.name}: {columns_of(self.count)}"

    def terms(self) -> list[Term]:
        places = self._shared() if self.matched else product(*(range(len(each.positions)) for each in self.members))
        return [self._term(place) for place in places]

    def positions(self) -> list[list[int]]:
        """Of a match: the entries of the user's column and those of the items' column that belong to them."""
        places = zip(*self._shared(), strict=True)
        return [[member.positions[at] for at in each] for member, each in zip(self.members, places, strict=True)]

    def _term(self, places: Sequence[int]) -> Term:
        pairs = list(zip(self.members, places, strict=True))
        items = tuple(sorted(member.positions[at] for member, at in pairs if member.side == "items"))
        user = tuple(sorted(member.positions[at] for member, at in pairs if member.side == "user"))
        return Term(items, user)

    def _shared(self) -> list[tuple[int, ...]]:
        """Places of equal levels, or equal places where both columns are vectors of one length."""
        one, other = self.members
        if one.levels is None and other.levels is None:
            same = len(one.positions) == len(other.positions)
            return [(at, at) for at in range(len(one.positions))] if same else []
        places = {level: at for at, level in enumerate(other.levels or ())}
        return [(at, places[level]) for at, level in enumerate(one.levels or ()) if level in places]


def columns_of(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def stated(spec: Crossing, items: Columns, user: Columns) -> list[Stated]:
    """The crosses and matches of a specification, every name found and every pair checked."""
    sides = Sides(items, user)
    crosses = [_cross(sides, names) for names in spec.cross or ()]
    matches = [_match(sides, names) for names in spec.match or ()]
    for field, found in (("cross", crosses), ("match", matches)):
        seen: set[frozenset[tuple[str, str]]] = set()
        for each in found:
            key = frozenset((member.side, member.name) for member in each.members)
            if key in seen:
                raise ConfigError(f"expected every one once, got {each.name} twice; drop one", field=field)
            seen.add(key)
    return [*crosses, *matches]


def matched(items: Columns, user: Columns, user_name: str, item_name: str) -> Stated | None:
    """The match of two columns that are alike, None where they are not.

    Alike are two vectors of one length, and two columns of levels that share at least two and half of those of one.
    Levels such as 1 or "yes" mean something else in every column: they count where both have the same name.
    """
    members = (Sides(items, user).of("user", user_name), Sides(items, user).of("items", item_name))
    found = _named_match(members)
    if any(len(member.positions) < 2 for member in members):
        return None
    if all(member.is_vector for member in members):
        return found if found.count else None
    levels = [set(member.levels or ()) for member in members]
    shared = [level for level in levels[0] & levels[1] if user_name == item_name or not _is_general(level)]
    return found if len(shared) >= 2 and 2 * len(shared) >= min(map(len, levels)) else None


def _is_general(level: str) -> bool:
    return level.casefold() in GENERAL or not any(sign.isalpha() for sign in level)


def _cross(sides: Sides, names: Sequence[str]) -> Stated:
    members = tuple(sides.member(name, "cross") for name in names)
    if len(members) < 2 or len({(member.side, member.name) for member in members}) < len(members):
        raise ConfigError(f"expected two or more different columns, got {tuple(names)!r:.100}", field="cross")
    return Stated(" x ".join(member.name for member in members), members)


def _match(sides: Sides, names: Sequence[str]) -> Stated:
    members = tuple(sides.member(name, "match") for name in names)
    if [member.side for member in members] != ["user", "items"]:
        expected = "pairs of a user column and an item column"
        raise ConfigError(f"expected {expected}, got {tuple(names)!r:.100}; write ('tastes', 'tags')", field="match")
    found = _named_match(members)
    if found.count == 0:
        expected = "two columns with levels in common, or two vectors of one length"
        raise ConfigError(f"expected {expected}, got {found.name!r:.200}; cross them instead", field="match")
    return found


def _named_match(members: tuple[Member, ...]) -> Stated:
    return Stated(" matched with ".join(member.name for member in members), members, matched=True)
