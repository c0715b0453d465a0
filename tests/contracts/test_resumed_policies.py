"""Policies that were saved and loaded, or copied, go on as if nothing had happened: slates, means, bonuses and state
are equal bit for bit, whatever was asked of either in between."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from small_problems import same_state, small_environment, snapshot

from neuclust.core import Policy, Slate
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.synthetic import bump, clusters
from neuclust.registry import POLICIES, build_policy, load_policy

EVERY = [(name, preset) for name, spec in POLICIES.items() for preset in spec.presets]
NEURAL = ("neuclust", "neuclust-online", "cn-ucb")
# bounds and their caches, the dual, regions: ways to the same slate that small problems do not take by themselves
WAYS = [
    {"confidence.pruning": "on"},
    {"confidence.pruning": "on", "confidence.solver": "dual"},
    {"confidence.regions": "always"},
    {"confidence.form": "last-layer"},
]


def dense() -> SlateEnvironment:
    """Contexts without zeros: as many activation regions as arms, so that bounds pay."""
    return bump(n_arms=300, dim=10, arms_per_round=None, horizon=30, slate_size=3, seed=2)


def build(name: str, preset: str, environment: SlateEnvironment, overrides: dict[str, str] | None = None) -> Policy:
    slow = preset.startswith("authors") and hasattr(POLICIES[name].presets[preset], "arms")
    settings = {**({"arms.training.steps": "6"} if slow else {}), **(overrides or {})}
    return build_policy(name, preset=preset, environment=environment, seed=1, clusters=4, overrides=settings)


def resumed(policy: Policy, name: str, folder: Path, environment: SlateEnvironment) -> Policy:
    told = {"means": environment.means, "value": environment.expected_reward}
    kept = {"oracle": ["means"], "cluster-oracle": ["means", "value"]}.get(name, [])
    policy.save(folder)
    return load_policy(folder, **{part: told[part] for part in kept})


def same_slate(left: Slate, right: Slate) -> bool:
    """Every field, bit for bit."""
    return all(_same(getattr(left, entry.name), getattr(right, entry.name)) for entry in fields(Slate))


def _same(left: Any, right: Any) -> bool:
    return torch.equal(left, right) if isinstance(left, torch.Tensor) else left == right


def go_on(straight: Policy, others: list[Policy], environment: SlateEnvironment, rounds: range) -> int:
    """Play on: every policy must select what the first one does, and end in its state."""
    for t in rounds:
        round = environment.round(t)
        slate = straight.select(round)
        straight.select(environment.round(1))  # what is kept of another round must not count
        outcome = environment.play(round, slate)
        for other in others:
            assert same_slate(other.select(round), slate), f"round {t}"
            other.update(round, slate, outcome)
        straight.update(round, slate, outcome)
    states = [snapshot(policy) for policy in (straight, *others)]
    for state in states[1:]:
        differing = [name for name in states[0] if not same_state({name: states[0][name]}, {name: state[name]})]
        assert differing == []
        assert states[0].keys() == state.keys()
    return len(rounds) * len(others)


def resume_at(
    points: list[int], last: int, name: str, policy: Policy, environment: SlateEnvironment, folder: Path
) -> int:
    """Saved and loaded, and copied, at every point; all of them play to the end."""
    others: list[Policy] = []
    compared = 0
    for start, end in zip([0, *points], [*points, last], strict=True):
        compared += go_on(policy, others, environment, range(start + 1, end + 1))
        if end < last:
            others += [resumed(policy, name, folder / f"{end}", environment), copy.deepcopy(policy)]
    return compared


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_a_policy_resumed_or_copied_goes_on_bit_for_bit(name: str, preset: str, tmp_path: Path) -> None:
    environment = small_environment()
    resume_at([2], 4, name, build(name, preset, environment), environment, tmp_path)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: ",".join(way.values()))
@pytest.mark.parametrize("name", ["neuclust-online", "cn-ucb"])
def test_every_way_to_a_slate_goes_on_bit_for_bit(name: str, way: dict[str, str], tmp_path: Path) -> None:
    """Twelve updates are enough for bounds from directions explored earlier, which are no longer those of today."""
    environment = dense()
    resume_at([10], 13, name, build(name, "default", environment, way), environment, tmp_path)


def test_dense_contexts_in_clusters_go_on_bit_for_bit(tmp_path: Path) -> None:
    """Where `auto` has its local learner."""
    environment = clusters(n_arms=130, n_clusters=5, arms_per_round=None, horizon=30, slate_size=3)
    policy = build("auto", "default", environment, {"blocks.most_clusters": "6"})
    resume_at([3], 5, "auto", policy, environment, tmp_path)


def test_bonuses_do_not_depend_on_when_they_were_asked_for() -> None:
    """One policy is asked in every round, the other after the last update only."""
    environment = dense()
    asked, silent = (build("cn-ucb", "default", environment, {"confidence.pruning": "on"}) for _ in range(2))
    for t in range(1, 14):
        round = environment.round(t)
        slate = asked.select(round)
        for policy in (asked, silent):
            policy.update(round, slate, environment.play(round, slate))
    assert same_slate(asked.select(environment.round(14)), silent.select(environment.round(14)))


@pytest.mark.soak
def test_every_policy_resumed_at_five_points(tmp_path: Path, report_counts: Callable[..., None]) -> None:
    compared = 0
    for name, preset in EVERY:
        environment = small_environment(counts=name == "neuclust-online")
        policy = build(name, preset, environment)
        compared += resume_at([0, 1, 7, 13, 20], 26, name, policy, environment, tmp_path / f"{name}-{preset}")
    for name in NEURAL:
        for i, way in enumerate(WAYS):
            environment = dense()
            policy = build(name, "default", environment, way)
            compared += resume_at([0, 4, 9, 12, 15], 20, name, policy, environment, tmp_path / f"{name}-{i}")
    runs = len(EVERY) + len(NEURAL) * len(WAYS)
    report_counts(
        "resumed policies", policies=runs, resumed=5 * runs, copied=5 * runs, slates_equal=compared, differed=0
    )
