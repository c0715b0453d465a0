"""auto: for the user who tunes nothing. Learners from linear to neural share all data and count by how well they
foresaw rewards, exploration follows what there is to gain, and a change of the world is noticed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from neuclust.configuration import check_entries
from neuclust.core import Feedback, Round, Slate, check_feedback, check_round
from neuclust.errors import ConfigError, DataError
from neuclust.kernels.ranking import sound, top
from neuclust.kernels.regions import group_rows
from neuclust.models.encoder import contexts_at
from neuclust.models.state import Shape, check_shapes, nested, take_count, take_whole, under
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
from neuclust.policies.auto.ensemble import BLIND, LEVEL, Team, TeamConfig, retold, team_shapes
from neuclust.policies.auto.features import BlocksConfig, FeatureBlocks, Features
from neuclust.policies.auto.learners.block_regression import BlockRegression
from neuclust.policies.auto.marginal_gains import SlateWorth, SlateWorthConfig, assemble_groups
from neuclust.randomness import stream
from neuclust.slates.ties import tie_rank

UNHEARD = 1e-6  # the weight in an average below which a learner is not asked


@dataclass(frozen=True, slots=True)
class ExploringConfig:
    """A slot explores with chance ε = min(eps0, epsc (1 − r̄)^power / (t · lift)); `rival` of these take a learner's
    best arm, the others any arm, blindly. r̄ is a moving average of the rewards of arms that were chosen, lift how much
    more that is than what arms taken blindly have paid (at least `least_lift`), t counts slates since the start or the
    last change.

    So exploring costs about epsc (1 − r̄)^power / t a slot, whatever the problem, and is free where choosing is no
    better than chance: a team on the wrong track goes on exploring until it is off it.
    """

    eps0: float = 0.8
    epsc: float = 3.0
    power: float = 4.0
    least_lift: float = 0.01
    rival: float = 0.5

    def __post_init__(self) -> None:
        check_entries(self)
        if not (0 <= self.eps0 <= 1 and 0 <= self.rival <= 1 and self.epsc >= 0 and self.power >= 0):
            raise ConfigError(
                "exploring: expected eps0 and rival from 0 to 1, epsc and power of at least 0, got "
                f"{self.eps0}, {self.rival}, {self.epsc} and {self.power}"
            )
        if not self.least_lift > 0:
            raise ConfigError(f"exploring.least_lift: expected a number above 0, got {self.least_lift}")

    def chance(self, level: float, lift: float, t: int) -> float:
        """ε for r̄ = `level` at slate t = 1, 2, …"""
        cost = self.epsc * (1 - level) ** self.power / t
        return float(min(self.eps0, cost / max(self.least_lift, lift)))


@dataclass(frozen=True, slots=True)
class AutoConfig:
    """Who is in the team, what they read, and how their scores are combined:

    leader  the scores of the learner with the largest weight
    max     max_m [score_m − penalty · gap_m]
    average Σ_m w_m score_m, w_m ∝ v_m^(1 / temperature) of the team's weights v

    `claims` slots of a slate, if that leaves any, go to the arms somebody promises most of: max_m [min(1, score_m) −
    penalty · loss_m], loss_m being the gap without anybody's head start. `worth` finds out whether arms of one cluster
    pay less together; slates are then put together by worth, and no slot is claimed.
    """

    team: TeamConfig = field(default_factory=TeamConfig)
    combine: Literal["leader", "max", "average"] = "average"
    claims: int = 1
    penalty: float = 0.05
    temperature: float = 1.0
    exploring: ExploringConfig = field(default_factory=ExploringConfig)
    blocks: BlocksConfig = field(default_factory=BlocksConfig)
    worth: SlateWorthConfig = field(default_factory=SlateWorthConfig)
    tie: Literal["id", "random"] = "id"

    def __post_init__(self) -> None:
        check_entries(self)
        if not (self.penalty >= 0 and self.temperature > 0 and self.claims >= 0):
            raise ConfigError(
                "auto: expected penalty and claims of at least 0 and temperature > 0, got "
                f"{self.penalty}, {self.claims} and {self.temperature}"
            )


@dataclass(frozen=True, slots=True)
class Explanation:
    """Who leads and why: weights, and evidence behind the largest, by learner; noise variances found, how much is
    explored, how many clusters the contexts form (1: none), and what each further rewarded arm of a cluster adds
    (None: the same).
    """

    leader: str | None  # None: nothing seen yet
    gaps: dict[str, float]
    noise: dict[str, float]
    exploring: float
    restarts: int
    masked: bool | None
    clusters: int | None = None
    steps: tuple[float, ...] | None = None
    weights: dict[str, float] = field(default_factory=dict)


class Auto:
    """S_t = top K of the combined scores of a team of learners, some slots left to chance while rewards are low.

    Where arms of one cluster were seen to pay less together, S_t is the slate of the largest expected worth instead.
    """

    name = "auto"
    save = save_policy

    def __init__(self, config: AutoConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.team: Team | None = None  # settled by the first update that shows anything
        self.worth = SlateWorth(config.worth, slate_size)
        self.watch = LearningWatch("the learners")
        self.restarts = 0
        self._earlier_failures = 0  # of teams that were given up
        self._looked_at: tuple[Round, FeatureBlocks | None] | None = None  # the latest round read before any update

    # --- selection -------------------------------------------------------------------------------------------

    def select(self, round: Round) -> Slate:
        check_round(round, self.dim, self.slate_size)
        rank = tie_rank(round, self.config.tie, self.seed)
        team = self._team_for(round)
        if team is None:  # every context is 0: nothing tells arms apart
            zeros = torch.zeros(self.slate_size, dtype=torch.float64)
            return Slate(top(torch.zeros(len(round.arm_ids)), rank, self.slate_size), zeros, zeros)
        first, group = group_rows(round.contexts)  # equal contexts once, so that ties stay ties
        sheets = Sheets(team, team.blocks.read(round.contexts[first]), group, round.t)
        scores, means = (values[group] for values in self._combined(sheets))
        explorers = self._explorers(sheets, rank)
        explored = [position for position, _ in explorers]
        claimed = self._claimed(sheets, scores, rank, explored)
        chosen = self._chosen(sheets, scores, rank, [*explored, *claimed.tolist()])
        positions = torch.cat([chosen, claimed, torch.tensor(explored, dtype=torch.int64)])
        blind = torch.tensor([False] * (len(chosen) + len(claimed)) + [blindly for _, blindly in explorers])
        return Slate(positions, means[positions], (scores - means)[positions].clamp(min=0), blind=blind)

    def _chosen(self, sheets: Sheets, scores: Tensor, rank: Tensor, taken: list[int]) -> Tensor:
        """The best of the others for the slots that chance left free, best first."""
        free = torch.ones(len(scores), dtype=torch.bool)
        free[taken] = False
        left = torch.nonzero(free).flatten()
        steps, places, wanted = self.worth.steps, sheets.team.blocks.places, self.slate_size - len(taken)
        if wanted == 0:
            return left[:0]
        if steps is None or places is None:
            return left[top(scores[left], rank[left], wanted)]
        labels = places.labels(sheets.features.x)[sheets.group]
        return left[assemble_groups(scores[left], labels[left], steps, rank[left], wanted)]

    def _combined(self, sheets: Sheets) -> tuple[Tensor, Tensor]:
        """Scores by the rule of `combine`, and the leader's means."""
        team, names = sheets.team, list(sheets.team.learners)
        scores, means = sheets.of(team.leader)
        if self.config.combine == "leader":
            return scores, means
        if self.config.combine == "max":
            every = torch.stack([sheets.of(name)[0] for name in names])
            return (every - self.config.penalty * team.gaps.unsqueeze(1)).amax(0), means
        weights = sound(torch.softmax(team.log_weights / self.config.temperature, 0))
        heard = [m for m, weight in enumerate(weights.tolist()) if weight > UNHEARD]
        return weights[heard] @ torch.stack([sheets.of(names[m])[0] for m in heard]), means

    def _explorers(self, sheets: Sheets, rank: Tensor) -> list[tuple[int, bool]]:
        """Positions that slots left to chance take, all different, and whether blindly."""
        rng = stream(self.seed, "auto exploring", sheets.t)
        slots = int((rng.random(self.slate_size) < self.exploring).sum())
        found: list[tuple[int, bool]] = []
        for _ in range(slots):
            taken = [position for position, _ in found]
            if rng.random() < self.config.exploring.rival:
                found.append((self._best_of_rival(sheets, rank, taken, rng), False))
            else:
                free = np.setdiff1d(np.arange(len(sheets.group)), taken)
                found.append((int(free[rng.integers(len(free))]), True))
        return found

    def _claimed(self, sheets: Sheets, scores: Tensor, rank: Tensor, taken: list[int]) -> Tensor:
        """The arms somebody promises most of, each promise less what the evidence against him takes off it.

        Whoever leads plays what proves him right. A rival that knows of better arms elsewhere is never refuted, and
        never heard, unless somebody goes there.
        """
        own = self.slate_size - len(taken) - self.config.claims  # slots left to what all of them like best
        team = sheets.team
        if self.config.claims == 0 or own < 1 or len(team.learners) < 2 or self.worth.steps is not None:
            return torch.empty(0, dtype=torch.int64)
        liked = scores.clone()
        liked[taken] = -torch.inf
        spoken_for = torch.cat([torch.tensor(taken, dtype=torch.int64), top(liked, rank, own)])
        promised = torch.full_like(scores, -torch.inf)
        losses = dict(zip(team.learners, (self.config.penalty * team.losses).tolist(), strict=True))
        for name in sorted(losses, key=lambda name: losses[name]):
            if 1 - losses[name] < _kth_largest(promised, self.config.claims):
                break  # nobody promises more than 1: whatever the others say, these arms stay
            promised = promised.maximum(sheets.of(name)[0].clamp(max=1)[sheets.group] - losses[name])
            promised[spoken_for] = -torch.inf
        return top(promised, rank, self.config.claims)

    def _best_of_rival(self, sheets: Sheets, rank: Tensor, taken: list[int], rng: np.random.Generator) -> int:
        names = list(sheets.team.learners)
        scores = sheets.of(names[int(rng.integers(len(names)))])[0][sheets.group].clone()
        scores[taken] = -torch.inf
        return int(top(scores, rank, 1)[0])

    def _team_for(self, round: Round) -> Team | None:
        """The team, or one that has seen nothing yet on this round's scales."""
        if self.team is not None:
            return self.team
        looked_at = self._looked_at  # read once: another thread may look at another round
        if looked_at is None or looked_at[0] is not round:  # an update follows with the round selected from
            looked_at = self._looked_at = round, FeatureBlocks.of(self.config.blocks, round)
        blocks = looked_at[1]
        return None if blocks is None else self._fresh(blocks)

    def _fresh(self, blocks: FeatureBlocks) -> Team:
        return Team(self.config.team, blocks, self.slate_size, self.seed, self.restarts)

    # --- learning --------------------------------------------------------------------------------------------

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_round(round, self.dim, self.slate_size)
        check_feedback(round, slate, feedback)
        seen = ~torch.isnan(feedback.arm_rewards)
        rewards = feedback.arm_rewards[seen]
        if bool(((rewards < 0) | (rewards > 1)).any()):
            worst = float(rewards[(rewards - 0.5).abs().argmax()])
            raise DataError(
                f"round {round.t}: auto reads arm rewards as chances and expected numbers from 0 to 1, got "
                f"{worst:g}; divide rewards by the largest there can be"
            )
        self.watch.see(rewards)
        if len(rewards):
            self._learn(round, slate, feedback, seen)
        self.watch.speak()

    def _learn(self, round: Round, slate: Slate, feedback: Feedback, seen: Tensor) -> None:
        """Take in the arms whose rewards were `seen`, (K,) bool."""
        team = self._team_for(round)
        if team is None:
            return
        self.team, self._looked_at = team, None
        contexts, rewards = _contexts(round, slate.positions[seen]), feedback.arm_rewards[seen]
        team.absorb(contexts, rewards, None if slate.blind is None else slate.blind[seen])
        if team.blocks.places is not None:
            labels = team.blocks.places.labels(team.blocks.scaled(contexts))
            self.worth.observe(labels, rewards, float(feedback.slate_reward))
        since = team.surprise.change()
        if since is not None:
            self._reconsider(team, since)

    def _reconsider(self, team: Team, slates: int) -> None:
        """Begin anew with the latest slates if one who saw nothing else foresaw the later half of them better.

        What looks like a change may be a team that is wrong in another way: it would lose its memory for nothing.
        """
        fresh = retold(team, slates, self.seed, self.restarts + 1)
        later = max(1, slates // 2)
        if fresh.foresaw(later) - team.foresaw(later) > self.config.team.drift.gain:
            self.restarts += 1
            self._earlier_failures += team.failures
            self.team = fresh
        else:
            team.surprise.dismiss()

    # --- what it thinks --------------------------------------------------------------------------------------

    @property
    def exploring(self) -> float:
        """ε, the chance that a slot of the next slate explores."""
        if self.team is None:
            return self.config.exploring.chance(LEVEL, LEVEL - BLIND, 1)
        return self.config.exploring.chance(self.team.level, self.team.lift, self.team.plays.slates + 1)

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
        places, steps = team.blocks.places, self.worth.steps
        return Explanation(
            team.leader, gaps, noise, self.exploring, self.restarts, team.blocks.masked,
            clusters=1 if places is None else len(places.centroids),
            steps=None if steps is None else tuple(steps.tolist()),
            weights=dict(zip(team.learners, torch.exp(team.log_weights).tolist(), strict=True)),
        )  # fmt: skip

    # --- state -----------------------------------------------------------------------------------------------

    @staticmethod
    def saved_shapes(config: AutoConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        yield "worth.gram", (2, slate_size, slate_size)

    def state_dict(self) -> dict[str, Tensor]:
        state = {
            "seed": torch.tensor(self.seed),
            "restarts": torch.tensor(self.restarts),
            "earlier_failures": torch.tensor(self._earlier_failures),
            **nested("worth", self.worth.state_dict()),
        }
        if self.team is not None:
            state |= nested("blocks", self.team.blocks.state_dict()) | nested("team", self.team.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        seed, restarts = take_whole(state, "seed"), take_count(state, "restarts")
        failures = take_count(state, "earlier_failures")
        self.seed, self.restarts, self._earlier_failures, self.team = seed, restarts, failures, None
        self._looked_at = None
        self.worth.load_state_dict(under("worth", state))
        settled = under("blocks", state)
        if settled:
            blocks = FeatureBlocks.from_state(self.config.blocks, self.dim, settled)
            check_shapes(under("team", state), team_shapes(self.config.team, blocks))
            team = self._fresh(blocks)
            team.load_state_dict(under("team", state))
            self.team = team


@dataclass(slots=True)
class Sheets:
    """Every learner's scores and means of a round's distinct contexts, computed when asked for."""

    team: Team
    features: Features
    group: Tensor  # (n,) the distinct context of every arm
    t: int
    _known: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Tensor, Tensor]:
        if name not in self._known:
            self._known[name] = self.team.learners[name].scores(self.features, self.t)
        return self._known[name]


def _kth_largest(values: Tensor, k: int) -> float:
    return float(values.topk(k).values[-1])


def _contexts(round: Round, positions: Tensor) -> Tensor:
    """z of the given arms with all columns: (k,) -> (k, d)."""
    given = contexts_at(round, positions)
    full = given.new_zeros(len(given), round.profiles.shape[1])
    full[:, round.active] = given
    return full
