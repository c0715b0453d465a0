"""Records of invented runs, for the tests of numbers and reports."""

from __future__ import annotations

from typing import Any, Protocol

from neuclust.experiment.records import RunRecord


class MakeRecord(Protocol):
    """A record whose regret grows evenly to `regret`; other fields by name."""

    def __call__(self, policy: str, seed: int, regret: float, rounds: int = 100, **more: Any) -> RunRecord: ...


def invented(policy: str, seed: int, regret: float, rounds: int = 100, **more: Any) -> RunRecord:
    """A record whose regret grows evenly to `regret`; best reward 0.8 per round, floor 0.16 per round."""
    curve = tuple((t, regret * t / rounds) for t in range(1, rounds + 1))
    values: dict[str, Any] = {
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
    return RunRecord(**(values | more))
