"""Writes a log as a feedback dictionary of the Open Bandit Pipeline, an .npz file of arrays.

Slates: one row per slot with `slate_id`, `position`, `action`, `reward`, `pscore_cascade` (the chance of the slots up
to this one) and `pscore` (that of the slate). Slates of one arm: plain feedback with `pscore`. Actions are numbered 0
to N − 1 in the order of the arms' ids, which are `action_ids`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import ConfigError, DataError, writing
from neuclust.files import placed
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.features import shared_columns
from neuclust.logs.other_formats import Floats, chances_of, rewards_of
from neuclust.logs.runs import DecisionLog

LOSSY = "lossy=True leaves out features and eligibility and keeps actions, rewards and chances"


def write_obp(log: DecisionLog, path: str | Path, *, unseen: float | None = None, lossy: bool = False) -> int:
    """Write the decisions of a log as an .npz file, whole or not at all; how many there were.

    Every action is eligible in every round of obp, and described by the same numbers: a log of other arms or features
    is refused unless it may be `lossy`. Decisions need propensities, and rewards of all slots or a value for `unseen`.
    """
    place = Path(path)
    if place.suffix != ".npz":
        raise ConfigError(f"expected a file named .npz, got {place}; rename it", field="out")
    rows = _Rows(lossy)
    for decision in log.decisions():
        rows.add(decision, unseen)
    feedback = rows.feedback()
    with writing(place), placed(place) as file:
        np.savez(file, **feedback)
    return rows.count


@dataclass
class _Rows:
    """Columns of the decisions so far, and the arms they had."""

    lossy: bool
    count: int = 0
    ids: NDArray[np.int64] | None = None  # (N,) of the arms; of those shown, where the log may be lossy
    arms: Floats | None = None  # (N, d)
    contexts: list[Floats | None] = field(default_factory=list)
    slates: list[NDArray[np.int64]] = field(default_factory=list)  # ids
    rewards: list[Floats] = field(default_factory=list)
    chances: list[Floats] = field(default_factory=list)

    def add(self, decision: LoggedDecision, unseen: float | None) -> None:
        ids = decision.round.arm_ids.numpy(force=True)
        if not self.lossy:
            self._check(decision, ids)
        self.slates.append(ids[decision.slate])
        self.rewards.append(rewards_of(decision, unseen, "obp"))
        self.chances.append(chances_of(decision, "obp"))
        self.count += 1

    def _check(self, decision: LoggedDecision, ids: NDArray[np.int64]) -> None:
        """Keep the arms of the first decision and the context of each, and refuse what does not fit them."""
        arms, shared = shared_columns(decision.round)
        order = np.argsort(ids)
        ids, arms = ids[order], arms[order]
        if self.ids is None or self.arms is None:
            self.ids, self.arms = ids, arms
        at = f"decision {decision.id!r} of run {decision.run!r}"
        if not np.array_equal(ids, self.ids) or decision.round.rules is not None:
            said = "expected all arms to be eligible in every decision, as obp has it, got others"
            raise DataError(f"{at}: {said}; {LOSSY}")
        if not np.array_equal(arms, self.arms):
            said = "expected arms with the same features in every decision, as obp has them, got others"
            raise DataError(f"{at}: {said}; {LOSSY}")
        before = self.contexts[-1] if self.contexts else shared
        if (None if shared is None else shared.shape) != (None if before is None else before.shape):
            said = "expected a context of the same length in every decision, as obp has it, got others"
            raise DataError(f"{at}: {said}; {LOSSY}")
        self.contexts.append(shared)

    def feedback(self) -> dict[str, Any]:
        """The dictionary."""
        if not self.count:
            raise DataError("expected a log with decisions, got none; nothing is written")
        flat = np.concatenate(self.slates)
        ids = np.unique(flat) if self.ids is None else self.ids
        lengths = np.array([len(slate) for slate in self.slates])
        found: dict[str, Any] = {
            "n_rounds": self.count, "action": np.searchsorted(ids, flat), "reward": np.concatenate(self.rewards),
            "position": np.concatenate([np.arange(length) for length in lengths]), "action_ids": ids,
        }  # fmt: skip
        if self.arms is not None:
            found["action_context"] = self.arms
        contexts = [each for each in self.contexts if each is not None]
        found["context"] = np.array(contexts) if contexts else np.zeros((self.count, 0))  # obp asks for one
        if bool((lengths == 1).all()):
            return found | {"n_actions": len(ids), "pscore": np.concatenate(self.chances)}
        cascade = [np.cumprod(chances) for chances in self.chances]
        return found | {
            "n_unique_action": len(ids), "slate_id": np.repeat(np.arange(self.count), lengths),
            "pscore_cascade": np.concatenate(cascade),
            "pscore": np.concatenate([np.full(len(each), each[-1]) for each in cascade]),
        }  # fmt: skip
