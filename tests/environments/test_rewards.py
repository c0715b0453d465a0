import itertools
import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.environments.rewards import (
    SlateReward,
    at_least_one,
    expected_clipped,
    from_table,
    mean,
    parse_reward,
    product,
    threshold,
)
from neuclust.errors import ConfigError

KINDS: list[Callable[[int], SlateReward]] = [threshold, mean, product, at_least_one]
slates = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4)
tables = st.lists(st.floats(-2.0, 2.0), min_size=5, max_size=5).map(sorted)


def outcomes(means: list[float]) -> list[tuple[tuple[int, ...], float]]:
    """Every reward vector with its chance."""
    return [
        (bits, math.prod(h if bit else 1 - h for h, bit in zip(means, bits, strict=True)))
        for bits in itertools.product((0, 1), repeat=len(means))
    ]


@settings(deadline=None)
@given(tables, slates)
def test_expected_is_the_average_of_realised(values: list[float], means: list[float]) -> None:
    reward = from_table(values)
    average = sum(p * reward.realised(torch.tensor(bits, dtype=torch.float64)) for bits, p in outcomes(means))
    assert float(reward.expected(torch.tensor(means))) == pytest.approx(average, abs=1e-6)


@settings(deadline=None)
@given(tables, slates, slates)
def test_clipped_is_the_average_over_both_slates_coins(
    values: list[float], best: list[float], chosen: list[float]
) -> None:
    reward = from_table(values)
    average = sum(
        p * q * max(0.0, values[sum(ideal)] - values[sum(played)])
        for (ideal, p), (played, q) in itertools.product(outcomes(best), outcomes(chosen))
    )
    ideal, played = (torch.tensor(means, dtype=torch.float64) for means in (best, chosen))
    clipped = expected_clipped(reward.outcomes(ideal), reward.outcomes(played))
    assert clipped == pytest.approx(average, abs=1e-9)


@settings(deadline=None)
@given(slates, slates, st.sampled_from([threshold, product, at_least_one]))
def test_clipped_of_a_zero_one_reward_is_best_times_failure(
    best: list[float], chosen: list[float], kind: Callable[[int], SlateReward]
) -> None:
    reward = kind(4)
    ideal, played = torch.tensor(best, dtype=torch.float64), torch.tensor(chosen, dtype=torch.float64)
    identity = float(reward.expected(ideal)) * (1 - float(reward.expected(played)))
    assert expected_clipped(reward.outcomes(ideal), reward.outcomes(played)) == pytest.approx(identity, abs=1e-12)


@settings(deadline=None)
@given(slates, st.integers(0, 3), st.sampled_from(KINDS))
def test_a_better_arm_never_lowers_the_expectation(
    means: list[float], which: int, kind: Callable[[int], SlateReward]
) -> None:
    better = list(means)
    better[which] = min(1.0, better[which] + 0.1)
    reward = kind(4)
    lower, upper = reward.expected(torch.tensor([means, better], dtype=torch.float64)).tolist()
    assert upper >= lower - 1e-12


@pytest.mark.parametrize(
    ("size", "fraction", "needed"),
    [(5, 0.8, 4), (10, 0.8, 8), (7, 0.8, 6), (3, 0.8, 3), (1, 0.8, 1), (5, 0.6, 3), (20, 0.15, 3), (5, 1.0, 5)],
)
def test_threshold_counts_up_and_survives_rounding(size: int, fraction: float, needed: int) -> None:
    assert threshold(size, fraction).values == tuple(float(j >= needed) for j in range(size + 1))


def test_the_named_rewards() -> None:
    assert mean(4).values == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert product(3).values == (0.0, 0.0, 0.0, 1.0)
    assert at_least_one(3).values == (0.0, 1.0, 1.0, 1.0)


def test_realised_counts_rewards_and_passes_on_what_was_not_seen() -> None:
    assert threshold(5).realised(torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0])) == 1.0
    assert threshold(5).realised(torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0])) == 0.0
    assert math.isnan(threshold(2).realised(torch.tensor([1.0, math.nan])))


def test_expected_takes_many_slates_at_once() -> None:
    means = torch.rand(6, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(mean(3).expected(means), means.mean(-1), atol=1e-14)
    assert torch.allclose(product(3).expected(means), means.prod(-1), atol=1e-14)


@pytest.mark.parametrize(
    "text", ["threshold", "threshold:0.6", "mean", "product", "at-least-one", "table:0,0,0.2,0.5,1,1"]
)
def test_a_parsed_reward_parses_again_from_its_name(text: str) -> None:
    reward = parse_reward(text, 5)
    assert parse_reward(reward.name, 5) == reward


def test_parsed_values() -> None:
    assert parse_reward("threshold", 5) == threshold(5, 0.8)
    assert parse_reward("threshold:0.6", 5).values == (0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    assert parse_reward(" table:0,0,0.2,0.5,1,1 ", 5).values == (0.0, 0.0, 0.2, 0.5, 1.0, 1.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sum", "expected threshold"),
        ("mean:2", "expected threshold"),
        ("threshold:most", "expected numbers"),
        ("threshold:0.1,0.2", "one fraction"),
        ("threshold:1.5", "fraction in (0, 1]"),
        ("threshold:nan", "fraction in (0, 1]"),
        ("table:0,1", "expected 6 values"),
        ("table:0,1,1,1,0.5,1", "never fall"),
        ("table:0,0,0,0,nan,1", "finite"),
    ],
)
def test_refuses_what_is_no_reward(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_reward(text, 5)
    assert says in str(refusal.value)


@pytest.mark.parametrize("size", [0, -1])
def test_refuses_empty_slates(size: int) -> None:
    kinds: list[Callable[[int], SlateReward]] = [*KINDS, partial(parse_reward, "mean")]
    for kind in kinds:
        with pytest.raises(ConfigError):
            kind(size)
