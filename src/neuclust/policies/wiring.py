"""What policies share, as functions that a policy takes as its methods: `update = learn_arms`, and so on."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from torch import Tensor

from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.models.arm_model import ArmModel, arm_shapes
from neuclust.models.state import Shape, load_saved_state


class Sized(Protocol):
    """A policy for profiles of `dim` features and slates of `slate_size` arms."""

    dim: int
    slate_size: int


def check_update(policy: Sized, round: Round, slate: Slate, feedback: Feedback) -> None:
    """Refuse rounds and feedback the policy cannot learn from, before anything is learned."""
    check_round(round, policy.dim, policy.slate_size)
    check_feedback(round, slate, feedback)


def load_net_state(policy: Any, state: Mapping[str, Tensor]) -> None:
    """For policies that learn with one feature net."""
    load_saved_state(policy, state)
    policy.net.seed = policy.seed


def failed_net_trainings(policy: Any) -> int:
    """How many fits of the net ended in NaN or without a live unit."""
    return int(policy.net.failures)


class HasArms(Sized, Protocol):
    """A policy that learns with one arm model."""

    arms: ArmModel


def learn_arms(policy: HasArms, round: Round, slate: Slate, feedback: Feedback) -> None:
    """The slate joins covariance and history, then the net is trained."""
    check_update(policy, round, slate, feedback)
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
