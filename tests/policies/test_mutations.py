"""Every policy has a check of its rule, and the check notices a named way of breaking the rule.

A check is a function that raises AssertionError where the policy does something else than it says. Most are tests of
the policy's own file. A mutation breaks the policy alone, never what the check compares it with.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import naive_reference as naive
import pytest
import test_across
import test_adaptive_cells
import test_auto
import test_cluster_oracle
import test_combinatorial_sampling
import test_counts
import test_cubes
import test_epsilon_greedy
import test_linear
import test_linear_armwise
import test_linear_sampling
import test_neuclust
import test_neural_linear
import test_neural_linucb
import test_neural_mab
import test_popular
import test_reference_policies
import torch
from small_problems import small_environment
from torch import Tensor

from neuclust.kernels.ranking import top
from neuclust.models.arm_model import ArmModel
from neuclust.models.armwise import ArmwiseRidge
from neuclust.models.confidence import DiagonalConfidence
from neuclust.models.mean_rewards import ContextTree, KeyedMeans
from neuclust.models.tracker import ProfileTracker
from neuclust.policies import across, combinatorial_neural, neuclust, neural_mab, reference, tabular
from neuclust.policies.auto.ensemble import Ensemble
from neuclust.policies.linear import LinearTS, SharedLinUCB
from neuclust.policies.neural_linear import NeuralLinear, NeuralLinUCB
from neuclust.randomness import stream
from neuclust.registry import POLICIES, build_policy
from neuclust.slates import ties
from neuclust.slates.constraints import Constraints, rules

K = 3
Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Case:
    """A check, and a mutation by name that it must notice."""

    check: Callable[[], None]
    mutation: str
    mutate: Callable[[Patch], None]


def changed(owner: Any, name: str, value: Any) -> Callable[[Patch], None]:
    return lambda patch: patch.setattr(owner, name, value, raising=False)


def nothing(*_: Any, **__: Any) -> None:
    """In place of a step that is left out."""


# --- checks that no other file has ----------------------------------------------------------------------------


def explicit_neural_ucb(name: str) -> None:
    """The named policy plays the top K of f + γ√(ĝᵀZ⁻¹ĝ), with Z an explicit matrix of autograd gradients."""
    environment = small_environment()
    policy: Any = build_policy(name, environment=environment, overrides={"network.width": "6", "encoder.rho": "5"})
    arms = policy.config.arms
    full, z = arms.confidence.form == "full", None
    for t in range(1, 9):
        round = environment.round(t)
        weights, scale = policy.arms.net.weights, math.sqrt(6)
        xs = list(round.contexts / 5)
        g = [naive.gradient(weights, x, scale) / scale for x in xs]
        z = arms.confidence.ridge * torch.eye(len(g[0]), dtype=torch.float64) if z is None else z
        f = [float(naive.forward(weights, x, scale)) for x in xs]
        bonuses = [arms.schedule.gamma * naive.width(z, one) for one in g]
        slate = policy.select(round)
        chosen = slate.positions.tolist()
        assert chosen == naive.top(
            [a + b for a, b in zip(f, bonuses, strict=True)], round.arm_ids.tolist(), range(48), K
        )
        assert slate.bonuses.tolist() == pytest.approx([bonuses[i] for i in chosen], abs=1e-8)
        policy.update(round, slate, environment.play(round, slate))
        for i in chosen:
            gain = torch.outer(g[i], g[i])
            z = z + (gain if full else torch.diag(torch.diag(gain)))


# --- mutations longer than a line -----------------------------------------------------------------------------


def one_draw_for_all_arms(uniform: Any, samples: int) -> Tensor:
    return LARGEST_NORMAL(uniform, samples)[:1].expand(len(uniform))


def learned_without_rewards(self: SharedLinUCB, x: Tensor, columns: Tensor, rewards: Tensor) -> None:
    LEARN(self, x, columns, torch.zeros_like(rewards))


LEARN = SharedLinUCB._learn


def own_model_without_rewards(self: ArmwiseRidge, arm: int, x: Tensor, reward: float) -> Tensor:
    return OWN_LEARN(self, arm, x, 0.0)


OWN_LEARN = ArmwiseRidge.learn


def one_draw_an_arm(self: NeuralLinear, features: Tensor, t: int) -> Tensor:
    """Thompson sampling as if every arm's reward were independent of the others'."""
    noise = torch.from_numpy(STREAM(self.seed, "neural-linear", t).standard_normal(len(features)))
    return self.posterior.means(features) + self.config.spread * self.posterior.widths(features) * noise


def rebuilt_after_training(self: NeuralLinUCB, *arguments: Any) -> None:
    """What NeuralLinear does: old plays are seen with new features."""
    NEURAL_UPDATE(self, *arguments)
    contexts, means, plays = self.history.targets()
    self.ridge.rebuild(self.net.features(contexts), means * plays, plays, 0.0)


NEURAL_UPDATE = NeuralLinUCB.update


class NeverBelow:
    """A generator whose coin never falls on exploring."""

    def random(self) -> float:
        return 1.0


def same_every_round(seed: int, purpose: str, t: int = 0) -> Any:
    return STREAM(seed, purpose, 0)


STREAM = stream


def worst_first(scores: Tensor, rank: Tensor, k: int) -> Tensor:
    return TOP(-scores, rank, k)


TOP = top


def top_by_quality(value: Any, qualities: Tensor, rank: Tensor, k: int) -> Tensor:
    return TOP(qualities, rank, k)


RULES = rules
LARGEST_NORMAL = combinatorial_neural.largest_normal

CASES: dict[str, Case] = {
    "auto": Case(
        test_auto.test_the_learner_of_the_most_evidence_leads,
        "the first learner always leads",
        changed(Ensemble, "leader", property(lambda self: next(iter(self.learners)))),
    ),
    "neuclust": Case(
        lambda: test_neuclust.test_25_rounds_equal_the_plain_algorithm("default"),
        "the worst cluster wins",
        changed(neuclust, "first_largest", lambda values: int(values.argmin())),
    ),
    "neuclust-online": Case(
        test_neuclust.test_the_online_variant_chooses_from_what_it_tracked,
        "the tracker is told nothing",
        changed(ProfileTracker, "observe", nothing),
    ),
    "neuclust-across": Case(
        test_across.test_one_of_each_cluster_and_required_and_excluded_arms_are_kept_to,
        "constraints are dropped",
        changed(across, "rules", lambda kept, *rest, **more: RULES(Constraints(), *rest, **more)),
    ),
    "cn-ucb": Case(
        lambda: explicit_neural_ucb("cn-ucb"), "the bonus is dropped", changed(ArmModel, "gamma", lambda self: 0.0)
    ),
    "neural-ucb": Case(
        lambda: explicit_neural_ucb("neural-ucb"),
        "the covariance never grows",
        changed(DiagonalConfidence, "observe", nothing),
    ),
    "cn-ts": Case(
        lambda: test_combinatorial_sampling.test_selection_equals_sampling_from_explicit_gaussians("full"),
        "one draw for all arms",
        changed(combinatorial_neural, "largest_normal", one_draw_for_all_arms),
    ),
    "neural-ts": Case(
        lambda: test_combinatorial_sampling.test_selection_equals_sampling_from_explicit_gaussians("diagonal"),
        "the mean in place of a sample",
        changed(combinatorial_neural, "largest_normal", lambda u, _: torch.zeros(len(u), dtype=torch.float64)),
    ),
    "neural-linear": Case(
        lambda: test_neural_linear.test_selection_equals_a_regression_on_all_plays("ts"),
        "one draw an arm in place of one a round",
        changed(NeuralLinear, "_scores", one_draw_an_arm),
    ),
    "neural-linucb": Case(
        lambda: test_neural_linucb.test_selection_equals_linucb_on_features_as_they_were("bandit"),
        "old plays seen with new features",
        changed(NeuralLinUCB, "update", rebuilt_after_training),
    ),
    "neural-mab": Case(
        lambda: test_neural_mab.test_the_slate_grows_by_the_largest_marginal_contribution("plain"),
        "marginal contributions ignored",
        changed(neural_mab, "greedy_slate", top_by_quality),
    ),
    "epsilon-greedy": Case(
        test_epsilon_greedy.test_it_explores_as_often_as_it_says,
        "it never explores",
        changed(combinatorial_neural, "stream", lambda *_: NeverBelow()),
    ),
    "linucb": Case(
        lambda: test_linear.test_selection_equals_explicit_ridge_regression(0.3, False, 4),
        "the update ignores rewards",
        changed(SharedLinUCB, "_learn", learned_without_rewards),
    ),
    "linucb-disjoint": Case(
        lambda: test_linear_armwise.test_selection_equals_the_published_algorithm(False, 0.3, None),
        "an arm's own model ignores rewards",
        changed(ArmwiseRidge, "learn", own_model_without_rewards),
    ),
    "linucb-hybrid": Case(
        lambda: test_linear_armwise.test_selection_equals_the_published_algorithm(True, 0.3, None),
        "arms share nothing",
        changed(ArmwiseRidge, "theta_sum", property(lambda self: torch.zeros(self.dim, dtype=torch.float64))),
    ),
    "lin-ts": Case(
        test_linear_sampling.test_the_slate_is_greedy_for_one_draw_of_the_posterior,
        "the mean in place of a draw",
        changed(LinearTS, "_draw", lambda self, factor, t: self._estimate(factor)),
    ),
    "cc-mab": Case(
        lambda: test_cubes.test_selection_equals_a_dictionary_of_cubes(5.0, True),
        "no cube is ever under-explored",
        changed(tabular, "plays_wanted", lambda *_: -1.0),
    ),
    "acc-ucb": Case(
        lambda: test_adaptive_cells.test_selection_equals_a_tree_of_boxes(1.0, 0.6),
        "cells are never split",
        changed(ContextTree, "split", nothing),
    ),
    "cucb": Case(
        lambda: test_counts.test_selection_equals_a_dictionary_of_rewards(None),
        "the bonus loses log t",
        changed(tabular, "math", types.SimpleNamespace(log=lambda t: 1.0)),
    ),
    "popular": Case(
        test_popular.test_scores_are_smoothed_mean_rewards,
        "arms are not drawn towards the mean reward of all plays",
        changed(KeyedMeans, "totals", lambda self: (0.0, 0.0)),
    ),
    "uniform": Case(
        test_reference_policies.test_every_arm_and_every_slot_is_equally_likely,
        "the same slate every round",
        changed(reference, "stream", same_every_round),
    ),
    "static": Case(
        test_reference_policies.test_static_keeps_the_offered_arms_with_the_largest_averages,
        "the worst arms are kept",
        changed(ties, "top", worst_first),
    ),
    "cluster-oracle": Case(
        lambda: test_cluster_oracle.test_it_plays_the_best_slate_of_the_best_cluster("mean"),
        "the worst cluster is played",
        changed(reference, "max", min),
    ),
    "oracle": Case(
        test_reference_policies.test_the_oracle_has_no_regret,
        "the worst arms are played",
        changed(ties, "top", worst_first),
    ),
}


def test_every_policy_has_a_case() -> None:
    assert set(POLICIES) - set(CASES) == set(), "a policy without a check and a mutation; add them to CASES"
    assert set(CASES) - set(POLICIES) == set(), "a case whose policy is gone"


@pytest.mark.parametrize("name", list(CASES))
def test_the_policy_keeps_its_rule(name: str) -> None:
    CASES[name].check()


@pytest.mark.parametrize("name", [pytest.param(name, id=f"{name}: {case.mutation}") for name, case in CASES.items()])
def test_a_broken_policy_is_noticed(name: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        CASES[name].mutate(patch)
        with pytest.raises(AssertionError):
            CASES[name].check()
