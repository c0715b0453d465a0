import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neuclust.core import Slate
from neuclust.environments.dealing import Arms, Simulated
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.structured import Cascade, DiminishingReturns, StructuredReward
from neuclust.environments.synthetic import FixedMeans
from neuclust.errors import ConfigError

N, K = 7, 3
REWARDS = [DiminishingReturns(K, 0.0), DiminishingReturns(K, 0.5), DiminishingReturns(K, 1.0), Cascade(K, 0.7)]
means_and_labels = st.tuples(
    st.lists(st.floats(0.0, 1.0), min_size=N, max_size=N), st.lists(st.integers(0, 2), min_size=N, max_size=N)
)


def slate(positions: tuple[int, ...]) -> Slate:
    zeros = torch.zeros(len(positions), dtype=torch.float64)
    return Slate(torch.tensor(positions), zeros, zeros)


def worth(reward: StructuredReward, means: Tensor, labels: Tensor) -> float:
    values, chances = reward.outcomes(means, labels)
    return float(values @ chances)


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: reward.name)
@given(drawn=means_and_labels)
def test_the_best_slate_is_the_best_of_all_ordered_slates(
    reward: StructuredReward, drawn: tuple[list[float], list[int]]
) -> None:
    means, labels = torch.tensor(drawn[0], dtype=torch.float64), torch.tensor(drawn[1])
    best = reward.best(means, labels, torch.arange(N))
    assert len(set(best.tolist())) == K
    found = worth(reward, means[best], labels[best])
    every = [list(places) for places in itertools.permutations(range(N), K)]
    assert found >= max(worth(reward, means[p], labels[p]) for p in every) - 1e-12


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: reward.name)
@given(drawn=means_and_labels)
def test_outcomes_are_the_distribution_of_what_is_realised(
    reward: StructuredReward, drawn: tuple[list[float], list[int]]
) -> None:
    means, labels = torch.tensor(drawn[0][:K], dtype=torch.float64), torch.tensor(drawn[1][:K])
    _, chances = reward.outcomes(means, labels)
    expected = 0.0
    for case in itertools.product((0.0, 1.0), repeat=K):
        rewards = torch.tensor(case, dtype=torch.float64)
        chance = float(torch.where(rewards > 0, means, 1 - means).prod())
        expected += chance * reward.realised(rewards, labels)
    assert float(chances.sum()) == pytest.approx(1.0)
    assert worth(reward, means, labels) == pytest.approx(expected)


def test_diminishing_returns_by_hand() -> None:
    paid, labels = torch.tensor([1.0, 1.0, 1.0], dtype=torch.float64), torch.tensor([4, 4, 9])
    assert DiminishingReturns(3, 0.0).realised(paid, labels) == pytest.approx(2 / 3)
    assert DiminishingReturns(3, 0.5).realised(paid, labels) == pytest.approx(2.5 / 3)
    assert DiminishingReturns(3, 1.0).realised(paid, labels) == pytest.approx(1.0)


def test_a_cascade_ends_with_the_first_that_pays() -> None:
    cascade, labels = Cascade(4, 0.5), torch.zeros(4, dtype=torch.int64)
    paid = torch.tensor([0.0, 1.0, 0.0, 1.0], dtype=torch.float64)
    assert cascade.realised(paid, labels) == 0.5
    assert torch.equal(torch.isnan(cascade.seen(paid)), torch.tensor([False, False, True, True]))
    assert cascade.realised(torch.zeros(4), labels) == 0.0
    assert not torch.isnan(cascade.seen(torch.zeros(4))).any()


@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: reward.name)
def test_an_environment_scores_by_the_structured_reward(reward: StructuredReward) -> None:
    means = torch.tensor([0.9, 0.85, 0.8, 0.6, 0.5, 0.1, 0.0], dtype=torch.float64)
    labels = torch.tensor([0, 0, 0, 1, 2, 1, 2])
    profiles = torch.rand(N, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    arms, spec = Arms(profiles, torch.arange(N), labels=labels), ProblemSpec(slate_size=K, horizon=1500)
    toy = SlateEnvironment("toy", arms, Simulated(FixedMeans(means)), spec, pays=reward)
    r = toy.round(1)
    every = [slate(places) for places in itertools.permutations(range(N), K)]
    assert toy.best_expected_reward(r) == pytest.approx(max(toy.expected_reward(r, one) for one in every))
    played = slate((3, 0, 1))
    scores = [toy.score(toy.round(t), played, toy.play(toy.round(t), played)) for t in range(1, 1501)]
    realised = torch.tensor([[one.realised_reward, one.rival_reward, one.clipped_regret] for one in scores])
    truth = torch.tensor([scores[0].expected, scores[0].best_expected, scores[0].expected_clipped_regret])
    assert torch.allclose(realised.mean(0), truth, atol=4 * float(realised.std(0).max()) / 1500**0.5)
    assert min(one.expected_regret for one in scores) >= 0
    with pytest.raises(ConfigError, match="pays by"):
        _ = toy.reward


def test_refuses_what_is_no_reward() -> None:
    for wrong in ((K, -0.1), (K, 1.1), (0, 0.5), (40, 0.5)):
        with pytest.raises(ConfigError):
            DiminishingReturns(*wrong)
    with pytest.raises(ConfigError):
        Cascade(3, 0.0)
