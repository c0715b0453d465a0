"""Item effects: simulated recovery at every rate, a table that stays bounded, saves."""

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

from neuclust.core import Feedback, Round
from neuclust.errors import StateError
from neuclust.policies.auto import item_effects
from neuclust.policies.auto.item_effects import ItemEffects
from neuclust.policies.auto.policy import Auto
from neuclust.randomness import stream
from neuclust.registry import build_policy

ITEMS = 100


def simulated(rate: float, spread: float, slates: int, seed: int = 0) -> tuple[ItemEffects, torch.Tensor]:
    """Slates of 5 out of 100 items with log-odds of their own, and those log-odds."""
    rng, effects = stream(seed, "test items", 0), ItemEffects()
    own = spread * rng.normal(size=ITEMS)
    for _ in range(slates):
        ids = rng.choice(ITEMS, 5, replace=False)
        p = expit(logit(rate) + 0.7 * rng.normal(size=5))
        rewards = (rng.random(5) < expit(logit(p) + own[ids])).astype(float)
        effects.observe(torch.from_numpy(ids), torch.from_numpy(p), torch.from_numpy(rewards))
    return effects, torch.from_numpy(own)


@pytest.mark.parametrize("rate", [0.005, 0.02, 0.2, 0.6, 0.95])
def test_without_effects_items_change_nothing(rate: float) -> None:
    effects, _ = simulated(rate, 0.0, 400)
    chances = torch.linspace(-0.1, 1.1, ITEMS, dtype=torch.float64)
    assert effects.spread == 0
    assert torch.equal(effects.gains(torch.arange(ITEMS), chances), torch.zeros_like(chances))
    assert effects.shifted(torch.arange(ITEMS), chances) is chances


@pytest.mark.parametrize(("rate", "slates"), [(0.02, 1000), (0.1, 400), (0.6, 300), (0.9, 400)])
def test_effects_are_found_and_follow_the_truth(rate: float, slates: int) -> None:
    effects, own = simulated(rate, 1.0, slates)
    assert effects.spread > 0.5
    chances = torch.full((ITEMS,), rate, dtype=torch.float64)
    shifts = torch.logit(effects.shifted(torch.arange(ITEMS), chances)) - logit(rate)
    assert np.corrcoef(shifts, own)[0, 1] > 0.6
    assert float(((shifts - own) ** 2).mean()) < 0.75 * float((own**2).mean())


def test_predictions_too_high_for_all_items_are_no_item_effect() -> None:
    rng, effects = stream(0, "test items", 1), ItemEffects()
    for _ in range(400):
        ids, p = torch.from_numpy(rng.choice(ITEMS, 5, replace=False)), torch.full((5,), 0.2, dtype=torch.float64)
        effects.observe(ids, p, torch.from_numpy((rng.random(5) < 0.05).astype(float)))
    assert effects.spread == 0


def test_a_new_item_is_scored_above_its_prediction_and_a_known_one_near_its_own() -> None:
    effects, own = simulated(0.2, 1.0, 400)
    ids, chances = torch.tensor([10**12, int(own.argmax()), int(own.argmin())]), torch.full((3,), 0.2).double()
    new, best, worst = effects.gains(ids, chances).tolist()
    assert best > new > 0 > worst
    assert float(effects.shifted(ids, chances)[0]) == pytest.approx(0.2)


def test_before_the_first_reward_what_was_shown_least_comes_first() -> None:
    effects, ids, p = ItemEffects(), torch.tensor([4, 7]), torch.tensor([0.3, 0.2]).double()
    asked, chances = torch.tensor([7, 9, 4]), torch.tensor([0.9, 0.1, 0.2]).double()
    assert effects.gains(asked, chances, all_zero=True).tolist() == [0, 0, 0]  # nothing was shown
    effects.observe(ids, p, torch.zeros(2).double())
    effects.observe(ids[:1], p[:1], torch.zeros(1).double())
    assert effects.gains(asked, chances, all_zero=True).tolist() == pytest.approx([-0.5, 0.0, -1.5])
    assert effects.gains(asked, chances).tolist() == [0, 0, 0]
    assert ItemEffects(possible=False).gains(asked, chances, all_zero=True).tolist() == [0, 0, 0]


def test_early_observations_lose_their_weight() -> None:
    effects, chances = ItemEffects(), torch.tensor([0.5]).double()
    for t in range(1, 201):
        effects.observe(torch.tensor([7]), chances, torch.tensor([float(t <= 100)]).double())
    rewards, _, number = effects._of(np.array([7]))[:, 0]
    assert rewards == pytest.approx(sum(range(1, 101)) / 200)
    assert number == pytest.approx(sum(range(1, 201)) / 200)


def test_the_table_is_bounded_and_forgets_what_was_seen_least_and_longest_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_effects, "MOST", 20)
    monkeypatch.setattr(item_effects, "KEPT", 10)
    effects, one = ItemEffects(), torch.tensor([0.5]).double()
    for t in range(1, 200):
        for each in (1000 - t, 5):  # ids never seen again, in falling order, and one that is always there
            effects.observe(torch.tensor([each]), one, one)
        assert len(effects.state_dict()["ids"]) <= 20
    held = effects.state_dict()["ids"].tolist()
    assert {5, 801, 802}.issubset(held)
    assert len(set(held)) == len(held)
    assert 900 not in held
    always = effects._of(np.array([5]))[:, 0].tolist()
    assert always[2] == pytest.approx(sum(range(2, 399, 2)) / 398)  # moved with its sums


def test_a_table_grows_beyond_its_first_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_effects, "ROOM", 2)
    effects = ItemEffects()
    for first in range(0, 60, 10):
        half = torch.full((10,), 0.5, dtype=torch.float64)
        effects.observe(torch.arange(first, first + 10), half, half)
    assert effects.state_dict()["ids"].tolist() == list(range(60))
    assert effects._of(np.arange(60))[2].tolist() == pytest.approx([(1 + i // 10) / 6 for i in range(60)])
    assert effects._of(np.array([60]))[2].tolist() == [0.0]


@pytest.mark.parametrize("slates", [0, 60])
def test_a_saved_table_goes_on_bit_for_bit(slates: int) -> None:
    effects, _ = simulated(0.3, 1.0, slates)
    other = ItemEffects()
    other.load_state_dict(effects.state_dict())
    ids, chances, rewards = (
        torch.tensor([3, 200, 9]),
        torch.tensor([0.2, 0.6, 0.1]).double(),
        torch.tensor([1.0, 0.0, 1.0]).double(),
    )
    for each in (effects, other):
        each.observe(ids, chances, rewards)
    first, second = effects.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ids", torch.tensor([2, 2]), "each once"),
        ("sums", -torch.ones(3, 2).double(), "sums of at least 0"),
        ("sums", torch.ones(3, 1).double(), "sums of shape"),
        ("slates", torch.tensor(0), "slates above 0"),
    ],
)
def test_states_that_cannot_have_been_saved_are_refused(name: str, value: torch.Tensor, says: str) -> None:
    effects = ItemEffects()
    half = torch.tensor([0.5, 0.5]).double()
    effects.observe(torch.tensor([1, 2]), half, half)
    with pytest.raises(StateError, match=says):
        ItemEffects().load_state_dict(effects.state_dict() | {name: value})


def test_auto_learns_items_whose_features_say_nothing() -> None:
    rng = stream(0, "test items", 2)
    chances = expit(logit(0.3) + 1.5 * rng.normal(size=40))
    policy = build_policy("auto", dim=2, slate_size=4, seed=0, overrides={"ensemble.learners": "linear"})
    paid = []
    for t in range(1, 251):
        contexts = torch.from_numpy(rng.normal(size=(40, 2)))
        round = Round(t=t, arm_ids=torch.arange(40), profiles=contexts, query=None, slate_size=4)
        slate = policy.select(round)
        rewards = torch.from_numpy((rng.random(4) < chances[slate.positions.numpy()]).astype(float))
        policy.update(round, slate, Feedback(rewards, rewards.sum()))
        paid.append(float(chances[slate.positions.numpy()].mean()))
    assert isinstance(policy, Auto)
    assert policy.explain().items > 0
    assert np.mean(paid[-50:]) > 0.5 * (np.sort(chances)[-4:].mean() + chances.mean())
