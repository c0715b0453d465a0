"""Every policy plays whatever type of numbers a round, a slate and its feedback come in, as it would in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import masked_queries
from torch import Tensor

from neuclust.core import Feedback, Policy, Round, Slate
from neuclust.environments.dealing import Arms, Simulated
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.profiles import TanhAffinity
from neuclust.environments.rewards import mean
from neuclust.environments.slates import SlateEnvironment
from neuclust.randomness import stream
from neuclust.registry import POLICIES, build_policy

N, D, K, HORIZON = 36, 6, 3, 10
Cast = Callable[[Tensor], Any]


def _strided(x: Tensor) -> Any:
    """Every other entry of a larger array, backwards, read-only."""
    room = np.zeros([2 * size for size in x.shape])
    room[tuple(slice(None, None, 2) for _ in x.shape)] = x.numpy()
    view = room[tuple(slice(None, None, 2) for _ in x.shape)]
    back = np.ascontiguousarray(view[::-1])[::-1]
    back.flags.writeable = False
    return back


def _torch(dtype: torch.dtype) -> Cast:
    return lambda x: x.to(dtype)


def _numpy(dtype: str) -> Cast:
    return lambda x: x.numpy().astype(dtype)


# kind -> values it can hold (eighths from 0 to 4, whole numbers from 0 to 4, or bits), and the cast
KINDS: dict[str, tuple[str, Cast]] = {
    **{f"torch {d}": ("eighths", _torch(getattr(torch, d))) for d in ("float64", "float32", "float16", "bfloat16")},
    **{f"torch {d}": ("whole", _torch(getattr(torch, d))) for d in ("int8", "int16", "int32", "int64", "uint8")},
    **{f"torch {d}": ("whole", _torch(getattr(torch, d))) for d in ("uint16", "uint32", "uint64")},
    "torch bool": ("bits", _torch(torch.bool)),
    **{f"numpy {d}": ("eighths", _numpy(d)) for d in ("f8", "f4", "f2", "g", ">f8")},
    **{f"numpy {d}": ("whole", _numpy(d)) for d in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")},
    "numpy bool": ("bits", _numpy("?")),
    "list of floats": ("eighths", lambda x: x.tolist()),
    "list of ints": ("whole", lambda x: x.to(torch.int64).tolist()),
    "reversed read-only array": ("eighths", _strided),
    "transposed tensor": ("eighths", lambda x: x.T.contiguous().T if x.ndim == 2 else x),
    "sparse tensor": ("eighths", lambda x: x.to_sparse()),
    "tensor with gradient": ("eighths", lambda x: x.clone().requires_grad_()),
}
QUICK = ("torch float32", "numpy i4", "list of floats")


@cache
def problem(values: str) -> SlateEnvironment:
    drawn = stream(0, "number types").integers(0, {"eighths": 33, "whole": 5, "bits": 2}[values], (N, D))
    profiles = torch.from_numpy(drawn / (8.0 if values == "eighths" else 1.0))
    rounds = Simulated(TanhAffinity.of(profiles), masked_queries(HORIZON, D))
    spec = ProblemSpec(slate_size=K, horizon=HORIZON, reward=mean(K))
    return SlateEnvironment("numbers", Arms(profiles, torch.arange(N) + 5), rounds, spec)


def build(name: str, values: str, **settings: str) -> Policy:
    small = {"clustering.small": "merge", **settings} if "clust" in name else settings
    return build_policy(name, environment=problem(values), seed=1, clusters=4, overrides=small)


# they take any kind of numbers, which their types do not say
MAKE_ROUND: Any = Round
MAKE_SLATE: Any = Slate
MAKE_FEEDBACK: Any = Feedback


def slates(name: str, values: str, cast: Cast, rounds: int) -> list[list[int]]:
    """Positions of the slates a policy selects, rounds, slates and rewards cast."""
    environment, policy, found = problem(values), build(name, values), []
    for t in range(1, rounds + 1):
        plain = environment.round(t)
        assert plain.query is not None
        ids = plain.arm_ids if isinstance(cast(plain.query), Tensor) else plain.arm_ids.tolist()
        round = MAKE_ROUND(t, ids, cast(plain.profiles), cast(plain.query), K)
        slate = policy.select(round)
        outcome = environment.play(round, slate)
        copied = MAKE_SLATE(slate.positions.tolist(), slate.means.tolist(), slate.bonuses, explored=slate.explored)
        reward = float(outcome.slate_reward)  # a mean: no whole number, whatever the arms paid
        policy.update(round, copied, MAKE_FEEDBACK(cast(outcome.arm_rewards), reward))
        found.append(slate.positions.tolist())
    return found


@cache
def in_float64(name: str, values: str, rounds: int) -> list[list[int]]:
    return slates(name, values, lambda x: x, rounds)


@pytest.mark.parametrize("kind", QUICK)
@pytest.mark.parametrize("name", list(POLICIES))
def test_a_policy_plays_any_type_of_numbers_as_it_plays_float64(name: str, kind: str) -> None:
    values, cast = KINDS[kind]
    assert slates(name, values, cast, 3) == in_float64(name, values, 3)


@pytest.mark.parametrize("name", list(POLICIES))
def test_tensors_of_inference_mode_are_played_in_it_and_outside(name: str) -> None:
    """Torch does not say whether such a tensor was changed, so that nothing made of it may be kept."""
    kept = {"confidence.pruning": "on"} if name in ("neuclust", "cn-ucb") else {}  # profiles as sparse rows
    policy, plain = build(name, "eighths", **kept), problem("eighths").round(1)
    with torch.inference_mode():
        profiles, query = plain.profiles.clone(), masked_queries(1, D)[0].clone()
        inside = Round(1, plain.arm_ids, profiles, query, K)
        first, again = policy.select(inside), policy.select(inside)
    outside = Round(1, plain.arm_ids, profiles, query, K)
    assert first.positions.tolist() == again.positions.tolist() == policy.select(outside).positions.tolist()
    policy.update(outside, first, MAKE_FEEDBACK([1, 0, 1], 1))


@pytest.mark.soak
def test_every_policy_plays_every_type_of_numbers_as_it_plays_float64(report_counts: Callable[..., None]) -> None:
    tried = 0
    for name in POLICIES:
        for kind, (values, cast) in KINDS.items():
            assert slates(name, values, cast, HORIZON) == in_float64(name, values, HORIZON), (name, kind)
            tried += 1
    report_counts("number types", policies=len(POLICIES), kinds=len(KINDS), tried=tried, equal=tried)
