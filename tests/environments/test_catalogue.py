import numpy as np
import pytest
import torch
from small_problems import built_in, not_none

import neuclust
from neuclust.core import Slate
from neuclust.environments.catalogue import ENVIRONMENTS
from neuclust.environments.rewards import SlateReward, mean
from neuclust.errors import ConfigError


def test_lists_each_problem_with_a_summary() -> None:
    names = ["movielens-twin", "cold-start", "yelp-twin", "yelp-volatile", "clusters", "bump", "quadratic"]
    assert list(ENVIRONMENTS)[: len(names)] == names
    assert all(spec.name == name and spec.summary for name, spec in ENVIRONMENTS.items())


@pytest.mark.parametrize("name", list(ENVIRONMENTS))
def test_each_problem_plays(name: str) -> None:
    problem = built_in(name, slate_size=4, horizon=30, seed=2)
    assert (problem.name, problem.horizon, problem.slate_size) == (name, 30, 4)
    own = "mean" if name.startswith("shop-") or name == "long-life" else "threshold:0.8"
    assert not isinstance(problem.pays, SlateReward) or problem.pays.name == own
    for t in (1, 30):
        r = problem.round(t)
        slate = Slate(torch.arange(4), torch.zeros(4), torch.zeros(4))
        score = problem.score(r, slate, problem.play(r, slate))
        assert 0 <= score.expected <= score.best_expected <= (1000 if name == "money" else 1)


def test_a_run_seed_deals_coins_and_not_the_users() -> None:
    first, second = (built_in("movielens-twin", slate_size=5, horizon=40, seed=s) for s in (0, 1))
    assert torch.equal(first.profiles, second.profiles)
    assert torch.equal(not_none(first.counts), not_none(second.counts))
    slate = Slate(torch.arange(5), torch.zeros(5), torch.zeros(5))
    played = []
    for problem in (first, second):
        rounds = [problem.round(t) for t in range(1, 41)]
        played.append(torch.stack([problem.play(r, slate).arm_rewards for r in rounds]))
    assert not torch.equal(*played)


def test_more_rounds_than_real_movies_keep_the_first_ones() -> None:
    short = built_in("movielens-twin", slate_size=5, horizon=100, seed=0)
    long = built_in("movielens-twin", slate_size=5, horizon=6500, seed=0)
    assert torch.equal(short.profiles, long.profiles)
    assert all(torch.equal(not_none(short.round(t).query), not_none(long.round(t).query)) for t in (1, 50, 100))
    assert float(not_none(long.round(6500).query).sum()) >= 1


def test_cold_start_shows_little_of_the_same_users() -> None:
    warm = built_in("movielens-twin", slate_size=5, horizon=50, seed=0)
    cold = built_in("cold-start", slate_size=5, horizon=50, seed=0)
    barely = built_in("cold-start", slate_size=5, horizon=50, seed=0, start_ratings=1)
    assert torch.equal(warm.means(warm.round(9)), cold.means(cold.round(9)))
    assert float(not_none(cold.counts).max()) == 5
    assert float(not_none(barely.counts).max()) == 1
    assert float(not_none(warm.counts).mean()) > 20
    known = [float((problem.profiles > 0).double().mean()) for problem in (barely, cold, warm)]
    assert known == sorted(known)
    gap = (cold.profiles - warm.profiles)[not_none(cold.counts) > 0]
    assert 0.3 < float(gap.std()) < 1.2


def test_rewards_and_offers_can_be_chosen() -> None:
    named = built_in("bump", slate_size=5, horizon=5, seed=0, reward="threshold:0.6", arms_per_round=50)
    given = built_in("quadratic", slate_size=5, horizon=5, seed=0, reward=mean(5))
    assert named.reward.values == (0, 0, 0, 1, 1, 1)
    assert len(named.round(1).arm_ids) == 50
    assert given.reward == mean(5)
    part = built_in("movielens-twin", slate_size=5, horizon=5, seed=0, arms_per_round=300)
    assert len(np.unique(part.round(2).arm_ids.numpy())) == 300


@pytest.mark.parametrize(
    ("wrong", "first"), [("movielens", "movielens-twin"), ("coldstart", "cold-start"), ("bumps", "bump")]
)
def test_an_unknown_name_is_answered_with_the_closest_first(wrong: str, first: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        built_in(wrong, slate_size=5, horizon=5, seed=0)
    assert str(refusal.value).startswith(f"environment: no built-in problem {wrong!r}; did you mean {first}")


def test_a_name_like_no_other_is_answered_with_all_of_them() -> None:
    with pytest.raises(ConfigError) as refusal:
        built_in("xyzzy", slate_size=5, horizon=5, seed=0)
    assert str(refusal.value).endswith(f"expected one of {', '.join(ENVIRONMENTS)}")


def test_replay_is_no_name_but_a_file_and_the_answer_says_how_to_make_it() -> None:
    with pytest.raises(ConfigError, match=r"environment: replay .* needs a prepared file"):
        built_in("replay", slate_size=5, horizon=5, seed=0)


def test_the_yelp_twin_has_a_static_best_slate_and_the_volatile_one_has_not() -> None:
    whole = built_in("yelp-twin", slate_size=5, horizon=40, seed=0)
    part = built_in("yelp-volatile", slate_size=5, horizon=40, seed=0)
    assert (whole.n_arms, whole.dim) == (52_268, 171)
    assert len(part.round(1).arm_ids) == 250
    plain = set(whole.arm_ids.tolist()) - set(part.arm_ids.tolist())
    assert 300 < len(plain) < 600
    kept = torch.argsort(-whole.average_means(), stable=True)[:5]
    assert set(kept.tolist()) <= plain
    losses = []
    for t in range(1, 41):
        r = whole.round(t)
        static = Slate(kept, torch.zeros(5), torch.zeros(5))
        losses.append(whole.best_expected_reward(r) - whole.expected_reward(r, static))
    assert sum(losses) < 0.05
    average = part.average_means()
    gap = 0.0
    for t in range(1, 41):
        r = part.round(t)
        rows = torch.searchsorted(part.arm_ids, r.arm_ids)
        static = Slate(torch.argsort(-average[rows])[:5], torch.zeros(5), torch.zeros(5))
        gap += part.best_expected_reward(r) - part.expected_reward(r, static)
    assert gap > 1.0


@pytest.mark.parametrize("name", ["clusters", "yelp-twin", "yelp-volatile"])
def test_refuses_start_ratings_where_there_are_none(name: str) -> None:
    with pytest.raises(ConfigError, match="cold-start"):
        built_in(name, slate_size=5, horizon=5, seed=0, start_ratings=3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"horizon": 0},
        {"slate_size": 0},
        {"slate_size": 600},
        {"reward": "best"},
        {"reward": mean(4)},
        {"arms_per_round": 3},
    ],
)
def test_refuses_what_cannot_be_played(wrong: dict[str, object]) -> None:
    settings: dict[str, object] = {"slate_size": 5, "horizon": 5, "seed": 0, **wrong}
    with pytest.raises(ConfigError):
        built_in("bump", **settings)


def test_a_misspelt_field_is_answered_with_the_closest() -> None:
    with pytest.raises(ConfigError, match=r"^slate_sze: no such field of a problem; did you mean slate_size\?$"):
        neuclust.build_environment("bump", slate_sze=3)
