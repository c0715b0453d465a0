"""A team of learners that share all data, with the evidence for each: how well it foresaw the rewards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from neuclust.parts.feature_blocks import FeatureBlocks
from neuclust.parts.learners import LEARNERS, Learner, LearnersConfig, distinct_learners
from neuclust.parts.plays import Plays
from neuclust.parts.state import nested, take, under
from neuclust.parts.surprise import DriftConfig, SurpriseTest, log_likelihood

CERTAIN = 0.03  # no prediction counts as surer than this
LEVEL, RATE = 0.2, 0.2  # the moving average of rewards: its start and its rate


class Team:
    """L_m = prior_m + Σ log-likelihood of each slate's rewards under learner m before it learned them."""

    def __init__(
        self,
        blocks: FeatureBlocks,
        learners: Mapping[str, Learner],
        prior: Sequence[float],
        drift: DriftConfig,
        slate_size: int,
    ) -> None:
        self.blocks, self.learners = blocks, learners
        self.plays = Plays(blocks, slate_size)
        self.evidence = torch.tensor(prior, dtype=torch.float64)  # L, (M,)
        self.level = LEVEL  # r̄
        self.surprise = SurpriseTest(drift)

    @classmethod
    def of(
        cls, config: LearnersConfig, names: Sequence[str], blocks: FeatureBlocks, head_start: float,
        drift: DriftConfig, slate_size: int, seed: int, generation: int,
    ) -> Team:  # fmt: skip
        """A team that has seen nothing; its first learner leads by `head_start`."""
        names = distinct_learners(names, blocks)
        learners = {name: LEARNERS[name](config, blocks, seed, f"auto {name} {generation}") for name in names}
        return cls(blocks, learners, [head_start, *[0.0] * (len(names) - 1)], drift, slate_size)

    @property
    def leader(self) -> str:
        """The learner with the most evidence."""
        return list(self.learners)[int(self.evidence.argmax())]

    @property
    def gaps(self) -> Tensor:
        """How far each learner's evidence is behind the leader's, (M,)."""
        return self.evidence.max() - self.evidence

    def absorb(self, z: Tensor, rewards: Tensor) -> None:
        """One slate's contexts (k, d) and rewards (k,): judge every learner by it, then let all learn."""
        features = self.blocks.read(z)
        chances = torch.stack([learner.means(features) for learner in self.learners.values()])
        chances = chances.clamp(CERTAIN, 1 - CERTAIN)
        self.surprise.observe(chances[int(self.evidence.argmax())], rewards)
        self.evidence = self.evidence + log_likelihood(chances, rewards)
        self.level += RATE * (float(rewards.mean()) - self.level)
        played = self.plays.add(z, features, rewards)
        for learner in self.learners.values():
            learner.learn(played, self.plays)

    @property
    def failures(self) -> int:
        """Trainings of nets that failed."""
        return sum(getattr(learner, "failures", 0) for learner in self.learners.values())

    def state_dict(self) -> dict[str, Tensor]:
        state = {"evidence": self.evidence.clone(), "level": torch.tensor(self.level, dtype=torch.float64)}
        for name, learner in self.learners.items():
            state |= nested(f"learner.{name}", learner.state_dict())
        state |= nested("plays", self.plays.state_dict()) | nested("surprise", self.surprise.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.evidence, self.level = take(state, "evidence", self.evidence), float(state["level"])
        for name, learner in self.learners.items():
            learner.load_state_dict(under(f"learner.{name}", state))
        self.plays.load_state_dict(under("plays", state))
        self.surprise.load_state_dict(under("surprise", state))
