"""Reported propensities against what policies really select, over many draws of the same round."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from ruled_rounds import kept
from scipy.stats import chisquare, norm
from small_problems import clustered_profiles, feedback

from neuclust.core import Cap, Policy, Round, Rules, Slate
from neuclust.policies.exploring import Exploring
from neuclust.registry import build_policy
from neuclust.slates.propensities import Exploration

N, D = 5, 3
LEAST_CHANCE = 1e-4
EXPLORING = Exploration(share=0.4, pool=3, anywhere=0.5)
POLICIES: dict[str, tuple[str, dict[str, str]]] = {
    "uniform": ("uniform", {}),  # exploration is ε_4 = c/4 below
    "epsilon-greedy": ("epsilon-greedy", {"exploration": "2"}),
    "neural-mab": ("neural-mab", {"epsilon": "1.6"}),
    "cc-mab": ("cc-mab", {}),
    "linucb, exploring": ("linucb", {}),
    "popular, exploring": ("popular", {}),
    "auto:linear, exploring": ("auto:linear", {}),
}  # fmt: skip
RULES: dict[str, tuple[int, Rules | None]] = {
    "no rules": (2, None),
    "required and excluded": (3, Rules(required=torch.tensor([11]), excluded=torch.tensor([8]))),
    "excluded": (2, Rules(excluded=torch.tensor([8]))),
    "a cap": (3, Rules(caps=(Cap(torch.tensor([0, 0, 1, 1, 2]), 1),))),
    "two caps": (3, Rules(caps=(Cap(torch.tensor([0, 0, 1, 1, 2]), 1), Cap(torch.tensor([0, 1, 0, 1, 1]), 2)))),
}


def round_of(t: int, k: int = 3, **fields: Any) -> Round:
    return Round(t, torch.arange(N) * 3 + 5, clustered_profiles(N, D, 2), None, k, **fields)


def learned(title: str) -> Policy:
    """A policy that has seen three slates."""
    name, overrides = POLICIES[title]
    policy = build_policy(name, dim=D, slate_size=3, seed=4, overrides=overrides)
    for t in (1, 2, 3) if name != "cc-mab" else ():  # which explores cubes that were played too little
        policy.update(round_of(t), policy.select(round_of(t)), feedback([1.0, 0.0, float(t == 2)], 0.5))
    return Exploring(policy, EXPLORING, seed=4) if title.endswith("exploring") else policy


def selections(policy: Policy, rules: str, draws: int) -> list[Slate]:
    k, kept_rules = RULES[rules]
    round = round_of(4, k, rules=kept_rules)
    return [policy.select(replace(round, draw=draw)) for draw in range(draws)]


def chance_of(slate: Slate) -> float:
    assert slate.propensities is not None
    return float(slate.propensities.prod())


def check_chances(slates: list[Slate]) -> None:
    """χ² of slates by their reported chances; what was never seen, and cells of fewer than 5 expected, are one cell."""
    seen = Counter(tuple(slate.positions.tolist()) for slate in slates)
    reported: dict[tuple[int, ...], set[float]] = {}
    for slate in slates:
        reported.setdefault(tuple(slate.positions.tolist()), set()).add(round(chance_of(slate), 14))
    assert all(len(chances) == 1 for chances in reported.values())  # one chance per slate, whatever the draw
    expected = {slate: len(slates) * chances.pop() for slate, chances in reported.items()}
    assert sum(expected.values()) <= len(slates) * (1 + 1e-9)
    large = [slate for slate in seen if expected[slate] >= 5]
    cells = [(float(seen[slate]), expected[slate]) for slate in large]
    rest = len(slates) - sum(count for count, _ in cells), len(slates) - sum(mean for _, mean in cells)
    if rest[1] >= 5:
        cells.append(rest)
    else:
        assert rest[0] <= 30
        cells[-1] = cells[-1][0] + rest[0], cells[-1][1] + rest[1]
    assert len(cells) > 2
    counts, means = [count for count, _ in cells], [mean for _, mean in cells]
    assert chisquare(counts, means).pvalue > LEAST_CHANCE


EXACT = [(t, r) for t in POLICIES for r in RULES if t != "cc-mab" or r in ("no rules", "excluded")]


@pytest.mark.parametrize(("title", "rules"), EXACT)
def test_slates_come_as_often_as_their_propensities_say(title: str, rules: str) -> None:
    check_chances(selections(learned(title), rules, 150 if title.startswith("auto") else 400))


@pytest.mark.soak
@pytest.mark.parametrize(("title", "rules"), EXACT)
def test_slates_come_as_often_as_their_propensities_say_20_000_times(title: str, rules: str) -> None:
    check_chances(selections(learned(title), rules, 20_000))


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("title", POLICIES)
def test_what_is_drawn_keeps_the_rules(title: str, rules: str) -> None:
    k, kept_rules = RULES[rules]
    round = round_of(4, k, rules=kept_rules)
    assert all(kept(round, slate.positions.tolist()) for slate in selections(learned(title), rules, 60))


@pytest.mark.parametrize("rules", ["required and excluded", "a cap", "two caps"])
def test_chances_that_other_answers_share_have_no_closed_form(rules: str) -> None:
    """Random answers of cc-mab enter in part under such rules, and different ones end with the same slate."""
    assert all(slate.propensities is None for slate in selections(learned("cc-mab"), rules, 100))


# --- around a policy that is itself random ------------------------------------------------------------------------


def check_weights(slates: list[Slate]) -> None:
    """Importance weighting is unbiased: E[1{S = s}/p(S)] = 1 for every slate s that is possible.

    Given the base slate, 1{S = s}/p has mean 1 and variance 1/p − 1; the sum over n draws is about normal.
    """
    weights: dict[tuple[int, ...], list[float]] = {}
    for slate in slates:
        weights.setdefault(tuple(slate.positions.tolist()), []).append(1 / chance_of(slate))
    for found in weights.values():
        if len(found) >= 30:
            variance = sum(weight * (weight - 1) for weight in found)  # estimates Σ (1/p − 1)
            z = (sum(found) - len(slates)) / math.sqrt(variance)
            assert 2 * norm.sf(abs(z)) > LEAST_CHANCE / len(weights)
    total = sum(sum(found) for found in weights.values()) / len(slates)
    assert total == pytest.approx(N * (N - 1), rel=0.25)  # every ordered pair is possible


@pytest.mark.parametrize("name", ["lin-ts", pytest.param("auto", marks=pytest.mark.soak)])
def test_given_a_random_base_slate_weights_are_unbiased(name: str) -> None:
    policy = build_policy(name, dim=D, slate_size=3, seed=4)
    for t in (1, 2, 3):
        policy.update(round_of(t), policy.select(round_of(t)), feedback([1.0, 0.0, 0.0], 0.5))
    exploring, round = Exploring(policy, EXPLORING, seed=4), round_of(4, 2)
    bases = {tuple(policy.select(replace(round, draw=draw)).positions.tolist()) for draw in range(40)}
    assert len(bases) > 1
    check_weights([exploring.select(replace(round, draw=draw)) for draw in range(1_000)])
