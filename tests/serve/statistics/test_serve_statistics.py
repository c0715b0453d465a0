"""Statistics as a fold of the log: right, bounded, and the same from any place on."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from simulated_log import START, Entry, Shop, random_clicks

from neuclust.errors import StateError
from neuclust.serve.statistics.buckets import MOST_BUCKETS
from neuclust.serve.statistics.followed import MOST_FOLLOWED
from neuclust.serve.statistics.recent import MOST_ITEMS
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.sums import mean_estimate
from neuclust.serve.store.contract import DECISION, ERASURE, EXPIRY, FEEDBACK, Row


@cache
def played() -> Shop:
    shop = Shop(holdout=0.2)
    shop.play(900)
    return shop


def counted(entries: list[Entry], statistics: Statistics | None = None) -> Statistics:
    found = Statistics() if statistics is None else statistics
    for row, told in entries:
        found.apply(row, told)
    return found


def decision(number: int, time: float, items: tuple[str, ...] = ("a", "b"), user: str = "u") -> Row:
    """A decision of which nothing but its items is known."""
    choice = {"items": list(items), "design": None, "explored": [False] * len(items), "request": None}
    content = {"choice": choice, "arm": "live", "version": 1, "expires_at": time + 100}
    return Row(number, DECISION, time, json.dumps(content).encode(), f"d{number}", None, None, user, b"")


def lesson(number: int, rewards: list[float | None], revised: bool = False) -> dict[str, Any]:
    return {"decision": f"d{number}", "rewards": rewards, "slate": None, "revised": revised}


def event(kind: str, time: float, user: str | None = None, closes: int = 0) -> Row:
    payload = json.dumps({"decision": f"d{closes}"}).encode()
    return Row(1, kind, time, payload, None, None, None, user, b"")


def test_counts_are_those_of_the_log() -> None:
    """Fails when decisions, answers or clicks are lost or counted twice."""
    shop = played()
    total = counted(shop.rows).buckets.total()
    made = [json.loads(row.payload or b"")["arm"] for row, _ in shop.rows if row.kind == DECISION]
    clicks = [sum(each["rewards"]) for _, told in shop.rows if told for each in told["lessons"]]
    assert {arm: sums.decisions for arm, sums in total.arms.items()} == {arm: made.count(arm) for arm in set(made)}
    assert sum(sums.clicks.count for sums in total.arms.values()) == len(clicks)
    assert sum(sums.clicks.first for sums in total.arms.values()) == sum(clicks)
    assert total.slots == 3 * made.count("live")
    assert 0.2 < total.exploring / total.slots < 0.4


def test_random_is_estimated_from_exploration() -> None:
    """Fails when the off-policy estimate of evenly drawn slates misses their true clicks per request."""
    shop = played()
    statistics = counted(shop.rows)
    found, truth = mean_estimate(statistics.buckets.total().random, (0, 3)), random_clicks(shop.stock)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low < truth < found.high
    assert found.high - found.low < 0.3
    assert statistics.weights.ess > 50
    assert statistics.weights.unsupported == 0


def test_without_exploration_random_is_not_estimated() -> None:
    """Fails when slates that were drawn without exploration count for the estimate of random."""
    shop = Shop(exploration=None)
    statistics = counted(shop.play(20))
    assert statistics.weights.count == 0
    assert statistics.weights.unsupported == 20


@pytest.mark.parametrize("place", [1, 700, 1500])
def test_it_goes_on_from_any_place(place: int) -> None:
    """Fails when statistics that were saved and read go on differently from those that never stopped."""
    rows = played().rows
    saved = json.loads(json.dumps(counted(rows[:place]).to_json()))
    again = counted(rows[place:], Statistics.from_json(saved))
    assert json.dumps(again.to_json()) == json.dumps(counted(rows).to_json())


def test_a_revised_lesson_takes_the_place_of_the_first() -> None:
    """Fails when a decision that is learned again is counted twice or with its first rewards."""
    statistics = counted([(decision(1, START), None)])
    statistics.apply(event(FEEDBACK, START + 1), {"status": "open", "lessons": [lesson(1, [1.0, 0.0])]})
    statistics.apply(event(EXPIRY, START + 101), {"status": "expired", "lessons": [lesson(1, [1.0, 1.0], True)]})
    live = statistics.buckets.total().arms["live"]
    assert (live.clicks.count, live.clicks.first) == (1, 2.0)
    assert [each.to_json()[:2] for each in statistics.slots] == [[1, 1.0], [1, 1.0]]
    assert statistics.items.counts == {"a": [1, 1, 1], "b": [1, 1, 1]}
    assert statistics.followed.open == {}


def test_slots_that_nobody_saw_are_not_shown() -> None:
    """Fails when an unseen slot lowers its click rate."""
    statistics = counted([(decision(1, START), None)])
    statistics.apply(event(FEEDBACK, START + 1), {"status": "learned", "lessons": [lesson(1, [1.0, None])]})
    assert [each.count for each in statistics.slots] == [1]


def test_only_the_decision_of_a_feedback_is_closed_by_it() -> None:
    """Fails when a decision that was learned before its window ended can no longer be learned again."""
    statistics = counted([(decision(1, START), None), (decision(2, START + 1), None)])
    lessons = [lesson(1, [0.0, 0.0]), lesson(2, [1.0, 0.0])]
    statistics.apply(event(FEEDBACK, START + 2, closes=2), {"status": "learned", "lessons": lessons})
    assert list(statistics.followed.open) == ["d1"]
    statistics.apply(event(FEEDBACK, START + 3, closes=1), {"status": "learned", "lessons": [lesson(1, [1.0, 1.0])]})
    assert statistics.buckets.total().arms["live"].clicks.to_json()[:2] == [2, 3.0]
    assert statistics.followed.open == {}


def test_what_many_items_and_years_leave_is_bounded() -> None:
    """Fails when the state grows with time, with the number of items or with decisions that nobody answers."""
    statistics = Statistics()
    for number in range(1, 10_000):
        row = decision(number, START + number, (f"i{number}", f"j{number % 700}"))
        content = json.loads(row.payload or b"") | {"expires_at": START + 1e9}
        statistics.apply(row, None, content)
    for number in range(1000):
        statistics.apply(decision(10**6 + number, START + 86_400.0 * number), None)
    assert len(statistics.followed.open) <= MOST_FOLLOWED
    assert len(statistics.items.counts) <= MOST_ITEMS
    assert len(statistics.buckets.found) <= MOST_BUCKETS
    assert sum(bucket.arms["live"].decisions for bucket in statistics.buckets.found.values()) == 9_999 + 1_000
    assert len(json.dumps(statistics.view())) < 150_000


def test_too_many_open_decisions_do_not_favour_those_that_are_clicked() -> None:
    """Fails when decisions that nobody answers drop out more often than those that are clicked at once."""
    statistics, rate, waiting = Statistics(), 25, 400
    for number in range(1, rate * 1200):
        time = START + number / rate
        row = decision(number, time)
        content = json.loads(row.payload or b"") | {"expires_at": time + waiting}
        statistics.apply(row, None, content)
        told = [lesson(number, [1.0, 0.0])] if number % 4 == 0 else []
        late = number - waiting * rate
        told += [lesson(late, [0.0, 0.0])] if late > 0 and late % 4 else []
        statistics.apply(event(FEEDBACK, time, closes=number), {"status": "learned", "lessons": told})
    clicks = statistics.buckets.total(statistics.buckets.settled_until()).arms["live"].clicks
    everything = statistics.buckets.total().arms["live"].clicks
    assert clicks.count > 1000
    assert clicks.mean == pytest.approx(0.25, abs=0.03)
    assert (everything.mean or 0) > 0.3  # of the latest, only those that were clicked are known


def test_an_erased_user_is_not_kept() -> None:
    """Fails when the state holds the id of a user who was erased."""
    statistics = counted([(decision(1, START, user="gone"), None), (decision(2, START + 1, user="stays"), None)])
    statistics.apply(event(ERASURE, START + 2, "gone"), None)
    assert "gone" not in json.dumps(statistics.to_json())
    assert list(statistics.followed.open) == ["d2"]
    assert statistics.buckets.total().arms["live"].pending == 1


@pytest.mark.parametrize(
    "change", [{"format": 2}, {"buckets": 3}, {"items": {}}, {"followed": [[1, 2]]}, {"weights": {}}]
)
def test_a_damaged_save_is_refused(change: dict[str, Any]) -> None:
    """Fails when a save that is damaged or of another format is read."""
    with pytest.raises(StateError, match="statistics: expected"):
        Statistics.from_json(Statistics().to_json() | change)
