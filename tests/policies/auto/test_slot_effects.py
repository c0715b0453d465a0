"""Slot effects: simulated recovery beside predictions that are right, timid or bold, and saves."""

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

from neuclust.errors import StateError
from neuclust.policies.auto.slot_effects import SlotEffects
from neuclust.randomness import stream

FALLING = (1.0, 0.7, 0.5, 0.35, 0.25)
ALIKE = (1.0,) * 5


def simulated(looked: tuple[float, ...], rate: float, slates: int, slope: float = 1.0) -> SlotEffects:
    """Slates in the order of true chances; log-odds of predictions are `slope` times as far from the mean."""
    rng, effects = stream(0, "test slots", 0), SlotEffects(5)
    for _ in range(slates):
        odds = np.sort(0.3 * rng.normal() + 0.7 * rng.normal(size=5))[::-1]
        rewards = (rng.random(5) < expit(logit(rate) + odds) * np.array(looked)).astype(float)
        predicted = torch.from_numpy(expit(logit(rate) + slope * odds))
        effects.observe(torch.arange(5), predicted, torch.from_numpy(rewards))
    return effects


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.6])
@pytest.mark.parametrize("slope", [0.6, 1.0, 1.4])
def test_slots_that_are_alike_stay_alike(rate: float, slope: float) -> None:
    effects = simulated(ALIKE, rate, 400, slope)
    assert not effects.used
    assert torch.equal(effects.exposures(torch.tensor([0, 3])), torch.ones(2).double())
    assert effects.order(4).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("rate", "slates", "near"), [(0.02, 4000, 0.25), (0.2, 2000, 0.15), (0.6, 400, 0.15)])
@pytest.mark.parametrize("slope", [0.6, 1.0])
def test_slots_looked_at_less_are_found(rate: float, slates: int, near: float, slope: float) -> None:
    effects = simulated(FALLING, rate, slates, slope)
    assert effects.used
    found = effects.exposures(torch.arange(5))
    assert torch.allclose(found / found[0], torch.tensor(FALLING).double(), atol=near)
    assert float(found.mean()) == pytest.approx(1)


def test_the_best_arm_goes_to_the_slot_most_looked_at() -> None:
    effects = simulated((0.2, 0.5, 1.0, 0.8, 0.3), 0.5, 600)
    assert effects.order(5).tolist() == [4, 2, 0, 1, 3]  # slot 3 first, then 4, 2, 5 and 1
    assert effects.order(3).tolist() == [2, 1, 0]


def test_slots_without_rewards_seen_keep_their_estimate() -> None:
    effects, half = SlotEffects(3), torch.tensor([0.5, 0.5]).double()
    for t in range(50):
        effects.observe(torch.tensor([0, 2]), half, torch.tensor([1.0, float(t % 2)]).double())
    first, second, third = effects.estimates.tolist()
    assert first > second > third


def test_rewards_that_are_all_0_or_all_1_stay_finite() -> None:
    for reward in (0.0, 1.0):
        effects = SlotEffects(2)
        for predicted in (-0.5, 0.0, 1e-9, 1.0, 1.5) * 40:
            effects.observe(torch.arange(2), torch.full((2,), predicted).double(), torch.full((2,), reward).double())
        assert bool(torch.isfinite(effects.estimates).all())
        assert not effects.used


@pytest.mark.parametrize("slates", [0, 100])
def test_a_saved_state_goes_on_bit_for_bit(slates: int) -> None:
    effects, other = simulated(FALLING, 0.3, slates), SlotEffects(5)
    other.load_state_dict(effects.state_dict())
    for each in (effects, other):
        each.observe(torch.tensor([1, 4]), torch.tensor([0.2, 0.1]).double(), torch.tensor([1.0, 0.0]).double())
    first, second = effects.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("gram", -9 * torch.ones(2, 4, 4).double(), "negative eigenvalues"),
        ("totals", torch.tensor([-1.0, 2.0]).double(), "totals of at least 0"),
        ("moment", torch.zeros(2, 9).double(), "moment of shape"),
    ],
)
def test_states_that_cannot_have_been_saved_are_refused(name: str, value: torch.Tensor, says: str) -> None:
    with pytest.raises(StateError, match=says):
        SlotEffects(2).load_state_dict(SlotEffects(2).state_dict() | {name: value})
