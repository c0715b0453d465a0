"""Readers: copies that serve from many threads, and their choices on the way back to the shop."""

from __future__ import annotations

import contextlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_shop import Clock, play, small_shop, told

from neuclust.errors import DataError, NeuclustError, StateError
from neuclust.recommender.choices import Choice
from neuclust.recommender.reader import Reader
from neuclust.recommender.recommender import Recommender


def trained(policy: str = "linucb", **options: Any) -> Recommender:
    shop = small_shop(policy, **options)
    play(shop, range(1, 20))
    return shop


def sent(choice: Choice) -> Choice:
    """Through JSON text."""
    return Choice.from_json(json.dumps(choice.to_json(), allow_nan=False))


def ask(reader: Reader, number: int) -> Choice:
    details: dict[str, Any] = {"context": {"hour": number % 24, "device": "xyz"[number % 3]}}
    if number % 3 == 0:
        details["eligible"] = [f"s{i}" for i in range(2, 20)]
    if number % 4 == 0:
        details["at_most"] = {"category": 1}
    return reader.recommend(f"u{number % 12}", request_id=f"q{number}", **details)


SERVING = ["linucb", "auto", "popular", "neuclust", "lin-ts"]


def check_threads(policy: str, count: int) -> None:
    shop = trained(policy, exploration=0.3)
    alone, shared = shop.reader(), shop.reader()
    numbers = range(count)
    expected = {number: told(ask(alone, number)) for number in numbers}
    orders = [np.random.default_rng(thread).permutation(numbers).tolist() for thread in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda order: {number: ask(shared, number) for number in order}, orders))
    for answers in found:
        assert {number: told(choice) for number, choice in answers.items()} == expected
    for number in numbers:  # the same request has one id, whoever asks
        assert len({answers[number].id for answers in found}) == 1


@pytest.mark.parametrize("policy", SERVING[:3])
def test_threads_get_the_slates_that_one_thread_gets(policy: str) -> None:
    check_threads(policy, 30 if policy == "linucb" else 8)


@pytest.mark.soak
@pytest.mark.parametrize("policy", SERVING)
def test_eight_threads_with_two_hundred_requests_each(policy: str) -> None:
    check_threads(policy, 200)


def test_a_reader_answers_as_the_shop_at_that_moment_and_stays_so() -> None:
    shop = trained()
    reader = shop.reader()
    first = reader.recommend("u1", context={"hour": 30.0, "device": "new"}, request_id="a")
    assert told(first) == told(shop.reader().recommend("u1", context={"hour": 30.0, "device": "new"}))
    before = str(reader.features)
    play(shop, range(20, 60))
    shop.add_items([{"sku": "late", "price": 1.0}])
    shop.remove_items(["s0"])
    shop.add_users([{"user": "u1", "age": 99, "segment": "tin"}])
    again = reader.recommend("u1", context={"hour": 30.0, "device": "new"}, request_id="a")
    assert (told(again)[:-1], again.id) == (told(first)[:-1], first.id)  # all but the time
    for hour in range(50):
        reader.recommend("u1", context={"hour": 1_000.0 * hour, "device": f"{hour}"})
    assert str(reader.features) == before


def test_ids_and_draws_of_readers_are_their_own() -> None:
    shop = trained(exploration=1.0)
    readers = [shop.reader() for _ in range(2)]
    choices = [reader.recommend("u1") for reader in readers for _ in range(20)]
    assert len({choice.id for choice in choices}) == 40
    draws = {choice.shown.draw for choice in choices if choice.shown is not None}
    assert len(draws) == 40
    assert max(draws) > 2**40
    assert len({tuple(choice.items) for choice in choices}) > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child is forked")
def test_a_forked_reader_has_ids_of_its_own() -> None:
    reader = trained().reader()
    mine = reader.recommend("u1").id
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, reader.recommend("u1").id.encode())
        os._exit(0)
    os.waitpid(child, 0)
    others = os.read(read, 100).decode()
    assert others.partition("-")[0] != mine.partition("-")[0]
    for end in (read, write):
        os.close(end)


def test_the_same_request_id_with_another_request_is_refused() -> None:
    shop = trained()
    known = shop.recommend("u1", request_id="mine")
    reader = shop.reader()
    assert reader.recommend("u1", request_id="mine") == known
    with pytest.raises(DataError, match="request_id"):
        reader.recommend("u2", request_id="mine")
    reader.recommend("u1", request_id="new")
    with pytest.raises(DataError, match="request_id: expected the same request as before"):
        reader.recommend("u1", request_id="new", k=1)
    many = reader.recommend_many([{"user": "u1", "request_id": "x"}, {"user": "u1", "request_id": "x"}, {"user": "u2"}])
    assert many[0] is many[1]
    with pytest.raises(DataError, match="k: expected"):
        reader.recommend_many([{"user": "u1", "request_id": "y"}, {"k": 99}])
    assert reader.recommend("u5", request_id="y").items  # nothing was remembered of what was refused


def test_a_draft_has_no_reader() -> None:
    with pytest.raises(StateError, match="got a draft"):
        small_shop().reader()


# --- the way back ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["linucb", "auto", "popular"])
def test_accepted_choices_count_as_the_shops_own(policy: str) -> None:
    """A shop that asks a reader of itself for every request, and one that answers itself."""
    own, served = (small_shop(policy, learn_after=0.0) for _ in range(2))
    for shop in (own, served):
        shop.recommend("u1", context={"hour": 1, "device": "x"})
    for number in range(12):
        details: Any = {"context": {"hour": number, "device": "xyz"[number % 3]}, "request_id": number}
        first = own.recommend(f"u{number}", **details)
        second = served.reader().recommend(f"u{number}", **details)
        served.accept(sent(second))
        assert served.ids.last == own.ids.last == number + 2
        assert own.feedback(first.id, {first.items[0]: 1}).status == "learned"
        assert served.feedback(second.id, {second.items[0]: 1}).status == "learned"
    assert served.decisions.counts == own.decisions.counts
    assert served.schema is not None
    assert own.schema is not None
    assert served.schema.to_state()[0] == own.schema.to_state()[0]  # scales saw the same requests


def test_what_is_accepted_is_learned_bit_for_bit() -> None:
    own, served = (small_shop(learn_after=0.0, window=50.0) for _ in range(2))
    for shop in (own, served):
        for _ in range(30):  # until levels and scales are as both will use them
            choice = shop.recommend("u1", context={"hour": 1.0})
            shop.feedback(choice.id, {})
    mine = own.recommend("u2", context={"hour": 1.0}, request_id="r")
    reader = served.reader()
    theirs = sent(reader.recommend("u2", context={"hour": 1.0}, request_id="r"))
    served.accept(theirs)
    for shop, choice in ((own, mine), (served, theirs)):
        shop.feedback(choice.id, {choice.items[0]: 1}, partial=True)
    assert own.learner is not None
    assert served.learner is not None
    expected, found = own.learner.policy.state_dict(), served.learner.policy.state_dict()
    assert all(bool((expected[name] == found[name]).all()) for name in expected)
    assert served.recommend("u2", context={"hour": 1.0}, request_id="r") == theirs


def test_accepting_twice_changes_nothing_open_or_closed() -> None:
    shop = trained()
    choice = shop.reader().recommend("u3", context={"hour": 4.0})
    shop.accept(choice)
    counts, last = shop.decisions.counts, shop.ids.last
    shop.accept(sent(choice))
    assert (shop.decisions.counts, shop.ids.last) == (counts, last)
    assert shop.feedback(choice.id, {choice.items[0]: 1}).status == "learned"
    counts = shop.decisions.counts
    shop.accept(choice)
    assert (shop.decisions.counts, shop.ids.last) == (counts, last)
    own = shop.recommend("u1")
    shop.accept(own)  # its own are known already
    assert shop.ids.last == last + 1


def test_a_choice_of_a_process_that_died_is_accepted_after_loading(tmp_path: Path) -> None:
    shop = trained()
    shop.save(tmp_path / "shop")
    choice = shop.recommend("u3", context={"hour": 4.0})
    other = Recommender.load(tmp_path / "shop", clock=Clock(1_190.0))
    with pytest.raises(DataError, match="unknown decision"):
        other.feedback(choice.id, {})
    other.accept(choice)
    assert other.feedback(choice.id, {choice.items[0]: 1}).status == "learned"


def test_a_reader_of_a_loaded_shop_serves_the_first(tmp_path: Path) -> None:
    """Another process loads the save, answers, and sends its choices to the one that writes."""
    shop = trained("auto")
    shop.save(tmp_path / "shop")
    reader = Recommender.load(tmp_path / "shop", clock=shop.clock).reader()
    choice = sent(reader.recommend("u2", context={"hour": 2.0}))
    shop.accept(choice)
    assert shop.feedback(choice.id, {choice.items[-1]: 1}).status == "learned"


def test_requests_travel_with_their_choices(tmp_path: Path) -> None:
    shop = small_shop(log=tmp_path / "log.jsonl")
    shop.recommend("u1", context={"hour": 1.0})
    context = {"hour": 7.5, "new column": "🛒", "day": date(2026, 2, 3), "tags": ["a", "b"]}
    choice = shop.reader().recommend({"age": 33}, context=context, exclude=["s1"], required=["s2"], k=2)
    shop.accept(sent(choice))
    assert "new column" in str(shop.features)
    event = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()][-1]
    assert (event["event"], event["id"], event["items"]) == ("decision", choice.id, choice.items)
    assert (event["context"]["hour"], event["exclude"], event["k"]) == (7.5, ["s1"], 2)
    assert shop.schema is not None
    assert "mean 3.167" in str(shop.features)  # the running scale of the hour saw 1 twice and 7.5


def test_empty_and_featureless_choices_travel() -> None:
    shop = trained()
    empty = shop.reader().recommend("u1", eligible=[])
    shop.accept(sent(empty))
    assert shop.feedback(empty.id, {}).status == "learned"
    plain = Recommender([{"sku": 1}, {"sku": 2}], "sku", slate_size=1, policy="popular", remember=9)
    plain.recommend()
    choice = sent(plain.reader().recommend())
    plain.accept(choice)
    assert plain.feedback(choice.id, {choice.items[0]: 1}).status == "learned"


def refused(shop: Recommender, choice: Any) -> str:
    """The sentence; nothing changed."""
    counts, last = shop.decisions.counts, shop.ids.last
    with pytest.raises(DataError) as error:
        shop.accept(choice)
    assert (shop.decisions.counts, shop.ids.last) == (counts, last)
    return str(error.value)


def test_choices_of_others_are_refused() -> None:
    shop = trained()
    choice = shop.reader().recommend("u1", context={"hour": 3.0})
    shown = choice.shown
    assert shown is not None
    assert "expected a Choice" in refused(shop, choice.to_json())
    assert "without rows" in refused(shop, replace(choice, shown=None))
    assert "still a draft" in refused(small_shop(), choice)
    other = replace(shown, version=2)
    assert "version 1 of the features" in refused(shop, replace(choice, shown=other, version=2))
    assert "items of this recommender" in refused(shop, replace(choice, items=["a", "b", "c"]))
    assert "items of this recommender" in refused(shop, replace(choice, items=choice.items[::-1]))
    odd: Any = [[], {}, None]
    assert "items of this recommender" in refused(shop, replace(choice, items=odd))
    assert "user columns" in refused(shop, replace(choice, shown=replace(shown, user=np.zeros(2))))
    assert "item" in refused(shop, replace(choice, shown=replace(shown, items=np.zeros((3, 2)))))
    for t, draw in ((0, 1), (2**63, 1), (1, -1), (1, 2**64)):
        assert "expected" in refused(shop, replace(choice, shown=replace(shown, t=t, draw=draw)))
    assert "NaN" in refused(shop, replace(choice, shown=replace(shown, user=shown.user * np.nan)))
    assert "1e+50" in refused(shop, replace(choice, shown=replace(shown, items=shown.items + 1e300)))
    assert "clock" in refused(shop, replace(choice, time=float("nan")))
    assert "decision id" in refused(shop, replace(choice, id="x" * 300))
    assert choice.request is not None
    assert "request it answers" in refused(shop, replace(choice, request=replace(choice.request, user="u2")))
    wrong = replace(choice.request, context={"hour": "noon"})
    assert "expected a number" in refused(shop, replace(choice, request=wrong))
    small = small_shop(slate_size=2)
    small.recommend("u1", context={"hour": 3.0, "device": "x"})
    assert refused(small, choice)
    shop.accept(choice)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def served() -> tuple[Recommender, dict[str, Any]]:
    shop = trained(exploration=0.5)
    return shop, shop.reader().recommend("u1", context={"hour": 3.0}, request_id="x").to_json()


@settings(max_examples=80)
@given(data=st.data())
def test_hostile_json_is_refused_in_a_sentence(served: tuple[Recommender, dict[str, Any]], data: st.DataObject) -> None:
    shop, original = served
    saved = json.loads(json.dumps(original))
    group = data.draw(st.sampled_from([saved, saved["shown"], saved["request"]]))
    group[data.draw(st.sampled_from(sorted(group)))] = data.draw(JSON)
    saved["id"] = saved["id"] if saved["id"] != original["id"] else f"again-{shop.ids.last}"
    accepted = None
    with contextlib.suppress(NeuclustError):
        accepted = Choice.from_json(saved)
        shop.accept(accepted)
        shop.feedback(accepted.id, {})
    shop.expire()  # what is accepted can be learned


def test_every_entry_of_a_choice_travels() -> None:
    choice = trained().reader().recommend("u1", request_id=3)
    assert set(choice.to_json()) == {each.name for each in fields(Choice)}
    assert sent(choice) == choice


@settings(max_examples=30)
@given(text=st.text() | st.binary(max_size=20))
def test_other_text_is_no_choice(text: str | bytes) -> None:
    with pytest.raises(DataError, match="choice: expected"):
        Choice.from_json(text)
