"""An ensemble of learners on the same data, weighted by their evidence: Bayesian model averaging with fixed share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from scipy.special import betainc, expit, logit
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.kernels.evidence import fixed_share
from neuclust.models.history import GrowingTable
from neuclust.models.state import Shape, expect, nested, nested_shapes, take, take_numbers, under
from neuclust.policies.auto.change_point import ChangePointTest, DriftConfig, keep_latest, log_likelihood
from neuclust.policies.auto.features import FeatureBlocks
from neuclust.policies.auto.learners import catalogue
from neuclust.policies.auto.learners.catalogue import Learner, LearnersConfig
from neuclust.policies.auto.plays import Plays
from neuclust.policies.auto.reward_range import Rescaling

CERTAIN = 0.12  # predictions are at least so many units away from 0 and 1 when they are scored
FORGETTING = 0.3  # times the unit: the share of what is known of rewards by score that a slate replaces
MOST_PRIOR = 100.0  # nats; with many more the other learners' weights would underflow to 0 and stay there
BY_SCORE = 0.85  # log-odds above the level that arms chosen by score start at
PSEUDO_COUNT = 1.0  # arms that such a start counts for, divided by the unit


@dataclass(frozen=True, slots=True)
@checked(prior=(0, MOST_PRIOR), settling=NON_NEGATIVE, switching=NON_NEGATIVE)
class EnsembleConfig:
    """`learners` by name. The first, and `local` where there are clusters, start with `prior` more nats of evidence,
    `recent`, which equals `additive` until it forgets, with as many less.
    The first `settling` slates do not count as evidence: there, predictions that start at 0 lose to those that start at
    ½. Fixed share (Herbster and Warmuth, 1998): after slate t a share `switching`/t of all weight returns to where it
    started, so that a learner that needs much data can recover from early losses."""

    learners: str = "linear,local,logistic,additive,recent,net,index,forest"
    prior: float = 5.0
    settling: int = 3
    switching: float = 1.0
    drift: DriftConfig = field(default_factory=DriftConfig)
    options: LearnersConfig = field(default_factory=LearnersConfig)

    def __post_init__(self) -> None:
        object.__setattr__(self, "learners", catalogue.checked_names(self.learners))


class Ensemble:
    """Evidence L_m = prior_m + Σ log-likelihood of each slate's rewards under learner m, predicted one step ahead.
    Weights start at v_0 ∝ exp(prior) and follow fixed share, v ← (1 − α_t) v' + α_t v_0, v' ∝ v exp(log-likelihood),
    α_t = min(½, switching/t): with α = 0 they are the posterior over models, ∝ exp(L)."""

    def __init__(
        self, config: EnsembleConfig, blocks: FeatureBlocks, slate_size: int, seed: int = 0, generation: int = 0
    ) -> None:
        self.config, self.blocks = config, blocks
        self.learners: Mapping[str, Learner] = {
            name: catalogue.LEARNERS[name](config.options, blocks, seed, f"auto {name} {generation}")
            for name in catalogue.fitting_learners(config.learners, blocks)
        }
        self.plays = Plays(blocks, slate_size, config.drift.longest, seed)
        first = {"local": config.prior, "recent": -config.prior, next(iter(self.learners)): config.prior}
        self.evidence = self._prior = torch.tensor([first.get(m, 0.0) for m in self.learners], dtype=torch.float64)  # L
        self._first_weights = torch.softmax(self.evidence, 0)  # v_0
        self.log_weights = torch.log_softmax(self.evidence, 0)  # log v, (M,)
        self._chosen = self._uniform = 0.0, 0.0  # Σr and number of arms by score (recent), and drawn uniformly
        self.change_test = ChangePointTest(config.drift)
        self._log_likelihoods = GrowingTable()  # of the latest slates under the weighted prediction

    @property
    def leader(self) -> str:
        """The learner with the largest weight."""
        return list(self.learners)[int(self.log_weights.argmax())]

    @property
    def gaps(self) -> Tensor:
        """max_j L_j − L_m, (M,)."""
        return self.evidence.max() - self.evidence

    @property
    def lost_evidence(self) -> Tensor:
        """The same without the priors, (M,)."""
        earned = self.evidence - self._prior
        return earned.max() - earned

    @property
    def mean_reward(self) -> float:
        """r̄, the mean of recent rewards of arms chosen by score."""
        (total, number), scale, zero = self._chosen, self.plays.scale, self.plays.zero
        prior, expected = PSEUDO_COUNT / scale.unit, zero + (1 - zero) * expit(logit(scale.level) + BY_SCORE)
        return float((total + prior * expected) / (number + prior))

    def recent_log_likelihood(self, slates: int) -> float:
        """Of the latest slates' rewards, each predicted one step ahead by the weighted ensemble."""
        return float(self._log_likelihoods.rows[-slates:].sum())

    def update(
        self, z: Tensor, rewards: Tensor, uniform: Tensor | None = None, exposures: Tensor | None = None
    ) -> Tensor:
        """One slate's contexts (k, d) and rewards (k,): score every learner's prediction, then fit all of them. The
        weighted prediction before that, (k,). `uniform` (k,) marks arms drawn uniformly at random; an arm of chance p
        is rewarded with chance p times its exposure (k,)."""
        features = self.blocks.read(z)
        exposures = torch.ones_like(rewards) if exposures is None else exposures
        means = torch.stack([learner.means(features) for learner in self.learners.values()])
        predicted, certain = torch.exp(self.log_weights) @ means, CERTAIN * self.plays.scale.unit
        chances = (means * exposures).clamp(certain, 1 - certain)
        self.change_test.observe(chances[int(self.log_weights.argmax())], rewards)
        self._log_likelihoods.append(float(log_likelihood(torch.exp(self.log_weights) @ chances, rewards)))
        keep_latest(self._log_likelihoods, self.config.drift.longest)
        if self.plays.slates >= self.config.settling:
            self._reweight(log_likelihood(chances, rewards))
        self._average(rewards, torch.zeros_like(rewards, dtype=torch.bool) if uniform is None else uniform)
        played = self.plays.add(z, features, rewards, exposures)
        for learner in self.learners.values():
            learner.learn(played, self.plays)
        return predicted

    def _reweight(self, log_likelihoods: Tensor) -> None:
        """Evidence and weights after the log-likelihoods (M,) of slate number `slates` + 1."""
        self.evidence = self.evidence + log_likelihoods
        share = min(0.5, self.config.switching / (self.plays.slates + 1))
        self.log_weights = fixed_share(self.log_weights, log_likelihoods, self._first_weights, share)

    def _average(self, rewards: Tensor, uniform: Tensor) -> None:
        chosen, kept = rewards[~uniform], 1 - FORGETTING * self.plays.scale.unit
        self._uniform = self._uniform[0] + float(rewards[uniform].sum()), self._uniform[1] + float(uniform.sum())
        self._chosen = kept * self._chosen[0] + float(chosen.sum()), kept * self._chosen[1] + len(chosen)

    @property
    def failures(self) -> int:
        """Trainings of nets that failed."""
        return sum(getattr(learner, "failures", 0) for learner in self.learners.values())

    @property
    def draws(self) -> bool:
        """Whether a learner's scores are drawn at random in every round, as those of Thompson sampling are."""
        return any(getattr(learner, "spread", 0.0) > 0 for learner in self.learners.values())

    def state_dict(self) -> dict[str, Tensor]:
        numbers = [*self._chosen, *self._uniform]
        state = {"evidence": self.evidence.clone(), "numbers": torch.tensor(numbers, dtype=torch.float64)}
        state |= {"log_weights": self.log_weights.clone(), "foreseen": self._log_likelihoods.rows.clone()}
        for name, learner in self.learners.items():
            state |= nested(f"learner.{name}", learner.state_dict())
        return state | nested("plays", self.plays.state_dict()) | nested("surprise", self.change_test.state_dict())

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.evidence = take(state, "evidence", self.evidence)
        self.log_weights = take(state, "log_weights", self.log_weights)
        chosen, seen, uniform, drawn = take_numbers(state, "numbers", 4)
        expect(0 <= chosen <= seen and 0 <= uniform <= drawn, "sums of rewards up to their numbers", (chosen, uniform))
        self._chosen, self._uniform = (chosen, seen), (uniform, drawn)
        self._log_likelihoods.load(self._log_likelihoods.taken(state, "foreseen"))
        for name, learner in self.learners.items():
            learner.load_state_dict(under(f"learner.{name}", state))
        self.plays.load_state_dict(under("plays", state))
        self.change_test.load_state_dict(under("surprise", state))
        slates = {len(self.change_test), self.plays.slates}
        expect(len(slates) == 1, "one number of slates throughout the ensemble", sorted(slates))
        read = min(self.plays.slates, self.config.drift.longest)
        expect(len(self._log_likelihoods) >= read, f"likelihoods of {read} slates", len(self._log_likelihoods))


def ensemble_shapes(config: EnsembleConfig, blocks: FeatureBlocks) -> Iterator[tuple[str, Shape]]:
    """What a state of such an ensemble holds at least."""
    for name in catalogue.fitting_learners(config.learners, blocks):
        shapes = catalogue.learner_shapes(name, config.options, blocks)
        yield from nested_shapes(f"learner.{name}", shapes)


def uniform_better(ensemble: Ensemble) -> float:
    """The posterior probability that arms drawn uniformly pay more than (recent) ones chosen by score, of Poisson
    numbers of rewards with Gamma priors: of drawn arms half a reward and a mean of p̄, of chosen ones a reward and
    2p̄. Where every learner is wrong, what is chosen may pay less than any arm would, and nothing else tells so."""
    chosen, drawn = ensemble._chosen[1], ensemble._uniform[1]
    zero, prior = ensemble.plays.zero, 0.5 / ensemble.plays.scale.level
    above, above_drawn = (max(y - zero * n, 0.0) / (1 - zero) for y, n in (ensemble._chosen, ensemble._uniform))
    share = (chosen + prior) / (chosen + drawn + 2 * prior)
    return float(betainc(above + 1.0, above_drawn + 0.5, share))


def rescale(ensemble: Ensemble, change: Rescaling) -> None:
    """Read all rewards on another range. Log-likelihoods on two ranges cannot be compared: no alarm for a while."""
    ensemble._chosen, ensemble._uniform = (
        (change.slope * total + change.shift * number, number)
        for total, number in (ensemble._chosen, ensemble._uniform)
    )
    ensemble.plays.rescale(change)
    for learner in ensemble.learners.values():
        learner.rescale(change, ensemble.plays.scale)
    ensemble.change_test.suspend()


def refit_on_recent(ensemble: Ensemble, slates: int, seed: int, generation: int) -> Ensemble:
    """A new ensemble fitted on the latest slates alone; none of their arms counts as drawn uniformly."""
    fresh = Ensemble(ensemble.config, ensemble.blocks, ensemble.plays.slate_size, seed, generation)
    fresh.plays.zero = ensemble.plays.zero
    for contexts, rewards, exposures in ensemble.plays.latest(slates):
        fresh.update(contexts, rewards, exposures=exposures)
    return fresh
