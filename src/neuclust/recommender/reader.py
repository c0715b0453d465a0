"""An immutable copy of a recommender that serves requests from many threads, and the way of its choices back."""

import copy
import hashlib
import itertools
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

from neuclust.core import check_round
from neuclust.errors import DataError, StateError
from neuclust.recommender.answers import Answers, draw_of
from neuclust.recommender.choices import Choice, Shown
from neuclust.recommender.chooser import Chooser, Place, of_known_user, offer
from neuclust.recommender.encoders.feature_table import FeatureTable
from neuclust.recommender.explaining.explain import explain as explain_choice
from neuclust.recommender.feedback.decisions import Decision, is_known
from neuclust.recommender.feedback.rings import id_text
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.learner import Learner, shown_round
from neuclust.recommender.options import Settings
from neuclust.recommender.requests import Request, RequestDetails, distinct, read_request, read_requests
from neuclust.recommender.schema import Schema
from neuclust.recommender.tables.values import Id, plain_id

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender


class ReaderIds:
    """Ids and keys of randomness of a reader's decisions, under a token of its own.

    The same request under the same request id has the same decision id, so that its answer is the same. Other ids are
    counted. A forked process has another token: no two readers ever give the same id.
    """

    def __init__(self) -> None:
        self._process, self._token, self._count = 0, "", itertools.count(1)
        self._lock = threading.Lock()

    def next(self, request: Request) -> tuple[str, int]:
        """The id of a decision, and the key of its randomness."""
        with self._lock:
            if self._process != os.getpid():
                self._process, self._token, self._count = os.getpid(), secrets.token_hex(8), itertools.count(1)
            token, number = self._token, next(self._count)
        if request.request_id is None:
            return f"{token}-{number}", _hashed(f"{token} {number}")
        return f"{token}-r{_hashed(f'{id_text(request.request_id)} {request.fingerprint()}'):016x}", draw_of(request, 0)


def _hashed(text: str) -> int:
    """64 bits of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Reader:
    """Answers requests by what a recommender had learned when this was made; any number of threads may ask.

    It changes nothing it answers by: scales stay, and nothing is learned. Its choices carry their rows and go back by
    `Recommender.accept`, in memory or through `Choice.to_json` and `Choice.from_json`; then `feedback` takes their ids.
    A process of its own makes its reader by `Recommender.load(directory).reader()`.
    """

    settings: Settings
    schema: Schema
    stock: Stock
    learner: Learner
    clock: Callable[[], float]
    t: int  # of every round: schedules stand still, and the order of requests does not matter
    model: int  # lessons that the policy had learned
    answers: Answers  # of the recommender, to requests that may come again
    asked: "Asked"
    ids: ReaderIds

    explain = explain_choice

    def recommend(self, user: Id | Mapping[str, Any] | None = None, **details: Unpack[RequestDetails]) -> Choice:
        """A slate for a user, as `Recommender.recommend` gives it."""
        return self._answered([read_request(user, details, self.settings.slate_size)])[0]

    def recommend_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Choice]:
        """Slates for many requests in one pass, as `Recommender.recommend_many` gives them."""
        return self._answered(read_requests(requests, self.settings.slate_size))

    @property
    def features(self) -> FeatureTable:
        """How every column is read and why, and how users and items meet."""
        return self.schema.table(self.stock.unlearned)

    def _answered(self, requests: Sequence[Request]) -> list[Choice]:
        now = self.clock()
        requests = [of_known_user(request, self.stock.users) for request in requests]
        known = [self.answers.find(request) for request in requests]
        new, again = distinct(requests, known)
        chooser = Chooser(
            self.schema, self.stock.catalogue, self.stock.users, self.learner, self.settings.feedback.span
        )
        offers = [offer(request, self.stock.catalogue) for request in new]
        users = [chooser.user_row(request) for request in new]
        self.asked.note(new)
        named = [self.ids.next(request) for request in new]
        chosen = chooser.choose(new, offers, users, [Place(self.t, draw) for _, draw in named])
        name = self.settings.policy.name
        choices = [
            replace(each.choice(id, request, now, name, self.model), request=request)
            for (id, _), request, each in zip(named, new, chosen, strict=True)
        ]
        return [each if each is not None else choices[at] for each, at in zip(known, again, strict=True)]


class Asked:
    """Fingerprints of the last requests that carried an id: another request under the same id is refused."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._known: dict[str, str] = {}  # by the text of the id, oldest first

    def note(self, requests: Sequence[Request]) -> None:
        """Remember requests, all or none."""
        new = {id_text(each.request_id): each for each in requests if each.request_id is not None}
        prints = {key: request.fingerprint() for key, request in new.items()}
        with self._lock:
            for key, fingerprint in prints.items():
                if self._known.get(key, fingerprint) != fingerprint:
                    got = f"got another one under {new[key].request_id!r:.100}; give a new request a new id"
                    raise DataError(f"request_id: expected the same request as before, {got}")
            self._known |= prints
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]


def make_reader(self: "Recommender") -> Reader:
    """An immutable copy that serves from many threads while this one learns; made anew to serve what was learned."""
    if self.schema is None or self.learner is None:
        advice = "call recommend or fit_log once before, then the columns are fixed"
        raise StateError(f"reader: expected a recommender that has answered a request, got a draft; {advice}")
    stock = self.stock.copy()
    stock.catalogue.all_codes()  # computed before threads ask for it
    return Reader(
        settings=self.settings, schema=copy.deepcopy(self.schema), stock=stock, learner=self.learner.copy(),
        clock=self.clock, t=self.ids.last + 1, model=self.decisions.counts.lessons, answers=self.answers.copy(),
        asked=Asked(self.settings.feedback.remember), ids=ReaderIds(),
    )  # fmt: skip


def accept_choice(self: "Recommender", choice: Choice) -> None:
    """Enter a choice of a reader as an open decision of this recommender; `feedback` then takes its id.

    The same choice a second time changes nothing. It is learned by the rows the reader encoded; scales that still run
    see what the request said, as they do with requests of this recommender.
    """
    if not isinstance(choice, Choice):
        raise DataError(f"accept: expected a Choice, got {choice!r:.100}; read it with Choice.from_json")
    self.log.ready()
    self._learn(self.decisions.due(self.clock()))
    if isinstance(choice.id, str) and is_known(self.decisions, choice.id):
        return
    shown = _checked_rows(self, choice)
    request = _request_of(self, choice)
    decision = Decision(self.ids.last + 1, choice.id, choice.time, tuple(choice.items), shown, shown.version)
    self.decisions.open(decision)  # nothing is refused from here on
    self.ids.last += 1
    _notice(self, request)
    if self.answers.unknown(request):
        self.answers.note(request, choice)
    self.log.decided(choice, request)


def _checked_rows(shop: "Recommender", choice: Choice) -> Shown:
    """The rows of a choice, refused where they are not of this recommender's schema and items."""
    shown, schema, named = choice.shown, shop.schema, f"choice {choice.id!r:.100}"
    if not isinstance(shown, Shown) or schema is None:
        got = "one for a recommender that is still a draft" if schema is None else "one without rows"
        raise DataError(f"{named}: expected a choice of a reader of this recommender, got {got}")
    if shown.version != schema.version or choice.version != schema.version:
        got = f"got version {shown.version}; make a new reader"
        raise DataError(f"{named}: expected version {schema.version} of the features, {got}")
    widths = (shown.items.shape[-1] if len(shown.codes) else schema.items.width, len(shown.user))
    if widths != (schema.items.width, schema.user.width):
        wanted = f"rows of {schema.items.width} item and {schema.user.width} user columns"
        raise DataError(f"{named}: expected {wanted}, got {widths[0]} and {widths[1]}; make a new reader")
    known = shop.stock.catalogue.rows.codes
    codes = [known.get(item) if isinstance(item, str | int) else None for item in choice.items]
    if codes != shown.codes.tolist():
        got = f"got {choice.items!r:.200}; was it made by a reader of another one?"
        raise DataError(f"{named}: expected items of this recommender, {got}")
    _check_slate(shop, shown, named)
    return shown


def _check_slate(shop: "Recommender", shown: Shown, named: str) -> None:
    """Refuse what could not be learned once the decision is closed."""
    k, most = len(shown.codes), shop.settings.slate_size
    if k > most or {len(each) for each in (shown.slate.positions, shown.slate.means, shown.slate.bonuses)} != {k}:
        raise DataError(f"{named}: expected at most {most} slots with a mean and a bonus each, got {k}")
    if k and shop.schema is not None:
        try:
            check_round(shown_round(shown, shop.schema), shop.schema.design.width, most)
        except DataError as error:
            raise DataError(f"{named}: {error}") from None


def told_request(choice: Choice) -> Request:
    """The request a choice answers; without it, what the choice tells of it."""
    if choice.request is not None:
        return choice.request
    ids = (choice.user, choice.request_id)
    user, request_id = (None if each is None else plain_id(each, f"choice {choice.id!r:.100}") for each in ids)
    return Request(user, {}, {}, None, (), (), {}, max(len(choice.items), 1), request_id)


def _request_of(shop: "Recommender", choice: Choice) -> Request:
    """The same, refused where it is another one or not of this recommender."""
    request, named = told_request(choice), f"choice {choice.id!r:.100}"
    if choice.request is None:
        return request
    if request.request_id != choice.request_id or request.user != choice.user or request.k > shop.settings.slate_size:
        raise DataError(f"{named}: expected the request it answers, got another one")
    if shop.schema is not None:
        shop.schema.user.encode_row(request.row)  # refuses values of a wrong type
    return request


def _notice(shop: "Recommender", request: Request) -> None:
    """Columns that came too late, and running scales, as with a request of the recommender itself."""
    if shop.schema is None:
        return
    shop.stock.note("context", request.row.keys() - shop.schema.user.reasons.keys())
    if not shop.schema.user.settled:
        shop.schema.user.observe(request.row)
