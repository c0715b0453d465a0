"""Every library of the comparison behind one interface: prepare a round, select K of its arms, learn from rewards.

`prepare` turns arrays into what the library reads; it is outside the clock for all. Peers are imported when they are
made, so that one that is not installed can be skipped.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.fresh_arms import FreshArms
from neuclust.core import Feedback, Policy, Round, Slate
from neuclust.registry import POLICIES, build_policy

WIDTH = 40  # hidden units of neural peers: those of our default
Positions = NDArray[np.int64]


class Player(Protocol):
    """What is timed."""

    def prepare(self, round: Round) -> Any: ...

    def select(self, prepared: Any) -> Positions: ...

    def update(self, prepared: Any, positions: Positions, feedback: Feedback) -> None: ...


class OurPlayer:
    """A policy of this library."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._slate: Slate | None = None

    def prepare(self, round: Round) -> Round:
        return round

    def select(self, prepared: Round) -> Positions:
        self._slate = self.policy.select(prepared)
        return self._slate.positions.numpy()

    def update(self, prepared: Round, positions: Positions, feedback: Feedback) -> None:  # noqa: ARG002
        assert self._slate is not None
        self.policy.update(prepared, self._slate, feedback)


class CalveraPlayer:
    """A bandit of calvera with its top-K selector, trained for one epoch after every round as its examples do."""

    def __init__(self, kind: str, dim: int, slate_size: int) -> None:
        warnings.filterwarnings("ignore")  # Lightning's hints about loggers and loader workers
        import lightning
        from calvera.bandits import LinearUCBBandit, NeuralUCBBandit
        from calvera.utils.selectors import TopKSelector

        for name in ("lightning", "lightning.pytorch", "lightning.fabric", "calvera"):
            logging.getLogger(name).setLevel(logging.ERROR)
        self._trainer, selector = lightning.Trainer, TopKSelector(slate_size)
        if kind == "neural":
            torch.manual_seed(0)
            net = torch.nn.Sequential(
                torch.nn.Linear(dim, WIDTH, bias=False), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1, bias=False)
            )
            self._bandit = NeuralUCBBandit(dim, net, selector=selector)
        else:
            self._bandit = LinearUCBBandit(dim, selector=selector)

    def prepare(self, round: Round) -> Tensor:
        return round.contexts.to(torch.float32).unsqueeze(0)

    def select(self, prepared: Tensor) -> Positions:
        chosen, _ = self._bandit(prepared)
        return np.asarray(chosen[0].nonzero().flatten().numpy())

    def update(self, prepared: Tensor, positions: Positions, feedback: Feedback) -> None:
        rewards = feedback.arm_rewards.to(torch.float32).unsqueeze(0)
        self._bandit.record_feedback(prepared[:, torch.from_numpy(positions)], rewards)
        trainer = self._trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(self._bandit)


class ConditionalPlayer:
    """Vowpal Wabbit's conditional contextual bandit: K slots filled one after another, its own exploration."""

    def __init__(self, slate_size: int) -> None:
        import vowpalwabbit

        self._workspace = vowpalwabbit.Workspace("--ccb_explore_adf --quiet --random_seed 1")
        self._slots = range(slate_size)
        self._chances: list[float] = []

    def prepare(self, round: Round) -> list[str]:
        return ["ccb shared |s all", *(f"ccb action {line}" for line in vowpal_lines(round.contexts))]

    def select(self, prepared: list[str]) -> Positions:
        slots = self._workspace.predict([*prepared, *(f"ccb slot |t {slot}" for slot in self._slots)])
        self._chances = [slot[0][1] for slot in slots]
        return np.array([slot[0][0] for slot in slots])

    def update(self, prepared: list[str], positions: Positions, feedback: Feedback) -> None:
        outcomes = zip(self._slots, positions, self._chances, feedback.arm_rewards.tolist(), strict=True)
        labels = [f"ccb slot {arm}:{-reward}:{chance} |t {slot}" for slot, arm, chance, reward in outcomes]
        self._workspace.learn([*prepared, *labels])


class RankingPlayer:
    """Vowpal Wabbit's contextual bandit that ranks all arms by predicted cost; the K best, without exploration."""

    def __init__(self, slate_size: int) -> None:
        import vowpalwabbit

        self._workspace = vowpalwabbit.Workspace("--cb_adf --rank_all --quiet")
        self._size = slate_size

    def prepare(self, round: Round) -> list[str]:
        return vowpal_lines(round.contexts)

    def select(self, prepared: list[str]) -> Positions:
        return largest(-np.array(self._workspace.predict(prepared)), self._size)

    def update(self, prepared: list[str], positions: Positions, feedback: Feedback) -> None:
        lines = [prepared[arm] for arm in positions]
        for index, reward in enumerate(feedback.arm_rewards.tolist()):
            self._workspace.learn([*lines[:index], f"0:{-reward}:1 {lines[index]}", *lines[index + 1 :]])


class RecommenderPlayer:
    """mab2rec's LinUCB with one shared model: every offered arm is a context of the single decision `show`.

    One model per arm, as mab2rec has it, could not score arms that are all new.
    """

    def __init__(self, slate_size: int) -> None:
        from mab2rec import BanditRecommender, LearningPolicy

        self._bandit = BanditRecommender(LearningPolicy.LinUCB(alpha=1.0), top_k=1)
        self._bandit.add_arm("show")
        self._size, self._fitted = slate_size, False

    def prepare(self, round: Round) -> NDArray[np.float64]:
        return round.contexts.numpy()

    def select(self, prepared: NDArray[np.float64]) -> Positions:
        if not self._fitted:  # it refuses to predict before it has learned
            return np.arange(self._size)
        values = self._bandit.predict_expectations(prepared)
        return largest(np.array([value["show"] for value in values]), self._size)

    def update(self, prepared: NDArray[np.float64], positions: Positions, feedback: Feedback) -> None:
        learn = self._bandit.partial_fit if self._fitted else self._bandit.fit
        learn(["show"] * self._size, feedback.arm_rewards.numpy(), prepared[positions])
        self._fitted = True


def vowpal_lines(contexts: Tensor) -> list[str]:
    """One line of text per arm, (n, d) -> n."""
    return ["|x " + " ".join(f"{j}:{value:.6g}" for j, value in enumerate(row)) for row in contexts.tolist()]


def largest(values: NDArray[np.float64], size: int) -> Positions:
    """Positions of the `size` largest, best first."""
    rivals = np.argpartition(-values, size - 1)[:size]
    return np.asarray(rivals[np.argsort(-values[rivals], kind="stable")])


@dataclass(frozen=True, slots=True)
class Contender:
    """A name for the table, what it computes, the package it needs ("" = ours), and how it is made."""

    name: str
    what: str
    package: str
    make: Callable[[FreshArms], Player]


def contenders() -> Sequence[Contender]:
    """Ours first; `auto` where this version has it."""
    ours = {
        "neuclust": "exact full covariance, slate inside a cluster",
        "cn-ucb": "exact full covariance, top K",
        "linucb": "exact linear",
        "auto": "chooses its model",
        "uniform": "a slate at random",
    }
    return [
        *(_our_contender(name, what) for name, what in ours.items() if name in POLICIES),
        Contender(
            "calvera NeuralUCB", "diagonal, top K", "calvera", lambda p: CalveraPlayer("neural", p.dim, p.slate_size)
        ),
        Contender("calvera LinUCB", "linear, top K", "calvera", lambda p: CalveraPlayer("linear", p.dim, p.slate_size)),
        Contender(
            "Vowpal Wabbit CCB", "linear, K slots", "vowpalwabbit", lambda p: ConditionalPlayer(p.slate_size)
        ),
        Contender(
            "Vowpal Wabbit cb_adf", "linear, top K, no bonus", "vowpalwabbit", lambda p: RankingPlayer(p.slate_size)
        ),
        Contender("mab2rec LinUCB", "linear, top K", "mab2rec", lambda p: RecommenderPlayer(p.slate_size)),
    ]  # fmt: skip


def _our_contender(name: str, what: str) -> Contender:
    def make(problem: FreshArms) -> Player:
        return OurPlayer(build_policy(name, environment=problem))

    return Contender(name, what, "", make)
