"""auto: an ensemble of learners from linear to neural, weighted by predictive evidence, with exploration and
restarts by a change-point test."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.core import Design, Feedback, Round, Slate
from neuclust.errors import StateError
from neuclust.kernels.ranking import sound, top
from neuclust.models.crossed import CrossedRounds
from neuclust.models.encoder import active_contexts
from neuclust.models.state import (
    Shape,
    check_shapes,
    expect,
    nested,
    take_count,
    take_numbers,
    take_whole,
    under,
)
from neuclust.models.watch import LearningWatch
from neuclust.persistence import save_policy
from neuclust.policies.auto import ensemble as ensembles
from neuclust.policies.auto.context_reader import ContextReader
from neuclust.policies.auto.ensemble import Ensemble, EnsembleConfig
from neuclust.policies.auto.explanation import explanation
from neuclust.policies.auto.exploration import (
    ExplorationConfig,
    Ranking,
    ScoreCache,
    best_of_the_rest,
    doubtful_cluster,
    opposite_arm,
    optimistic_slots,
    uses_probes,
)
from neuclust.policies.auto.features import BlocksConfig, FeatureBlocks
from neuclust.policies.auto.item_effects import ItemEffects
from neuclust.policies.auto.marginal_gains import MarginalGains, MarginalGainsConfig
from neuclust.policies.auto.plays import MEMORY
from neuclust.policies.auto.reward_range import RewardRange, RewardRangeConfig
from neuclust.policies.auto.slot_effects import SlotEffects
from neuclust.policies.wiring import check_update, readable
from neuclust.randomness import stream
from neuclust.slates.propensities import Exploration, sample
from neuclust.slates.rules import keeps_rules
from neuclust.slates.ties import ones, tie_rank

NEGLIGIBLE = 1e-3  # learners of a smaller weight are left out of an average


@dataclass(frozen=True, slots=True)
@checked(penalty=NON_NEGATIVE, optimistic_slots=NON_NEGATIVE)
class AutoConfig:
    """The ensemble, whose weighted scores rank the arms (Bayesian model averaging), what it reads, and how it explores.
    Where contexts form clusters or rewards are rare, `optimistic_slots` slots, if that leaves any, go to the arms of
    the largest max_m [min(1, score_m) − penalty · lost evidence_m], the evidence without priors; the first of them to
    a cluster that is worth a test (`doubtful_cluster`). `marginal_gains` tests whether arms of one cluster have
    diminishing returns; where they do, slates maximise the expected sum of marginal gains and have no optimistic
    slots. `rewards` is the range of rewards, which are read on it as numbers from 0 to 1; slates report means in their
    own units. `items` and `slots`: whether ids of arms, and slots, may have effects of their own; the data decide
    whether they do.
    """

    RENAMED: ClassVar[Mapping[str, str]] = {
        "team": "ensemble", "claims": "optimistic_slots", "worth": "marginal_gains",
    }  # fmt: skip

    ensemble: EnsembleConfig = field(default_factory=EnsembleConfig)
    optimistic_slots: int = 1
    penalty: float = 0.2
    exploring: ExplorationConfig = field(default_factory=ExplorationConfig)
    blocks: BlocksConfig = field(default_factory=BlocksConfig)
    marginal_gains: MarginalGainsConfig = field(default_factory=MarginalGainsConfig)
    rewards: RewardRangeConfig = field(default_factory=RewardRangeConfig)
    items: bool = True
    slots: bool = True
    tie: Literal["id", "random"] = "id"


def state_to_select(policy: "Auto") -> dict[str, Tensor]:
    """What a policy that selects and does not learn needs: contexts that were played are left out."""
    memory = {f"team.plays.{name}" for name in MEMORY}
    return {name: tensor[:0] if name in memory else tensor for name, tensor in policy.state_dict().items()}


class Auto:
    """S_t = top K of the ensemble's combined scores, or the slate of the largest expected sum of marginal gains where
    arms of one cluster have diminishing returns; some slots explore."""

    name = "auto"
    save = save_policy

    def __init__(self, config: AutoConfig, dim: int, slate_size: int, seed: int = 0) -> None:
        self.config, self.dim, self.slate_size, self.seed = config, dim, slate_size, seed
        self.ensemble: Ensemble | None = None  # settled by the first update with any reward
        self.gains = MarginalGains(config.marginal_gains, slate_size)
        self.items, self.slots = ItemEffects(config.items), SlotEffects(slate_size, config.slots)
        self.rewards = RewardRange.first(config.rewards)
        self.watch = LearningWatch("the learners")
        self.restarts = 0
        self._reader = ContextReader()
        self._earlier_failures = 0  # of ensembles before the last restart
        self._latest_read: tuple[Round, FeatureBlocks | None] | None = None  # the latest round read before any update

    @keeps_rules
    def select(self, round: Round) -> Slate:
        round = readable(self, round)
        return slate_by(self, round, self._scored(round))

    def select_many(self, rounds: CrossedRounds) -> list[Slate | None]:
        """The slates of `select` by functions of the arms, without the contexts of each; None where it needs those."""
        reads = self.ensemble is not None and self.ensemble.blocks.reads_crossed
        if self.ensemble is None or not reads or not rounds.fits(self.dim, self.slate_size):
            return [None] * len(rounds)
        found: list[Slate | None] = []
        for at, ids in enumerate(rounds.arm_ids):
            features, key = self.ensemble.blocks.read_crossed(rounds, at), rounds.keys[at]
            if features is None:
                found.append(None)
                continue
            arms = torch.from_numpy(ids)
            round = Round(1, arms, torch.zeros(len(ids), 0), None, rounds.slate_sizes[at], draw=key)
            cache = ScoreCache(self.ensemble, features, torch.arange(len(ids)), key)
            found.append(slate_by(self, round, cache))
        return found

    def scores(self, round: Round) -> Tensor:
        """The combined score of every arm, (n,)."""
        cache = self._scored(readable(self, round))
        if cache is None:
            return torch.zeros(len(round.arm_ids), dtype=torch.float64)
        return self.rewards.own(with_items(cache, self, round.arm_ids)[0])

    def _scored(self, round: Round) -> ScoreCache | None:
        """The learners' scores of the round's distinct contexts; None where every context is 0."""
        ensemble = self._ensemble_for(round)
        if ensemble is None:
            return None
        return ScoreCache(ensemble, *self._reader.read(ensemble.blocks, round.contexts), round.key)

    def _ensemble_for(self, round: Round) -> Ensemble | None:
        """The ensemble, or one without data on this round's scales."""
        if self.ensemble is not None:
            return self.ensemble
        latest = self._latest_read  # read once: another thread may select from another round
        if latest is None or latest[0] is not round:  # an update follows with the round selected from
            latest = self._latest_read = round, FeatureBlocks.of(self.config.blocks, round)
        return None if latest[1] is None else self._fresh(latest[1])

    def _fresh(self, blocks: FeatureBlocks) -> Ensemble:
        ensemble = Ensemble(self.config.ensemble, blocks, self.slate_size, self.seed, self.restarts)
        ensemble.plays.zero = self.rewards.zero
        return ensemble

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        check_update(self, round, slate, feedback)
        if self.ensemble is not None and not self.ensemble.plays.remembers:
            wanted = "expected a policy with the contexts it was played on"
            raise StateError(f"{wanted}, got one that was written to select alone; learn with the one it was made from")
        round = round.read
        seen = ~torch.isnan(feedback.arm_rewards)
        rewards = feedback.arm_rewards[seen]
        if len(rewards):
            _widen(self, self.rewards.covering(rewards, self.config.rewards))
            self.watch.see(self.rewards.read(rewards).clamp(0, 1))
            self._learn(round, slate, feedback, seen)
        self.watch.speak()

    def settle(self, round: Round) -> None:
        """Fix the scales of contexts by this round, as the first update with any reward does with its round."""
        if self.ensemble is None:
            self.ensemble, self._latest_read = self._ensemble_for(readable(self, round)), None

    def _learn(self, round: Round, slate: Slate, feedback: Feedback, seen: Tensor) -> None:
        """Learn from the arms whose rewards were observed, `seen` (K,) bool."""
        ensemble = self._ensemble_for(round)
        if ensemble is None:
            return
        self.ensemble, self._latest_read = ensemble, None
        contexts = _contexts(round, slate.positions[seen])
        rewards = self.rewards.read(feedback.arm_rewards[seen]).clamp(0, 1)
        ids, slots = round.arm_ids[slate.positions[seen]], torch.nonzero(seen).flatten()
        exposures = self.slots.exposures(slots)
        explored = None if slate.explored is None else slate.explored[seen]
        chances = ensemble.update(contexts, rewards, explored, exposures)
        self.slots.observe(slots, self.items.shifted(ids, chances), rewards)
        self.items.observe(ids, chances * exposures, rewards)
        if ensemble.blocks.clusters is not None:
            labels = ensemble.blocks.clusters.labels(ensemble.blocks.scaled(contexts))
            self.gains.observe(labels, rewards, float(self.rewards.read(feedback.slate_reward)))
        kept = ensemble.change_test.change()
        if kept is not None:
            _validate_change(self, ensemble, kept)

    @property
    def exploring(self) -> float:
        """ε, the probability that a slot of the next slate explores."""
        return 0.0 if self.ensemble is None else self.config.exploring.chance(self.ensemble)

    explain, selecting_state = explanation, state_to_select

    @property
    def failed_trainings(self) -> int:
        """Number of failed fits of nets, over all restarts."""
        return self._earlier_failures + (0 if self.ensemble is None else self.ensemble.failures)

    @staticmethod
    def saved_shapes(config: AutoConfig, dim: int, slate_size: int) -> Iterator[tuple[str, Shape]]:  # noqa: ARG004
        """What a save holds at least."""
        yield "range", (6,)
        yield "worth.gram", (2, slate_size, slate_size)
        yield "slots.gram", (2, 2 + slate_size, 2 + slate_size)

    def state_dict(self) -> dict[str, Tensor]:
        # tensors keep the names they had before parts were renamed
        numbers = {"seed": self.seed, "restarts": self.restarts, "earlier_failures": self._earlier_failures}
        state = {name: torch.tensor(number) for name, number in numbers.items()} | {"range": self.rewards.tensor}
        for name, part in (("worth", self.gains), ("items", self.items), ("slots", self.slots)):
            state |= nested(name, part.state_dict())
        if self.ensemble is not None:
            state |= nested("blocks", self.ensemble.blocks.state_dict()) | nested("team", self.ensemble.state_dict())
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.seed, self.restarts = take_whole(state, "seed"), take_count(state, "restarts")
        self._earlier_failures = take_count(state, "earlier_failures")
        low, high, *sums = take_numbers(state, "range", 6)
        self.rewards, declared = RewardRange(low, high, (sums[0], sums[1]), (sums[2], sums[3])), self.config.rewards
        kept = declared.low in (None, self.rewards.low) and declared.high in (None, self.rewards.high)
        expect(
            0 < self.rewards.width < torch.inf and kept and min(sums) >= 0,
            "a range of rewards with the declared ends",
            self.rewards,
        )
        self.ensemble = self._latest_read = None
        for name, part in (("worth", self.gains), ("items", self.items), ("slots", self.slots)):
            part.load_state_dict(under(name, state))
        settled = under("blocks", state)
        if settled:
            blocks = FeatureBlocks.from_state(self.config.blocks, self.dim, settled)
            check_shapes(under("team", state), ensembles.ensemble_shapes(self.config.ensemble, blocks))
            ensemble = self._fresh(blocks)
            ensemble.load_state_dict(under("team", state))
            self.ensemble = ensemble


def slate_by(policy: Auto, round: Round, cache: ScoreCache | None) -> Slate:
    """The slate by scores; of the round it reads everything but contexts."""
    k, certain = round.slate_size, ones(round.slate_size) if policy.config.tie == "id" else None
    rank = tie_rank(round, policy.config.tie, policy.seed)
    if cache is None:  # every context is 0: all arms are alike
        zeros = torch.zeros(k, dtype=torch.float64)
        return Slate(top(torch.zeros(len(round.arm_ids)), rank, k), zeros, zeros, certain)
    scores, means = with_items(cache, policy, round.arm_ids)
    rng, exploring = stream(policy.seed, "auto exploring", round.key), policy.config.exploring
    probe = exploring.probe_chance(cache.ensemble)
    probed = opposite_arm(cache, rank) if probe > 0 and rng.random() < probe else []
    tried = torch.tensor(probed, dtype=torch.int64)
    steps, penalty = policy.gains.steps, policy.config.penalty
    compared = steps is None and not uses_probes(cache.ensemble) and len(cache.ensemble.learners) > 1
    wanted = policy.config.optimistic_slots if compared else 0
    informative = cache.ensemble.plays.scale.informative
    drawn = cache.ensemble.draws or probe > 0 or (wanted > 0 and informative < 1)
    wanted = wanted if rng.random() < informative else 0
    ranking = Ranking(scores, rank, k)
    if wanted:
        tested = doubtful_cluster(cache, ranking, tried)
        tried, wanted = torch.cat([tried, tested]), wanted - len(tested)
    optimistic = optimistic_slots(cache, ranking, tried, wanted, penalty)
    chosen = best_of_the_rest(cache, ranking, torch.cat([tried, optimistic]), steps)
    base = torch.cat([chosen, tried, optimistic])[policy.slots.order(k)]
    explored, propensities, design = torch.zeros(k, dtype=torch.bool), None if drawn else certain, None
    share = Exploration(policy.exploring, anywhere=1.0)
    if share.share > 0:  # given the base slate, as propensities of `Exploring` are
        design = Design("sequential", tuple(base.tolist()), share.share)
        base, propensities, explored = sample(base, base[:0], round, share, rng)
    bonuses = policy.rewards.width * (scores - means)[base].clamp(min=0)
    return Slate(base, policy.rewards.own(means[base]), bonuses, propensities, explored=explored, design=design)


def combined(cache: ScoreCache) -> tuple[Tensor, Tensor]:
    """Σ_m v_m score_m and Σ_m v_m mean_m of distinct contexts, v the ensemble's weights; negligible ones left out."""
    names, weights = list(cache.ensemble.learners), sound(torch.softmax(cache.ensemble.log_weights, 0))
    used = [m for m, weight in enumerate(weights.tolist()) if weight > NEGLIGIBLE]
    scores, means = (torch.stack(values) for values in zip(*(cache.of(names[m]) for m in used), strict=True))
    shares = weights[used] / weights[used].sum()
    return shares @ scores, shares @ means


def with_items(cache: ScoreCache, policy: Auto, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Combined scores and means of all arms with the effects of their items, of which every score gains: (n,), (n,)."""
    scores, means = (values[cache.group] for values in combined(cache))
    cache.gains = policy.items.gains(ids, means, policy.rewards.all_zero)
    return scores + cache.gains, policy.items.shifted(ids, means)


def _validate_change(policy: Auto, ensemble: Ensemble, slates: int) -> None:
    """Restart from the latest slates if an ensemble fitted on them alone predicts their later half better.
    An alarm may also come from a misspecified ensemble, whose data would be lost for nothing."""
    fresh = ensembles.refit_on_recent(ensemble, slates, policy.seed, policy.restarts + 1)
    later = max(1, slates // 2)
    gain = fresh.recent_log_likelihood(later) - ensemble.recent_log_likelihood(later)
    if gain > policy.config.ensemble.drift.gain:
        policy.restarts += 1
        policy._earlier_failures += ensemble.failures
        policy.ensemble, policy.items = fresh, ItemEffects(policy.config.items)
    else:
        ensemble.change_test.suspend()


def _widen(policy: Auto, wider: RewardRange) -> None:
    """Read everything learned on a wider range; only marginal gains, of rounded sums of rewards, start again."""
    change, policy.rewards = policy.rewards.onto(wider), wider
    if change == (1.0, 0.0):
        return
    policy.gains = MarginalGains(policy.config.marginal_gains, policy.slate_size)
    for part in (policy.items, policy.slots):
        part.rescale(change)
    if policy.ensemble is not None:
        policy.ensemble.plays.zero = wider.zero
        ensembles.rescale(policy.ensemble, change)


def _contexts(round: Round, positions: Tensor) -> Tensor:
    """z of the given arms with all columns: (k,) -> (k, d)."""
    given = active_contexts(round, positions)
    full = given.new_zeros(len(given), round.profiles.shape[1])
    full[:, round.active] = given
    return full
