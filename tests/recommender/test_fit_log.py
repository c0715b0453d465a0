"""Warm start from a long table: the same as having played it, and nothing learned where anything is wrong."""

import math
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust import Features, Number, Recommender
from neuclust.errors import ConfigError, DataError, NeuclustError
from neuclust.randomness import stream
from neuclust.recommender.log.history import read_history
from neuclust.recommender.log.warm_start import LogFit

ITEMS: list[dict[str, Any]] = [{"sku": at, "price": float(at), "kind": "ab"[at % 2]} for at in range(8)]
USERS: list[dict[str, Any]] = [{"user": f"u{at}", "segment": "xy"[at % 2]} for at in range(4)]
FIXED = Features(items={"price": Number(0, 10)}, context={"hour": Number(0, 24)})


def make(log: Path | None = None, **options: Any) -> Recommender:
    chosen = {"policy": "linucb", "slate_size": 3, "features": FIXED, "clock": lambda: 5.0, **options}
    return Recommender(ITEMS, "sku", users=USERS, user_id="user", log=log, **chosen)


def logged(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Slates of 1 to 3 items, of known and unknown users; kind a is clicked in the morning, b later."""
    draws = stream(seed, "logged")
    rows = []
    for at in range(count):
        hour = int(draws.integers(24))
        items = draws.choice(8, size=int(draws.integers(1, 4)), replace=False).tolist()
        for slot, item in enumerate(items):
            reward = float(("ab"[item % 2] == "a") == (hour < 12))
            seen = draws.random() < 0.9
            rows.append(
                {"decision": f"d{at}", "user": f"u{at % 6}", "item": item, "slot": slot + 1,
                 "reward": reward if seen else None, "hour": hour}
            )  # fmt: skip
    return rows


def beliefs(shop: Recommender, hour: int = 3) -> Any:
    found: dict[Any, float] = {}
    for start in range(0, 6, 3):
        choice = shop.recommend("u1", eligible=[start, start + 1, start + 2], context={"hour": hour})
        found |= dict(zip(choice.items, choice.means, strict=True))
    return np.array([found[item] for item in sorted(found)])


def test_it_learns_what_playing_the_same_slates_would_have_taught() -> None:
    rows = logged(60)
    warm, played = make(), make()
    report = warm.fit_log(rows, context=["hour"])
    for at in range(60):
        mine = [row for row in rows if row["decision"] == f"d{at}"]
        items = [row["item"] for row in mine]
        choice = played.recommend(mine[0]["user"], eligible=items, k=len(items), context={"hour": mine[0]["hour"]})
        seen = {row["item"]: row["reward"] for row in mine if row["reward"] is not None}
        played.feedback(choice.id, seen, shown=list(seen))
    np.testing.assert_allclose(beliefs(warm), beliefs(played), rtol=1e-6, atol=1e-9)
    assert np.std(beliefs(warm)) > 0.05
    present = [row for row in rows if row["reward"] is not None]
    decisions = len({row["decision"] for row in present})
    assert report == LogFit(decisions, len(present), 0, len(rows) - len(present))


def test_rows_may_stand_anywhere_and_slots_order_them(tmp_path: Path) -> None:
    rows = logged(30)
    order = stream(1, "shuffled").permutation(len(rows)).tolist()
    for row in rows:
        row["at"] = float(row["decision"][1:])
    one, two = make(), make(tmp_path / "log")
    assert one.fit_log(rows, context=["hour"]) == two.fit_log([rows[at] for at in order], context=["hour"], time="at")
    np.testing.assert_allclose(beliefs(one), beliefs(two), rtol=1e-9, atol=1e-12)
    past = {past.time: past for past in read_history(tmp_path / "log").learned}
    assert list(past) == sorted(past)
    for time, each in past.items():
        assert list(each.items) == [row["item"] for row in rows if row["at"] == time]


@pytest.mark.parametrize("kind", ["rows", "columns", "pandas", "polars", "arrow", "csv"])
def test_tables_of_every_kind(tmp_path: Path, kind: str) -> None:
    rows = [row for row in logged(20) if row["reward"] is not None]
    table: Any = rows
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if kind == "columns":
        table = columns
    elif kind == "arrow":
        table = pytest.importorskip("pyarrow").table(columns)
    elif kind != "rows":
        frame = pytest.importorskip("polars" if kind == "polars" else "pandas").DataFrame(columns)
        table = frame
        if kind == "csv":
            table = tmp_path / "log.csv"
            frame.to_csv(table, index=False)
    one, two = make(), make()
    assert one.fit_log(rows, context=["hour"]) == two.fit_log(table, context=["hour"])
    np.testing.assert_allclose(beliefs(one), beliefs(two), rtol=1e-9)


def test_names_can_be_given_and_slot_and_user_may_be_missing(tmp_path: Path) -> None:
    rows = [{"imp": 1, "sku": 3, "click": True, "who": "u1", "pos": 2.5, "when": "2024-05-31"},
            {"imp": 1, "sku": 4, "click": False, "who": "u1", "pos": 0.5, "when": "2024-05-31"},
            {"imp": 0, "sku": 5, "click": None, "who": None, "pos": 1, "when": datetime(2024, 5, 30)},
            {"imp": 0, "sku": 6, "click": 1, "who": None, "pos": 2, "when": datetime(2024, 5, 30)}]  # fmt: skip
    shop = make(tmp_path / "log")
    report = shop.fit_log(rows, decision="imp", item="sku", reward="click", user="who", slot="pos", time="when")
    assert report == LogFit(2, 3, 0, 1)
    first, second = read_history(tmp_path / "log").learned
    assert (first.items, second.items) == ((5, 6), (4, 3))
    assert (first.user, second.user) == ({}, {"segment": "y"})
    assert second.time - first.time == 86_400.0
    plain = make(tmp_path / "plain")
    plain.fit_log([{"decision": 1, "item": 3, "reward": 1}, {"decision": 1, "item": 2, "reward": 0}])
    assert read_history(tmp_path / "plain").learned[0].items == (3, 2)


def test_rows_of_unknown_items_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = [{"decision": 1, "item": "?", "slot": 1, "reward": 1}, {"decision": 1, "item": 3, "slot": 2, "reward": 1},
            {"decision": 2, "item": "?", "slot": 1, "reward": 1}, {"decision": 3, "item": 3, "slot": 1, "reward": None},
            {"decision": 4, "item": 7, "slot": 1, "reward": 1}]  # fmt: skip
    shop = make(tmp_path / "log")
    shop.remove_items([7])
    assert shop.fit_log(rows) == LogFit(decisions=1, rows=1, dropped=3, unseen=1)
    (past,) = read_history(tmp_path / "log").learned
    assert past.items == (3,)
    assert past.rewards is not None
    assert past.rewards.tolist() == [1.0]
    assert math.isnan(past.slate_reward)  # something else was in the slate


def test_an_empty_table_and_one_of_nothing_known_leave_a_draft() -> None:
    shop = make()
    assert shop.fit_log([]) == LogFit(0, 0, 0, 0)
    assert shop.fit_log([{"decision": 1, "item": "?", "reward": 1}]) == LogFit(0, 0, 1, 0)
    assert shop.schema is None


def test_it_fixes_a_draft_by_all_values_of_its_context() -> None:
    rows = [
        {"decision": at, "item": at % 8, "reward": at % 2, "device": ("web", "app", "tv")[at % 3]} for at in range(9)
    ]
    shop = make(features=None)
    shop.fit_log(rows, context=["device"])
    assert shop.schema is not None
    assert shop.schema.user.levels("device") == ("app", "tv", "web")
    choice = shop.recommend("u0", context={"device": "tv", "new": 1})
    assert choice.version == 1
    assert "context new" in str(shop.features)


def test_a_running_shop_goes_on_with_what_it_knew(tmp_path: Path) -> None:
    shop = make(tmp_path / "log")
    for _ in range(5):
        choice = shop.recommend("u0", context={"hour": 1})
        shop.feedback(choice.id, {choice.items[0]: 1})
    open_one = shop.recommend("u1", context={"hour": 2})
    shop.fit_log(logged(20), context=["hour"])
    assert shop.feedback(open_one.id, {}).status == "learned"
    before = beliefs(shop)
    pasts = read_history(tmp_path / "log").learned
    assert len({past.id for past in pasts}) == len(pasts) == shop.decisions.counts.learned > 20
    shop.refit()
    np.testing.assert_allclose(beliefs(shop), before, rtol=1e-9, atol=1e-12)


def test_context_that_came_late_is_named() -> None:
    shop = make()
    shop.recommend("u0")
    shop.fit_log([{"decision": 1, "item": 3, "reward": 1, "late": "x"}], context=["late"])
    assert shop.stock.unlearned["context"] == {"late"}


# --- refusals -------------------------------------------------------------------------------------------------

GOOD = {"decision": "d", "user": "u0", "item": 1, "slot": 1, "reward": 1.0, "hour": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": 2}, r"decision 'd', row 1: expected a reward from 0 to 1, got 2"),
        ({"reward": "much"}, r"row 1: expected a reward from 0 to 1, got 'much'"),
        ({"reward": -0.1}, r"row 1: expected a reward"),
        ({"item": 1}, r"decision 'd', row 1: expected every item once, got 1 again"),
        ({"slot": 1}, r"decision 'd', row 1: expected every slot once, got 1 twice"),
        ({"slot": None}, r"row 1: expected a number as the slot, got a missing value"),
        ({"slot": "2"}, r"row 1: expected a number as the slot, got '2'"),
        ({"user": "u1"}, r"row 1: expected one value of the user in all rows of the decision, got 'u1' after 'u0'"),
        ({"hour": 4}, r"row 1: expected one value of hour in all rows"),
        ({"decision": None}, r"decision, row 1: expected text or a whole number as an id, got a missing value"),
        ({"item": 1.5}, r"item, row 1: expected text or a whole number"),
        ({"hour": "noon", "decision": "e"}, r"expected a number, got 'noon'"),
        ({"reward": math.inf}, r"reward"),
    ],
)
@pytest.mark.parametrize("draft", [True, False])
def test_a_wrong_row_is_named_and_nothing_is_learned(change: dict[str, Any], message: str, draft: bool) -> None:
    shop = make()
    if not draft:
        shop.recommend("u0", context={"hour": 1})
    before = shop.schema, shop.learner, shop.stock, shop.ids.last
    rows = [GOOD, {**GOOD, "item": 2, "slot": 2, **change}]
    with pytest.raises(DataError, match=message):
        shop.fit_log(rows, context=["hour"])
    assert (shop.schema, shop.learner, shop.stock, shop.ids.last) == before
    assert shop.decisions.counts.learned == 0
    assert shop.fit_log([GOOD], context=["hour"]).decisions == 1


def test_slates_that_are_too_long_are_refused() -> None:
    rows = [{**GOOD, "item": item, "slot": item} for item in range(4)]
    with pytest.raises(DataError, match=r"decision 'd', row 3: expected at most 3 items, the slate size, got 4"):
        make().fit_log(rows)


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        ({"item": "sku"}, DataError, "a column with the item, and there is no 'sku'"),
        ({"user": "who"}, DataError, "a column with the user, and there is no 'who'"),
        ({"slot": "pos"}, DataError, "there is no 'pos'"),
        ({"time": "when"}, DataError, "there is no 'when'"),
        ({"time": "user"}, DataError, "row 0: expected seconds or a date as the time, got 'u0'"),
        ({"context": "hour"}, ConfigError, "context: expected a list of column names, got 'hour'"),
        ({"context": ["hours"]}, DataError, "there is no 'hours'; did you mean hour"),
        ({"context": [3]}, DataError, "there is no 3"),
        ({"rewards": "reward"}, ConfigError, "there is no 'rewards'; did you mean reward"),
    ],
)
def test_wrong_names_are_refused(names: dict[str, Any], kind: type[NeuclustError], message: str) -> None:
    with pytest.raises(kind, match=message):
        make().fit_log([GOOD], **names)


def test_a_function_that_fails_names_the_decision() -> None:
    def worth(values: list[float]) -> float:
        if values == [1.0]:
            raise ZeroDivisionError
        return 0.0

    shop = make(reward=worth)
    with pytest.raises(DataError, match=r"decision 'd', row 0.*function"):
        shop.fit_log([GOOD])
    assert shop.schema is None


cells = st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=3) | st.just("u1")
rows_of = st.fixed_dictionaries(
    {"decision": st.sampled_from([1, 2, "x"]) | cells, "item": st.integers(0, 9) | cells, "reward": st.just(1) | cells},
    optional={"slot": st.integers(1, 5) | cells, "user": st.just("u1") | cells, "hour": st.just(3) | cells},
)


@settings(max_examples=100, deadline=None)
@given(st.lists(rows_of, max_size=6))
def test_hostile_rows_are_learned_or_refused_as_a_whole(rows: list[dict[str, Any]]) -> None:
    shop = make(policy="popular")
    names: dict[str, Any] = {"context": ["hour"]} if any("hour" in row for row in rows) else {}
    try:
        report = shop.fit_log(rows, **names)
    except NeuclustError:
        assert shop.schema is None
        assert shop.ids.last == 0
        assert shop.decisions.counts.learned == 0
    else:
        assert report.rows + report.dropped + report.unseen == len(rows)
        assert shop.decisions.counts.learned == report.decisions == shop.ids.last
