"""One record with every kind of column filled in."""

from __future__ import annotations

from neuclust.experiment.records import RunRecord

EXAMPLE = RunRecord(
    policy="linucb",
    preset="default",
    env="bump",
    seed=3,
    rounds=2,
    expected_regret=0.5,
    clipped_regret=1.0,
    expected_clipped_regret=0.75,
    clipped_floor=0.25,
    successes=1.0,
    best_expected=1.6,
    seconds=0.1,
    select_seconds=0.05,
    update_seconds=0.02,
    curve=((1, 0.25), (2, 0.5)),
    reward_curve=((1, 0.5), (2, 1.1)),
    rounds_asked=2,
    slate_size=5,
    clusters=4,
    settings={"alpha": "0.5"},
    problem={"slate_reward": None, "arms_per_round": 20},
    version="0.1.0",
)
