"""auto: for the user who tunes nothing. Learners from linear to neural share all data and count by how well they
foresaw rewards, exploration follows what there is to gain, and a change of the world is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import check_choices
from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.errors import ConfigError, DataError
from neuclust.kernels.ranking import top
from neuclust.kernels.regions import group_rows
from neuclust.parts.block_regression import BlockRegression
from neuclust.parts.encoder import contexts_at
from neuclust.parts.feature_blocks import BlocksConfig, FeatureBlocks, Features
from neuclust.parts.learners import LearnersConfig, learner_names
from neuclust.parts.state import nested, under
from neuclust.parts.surprise import DriftConfig
from neuclust.parts.team import Team
from neuclust.parts.ties import tie_rank
from neuclust.persistence import save_policy
from neuclust.randomness import stream

UNHEARD = 1e-6  # the weight in an average below which a learner is not asked


@dataclass(frozen=True, slots=True)
class ExploringConfig:
    """A slot explores with chance ε = (1 − r̄)^power · min(eps0, epsc/t); `rival` of these take a learner's best arm,
    the others any arm. r̄ is a moving average of arm rewards, t counts slates since the start or the last change."""

    eps0: float = 0.8
    epsc: float = 16.0
    power: float = 2.0
    rival: float = 0.5

    def __post_init__(self) -> None:
        if not (0 <= self.eps0 <= 1 and 0 <= self.rival <= 1 and self.epsc >= 0 and self.power >= 0):
            raise ConfigError(
                "exploring: expected eps0 and rival from 0 to 1, epsc and power of at least 0, got "
                f"{self.eps0}, {self.rival}, {self.epsc} and {self.power}"
            )

    def chance(self, level: float, t: int) -> float:
        """ε for r̄ = `level` at slate t = 1, 2, …"""
        return float((1 - level) ** self.power * min(self.eps0, self.epsc / t))


@dataclass(frozen=True, slots=True)
class AutoConfig:
    """`learners` by name, the first with `prior` more evidence than the others; how their scores are combined:

    leader  the scores of the learner with the most evidence
    max     max_m [score_m − penalty · gap_m]
    average Σ_m w_m score_m, w_m ∝ exp(−gap_m / temperature)
    """

    learners: str = "linear,quadratic,logistic,additive,net,stiff-net"
    prior: float = 3.0
    combine: Literal["leader", "max", "average"] = "average"
    penalty: float = 0.05
    temperature: float = 1.0
    exploring: ExploringConfig = field(default_factory=ExploringConfig)
    drift: DriftConfig = field(default_factory=DriftConfig)
    blocks: BlocksConfig = field(default_factory=BlocksConfig)
    options: LearnersConfig = field(default_factory=LearnersConfig)
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_choices(self)
        learner_names(self.learners)
        if not (self.penalty >= 0 and self.temperature > 0):
            raise ConfigError(
                f"auto: expected penalty >= 0 and temperature > 0, got {self.penalty} and {self.temperature}"
            )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Who leads and why: evidence behind the leader's by learner, noise variances found, how much is explored."""

    leader: str | None  # None: nothing seen yet
    gaps: dict[str, float]
    noise: dict[str, float]
    exploring: float
    restarts: int
    masked: bool | None


class Auto:
    """S_t = top K of the combined scores of a team of learners, some slots left to chance while rewards are low."""

    name = "auto"
    save = save_policy

    def __init__(self, config: AutoConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.team: Team | None = None  # settled by the first update that shows anything
        self.restarts = 0
        self._earlier_failures = 0  # of teams that were given up

    # --- selection -------------------------------------------------------------------------------------------

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        team = self._team_for(round)
        if team is None:  # every context is 0: nothing tells arms apart
            zeros = torch.zeros(len(round.arm_ids), dtype=torch.float64)
            return self._slate(round, zeros, zeros, [])
        contexts = round.contexts
        first, group = group_rows(contexts)  # equal contexts once, so that ties stay ties
        sheets = Sheets(team, team.blocks.read(contexts[first]), round.t)
        scores, means = self._combined(sheets)
        explorers = self._explorers(round, sheets, group)
        return self._slate(round, scores[group], means[group], explorers)

    def _combined(self, sheets: Sheets) -> tuple[Tensor, Tensor]:
        """Scores by the rule of `combine`, and the leader's means."""
        team, names = sheets.team, list(sheets.team.learners)
        scores, means = sheets.of(team.leader)
        if self.config.combine == "leader":
            return scores, means
        if self.config.combine == "max":
            every = torch.stack([sheets.of(name)[0] for name in names])
            return (every - self.config.penalty * team.gaps.unsqueeze(1)).amax(0), means
        weights = torch.softmax(-team.gaps / self.config.temperature, 0)
        heard = [m for m, weight in enumerate(weights.tolist()) if weight > UNHEARD]
        return weights[heard] @ torch.stack([sheets.of(names[m])[0] for m in heard]), means

    def _explorers(self, round: Round, sheets: Sheets, group: Tensor) -> list[int]:
        """Positions that slots left to chance take, all different."""
        rng = stream(self.seed, "auto exploring", round.t)
        slots = int((rng.random(self.slate_size) < self.exploring).sum())
        chosen: list[int] = []
        for _ in range(slots):
            if rng.random() < self.config.exploring.rival:
                chosen.append(self._best_of_rival(round, sheets, group, chosen, rng))
            else:
                free = np.setdiff1d(np.arange(len(group)), chosen)
                chosen.append(int(free[rng.integers(len(free))]))
        return chosen

    def _best_of_rival(
        self, round: Round, sheets: Sheets, group: Tensor, taken: list[int], rng: np.random.Generator
    ) -> int:
        names = list(sheets.team.learners)
        scores = sheets.of(names[int(rng.integers(len(names)))])[0][group].clone()
        scores[taken] = -torch.inf
        return int(top(scores, tie_rank(round, self.config.tie, self.seed), 1)[0])

    def _slate(self, round: Round, scores: Tensor, means: Tensor, explorers: list[int]) -> Slate:
        """The best by score where chance left slots free, then what chance chose."""
        scores = scores.clone()
        if explorers:
            scores[explorers] = -torch.inf
        free = self.slate_size - len(explorers)
        rank = tie_rank(round, self.config.tie, self.seed)
        best = top(scores, rank, free) if free else torch.zeros(0, dtype=torch.int64)
        positions = torch.cat([best, torch.tensor(explorers, dtype=torch.int64)])
        return Slate(positions, means[positions], (scores - means)[positions].clamp(min=0))

    def _team_for(self, round: Round) -> Team | None:
        """The team, or one that has seen nothing yet on this round's scales."""
        if self.team is not None:
            return self.team
        blocks = FeatureBlocks.of(self.config.blocks, round)
        return None if blocks is None else self._fresh(blocks)

    def _fresh(self, blocks: FeatureBlocks) -> Team:
        config = self.config
        names = learner_names(config.learners)
        return Team.of(
            config.options, names, blocks, config.prior, config.drift, self.slate_size, self.seed, self.restarts
        )

    # --- learning --------------------------------------------------------------------------------------------

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)
        seen = ~torch.isnan(feedback.arm_rewards)
        rewards = feedback.arm_rewards[seen].to(torch.float64)
        if bool(((rewards < 0) | (rewards > 1)).any()):
            worst = float(rewards[(rewards - 0.5).abs().argmax()])
            raise DataError(
                f"round {round.t}: auto reads arm rewards as chances and expected numbers from 0 to 1, got "
                f"{worst:g}; divide rewards by the largest there can be"
            )
        team = self._team_for(round) if len(rewards) else None
        if team is None:
            return
        self.team = team
        team.absorb(_contexts(round, slate.positions[seen]), rewards)
        since = team.surprise.change()
        if since is not None:
            self._restart(team, since)

    def _restart(self, team: Team, slates: int) -> None:
        """As if the policy had begun that many slates ago."""
        self.restarts += 1
        self._earlier_failures += team.failures
        self.team = self._fresh(team.blocks)
        for contexts, rewards in team.plays.latest(slates):
            self.team.absorb(contexts, rewards)

    # --- what it thinks --------------------------------------------------------------------------------------

    @property
    def exploring(self) -> float:
        """ε, the chance that a slot of the next slate explores."""
        level, slates = (0.2, 0) if self.team is None else (self.team.level, self.team.plays.slates)
        return self.config.exploring.chance(level, slates + 1)

    @property
    def failed_trainings(self) -> int:
        """How many fits of nets failed, over all restarts."""
        return self._earlier_failures + (0 if self.team is None else self.team.failures)

    def explain(self) -> Explanation:
        """Who leads, by how much, and what was found out about the problem."""
        team = self.team
        if team is None:
            return Explanation(None, {}, {}, self.exploring, self.restarts, None)
        learners = team.learners.items()
        noise = {n: one.belief.noise_variance for n, one in learners if isinstance(one, BlockRegression)}
        gaps = dict(zip(team.learners, team.gaps.tolist(), strict=True))
        return Explanation(team.leader, gaps, noise, self.exploring, self.restarts, team.blocks.masked)

    # --- state -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        state = {
            "seed": torch.tensor(self.seed),
            "restarts": torch.tensor(self.restarts),
            "earlier_failures": torch.tensor(self._earlier_failures),
        }
        if self.team is not None:
            state |= nested("blocks", self.team.blocks.state_dict()) | nested("team", self.team.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        seed, restarts, failures = (int(state[name]) for name in ("seed", "restarts", "earlier_failures"))
        self.seed, self.restarts, self._earlier_failures, self.team = seed, restarts, failures, None
        settled = under("blocks", state)
        if settled:
            team = self._fresh(FeatureBlocks.from_state(self.config.blocks, self.dim, settled))
            team.load_state_dict(under("team", state))
            self.team = team


@dataclass(slots=True)
class Sheets:
    """Every learner's scores and means of a round's distinct contexts, computed when asked for."""

    team: Team
    features: Features
    t: int
    _known: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Tensor, Tensor]:
        if name not in self._known:
            self._known[name] = self.team.learners[name].scores(self.features, self.t)
        return self._known[name]


def _contexts(round: Round, positions: Tensor) -> Tensor:
    """z of the given arms with all columns: (k,) -> (k, d)."""
    given = contexts_at(round, positions).to(torch.float64)
    full = given.new_zeros(len(given), round.profiles.shape[1])
    full[:, round.active] = given
    return full
