"""What policies share that learn with one arm model and differ in how they choose: `update = learn_arms`, and so on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from torch import Tensor

from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.models.arm_model import ArmModel, arm_shapes
from neuclust.models.state import Shape


class HasArms(Protocol):
    """A policy whose learned state is its arm model."""

    dim: int
    slate_size: int
    arms: ArmModel


def learn_arms(policy: HasArms, round: Round, slate: Slate, feedback: Feedback) -> None:
    """The slate joins covariance and history, then the net is trained."""
    check_round(round, policy.dim, policy.slate_size)
    check_feedback(round, slate, feedback)
    policy.arms.observe(round, slate, feedback)
    policy.arms.train()
    policy.arms.watch.speak()


def arm_state(policy: HasArms) -> dict[str, Tensor]:
    return policy.arms.state_dict()


def load_arm_state(policy: HasArms, state: Mapping[str, Tensor]) -> None:
    policy.arms.load_state_dict(state)


def saved_arm_shapes(config: Any, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG001
    """What a save of such a policy holds at least."""
    return arm_shapes(config.arms, dim)


def failed_arm_trainings(policy: HasArms) -> int:
    """How many fits of the net blew up or found no step that helped."""
    return policy.arms.failures
