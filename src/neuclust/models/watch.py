"""Warnings, each given once, that rewards are such that a policy will hardly learn from them."""

import warnings

import torch
from torch import Tensor

from neuclust.errors import LearningWarning

IN_A_ROW = 10  # failed trainings that are no accident
SEEN = 20  # slates after which rewards have shown how large they are
TINY = 1e-3


class LearningWatch:
    """Warnings about one policy's rewards and trainings; nothing of it is learned or saved.
    The models start at 0 and explore by bonuses of the size of rewards from 0 to 1: far smaller rewards are lost in
    them, negative ones make untried arms look best, and nets may not fit huge ones. A policy calls `speak` as the last
    line of its `update`, so that a warning turned into an error leaves the slate learned."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._failed, self._slates, self._largest = 0, 0, 0.0
        self._said: set[str] = set()
        self._pending: list[str] = []

    def see(self, rewards: Tensor) -> None:
        """Look at the arm rewards of one slate, (K,); NaN is unseen."""
        known = rewards[~torch.isnan(rewards)]
        if len(known) == 0:
            return
        low, high = (float(end) for end in torch.aminmax(known))
        self._slates, self._largest = self._slates + 1, max(self._largest, high, -low)
        if low < 0:
            self._say("negative", f"rewards fall to {low:g}, below the 0 that {self._who} starts from: untried arms "
                      "look best for long; shift and divide rewards so that they lie in [0, 1]")  # fmt: skip
        if self._slates == SEEN and 0 < self._largest < TINY:
            self._say("tiny", f"the largest of {SEEN} slates' rewards is {self._largest:g}, which the bonuses of "
                      f"{self._who} drown; multiply rewards so that they fill [0, 1]")  # fmt: skip

    def trained(self, failed: bool, rewards: Tensor) -> None:
        """Note how one training on these rewards (n,) ended."""
        self._failed = self._failed + 1 if failed else 0
        if self._failed == IN_A_ROW:
            reach = float(rewards[~torch.isnan(rewards)].abs().max())
            advice = "divide rewards so that they lie in [0, 1]" if reach > 1 else "lower the training step"
            self._say("failed", f"{IN_A_ROW} trainings of {self._who} in a row found no step that helps: rewards reach "
                      f"{reach:g}; {advice}")  # fmt: skip

    def speak(self) -> None:
        """Give the warnings that are due."""
        while self._pending:
            warnings.warn(self._pending.pop(0), LearningWarning, stacklevel=3)

    def _say(self, what: str, sentence: str) -> None:
        if what not in self._said:
            self._said.add(what)
            self._pending.append(sentence)
