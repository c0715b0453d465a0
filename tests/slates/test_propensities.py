"""The chances of slates: enumerated, against the formula written out, and against draws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ruled_rounds import finished_slates, naive_options, rounds
from scipy.stats import chisquare
from torch import Tensor

from neuclust.core import Cap, Design, Round, Rules
from neuclust.errors import ConfigError, DataError
from neuclust.policies.exploring import Exploring
from neuclust.randomness import stream
from neuclust.registry import build_policy
from neuclust.slates.propensities import (
    Exploration,
    SlateSampler,
    decisions_for_matches,
    insertion_chance,
    one_coin_slate,
    prefix_ratios,
    probability,
    sample,
    uniform_slate,
)
from neuclust.slates.rules import longest, option_counts

EPSILONS = st.sampled_from([0.0, 0.05, 0.5, 1.0])


@st.composite
def explorations(draw: st.DrawFn) -> Exploration:
    share = draw(EPSILONS)
    anywhere = draw(st.sampled_from([0.0, 0.2, 1.0] if share == 0 else [0.2, 1.0]))
    return Exploration(share, anywhere=anywhere)


def rows_of(round: Round) -> st.SearchStrategy[Tensor]:
    """Any rows, in any order, some perhaps twice: base slates foreign to the rules, too long or empty."""
    rows = st.lists(st.integers(0, len(round.arm_ids) - 1), max_size=6)
    return rows.map(lambda found: torch.tensor(found, dtype=torch.int64))


def naive_chance(
    position: int, chosen: tuple[int, ...], base: list[int], pool: list[int], round: Round, exploration: Exploration
) -> float:
    """P(a | S) term by term."""
    options = naive_options(round, chosen, longest(round))
    best = [row for row in base if row in options][:1]
    share = exploration.share if best else 1.0
    inside = sorted(set(pool) & set(options))
    total = (1 - share) * (best == [position])
    total += share * exploration.anywhere * (position in options) / len(options)
    part = share * (1 - exploration.anywhere)
    return total + part * (position in (inside or options)) / len(inside or options)


# --- one coin per slot ----------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(round=rounds(most_arms=5), exploration=explorations(), data=st.data())
def test_chances_sum_to_one_over_the_slates_that_rules_allow(
    round: Round, exploration: Exploration, data: st.DataObject
) -> None:
    """Fails when mass falls on slates that break the rules, that end early or that cannot be completed."""
    base, pool = data.draw(rows_of(round)), data.draw(rows_of(round))
    sampler = SlateSampler(base, pool, round, exploration)
    total = 0.0
    for slate, finished in finished_slates(round, longest(round)).items():
        chances = sampler.chances(slate)
        if not finished:
            assert not slate or math.prod(chances) == 0
            continue
        total += math.prod(chances)
        for place, position in enumerate(slate):
            expected = naive_chance(position, slate[:place], base.tolist(), pool.tolist(), round, exploration)
            assert chances[place] == pytest.approx(expected, abs=1e-15)
            if expected == 0:
                break
    assert total == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(round=rounds(), exploration=explorations(), data=st.data(), seed=st.integers(0, 2**63))
def test_a_drawn_slate_is_allowed_and_has_the_chance_it_says(
    round: Round, exploration: Exploration, data: st.DataObject, seed: int
) -> None:
    base, pool = data.draw(rows_of(round)), data.draw(rows_of(round))
    drawn = sample(base, pool, round, exploration, stream(seed, "test"))
    chances = probability(drawn.positions, base, pool, round, exploration)
    assert drawn.propensities.tolist() == chances.tolist()
    assert bool((chances > 0).all())
    rows = tuple(drawn.positions.tolist())
    assert naive_options(round, rows, longest(round)) == []
    assert drawn.explored.shape == drawn.positions.shape
    again = sample(base, pool, round, exploration, stream(seed, "test"))
    assert again.positions.tolist() == drawn.positions.tolist()


def test_an_explored_arm_of_the_base_slate_has_both_terms() -> None:
    round = Round(1, torch.arange(10), torch.ones(10, 2), None, 2)
    base, pool = torch.tensor([4, 5]), torch.tensor([4, 5, 6, 7])
    chances = probability(torch.tensor([4, 9]), base, pool, round, Exploration(0.1, anywhere=0.2))
    assert chances.tolist() == pytest.approx([0.9 + 0.1 * (0.8 / 4 + 0.2 / 10), 0.1 * 0.2 / 9])


def test_with_all_shares_at_zero_the_base_slate_is_certain() -> None:
    round = Round(1, torch.arange(10), torch.ones(10, 2), None, 3)
    drawn = sample(torch.tensor([4, 2, 8]), torch.arange(10), round, Exploration(share=0.0), stream(1, "test"))
    assert drawn.positions.tolist() == [4, 2, 8]
    assert drawn.propensities.tolist() == [1.0] * 3
    assert not bool(drawn.explored.any())


def test_explored_slots_are_those_drawn_from_all_arms() -> None:
    """Fails when draws from the pool count as explored; outside the pool nothing else can be drawn."""
    round = Round(1, torch.arange(40), torch.ones(40, 2), None, 3)
    sampler = SlateSampler(torch.tensor([0, 1, 2]), torch.arange(10), round, Exploration(0.5, anywhere=0.4))
    rng, outside, inside = stream(2, "test"), 0, 0
    for _ in range(2000):
        drawn = sampler.draw(rng)
        assert bool(drawn.explored[drawn.positions >= 10].all())
        outside += int((drawn.positions >= 10).sum())
        inside += int(drawn.explored[drawn.positions < 10].sum())
    share = 6000 * 0.5 * 0.4  # drawn from all 40 arms, three quarters of which are outside the pool
    assert abs(outside - 0.75 * share) < 5 * math.sqrt(0.75 * share)
    assert abs(inside - 0.25 * share) < 5 * math.sqrt(0.25 * share)


@pytest.mark.parametrize("name", ["base slate", "pool"])
@pytest.mark.parametrize("row", [-1, 4])
def test_rows_that_the_round_does_not_have_are_refused(name: str, row: int) -> None:
    round, good, bad = Round(1, torch.arange(4), torch.ones(4, 2), None, 2), torch.tensor([0]), torch.tensor([0, row])
    base, pool = (bad, good) if name == "base slate" else (good, bad)
    with pytest.raises(DataError, match=f"expected a {name} of rows from 0 to below 4"):
        sample(base, pool, round, Exploration(), stream(0, "test"))


def test_slates_of_foreign_rows_are_impossible() -> None:
    round, rows = Round(1, torch.arange(4), torch.ones(4, 2), None, 2), torch.tensor([0, 1])
    for slate in ([0, 4], [0, -1], [0, 0], [0], [0, 1, 2]):
        found = probability(torch.tensor(slate), rows, rows, round, Exploration())
        assert float(found.prod()) == 0
        assert found.shape == (len(slate),)
    assert probability(torch.tensor([0, 0]), rows, rows, round, Exploration())[0] > 0.9


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"share": 1.2}, "share: expected a number from 0 to 1"),
        ({"share": math.nan}, "share: expected a finite number"),
        ({"pool": 0}, "pool: expected a number of at least 1"),
        ({"pool": 2.5}, "pool: expected a whole number"),
        ({"anywhere": 1.1}, "anywhere: expected a number from 0 to 1"),
        ({"anywhere": 0.0}, "anywhere: expected a number above 0 where slots explore"),
    ],
)
def test_settings_that_cannot_work_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Exploration(**fields)


# --- draws ----------------------------------------------------------------------------------------------------------


def ruled(k: int = 3) -> Round:
    """Six arms, one required, one excluded, at most one of each pair."""
    rules = Rules(torch.tensor([4]), torch.tensor([0]), (Cap(torch.tensor([0, 0, 1, 1, 2, 3]), 1),))
    return Round(1, torch.arange(6), torch.ones(6, 2), None, k, rules=rules)


def crossed() -> Round:
    """Six arms in two rows and three columns, one of each: slates of one arm or two."""
    caps = (Cap(torch.tensor([0, 0, 0, 1, 1, 1]), 1), Cap(torch.tensor([0, 1, 1, 0, 1, 1]), 1))
    return Round(1, torch.arange(6), torch.ones(6, 2), None, 3, rules=Rules(caps=caps))


def few() -> Round:
    """Fewer arms than slots."""
    return Round(1, torch.arange(3), torch.ones(3, 2), None, 4)


def test_forbidden_slates_have_no_chance_of_six_arms_and_four_slots() -> None:
    """The third of the mass that falls on forbidden slates where A(S) is not used is on none."""
    round, rows = ruled(4), torch.tensor([0, 1, 3, 2])
    chances = {
        slate: float(probability(torch.tensor(slate), rows, rows, round, Exploration(0.5)).prod())
        for slate in permutations(range(6), 4)
    }
    assert sum(chances.values()) == pytest.approx(1.0, abs=1e-12)
    possible = {slate for slate, chance in chances.items() if chance > 0}
    assert possible == {
        slate for slate in chances if {4, 5} <= set(slate) and 0 not in slate and set(slate) != {2, 3, 4, 5}
    }


PROBLEMS: dict[str, Callable[[], Round]] = {"rules": ruled, "two caps": crossed, "few arms": few}


def agree(counts: Mapping[tuple[int, ...], int], chances: Mapping[tuple[int, ...], float]) -> None:
    """Chi-square of how often slates were drawn; those expected fewer than five times are one cell."""
    total = sum(counts.values())
    assert set(counts) <= {slate for slate, chance in chances.items() if chance > 0}
    cells: dict[tuple[int, ...], tuple[float, float]] = {}
    for slate, chance in chances.items():
        cell = slate if chance * total >= 5 else ()
        seen, expected = cells.get(cell, (0.0, 0.0))
        cells[cell] = seen + counts.get(slate, 0), expected + chance * total
    kept = [cell for cell in cells.values() if cell[1] > 0]
    assert len(kept) > 2
    assert chisquare([seen for seen, _ in kept], [expected for _, expected in kept]).pvalue > 1e-4


def draws_agree(round: Round, draws: int) -> None:
    base, pool = torch.tensor([0, 1, 2]), torch.tensor([0, 2])
    sampler, rng = SlateSampler(base, pool, round, Exploration(0.4, anywhere=0.3)), stream(5, "test draws")
    slates = [slate for slate, finished in finished_slates(round, longest(round)).items() if finished]
    counts = Counter(tuple(sampler.draw(rng).positions.tolist()) for _ in range(draws))
    agree(counts, {slate: math.prod(sampler.chances(slate)) for slate in slates})


@pytest.mark.parametrize("problem", PROBLEMS)
def test_draws_are_as_frequent_as_their_chance(problem: str) -> None:
    draws_agree(PROBLEMS[problem](), 10_000)


@pytest.mark.soak
@pytest.mark.parametrize("problem", PROBLEMS)
def test_many_draws_are_as_frequent_as_their_chance(problem: str) -> None:
    draws_agree(PROBLEMS[problem](), 200_000)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_uniform_slates_draw_each_slot_evenly(problem: str) -> None:
    round, rng, counts = PROBLEMS[problem](), stream(6, "test uniform"), Counter[tuple[int, ...]]()
    chances: dict[tuple[int, ...], float] = {}
    for slate, finished in finished_slates(round, longest(round)).items():
        sizes = [len(naive_options(round, slate[:place], longest(round))) for place in range(len(slate))]
        chances[slate] = 1 / math.prod(sizes) if finished else 0.0
    for _ in range(4000):
        drawn = uniform_slate(round, rng)
        slate = tuple(drawn.positions.tolist())
        counts[slate] += 1
        assert float(drawn.propensities.prod()) == pytest.approx(chances[slate], rel=1e-12)
    agree(counts, chances)


# --- one coin per slate ---------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(round=rounds(most_arms=5), epsilon=EPSILONS, data=st.data())
def test_one_coin_chances_are_the_mixture_and_sum_to_one(round: Round, epsilon: float, data: st.DataObject) -> None:
    slates = finished_slates(round, longest(round))
    finished = [slate for slate, ended in slates.items() if ended]
    greedy = data.draw(st.sampled_from(finished))
    total = 0.0
    for slate, ended in slates.items():
        ratios = prefix_ratios(torch.tensor(slate), torch.tensor(greedy), round, epsilon).tolist()
        sizes = [len(naive_options(round, slate[:place], longest(round))) for place in range(len(slate))]
        expected = (1 - epsilon) * (slate == greedy) + epsilon / math.prod(sizes) if ended else 0.0
        assert not slate or math.prod(ratios) == pytest.approx(expected, abs=1e-14)
        total += math.prod(ratios) if ended else 0.0
    assert total == pytest.approx(1.0, abs=1e-12)


def test_prefix_ratios_by_hand() -> None:
    """ε = ½ of five arms: slot 1 agrees with the greedy slate (½ + ½·⅕), slot 2 does not (½·⅕·¼ of that)."""
    round = Round(1, torch.arange(5), torch.ones(5, 2), None, 3)
    found = prefix_ratios(torch.tensor([2, 4, 0]), torch.tensor([2, 3, 4]), round, 0.5)
    assert found.tolist() == pytest.approx([0.6, (0.5 / 20) / 0.6, 1 / 3])


def test_long_slates_keep_their_digits() -> None:
    """Fails when the product of 1/|A(S)| over two hundred slots is divided by itself."""
    round = Round(1, torch.arange(1000), torch.ones(1000, 1), None, 200)
    greedy = torch.arange(200)
    even = [1 / (1000 - place) for place in range(200)]
    assert prefix_ratios(greedy, greedy, round, 1.0).tolist() == pytest.approx(even)
    other = torch.arange(200, 400)
    assert prefix_ratios(other, greedy, round, 0.5).tolist() == pytest.approx([0.0005, *even[1:]])
    assert prefix_ratios(greedy, greedy, round, 0.5).tolist() == pytest.approx([0.5005, *[1.0] * 199], abs=1e-3)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 12), data=st.data(), epsilon=EPSILONS, seed=st.integers(0, 2**63))
def test_without_rules_the_slates_are_those_of_epsilon_greedy(
    n: int, data: st.DataObject, epsilon: float, seed: int
) -> None:
    k = data.draw(st.integers(1, n))
    greedy = torch.tensor(data.draw(st.permutations(range(n)))[:k])
    round = Round(1, torch.arange(n), torch.ones(n, 2), None, k)
    rng, other = stream(seed, "test"), stream(seed, "test")
    positions, propensities = one_coin_slate(greedy, round, epsilon, rng)
    explores = other.random() < epsilon
    assert positions.tolist() == (other.choice(n, size=k, replace=False) if explores else greedy).tolist()
    assert rng.random() == other.random()  # as many numbers were drawn
    assert positions.dtype == torch.int64
    assert propensities.tolist() == prefix_ratios(positions, greedy, round, epsilon).tolist()


def test_one_coin_slates_within_rules_are_as_frequent_as_their_chance() -> None:
    round, greedy, rng = ruled(), torch.tensor([5, 4, 2]), stream(7, "test coin")
    slates = [slate for slate, finished in finished_slates(round, 3).items() if finished]
    chances = {s: float(prefix_ratios(torch.tensor(s), greedy, round, 0.6).prod()) for s in slates}
    counts = Counter(tuple(one_coin_slate(greedy, round, 0.6, rng)[0].tolist()) for _ in range(5000))
    agree(counts, chances)


@pytest.mark.parametrize("greedy", [[5, 2], [5, 4, 0], [1, 2, 5], [4, 4, 5], [5, 4, 9]])
def test_a_greedy_slate_that_breaks_the_rules_is_refused(greedy: list[int]) -> None:
    with pytest.raises(DataError, match="expected a greedy slate that keeps the rules"):
        one_coin_slate(torch.tensor(greedy), ruled(), 0.0, stream(0, "test"))


# --- how much data that is ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slot", [1, 3, 5])
@pytest.mark.parametrize("source", ["pool", "anywhere"])
def test_the_chance_of_an_insertion_is_that_of_the_slate(slot: int, source: Literal["pool", "anywhere"]) -> None:
    round = Round(1, torch.arange(300), torch.ones(300, 1), None, 5)
    base, pool, new = np.arange(5), torch.arange(20), 7 if source == "pool" else 70
    target = torch.from_numpy(np.insert(base, slot - 1, new)[:5])
    found = probability(target, torch.from_numpy(base), pool, round, Exploration())
    assert insertion_chance(300, 5, Exploration(), slot, source) == pytest.approx(float(found.prod()), rel=1e-12)


def test_decisions_for_a_hundred_matches_evenly_and_from_a_pool() -> None:
    """Evenly: 0.95⁴·0.05/300 per decision; from the pool: 0.9⁴·0.1·0.8/20, and a little more by the other terms."""
    evenly = decisions_for_matches(300, 5, Exploration(0.05, anywhere=1.0))
    assert evenly == pytest.approx(740_000, rel=0.01)
    assert evenly == pytest.approx(100 / (0.95**4 * 0.05 / 300), rel=0.001)
    pooled = decisions_for_matches(300, 5, Exploration())
    assert pooled == pytest.approx(38_000, rel=0.05)
    leading = 0.9**4 * 0.1 * 0.8 / 20
    assert pooled < 100 / leading == pytest.approx(38_000, rel=0.005)
    assert decisions_for_matches(300, 5, Exploration(), matches=50) == pooled / 2
    assert decisions_for_matches(300, 5, Exploration(), source="anywhere") > 50 * pooled
    assert decisions_for_matches(300, 5, Exploration(share=0.0)) == math.inf


def test_insertions_without_a_new_arm_are_refused() -> None:
    cases: list[Any] = [(300, 5, "pool"), (20, 20, "anywhere"), (5, 20, "pool"), (300, 20, "nowhere")]
    for arms, pool, source in cases:
        with pytest.raises(ConfigError, match="expected a slot of the slate and a new arm"):
            insertion_chance(arms, 5, Exploration(pool=pool), 1, source)
    with pytest.raises(ConfigError, match="slot 6"):
        insertion_chance(300, 5, Exploration(), 6)


def test_slates_tell_the_design_that_drew_them() -> None:
    """Fails when a design does not give the propensities that the slate reports."""
    round = Round(3, torch.arange(8), torch.eye(8, dtype=torch.float64), None, 3)
    exploration = Exploration(0.4, pool=5, anywhere=0.3)
    explored = Exploring(build_policy("linucb", dim=8, slate_size=3), exploration, seed=4).select(round)
    drawn = explored.drawn_by
    assert drawn.kind == "sequential"
    again = Exploration(drawn.share, anywhere=drawn.anywhere)
    found = probability(explored.positions, torch.tensor(drawn.base), torch.tensor(drawn.pool), round, again)
    assert explored.propensities is not None
    assert found.tolist() == explored.propensities.tolist()
    coin = build_policy("epsilon-greedy", dim=8, slate_size=3, overrides={"exploration": "1.5"}).select(round)
    assert coin.drawn_by.kind == "one-coin"
    chances = prefix_ratios(coin.positions, torch.tensor(coin.drawn_by.base), round, coin.drawn_by.share)
    assert coin.propensities is not None
    assert chances.tolist() == coin.propensities.tolist()
    assert build_policy("uniform", dim=8, slate_size=3).select(round).drawn_by.kind == "uniform"
    certain = build_policy("linucb", dim=8, slate_size=3).select(round)
    assert certain.drawn_by == Design("deterministic", tuple(certain.positions.tolist()))
    assert build_policy("lin-ts", dim=8, slate_size=3).select(round).drawn_by.kind == "unknown"
    assert option_counts(round, [4, 0, 7]) == (8, 7, 6)
