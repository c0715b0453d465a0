"""Small random problems that every policy can play in milliseconds."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor

from neuclust.core import Feedback, Policy, Round, Slate
from neuclust.environments.catalogue import build_environment
from neuclust.environments.dealing import Arms, Simulated
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.profiles import TanhAffinity
from neuclust.environments.rewards import mean
from neuclust.environments.slates import SlateEnvironment
from neuclust.kernels import jit
from neuclust.randomness import stream

T = TypeVar("T")
PATHS = ("compiled", "library")  # loops compiled by Numba, and the plain ones of machines without it


@contextmanager
def path(name: str) -> Iterator[None]:
    """Run with compiled loops or as a machine without Numba would."""
    if name == "compiled" and not jit.available:
        pytest.skip("Numba is not installed: there is no compiled path")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "available", name == "compiled")
        yield


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail where the body takes longer: what hangs must not hang the tests."""

    def late(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def clustered_profiles(n: int, d: int, centres: int, seed: int = 0) -> Tensor:
    """n non-negative profiles around well separated centres, n/centres each, in random order: (n, d)."""
    rng = stream(seed, "test profiles")
    middle = 1 + 3 * rng.random((centres, d))
    rows = middle[rng.permutation(n) % centres] + 0.4 * rng.random((n, d))
    return torch.from_numpy(rows)


def masked_queries(rounds: int, d: int, seed: int = 0) -> Tensor:
    """Binary queries, each with at least one and not always all features: (rounds, d)."""
    rng = stream(seed, "test queries")
    queries = (rng.random((rounds, d)) < 0.5).astype(float)
    queries[range(rounds), rng.integers(d, size=rounds)] = 1.0
    return torch.from_numpy(queries)


def small_environment(
    *, n: int = 48, d: int = 6, centres: int = 4, horizon: int = 60, counts: bool = False, **fields: Any
) -> SlateEnvironment:
    """A real environment in the shape of MovieLens: masked profiles, μ = tanh(s/4), mean slate reward unless given.

    `fields` are those of a ProblemSpec; slates have 3 arms unless told otherwise.
    """
    spec = ProblemSpec.of(None, fields, horizon=horizon, slate_size=3)
    spec = spec if spec.reward is not None else replace(spec, reward=mean(spec.slate_size))
    profiles = clustered_profiles(n, d, centres, spec.seed)
    seen = torch.full((n, d), 4.0, dtype=torch.float64) if counts else None
    arms = Arms(profiles, torch.arange(n) * 3 + 7, seen)
    rounds = Simulated(TanhAffinity.of(profiles), masked_queries(horizon, d, spec.seed))
    return SlateEnvironment("small", arms, rounds, spec)


def not_none(value: T | None) -> T:
    """A value that must be there."""
    assert value is not None
    return value


def built_in(name: str, **fields: Any) -> SlateEnvironment:
    """A problem that neuclust ships."""
    environment = build_environment(name, **fields)
    assert isinstance(environment, SlateEnvironment)
    return environment


def play(policy: Policy, environment: SlateEnvironment, rounds: range) -> list[list[int]]:
    """Select, play, update; the slates as lists of positions."""
    slates = []
    for t in rounds:
        round = environment.round(t)
        slate = policy.select(round)
        policy.update(round, slate, environment.play(round, slate))
        slates.append(slate.positions.tolist())
    return slates


def feedback(arm_rewards: list[float], slate_reward: float) -> Feedback:
    return Feedback(torch.tensor(arm_rewards, dtype=torch.float64), torch.tensor(slate_reward, dtype=torch.float64))


def slate_of(*positions: int) -> Slate:
    zeros = torch.zeros(len(positions), dtype=torch.float64)
    return Slate(torch.tensor(positions), zeros, zeros)


def random_round(t: int, n: int, d: int, k: int, seed: int = 0, query: Tensor | None = None) -> Round:
    """n uniform arms of d features; all features asked for unless a query is given."""
    profiles = torch.from_numpy(stream(seed, "test round", t).random((n, d)))
    return Round(t, torch.arange(n), profiles, query, k)


def snapshot(policy: Policy) -> dict[str, Tensor]:
    """A copy of the state that later updates cannot reach."""
    return {name: tensor.clone() for name, tensor in policy.state_dict().items()}


def same_state(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    """Byte for byte: the sign of a zero counts as well, since versions of a model are compared by their hashes."""
    return left.keys() == right.keys() and all(
        left[name].shape == right[name].shape
        and left[name].dtype == right[name].dtype
        and left[name].numpy().tobytes() == right[name].numpy().tobytes()
        for name in left
    )
