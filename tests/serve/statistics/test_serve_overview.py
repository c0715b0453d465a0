"""The JSON that the page is made from."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from simulated_log import SLOTS, START, Shop, items, random_clicks

from neuclust.recommender.items.catalogue import Catalogue
from neuclust.recommender.recommender import Recommender
from neuclust.serve.statistics.clusters import MOST_POINTS, item_map, sampled
from neuclust.serve.statistics.overview import KEY, MOST_DECISIONS, MOST_VERSIONS, overview
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.store.contract import Head, Progress, Version


def head(promoted: int | None = None) -> Head:
    return Head(1, "shop", 2_000, START + 4_000, b"", 3, 4, promoted, 0, b"", START)


def versions(count: int = 3) -> list[Version]:
    return [Version(number, number, START, number, True, number > 1) for number in range(count, 0, -1)]


@cache
def shop(decisions: int = 600, answered: float = 1.0, exploration: float | None = 0.3) -> tuple[Shop, Statistics]:
    found, statistics = Shop(holdout=0.3, answered=answered, exploration=exploration), Statistics()
    for row, told in found.play(decisions):
        statistics.apply(row, told)
    return found, statistics


def shown(statistics: Statistics, **others: Any) -> dict[str, Any]:
    progress = Progress(1_990, 500, START + 3_990, {KEY: statistics.view()})
    found = overview(head(), progress, versions(), [], {"ready": True}, **others)
    plain: dict[str, Any] = json.loads(json.dumps(found, allow_nan=False))
    return plain


def row(found: dict[str, Any], arm: str) -> dict[str, Any]:
    return next(each for each in found["comparison"] if each["arm"] == arm)


def test_a_recommender_nobody_used_has_an_overview() -> None:
    """Fails when a new recommender cannot be shown."""
    found = overview(head(), None, [], [], {})
    assert found["comparison"] == []
    assert found["totals"] == {"decisions": 0, "answered": 0}
    assert "has not looked" in found["learner"]["problem"]
    json.dumps(found, allow_nan=False)


def test_live_is_compared_with_holdout_and_random() -> None:
    """Fails when a sentence has other numbers than its row, or live does not beat what it beats."""
    played, statistics = shop()
    found = shown(statistics)
    truth = random_clicks(played.stock)
    for arm in ("holdout", "random"):
        each = row(found, arm)
        assert each["clicks"]["low"] < truth < each["clicks"]["high"]
        assert each["difference"]["low"] > 0.2
        gap = each["difference"]
        assert f"+{gap['mean']:.2f} ({gap['low']:.2f} to {gap['high']:.2f})" in each["sentence"]
        assert f"{arm} {each['clicks']['mean']:.2f}" in each["sentence"]
    assert row(found, "live")["sentence"].startswith(f"live earns {row(found, 'live')['clicks']['mean']:.2f} clicks")
    assert not any(each["provisional"] for each in found["comparison"])
    assert "rough" in row(found, "random")["sentence"]


def test_series_add_up_to_the_totals() -> None:
    """Fails when a decision is missing from its series or in two points of it."""
    found = shown(shop()[1])
    for arm in ("live", "holdout"):
        points = found["series"][arm]
        assert sum(point["count"] for point in points) == row(found, arm)["answered"]
        assert all(first["to"] <= second["from"] for first, second in pairwise(points))
        assert all(point["low"] <= point["mean"] <= point["high"] for point in points)
    assert sum(point["count"] for point in found["series"]["exploring"]) == SLOTS * row(found, "live")["decisions"]


def test_open_decisions_make_it_provisional() -> None:
    """Fails when numbers are shown as final though many decisions still wait for clicks."""
    found = shown(shop(200, answered=0.6)[1])
    assert all(each["provisional"] for each in found["comparison"])
    assert not any(point["settled"] for point in found["series"]["live"][2:])


def test_without_exploration_it_says_what_to_set() -> None:
    """Fails when the missing estimate of random is not explained."""
    found = shown(shop(30, exploration=None)[1])
    assert '{"exploration": 0.1}' in row(found, "random")["sentence"]
    assert row(found, "random")["clicks"] is None
    assert found["series"]["random"] == []


@pytest.mark.parametrize(("promoted", "serving"), [(None, 3), (1, 1)])
def test_the_served_version_is_marked(promoted: int | None, serving: int) -> None:
    """Fails when another version than the pinned or the latest one is shown as served."""
    found = overview(head(promoted), None, versions(), [], {})
    assert [each["version"] for each in found["versions"] if each["serving"]] == [serving]


def test_lists_are_short() -> None:
    """Fails when a long history makes the overview long."""
    found = overview(head(1), None, versions(100), [{"decision_id": str(at)} for at in range(100)], {})
    assert len(found["versions"]) == MOST_VERSIONS + 1
    assert len(found["decisions"]) == MOST_DECISIONS


def test_lag_is_that_of_events_the_learner_has_not_applied() -> None:
    """Fails when a learner that is behind looks as if it were not."""
    found = shown(shop()[1])
    assert (found["learner"]["behind"], found["learner"]["lag"]) == (10, 10.0)
    there = overview(head(), Progress(2_000, 1, START), [], [], {})
    assert (there["learner"]["behind"], there["learner"]["lag"]) == (0, 0.0)


def test_the_map_shows_items_with_what_was_chosen() -> None:
    """Fails when items on the map lose their counts, their clusters or the map's range."""
    played, statistics = shop()
    assert played.live.learner is not None
    found = shown(statistics, item_map=item_map(sampled(played.live.stock.catalogue), played.live.learner.policy))[
        "map"
    ]
    assert [point["item"] for point in found["points"]] == [item["item_id"] for item in played.stock]
    assert sum(point["chosen"] for point in found["points"]) == SLOTS * 600
    assert max(abs(point["x"]) for point in found["points"]) == 1.0
    assert found["own"] is False
    assert 2 <= found["clusters"] <= 8


def test_the_map_has_the_policys_own_clusters_and_few_items() -> None:
    """Fails when a policy's clusters are replaced by others, or a large catalogue is drawn whole."""
    settings = {"clustering.n_init": 1, "clustering.count": 6}
    shop = Recommender(items(620), "item_id", slate_size=SLOTS, policy="neuclust", settings=settings)
    shop.recommend()
    assert shop.learner is not None
    policy: Any = shop.learner.policy
    found = item_map(sampled(shop.stock.catalogue, ["item-501", "item-619", "nothing"]), policy)
    state = policy.clusters.state_dict()
    known = dict(zip(state["ids"].tolist(), state["labels"].tolist(), strict=True))
    assert found["own"] is True
    assert len(found["points"]) == MOST_POINTS
    assert {"item-501", "item-619"} <= {point["item"] for point in found["points"]}
    assert all(point["cluster"] == known[int(point["item"].removeprefix("item-"))] for point in found["points"])


def test_a_map_of_items_without_features_or_of_none() -> None:
    """Fails when a catalogue that has nothing to draw cannot be shown."""
    empty = Catalogue(0)
    assert item_map(sampled(empty), None)["points"] == []
    empty.add(["a", "b"], {}, np.zeros((2, 0)))
    assert [(point["x"], point["y"]) for point in item_map(sampled(empty), None)["points"]] == [(0, 0), (0, 0)]
