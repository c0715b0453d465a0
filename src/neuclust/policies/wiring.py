"""What policies share, as functions that a policy takes as its methods: `update = learn_arms`, and so on."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.models.arm_model import ArmModel, arm_shapes
from neuclust.models.encoder import Encoder
from neuclust.models.feature_net import FeatureNet
from neuclust.models.mean_rewards import KeyedMeans
from neuclust.models.state import Shape, load_saved_state
from neuclust.slates.rules import keeps_rules
from neuclust.slates.ties import tie_rank, top_slate


class Sized(Protocol):
    """A policy for profiles of `dim` features and slates of `slate_size` arms."""

    dim: int
    slate_size: int


def readable(policy: Sized, round: Round) -> Round:
    """The round as models read it; refused where the policy cannot play it."""
    check_round(round, policy.dim, policy.slate_size)
    return round.read


def check_update(policy: Sized, round: Round, slate: Slate, feedback: Feedback) -> None:
    """Refuse rounds and feedback the policy cannot learn from, before anything is learned."""
    check_round(round, policy.dim, policy.slate_size)
    check_feedback(round, slate, feedback)


class Change(NamedTuple):
    """What feedback that comes again says otherwise: differences of rewards seen before, 0 where there is none (k,),
    and rewards that were not seen before, NaN elsewhere (k,)."""

    difference: Tensor
    new: Tensor


def revised(policy: Sized, round: Round, slate: Slate, before: Feedback, after: Feedback) -> Change:
    """The change from feedback already learned to feedback on the same slate; a reward once seen stays seen."""
    for feedback in (before, after):
        check_update(policy, round, slate, feedback)
    known, seen = ~torch.isnan(before.arm_rewards), ~torch.isnan(after.arm_rewards)
    difference = torch.where(known & seen, after.arm_rewards - before.arm_rewards, 0.0)
    return Change(difference, torch.where(known, torch.nan, after.arm_rewards))


class Counts(Sized, Protocol):
    """A policy of mean rewards per arm."""

    arms: KeyedMeans


def learn_counts(policy: Counts, round: Round, slate: Slate, feedback: Feedback) -> None:
    """One play more of every arm whose reward was seen."""
    check_update(policy, round, slate, feedback)
    policy.arms.observe(round.arm_ids[slate.positions], feedback.arm_rewards)


def revise_counts(policy: Counts, round: Round, slate: Slate, before: Feedback, after: Feedback) -> None:
    """Rewards already learned turn out to be others."""
    change = revised(policy, round, slate, before, after)
    policy.arms.correct(round.arm_ids[slate.positions], change.difference)
    policy.arms.observe(round.arm_ids[slate.positions], change.new)


class Optimistic(Sized, Protocol):
    """A policy that plays the top k by mean + bonus; `config.tie` says how ties break."""

    config: Any
    seed: int

    def beliefs(self, round: Round) -> tuple[Tensor, Tensor]:
        """Mean and bonus of every arm, (n,) each."""


@keeps_rules
def optimistic_slate(policy: Optimistic, round: Round) -> Slate:
    """The k arms of the largest mean + bonus."""
    means, bonuses = policy.beliefs(readable(policy, round))
    rank, certain = tie_rank(round, policy.config.tie, policy.seed), policy.config.tie == "id"
    return top_slate(means, bonuses, rank, round.slate_size, certain=certain)


def optimistic_scores(policy: Optimistic, round: Round) -> Tensor:
    """Mean + bonus of every arm, (n,)."""
    means, bonuses = policy.beliefs(readable(policy, round))
    return means + bonuses


def load_net_state(policy: Any, state: Mapping[str, Tensor]) -> None:
    """For policies that learn with one feature net."""
    load_saved_state(policy, state)
    policy.net.seed = policy.seed


def failed_net_trainings(policy: Any) -> int:
    """How many fits of the net ended in NaN or without a live unit."""
    return int(policy.net.failures)


class HasEncoder(Sized, Protocol):
    """A policy that encodes contexts itself."""

    encoder: Encoder


class HasNet(Sized, Protocol):
    """A policy that learns with one feature net."""

    net: FeatureNet


class HasArms(Sized, Protocol):
    """A policy that learns with one arm model."""

    arms: ArmModel


def learn_arms(policy: HasArms, round: Round, slate: Slate, feedback: Feedback) -> None:
    """The slate joins covariance and history, then the net is trained."""
    check_update(policy, round, slate, feedback)
    policy.arms.observe(round.read, slate, feedback)
    policy.arms.train()
    policy.arms.watch.speak()


def settle_arms(policy: HasArms, round: Round) -> None:
    """Fix the scale of contexts by this round's, as the first update does with its round."""
    policy.arms.settle(readable(policy, round))


def settle_encoder(policy: HasEncoder, round: Round) -> None:
    """The same for policies with an encoder of their own."""
    policy.encoder.settle(readable(policy, round))


def settle_net(policy: HasNet, round: Round) -> None:
    """The same for policies with a feature net."""
    policy.net.encoder.settle(readable(policy, round))


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
