"""Rounds with numbers of every size, equal arms, empty columns and as few arms as slots, for every policy.

Nothing hangs, nothing but neuclust's own errors is raised, `select` changes no state and neither does what is refused.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import same_state, snapshot, within
from torch import Tensor

from neuclust.core import Feedback, Round, Slate
from neuclust.errors import LearningWarning, NeuclustError
from neuclust.randomness import stream
from neuclust.registry import POLICIES, build_policy

SIZES = (0.0, 1e-300, 1e-20, 1e-8, 1e-3, 1.0, 1e3, 1e8, 1e20, 1e49)
QUERIES = ("none", "ones", "zeros", "some", "sizes")
REWARDS = ("coins", "zeros", "unseen", "some unseen", "negative", "1e6", "1e49", "1e-9")
ROUNDS = 4


@dataclass(frozen=True)
class Odd:
    """One odd problem: n arms of d features, each column of a size of its own, which may change with the rounds."""

    seed: int
    n: int
    k: int
    sizes: tuple[float, ...]
    later: float  # what all sizes are multiplied with after the first round
    alike: bool  # every arm twice
    whole: bool
    query: str
    rewards: str

    counts = None

    @property
    def dim(self) -> int:
        return len(self.sizes)

    @property
    def slate_size(self) -> int:
        return self.k

    @property
    def arm_ids(self) -> Tensor:
        return torch.from_numpy(stream(self.seed, "odd ids").permutation(10 * self.n)[: self.n] - 5)

    @property
    def profiles(self) -> Tensor:
        return self.round(1).profiles

    def means(self, round: Round) -> Tensor:
        return torch.arange(self.n, dtype=torch.float64) / self.n

    def average_means(self) -> Tensor:
        return torch.arange(self.n, dtype=torch.float64) / self.n

    def expected_reward(self, round: Round, slate: Slate) -> float:
        return float(self.means(round)[slate.positions].sum())

    def round(self, t: int) -> Round:
        rng = stream(self.seed, "odd round", t)
        x = rng.integers(-2, 3, (self.n, self.dim)) * 1.0 if self.whole else rng.standard_normal((self.n, self.dim))
        if self.alike:
            x[1::2] = x[: self.n - 1 : 2][: len(x[1::2])]
        x *= np.array(self.sizes) * (1.0 if t == 1 else self.later)
        query = {
            "none": None,
            "ones": np.ones(self.dim),
            "zeros": np.zeros(self.dim),
            "some": (rng.random(self.dim) < 0.5) * 1.0,
            "sizes": rng.choice(SIZES, self.dim),
        }[self.query]
        make_round: Any = Round  # arrays become tensors there
        return cast(Round, make_round(t, self.arm_ids, np.clip(x, -1e50, 1e50), query, self.k))

    def feedback(self, t: int) -> Feedback:
        rng = stream(self.seed, "odd rewards", t)
        coins = (rng.random(self.k) < 0.5) * 1.0
        some = np.where(rng.random(self.k) < 0.5, math.nan, coins)
        arm_rewards = {
            "coins": coins, "zeros": 0 * coins, "unseen": math.nan * coins, "some unseen": some, "negative": -coins,
            "1e6": 1e6 * coins, "1e49": 1e49 * coins, "1e-9": 1e-9 * coins,
        }[self.rewards]  # fmt: skip
        make_feedback: Any = Feedback
        return cast(Feedback, make_feedback(arm_rewards, np.mean(arm_rewards)))


@st.composite
def odd_problems(draw: st.DrawFn) -> Odd:
    n = draw(st.integers(1, 9))
    k = draw(st.sampled_from(sorted({1, max(1, n - 1), n})))
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=4))
    return Odd(
        draw(st.integers(0, 10**6)), n, k, tuple(sizes), draw(st.sampled_from((1.0, 1e-6, 1e6))), draw(st.booleans()),
        draw(st.booleans()), draw(st.sampled_from(QUERIES)), draw(st.sampled_from(REWARDS)),
    )  # fmt: skip


def built(name: str, odd: Any) -> Any:
    clusters = {"clustering.count": "1", "clustering.small": "merge"} if "clust" in name else {}
    return build_policy(name, environment=odd, seed=odd.seed, overrides=clusters)


def withstood(name: str, odd: Odd, counts: Counter[str]) -> None:
    try:
        policy = built(name, odd)
    except NeuclustError:
        counts["not built"] += 1
        return
    with within(30), warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        for t in range(1, ROUNDS + 1):
            counts["rounds"] += 1
            round, before = odd.round(t), snapshot(policy)
            try:
                slate = policy.select(round)
                assert len(set(slate.positions.tolist())) == odd.k
                assert not bool(torch.isnan(slate.means).any())
            except NeuclustError:
                counts["selections refused"] += 1
                slate = Slate(torch.arange(odd.k), torch.zeros(odd.k), torch.zeros(odd.k))
            assert same_state(before, snapshot(policy)), "select changed the state"
            try:
                policy.update(round, slate, odd.feedback(t))
            except NeuclustError:
                counts["updates refused"] += 1
                assert same_state(before, snapshot(policy)), "a refused update changed the state"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", list(POLICIES))
@given(odd=odd_problems())
@settings(max_examples=5)
def test_odd_rounds_are_played_or_refused(name: str, odd: Odd) -> None:
    withstood(name, odd, Counter())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.soak
@pytest.mark.parametrize("name", list(POLICIES))
def test_many_odd_rounds_are_played_or_refused(name: str, report_counts: Callable[..., None]) -> None:
    counts: Counter[str] = Counter()

    @given(odd=odd_problems())
    @settings(max_examples=60)
    def attack(odd: Odd) -> None:
        counts["tried"] += 1
        withstood(name, odd, counts)

    attack()
    report_counts("odd rounds", policies=1, **counts)
