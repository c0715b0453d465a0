"""What was expected is told in the units of the rewards, and logged on the policy's scale."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_shop import small_shop

from neuclust.recommender.choices import Choice
from neuclust.recommender.recommender import Recommender

RANGES = [(0.0, 200.0), (-10.0, 10.0)]


def pair(span: tuple[float, float], policy: str, log: Path | None = None) -> tuple[Recommender, Recommender]:
    """A shop with this range of rewards and one of 0 to 1, which heard the same."""
    low, high = span
    found = small_shop(policy, reward_range=span, log=log), small_shop(policy)
    for at in range(12):
        choices = [shop.recommend(f"u{at % 10}") for shop in found]
        assert choices[0].items == choices[1].items
        shares = [(at + slot) % 5 / 4 for slot in range(3)]
        for shop, choice, scale in zip(found, choices, ((low, high), (0.0, 1.0)), strict=True):
            values = (scale[0] + (scale[1] - scale[0]) * share for share in shares)
            shop.feedback(choice.id, dict(zip(choice.items, values, strict=True)))
    return found


@pytest.mark.parametrize("span", RANGES)
@pytest.mark.parametrize("policy", ["linucb", "popular"])
def test_expectations_and_reasons_are_in_the_units_of_rewards(span: tuple[float, float], policy: str) -> None:
    """Fails when means, bonuses or reasons of a shop with money or grades are shares of their range."""
    low, width = span[0], span[1] - span[0]
    shop, plain = pair(span, policy)
    choice, share = shop.recommend("u1"), plain.recommend("u1")
    assert choice.means == pytest.approx(low + width * np.array(share.means))
    assert choice.bonuses == pytest.approx(width * np.array(share.bonuses))
    assert Choice.from_json(choice.to_json()).means == choice.means
    for reason, other, mean in zip(shop.explain(choice), plain.explain(share), choice.means, strict=True):
        assert (reason.mean, reason.now) == pytest.approx((mean, mean), rel=1e-5)
        assert reason.bonus == pytest.approx(width * other.bonus)
        amounts = sum(each.amount for each in reason.contributions)
        if reason.counted is None:
            assert reason.base + amounts + reason.rest == pytest.approx(reason.now, abs=1e-6 * width)
            assert reason.base == pytest.approx(low + width * other.base)
        elif other.counted is not None:
            assert reason.counted.rewards == pytest.approx(low * other.counted.shown + width * other.counted.rewards)
    assert shop.explain(choice.id).reasons[0].mean == pytest.approx(choice.means[0])


@pytest.mark.parametrize("span", RANGES)
def test_the_log_keeps_the_scale_of_the_policy(span: tuple[float, float], tmp_path: Path) -> None:
    """Fails when logs of before and after have means of different units, which a replay would mix."""
    shop, plain = pair(span, "linucb", tmp_path / "log.jsonl")
    shares = plain.recommend("u1")
    shop.recommend("u1")
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    logged = [event for event in events if event["event"] == "decision"][-1]
    assert logged["means"] == pytest.approx(shares.means)
    assert logged["bonuses"] == pytest.approx(shares.bonuses)
