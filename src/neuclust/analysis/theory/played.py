"""A run played once more under watch: its growth, Lemma 3's terms, promises, drift, calibration and linearisation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from neuclust.analysis.theory.decomposition import Lemma3, lemma_3, series
from neuclust.analysis.theory.problem import ProblemNumbers
from neuclust.environments.slates import SlateEnvironment
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.run import RunLabel, Tally, run
from neuclust.theory import bounds
from neuclust.theory.bounds import Constants
from neuclust.theory.calibration import Calibration, calibration
from neuclust.theory.effective_dimension import running
from neuclust.theory.growth import Curve, Growth, growth
from neuclust.theory.linearisation import Linearisation, Observed, linearisation
from neuclust.theory.pivoting import Watch, unwatched
from neuclust.theory.trajectory import Looking, Step, Watched, progress_of

Floats = NDArray[np.float64]
COMPARED = 200  # rounds in which clusters are compared, at most
MOST_LINEARISED = 1500  # played contexts at which the net is compared with its linear model


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """What was watched."""

    title: str
    seed: int
    rounds: int
    steps: tuple[Step, ...]
    growth: Growth | None
    lemma_3: Lemma3 | None
    calibration: Calibration | None
    linearisation: Linearisation | None
    final_gamma: float  # Eq. 8 after all rounds
    running_dimension: tuple[tuple[int, float], ...]
    width_squares: float  # Σ_t Σ_{S_t} w²
    width_bound: float  # Lemma 11
    ridge_ends: tuple[float, float] = (math.nan, math.nan)  # λ_1 for which e_T ≤ F ≤ its bound, F as played on average
    same_as_recorded: bool | None = None

    @property
    def reachable(self) -> float:
        """Σ u*_t: what the best slates are worth, and the most that a run without negative rewards can lose."""
        return float(self.series("best").sum())

    def series(self, name: str) -> Floats:
        """A number of every round; NaN where it has none."""
        return series(self.steps, name)


@dataclass(frozen=True, slots=True)
class Game:
    """Who plays what, for how many rounds."""

    environment: SlateEnvironment
    contestant: Contestant
    seed: int
    rounds: int


def watch_run(
    game: Game, numbers: ProblemNumbers, curves: Sequence[Curve] = (), watch: Watch = unwatched
) -> RunNumbers:
    """Play the game under watch; `curves` are recorded ones of the same policy, by which growth is fitted."""
    environment, contestant, seed, rounds = game.environment, game.contestant, game.seed, game.rounds
    contestant.check(environment)
    policy = contestant.build(environment, seed)
    schedule = numbers.shape.arms.schedule
    if numbers.bound.settles:
        schedule = replace(schedule, norm_bound=numbers.bound.value)
    labels = environment.true_labels
    known = labels is not None and bool((labels != labels[0]).any())
    constants = constants_of(numbers)
    watched = Watched(policy, environment, Looking(schedule, constants, max(1, rounds // COMPARED), known))

    def on_round(tally: Tally) -> None:
        watch(f"playing {contestant.title}", tally.rounds, rounds)

    label = RunLabel(contestant.policy, contestant.preset)
    record = run(watched, environment, rounds, seed, label=label, on_round=on_round)
    steps = tuple(watched.steps)
    fitted = growth(curves or (record.curve,)) if len(record.curve) >= 8 else None
    made = RunNumbers(contestant.title, seed, rounds, steps, fitted, None, None, None, math.nan, (), math.nan, math.nan)
    if watched.arms is None:
        return made
    progress = progress_of(watched.arms)
    gamma = bounds.eq_8(schedule, progress).value
    dimension = numbers.effective_dimension
    ridge = progress.ridge
    each = [(step.t, running(step.logdet, step.observations, ridge)) for step in steps if step.observations]
    return replace(
        made,
        lemma_3=lemma_3(steps, numbers, constants, gamma),
        calibration=_calibration(made),
        linearisation=_linearised(watched, ridge),
        final_gamma=gamma,
        running_dimension=tuple(each),
        width_squares=float(np.nansum(made.series("squares"))),
        width_bound=bounds.width_sum_bound(dimension, rounds, numbers.sample.arms, ridge),
        ridge_ends=_ridge_ends(made, numbers, constants),
    )


def constants_of(numbers: ProblemNumbers) -> Constants:
    """B, B' as measured, F's sizes, everything else 1."""
    first, slate = numbers.assumptions[0].numbers, numbers.shape.slate
    return Constants(first["B"], first["B_prime"], slate_width=slate.width, slate_depth=slate.depth)


def _calibration(made: RunNumbers) -> Calibration | None:
    """F against u(S) and R, for policies with an F."""
    predicted = made.series("slate_value")
    kept = ~np.isnan(predicted)
    if not kept.any():
        return None
    return calibration(predicted[kept], made.series("expected")[kept], made.series("realised")[kept])


def _ridge_ends(made: RunNumbers, numbers: ProblemNumbers, constants: Constants) -> tuple[float, float]:
    """λ_1 between what Lemma 2 needs below F and what it says above, at the mean F of the played slates."""
    values, sizes = made.series("slate_value"), numbers.sizes
    if np.isnan(values).all():
        return math.nan, math.nan
    most = bounds.slate_bound(sizes.slate_size, made.rounds, sizes.ridge, constants)
    return bounds.ridge_ends(float(np.nanmean(values)), made.steps[-1].offset, most, sizes.ridge)


def _linearised(watched: Watched, ridge: float) -> Linearisation | None:
    arms = watched.arms
    if arms is None or arms.net.bias or arms.net.size > MOST_LINEARISED * 20:
        return None  # gradients at all played contexts would not fit, or are not those of the analysis
    contexts, targets, counts = (each[-MOST_LINEARISED:] for each in arms.history.targets())
    return linearisation(arms.net, arms.initial, Observed(contexts, targets, counts), ridge)
