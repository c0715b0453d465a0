"""Policies that are judged: fitted on logged slates, then asked what they would have shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from neuclust.core import Design, Feedback, Policy, Round, Slate
from neuclust.errors import ConfigError
from neuclust.evaluation.designs import Mixture
from neuclust.experiment.contestants import Contestant
from neuclust.logs.decisions import LoggedDecision
from neuclust.randomness import stream
from neuclust.registry import build_policy, knows_truth

Floats = NDArray[np.float64]
Target = Design | Mixture
CLOSED = ("deterministic", "one-coin", "uniform")  # designs that are the same whatever a policy draws


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy with its settings and seed; `draws` slates stand for a policy whose slates are random."""

    contestant: Contestant
    seed: int = 0
    draws: int = 5

    @property
    def title(self) -> str:
        return self.contestant.title

    def built(self, dim: int, slate_size: int) -> Policy:
        """A fresh policy for contexts of `dim` features and slates of up to `slate_size` arms."""
        who = self.contestant
        if knows_truth(who.policy):
            got = f"got {who.policy}, which is given the truth"
            raise ConfigError(f"expected a policy that learns from a log, {got}; name another", field="policy")
        return build_policy(
            who.policy, preset=who.preset, clusters=who.clusters, overrides=who.settings, seed=self.seed, dim=dim,
            slate_size=slate_size,
        )  # fmt: skip


def learn(policy: Policy, decision: LoggedDecision) -> None:
    """Update a policy with a logged slate and what came back, as if it had chosen the slate itself."""
    zeros = torch.zeros(len(decision.slate), dtype=torch.float64)
    chances = None if decision.propensities is None else torch.from_numpy(decision.propensities)
    slate = Slate(torch.from_numpy(decision.slate), zeros, zeros, chances)
    reward = torch.tensor(decision.slate_reward, dtype=torch.float64)
    policy.update(decision.round, slate, Feedback(torch.from_numpy(decision.rewards), reward))


def target_of(policy: Policy, round: Round, draws: int, seed: int) -> Target:
    """The design of the policy's slates in a round.

    Slates that are random without a closed form, or around a base slate that is itself random, are a mixture of the
    designs of `draws` independent selections.
    """
    first = policy.select(round).drawn_by
    if first.kind in CLOSED or draws == 1:
        return first if first.kind != "unknown" else drawn(policy, round)
    keys = stream(seed, "evaluation draws", round.t).integers(0, 2**63, draws).tolist()
    return Mixture(tuple(drawn(policy, replace(round, draw=key)) for key in keys))


def drawn(policy: Policy, round: Round) -> Design:
    """The design of one selection; where it is unknown, the selected slate itself."""
    slate = policy.select(round)
    design = slate.drawn_by
    return Design("deterministic", tuple(slate.positions.tolist())) if design.kind == "unknown" else design


def parts(target: Target) -> Sequence[Design]:
    """The designs that a target is a mixture of, each as likely as the others."""
    return target.designs if isinstance(target, Mixture) else (target,)
