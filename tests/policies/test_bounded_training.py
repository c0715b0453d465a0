"""Policies with a bounded training: nothing changes below the limit, state is flat above it, and saves go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from neuclust.core import Feedback, Policy, Round
from neuclust.environments.catalogue import build_environment
from neuclust.errors import ConfigError
from neuclust.experiment.engines.device.batches import check_memory
from neuclust.randomness import stream
from neuclust.registry import POLICIES, build_policy, load_policy, policy_config

ARMS = (
    "cn-ucb",
    "neuclust",
    "neuclust-online",
    "neuclust-across",
    "cn-ts",
    "neural-ucb",
    "neural-ts",
    "epsilon-greedy",
)
NETS = ("neural-linear", "neural-linucb", "neural-mab")
DIM = 20
KEY = {**dict.fromkeys(ARMS, "arms.training.memory"), **dict.fromkeys(NETS, "net.memory")}


def made(name: str, memory: str, **settings: str) -> Policy:
    environment = build_environment("clusters", slate_size=3, horizon=100, seed=1)
    return build_policy(name, environment=environment, seed=1, overrides={KEY[name]: memory, **settings})


def play(policy: Policy, rounds: range) -> list[list[int]]:
    """Rounds of 40 arms nobody has seen."""
    slates = []
    for t in rounds:
        rng = stream(t, "test bounded training")
        ids = torch.arange(40) + 1000 * t
        round = Round(t + 1, ids, torch.from_numpy(rng.standard_normal((40, DIM))), None, 3)
        slate = policy.select(round)
        rewards = (round.profiles[slate.positions, 0] > 0).to(torch.float64)
        policy.update(round, slate, Feedback(rewards, rewards.mean()))
        slates.append(slate.positions.tolist())
    return slates


def remembered(policy: Policy) -> int:
    """Numbers in the saved history."""
    return sum(tensor.numel() for name, tensor in policy.state_dict().items() if "history" in name)


@pytest.mark.parametrize("name", ["cn-ucb", "neuclust", "neuclust-online", "epsilon-greedy", *NETS])
def test_up_to_the_memory_nothing_changes_and_above_it_the_state_is_flat(name: str, tmp_path: Path) -> None:
    quick = {"net.adam.steps": "5"} if name in NETS else {"arms.training.steps": "3", "arms.network.width": "6"}
    free, bound = made(name, "none", **quick), made(name, "24", **quick)
    assert play(free, range(8)) == play(bound, range(8))
    play(bound, range(8, 18))
    early = remembered(bound)
    bound.save(tmp_path / "saved")
    again = load_policy(tmp_path / "saved")
    assert play(bound, range(18, 36)) == play(again, range(18, 36))
    assert remembered(bound) <= 1.2 * early


def test_the_presets_of_the_paper_keep_everything_and_the_default_ones_do_not() -> None:
    for name, key in KEY.items():
        for preset in POLICIES[name].presets:
            config: Any = policy_config(name, preset)
            memory = config.arms.training.memory if key.startswith("arms") else config.net.memory
            assert (memory is None) == preset.startswith(("paper", "authors")), (name, preset)


def test_the_device_engine_refuses_runs_in_which_contexts_could_leave() -> None:
    config = policy_config("neuclust", overrides={"arms.training.memory": "500", "slate.training.memory": "none"})
    check_memory(config, 100, 5)
    with pytest.raises(ConfigError, match=r"expected arms\.training\.memory of at least 505 or none, got 500"):
        check_memory(config, 101, 5)
