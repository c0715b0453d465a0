"""Slates put together across clusters are the best there are, against trying all of them."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from neuclust.kernels.ranking import top
from neuclust.randomness import stream
from neuclust.slates.assembly import (
    AssemblyConfig,
    SlateUtility,
    assemble,
    bounds,
    greedy_basis,
    greedy_slate,
    undominated,
)
from neuclust.slates.constraints import Rules
from neuclust.slates.slate_model import SlateModel, SlateModelConfig

N, K = 9, 3
FULL = AssemblyConfig(exact_slates=1000)
seeds = st.integers(0, 10_000)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.from_numpy(stream(seed, "test assembly", shape[0]).standard_normal(shape))


def labels(seed: int, purpose: str, count: int = 3) -> Tensor:
    return torch.from_numpy(stream(seed, purpose).integers(count, size=N))


def monotone(seed: int) -> SlateModel:
    """A real F with bent, unequal weights."""
    return SlateModel(SlateModelConfig(width=6, init="monotone"), K, seed)


def utility(
    seed: int, *, reads_values: bool, weight: float = 2.0, diversity: float = 0.0, ties: bool = False
) -> SlateUtility:
    values = draw(seed, N)
    values = values.round() if ties else values
    membership = torch.nn.functional.one_hot(labels(seed, "test categories")).to(torch.float64)
    reads = values if reads_values else draw(seed + 1, N, 1).squeeze(1)
    return SlateUtility(values, reads, torch.arange(N), monotone(seed).value, weight, membership, diversity)


def free(seed: int = 0, cap: int = K) -> Rules:
    nobody = torch.zeros(0, dtype=torch.int64)
    return Rules(torch.ones(N, dtype=torch.bool), nobody, labels(seed, "test categories"), cap)


def constrained(seed: int) -> Rules:
    """One required arm, two excluded, at most two of a category: always feasible with at least two categories."""
    order = torch.from_numpy(stream(seed, "test rules").permutation(N))
    allowed = torch.ones(N, dtype=torch.bool)
    allowed[order[1:3]] = False
    categories = labels(seed, "test categories")
    categories[order[3:5]] = torch.tensor([0, 1])
    return Rules(allowed, order[:1], categories, 2)


def feasible(rules: Rules) -> Tensor:
    """Every slate that keeps to the rules, (m, K)."""
    kept = []
    for slate in combinations(range(N), K):
        held = rules.categories[list(slate)].tolist()
        if (
            set(rules.required.tolist()) <= set(slate)
            and bool(rules.allowed[list(slate)].all())
            and max(held.count(c) for c in held) <= rules.cap
        ):
            kept.append(slate)
    return torch.tensor(kept)


@given(seed=seeds, ties=st.booleans())
def test_without_constraints_the_slate_is_the_top_k_whatever_f_is(seed: int, ties: bool) -> None:
    problem = utility(seed, reads_values=True, ties=ties)
    found = assemble(problem, free(seed), K, FULL, labels(seed, "test clusters"))
    assert found.positions.tolist() == top(problem.values, problem.rank, K).tolist()
    assert found.exact
    assert found.value == pytest.approx(float(problem.of(feasible(free(seed))).max()))


@given(seed=seeds, ties=st.booleans())
def test_greedy_is_best_under_caps_required_and_excluded_arms(seed: int, ties: bool) -> None:
    problem, rules = utility(seed, reads_values=True, ties=ties), constrained(seed)
    slate = greedy_basis(problem.values, problem.rank, rules, K)
    assert sorted(slate.tolist()) in [sorted(row) for row in feasible(rules).tolist()]
    assert float(problem.of(slate.unsqueeze(0))) == pytest.approx(float(problem.of(feasible(rules)).max()))
    assert assemble(problem, rules, K, FULL).positions.sort().values.tolist() == slate.sort().values.tolist()


@given(seed=seeds, diversity=st.sampled_from([0.0, 0.3, 2.0]), reads_values=st.booleans())
def test_small_cases_are_solved_exactly(seed: int, diversity: float, reads_values: bool) -> None:
    """F reads something else than v, or categories count: every slate is still beaten or equalled."""
    problem = utility(seed, reads_values=reads_values, diversity=diversity)
    rules = constrained(seed)
    problem = SlateUtility(
        problem.values, problem.reads, problem.rank, problem.slate_value, problem.slate_weight,
        torch.nn.functional.one_hot(rules.categories, 3).to(torch.float64), diversity,
    )  # fmt: skip
    found = assemble(problem, rules, K, FULL, labels(seed, "test clusters"))
    assert found.exact
    assert found.value == pytest.approx(float(problem.of(feasible(rules)).max()), abs=1e-7)
    assert sorted(found.positions.tolist()) in [sorted(row) for row in feasible(rules).tolist()]


@given(seed=seeds, diversity=st.floats(0.0, 3.0))
def test_counting_categories_with_additive_scores_stays_greedy(seed: int, diversity: float) -> None:
    problem, rules = utility(seed, reads_values=True, weight=0.0, diversity=diversity), free(seed, cap=2)
    slate = greedy_slate(problem, rules, undominated(problem, rules, torch.zeros(N, dtype=torch.int64), K), K)
    possible = feasible(rules)
    if len(possible):
        assert float(problem.of(slate.unsqueeze(0))) == pytest.approx(float(problem.of(possible).max()), abs=1e-7)


@given(seed=seeds, reads_values=st.booleans())
def test_some_best_slate_holds_undominated_arms_only(seed: int, reads_values: bool) -> None:
    problem, clusters = utility(seed, reads_values=reads_values, diversity=0.5), labels(seed, "test clusters")
    kept = set(undominated(problem, free(seed), clusters, K).tolist())
    slates = feasible(free(seed))
    inside = torch.tensor([set(row) <= kept for row in slates.tolist()])
    assert float(problem.of(slates[inside]).max()) == pytest.approx(float(problem.of(slates).max()))


@given(seed=seeds, reads_values=st.booleans())
def test_no_slate_exceeds_the_bound_of_an_arm_it_holds(seed: int, reads_values: bool) -> None:
    problem, slates = utility(seed, reads_values=reads_values, diversity=0.5), feasible(free())
    ceiling = bounds(problem, problem.values, problem.reads, slates[0], torch.arange(N))
    assert bool((problem.of(slates).unsqueeze(1) <= ceiling[slates] + 1e-9).all())


@settings(max_examples=30)
@given(seed=seeds)
def test_where_all_slates_are_too_many_swaps_still_never_lose_to_greedy(seed: int) -> None:
    problem, rules = utility(seed, reads_values=False, diversity=1.0), free(seed)
    found = assemble(problem, rules, K, AssemblyConfig(exact_slates=0), labels(seed, "test clusters"))
    start = greedy_slate(problem, rules, undominated(problem, rules, labels(seed, "test clusters"), K), K)
    assert not found.exact
    assert found.value >= float(problem.of(start.unsqueeze(0))) - 1e-9


def test_means_may_outvote_scores_where_f_reads_means() -> None:
    """The reduction to the top K needs F to read v: here the second arm's mean outweighs its smaller v."""
    values, means = torch.tensor([1.0, 0.9, 0.0]).double(), torch.tensor([0.0, 0.9, 0.0]).double()
    rules = Rules(torch.ones(3, dtype=torch.bool), torch.zeros(0, dtype=torch.int64), torch.zeros(3).long(), 1)
    apart = SlateUtility(values, means, torch.arange(3), lambda reads: reads.sum(1), 1.0)
    assert assemble(apart, rules, 1, FULL).positions.tolist() == [1]
    assert assemble(
        SlateUtility(values, values, torch.arange(3), lambda r: r.sum(1), 1.0), rules, 1, FULL
    ).positions.tolist() == [0]
