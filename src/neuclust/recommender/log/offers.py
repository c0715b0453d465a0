"""The offer of a logged decision made again, and its slate and design as positions in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from neuclust.core import Design, Round
from neuclust.errors import DataError
from neuclust.recommender.chooser import Offer, Place, known_of, offer, round_of, rows_of
from neuclust.recommender.drawn import UNKNOWN, Drawn
from neuclust.recommender.items.catalogue import Catalogue, Users
from neuclust.recommender.requests import Request, request_from_json
from neuclust.recommender.schema import Schema
from neuclust.recommender.tables.values import Id
from neuclust.slates.rules import option_counts

REQUEST = tuple(each.name for each in fields(Request))


@dataclass(frozen=True, slots=True)
class LoggedChoice:
    """A decision of a log: what was asked and on offer; slate, propensities (k,), design and |A(S)| per slot."""

    request: Request
    found: Offer
    place: Place
    slate: tuple[int, ...]
    propensities: tuple[float, ...] | None
    design: Design
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, event: Mapping[str, Any], catalogue: Catalogue) -> "LoggedChoice":
        """The choice of a decision event by the items of that time; refused where they do not fit together."""
        request = request_from_json({name: event[name] for name in REQUEST})
        found = offer(request, catalogue)
        place = Place(int(event["t"]), int(event["draw"]))
        slate = _positions(event["items"], found, catalogue, "its slate")
        drawn = Drawn.from_json(event["design"], event.get("sizes") or ())
        sizes = _sizes(found, request.k, place, slate)
        if drawn.sizes and drawn.sizes != sizes:
            got = f"{list(sizes)} by the items of that time; did a reader of other items serve it?"
            raise DataError(f"expected {list(drawn.sizes)} items to choose from by slot, as it was logged, got {got}")
        base, pool = (_positions(each, found, catalogue, "its design") for each in (drawn.base, drawn.pool))
        chances = _propensities(event["propensities"], len(slate))
        return cls(request, found, place, slate, chances, _design(drawn, slate, base, pool), sizes)

    def round(self, catalogue: Catalogue, users: Users, schema: Schema) -> Round:
        """The round as a policy is given it, encoded by the schema."""
        user = schema.user.encode_row(known_of(self.request, users))[0]
        profiles, features = rows_of(self.found.codes, user, catalogue, schema)
        return round_of(self.found, self.request.k, profiles, features, self.place)


def _positions(items: Sequence[Id], found: Offer, catalogue: Catalogue, what: str) -> tuple[int, ...]:
    """Where items stand in an offer."""
    places = np.full(len(catalogue.rows), -1)
    places[found.codes] = np.arange(len(found.codes))
    at = [-1 if code < 0 else int(places[code]) for code in catalogue.rows.codes_of(items)]
    if -1 in at:
        got = f"got {items[at.index(-1)]!r:.100}, which was not; did a reader of other items serve it?"
        raise DataError(f"expected items that were on offer as {what}, {got}")
    if len(set(at)) != len(at):
        raise DataError(f"expected every item of {what} once, got {list(items)!r:.100}")
    return tuple(at)


def _sizes(found: Offer, k: int, place: Place, slate: Sequence[int]) -> tuple[int, ...]:
    n = len(found.codes)
    if found.rules is None:
        return tuple(range(n, n - len(slate), -1))
    none = np.zeros((n, 0))
    return option_counts(round_of(found, k, none, none, place), slate)  # refuses a slate that breaks the rules


def _propensities(given: Any, k: int) -> tuple[float, ...] | None:
    if given is None:
        return None
    chances = tuple(float(chance) for chance in given)
    if len(chances) != k or not all(0 < chance <= 1 for chance in chances):
        wanted = f"expected {k} propensities above 0 and at most 1, or null"
        raise DataError(f"{wanted}, got {given!r:.100}")
    return chances


def _design(drawn: Drawn, slate: tuple[int, ...], base: tuple[int, ...], pool: tuple[int, ...]) -> Design:
    kind: Any = drawn.kind
    if kind == "deterministic":
        return Design(kind, slate)
    return Design(kind) if kind in ("uniform", UNKNOWN) else Design(kind, base, drawn.share, pool, drawn.anywhere)
