"""The policy behind a recommender: built for a schema and a catalogue, selecting from rounds, learning from lessons."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Feedback, Policy, Round, Slate
from neuclust.errors import ConfigError, brief
from neuclust.models.crossed import CrossedRounds
from neuclust.policies.exploring import Exploring
from neuclust.recommender.choices import Shown
from neuclust.recommender.feedback.decisions import Lesson
from neuclust.recommender.items.catalogue import Catalogue
from neuclust.recommender.names import by_option, known_policy
from neuclust.recommender.schema import Schema
from neuclust.registry import build_policy, policy_config, policy_spec, split_name
from neuclust.slates.propensities import Exploration

Matrix = NDArray[np.float64]
MOST_SETTLED = 512  # pairs of items and users by which the scales of contexts are settled


@runtime_checkable
class Settles(Protocol):
    """A policy whose scales and clusters can be fixed by a round before anything is learned."""

    def settle(self, round: Round) -> None: ...


@runtime_checkable
class Revises(Protocol):
    """A policy whose statistics allow that rewards already learned turn out to be others."""

    def revise(self, round: Round, slate: Slate, before: Feedback, after: Feedback) -> None: ...


@runtime_checkable
class SelectsMany(Protocol):
    """A policy that selects for several rounds of crossed features in one pass; None for a round it must see whole."""

    def select_many(self, rounds: CrossedRounds) -> Sequence[Slate | None]: ...


@runtime_checkable
class TellsSelecting(Protocol):
    """A policy that selects by a part of its state."""

    def selecting_state(self) -> dict[str, Tensor]: ...


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """Which policy is played: `NAME` or `NAME:PRESET`, changed settings, the seed, exploration around it (None: no)."""

    name: str = "auto"
    settings: Mapping[str, str] | None = None
    seed: int = 0
    exploration: Exploration | None = None

    def __post_init__(self) -> None:
        name, preset = split_name(self.name) if isinstance(self.name, str) else ("", "")
        if not name:
            raise ConfigError(f"expected the name of a policy, got {brief(self.name)}", field="policy")
        spec = known_policy(name)
        if spec.knows_truth:
            got = f"got {name!r}, which is given the truth; play auto, linucb or another learner"
            raise ConfigError(f"expected a policy that learns, {got}", field="policy")
        with by_option("settings"):
            config = policy_config(name, preset or "default", overrides=self.settings)
        if getattr(config, "tracker", None) is not None:
            got = f"got {name!r}, which tracks profiles by what is asked for; play neuclust"
            raise ConfigError(f"expected a policy that reads the features of users and items, {got}", field="policy")


@dataclass(frozen=True, slots=True)
class Arms:
    """What a policy is built for: the items as arms, with their encoded rows as profiles."""

    dim: int
    slate_size: int
    arm_ids: Tensor
    profiles: Tensor


class Learner:
    """A policy, what it is asked through (exploration around it, if any), and the lessons it learns."""

    def __init__(self, chosen: PolicyChoice, policy: Policy) -> None:
        self.chosen, self.policy = chosen, policy
        explores = chosen.exploration is not None and chosen.exploration.share > 0
        self.player: Policy = Exploring(policy, chosen.exploration, chosen.seed) if explores else policy

    @classmethod
    def fresh(
        cls, chosen: PolicyChoice, schema: Schema, catalogue: Catalogue, slate_size: int, users: Matrix
    ) -> "Learner":
        """A policy that has learned nothing, settled by the catalogue and a sample of users (M, d_u), M >= 1."""
        codes = catalogue.all_codes()
        profiles = catalogue.profiles(codes)
        arms = Arms(schema.design.width, slate_size, torch.from_numpy(codes.copy()), torch.from_numpy(profiles))
        clusters = _clusters(chosen, profiles, slate_size)
        policy = build_policy(
            chosen.name, environment=arms, seed=chosen.seed, clusters=clusters, overrides=chosen.settings
        )
        learner = cls(chosen, policy)
        if isinstance(policy, Settles) and len(codes):
            policy.settle(_reference_round(schema, codes, profiles, users, slate_size))
        return learner

    def select(self, rounds: Sequence[Round]) -> list[Slate]:
        """A slate for each round."""
        return [self.player.select(round) for round in rounds]

    def select_many(self, rounds: CrossedRounds) -> Sequence[Slate | None]:
        """The same slates in one pass, None for rounds that the policy must see whole."""
        return self.player.select_many(rounds) if isinstance(self.player, SelectsMany) else [None] * len(rounds)

    def selecting_state(self) -> dict[str, Tensor]:
        """What a copy needs that selects and never learns; all of the policy's state where it does not tell."""
        own = self.policy
        return own.selecting_state() if isinstance(own, TellsSelecting) else own.state_dict()

    def learn(self, lesson: Lesson, schema: Schema) -> bool:
        """Learn a lesson from the rows of its decision; False where it is a revision the policy cannot learn."""
        shown: Shown = lesson.decision.payload
        round = shown_round(shown, schema)
        rewards = Feedback(torch.from_numpy(lesson.rewards), torch.tensor(lesson.slate_reward, dtype=torch.float64))
        if lesson.before is None:
            self.policy.update(round, shown.slate, rewards)
            return True
        if not isinstance(self.policy, Revises):
            return False
        before = Feedback(torch.from_numpy(lesson.before), torch.tensor(lesson.slate_before, dtype=torch.float64))
        self.policy.revise(round, shown.slate, before, rewards)
        return True

    def copy(self) -> "Learner":
        """An independent copy, to serve from while this one learns."""
        return type(self)(self.chosen, copy.deepcopy(self.policy))


def shown_round(shown: Shown, schema: Schema) -> Round:
    """The round of a decision with the shown rows alone, from which a policy learns the same as from all rows."""
    return Round(
        t=shown.t, arm_ids=torch.from_numpy(shown.codes), profiles=torch.from_numpy(shown.items), query=None,
        slate_size=len(shown.codes), features=torch.from_numpy(schema.design.rows(shown.items, shown.user)),
        draw=shown.draw,
    )  # fmt: skip


def _reference_round(
    schema: Schema, codes: NDArray[np.int64], profiles: Matrix, users: Matrix, slate_size: int
) -> Round:
    """Items with users in turn: contexts such as requests will bring, by which scales are settled."""
    count = min(len(codes), MOST_SETTLED)
    rows = np.arange(count) * len(codes) // count
    features = schema.design.rows_many(profiles[rows], users, np.arange(count) % len(users))
    return Round(
        t=1, arm_ids=torch.from_numpy(codes[rows]), profiles=torch.from_numpy(profiles[rows]), query=None,
        slate_size=min(slate_size, count), features=torch.from_numpy(features),
    )  # fmt: skip


def _clusters(chosen: PolicyChoice, profiles: Matrix, slate_size: int) -> int | None:
    """Fewer clusters than configured where the catalogue is small; None: as configured, or none at all."""
    name, preset = split_name(chosen.name)
    if not policy_spec(name).clusters:
        return None
    configured = int(policy_config(name, preset or "default", overrides=chosen.settings).clustering.count)
    distinct = len(np.unique(profiles, axis=0)) if len(profiles) < 10 * configured * slate_size else len(profiles)
    return max(1, min(configured, distinct // 2, len(profiles) // slate_size))


def settings_of(given: Any) -> dict[str, str] | None:
    """Settings as the texts that `policy_config` reads."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ConfigError(f"expected a dictionary of names and values, got {brief(given)}", field="settings")
    texts = {_text(name): (value, _text(value)) for name, value in given.items()}
    return {name: text.lower() if isinstance(value, bool) else text for name, (value, text) in texts.items()}


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # whole numbers of thousands of digits, objects that cannot show themselves
        raise ConfigError(f"expected names and values that have a text, got {brief(value)}", field="settings") from None
