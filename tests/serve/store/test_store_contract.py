"""What a store promises, held by both kinds."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from stores import decision, version

from neuclust.errors import DataError, StateError
from neuclust.serve.store.chain import START, verify_chain
from neuclust.serve.store.contract import (
    CONFIG,
    DECISION,
    FEEDBACK,
    FREEZE,
    ITEMS,
    TABLE_KINDS,
    Event,
    Exists,
    Fenced,
    Key,
    Progress,
    Store,
)
from neuclust.serve.store.opening import open_store

# --- recommenders ---------------------------------------------------------------------------------------------


def test_a_recommender_begins_with_its_configuration(store: Store) -> None:
    """Fails when a new recommender has no CONFIG event, another head than its log, or a name can be taken twice."""
    head = store.create("shop", b'{"slate_size":3}')
    assert store.head("shop") == head
    assert (head.seq, head.tables, head.frozen, head.promoted, head.base) == (1, 1, 0, None, 0)
    (row,) = store.read(head.id, 0, 10)
    assert (row.kind, row.payload, row.before, row.hash, row.time) == (
        CONFIG, b'{"slate_size":3}', START, head.hash, head.time,
    )  # fmt: skip
    with pytest.raises(Exists, match="'shop'"):
        store.create("shop", b"{}")
    assert store.head("other") is None
    other = store.create("other", b"{}")
    assert [each.name for each in store.heads()] == ["shop", "other"]
    assert other.id != head.id


def test_a_deleted_recommender_leaves_nothing(store: Store) -> None:
    """Fails when events, versions or progress outlive their recommender, or its id is given to another."""
    head = store.create("shop", b"{}")
    token = store.lease("learner", 60)
    assert token is not None
    store.append({head.id: [decision(1)]})
    store.publish(head.id, token, version(1, 2), b"model", b"state")
    store.advance(head.id, token, Progress(2, 1, 1.0), {2: b"{}"})
    assert store.delete("shop")
    assert not store.delete("shop")
    assert store.head("shop") is None
    assert store.read(head.id, 0, 10) == []
    assert store.versions(head.id) == []
    assert store.model(head.id, 1) is None
    assert store.progress(head.id) is None
    assert store.told(head.id, 0, 10) == {}
    assert store.append({head.id: [decision(2)]}) == {head.id: []}
    store.publish(head.id, token, version(1, 2), b"model", b"state")
    store.advance(head.id, token, Progress(2, 1, 1.0), {2: b"{}"})
    assert store.create("shop", b"{}").id != head.id


def test_a_version_is_pinned_and_set_free(store: Store) -> None:
    """Fails when promote does not change what the head says."""
    head = store.create("shop", b"{}")
    store.promote(head.id, 3)
    pinned = store.head("shop")
    assert pinned is not None
    assert pinned.promoted == 3
    store.promote(head.id, None)
    assert store.head("shop") == head


# --- the log --------------------------------------------------------------------------------------------------


def test_events_come_back_as_they_were_written(store: Store) -> None:
    """Fails when a field of an event changes, the sequence has a gap, time goes back or the chain breaks."""
    head = store.create("shop", b"{}")
    events = [
        decision(1),
        Event(FEEDBACK, b"", key="", request="", digest=b"", user=""),
        Event(ITEMS, bytes(range(256))),
        Event(FREEZE, b"{}", key="1"),
        decision(2, key="ключ 🔑 ' \" %s ? {}", user="İ", request=None),
    ]
    answers = store.append({head.id: events})[head.id]
    assert [(answer.seq, answer.earlier) for answer in answers] == [(seq, None) for seq in range(2, 7)]
    rows = store.read(head.id, 0, 100)
    for event, row, answer in zip(events, rows[1:], answers, strict=True):
        assert (row.kind, row.payload, row.key, row.request, row.digest, row.user) == (
            event.kind, event.payload, event.key, event.request, event.digest, event.user,
        )  # fmt: skip
        assert row.time == answer.time
    assert list(verify_chain(rows, START, 0)) == rows
    assert [row.time for row in rows] == sorted(row.time for row in rows)
    after = store.head("shop")
    assert after is not None
    assert (after.seq, after.hash, after.time, after.tables, after.frozen) == (6, rows[-1].hash, rows[-1].time, 5, 5)


def test_a_taken_key_or_request_is_answered_with_its_row(store: Store) -> None:
    """Fails when a key or request is appended twice, in one call or in two, or the answer is not the first row."""
    head = store.create("shop", b"{}")
    first = store.append({head.id: [decision(1), decision(1), decision(2, request="r1"), decision(3)]})[head.id]
    assert [answer.seq for answer in first] == [2, 2, 2, 3]
    rows = store.read(head.id, 1, 10)
    assert [answer.earlier for answer in first] == [None, rows[0], rows[0], None]
    again = store.append({head.id: [decision(3, request=None), decision(9, request="r3"), decision(4)]})[head.id]
    assert [(answer.seq, answer.time) for answer in again[:2]] == [(3, rows[1].time)] * 2
    assert [answer.earlier for answer in again] == [rows[1], rows[1], None]
    assert again[2].seq == 4
    # the key alone, and the request alone, in one call
    fresh = [
        decision(20, request=None),
        decision(20, request=None),
        decision(21, key=None),
        decision(22, request="r21"),
    ]
    assert [answer.seq for answer in store.append({head.id: fresh})[head.id]] == [5, 5, 6, 6]
    # another kind or another recommender has keys of its own
    other = store.create("other", b"{}")
    answers = store.append({head.id: [Event(FEEDBACK, b"", key="d1")], other.id: [decision(1)]})
    assert [answers[id][0].earlier for id in (head.id, other.id)] == [None, None]


def test_only_events_without_keys_may_repeat(store: Store) -> None:
    """Fails when events without a key or request are taken for each other."""
    head = store.create("shop", b"{}")
    answers = store.append({head.id: [Event(ITEMS, b"{}")] * 3})[head.id]
    assert [answer.seq for answer in answers] == [2, 3, 4]


def test_reading_keeps_to_its_limits(store: Store) -> None:
    """Fails when `after`, `most`, `kinds` or `until` of a read are not kept to."""
    head = store.create("shop", b"{}")
    store.append({head.id: [decision(1), Event(ITEMS, b"{}"), decision(2), Event(ITEMS, b"{}"), decision(3)]})

    def read(after: int, most: int, kinds: tuple[str, ...] | None = None, until: int | None = None) -> list[int]:
        return [row.seq for row in store.read(head.id, after, most, kinds, until)]

    assert read(0, 100) == [1, 2, 3, 4, 5, 6]
    assert read(2, 2) == [3, 4]
    assert read(2, 100, until=4) == [3, 4]
    assert read(6, 100) == []
    assert read(0, 0) == []
    assert read(0, 100, TABLE_KINDS) == [1, 3, 5]
    assert read(0, 2, TABLE_KINDS) == [1, 3]
    assert read(1, 100, (ITEMS, DECISION), until=5) == [2, 3, 4, 5]
    assert read(0, 100, (FREEZE,)) == []
    assert read(0, 100, ()) == []
    assert store.read(head.id + 1, 0, 100) == []


def test_events_are_found(store: Store) -> None:
    """Fails when an event is not found by its key, its request or as one of the latest of its kind."""
    head = store.create("shop", b"{}")
    store.append({head.id: [decision(number) for number in range(1, 6)]})
    found = store.find(head.id, DECISION, ["d2", "d5", "d9", "d2"])
    assert {key: row.seq for key, row in found.items()} == {"d2": 3, "d5": 6}
    assert store.find(head.id, FEEDBACK, ["d2"]) == {}
    assert store.find(head.id, DECISION, []) == {}
    row = store.find_request(head.id, "r4")
    assert row is not None
    assert row.key == "d4"
    assert store.find_request(head.id, "r9") is None
    assert store.find_request(head.id + 1, "r4") is None
    assert [row.seq for row in store.latest(head.id, DECISION, 2)] == [6, 5]
    assert [row.seq for row in store.latest(head.id, DECISION, 2, before=5)] == [4, 3]
    assert store.latest(head.id, FEEDBACK, 2) == []


def test_events_about_another_are_found(store: Store) -> None:
    """Fails when what tells of an event is not found by its key, or only in another order, or after its erasure."""
    head, other = store.create("shop", b"{}"), store.create("other", b"{}")
    said = [Event(FEEDBACK, b"{}", f"f{at}", user="ann", about=f"d{at % 2}") for at in range(6)]
    store.append({head.id: said, other.id: said[:2]})
    assert [(row.key, row.about) for row in store.find_about(head.id, "d1", 2)] == [("f1", "d1"), ("f3", "d1")]
    assert [row.key for row in store.find_about(head.id, "d0", 10)] == ["f0", "f2", "f4"]
    assert [row.key for row in store.find_about(other.id, "d0", 10)] == ["f0"]
    assert store.find_about(head.id, "d9", 10) == []
    token = store.lease("learner", 60.0)
    assert token is not None
    store.publish(head.id, token, version(1, 7), b"model", b"state")
    store.erase(head.id, token, "ann", 7)
    assert store.find_about(head.id, "d1", 10) == []


@pytest.mark.parametrize("bad", ["a\0b", "\ud800"])
def test_text_that_no_database_holds_is_refused(store: Store, bad: str) -> None:
    """Fails when a NUL or an unpaired surrogate reaches the database, or anything of the call is written."""
    head = store.create("shop", b"{}")
    for field in ("key", "request", "user", "about"):
        with pytest.raises(DataError, match=field):
            store.append({head.id: [decision(1), decision(2, **{field: bad})]})
    with pytest.raises(DataError, match="kind"):
        store.append({head.id: [Event("other", b"")]})
    assert store.head("shop") == head


def test_many_writers_share_one_sequence(store: Store, store_address: str) -> None:
    """Fails when groups of several threads and stores leave a gap, a double number or a broken chain.

    A reader polls all the while: what it saw must be the log, with nothing that came later in between.
    """
    head = store.create("shop", b"{}")
    other = open_store(store_address)
    seen = store.read(head.id, 0, 10)
    done = threading.Event()

    def write(writer: int) -> None:
        for group in range(6):
            numbers = [1000 * writer + 10 * group + place for place in range(5)]
            (store, other)[writer % 2].append({head.id: [decision(number) for number in (*numbers, 7)]})

    def poll() -> None:
        while not done.is_set():
            seen.extend(other.read(head.id, seen[-1].seq, 7))

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(1, 5)))
    finally:
        done.set()
        reader.join()
    rows = store.read(head.id, 0, 1000)
    assert len(rows) == 1 + 4 * 6 * 5 + 1
    assert seen == rows[: len(seen)]
    assert list(verify_chain(rows, START, 0)) == rows
    other.close()


# --- the learner ----------------------------------------------------------------------------------------------


def test_one_learner_has_the_lease(store: Store) -> None:
    """Fails when two hold the lease at once, it does not end, or a new holder's token is not larger."""
    token = store.lease("one", 60)
    assert token is not None
    assert store.lease("two", 60) is None
    assert store.lease("one", 0) == token
    second = store.lease("two", 60)
    assert second is not None
    assert second > token
    store.release(token)
    assert store.lease("one", 60) is None
    store.release(second)
    third = store.lease("one", 60)
    assert third is not None
    assert third > second


def test_a_fenced_learner_writes_nothing(store: Store) -> None:
    """Fails when a write of a learner with an old token is not refused, or leaves something."""
    head = store.create("shop", b"{}")
    old = store.lease("one", 0)
    assert old is not None
    store.publish(head.id, old, version(1, 1), b"model", b"state")
    new = store.lease("two", 60)
    assert new is not None
    for write in (
        lambda: store.publish(head.id, old, version(2, 1), b"model", None),
        lambda: store.prune(head.id, old, [1], [1]),
        lambda: store.advance(head.id, old, Progress(1, 1, 1.0), {1: b""}),
        lambda: store.erase(head.id, old, "u1", 1),
        lambda: store.retain(head.id, old, 1),
    ):
        with pytest.raises(Fenced, match="another learner"):
            write()
    assert [each.version for each in store.versions(head.id)] == [1]
    assert store.model(head.id, 1) == b"model"
    assert store.progress(head.id) is None
    assert store.head("shop") == head


@pytest.mark.parametrize("size", [0, 1, 256 * 1024, 3_000_000])
def test_a_version_has_its_blobs(store: Store, size: int) -> None:
    """Fails when a model or state of any size is not read back as it was written, or pruning leaves it."""
    head = store.create("shop", b"{}")
    token = store.lease("one", 60)
    assert token is not None
    model, state = bytes(size), b"s" * size
    store.publish(head.id, token, version(1, 1), model, state)
    store.publish(head.id, token, version(2, 1, state=False), b"second", None)
    assert store.versions(head.id) == [version(2, 1, state=False), version(1, 1)]
    assert (store.model(head.id, 1), store.state(head.id, 1)) == (model, state)
    assert (store.model(head.id, 2), store.state(head.id, 2)) == (b"second", None)
    assert store.model(head.id, 3) is None
    with pytest.raises(StateError, match="there already"):
        store.publish(head.id, token, version(2, 1), b"another", None)
    store.prune(head.id, token, [1], [])
    assert (store.model(head.id, 1), store.state(head.id, 1)) == (None, state)
    store.prune(head.id, token, [2], [1, 2])
    assert [(each.model, each.state) for each in store.versions(head.id)] == [(False, False)] * 2


def test_progress_and_what_was_told(store: Store) -> None:
    """Fails when progress is not the last one, or what was told of an event before changes."""
    head = store.create("shop", b"{}")
    token = store.lease("one", 60)
    assert token is not None
    assert store.progress(head.id) is None
    store.advance(head.id, token, Progress(2, 1, 5.0, {"loss": 0.5}), {1: b"one", 2: b"two"})
    store.advance(head.id, token, Progress(4, 3, 6.0, {"loss": 0.25}), {2: b"other", 4: b"four"})
    assert store.progress(head.id) == Progress(4, 3, 6.0, {"loss": 0.25})
    assert store.told(head.id, 0, 10) == {1: b"one", 2: b"two", 4: b"four"}
    assert list(store.told(head.id, 1, 1)) == [2]
    assert store.told_at(head.id, [1, 3, 4]) == {1: b"one", 4: b"four"}
    assert store.told_at(head.id, []) == {}


# --- erasure and retention ------------------------------------------------------------------------------------


def test_an_erased_user_is_gone_and_the_chain_holds(store: Store) -> None:
    """Fails when content of an erased user can be read, others lose some, or the chain no longer verifies."""
    head = store.create("shop", b"{}")
    token = store.lease("one", 60)
    assert token is not None
    store.append({head.id: [decision(number, user="ann" if number % 2 else "bob") for number in range(1, 7)]})
    before = store.read(head.id, 0, 100)
    with pytest.raises(StateError, match="state of event 5"):
        store.erase(head.id, token, "ann", 5)
    store.publish(head.id, token, version(1, 3), b"old", b"old state")
    store.promote(head.id, 1)
    store.publish(head.id, token, version(2, 5), b"new", b"new state")
    store.publish(head.id, token, version(3, 6, state=False), b"newest", None)
    store.advance(head.id, token, Progress(6, 1, 1.0), {2: b"ann", 3: b"bob"})
    assert store.erase(head.id, token, "ann", 5) == 2
    rows = store.read(head.id, 0, 100)
    for row, earlier in zip(rows, before, strict=True):
        erased = earlier.user == "ann" and earlier.seq <= 5
        assert (row.payload, row.user, row.request, row.digest) == (
            (None,) * 4 if erased else (earlier.payload, earlier.user, earlier.request, earlier.digest)
        )
        assert (row.seq, row.key, row.hash, row.content) == (earlier.seq, earlier.key, earlier.hash, earlier.content)
    assert list(verify_chain(rows, START, 0)) == rows
    assert store.told(head.id, 0, 10) == {3: b"bob"}
    assert [(each.version, each.model, each.state) for each in store.versions(head.id)] == [
        (3, True, False), (2, True, True), (1, False, False),
    ]  # fmt: skip
    after = store.head("shop")
    assert after is not None
    assert (after.base, after.base_hash, after.promoted) == (5, rows[4].hash, None)
    answers = store.append({head.id: [decision(1, user="ann"), decision(8, request="r1")]})[head.id]
    assert [answer.seq for answer in answers] == [2, 8]  # the key is still taken, the request id is forgotten
    assert store.erase(head.id, token, "nobody", 5) == 0


def test_retention_drops_the_beginning(store: Store) -> None:
    """Fails when events up to the base stay, later ones go, or the rest does not follow the base's hash."""
    head = store.create("shop", b"{}")
    token = store.lease("one", 60)
    assert token is not None
    store.append({head.id: [decision(number) for number in range(1, 7)]})
    before = store.read(head.id, 0, 100)
    with pytest.raises(StateError, match="event 4"):
        store.retain(head.id, token, 4)
    store.publish(head.id, token, version(1, 4), b"model", b"state")
    store.advance(head.id, token, Progress(6, 1, 1.0), {4: b"four", 5: b"five"})
    assert store.retain(head.id, token, 4) == 4
    assert store.retain(head.id, token, 4) == 0
    after = store.head("shop")
    assert after is not None
    assert (after.base, after.base_hash, after.seq) == (4, before[3].hash, 7)
    assert store.read(head.id, 0, 100) == store.read(head.id, 4, 100) == before[4:]
    assert list(verify_chain(before[4:], after.base_hash, after.base)) == before[4:]
    assert store.told(head.id, 0, 10) == {5: b"five"}
    assert store.append({head.id: [decision(9)]})[head.id][0].seq == 8


# --- keys -----------------------------------------------------------------------------------------------------


def test_keys_are_kept_until_they_are_revoked(store: Store) -> None:
    """Fails when a key loses a field, an id is taken twice or a revoked key stays."""
    one = Key("one", b"1" * 32, ("recommend", "feedback"), "shop", 1.0, "the shop")
    two = Key("two", b"2" * 32, ("admin",), None, 2.0)
    store.add_key(one)
    store.add_key(two)
    with pytest.raises(Exists, match="'one'"):
        store.add_key(one)
    assert store.keys() == [one, two]
    assert store.revoke_key("one")
    assert not store.revoke_key("one")
    assert store.keys() == [two]


def test_all_is_there_after_it_was_opened_again(store: Store, store_address: str) -> None:
    """Fails when something lives in memory alone, or the two kinds differ in what they say of themselves."""
    head = store.create("shop", b"{}")
    store.append({head.id: [decision(1)]})
    rows = store.read(head.id, 0, 10)
    store.check()
    again = open_store(store_address)
    assert again.read(head.id, 0, 10) == rows
    assert again.shared == store_address.startswith("postgresql")
    assert "a-secret" not in again.address
    again.close()
