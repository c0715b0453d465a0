from collections.abc import Callable

import numpy as np
import pytest
import torch
from small_problems import not_none

from neuclust.core import Slate
from neuclust.environments import beyond, shops
from neuclust.environments.beyond import lifetimes
from neuclust.environments.dealing import Delivery
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.synthetic import clusters
from neuclust.errors import ConfigError

PROBLEMS: dict[str, Callable[..., SlateEnvironment]] = {
    "coverage": beyond.coverage,
    "redundancy": beyond.redundancy,
    "cascade": beyond.cascade,
    "drift-none": beyond.drift_none,
    "drift-abrupt": beyond.drift_abrupt,
    "drift-slow": beyond.drift_slow,
    "delayed": beyond.delayed,
    "missing": beyond.missing,
    "turnover": beyond.turnover,
    "many-arms": beyond.many_arms,
    "long-slate": beyond.long_slate,
    "shop-rare": shops.shop_rare,
    "shop-late": shops.shop_late,
    "shop-tastes": shops.shop_tastes,
    "shop-items": shops.shop_items,
    "shop-slots": shops.shop_slots,
    "money": shops.money,
    "long-life": shops.long_life,
}


def first_arms(environment: SlateEnvironment) -> Slate:
    k = environment.slate_size
    return Slate(torch.arange(k), torch.zeros(k), torch.zeros(k))


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.nan_to_num(nan=-1.0), right.nan_to_num(nan=-1.0))


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_means_are_chances_and_no_slate_beats_the_best(name: str) -> None:
    problem = PROBLEMS[name](horizon=20, seed=3)
    assert problem.name == name
    generator = np.random.default_rng(0)
    for t in (1, 11, 20):
        r = problem.round(t)
        means = problem.means(r)
        assert 0.0 <= float(means.min()) <= float(means.max()) <= (1000.0 if name == "money" else 1.0)
        best = problem.best_expected_reward(r)
        k = problem.slate_size
        assert problem.expected_reward(r, Slate(problem.best_positions(r), means[:k], means[:k])) == pytest.approx(best)
        good = torch.topk(means, 40).indices
        for _ in range(40):
            drawn = good[torch.from_numpy(generator.permutation(40)[:k])]
            assert problem.expected_reward(r, Slate(drawn, means[:k], means[:k])) <= best + 1e-12


@pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "many-arms"])
def test_everybody_meets_the_same_rounds_coins_and_gaps(name: str) -> None:
    one, two, other = (PROBLEMS[name](horizon=60, seed=seed) for seed in (5, 5, 6))
    slate, paid = first_arms(one), []
    for t in range(60, 0, -1):  # in any order
        assert torch.equal(one.round(t).arm_ids, two.round(t).arm_ids)
        first, second = one.play(one.round(t), slate), two.play(two.round(t), slate)
        assert same(first.arm_rewards, second.arm_rewards)
        assert one.arrival(t) == two.arrival(t)
        paid.append((first.arm_rewards, other.play(other.round(t), slate).arm_rewards))
    assert any(not same(mine, theirs) for mine, theirs in paid)


def test_abrupt_drift_changes_the_truth_once_in_the_middle() -> None:
    problem = beyond.drift_abrupt(horizon=40, seed=1, arms_per_round=None)
    means = [problem.means(problem.round(t)).clone() for t in range(1, 41)]
    changed = [t for t in range(2, 41) if not torch.equal(means[t - 1], means[t - 2])]
    assert changed == [21]
    assert not set(torch.topk(means[0], 5).indices.tolist()) & set(torch.topk(means[-1], 5).indices.tolist())


def test_slow_drift_changes_a_little_in_every_round_and_much_in_all() -> None:
    problem = beyond.drift_slow(horizon=100, seed=1, arms_per_round=None)
    means = torch.stack([problem.means(problem.round(t)).clone() for t in range(1, 101)])
    steps = (means[1:] - means[:-1]).abs().amax(1)
    assert float(steps.min()) > 0
    assert float(steps.max()) < 0.06
    assert float((means[-1] - means[0]).abs().max()) > 0.6


def test_without_drift_nothing_changes() -> None:
    problem = beyond.drift_none(horizon=30, seed=1, arms_per_round=None)
    assert torch.equal(problem.means(problem.round(1)), problem.means(problem.round(30)))


def test_half_of_the_feedback_is_50_rounds_late() -> None:
    problem = beyond.delayed(horizon=500, seed=2)
    waits = [not_none(problem.arrival(t)) - t for t in range(1, 501)]
    assert set(waits) == {0, 50}
    assert 0.43 < np.mean(np.array(waits) == 50) < 0.57


def test_missing_feedback_is_lost_by_round_and_by_arm_and_still_scored() -> None:
    problem, slate = beyond.missing(horizon=500, seed=2), None
    gone, unseen = 0, []
    for t in range(1, 501):
        r, slate = problem.round(t), first_arms(problem)
        feedback = problem.play(r, slate)
        gone += problem.arrival(t) is None
        unseen.append(torch.isnan(feedback.arm_rewards).double().mean())
        assert np.isfinite(problem.score(r, slate, feedback).realised_regret)
    assert 0.14 < gone / 500 < 0.26
    assert 0.25 < float(torch.stack(unseen).mean()) < 0.35


def test_delayed_and_missing_have_the_truth_of_clusters() -> None:
    plain = clusters(horizon=10, seed=4)
    for problem in (beyond.delayed(horizon=10, seed=4), beyond.missing(horizon=10, seed=4)):
        for t in (1, 10):
            assert torch.equal(problem.means(problem.round(t)), plain.means(plain.round(t)))
            feedback, whole = (one.play(one.round(t), first_arms(one)) for one in (problem, plain))
            seen = ~torch.isnan(feedback.arm_rewards)
            assert torch.equal(feedback.arm_rewards[seen], whole.arm_rewards[seen])
            assert feedback.slate_reward == whole.slate_reward


def test_arms_come_and_go_for_good() -> None:
    problem = beyond.turnover(horizon=200, seed=0, arms_per_round=None)
    present = np.zeros((200, 5000), dtype=bool)
    for t in range(1, 201):
        present[t - 1, problem.round(t).arm_ids.numpy()] = True
    assert 700 < present.sum(1).min() <= present.sum(1).max() < 1300
    assert present.any(0).mean() > 0.95
    starts = (np.diff(present.astype(int), axis=0, prepend=0) == 1).sum(0)
    assert starts.max() == 1  # nobody returns
    assert not (present[0] & present[-1]).any()


def test_lifetimes_are_one_length() -> None:
    born, gone = lifetimes(100, 20, 50, seed=0)
    assert len(set((gone - born).tolist())) == 1
    assert born.min() < 1 <= born.max() <= 50


def test_a_slate_across_clusters_is_what_coverage_pays_for() -> None:
    problem = beyond.coverage(horizon=5, seed=1)
    r = problem.round(1)
    best = problem.best_positions(r)
    assert len(set(problem.labels(r)[best].tolist())) == 5
    top = torch.topk(problem.means(r), 5).indices
    assert problem.expected_reward(r, Slate(top, top, top)) < problem.best_expected_reward(r) - 0.2


def test_long_slates_need_more_than_one_cluster() -> None:
    problem = beyond.long_slate(horizon=5, seed=1)
    r = problem.round(1)
    assert len(problem.best_positions(r)) == 20
    assert len(set(problem.labels(r)[problem.best_positions(r)].tolist())) > 1


def test_refusals() -> None:
    for wrong in (
        {"late": 0.7, "lost": 0.5},
        {"unseen": 1.5},
        {"lost": -0.1},
        {"delay": -1},
        {"delay": 5, "latest": 4},
    ):
        with pytest.raises(ConfigError, match="delivery"):
            Delivery(0, **wrong)
    with pytest.raises(ConfigError, match="slate reward"):
        beyond.coverage(reward=clusters().reward)
    with pytest.raises(ConfigError, match="offered"):
        beyond.drift_slow(arms_per_round=3)
