"""From a request to a slate: eligible items, feature rows, rules, the policy's choice. Changes nothing but scales."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from neuclust.core import Cap, Round, Rules, Slate
from neuclust.errors import DataError
from neuclust.models.crossed import CrossedRounds
from neuclust.recommender.choices import Choice, Shown
from neuclust.recommender.drawn import Drawn, slot_sizes
from neuclust.recommender.feedback.rewards import stated
from neuclust.recommender.items.catalogue import Catalogue, Users
from neuclust.recommender.learner import Learner, SelectsMany
from neuclust.recommender.requests import Request
from neuclust.recommender.schema import Schema
from neuclust.recommender.tables.ids import distinct
from neuclust.recommender.tables.values import Id, Value
from neuclust.slates.rules import longest

Codes = NDArray[np.int64]
Matrix = NDArray[np.float64]
MOST_NAMED = 5  # ids in one sentence


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request may be answered with: codes (n,), ids that are not among the items, the rules, and why so few."""

    codes: Codes
    ignored: list[Id]
    rules: Rules | None
    reason: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands among all: its number, and the key of its randomness."""

    t: int
    draw: int


@dataclass(frozen=True)
class Chosen:
    """The answer to one request: the slate's items, what learning needs, and what a person should know."""

    ids: list[Id]
    slate: Slate
    shown: Shown
    short: bool
    reason: str
    ignored: list[Id]
    design: Drawn
    span: tuple[float, float] = (0.0, 1.0)  # of an item's reward, in whose units a person reads what was expected

    def choice(self, id: str, request: Request, now: float, policy: str, model: int) -> Choice:
        """As the user gets it."""
        slate, required = self.slate, distinct(request.required)
        return Choice(
            id=id, items=self.ids,
            propensities=None if slate.propensities is None else slate.propensities.tolist(),
            means=stated(slate.means.tolist(), *self.span),
            bonuses=stated(slate.bonuses.tolist(), 0.0, self.span[1] - self.span[0]),
            short=self.short, reason=self.reason,
            ignored=self.ignored,
            explored=[False] * len(self.ids) if slate.explored is None else slate.explored.tolist(),
            required=[str(each) in required for each in self.ids] if required else [],
            request_id=request.request_id, user=request.user, time=now, policy=policy, version=self.shown.version,
            model=model, shown=self.shown, design=self.design,
        )  # fmt: skip


_NO_NUMBERS = torch.zeros(0, dtype=torch.float64)
NOTHING = Slate(torch.zeros(0, dtype=torch.int64), _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS)


def nothing_chosen(found: Offer) -> Chosen:
    """The empty answer of a recommender that has no items yet."""
    none = np.zeros((0, 0))
    shown = Shown(np.zeros(0, np.int64), none, np.zeros(0), NOTHING, 1, 1, 0)
    return Chosen([], NOTHING, shown, True, found.reason, found.ignored, Drawn(NOTHING.drawn_by.kind))


def offer(request: Request, catalogue: Catalogue) -> Offer:
    """The items a request allows, refused where a required one is not among them or the rules contradict each other."""
    codes, ignored = _eligible(request, catalogue)
    reason = "" if len(codes) else _nothing(request, catalogue)
    if request.exclude:
        excluded = catalogue.codes_of(request.exclude)[0]
        kept = codes[~np.isin(codes, excluded)]
        reason = "every eligible item is excluded" if len(codes) and not len(kept) else reason
        codes = kept
    required = _required(request, catalogue, codes)
    groups = {column: catalogue.groups(column)[codes] for column in request.at_most}
    for column, group in groups.items():
        _check_cap(request, column, group[np.isin(codes, required)])
    if not groups and not len(required):
        return Offer(codes, ignored, None, reason)
    caps = tuple(Cap(torch.from_numpy(group), request.at_most[column]) for column, group in groups.items())
    return Offer(codes, ignored, Rules(required=torch.from_numpy(required), caps=caps), reason)


def _eligible(request: Request, catalogue: Catalogue) -> tuple[Codes, list[Id]]:
    if request.eligible is not None:
        return catalogue.codes_of(request.eligible)
    return catalogue.all_codes().copy(), []  # a copy that may be written to, as torch wants it


def _nothing(request: Request, catalogue: Catalogue) -> str:
    if not len(catalogue):
        return "there are no items"
    return "no item is eligible" if not request.eligible else "none of the eligible ids is known"


def _required(request: Request, catalogue: Catalogue, codes: Codes) -> Codes:
    if not request.required:
        return codes[:0]
    required, unknown = catalogue.codes_of(request.required)
    missing = [*unknown, *(catalogue.id_of(code) for code in required[~np.isin(required, codes)].tolist())]
    if missing:
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        named = ", ".join(f"{each!r:.100}" for each in missing[:MOST_NAMED])
        raise DataError(f"required: expected ids of eligible items, got {named}{more}; make them eligible or drop them")
    return required


def _check_cap(request: Request, column: str, groups: Codes) -> None:
    most = request.at_most[column]
    if len(groups) > most and np.unique(groups, return_counts=True)[1].max() > most:
        got = f"more are required of one {column!r:.100}; raise it or require fewer"
        raise DataError(f"at_most: expected at most {most} items of one value, but {got}")


@dataclass(frozen=True)
class Chooser:
    """What choosing needs: the schema, items, users and the learner."""

    schema: Schema
    catalogue: Catalogue
    users: Users
    learner: Learner
    span: tuple[float, float] = (0.0, 1.0)  # of an item's reward

    def row_of(self, request: Request) -> dict[str, Value]:
        """What is known of the request's user: the table's row, then what the request says."""
        return known_of(request, self.users)

    def user_row(self, request: Request) -> Matrix:
        """The encoded user and context, (d_u,)."""
        return self.schema.user.encode_row(self.row_of(request))[0]

    def choose(
        self, requests: Sequence[Request], offers: Sequence[Offer], users: Sequence[Matrix], places: Sequence[Place]
    ) -> list[Chosen]:
        """The answers to requests with their offers and encoded users (d_u,), all computed in one pass."""
        asked = [at for at, found in enumerate(offers) if len(found.codes)]
        plain = [at for at in asked if offers[at].rules is None]
        slates = self._at_once(requests, offers, users, places, plain)
        left = [at for at in asked if at not in slates]
        rows = self._rows([offers[at].codes for at in left], [users[at] for at in left])
        rounds = {
            at: round_of(offers[at], requests[at].k, profiles, features, places[at])
            for at, (profiles, features) in zip(left, rows, strict=True)
        }
        slates.update(zip(left, self.learner.select(list(rounds.values())), strict=True))
        return [
            self._chosen(requests[at], found, users[at], places[at], slates.get(at), rounds.get(at))
            for at, found in enumerate(offers)
        ]

    def _at_once(
        self, requests: Sequence[Request], offers: Sequence[Offer], users: Sequence[Matrix], places: Sequence[Place],
        asked: Sequence[int],
    ) -> dict[int, Slate]:  # fmt: skip
        """Slates of requests by a policy that reads functions of items instead of features; those it cannot answer so
        are left out."""
        if not asked or not isinstance(self.learner.player, SelectsMany):
            return {}
        design, codes = self.schema.design, [offers[at].codes for at in asked]
        rounds = CrossedRounds(
            arm_ids=codes, rows=codes, table=lambda: self.catalogue.functions.of(design, self.catalogue.rows),
            weights=design.user_factors(np.array([users[at] for at in asked])), index=design.used[1],
            slate_sizes=[min(requests[at].k, len(offers[at].codes)) for at in asked],
            keys=[places[at].draw for at in asked],
        )  # fmt: skip
        found = zip(asked, self.learner.select_many(rounds), strict=True)
        return {at: slate for at, slate in found if slate is not None}

    def _rows(self, codes: Sequence[Codes], users: Sequence[Matrix]) -> list[tuple[Matrix, Matrix]]:
        """Profiles (n, d_i) and features (n, d) of each request."""
        if len(codes) == 1:
            return [rows_of(codes[0], users[0], self.catalogue, self.schema)]
        if not codes:
            return []
        design = self.schema.design
        owner = np.repeat(np.arange(len(codes)), [len(each) for each in codes])
        profiles = self.catalogue.profiles(np.concatenate(codes))
        features = design.rows_many(profiles, np.array(users), owner)
        ends = np.cumsum([len(each) for each in codes])[:-1]
        return list(zip(np.split(profiles, ends), np.split(features, ends), strict=True))

    def _chosen(
        self, request: Request, found: Offer, user: Matrix, place: Place, slate: Slate | None, round: Round | None
    ) -> Chosen:
        slate = NOTHING if slate is None else slate
        positions = slate.positions.numpy()
        codes = found.codes[positions]
        k = len(codes)
        kept = replace(slate, positions=torch.arange(k), design=None)
        shown = Shown(codes, self.catalogue.profiles(codes), user, kept, place.t, place.draw, self.schema.version)
        ids = [self.catalogue.id_of(code) for code in codes.tolist()]
        short = k < request.k
        why = _why(request, found, k) if short else ""
        ruled = None if found.rules is None else round
        sizes = slot_sizes(ruled, len(found.codes), positions.tolist())
        design = Drawn.of(slate, lambda at: self.catalogue.id_of(int(found.codes[at])), sizes)
        return Chosen(ids, kept, shown, short, why, found.ignored, design, self.span)


def of_known_user(request: Request, users: Users) -> Request:
    """The request with its user's id as the table has it: 17 may be asked for as "17"."""
    if request.user is None or request.user in users.rows.codes:
        return request
    named = users.named(request.user)
    return request if named == request.user else replace(request, user=named)


def known_of(request: Request, users: Users) -> dict[str, Value]:
    """What is known of the request's user: the table's row, then what the request says."""
    known = None if request.user is None else users.raw(request.user)
    return {**(known or {}), **request.row}


def rows_of(codes: Codes, user: Matrix, catalogue: Catalogue, schema: Schema) -> tuple[Matrix, Matrix]:
    """Profiles (n, d_i) and features (n, d) of one request, by its items and its encoded user (d_u,)."""
    profiles = catalogue.profiles(codes)
    return profiles, schema.design.rows(profiles, user)


def round_of(found: Offer, k: int, profiles: Matrix, features: Matrix, place: Place) -> Round:
    """The round of a request, for the longest slate that its items and rules allow, at most k."""
    made = Round(
        t=place.t, arm_ids=torch.from_numpy(found.codes), profiles=torch.from_numpy(profiles), query=None,
        slate_size=min(k, len(found.codes)), features=torch.from_numpy(features), rules=found.rules, draw=place.draw,
    )  # fmt: skip
    return made if found.rules is None else replace(made, slate_size=longest(made))


def _why(request: Request, found: Offer, k: int) -> str:
    """Why a slate is shorter than asked for."""
    if found.reason:
        return found.reason
    many = "1 item is" if len(found.codes) == 1 else f"{len(found.codes)} items are"
    if k < len(found.codes):
        return f"{many} eligible, but at_most allows {k} of the {request.k} asked for"
    return f"only {many} eligible, {request.k} were asked for"
