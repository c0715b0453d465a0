"""Any sequence of calls leaves a store as a plain model in memory says."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from stores import KINDS_OF_STORES, new_address, version

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
    Progress,
)
from neuclust.serve.store.opening import open_store

NAMES = st.sampled_from(["a", "b"])
FEW = st.none() | st.sampled_from(["1", "2", "3", "4"])
EVENTS = st.builds(
    Event,
    kind=st.sampled_from([ITEMS, DECISION, FEEDBACK, FREEZE]),
    payload=st.binary(max_size=4),
    key=FEW,
    request=FEW,
    digest=st.none() | st.binary(max_size=2),
    user=FEW,
)


@dataclass
class Plain:
    """A recommender in memory: its events (None: dropped), versions, progress, base."""

    id: int
    events: list[Event | None]
    kinds: list[str] = field(default_factory=lambda: [CONFIG])
    erased: set[int] = field(default_factory=set)
    blobs: dict[int, tuple[int, bytes | None, bytes | None]] = field(default_factory=dict)  # seq, model, state
    told: dict[int, bytes] = field(default_factory=dict)
    progress: Progress | None = None
    base: int = 0

    def holder(self, event: Event) -> int | None:
        """The seq of the event that has its key, or else its request."""
        for number, each in enumerate(self.events, 1):
            if each is not None and event.key is not None and (each.kind, each.key) == (event.kind, event.key):
                return number
        for number, each in enumerate(self.events, 1):
            if each is not None and event.request is not None and each.request == event.request:
                return number
        return None

    def states(self) -> list[tuple[int, int]]:
        """Versions that have a state, with their seq."""
        return [(number, seq) for number, (seq, _, state) in self.blobs.items() if state is not None]

    def last(self, kinds: tuple[str, ...]) -> int:
        return max((n for n, each in enumerate(self.kinds, 1) if each in kinds), default=0)


class StoreMachine(RuleBasedStateMachine):
    """A store beside its model."""

    kind = "sqlite"

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.address = new_address(self.kind, Path(self.folder.name))
        self.store = open_store(self.address)
        self.plain: dict[str, Plain] = {}
        token = self.store.lease("learner", 1000)
        assert token is not None
        self.token = token

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        if name in self.plain:
            with pytest.raises(Exists):
                self.store.create(name, b"{}")
        else:
            self.plain[name] = Plain(self.store.create(name, b"{}").id, [Event(CONFIG, b"{}")])

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        assert self.store.delete(name) == (self.plain.pop(name, None) is not None)

    @rule(a=st.lists(EVENTS, max_size=6), b=st.lists(EVENTS, max_size=3))
    def append(self, a: list[Event], b: list[Event]) -> None:
        groups = {plain.id: events for name, events in (("a", a), ("b", b)) if (plain := self.plain.get(name))}
        answers = self.store.append(groups)
        assert answers.keys() == groups.keys()
        for plain in self.plain.values():
            for event, answer in zip(groups[plain.id], answers[plain.id], strict=True):
                holder = plain.holder(event)
                if holder is None:
                    plain.events.append(event)
                    plain.kinds.append(event.kind)
                    assert (answer.seq, answer.earlier) == (len(plain.events), None)
                else:
                    assert answer.seq == holder
                    assert answer.earlier is not None
                    assert answer.earlier.seq == holder

    @rule(name=NAMES, state=st.none() | st.binary(max_size=3), model=st.binary(max_size=3))
    def publish(self, name: str, state: bytes | None, model: bytes) -> None:
        if name in self.plain:
            plain = self.plain[name]
            number, seq = max(plain.blobs, default=0) + 1, len(plain.events)
            listed = replace(version(number, seq), state=state is not None)
            self.store.publish(plain.id, self.token, listed, model, state)
            plain.blobs[number] = (seq, model, state)

    @rule(name=NAMES, content=st.binary(max_size=2))
    def advance(self, name: str, content: bytes) -> None:
        if name in self.plain:
            plain = self.plain[name]
            seq = len(plain.events)
            plain.progress = Progress(seq, seq, 1.0, {"n": seq})
            self.store.advance(plain.id, self.token, plain.progress, {seq: content})
            plain.told.setdefault(seq, content)

    @rule(name=NAMES, user=st.sampled_from(["1", "2"]))
    def erase(self, name: str, user: str) -> None:
        plain = self.plain.get(name)
        states = (
            [(number, seq) for number, (seq, _, state) in plain.blobs.items() if state is not None] if plain else []
        )
        if plain is None or not states:
            return
        newest, until = states[-1]
        hit = [n for n, each in enumerate(plain.events[:until], 1) if each is not None and each.user == user]
        assert self.store.erase(plain.id, self.token, user, until) == len(hit)
        for number in hit:
            each = plain.events[number - 1]
            assert each is not None
            plain.events[number - 1] = replace(each, payload=b"", request=None, digest=None, user=None)
            plain.erased.add(number)
            plain.told.pop(number, None)
        plain.base = max(plain.base, until)
        for number, (seq, _, _) in plain.blobs.items():
            if number < newest:
                plain.blobs[number] = (seq, None, None)

    @rule(name=NAMES)
    def retain(self, name: str) -> None:
        plain = self.plain.get(name)
        if plain is None or not plain.states():
            return
        place = plain.states()[0][1]
        kept = sum(each is not None for each in plain.events[:place])
        assert self.store.retain(plain.id, self.token, place) == kept
        plain.events[:place] = [None] * place
        plain.told = {seq: content for seq, content in plain.told.items() if seq > place}
        plain.base = max(plain.base, place)

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = open_store(self.address)

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "store"):
            assert {head.name for head in self.store.heads()} == set(self.plain)
            for name, plain in self.plain.items():
                self.compare(name, plain)

    def compare(self, name: str, plain: Plain) -> None:
        head = self.store.head(name)
        assert head is not None
        first = plain.events.count(None)
        rows = self.store.read(plain.id, 0, 1000)
        assert [(row.seq, *_fields(row)) for row in rows] == [
            (number, *_fields(each, erased=number in plain.erased))
            for number, each in enumerate(plain.events, 1)
            if each is not None
        ]
        assert list(verify_chain(rows, rows[0].before if first and rows else START, first)) == rows
        assert (head.seq, head.base) == (len(plain.events), plain.base)
        assert (head.tables, head.frozen) == (plain.last(TABLE_KINDS), plain.last((FREEZE,)))
        assert rows == [] or head.hash == rows[-1].hash
        assert self.store.progress(plain.id) == plain.progress
        assert self.store.told(plain.id, 0, 100) == plain.told
        found = {each.version: each for each in self.store.versions(plain.id)}
        for number, (seq, model, state) in plain.blobs.items():
            assert (found[number].seq, found[number].model, found[number].state) == (
                seq, model is not None, state is not None,
            )  # fmt: skip
            assert (self.store.model(plain.id, number), self.store.state(plain.id, number)) == (model, state)


def _fields(each: Any, erased: bool = False) -> tuple[object, ...]:
    payload = None if erased else each.payload
    return each.kind, payload, each.key, each.request, each.digest, each.user


@pytest.mark.parametrize("kind", KINDS_OF_STORES)
def test_a_store_does_what_its_model_does(kind: str) -> None:
    """Fails when some sequence of calls leaves a store in another state than a plain model of it."""
    machine = type("Machine", (StoreMachine,), {"kind": kind})
    examples = 12 if kind == "sqlite" else 4
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=20))


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS_OF_STORES)
def test_long_sequences_of_calls(kind: str) -> None:
    """Fails when some long sequence of calls leaves a store in another state than a plain model of it."""
    machine = type("Machine", (StoreMachine,), {"kind": kind})
    run_state_machine_as_test(machine, settings=settings(max_examples=200, stateful_step_count=60))
