"""Intervals of an estimate from the contributions of its rows: which one when is in docs/evaluation_intervals.md."""

from neuclust.evaluation.intervals.asymptotic import Moments, asymptotic, p_value
from neuclust.evaluation.intervals.bootstrap import PoissonBootstrap, bootstrap
from neuclust.evaluation.intervals.choice import CANNOT_TELL, choose_interval
from neuclust.evaluation.intervals.finite_sample import empirical_bernstein
from neuclust.evaluation.intervals.interval import (
    KINDS,
    Interval,
    Kind,
    effective_sample_size,
    expected_sample_size,
)  # fmt: skip
from neuclust.evaluation.intervals.many import (
    bonferroni_level,
    difference,
    difference_sequence,
    holm,
    joint_level,
    simultaneous,
)  # fmt: skip
from neuclust.evaluation.intervals.martingale import levelled, martingale, stabilisers
from neuclust.evaluation.intervals.self_normalised import self_normalised
from neuclust.evaluation.intervals.sequence import confidence_sequence

__all__ = [
    "CANNOT_TELL", "KINDS", "Interval", "Kind", "Moments", "PoissonBootstrap", "asymptotic", "bonferroni_level",
    "bootstrap", "choose_interval", "confidence_sequence", "difference", "difference_sequence", "effective_sample_size",
    "empirical_bernstein", "expected_sample_size", "holm", "joint_level", "levelled",
    "martingale", "p_value", "self_normalised", "simultaneous", "stabilisers",
]  # fmt: skip
