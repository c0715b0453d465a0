"""A new version from the log: late columns are learned, nothing that was learned is lost, and errors change nothing."""

import contextlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust import Category, Features, Number, Recommender
from neuclust.errors import ConfigError, DataError, LogWarning, StateError
from neuclust.randomness import stream
from neuclust.recommender.log.history import read_history

ITEMS: list[dict[str, Any]] = [{"sku": f"s{at}", "price": float(at % 5), "kind": "ab"[at % 2]} for at in range(12)]
USERS: list[dict[str, Any]] = [{"user": f"u{at}", "segment": "xy"[at % 2]} for at in range(8)]
FIXED = Features(
    items={"price": Number(0, 10), "kind": Category(["a", "b"])}, users={"segment": Category(["x", "y"])}
)  # encodes the same whatever was seen


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(path: Path | None, **options: Any) -> Recommender:
    chosen = {"policy": "linucb", "slate_size": 3, "clock": Clock(), **options}
    return Recommender(ITEMS, "sku", users=USERS, user_id="user", log=path, **chosen)


def play(shop: Recommender, count: int, seed: int = 0) -> None:
    """Requests of users, with clicks that their segment and the item's kind decide."""
    draws = stream(seed, "refit")
    for at in range(count):
        user = f"u{int(draws.integers(8))}"
        wanted = "ab"[int(user[1:]) % 2]
        choice = shop.recommend(user)
        kinds = {row["sku"]: row["kind"] for row in ITEMS}
        clicks = {item: 1 for item in choice.items if kinds.get(str(item)) == wanted}
        if at % 5:
            shop.feedback(choice.id, clicks)
        else:
            shop.feedback(choice.id, clicks, shown=2 if not set(choice.items[2:]) & clicks.keys() else 3)


def beliefs(shop: Recommender) -> Any:
    """What the policy expects of every item for two users."""
    found = []
    for user in ("u0", "u1"):
        row: dict[Any, float] = {}
        for at in range(0, len(ITEMS), 3):
            choice = shop.recommend(user, eligible=[each["sku"] for each in ITEMS[at : at + 3]])
            row |= dict(zip(choice.items, choice.means, strict=True))
        found.append([row.get(each["sku"], math.nan) for each in ITEMS])
    return np.array(found)


def test_a_refit_of_the_same_columns_learns_the_same(tmp_path: Path) -> None:
    shop = make(tmp_path / "log", features=FIXED)
    play(shop, 40)
    before = beliefs(shop)
    table = shop.refit()
    assert shop.schema is not None
    assert shop.schema.version == 2
    assert "price" in str(table)
    np.testing.assert_allclose(beliefs(shop), before, rtol=1e-9, atol=1e-12)
    assert np.nanstd(before) > 0.1


def test_what_is_learned_are_the_values_of_the_time(tmp_path: Path) -> None:
    shop = make(tmp_path / "log", features=FIXED)
    play(shop, 15)
    shop.add_items([{**row, "kind": "ab"[row["kind"] == "a"], "price": 9.0} for row in ITEMS[:6]])
    shop.add_users([{"user": "u0", "segment": "y"}])
    shop.remove_items(["s11"])
    play(shop, 15, seed=1)
    before = beliefs(shop)
    shop.refit()
    np.testing.assert_allclose(beliefs(shop), before, rtol=1e-9, atol=1e-12)
    assert "s11" not in shop.recommend("u0").items


def expected_clicks(shop: Recommender, mood: str) -> dict[Any, float]:
    """By kind, for a user who is not among those that taught it."""
    choice = shop.recommend({"segment": "x"}, context={"mood": mood}, eligible=["s0", "s1"], k=2)
    return dict(sorted(zip(choice.items, choice.means, strict=True)))


def test_a_context_column_that_came_late_is_learned_after_a_refit(tmp_path: Path) -> None:
    shop = make(tmp_path / "log", exploration=0.5)
    shop.recommend("u0")  # freezes the schema
    kinds = {row["sku"]: row["kind"] for row in ITEMS}
    for at in range(120):
        choice = shop.recommend(f"u{(at // 2) % 8}", context={"mood": ("calm", "wild")[at % 2]})
        shop.feedback(choice.id, {item: 1 for item in choice.items if kinds[str(item)] == "ab"[at % 2]})
    assert "context mood" in str(shop.features)
    assert shop.stock.unlearned["context"] == {"mood"}
    assert expected_clicks(shop, "calm") == expected_clicks(shop, "wild")
    table = shop.refit()
    assert "not learned" not in str(table)
    assert shop.stock.unlearned["context"] == set()
    calm, wild = expected_clicks(shop, "calm"), expected_clicks(shop, "wild")
    assert calm["s0"] > calm["s1"] + 0.05
    assert wild["s1"] > wild["s0"] + 0.05
    shop.refit(Features(cross=[("context.mood", "kind")]))
    calm, wild = expected_clicks(shop, "calm"), expected_clicks(shop, "wild")
    assert calm["s0"] > 0.7 > 0.3 > calm["s1"]
    assert wild["s1"] > 0.7 > 0.3 > wild["s0"]


def test_item_columns_and_levels_that_came_late_are_learned(tmp_path: Path) -> None:
    shop = make(tmp_path / "log")
    play(shop, 5)
    shop.add_items([{"sku": "new", "price": 2.0, "kind": "c", "stars": 4.5, "tags": ["x", "y"]}])
    shop.add_items([{"sku": "newer", "price": 2.0, "kind": "c", "stars": 1.5, "tags": ["z"]}])
    shop.add_users([{"user": "u9", "segment": "z", "age": 40}, {"user": "u10", "segment": "z", "age": 20}])
    play(shop, 3, seed=2)
    assert {"stars", "tags"} <= shop.stock.unlearned["items"]
    shop.refit()
    assert shop.schema is not None
    assert {"stars", "tags"} <= set(shop.schema.items.names)
    assert "age" in shop.schema.user.names
    assert shop.schema.items.levels("kind") == ("a", "b", "c")
    assert shop.recommend("u9", eligible=["new", "newer"]).version == 2


def test_columns_of_mixed_types_that_came_late_do_not_stop_a_refit(tmp_path: Path) -> None:
    shop = make(tmp_path / "log")
    shop.recommend("u0")
    for at, value in enumerate([3, "sad", None, 3.5, True]):
        choice = shop.recommend("u1", context={"late": value, "never": None})
        shop.add_items([{**ITEMS[0], "odd": value}])
        shop.feedback(choice.id, {choice.items[0]: at % 2})
    shop.refit()
    assert shop.schema is not None
    assert "late" in shop.schema.user.names
    choice = shop.recommend("u1", context={"late": "sad"})
    assert shop.feedback(choice.id, {}).status == "learned"


def test_very_many_columns_of_requests_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuclust.recommender.log.refit.MOST_COLUMNS", 3)
    shop = make(tmp_path / "log")
    for at in range(6):
        choice = shop.recommend("u0", context={f"column {at}": at, "often": at % 3})
        shop.feedback(choice.id, {})
    with pytest.warns(LogWarning, match="the 3 most frequent of 7 columns"):
        shop.refit()
    assert shop.schema is not None
    assert {"often", "column 0", "column 1"} == shop.schema.user.context


requests = st.tuples(st.just("recommend"), st.integers(0, 9), st.sampled_from([None, "x", "z", 3]))
words = st.tuples(st.sampled_from(["click", "part", "show"]), st.integers(0, 3), st.integers(0, 2))
changes = st.sampled_from(["change", "remove", "user", "expire", "refit"])
steps = st.lists(requests | words | st.tuples(changes, st.integers(0, 11), st.integers(0, 9)), min_size=5, max_size=20)


@settings(max_examples=15, deadline=None)
@given(steps)
def test_whatever_happened_a_refit_learns_it_again(tmp_path_factory: Any, done: list[Any]) -> None:
    clock = Clock()
    path = tmp_path_factory.mktemp("refit") / "log"
    shop = make(path, features=FIXED, window=50.0, learn_after=20.0, clock=clock, combine="last")
    for kind, at, value in done:
        clock.now += 3.0
        waiting = [each for each in shop.decisions.open_decisions() if clock.now < each.time + 50.0]  # none is late
        decision = waiting[at % len(waiting)] if waiting else None
        if kind == "recommend":
            said: Any = {} if value is None else {"user_features": {"segment": value}}
            shop.recommend(f"u{at}", **said)
        elif kind in ("click", "part", "show") and decision is not None and decision.items:
            clicks = {decision.items[min(value, len(decision.items) - 1)]: 1}
            with contextlib.suppress(DataError):  # items that were not shown by an earlier word
                early = clock.now < decision.time + 20.0  # what was learned as seen cannot be unlearned, but by a refit
                seen = list(clicks) if kind == "show" and early else None
                shop.feedback(decision.id, clicks, partial=kind != "click", shown=seen)
        elif kind == "change":
            shop.add_items([{"sku": f"s{at}", "price": float(value), "kind": "abc"[value % 3]}])
        elif kind == "remove" and f"s{at}" in shop.stock.catalogue.ids() and len(shop.stock.catalogue) > 1:
            shop.remove_items([f"s{at}"])
        elif kind == "user":
            shop.add_users([{"user": f"u{at}", "segment": "xyz"[value % 3]}])
        elif kind == "expire":
            shop.expire(older_than=float(at))
        elif kind == "refit":
            shop.refit()
    shop.add_items(ITEMS)
    before, counts = beliefs(shop), shop.decisions.counts
    shop.refit()
    assert shop.decisions.counts.learned == len(read_history(path).learned)
    assert shop.decisions.counts.open == counts.open
    np.testing.assert_allclose(beliefs(shop), before, rtol=1e-7, atol=1e-10)
    shop.log.close()


def test_declared_features_are_replaced(tmp_path: Path) -> None:
    shop = make(tmp_path / "log")
    play(shop, 5)
    shop.refit(Features(items={"price": "ignore"}, cross=[("segment", "kind")]))
    assert shop.schema is not None
    assert shop.schema.items.names == ("kind",)
    assert shop.settings.features.cross == (("segment", "kind"),)
    shop.refit()
    assert shop.schema.items.names == ("kind",)
    assert shop.schema.version == 3


def test_a_draft_stays_a_draft(tmp_path: Path) -> None:
    shop = make(tmp_path / "log")
    assert "ignored" in str(shop.refit(Features(items={"price": "ignore"})))
    assert shop.schema is None
    assert shop.recommend("u0").version == 1


# --- open and late decisions ----------------------------------------------------------------------------------


def test_open_decisions_stay_open_and_are_encoded_anew(tmp_path: Path) -> None:
    shop = make(tmp_path / "log", features=FIXED, window=100.0)
    play(shop, 10)
    waiting = shop.recommend("u3")
    partial = shop.recommend("u4")
    empty = shop.recommend("u4", eligible=[])
    shop.feedback(partial.id, {partial.items[0]: 1}, partial=True)
    shop.refit(Features(items={"price": Number(0, 10)}, cross=[("segment", "kind")]))
    assert shop.decisions.counts.open == 3
    open_ones = {decision.id: decision for decision in shop.decisions.open_decisions()}
    assert shop.schema is not None
    assert {decision.revision for decision in open_ones.values()} == {2}
    assert open_ones[waiting.id].payload.items.shape == (3, shop.schema.items.width)
    assert shop.feedback(waiting.id, {waiting.items[1]: 1}).status == "learned"
    assert shop.feedback(partial.id, {}).status == "learned"
    assert shop.feedback(empty.id, {}).status == "learned"
    rewards: list[Any] = [past.rewards for past in read_history(tmp_path / "log").learned[-2:]]
    np.testing.assert_array_equal(rewards, [[0, 1, 0], [1, 0, 0]])


def test_a_decision_that_was_learned_early_is_revised_after_a_refit(tmp_path: Path) -> None:
    clock = Clock()
    pair = [
        make(tmp_path / name, features=FIXED, window=100.0, learn_after=5.0, clock=clock) for name in ("one", "two")
    ]
    for shop in pair:
        clock.now = 0.0
        choice = shop.recommend("u3")
        clock.now = 10.0
        shop.expire(older_than=50)
        assert shop.decisions.counts.learned == 1
        if shop is pair[1]:
            shop.refit()
        shop.feedback(choice.id, {choice.items[0]: 1})
        assert shop.decisions.counts.revised == 1
        assert shop.decisions.counts.late == 0
    np.testing.assert_allclose(beliefs(pair[0]), beliefs(pair[1]), rtol=1e-9)


def test_values_that_came_after_closing_are_learned_by_a_refit(tmp_path: Path) -> None:
    clock = Clock()
    shop = make(tmp_path / "log", policy="popular", window=10.0, clock=clock, reward_range=(0, 4))
    choice = shop.recommend("u0")
    clock.now = 20.0
    assert shop.feedback(choice.id, {choice.items[1]: 4}, partial=True).status == "late"
    before = dict(zip(choice.items, shop.recommend("u0", eligible=choice.items).means, strict=True))
    shop.refit()
    (past,) = read_history(tmp_path / "log").learned
    rewards, slate = past.lesson(shop.settings.feedback, shop.settings.reward)
    assert rewards.tolist() == [0.0, 1.0, 0.0]
    assert slate == pytest.approx(1 / 3)
    again = shop.recommend("u0", eligible=choice.items)
    assert again.items[0] == choice.items[1]
    assert again.means[0] > max(before.values())


# --- logs of other runs ---------------------------------------------------------------------------------------


def test_a_new_recommender_learns_what_an_earlier_one_logged(tmp_path: Path) -> None:
    path = tmp_path / "log"
    older = make(path, features=FIXED)
    older.add_items([{"sku": "only-then", "price": 1.0, "kind": "a"}])
    play(older, 30)
    before = beliefs(older)
    newer = make(path, features=FIXED)
    newer.refit()
    np.testing.assert_allclose(beliefs(newer), before, rtol=1e-9, atol=1e-12)
    assert "only-then" not in newer.stock.catalogue.ids()
    play(newer, 5)
    newer.refit()
    assert len(read_history(path).learned) == 35


def test_a_log_that_began_later_says_what_is_forgotten(tmp_path: Path) -> None:
    shop = make(None)
    play(shop, 5)
    open_one = shop.recommend("u0")
    shop.log = type(shop.log).opened(tmp_path / "log")
    shop.log.started(shop)
    with pytest.raises(StateError, match="1 that were made before it began"):
        shop.refit()
    shop.feedback(open_one.id, {})
    play(shop, 2)
    with pytest.warns(LogWarning, match="has 2 of the 8 decisions"):
        shop.refit()


# --- refusals -------------------------------------------------------------------------------------------------


def test_without_a_log_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a log to learn from, got none"):
        make(None).refit()


@pytest.mark.parametrize(
    "features",
    [
        "price",
        Features(items={"prize": "number"}),
        Features(items={"kind": "number"}),
        Features(cross=[("segment", "colour")]),
        Features(users={"segment": "vector"}),
    ],
)
def test_what_is_refused_changes_nothing(tmp_path: Path, features: Any) -> None:
    shop = make(tmp_path / "log")
    play(shop, 5)
    choice = shop.recommend("u0")
    parts = (shop.schema, shop.learner, shop.stock, shop.settings, shop.stock.settings)
    counts, size = shop.decisions.counts, (tmp_path / "log").stat().st_size
    with pytest.raises((ConfigError, DataError)):
        shop.refit(features)
    after = (shop.schema, shop.learner, shop.stock, shop.settings, shop.stock.settings)
    assert all(new is old for new, old in zip(after, parts, strict=True))
    assert (shop.decisions.counts, (tmp_path / "log").stat().st_size) == (counts, size)
    assert shop.feedback(choice.id, {}).status == "learned"


def test_a_recommender_without_items_is_refused(tmp_path: Path) -> None:
    shop = make(tmp_path / "log")
    play(shop, 2)
    shop.remove_items(shop.stock.catalogue.ids())
    with pytest.raises(StateError, match="expected items"):
        shop.refit()


@pytest.mark.parametrize("policy", ["auto", "epsilon-greedy", "popular"])
def test_other_policies_are_refitted(tmp_path: Path, policy: str) -> None:
    shop = make(tmp_path / "log", policy=policy, exploration=0.2)
    play(shop, 6)
    shop.refit()
    play(shop, 2)
    assert shop.decisions.counts.learned == 8
    assert len(read_history(tmp_path / "log").learned) == 8
