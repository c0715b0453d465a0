"""A small problem with known means, logged by an exploring policy, as a log in memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch

from neuclust.core import Feedback, Policy, Round
from neuclust.logs.decisions import LoggedDecision
from neuclust.randomness import stream
from neuclust.slates.rules import option_counts

ARMS, DIM, SLATE = 5, 4, 2
AXIS = np.array([1.2, -0.8, 0.5, 0.0])


@dataclass(frozen=True)
class MemoryLog:
    """Decisions in a list."""

    kept: list[LoggedDecision] = field(default_factory=list)

    def decisions(self) -> Iterator[LoggedDecision]:
        return iter(self.kept)


def problem_round(t: int, seed: int = 0) -> Round:
    contexts = stream(seed, "logged arms", t).standard_normal((ARMS, DIM))
    return Round(t, torch.arange(ARMS), torch.from_numpy(contexts), None, SLATE)


def means_of(round: Round) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Click chances, a logistic function of the first features."""
    return np.asarray(1 / (1 + np.exp(2.0 - round.contexts.numpy() @ AXIS)))


def logged(policy: Policy, rows: int, seed: int = 0, learns: bool = False) -> MemoryLog:
    """What a policy showed and got; version stays the same unless it learns."""
    log = MemoryLog()
    for t in range(1, rows + 1):
        round = problem_round(t, seed)
        slate = policy.select(round)
        rows_shown = slate.positions.numpy()
        clicks = (stream(seed, "logged clicks", t).random(SLATE) < means_of(round)[rows_shown]).astype(np.float64)
        chances = None if slate.propensities is None else slate.propensities.numpy()
        sizes = option_counts(round, rows_shown.tolist())
        log.kept.append(LoggedDecision(
            str(t), "run", round, rows_shown, chances, slate.drawn_by, sizes, clicks, float(clicks.sum()),
            version=str(t) if learns else "1",
        ))  # fmt: skip
        if learns:
            policy.update(round, slate, Feedback(torch.from_numpy(clicks), torch.tensor(clicks.mean())))
    return log
