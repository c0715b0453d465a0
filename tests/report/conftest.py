"""Records of invented runs, for the reports."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from neuclust.experiment.records import RunRecord

MakeRecord = Callable[..., RunRecord]


@pytest.fixture
def record() -> MakeRecord:
    """A record whose regret grows evenly to `regret`; best reward 0.8 a round, floor 0.16 a round."""

    def make(policy: str, seed: int, regret: float, rounds: int = 100, **more: object) -> RunRecord:
        curve = tuple((t, regret * t / rounds) for t in range(1, rounds + 1))
        values: dict[str, object] = {
            "policy": policy,
            "preset": "default",
            "env": "bump",
            "seed": seed,
            "rounds": rounds,
            "rounds_asked": rounds,
            "expected_regret": regret,
            "clipped_regret": 0.16 * rounds + 0.8 * regret,
            "expected_clipped_regret": 0.16 * rounds + 0.8 * regret,
            "clipped_floor": 0.16 * rounds,
            "successes": 0.8 * rounds - regret,
            "best_expected": 0.8 * rounds,
            "expected_reward": 0.8 * rounds - regret,
            "seconds": 2.0,
            "select_seconds": 1.25,
            "update_seconds": 0.5,
            "slate_size": 5,
            "curve": curve,
            "reward_curve": tuple((t, 0.8 * t - value) for t, value in curve),
        }
        return RunRecord(**(values | more))  # type: ignore[arg-type]

    return make
