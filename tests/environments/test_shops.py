from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from small_problems import not_none

from neuclust.core import Slate, check_round
from neuclust.environments import shops
from neuclust.environments.dealing import Recorded
from neuclust.environments.payments import HANDLING, NET, Amounts, PositionBias
from neuclust.environments.shop_truths import (
    CATEGORIES,
    SEGMENTS,
    Crossing,
    Layout,
    LinearScore,
    Link,
    ShopRounds,
)
from neuclust.environments.shops import ShopSpec, build_shop, draw_shop
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError

SMALL = ShopSpec(items=200, eligible=60, dim=12)
CLICKS = {"rare": shops.RARE, "late": shops.LATE, "tastes": shops.TASTES, "items": shops.ITEMS, "linear": SMALL}


def slate(*positions: int) -> Slate:
    zeros = torch.zeros(len(positions), dtype=torch.float64)
    return Slate(torch.tensor(positions), zeros, zeros)


def naive_context(contexts: Crossing, t: int, row: int) -> list[float]:
    pairs = zip(contexts.item_columns.tolist(), contexts.request_columns.tolist(), strict=True)
    return [float(contexts.items[row, a]) * float(contexts.requests[t - 1, b]) for a, b in pairs]


@pytest.mark.parametrize("name", list(CLICKS))
def test_random_slates_are_clicked_at_the_declared_rate(name: str) -> None:
    shop = replace(CLICKS[name], link="linear" if name == "linear" else CLICKS[name].link)
    rates = [
        float(torch.stack([one.means(one.round(t)).mean() for t in range(1, 101)]).mean())
        for one in (build_shop("shop", shop, horizon=100, seed=seed) for seed in range(4))
    ]
    assert np.mean(rates) == pytest.approx(shop.click_rate, rel=0.12)


@pytest.mark.parametrize("link", get_args(Link))
@pytest.mark.parametrize("dim", [8, 12, 30, 60])
def test_rounds_show_the_crossed_features_of_the_offered_items(link: Link, dim: int) -> None:
    one = build_shop("shop", ShopSpec(dim=dim, items=80, eligible=20, link=link), horizon=9, seed=3)
    r = one.round(4)
    check_round(r, one.dim, one.slate_size)
    assert one.dim == dim
    assert r.query is None
    contexts = one.contexts
    assert isinstance(contexts, Crossing)
    assert torch.equal(r.profiles, contexts.items[r.arm_ids])
    naive = torch.tensor([naive_context(contexts, 4, int(row)) for row in r.arm_ids], dtype=torch.float64)
    assert torch.equal(r.contexts, naive)


def test_logistic_means_are_a_linear_score_of_the_contexts_and_item_effects_are_not() -> None:
    one = build_shop("shop", SMALL, horizon=40, seed=1)
    odds, contexts = [], []
    for t in range(1, 41):
        r = one.round(t)
        odds.append(torch.logit(one.means(r)))
        contexts.append(torch.cat([r.contexts, torch.ones(len(r.arm_ids), 1, dtype=torch.float64)], 1))
    x, y = torch.cat(contexts), torch.cat(odds)
    fitted = x @ torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
    assert torch.allclose(fitted, y, atol=1e-9)
    assert float(y.std()) == pytest.approx(SMALL.signal, rel=0.2)
    other = build_shop("shop", replace(SMALL, item_effect=1.0), horizon=40, seed=1)
    gaps = torch.logit(other.means(other.round(1))) - torch.logit(one.means(one.round(1)))
    assert 0.7 < float(gaps.std()) < 1.3


def test_the_best_price_is_the_most_liked_of_its_segment_and_category() -> None:
    one = build_shop("shop", ShopSpec(link="best-price", items=2000, eligible=2000), horizon=1, seed=2)
    r, contexts = one.round(1), one.contexts
    assert isinstance(contexts, Crossing)
    means, price = one.means(r), contexts.items[:, 0]
    x = torch.cat([r.contexts, torch.ones(2000, 1, dtype=torch.float64)], 1)
    odds = torch.logit(means)
    left = odds - x @ torch.linalg.lstsq(x, odds[:, None]).solution[:, 0]
    assert float(left.var() / odds.var()) > 0.3  # no linear score explains it
    for kind in range(4):
        own = contexts.items[:, 2 + kind] == 1
        top = price[own][torch.topk(means[own], 20).indices]
        assert float(top.std()) < 0.5 * float(price[own].std())


@pytest.mark.parametrize("layout", get_args(Layout))
def test_every_layout_of_prices_tells_what_the_truth_reads(layout: Layout) -> None:
    """Price, category, rating and segment can be read off the contexts, whose truth is that of the catalogue."""
    one = build_shop("shop", replace(shops.TASTES, layout=layout), horizon=6, seed=2)
    for t in range(1, 7):
        r, contexts = one.round(t), one.contexts
        assert isinstance(contexts, Crossing)
        assert r.contexts.shape == (300, 30)
        items, segment = contexts.items[r.arm_ids], int(contexts.requests[t - 1, 1:].argmax())
        category = items[:, 2 : 2 + CATEGORIES]
        if layout == "crossed":
            assert torch.equal(r.contexts[:, 5 + segment], items[:, 0])
            assert torch.equal(r.contexts[:, 9 + 4 * segment : 13 + 4 * segment], category)
        elif layout == "beside":
            assert torch.equal(r.contexts[:, :6], torch.cat([items[:, :1], category, items[:, 1:2]], 1))
            assert torch.equal(r.contexts[:, 6:9], torch.eye(SEGMENTS, dtype=torch.float64)[segment].expand(300, -1))
        else:
            own = torch.cat([items[:, :1], category, items[:, 1:2]], 1)
            assert torch.equal(r.contexts[:, 6 * segment : 6 * segment + 6], own)
            assert int((r.contexts[:, :18] != 0).sum()) == 3 * 300


def test_shops_of_a_longer_run_begin_with_the_shorter_one() -> None:
    for shop in (shops.RARE, shops.ITEMS, shops.LONG, shops.TASTES, shops.LATE):
        short, long = (build_shop("shop", shop, horizon=horizon, seed=5) for horizon in (20, 300))
        for t in (1, 20):
            one, two = short.round(t), long.round(t)
            assert torch.equal(one.arm_ids, two.arm_ids)
            assert torch.equal(one.contexts, two.contexts)
            assert torch.equal(short.means(one), long.means(two))
            played = slate(0, 1, 2, 3, 4)
            assert torch.equal(short.play(one, played).arm_rewards, long.play(two, played).arm_rewards)


def test_late_clicks_come_within_their_range_and_a_tenth_never() -> None:
    one = shops.shop_late(horizon=1000, seed=1)
    arrivals = [one.arrival(t) for t in range(1, 1001)]
    waits = [not_none(due) - t for t, due in enumerate(arrivals, 1) if due is not None]
    assert (min(waits), max(waits)) == (5, 60)
    assert np.mean(waits) == pytest.approx(32.5, abs=2)
    assert 0.07 < arrivals.count(None) / 1000 < 0.13


def test_slots_that_are_looked_at_less_pay_less_and_order_matters() -> None:
    bias, means = PositionBias(3, 0.5), torch.tensor([0.8, 0.8, 0.8], dtype=torch.float64)
    coins = torch.rand(4000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    paid = torch.stack([bias.drawn(row, means, torch.arange(3)) for row in coins])
    assert torch.allclose(paid.mean(0), torch.tensor([0.8, 0.4, 0.2], dtype=torch.float64), atol=0.03)
    values, chances = bias.outcomes(means, torch.zeros(3, dtype=torch.int64))
    assert float(values @ chances) == pytest.approx((0.8 + 0.4 + 0.2) / 3)
    one = shops.shop_slots(horizon=5, seed=1)
    r = one.round(1)
    best = one.best_positions(r)
    assert one.expected_reward(r, slate(*best.tolist())) == pytest.approx(one.best_expected_reward(r))
    assert one.expected_reward(r, slate(*best.flip(0).tolist())) < one.best_expected_reward(r) - 1e-3


def test_amounts_are_mostly_nothing_sometimes_negative_and_have_the_true_mean() -> None:
    one = shops.money(horizon=10, seed=1)
    r = one.round(1)
    means, pays = one.means(r)[:5], one.pays
    assert isinstance(pays, Amounts)
    coins = torch.rand(8000, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    prices, rows = pays.prices[r.arm_ids[:5]], r.arm_ids[:5]
    paid = torch.stack([pays.drawn(row, means, rows) for row in coins])
    errors = paid.std(0) / len(paid) ** 0.5
    assert bool(((paid.mean(0) - means).abs() < 4 * errors).all())
    assert bool((paid == 0).any())
    bought = means / (NET * prices)
    assert torch.allclose((paid != 0).double().mean(0), bought, atol=0.03)
    negative = paid[:, 0][paid[:, 0] < 0]
    assert torch.allclose(negative, -HANDLING * prices[0].expand(len(negative)))
    assert float(paid.max()) > 10


def test_items_come_and_go_and_the_coefficients_turn_slowly() -> None:
    one = shops.long_life(horizon=20_000, seed=0)
    first, later, last = (set(one.round(t).arm_ids.tolist()) for t in (1, 1000, 20_000))
    assert max(first) < 1000
    assert max(later) < 1100
    assert min(last) >= 1900
    assert isinstance(one.rounds, Recorded)
    assert isinstance(one.rounds.rounds, ShopRounds)
    score = one.rounds.rounds.chances.score
    assert isinstance(score, LinearScore)
    tastes = [score.tastes(t) for t in (1, 2, 20_000)]
    assert float(tastes[0] @ tastes[1]) == pytest.approx(1.0, abs=1e-6)
    assert float(tastes[0] @ tastes[2]) == pytest.approx(0.0, abs=1e-9)


def test_the_declared_shops_span_their_ranges() -> None:
    drawn = [draw_shop(number) for number in range(shops.SHOPS)]
    assert len(set(drawn)) == 50
    assert drawn[7] == draw_shop(7)
    for half in (drawn[::2], drawn[1::2]):
        assert {shop.link for shop in half} == {"logistic", "linear", "best-price"}
        assert {shop.latest for shop in half} == {0, 60, 200}
        assert {shop.slots for shop in half} == {shop.item_effect > 0 for shop in half} == {False, True}
        assert min(shop.click_rate for shop in half) < 0.012
        assert max(shop.click_rate for shop in half) > 0.08
    sizes = [(shop.dim, shop.items, shop.eligible) for shop in drawn]
    assert all(8 <= d <= 60 and 500 <= n <= 10_000 and 50 <= offered <= min(n, 1000) for d, n, offered in sizes)
    one = build_shop("shop", drawn[1], horizon=3, seed=0)
    assert isinstance(one, SlateEnvironment)
    assert one.dim == drawn[1].dim


def test_refusals() -> None:
    refused: list[dict[str, Any]] = [
        {"click_rate": 0.0}, {"dim": 7}, {"link": "cubic"}, {"earliest": 5, "latest": 4}, {"lost": 1.5},
        {"slots": True, "amounts": True}, {"drift": 5, "link": "best-price"},
        {"layout": "product"}, {"layout": "round", "link": "best-price"},
    ]  # fmt: skip
    for changes in refused:
        with pytest.raises(ConfigError, match="ShopSpec"):
            ShopSpec(**changes)
    with pytest.raises(ConfigError, match="items offered"):
        shops.shop_rare(arms_per_round=4000)
    with pytest.raises(ConfigError, match="its own"):
        shops.shop_slots(reward="mean")
    for number in (-1, 50):
        with pytest.raises(ConfigError, match="shop: "):
            draw_shop(number)
