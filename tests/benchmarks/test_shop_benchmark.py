"""The simulated shops are what they claim to be, and the comparison plays, pairs and resumes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import front_door
from benchmarks.front_door import Job, by_hand, from_tables, main, played, rise, share, summary
from benchmarks.handmade import HandMade, Reals, encoded
from benchmarks.shop import ELIGIBLE, ITEM_ID, ITEMS, SLATE_SIZE, USER_ID, USERS, Request, Shop
from benchmarks.shops import DAYPARTS, DEVICES, RATES, SHOPS


def log_odds(chances: Reals) -> Reals:
    found: Reals = np.log(chances / (1 - chances))
    return found


def same(chances: Reals) -> Reals:
    return chances


# what is linear in the expert's columns: the chance itself, or its log-odds
EXACT = {"linear": same, **dict.fromkeys(["rare", "slots", "tastes", "tags", "context"], log_odds)}


@pytest.fixture(scope="module")
def shops() -> dict[str, Shop]:
    return {name: make(3) for name, make in SHOPS.items()}


def requests_of(shop: Shop, count: int = 60) -> list[Request]:
    return [shop.request(t) for t in range(1, count + 1)]


def chances_of(shop: Shop, request: Request) -> Reals:
    return shop.chance(request.user_row, request.context, request.item_rows)


def residual(shop: Shop, columns: HandMade, target: Any) -> float:
    """1 − R² of a least-squares fit of the truth on the columns."""
    asked = requests_of(shop)
    z = np.concatenate([columns.rows(each.user_row, each.context, each.item_rows) for each in asked])
    y = target(np.concatenate([chances_of(shop, each) for each in asked]))
    left = y - z @ np.linalg.lstsq(z, y, rcond=None)[0]
    return float(left @ left / ((y - y.mean()) @ (y - y.mean())))


@pytest.mark.parametrize("name", SHOPS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_random_slates_click_at_the_stated_rate(name: str, seed: int) -> None:
    shop = SHOPS[name](seed)
    asked = requests_of(shop, 300)
    random, best = np.array([shop.bounds(each) for each in asked]).mean(0)
    assert random / shop.position.sum() == pytest.approx(RATES[name], rel=0.12)
    assert best > 2 * random  # there is something to learn
    every = np.concatenate([chances_of(shop, each) for each in asked])
    assert 0 < every.min() < every.max() < 1


@pytest.mark.parametrize("name", SHOPS)
def test_clicks_come_at_the_expected_rate(name: str, shops: dict[str, Shop]) -> None:
    shop, seen, expected = shops[name], np.zeros(SLATE_SIZE), np.zeros(SLATE_SIZE)
    for t in range(1, 501):
        request = shop.request(t)
        best = request.item_rows[np.argsort(-chances_of(shop, request))[:SLATE_SIZE]]
        seen += shop.clicks(t, request, best)
        expected += shop.position * shop.chance(request.user_row, request.context, best)
    assert np.all(np.abs(seen - expected) < 5 * np.sqrt(expected))


@pytest.mark.parametrize("name", EXACT)
def test_the_truth_is_linear_in_the_columns_made_by_hand(name: str, shops: dict[str, Shop]) -> None:
    shop = shops[name]
    assert residual(shop, shop.expert, EXACT[name]) < 1e-12
    assert residual(shop, shop.every, EXACT[name]) < 1e-12


@pytest.mark.parametrize("name", EXACT)
def test_the_truth_is_not_linear_without_the_crosses(name: str, shops: dict[str, Shop]) -> None:
    shop = shops[name]
    assert residual(shop, replace(shop.every, cross=(), match=()), EXACT[name]) > 0.05


def test_bins_of_the_price_fit_the_bumps_and_a_straight_line_does_not(shops: dict[str, Shop]) -> None:
    shop = shops["nonlinear"]
    straight = residual(shop, replace(shop.expert, bins=None), log_odds)
    binned = residual(shop, shop.expert, log_odds)
    assert binned < 0.2
    assert straight > 2 * binned


@pytest.mark.parametrize("name", SHOPS)
def test_tables_are_raw_and_complete(name: str, shops: dict[str, Shop]) -> None:
    shop = shops[name]
    for rows, key, count in ((shop.items, ITEM_ID, ITEMS), (shop.users, USER_ID, USERS)):
        assert len(rows) == count
        assert len({row[key] for row in rows}) == count
        assert all(row.keys() == rows[0].keys() for row in rows)
    assert len({row["title"] for row in shop.items}) == ITEMS
    asked = shop.request(1)
    known = {*shop.items[0], *shop.users[0], *asked.context}
    assert {member for crossed in (*shop.cross, *shop.match) for member in crossed} <= known
    assert set(shop.bins) <= set(shop.items[0])
    assert len(set(asked.eligible)) == ELIGIBLE
    assert [shop.items[row][ITEM_ID] for row in asked.item_rows] == asked.eligible
    assert shop.users[asked.user_row][USER_ID] == asked.user


def test_tables_hold_every_kind_of_column_and_gaps(shops: dict[str, Shop]) -> None:
    kinds: set[Any] = set()
    for shop in shops.values():
        for row in (*shop.items, *shop.users):
            kinds |= {type(value) if not isinstance(value, list) else (list, type(value[0])) for value in row.values()}
    assert kinds == {str, int, float, bool, datetime.date, type(None), (list, str), (list, float)}


@pytest.mark.parametrize("name", SHOPS)
def test_a_shop_is_a_function_of_its_seed(name: str, shops: dict[str, Shop]) -> None:
    again, other = SHOPS[name](3), SHOPS[name](4)
    shop = shops[name]
    assert (again.items, again.users) == (shop.items, shop.users)
    assert other.items != shop.items
    one, two = again.request(7), shop.request(7)
    assert (one.user, one.eligible, one.context) == (two.user, two.eligible, two.context)
    assert np.array_equal(chances_of(again, one), chances_of(shop, two))
    assert shop.request(8).eligible != two.eligible


def test_an_item_is_clicked_in_every_slate_or_in_none(shops: dict[str, Shop]) -> None:
    shop, clicked = shops["linear"], 0
    for t in range(1, 101):
        request = shop.request(t)
        first, second = request.item_rows[:5], request.item_rows[4::-1]
        forward = dict(zip(first.tolist(), shop.clicks(t, request, first), strict=True))
        backward = dict(zip(second.tolist(), shop.clicks(t, request, second), strict=True))
        assert forward == backward
        clicked += int(sum(forward.values()))
    assert clicked > 0


def test_a_lower_slot_never_adds_a_click(shops: dict[str, Shop]) -> None:
    shop, lost = shops["slots"], 0
    for t in range(1, 401):
        request = shop.request(t)
        best = request.item_rows[np.argsort(-chances_of(shop, request))[:SLATE_SIZE]]
        top, bottom = shop.clicks(t, request, best)[0], shop.clicks(t, request, best[::-1])[-1]
        assert top >= bottom
        lost += int(top - bottom)
    assert lost > 10


@given(st.lists(st.none() | st.sampled_from(["a", "b", "é"]), min_size=1).filter(any))
@settings(max_examples=50)
def test_one_hots_are_full(values: list[str | None]) -> None:
    block, levels = encoded(values)
    assert levels is not None
    assert [levels[int(row.argmax())] for row in block] == [value or "missing" for value in values]
    assert np.all(block.sum(1) == 1)


def test_numbers_are_scaled_and_gaps_said() -> None:
    block, _ = encoded([10, None, 20, 30])
    assert block.tolist() == [[0, 0], [0.5, 1], [0.5, 0], [1, 0]]


# --- the comparison ---------------------------------------------------------------------------------------------------


def test_a_policy_learns_on_columns_made_by_hand() -> None:
    run = played(Job("slots", "linucb", "handmade", 0, 250))
    first, last = rise(run)
    assert last > first + 0.2
    assert run["random"] < run["clicks"] < run["best"]
    assert sum(run["clicks_tenths"]) == pytest.approx(run["clicks"], abs=0.02)


def test_the_best_policy_has_a_share_of_one_and_a_random_one_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def best(shop: Shop, policy: str, columns: HandMade) -> front_door.Play:
        del policy, columns
        return lambda t, request: request.item_rows[np.argsort(-chances_of(shop, request))[:SLATE_SIZE]]

    monkeypatch.setattr(front_door, "by_hand", best)
    for shop in ("linear", "slots"):
        assert share(played(Job(shop, "best", "handmade", 0, 20))) == pytest.approx(1, abs=1e-3)
    monkeypatch.setattr(front_door, "by_hand", by_hand)
    assert abs(share(played(Job("linear", "uniform", "handmade", 0, 200)))) < 0.1


class Stand:
    """Shows the first eligible items and keeps what it is told."""

    def __init__(self, items: list[dict[str, Any]], **settings: Any) -> None:
        self.items, self.settings, self.told = items, settings, dict[str, Mapping[str, int]]()
        self.asked: list[dict[str, Any]] = []
        stands.append(self)

    def recommend(self, **request: Any) -> SimpleNamespace:
        self.asked.append(request)
        return SimpleNamespace(items=request["eligible"][:SLATE_SIZE], id=f"c{len(self.asked)}")

    def feedback(self, name: str, clicked: Mapping[str, int]) -> None:
        self.told[name] = clicked


stands: list[Stand] = []


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> None:
    stands.clear()
    for name, kind in (("Recommender", Stand), ("Features", dict), ("Category", tuple)):
        monkeypatch.setattr(front_door, name, kind)


@pytest.mark.usefixtures("stand")
def test_the_recommender_gets_raw_tables_and_its_own_clicks(shops: dict[str, Shop]) -> None:
    shop = shops["tags"]
    play = from_tables(shop, "linucb", "stated")
    clicks = 0.0
    for t in range(1, 41):
        request = shop.request(t)
        shown = play(t, request)
        assert shown.tolist() == request.item_rows[:SLATE_SIZE].tolist()
        clicks += shop.clicks(t, request, shown).sum()
        told = stands[0].told[f"c{t}"]
        assert told == {shop.items[row][ITEM_ID]: 1 for row in shown[shop.clicks(t, request, shown) > 0]}
    assert sum(len(told) for told in stands[0].told.values()) == clicks > 0
    assert stands[0].items is shop.items
    assert stands[0].asked[0] == {
        "user": shop.request(1).user, "eligible": shop.request(1).eligible, "context": shop.request(1).context,
    }  # fmt: skip
    kept = {name: stands[0].settings[name] for name in ("item_id", "user_id", "slate_size", "policy", "seed")}
    assert kept == {"item_id": "sku", "user_id": "user", "slate_size": 5, "policy": "linucb", "seed": 3}


@pytest.mark.usefixtures("stand")
def test_crosses_are_stated_or_inferred_and_bins_kept(shops: dict[str, Shop]) -> None:
    declared: Any = front_door.declared
    assert declared(shops["linear"], "stated") == {"cross": [("segment", "category")], "match": [], "width": 128}
    assert declared(shops["linear"], "inferred") == {}
    assert declared(shops["context"], "inferred") == {"context": {"daypart": DAYPARTS, "device": DEVICES}}
    assert declared(shops["tastes"], "stated")["match"] == [("tastes", "style")]
    assert declared(shops["nonlinear"], "plain") is None
    bins = declared(shops["nonlinear"], "inferred")["items"]["price"]
    price = [row["price"] for row in shops["nonlinear"].items]
    own = shops["nonlinear"].expert
    both = bins.fit_transform(np.array(price)[:, None]), encoded(own.items["price"], 6)[0]
    assert np.array_equal(*both)  # scikit-learn cuts as the expert does


@pytest.mark.parametrize(("shop", "side"), [("linear", "stated"), ("nonlinear", "stated"), ("context", "inferred")])
def test_the_recommender_plays_on_raw_tables(shop: str, side: str) -> None:
    run = played(Job(shop, "linucb", side, 0, 20))
    assert 0 < run["clicks"] < run["best"]


def example_run(side: str, seed: int, clicks: float) -> dict[str, Any]:
    totals = {"clicks": clicks, "random": 10.0, "best": 110.0}
    tenths = {f"{name}_tenths": [value / 10] * 10 for name, value in totals.items()}
    job = {"shop": "linear", "policy": "linucb", "side": side, "seed": seed, "requests": 100}
    return {**job, **totals, **tenths, "milliseconds": 1.0}


def test_ratios_are_paired_by_seed() -> None:
    runs = [example_run("handmade", 0, 50), example_run("handmade", 1, 100), example_run("stated", 0, 50)]
    runs += [example_run("stated", 1, 90), example_run("stated", 2, 1)]
    reference, stated = summary(runs)
    assert "ratio" not in reference
    assert (stated["seeds"], stated["ratio_seeds"]) == (3, 2)  # seed 2 has no hand-made run to compare with
    assert stated["ratio"] == pytest.approx(0.95)
    assert stated["ratio_error"] == pytest.approx(0.05)
    assert reference["share"] == pytest.approx(0.65)


def test_the_command_keeps_every_run_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def inline(todo: list[Job], workers: int, on_run: Any) -> int:
        for job in todo:
            on_run(played(job))
        return 0

    monkeypatch.setattr(front_door, "play_all", inline)
    file = tmp_path / "runs.json"
    words = ["--sides", "handmade", "--shops", "linear", "--policies", "linucb", "--requests", "10", "--out", str(file)]
    assert main([*words, "--seeds", "1"]) == 0
    first = json.loads(file.read_text(encoding="utf-8"))
    first["runs"][0]["clicks"] = 1234.5  # played again it would be another number
    file.write_text(json.dumps(first), encoding="utf-8")
    assert main([*words, "--seeds", "2"]) == 0
    record = json.loads(file.read_text(encoding="utf-8"))
    assert [run["seed"] for run in record["runs"]] == [0, 1]
    assert record["runs"][0]["clicks"] == 1234.5
    assert record["settings"]["seeds"] == 2
    assert record["command"].startswith("python -m benchmarks.front_door --sides handmade")
    assert "linucb" in capsys.readouterr().out


def test_a_run_that_fails_is_named_and_the_others_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    kept: list[dict[str, Any]] = []
    todo = [Job("linear", "no such policy", "handmade", 0, 10), Job("linear", "uniform", "handmade", 0, 10)]
    assert front_door.play_all(todo, 1, kept.append) == 1
    assert [run["policy"] for run in kept] == ["uniform"]
    assert "no such policy" in capsys.readouterr().err
