"""Contributions of rows become judgements: an interval for every policy, and one for its difference to what ran."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuclust.evaluation.estimators.catalogue import ESTIMATORS
from neuclust.evaluation.estimators.diagnostics import diagnostics, overlap
from neuclust.evaluation.estimators.rows import Contributions, Rows
from neuclust.evaluation.intervals.asymptotic import asymptotic
from neuclust.evaluation.intervals.bootstrap import bootstrap
from neuclust.evaluation.intervals.choice import choose_interval
from neuclust.evaluation.intervals.interval import Interval
from neuclust.evaluation.intervals.many import bonferroni_level, difference_sequence, joint_level
from neuclust.evaluation.intervals.martingale import martingale
from neuclust.evaluation.intervals.sequence import confidence_sequence
from neuclust.evaluation.results import ENOUGH, FEW, Ends, Judgement, verdict
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
WEIGHTLESS = "its interval leaves out the error of its reward model"


@dataclass(frozen=True, slots=True)
class Scale:
    """What values are possible, and whether the logger or the candidates learned from row to row."""

    value: SlateValue
    learning: bool


@dataclass(frozen=True, slots=True)
class Judge:
    """Intervals of a level, of a wanted kind or one chosen by the effective rows."""

    scale: Scale
    level: float = 0.95
    wanted: str | None = None

    def all(self, rows: Mapping[str, Rows], values: Floats, estimator: str, reason: str) -> list[Judgement]:
        """Every policy on the same rows; differences to what was earned (n,) hold for all of them together."""
        found = {title: ESTIMATORS[estimator].estimate(each) for title, each in rows.items()}
        gaps = np.array([each.values - values for each in found.values()])
        joint = joint_level(gaps, self.level) if len(found) > 1 and gaps.shape[1] > 1 else self.level
        return [
            self._judged(title, rows[title], values, estimator, (found[title], joint, len(found), reason))
            for title in rows
        ]

    def mean(self, values: Floats) -> tuple[Ends, str]:
        """The interval of what ran, and its kind."""
        found = (martingale if self.scale.learning else asymptotic)(values, self.level, span=self.scale.value.range)
        return ends(found), found.kind

    def _judged(
        self, title: str, rows: Rows, values: Floats, estimator: str, more: tuple[Contributions, float, int, str]
    ) -> Judgement:
        contributions, joint, candidates, reason = more
        facts = diagnostics(contributions.weights)
        kind, why = choose_interval(self.scale.learning, False, facts.ess, len(values), self.wanted)
        plain, warnings = contributions, []
        if estimator in ("dm", "pi") and kind == "confidence-sequence" and self.wanted is None:
            kind = "martingale" if self.scale.learning else "asymptotic"
        elif kind == "confidence-sequence" and estimator in PLAIN:
            plain = ESTIMATORS[PLAIN[estimator]].estimate(rows)
            why = f"{why}; made for {PLAIN[estimator]}, whose contributions keep to bounds"
        if estimator == "dm":
            warnings.append(WEIGHTLESS)
        elif facts.ess < ENOUGH:
            warnings.append(f"{facts.ess:.1f} effective rows are {'too few to tell' if facts.ess < FEW else 'few'}")
        own = self._interval(kind, plain, self.level)
        apart = self._difference(kind, plain, values, joint, candidates)
        gap = contributions.estimate - float(values.mean())
        return Judgement(
            policy=title, estimator=estimator, estimate=contributions.estimate, interval=ends(own), interval_kind=kind,
            ess=facts.ess, difference=gap, difference_interval=apart, rows=len(values),
            verdict=verdict(title, facts.ess, apart, float(values.mean())), reason=f"{estimator}: {reason}. {why}",
            largest_weights=facts.largest, overlap=tuple(each.ess for each in overlap(rows)), warnings=tuple(warnings),
        )  # fmt: skip

    def _interval(self, kind: str, found: Contributions, level: float) -> Interval:
        span = self.scale.value.range
        if kind == "confidence-sequence":
            return confidence_sequence(found.values, found.weights, span, level)
        return MEANS[kind](found.values, level, span=span)

    def _difference(self, kind: str, found: Contributions, values: Floats, joint: float, candidates: int) -> Ends:
        """The interval of the difference to what ran, at a level that holds for all candidates together."""
        low, high = self.scale.value.range
        if kind == "confidence-sequence":
            level = bonferroni_level(candidates, self.level)
            ones = np.ones(len(values))
            return ends(difference_sequence((found.values, found.weights), (values, ones), (low, high), level))
        return ends(MEANS[kind](found.values - values, joint, span=(low - high, high - low)))


MEANS: Mapping[str, Callable[..., Interval]] = {
    "asymptotic": asymptotic, "martingale": martingale, "bootstrap": bootstrap,
}  # fmt: skip


def ends(found: Interval) -> Ends:
    return float(found.low), float(found.high)
