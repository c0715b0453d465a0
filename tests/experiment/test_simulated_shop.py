"""The simulated shop: its truth, its tables and what a recommender makes of it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from neuclust.experiment.shop import (
    CATEGORIES,
    ELIGIBLE,
    RATE,
    SEGMENTS,
    SLATE_SIZE,
    SimulatedShop,
    open_shop,
    play_shop,
)


@pytest.fixture(scope="module")
def shop() -> SimulatedShop:
    return SimulatedShop.of(0)


def test_a_random_item_is_clicked_at_the_rate(shop: SimulatedShop) -> None:
    chances = np.concatenate([shop.request(t).chances for t in range(1, 401)])
    assert float(chances.mean()) == pytest.approx(RATE, rel=0.05)
    clicks = [shop.clicks(t, shop.request(t), list(range(ELIGIBLE))) for t in range(1, 401)]
    assert np.mean(clicks) == pytest.approx(RATE, rel=0.05)


def test_users_and_items_meet(shop: SimulatedShop) -> None:
    kind = np.array([CATEGORIES.index(row["category"]) for row in shop.items])
    best = {}
    for who in SEGMENTS:
        user = next(at for at, row in enumerate(shop.users) if row["segment"] == who)
        best[who] = max(range(len(CATEGORIES)), key=lambda category: shop.scores[user, kind == category].mean())
    assert len(set(best.values())) == len(SEGMENTS)  # every segment likes another category


def test_the_files_hold_the_tables(shop: SimulatedShop, tmp_path: Path) -> None:
    items, users = shop.write(tmp_path)
    with items.open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["sku"] for row in read] == [row["sku"] for row in shop.items]
    assert [float(row["price"]) for row in read] == [row["price"] for row in shop.items]
    assert users.read_text().count("\n") == len(shop.users) + 1
    assert SimulatedShop.of(0).items == shop.items
    assert SimulatedShop.of(1).items != shop.items


def test_a_linear_policy_learns_and_chance_does_not(shop: SimulatedShop, tmp_path: Path) -> None:
    shop.write(tmp_path)
    learns, chance = (
        play_shop(shop, open_shop(tmp_path, name, 0), 300, lambda *_: True) for name in ("linucb", "uniform")
    )
    assert len(learns) == len(chance) == 300
    assert (learns.random == chance.random).all()
    assert (learns.expected <= learns.best + 1e-9).all()
    assert learns.expected[-100:].mean() > 0.6 * learns.best[-100:].mean()
    assert chance.expected.mean() == pytest.approx(SLATE_SIZE * RATE, rel=0.2)


def test_it_stops_when_told(shop: SimulatedShop, tmp_path: Path) -> None:
    shop.write(tmp_path)
    run = play_shop(shop, open_shop(tmp_path, "uniform", 0), 100, lambda request, _: request < 7)
    assert len(run) == 7
