"""What policies share, as functions that a policy takes as its methods: `state_dict = saved_state`, and so on."""

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, Protocol

import torch
from torch import Tensor

from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.models.arm_model import ArmModel, arm_shapes
from neuclust.models.state import Shape, nested, take, take_count, take_whole, under


class Sized(Protocol):
    """A policy for profiles of `dim` features and slates of `slate_size` arms."""

    dim: int
    slate_size: int


def check_update(policy: Sized, round: Round, slate: Slate, feedback: Feedback) -> None:
    """Refuse rounds and feedback the policy cannot learn from, before anything is learned."""
    check_round(round, policy.dim, policy.slate_size)
    check_feedback(round, slate, feedback)


# --- state ------------------------------------------------------------------------------------------------------


def saved_state(policy: Any) -> dict[str, Tensor]:
    """The attributes named in `policy.saved`, in the form of their kind.

    A whole number or a tensor stands under its own name, the entries of a part with a state under the part's name, and
    `rho` is the scale of `policy.encoder`. A part that is None has no entries.
    """
    state: dict[str, Tensor] = {}
    for name in policy.saved:
        value = policy.encoder.saved_rho() if name == "rho" else getattr(policy, name)
        if isinstance(value, Tensor):
            state[name] = value.clone()
        elif isinstance(value, Integral):
            state[name] = torch.tensor(int(value))
        elif value is not None:
            state |= nested(name, value.state_dict())
    return state


def load_saved_state(policy: Any, state: Mapping[str, Tensor]) -> None:
    """Take back what `saved_state` gave, checked entry by entry."""
    for name in policy.saved:
        value = None if name == "rho" else getattr(policy, name)
        if name == "rho":
            policy.encoder.load_rho(state)
        elif isinstance(value, Tensor):
            setattr(policy, name, take(state, name, value))
        elif isinstance(value, Integral):
            setattr(policy, name, (take_whole if name == "seed" else take_count)(state, name))
        elif value is not None:
            value.load_state_dict(under(name, state))


# --- policies that learn with one feature net ---------------------------------------------------------------------


def load_net_state(policy: Any, state: Mapping[str, Tensor]) -> None:
    load_saved_state(policy, state)
    policy.net.seed = policy.seed


def failed_net_trainings(policy: Any) -> int:
    """How many fits of the net ended in NaN or without a live unit."""
    return int(policy.net.failures)


# --- policies that learn with one arm model and differ in how they select ------------------------------------------


class HasArms(Sized, Protocol):
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
