"""What is erased is nowhere in the database afterwards, and the log still replays; old events are dropped."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from simulated_service import Service, begun, stored, visits

from neuclust.serve import events
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.recovery import followed
from neuclust.serve.fold.replay import replay
from neuclust.serve.learner.lease import Lease
from neuclust.serve.learner.loop import Loop
from neuclust.serve.learner.publishing import DAY, Pace
from neuclust.serve.store.contract import Head, Store

QUICK = Pace(publish=0.0, share=0.0, state=0.0, progress=0.0, summary=0.0, heartbeat=60.0)
SECRETS = ("zoe-the-user", "zoe-request", "zoe-street", "zoe-page")
SQLITE = pytest.mark.parametrize("store_address", ["sqlite"], indirect=True)


def drained(loop: Loop) -> None:
    for _ in range(1_000):
        if loop.turn() > 0.0:
            return
    raise AssertionError("the learner did not come to an end")


def head_of(store: Store) -> Head:
    (head,) = store.heads()
    return head


def found(address: str, store: Store) -> set[str]:
    """The secrets that are in any row of the database, in what its blobs hold, and in the files of SQLite."""
    texts = [_dump(address)]
    head = head_of(store)
    for version in store.versions(head.id):
        if version.state:
            texts.append(_opened(store.state(head.id, version.version)))
        if version.model:
            texts.append(_opened(store.model(head.id, version.version)))
    return {secret for secret in SECRETS if any(secret.encode() in text for text in texts)}


def _opened(blob: bytes | None) -> bytes:
    """A blob's content: searching compressed bytes would find nothing."""
    import zlib

    assert blob is not None
    return zlib.decompress(blob[9 + 32 :])


def _dump(address: str) -> bytes:
    kind, _, rest = address.partition(":")
    if kind == "sqlite":
        return b"".join(file.read_bytes() for file in Path(rest).parent.glob(f"{Path(rest).name}*"))
    with psycopg.connect(address) as connection:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))"
        tables = [name for (name,) in connection.execute(query).fetchall()]
        rows = [connection.execute(f'SELECT * FROM "{name}"'.encode()).fetchall() for name in tables]
    return b"\n".join(_cell(cell) for table in rows for row in table for cell in row)


def _cell(cell: object) -> bytes:
    return bytes(cell) if isinstance(cell, bytes | memoryview) else repr(cell).encode()


def zoe(service: Service) -> None:
    """A user whose every trace can be searched for."""
    service.write(events.users_events({"zoe-the-user": {"age": 33, "street": "zoe-street"}}))
    context = {"hour": 3.0, "note": "zoe-page"}
    choice = service.decide("zoe-the-user", "z1", context=context)
    service.hear(choice, {str(choice.items[0]): 1.0}, "zf1")
    service.decide("zoe-the-user", "z2", context=context)  # stays open
    asked = events.Asked("zoe-request", b"digest")
    shown = replace(service.made[-1], id="z3")
    service.write([events.decision_event(shown, asked, arm="live", version=None, expires_at=2e9)])


def test_nothing_of_an_erased_user_is_left(store: Store, store_address: str) -> None:
    """Fails when a user's id, request or features are found in the database after an erasure, or replay is broken."""
    service = stored(store)
    visits(service, 6)
    loop = Loop(store, Lease(store), QUICK)
    zoe(service)
    drained(loop)
    assert found(store_address, store) == set(SECRETS)  # the search finds what is there
    before = loop.followers[head_of(store).id].fold.lessons
    (erasure,) = service.write([events.erasure_event("e1", "zoe-the-user")])
    visits(service, 3, seed=5)
    drained(loop)
    assert found(store_address, store) == set()
    head = head_of(store)
    assert head.base == erasure.seq  # what came after it can still be replayed
    (result,) = replay(store)
    assert result.since == "since the erasure"
    assert result.same, result
    assert result.compared >= 2
    assert loop.followers[head.id].fold.lessons >= before  # what was learned stays
    assert "zoe-the-user" not in followed(store, head).stock.users.ids()
    loop.finish()


def test_open_decisions_of_an_erased_user_are_not_learned(store: Store) -> None:
    """Fails when a decision that was open at an erasure is learned later, or feedback for it is not refused."""
    service = stored(store)
    zoe(service)
    service.write([events.erasure_event("e1", "zoe-the-user")])
    row = service.hear("z2", {"s1": 1.0}, "late")
    fold = Fold.begin()
    told = {each.seq: fold.apply(each) for each in store.read(head_of(store).id, 0, 1_000)}
    answer = told[row.seq]
    assert answer is not None
    assert answer["status"] == "refused"
    assert fold.shop.decisions.counts.open == 0
    assert fold.lessons == 1


def test_an_erasure_that_was_interrupted_is_finished(store: Store, store_address: str) -> None:
    """Fails when a learner that ended between its state and the deletion leaves the user in the database."""
    service = stored(store)
    zoe(service)
    service.write([events.erasure_event("e1", "zoe-the-user")])
    loop = Loop(store, Lease(store), QUICK)
    token, head = loop.lease.taken(), head_of(store)
    assert token is not None
    fold = Fold.begin()
    for row in store.read(head.id, 0, 1_000):
        fold.apply(row)
    from neuclust.serve.learner.publishing import Publisher

    Publisher(store, head.id, QUICK).publish(fold, token, with_state=True)  # and then it is killed
    assert found(store_address, store)
    drained(loop)
    assert found(store_address, store) == set()
    loop.finish()


def test_a_level_that_others_have_stays() -> None:
    """Fails when an erasure takes a level along that another user has, or leaves one behind when its last user goes."""
    service, log = begun(features={"context": {"page": "category"}})
    for user in ("u1", "u2", "u3"):
        service.decide(user, f"d-{user}", context={"page": f"of {user}" if user == "u3" else "shared"})
    fold = Fold.begin()
    for row in log.rows:
        fold.apply(row)
    assert _levels(fold)[:2] == ("shared", "of u3")
    encoded = _encoded(fold, "shared")
    for user, left in (("u3", ("shared", "(erased 1)")), ("u1", ("shared", "(erased 1)"))):
        fold.apply(log.append([events.erasure_event(f"e-{user}", user)])[0])
        assert _levels(fold)[:2] == left
    assert _encoded(fold, "shared") == encoded
    fold.apply(log.append([events.erasure_event("e-u2", "u2")])[0])
    assert _levels(fold)[:2] == ("(erased 2)", "(erased 1)")
    assert "shared" not in str(fold.shop.schema and fold.shop.schema.to_state()[0])
    assert Fold.from_state(fold.state()).state() == fold.state()


def _levels(fold: Fold) -> tuple[str, ...]:
    assert fold.shop.schema is not None
    return fold.shop.schema.user.levels("page") or ()


def _encoded(fold: Fold, page: str) -> list[float]:
    assert fold.shop.schema is not None
    return [float(number) for number in fold.shop.schema.user.encode_row({"page": page})[0]]


@SQLITE
def test_old_events_are_dropped_up_to_a_state(store: Store) -> None:
    """Fails when events older than the days of retention stay, newer ones go, or the log no longer replays."""
    days = 1.5 / DAY  # one and a half seconds
    service = stored(store, retention_days=days)
    loop = Loop(store, Lease(store), QUICK)
    visits(service, 5)
    drained(loop)
    head, first = head_of(store), head_of(store).seq
    time.sleep(1.6)
    visits(service, 5, seed=1)
    drained(loop)
    head = head_of(store)
    assert head.base == first
    rows = store.read(head.id, 0, 1_000)
    assert [row.seq for row in rows] == list(range(first + 1, head.seq + 1))
    (result,) = replay(store)
    assert result.since == "since older events were deleted"
    assert result.same, result
    assert result.seq == head.seq
    assert followed(store, head).stock.catalogue.ids() == service.tables.stock.catalogue.ids()
    loop.finish()
