"""What serves in the place of the policy: random slates, and the items that earned most."""

from collections.abc import Mapping
from typing import cast

import torch

from neuclust.core import Feedback, Policy, Round, Slate
from neuclust.recommender.learner import Learner, PolicyChoice
from neuclust.recommender.schema import Schema
from neuclust.registry import build_policy
from neuclust.slates.rules import keeps_rules
from neuclust.slates.ties import tie_rank, top_slate


class Ranked:
    """Top K by a value that is known for some arms; others count 0."""

    def __init__(self, values: Mapping[int, float]) -> None:
        self.values = values

    @keeps_rules
    def select(self, round: Round) -> Slate:
        known = self.values.get
        means = torch.tensor([known(arm, 0.0) for arm in round.arm_ids.tolist()], dtype=torch.float64)
        return top_slate(means, torch.zeros_like(means), tie_rank(round, "id", 0), round.slate_size, certain=True)

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        """Nothing is learned here: the values come from the learner."""

    def state_dict(self) -> dict[str, torch.Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """There is no state."""


def random_learner(schema: Schema, slate_size: int, seed: int) -> Learner:
    """Slates drawn evenly from all that are allowed, with exact propensities."""
    chosen = PolicyChoice("uniform", None, seed)
    return Learner(chosen, build_policy("uniform", dim=schema.design.width, slate_size=slate_size, seed=seed))


def popular_learner(values: Mapping[int, float]) -> Learner:
    """The items with the largest values, by their codes."""
    return Learner(PolicyChoice("popular"), cast("Policy", Ranked(values)))  # it is never saved
