"""The service behind the routes: what is asked becomes events, and an answer once they are durable."""

import asyncio
import contextlib
import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import Any, TypeVar

from neuclust.errors import ConfigError, DataError, NeuclustError
from neuclust.recommender.requests import read_request
from neuclust.recommender.tables.values import Value
from neuclust.serve.api.answering.answers import Span, answer_of
from neuclust.serve.api.answering.choosing import Asked, choose, logged, read_ask
from neuclust.serve.api.answering.desk import Ask, Desk
from neuclust.serve.api.answering.served import Served
from neuclust.serve.api.auth import Keys
from neuclust.serve.api.bodies import Feedback, Recommend
from neuclust.serve.api.feedbacks import Facts, Recent, digest, facts_of, feedback_logged
from neuclust.serve.api.follower import Follower
from neuclust.serve.api.group_commit import GroupCommit, Written
from neuclust.serve.api.metrics import Metrics
from neuclust.serve.api.options import ServeOptions
from neuclust.serve.api.problems import Refused
from neuclust.serve.events import decode, freeze_event
from neuclust.serve.fold.recovery import newest_model
from neuclust.serve.store.contract import DECISION, Appended, Event, Row, Store

LOG = logging.getLogger("neuclust.serve")
T = TypeVar("T")


class Service:
    """All that one API process has: the store, the desk, the writer, and the follower of models."""

    def __init__(self, store: Store, options: ServeOptions, keys: Keys) -> None:
        self.store, self.options, self.keys = store, options, keys
        self.metrics = Metrics()
        self.writer = GroupCommit(store)
        self.desk = Desk(self._answer, options.longest_wait)
        self.served: dict[str, Served] = {}  # written by the desk's thread
        self.recent = Recent()
        self.follower = Follower(self)

    def close(self) -> None:
        """End in the order in which work flows."""
        self.follower.close()
        self.desk.close()
        self.writer.close()
        self.store.close()

    # --- recommenders, in the desk's thread -----------------------------------------------------------------

    def synced(self, name: str) -> Served:
        """A recommender with its tables as the log has them now; 404 where there is none."""
        head = self.store.head(name)
        if head is None:
            self.drop(name)
            raise Refused(404, f"expected a recommender that is there, got {name!r}; PUT it first")
        found = self.served.get(name)
        if found is None or found.id != head.id:
            found = Served.started(self.store, head)
            found.follow(self.store, head)
            newest = newest_model(self.store, head, found.version)
            if newest is not None:  # before the first answer: the follower would bring it a moment later
                found.take(newest[1], newest[0])
            gc.collect()
            gc.freeze()  # tables stay: collections need not go through them again
        found.follow(self.store, head)
        self.served[name] = found
        return found

    def followed(self, name: str) -> Served:
        """A recommender with all tables that were acknowledged; its `head` may be older. Where this process alone
        writes tables it knows without asking the store whether there are new ones."""
        found = self.served.get(name)
        if found is None or self.store.shared or self.writer.tables.get(found.id, 0) > found.tables.seq:
            return self.synced(name)
        return found

    def drop(self, name: str) -> None:
        """Forget a recommender that was deleted."""
        found = self.served.pop(name, None)
        if found is not None:
            self.recent.forget(found.id)

    async def with_served(self, name: str, function: Callable[[Served], T]) -> T:
        """A function of a recommender, called in the desk's thread."""
        result: T = await asyncio.wrap_future(self.desk.call(lambda: function(self.synced(name))))
        return result

    async def known(self, name: str) -> Served:
        """A recommender, perhaps not up to date; only what other threads may read of it."""
        found = self.served.get(name)
        return found if found is not None else await self.with_served(name, lambda served: served)

    # --- recommendations --------------------------------------------------------------------------------------

    async def recommend(self, name: str, bodies: Sequence[Recommend]) -> list[dict[str, Any] | Exception]:
        """An answer or a refusal for each request."""
        asks = [Ask(name, body, digest(body.model_dump(exclude={"request_id"}))) for body in bodies]
        self.desk.ask(asks)
        return await _gathered([ask.answer for ask in asks])

    def _answer(self, name: str, asks: Sequence[Ask]) -> None:
        """Choose for requests of one recommender and have the decisions written; in the desk's thread."""
        served = self.followed(name)
        if served.schema is None and len(served.stock.catalogue):
            self._freeze(served, asks)
        situation = served.situation()
        ready: list[tuple[Ask, Asked]] = []
        for ask in asks:
            try:
                ready.append((ask, read_ask(ask.body, served.stock, served.schema, situation)))
            except NeuclustError as error:
                settle(ask.answer, error)
        asked = [each for _, each in ready]
        chosen = choose(asked, served.schema, served.stock, served.learners(), situation)
        for (ask, each), (choice, suggested) in zip(ready, chosen, strict=True):
            try:
                event, content = logged(each, choice, suggested, ask.body, ask.digest, situation)
                self.writer.submit(served.id, [event], partial(self._decided, served, ask, content))
            except NeuclustError as error:
                settle(ask.answer, error)

    def _freeze(self, served: Served, asks: Sequence[Ask]) -> None:
        """Have the schema fixed by the first request that is in order, or by the tables alone."""
        for ask in asks:
            with contextlib.suppress(DataError, ConfigError):
                details: dict[str, Any] = {"user_features": ask.body.user_features, "context": ask.body.context}
                row = read_request(ask.body.user, details, served.settings.slate_size).row
                self.fix_schema(served, row, ask.body.user)
                return
        self.fix_schema(served, {}, None)

    def fix_schema(self, served: Served, row: Mapping[str, Value], user: str | None) -> None:
        """Have the schema fixed by the tables so far and the columns of a request; once, whoever asks first."""
        if served.schema is not None:
            return
        served.tables.check_freeze(row)  # refuses
        self.store.append({served.id: [freeze_event(row, user)]})
        self.synced(served.name)

    def _decided(self, served: Served, ask: Ask, content: Mapping[str, Any], written: Written) -> None:
        """Answer a request whose decision was written, or was made before; in the writing thread."""
        if isinstance(written, Exception):
            settle(ask.answer, written)
            return
        (appended,) = written
        try:
            if appended.earlier is None:
                choice = content["choice"]
                self.recent.note(served.id, choice["id"], Facts(tuple(choice["items"]), ask.body.user))
                settle(ask.answer, answer_of(content, served.span))
            else:
                settle(ask.answer, _again(appended.earlier, ask, served.span))
        except Exception as error:
            settle(ask.answer, error)

    # --- feedback ---------------------------------------------------------------------------------------------

    async def feedback(self, name: str, bodies: Sequence[Feedback]) -> list[tuple[str, bool] | Exception]:
        """For each message its id and whether it was there before, once it is durable; or why it was refused."""
        served = await self.known(name)
        facts = await self._facts(served.id, [body.decision_id for body in bodies])
        results: list[tuple[str, bool] | Exception] = []
        events: list[Event] = []
        places: list[int] = []
        for at, body in enumerate(bodies):
            try:
                found = facts[body.decision_id]
                if isinstance(found, Exception):
                    raise found
                events.append(feedback_logged(body, found, served.settings))
                places.append(at)
                results.append((str(events[-1].key), False))
            except NeuclustError as error:
                results.append(error)
        if events:
            for at, event, appended in zip(places, events, await self.append(served.id, events), strict=True):
                results[at] = _taken(event, appended)
        return results

    async def _facts(self, id: int, decisions: Sequence[str]) -> dict[str, Facts | Exception]:
        found: dict[str, Facts | Exception] = {}
        missing = []
        for decision in dict.fromkeys(decisions):
            known = self.recent.find(id, decision)
            if known is None:
                missing.append(decision)
            else:
                found[decision] = known
        rows = await asyncio.to_thread(self.store.find, id, DECISION, missing) if missing else {}
        for decision in missing:
            row = rows.get(decision)
            if row is None:
                advice = "hand back the decision_id that came with the slate"
                found[decision] = Refused(404, f"expected a decision that was made, {advice}", field="decision_id")
                continue
            try:
                known = facts_of(row)
                self.recent.note(id, decision, known)
                found[decision] = known
            except NeuclustError as error:
                found[decision] = error
        return found

    # --- the log ----------------------------------------------------------------------------------------------

    async def append(self, id: int, events: Sequence[Event]) -> list[Appended]:
        """Events that are durable when this returns."""
        done: Future[list[Appended]] = Future()
        self.writer.submit(id, events, partial(settle, done))
        return await asyncio.wrap_future(done)


def _taken(event: Event, appended: Appended) -> tuple[str, bool] | Exception:
    if appended.earlier is not None and appended.earlier.digest != event.digest:
        said = f"expected the same message under feedback_id {event.key!r:.100}, got another one; give it a new id"
        return Refused(409, said, field="feedback_id")
    return str(event.key), appended.earlier is not None


def _again(earlier: Row, ask: Ask, span: Span) -> dict[str, Any]:
    """The answer that was given before under the same request id."""
    if earlier.digest != ask.digest:
        said = f"expected the same request under request_id {ask.body.request_id!r:.100}, got another one"
        raise Refused(409, f"{said}; give a new request a new id", field="request_id")
    if earlier.payload is None:
        raise Refused(410, "expected a decision that is kept, but its user was erased", field="request_id")
    return answer_of(decode(earlier.payload), span)


def settle(future: "Future[Any]", result: Any) -> None:
    """Give a waiting caller its result, where it still waits."""
    with contextlib.suppress(InvalidStateError):
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)


async def _gathered(futures: Sequence["Future[dict[str, Any]]"]) -> list[dict[str, Any] | Exception]:
    found = await asyncio.gather(*(asyncio.wrap_future(each) for each in futures), return_exceptions=True)
    return [_problem(each) if isinstance(each, BaseException) else each for each in found]


def _problem(error: BaseException) -> Exception:
    if not isinstance(error, Exception):
        raise error
    if not isinstance(error, NeuclustError):
        LOG.error("unexpected error", exc_info=error)
    return error
