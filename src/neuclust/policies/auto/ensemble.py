"""A team of learners that share all data, with the evidence for each: how well it foresaw the rewards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError
from neuclust.models.history import GrowingTable
from neuclust.models.state import Shape, expect, nested, nested_shapes, take, take_numbers, under
from neuclust.policies.auto.change_point import DriftConfig, SurpriseTest, log_likelihood
from neuclust.policies.auto.features import FeatureBlocks
from neuclust.policies.auto.learners.catalogue import (
    LEARNERS,
    Learner,
    LearnersConfig,
    fitting_learners,
    learner_names,
    learner_shapes,
)
from neuclust.policies.auto.plays import Plays

CERTAIN = 0.03  # no prediction counts as surer than this
LEVEL, RATE = 0.7, 0.2  # the moving average of rewards: its start, in good hope, and its rate
MOST_PRIOR = 100.0  # nats; with many more the others would begin with a weight of 0 and keep it
BLIND, BLIND_WEIGHT = 0.2, 1.0  # what an arm taken blindly is thought to pay at first, and how many arms that counts


@dataclass(frozen=True, slots=True)
class TeamConfig:
    """`learners` by name. The first, and `local` where there are clusters, begin with `prior` more evidence than the
    others: simple accounts are to be beaten, not to be found. No evidence is counted of the first `settling` slates,
    where learners that begin at 0 are not worse than those that begin at ½.

    A share `switching`/t of all weight goes back to where it began after slate t: a learner that needs much data loses
    by its early errors what it could never make up for later, when it is the best of all.
    """

    learners: str = "linear,local,quadratic,logistic,additive,net,stiff-net,index"
    prior: float = 5.0
    settling: int = 3
    switching: float = 1.0
    drift: DriftConfig = field(default_factory=DriftConfig)
    options: LearnersConfig = field(default_factory=LearnersConfig)

    def __post_init__(self) -> None:
        check_entries(self)
        learner_names(self.learners)
        if self.settling < 0:
            raise ConfigError(f"settling: expected a number of slates of at least 0, got {self.settling}")
        if not 0 <= self.prior <= MOST_PRIOR:
            raise ConfigError(f"prior: expected a number of nats from 0 to {MOST_PRIOR:g}, got {self.prior}")
        if not self.switching >= 0:
            raise ConfigError(f"switching: expected a number of at least 0, got {self.switching}")


class Team:
    """L_m = prior_m + Σ log-likelihood of each slate's rewards under learner m before it learned them.

    Weights v start at v_0 ∝ exp(prior) and follow the switch v ← (1 − α_t) v' + α_t v_0, v' ∝ v exp(log-likelihood),
    α_t = min(½, switching/t): with α = 0 they are ∝ exp(L).
    """

    def __init__(
        self, config: TeamConfig, blocks: FeatureBlocks, slate_size: int, seed: int = 0, generation: int = 0
    ) -> None:
        self.config, self.blocks = config, blocks
        names = fitting_learners(learner_names(config.learners), blocks)
        self.learners: Mapping[str, Learner] = {
            name: LEARNERS[name](config.options, blocks, seed, f"auto {name} {generation}") for name in names
        }
        self.plays = Plays(blocks, slate_size)
        ahead = [config.prior if name in (names[0], "local") else 0.0 for name in names]
        self.evidence = torch.tensor(ahead, dtype=torch.float64)  # L, (M,)
        self._prior = self.evidence
        self._first_weights = torch.softmax(self.evidence, 0)  # v_0
        self.log_weights = torch.log_softmax(self.evidence, 0)  # log v, (M,)
        self.level = LEVEL  # r̄ of arms that were chosen
        self._blind, self._blindly = BLIND * BLIND_WEIGHT, BLIND_WEIGHT  # Σ of rewards of arms taken blindly, how many
        self.surprise = SurpriseTest(config.drift)
        self._foreseen = GrowingTable()  # log-likelihood of every slate under the team's weighted prediction

    @property
    def leader(self) -> str:
        """The learner with the largest weight."""
        return list(self.learners)[int(self.log_weights.argmax())]

    @property
    def gaps(self) -> Tensor:
        """How far each learner's evidence is behind the largest, (M,)."""
        return self.evidence.max() - self.evidence

    @property
    def lift(self) -> float:
        """How much more chosen arms pay of late than arms taken blindly have."""
        return self.level - self._blind / self._blindly

    @property
    def losses(self) -> Tensor:
        """How much worse each learner foresaw rewards than the best of them, whoever began ahead, (M,)."""
        earned = self.evidence - self._prior
        return earned.max() - earned

    def foresaw(self, slates: int) -> float:
        """Log-likelihood of the latest slates, each under what the team thought before it."""
        return float(self._foreseen.rows[-slates:].sum())

    def absorb(self, z: Tensor, rewards: Tensor, blind: Tensor | None = None) -> None:
        """One slate's contexts (k, d) and rewards (k,): judge every learner by it, then let all learn.

        `blind` (k,) says which arms were taken blindly.
        """
        features = self.blocks.read(z)
        chances = torch.stack([learner.means(features) for learner in self.learners.values()])
        chances = chances.clamp(CERTAIN, 1 - CERTAIN)
        self.surprise.observe(chances[int(self.log_weights.argmax())], rewards)
        self._foreseen.append(float(log_likelihood(torch.exp(self.log_weights) @ chances, rewards)))
        if self.plays.slates >= self.config.settling:
            self._judge(log_likelihood(chances, rewards))
        self._count(rewards, torch.zeros_like(rewards, dtype=torch.bool) if blind is None else blind)
        played = self.plays.add(z, features, rewards)
        for learner in self.learners.values():
            learner.learn(played, self.plays)

    def _judge(self, foreseen: Tensor) -> None:
        """Log-likelihoods (M,) of the slate that is number `slates` + 1."""
        self.evidence = self.evidence + foreseen
        self.log_weights = torch.log_softmax(self.log_weights + foreseen, 0)
        share = min(0.5, self.config.switching / (self.plays.slates + 1))
        if share > 0:  # without it weights may be too small for anything but their logarithm
            weights = (1 - share) * torch.exp(self.log_weights) + share * self._first_weights
            self.log_weights = torch.log(weights)

    def _count(self, rewards: Tensor, blind: Tensor) -> None:
        chosen = rewards[~blind]
        self._blind += float(rewards[blind].sum())
        self._blindly += float(blind.sum())
        if len(chosen):
            self.level += RATE * len(chosen) / len(rewards) * (float(chosen.mean()) - self.level)

    @property
    def failures(self) -> int:
        """Trainings of nets that failed."""
        return sum(getattr(learner, "failures", 0) for learner in self.learners.values())

    def state_dict(self) -> dict[str, Tensor]:
        numbers = [self.level, self._blind, self._blindly]
        state = {"evidence": self.evidence.clone(), "numbers": torch.tensor(numbers, dtype=torch.float64)}
        state["log_weights"] = self.log_weights.clone()
        state["foreseen"] = self._foreseen.rows.clone()
        for name, learner in self.learners.items():
            state |= nested(f"learner.{name}", learner.state_dict())
        state |= nested("plays", self.plays.state_dict()) | nested("surprise", self.surprise.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.evidence = take(state, "evidence", self.evidence)
        self.log_weights = take(state, "log_weights", self.log_weights)
        self.level, self._blind, self._blindly = take_numbers(state, "numbers", 3)
        expect(self._blindly > 0, "arms taken blindly above 0", self._blindly)
        self._foreseen.load(self._foreseen.taken(state, "foreseen"))
        for name, learner in self.learners.items():
            learner.load_state_dict(under(f"learner.{name}", state))
        self.plays.load_state_dict(under("plays", state))
        self.surprise.load_state_dict(under("surprise", state))
        slates = {len(self._foreseen), len(self.surprise), self.plays.slates}
        expect(len(slates) == 1, "one number of slates throughout the team", sorted(slates))


def team_shapes(config: TeamConfig, blocks: FeatureBlocks) -> Iterator[tuple[str, Shape]]:
    """What a state of such a team holds at least."""
    for name in fitting_learners(learner_names(config.learners), blocks):
        yield from nested_shapes(f"learner.{name}", learner_shapes(name, config.options, blocks))


def retold(team: Team, slates: int, seed: int, generation: int) -> Team:
    """A team that has seen nothing but the latest slates of this one; no word of which arms were taken blindly."""
    fresh = Team(team.config, team.blocks, team.plays.slate_size, seed, generation)
    for contexts, rewards in team.plays.latest(slates):
        fresh.absorb(contexts, rewards)
    return fresh
