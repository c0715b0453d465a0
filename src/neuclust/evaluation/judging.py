"""Contributions of rows become judgements: an interval for every policy, and one for its difference to what ran."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from neuclust.evaluation.estimators.catalogue import ESTIMATORS
from neuclust.evaluation.estimators.diagnostics import diagnostics, overlap
from neuclust.evaluation.estimators.rows import Contributions
from neuclust.evaluation.evidence import Evidence
from neuclust.evaluation.intervals.asymptotic import asymptotic
from neuclust.evaluation.intervals.bootstrap import bootstrap
from neuclust.evaluation.intervals.choice import ENOUGH, LEAST, choose_interval
from neuclust.evaluation.intervals.finite_sample import empirical_bernstein
from neuclust.evaluation.intervals.interval import Interval, expected_sample_size
from neuclust.evaluation.intervals.many import bonferroni_level, difference_sequence, joint_level
from neuclust.evaluation.intervals.martingale import martingale
from neuclust.evaluation.intervals.self_normalised import self_normalised
from neuclust.evaluation.intervals.sequence import confidence_sequence
from neuclust.evaluation.results import Ends, Judgement, verdict
from neuclust.evaluation.slate_values import SlateValue

Floats = NDArray[np.float64]
# estimators whose contributions lie between a·w and b·w, in the place of those of the same assumption that do not
PLAIN = {
    "snips": "ips",
    "dr": "ips",
    "sndr": "ips",
    "switch": "ips",
    "siips": "iips",
    "srips": "rips",
    "cascade-dr": "rips",
}
FAMILY = dict.fromkeys(("ips", "snips", "dr", "sndr", "switch"), "slate")
FAMILY |= dict.fromkeys(("rips", "srips", "cascade-dr"), "prefix") | dict.fromkeys(("iips", "siips"), "slots")
FINITE = ("confidence-sequence", "empirical-bernstein")
SKEWED = "confidence-sequence: few rows with large weights decide, so that a normal approximation does not hold"
WEIGHTLESS = "its interval leaves out the error of its reward model"


@dataclass(frozen=True, slots=True)
class Scale:
    """What values are possible, whether the logger or the candidates learned from row to row, and the largest weights
    that the designs allow: of a slate, and of the sum over a slate's slots (None: not known)."""

    value: SlateValue
    learning: bool
    largest: Mapping[str, float | None] = field(default_factory=dict)

    def bounds(self, estimator: str) -> Ends | None:
        """Between which contributions of an estimator lie, where that is known."""
        largest = self.largest.get(estimator)
        low, high = self.value.range
        slots = self.value.slate_size if estimator == "iips" else 1
        return None if largest is None else (min(low, 0.0) * largest / slots, max(high, 0.0) * largest / slots)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A policy's contributions, those its interval is made of, the kind of it, and why."""

    given: Contributions
    plain: Contributions
    kind: str
    estimator: str  # of `plain`
    why: str
    ratio: Contributions  # w·r and w, where the estimate is their ratio


@dataclass(frozen=True, slots=True)
class Judge:
    """Intervals of a level, of a wanted kind or one chosen by the effective rows."""

    scale: Scale
    level: float = 0.95
    wanted: str | None = None

    def all(self, evidence: Mapping[str, Evidence], values: Floats, estimator: str, reason: str) -> list[Judgement]:
        """Every policy on the same rows; differences to what was earned (n,) hold for all of them together."""
        found = {title: ESTIMATORS[estimator].estimate(each.rows) for title, each in evidence.items()}
        gaps = np.array([each.values - values for each in found.values() if np.isfinite(each.estimate)])
        joint = joint_level(gaps, self.level) if len(gaps) > 1 and gaps.shape[1] > 1 else self.level
        together = joint, len(found)
        return [self._judged(title, each, values, (estimator, reason), together) for title, each in evidence.items()]

    def mean(self, values: Floats) -> tuple[Ends, str]:
        """The interval of what ran, and its kind."""
        found = (martingale if self.scale.learning else asymptotic)(values, self.level, span=self.scale.value.range)
        return ends(found), found.kind

    def _judged(
        self, title: str, evidence: Evidence, values: Floats, how: tuple[str, str], together: tuple[float, int]
    ) -> Judgement:
        estimator, reason = how
        earned, found = float(values.mean()), self._weighed(evidence, estimator)
        facts, estimate = diagnostics(found.given.weights), found.given.estimate
        ess = effective_rows(evidence, estimator)
        own, apart = self._interval(found), self._difference(found, values, *together)
        return Judgement(
            policy=title, estimator=estimator, estimate=estimate, interval=own, interval_kind=found.kind, ess=ess,
            difference=estimate - earned, difference_interval=apart, rows=len(values),
            verdict=verdict(title, ess, apart, earned, self.scale.value.range),
            reason=f"{estimator}: {reason}. {found.why}", largest_weights=facts.largest,
            overlap=tuple(each.ess for each in overlap(evidence.rows)), warnings=_warnings(estimator, ess),
        )  # fmt: skip

    def _weighed(self, evidence: Evidence, estimator: str) -> _Weighed:
        """Contributions and the kind of interval; finite-sample forms need contributions that keep to bounds."""
        given, rows = ESTIMATORS[estimator].estimate(evidence.rows), evidence.rows
        plain, bounded = PLAIN.get(estimator, estimator), self.scale.bounds(estimator) is not None
        ess, varies = effective_rows(evidence, estimator), bool(np.ptp(given.values) > 0)
        kind, why = choose_interval(self.scale.learning, bounded, ess, len(given.values), self.wanted, varies)
        if self.wanted is None and kind not in FINITE and normal_rows(evidence, estimator) < ENOUGH:
            kind, why = "confidence-sequence", SKEWED
        if kind not in FINITE:
            ratio = ESTIMATORS["ips"].estimate(rows) if estimator == "snips" else given
            return _Weighed(given, given, kind, estimator, why, ratio)
        if estimator in ("dm", "pi"):  # no weights that are at least 0: only the asymptotic form is left
            kind = "martingale" if self.scale.learning else "asymptotic"
            return _Weighed(given, given, kind, estimator, f"{kind}: {estimator} has no finite-sample form", given)
        if plain != estimator:
            why = f"{why}; made for {plain}, whose contributions keep to bounds"
        return _Weighed(given, ESTIMATORS[plain].estimate(rows), kind, plain, why, given)

    def _interval(self, found: _Weighed) -> Ends:
        span, plain = self.scale.value.range, found.plain
        if not np.isfinite(plain.estimate):  # no row tells of the policy
            return span
        if found.kind == "confidence-sequence":
            return ends(confidence_sequence(plain.values, plain.weights, span, self.level), found.given.estimate)
        if found.kind == "empirical-bernstein":
            bounds = self.scale.bounds(found.estimator) or span
            return ends(empirical_bernstein(plain.values, bounds, self.level, span), found.given.estimate)
        if found.estimator == "snips" and found.kind in ("asymptotic", "martingale"):
            return ends(self_normalised(found.ratio.values, found.ratio.weights, self.level, span=span))
        return ends(MEANS[found.kind](plain.values, self.level, span=span))

    def _difference(self, found: _Weighed, values: Floats, joint: float, candidates: int) -> Ends:
        """The interval of the difference to what ran, at a level that holds for all candidates together."""
        (low, high), plain = self.scale.value.range, found.plain
        apart = found.given.estimate - float(values.mean())
        span, level = (low - high, high - low), bonferroni_level(candidates, self.level)
        if not np.isfinite(plain.estimate):
            return span
        if found.kind == "confidence-sequence":
            ran = values, np.ones(len(values))
            return ends(difference_sequence((plain.values, plain.weights), ran, (low, high), level), apart)
        if found.kind == "empirical-bernstein":
            least, most = self.scale.bounds(found.estimator) or (low, high)
            return ends(empirical_bernstein(plain.values - values, (least - high, most - low), level, span), apart)
        return ends(MEANS[found.kind](plain.values - values, joint, span=span))


def _warnings(estimator: str, ess: float) -> tuple[str, ...]:
    if estimator == "dm":
        return (WEIGHTLESS,)
    return () if ess >= ENOUGH else (f"{ess:.1f} effective rows are {'too few to tell' if ess < LEAST else 'few'}",)


def effective_rows(evidence: Evidence, estimator: str) -> float:
    """The smaller of (Σw)²/Σw² and n²/ΣE[w²], the second where target and designs tell it: a log that happens to lack
    the large weights looks better than it is."""
    found = diagnostics(ESTIMATORS[estimator].estimate(evidence.rows).weights).ess
    moments = expected_moments(evidence, estimator)
    return found if moments is None else min(found, float(expected_sample_size(moments[:, 0])))


def normal_rows(evidence: Evidence, estimator: str) -> float:
    """n·E[w²]³/E[w³]², of the log and, where designs tell it, expected: 1/γ² times n for the skewness γ of the weights.

    For weights that are 0 or W it is the effective sample size. It is far smaller where most weights are near 1 and few
    are very large, as those of a target that mostly shows what ran: then few rows decide the rest.
    """
    weights = np.abs(ESTIMATORS[estimator].estimate(evidence.rows).weights)
    found = [np.array([(weights**2).mean(), (weights**3).mean()])]
    moments = expected_moments(evidence, estimator)
    if moments is not None:
        found.append(moments.mean(0))
    return min(len(weights) * second**3 / third**2 if third > 0 else 0.0 for second, third in found)


def expected_moments(evidence: Evidence, estimator: str) -> Floats | None:
    """E[w²] and E[w³] of every row (n, 2), None where some row has no closed form."""
    moments = evidence.moments.get(FAMILY.get(estimator, ""))
    return None if moments is None or bool(np.isnan(moments).any()) else moments


MEANS: Mapping[str, Callable[..., Interval]] = {
    "asymptotic": asymptotic, "martingale": martingale, "bootstrap": bootstrap,
}  # fmt: skip


def ends(found: Interval, estimate: float | None = None) -> Ends:
    """Both ends, moved apart to hold the estimate: finite-sample forms are not centred on it."""
    low, high = float(found.low), float(found.high)
    return (low, high) if estimate is None else (min(low, estimate), max(high, estimate))
