"""What a recommender asks of every policy: slates of any length, features of any width, rules, draws, shown rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from ruled_rounds import kept
from small_problems import clustered_profiles, feedback, same_state, small_environment, snapshot
from torch import Tensor

from neuclust.core import Cap, Feedback, Policy, Round, Rules, Slate
from neuclust.kernels.ranking import top
from neuclust.policies.exploring import HasScores
from neuclust.randomness import stream
from neuclust.recommender.learner import Revises, Settles
from neuclust.registry import POLICIES, build_policy, load_policy

K, N, WIDE = 3, 12, 7
TOLD = ("oracle", "cluster-oracle")  # their truth is that of the environment's rounds
BUILT = [(name, preset) for name, spec in POLICIES.items() for preset in spec.presets if name not in TOLD]
UNTRACKED = [(name, preset) for name, preset in BUILT if name != "neuclust-online"]  # it reads profiles that it tracks
BLIND = ("static", "uniform", "cc-mab", "acc-ucb")  # without scores, or with cells of contexts that hold many arms
every_policy = pytest.mark.parametrize(("name", "preset"), BUILT)


@dataclass(frozen=True)
class Shop:
    """What a policy is built for: arms with profiles (N, 4), and features (n, WIDE) in every round."""

    dim: int = WIDE
    slate_size: int = K

    @property
    def arm_ids(self) -> Tensor:
        return torch.arange(N) * 2 + 5

    @property
    def profiles(self) -> Tensor:
        return clustered_profiles(N, 4, 3)

    @property
    def means(self) -> Tensor:  # for `static`
        return torch.linspace(0, 1, N, dtype=torch.float64)

    def round(self, t: int, **fields: Any) -> Round:
        features = torch.from_numpy(stream(3, "features", t).random((N, WIDE)))
        return Round(t, self.arm_ids, self.profiles, None, fields.pop("k", K), features=features, **fields)


def build(name: str, preset: str, seed: int = 1) -> Policy:
    """The preset with two clusters, and fewer steps where one update makes hundreds of them."""
    slow = preset.startswith("authors") and hasattr(POLICIES[name].presets[preset], "arms")
    quick = {"arms.training.steps": "6"} if slow else {}
    problem: Any = small_environment(n=N, d=4, centres=3) if name in ("neuclust-online", "static") else Shop()
    return build_policy(name, preset=preset, environment=problem, seed=seed, clusters=2, overrides=quick)


def round_for(name: str, t: int, **fields: Any) -> Round:
    """A round the policy of this name can read: with features, or without for those that track profiles."""
    if name not in ("neuclust-online", "static"):
        return Shop().round(t, **fields)
    round = small_environment(n=N, d=4, centres=3).round(t)
    return replace(round, slate_size=fields.pop("k", K), **fields)


def rewards(t: int, k: int) -> Feedback:
    values = (stream(5, "rewards", t).random(k) < 0.4).astype(float).tolist()
    return feedback(values, sum(values) / k)


def play(policy: Policy, name: str, rounds: range, k: int = K) -> list[list[int]]:
    slates = []
    for t in rounds:
        round = round_for(name, t, k=k)
        slate = policy.select(round)
        policy.update(round, slate, rewards(t, k))
        slates.append(slate.positions.tolist())
    return slates


# --- slates of any length, features of any width ----------------------------------------------------------------


@every_policy
def test_any_k_up_to_the_slate_size_is_played_and_learned(name: str, preset: str) -> None:
    policy = build(name, preset)
    for t, k in enumerate((1, 3, 2, 1), start=1):
        round = round_for(name, t, k=k)
        slate = policy.select(round)
        assert slate.means.shape == slate.bonuses.shape == (k,)
        assert len(set(slate.positions.tolist())) == k
        assert all(0 <= row < N for row in slate.positions.tolist())
        before = snapshot(policy)
        policy.update(round, slate, rewards(t, k))
        learns = name not in ("uniform", "static")
        assert same_state(before, snapshot(policy)) != learns


@pytest.mark.parametrize(("name", "preset"), [each for each in UNTRACKED if each[0] not in BLIND])
def test_what_is_read_are_the_features_and_not_the_profiles(name: str, preset: str) -> None:
    """Scores change with the features, and not with profiles of the same arms."""
    policy, round = build(name, preset), Shop().round(5)
    play(policy, name, range(1, 5))
    assert isinstance(policy, HasScores)
    assert round.features is not None
    scores, other = policy.scores(round), replace(round, profiles=round.profiles + 1)
    assert torch.equal(scores, policy.scores(other))
    changed = policy.scores(replace(round, features=round.features.flip(1)))
    assert torch.equal(scores, changed) == (name in ("cucb", "popular"))


# --- rules --------------------------------------------------------------------------------------------------------


def rules_of(kind: str, ids: Tensor) -> Rules:
    groups = Cap(torch.arange(N) % 4, 1)
    return {
        "required": Rules(required=ids[[7, 2]]),
        "excluded": Rules(excluded=ids[[0, 1, 3, 4, 5, 9]]),
        "one cap": Rules(caps=(groups,)),
        "two caps": Rules(required=ids[[3]], excluded=ids[[8]], caps=(groups, Cap(torch.arange(N) // 4, 2))),
    }[kind]


# refuses clusters of fewer than K offered arms, as rules leave them
STRICT = [
    (name, preset)
    for name, preset in BUILT
    if name.startswith("neuclust") and preset in ("paper-literal", "authors-ml", "authors-yelp")
]


SOME = ("default", "linear", "paper", "found-clusters")  # other presets have the same code around them


@pytest.mark.parametrize("kind", ["required", "excluded", "one cap", "two caps"])
@pytest.mark.parametrize(("name", "preset"), [each for each in BUILT if each not in STRICT and each[1] in SOME])
def test_rules_are_kept(name: str, preset: str, kind: str) -> None:
    policy = build(name, preset)
    for t in (1, 2):
        round = round_for(name, t)
        round = replace(round, rules=rules_of(kind, round.arm_ids))
        slate = policy.select(round)
        assert kept(round, slate.positions.tolist())
        assert len(slate.positions) == K or kind == "two caps"
        assert slate.propensities is None or bool(((slate.propensities > 0) & (slate.propensities <= 1)).all())
        policy.update(replace(round, slate_size=len(slate.positions)), slate, rewards(t, len(slate.positions)))


# --- scores, draws, propensities ----------------------------------------------------------------------------------

BY_CLUSTER = ("neuclust", "neuclust-online", "neuclust-across")  # the best arms of one cluster, or one of each
TIES = ("auto", "neural-mab", "cucb", "cc-mab", "acc-ucb", "epsilon-greedy", "linucb-disjoint")  # see their tests


@pytest.mark.parametrize(("name", "preset"), [(n, p) for n, p in BUILT if n not in (*BY_CLUSTER, *TIES, "uniform")])
def test_scores_rank_as_select_does(name: str, preset: str) -> None:
    policy = build(name, preset)
    play(policy, name, range(1, 4))
    for t in (4, 5):
        round = round_for(name, t)
        assert isinstance(policy, HasScores)
        best = top(policy.scores(round), round.arm_ids, K)
        assert policy.select(round).positions.tolist() == best.tolist()


@every_policy
def test_randomness_follows_the_draw_and_propensities_say_so(name: str, preset: str) -> None:
    """The same draw gives the same slate whatever t is; propensities are ones where no draw changes anything."""
    policy = build(name, preset)
    play(policy, name, range(1, 4))
    round = round_for(name, 4)
    slates = [policy.select(replace(round, draw=draw)) for draw in range(12)]
    for draw, slate in enumerate(slates[:4]):
        later = policy.select(replace(round, draw=draw, t=9))
        assert later.positions.tolist() == slate.positions.tolist()
        assert later.propensities is None or torch.equal(later.propensities, _exact(slate))
    if len({tuple(slate.positions.tolist()) for slate in slates}) > 1:
        assert all(slate.propensities is None or float(slate.propensities.prod()) < 1 for slate in slates)
    for slate in slates:
        assert slate.propensities is None or bool(((slate.propensities > 0) & (slate.propensities <= 1)).all())
    assert (
        policy.select(replace(round, draw=4)).positions.tolist()
        == policy.select(replace(round, t=4, draw=None)).positions.tolist()
    )


def _exact(slate: Slate) -> Tensor:
    assert slate.propensities is not None
    return slate.propensities


CERTAIN = ["linucb:default", "popular:default", "auto:linear", "neuclust:default", "cn-ucb:default", "static:default"]


@pytest.mark.parametrize("policy", CERTAIN)
def test_what_leaves_nothing_to_chance_reports_ones(policy: str) -> None:
    name, _, preset = policy.partition(":")
    built = build(name, preset)
    play(built, name, range(1, 4))
    assert _exact(built.select(round_for(name, 4))).tolist() == [1.0] * K


@pytest.mark.parametrize("policy", ["lin-ts", "cn-ts", "neural-ts", "auto", "neural-linear"])
def test_draws_without_a_closed_form_report_none(policy: str) -> None:
    assert build(policy, "default").select(round_for(policy, 1)).propensities is None


# --- what is learned ----------------------------------------------------------------------------------------------


def shown(round: Round, slate: Slate) -> tuple[Round, Slate]:
    """The round with the slate's rows alone, and the slate in it."""
    k = len(slate.positions)
    return round.only(slate.positions, k), replace(slate, positions=torch.arange(k))


# the authors' scan reads every offered arm; found clusters are merged by the arms that are offered
ALL_ROWS = [("neuclust", "authors-ml"), ("neuclust", "authors-yelp"), ("neuclust-across", "found-clusters")]


@pytest.mark.parametrize(
    ("name", "preset"), [each for each in UNTRACKED if each[0] != "static" and each not in ALL_ROWS]
)
def test_the_shown_rows_teach_the_same_as_all_rows(name: str, preset: str) -> None:
    full, brief = build(name, preset), build(name, preset)
    if isinstance(brief, Settles):
        brief.settle(round_for(name, 1))
    for t in range(1, 5):
        round = round_for(name, t, k=1 + t % K)
        slate, heard = full.select(round), rewards(t, 1 + t % K)
        full.update(round, slate, heard)
        brief.update(*shown(round, slate), heard)
    assert same_state(snapshot(full), snapshot(brief))
    assert full.select(round_for(name, 9)).positions.tolist() == brief.select(round_for(name, 9)).positions.tolist()


REVISED = ["linucb", "lin-ts", "cucb", "popular"]


@pytest.mark.parametrize("name", REVISED)
def test_a_revision_equals_having_learned_the_right_rewards_at_once(name: str) -> None:
    late, right = build(name, "default"), build(name, "default")
    assert isinstance(late, Revises)
    first = [feedback([0.0, 1.0, math.nan], 0.5), feedback([0.0, 0.0, 0.0], 0.0)]
    final = [feedback([1.0, 0.25, 1.0], 0.75), feedback([0.0, 0.0, 1.0], 1.0)]
    rounds = [round_for(name, t) for t in (1, 2)]
    slates = [right.select(round) for round in rounds]
    for policy, heard in ((late, first), (right, final)):
        for round, slate, each in zip(rounds, slates, heard, strict=True):
            policy.update(round, slate, each)
    for round, slate, before, after in zip(rounds, slates, first, final, strict=True):
        late.revise(*shown(round, slate), before, after)
    learned, expected = snapshot(late), snapshot(right)
    assert learned.keys() == expected.keys()
    for entry in learned:
        torch.testing.assert_close(learned[entry], expected[entry], rtol=1e-9, atol=1e-12, equal_nan=True)
    assert isinstance(late, HasScores)
    assert isinstance(right, HasScores)
    torch.testing.assert_close(late.scores(round_for(name, 7)), right.scores(round_for(name, 7)))


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in TOLD])
def test_a_saved_policy_continues_with_short_slates(name: str, tmp_path: Path) -> None:
    straight = build(name, "default")
    play(straight, name, range(1, 3), k=2)
    straight.save(tmp_path / "policy")
    again = load_policy(tmp_path / "policy")
    assert play(straight, name, range(3, 6), k=1) == play(again, name, range(3, 6), k=1)
    assert same_state(snapshot(straight), snapshot(again))
