"""Rounds frozen as arrays pay what the problem pays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from benchmarks.frozen_rounds import export, play
from neuclust.core import Slate
from neuclust.environments.catalogue import build_environment
from neuclust.environments.problem import ProblemSpec


def test_frozen_rewards_and_means_are_those_of_the_problem(tmp_path: Path) -> None:
    file = tmp_path / "rounds.npz"
    export("bump", 3, 4, file)
    held = np.load(file)
    environment = build_environment("bump", ProblemSpec(horizon=4, seed=3))
    k, round = environment.slate_size, environment.round(2)
    positions, zeros = torch.arange(10, 10 + k), torch.zeros(k, dtype=torch.float64)
    paid = environment.play(round, Slate(positions, zeros, zeros)).arm_rewards
    assert held["rewards"][1][positions.numpy()].tolist() == paid.tolist()
    assert held["ids"][1].tolist() == round.arm_ids.tolist()
    assert 0 < held["rewards"].mean() < 1
    said = play("uniform", 0, file)
    assert said.startswith("uniform rounds: share ")
    assert float(said.split("regret ")[1]) > 0
