"""Numbers that are not finite inside a policy end in a sentence or in a slate, and never in a loop without end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import play, small_environment, within
from torch import Tensor

from neuclust.core import Policy
from neuclust.errors import ConfigError, NeuclustError
from neuclust.registry import POLICIES, build_policy

ROUNDS = 11  # enough for directions explored, the first trainings of nets and a dual covariance
WAYS: list[dict[str, str]] = [
    {},
    {"confidence.pruning": "on"},
    {"confidence.pruning": "on", "confidence.solver": "dual"},
]


def learned(policy: Any) -> dict[str, Tensor]:
    """Every tensor of floats inside a policy, the objects themselves, by the path that leads there."""
    found: dict[int, tuple[str, Tensor]] = {}
    walked: set[int] = set()

    def walk(thing: Any, path: str) -> None:
        if id(thing) in walked:
            return
        walked.add(id(thing))
        if isinstance(thing, Tensor):
            if thing.is_floating_point() and thing.numel():
                found[id(thing)] = path, thing
        elif isinstance(thing, dict):
            for key, value in thing.items():
                walk(value, f"{path}.{key}")
        elif isinstance(thing, tuple | list):
            for i, value in enumerate(thing):
                walk(value, f"{path}.{i}")
        elif type(thing).__module__.startswith("neuclust") and "environments" not in type(thing).__module__:
            names = [*getattr(thing, "__dict__", {}), *getattr(type(thing), "__slots__", ())]
            for name in names:
                walk(getattr(thing, name, None), f"{path}.{name}")

    walk(policy, "")
    return dict(found.values())


def played(name: str, way: dict[str, str]) -> Policy | None:
    environment = small_environment()
    try:
        policy = build_policy(name, environment=environment, seed=1, clusters=4, overrides=way)
    except ConfigError:
        return None  # it has no such setting
    play(policy, environment, range(1, ROUNDS + 1))
    return policy


def asked(policy: Policy, tensor: Tensor, value: float, everywhere: bool) -> str:
    """What a select says while some numbers of a tensor are spoiled; they are put back afterwards."""
    environment, kept = small_environment(), tensor.detach().clone()
    with torch.no_grad(), np.errstate(all="ignore"):
        if everywhere:
            tensor.fill_(value)
        else:
            tensor[tuple(size // 2 for size in tensor.shape)] = value
        try:
            with within(20):
                slate = policy.select(environment.round(ROUNDS + 1))
        except NeuclustError as error:
            return "refused" if len(str(error)) > 40 else f"refused without a sentence: {error}"
        finally:
            tensor.copy_(kept)
    assert len(set(slate.positions.tolist())) == environment.slate_size
    return "played"


def attack(name: str, ways: list[dict[str, str]], values: tuple[float, ...]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for way in ways:
        policy = played(name, way)
        for path, tensor in ({} if policy is None else learned(policy)).items():
            for value in values:
                for everywhere in (True, False):
                    assert policy is not None
                    counts["tried"] += 1
                    try:
                        counts[asked(policy, tensor, value, everywhere)] += 1
                    except Exception as error:
                        raise AssertionError(f"{name} {way}, {path} with {value}: {error!r}") from error
    return counts


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [name for name in POLICIES if name != "auto"])
def test_a_policy_with_nan_inside_never_hangs(name: str) -> None:
    dual = [{}, WAYS[2]] if "ucb" in name or "clust" in name else [{}]
    attack(name, dual, (math.nan,))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.soak
def test_no_policy_hangs_or_crashes_on_numbers_that_are_not_finite(report_counts: Callable[..., None]) -> None:
    counts: Counter[str] = Counter()
    for name in POLICIES:
        counts += attack(name, WAYS, (math.nan, math.inf, -math.inf))
    assert counts.keys() <= {"tried", "played", "refused"}
    report_counts("numbers not finite", **counts)
