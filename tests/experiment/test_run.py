"""The loop adds up what the environment says, in the right order, and can be stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from neuclust.core import Feedback, Round, Slate
from neuclust.data.dataset import ProfileDataset
from neuclust.environments.profiles import profile_environment
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, StateError
from neuclust.experiment.run import RunLabel, Tally, is_curve_point, run
from neuclust.randomness import stream


class Scripted:
    """Plays the positions it is told to and writes down what it is asked."""

    def __init__(self, positions: list[int]) -> None:
        self.positions = positions
        self.calls: list[tuple[str, int]] = []

    def select(self, round: Round) -> Slate:
        self.calls.append(("select", round.t))
        nothing = torch.zeros(len(self.positions))
        return Slate(torch.tensor(self.positions), nothing, nothing)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        self.calls.append(("update", round.t))

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None: ...

    def save(self, directory: Path) -> None: ...


def small_environment(rounds: int = 300) -> SlateEnvironment:
    generator = stream(0, "test arms")
    dataset = ProfileDataset(
        name="small",
        arms=generator.uniform(0.5, 5.0, (12, 3)).astype(np.float32),
        rounds=generator.integers(0, 2, (rounds, 3)).astype(np.float32),
        arm_ids=np.arange(12),
        round_ids=np.arange(rounds),
        features=("a", "b", "c"),
    )
    return profile_environment(dataset, slate_size=3, seed=5)


LABEL = RunLabel("scripted", "fixed", settings={"a": "1"}, problem={"arms_per_round": None})


def test_the_sums_are_those_of_the_scores() -> None:
    environment, policy = small_environment(), Scripted([4, 1, 7])
    record = run(policy, environment, 250, 5, label=LABEL)
    scores = []
    for t in range(1, 251):
        round = environment.round(t)
        slate = policy.select(round)
        scores.append(environment.score(round, slate, environment.play(round, slate)))
    assert record.expected_regret == pytest.approx(sum(s.best_expected - s.expected for s in scores), abs=1e-9)
    assert record.clipped_regret == sum(s.clipped_regret for s in scores)
    assert record.expected_clipped_regret == pytest.approx(sum(s.expected_clipped_regret for s in scores))
    assert record.clipped_floor == pytest.approx(sum(s.clipped_floor for s in scores))
    assert record.successes == sum(s.realised_reward for s in scores)
    assert record.best_expected == pytest.approx(sum(s.best_expected for s in scores))
    assert record.expected_reward == pytest.approx(sum(s.expected for s in scores))
    assert record.realised_regret == sum(s.rival_reward - s.realised_reward for s in scores)
    assert record.mean_gap == pytest.approx(sum(s.mean_gap for s in scores))
    assert record.expected_regret > 1.0
    assert 0.0 < record.clipped_floor < record.expected_clipped_regret


def test_each_round_is_selected_then_updated_once() -> None:
    policy = Scripted([0, 1, 2])
    run(policy, small_environment(), 3, 0, label=LABEL)
    assert policy.calls == [(step, t) for t in (1, 2, 3) for step in ("select", "update")]


def test_the_record_says_what_ran() -> None:
    record = run(Scripted([0, 1, 2]), small_environment(), 10, 17, label=LABEL)
    assert (record.policy, record.preset, record.env, record.seed) == ("scripted", "fixed", "small", 17)
    assert (record.rounds, record.rounds_asked, record.interrupted, record.slate_size) == (10, 10, False, 3)
    assert record.settings == {"a": "1"}
    assert record.seconds >= record.select_seconds + record.update_seconds > 0.0
    assert run(Scripted([0, 1, 2]), small_environment(), 1, 0, label=RunLabel("x", env="other")).env == "other"


@given(st.integers(1, 3000))
def test_curve_points_are_few_and_end_with_the_last_round(rounds: int) -> None:
    points = [t for t in range(1, rounds + 1) if is_curve_point(t, rounds)]
    assert points[-1] == rounds
    assert len(points) == min(rounds, 200)


def test_the_curves_rise_to_the_totals() -> None:
    record = run(Scripted([4, 1, 7]), small_environment(), 270, 0, label=LABEL)
    assert record.curve[-1] == (270, record.expected_regret)
    assert record.reward_curve[-1] == (270, record.expected_reward)
    values = [value for _, value in record.curve]
    assert values == sorted(values)
    assert len(record.curve) == 200


def test_stopping_keeps_the_rounds_so_far() -> None:
    assert not is_curve_point(213, 270)
    seen: list[int] = []
    record = run(
        Scripted([4, 1, 7]),
        small_environment(),
        270,
        0,
        label=LABEL,
        on_round=lambda tally: seen.append(tally.rounds),
        stop=lambda: len(seen) >= 213,
    )
    assert seen == list(range(1, 214))
    assert record.interrupted
    assert (record.rounds, record.rounds_asked) == (213, 270)
    assert record.curve[-1] == (213, record.expected_regret)
    whole = run(Scripted([4, 1, 7]), small_environment(), 213, 0, label=LABEL)
    assert record.expected_regret == whole.expected_regret


@pytest.mark.parametrize("rounds", [0, 301])
def test_impossible_lengths_are_refused(rounds: int) -> None:
    with pytest.raises(ConfigError, match=f"expected 1 to 300 rounds, got {rounds}"):
        run(Scripted([0, 1, 2]), small_environment(), rounds, 0, label=LABEL)


def test_an_unobserved_slate_reward_is_not_added_up() -> None:
    environment = small_environment()
    round = environment.round(1)
    slate = Scripted([0, 1, 2]).select(round)
    unseen = Feedback(torch.full((3,), torch.nan), torch.tensor(torch.nan))
    with pytest.raises(StateError, match="round 1: expected a finite regret"):
        Tally(10).add(environment.score(round, slate, unseen))
