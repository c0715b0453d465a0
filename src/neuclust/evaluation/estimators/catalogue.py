"""Every estimator by name, with what it needs and what it assumes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from neuclust.evaluation.estimators import modelled, weighting
from neuclust.evaluation.estimators.rows import Contributions, Rows

SLATE = ("slate_rewards", "logging", "target")
PREFIX = ("rewards", "logging", "target")
SLOT = ("rewards", "logging_marginals", "target_marginals")
MODEL = ("model_logged", "model_target")


@dataclass(frozen=True, slots=True)
class EstimatorSpec:
    """`estimate` from rows that have `needs`; `value`: what is estimated, the slate's reward or the sum of its slots'.

    `unbiased`: the expectation is the truth for any number of rows, where the assumption holds.
    """

    estimate: Callable[[Rows], Contributions]
    needs: tuple[str, ...]
    assumption: str  # one sentence
    value: Literal["slate", "slots"] = "slate"
    unbiased: bool = True

    def missing(self, rows: Rows) -> tuple[str, ...]:
        """What the rows lack of `needs`."""
        return tuple(name for name in self.needs if getattr(rows, name) is None)


_NORMALISED = ", and there are many rows (the bias falls as 1/n)."

ESTIMATORS: Mapping[str, EstimatorSpec] = MappingProxyType(
    {
        "ips": EstimatorSpec(weighting.ips, SLATE, "Slates the target shows were possible in the log."),
        "snips": EstimatorSpec(
            weighting.snips, SLATE, "Slates the target shows were possible in the log" + _NORMALISED, unbiased=False
        ),
        "iips": EstimatorSpec(
            weighting.iips, SLOT, "A slot's reward depends on its arm and its place alone.", "slots"
        ),
        "siips": EstimatorSpec(
            weighting.siips, SLOT, "A slot's reward depends on its arm and its place alone" + _NORMALISED,
            "slots", unbiased=False,
        ),
        "rips": EstimatorSpec(
            weighting.rips, PREFIX, "A slot's reward depends on its arm and the slots before it alone.", "slots"
        ),
        "srips": EstimatorSpec(
            weighting.srips, PREFIX, "A slot's reward depends on its arm and the slots before it alone" + _NORMALISED,
            "slots", unbiased=False,
        ),
        "pi": EstimatorSpec(
            weighting.pseudo_inverse, ("slate_rewards", "pi_weights"),
            "The slate's expected reward is a sum over its slots of something that depends on arm and place.",
        ),
        "cascade-dr": EstimatorSpec(
            modelled.cascade_dr, (*PREFIX, "q_hat", "v_hat"),
            "A slot's reward depends on its arm and the slots before it alone; the model may be wrong.", "slots",
        ),
        "dm": EstimatorSpec(
            modelled.direct, ("model_target",), "The model of rewards is right where the target plays.", unbiased=False
        ),
        "dr": EstimatorSpec(
            modelled.dr, (*SLATE, *MODEL), "Slates the target shows were possible in the log; the model may be wrong."
        ),
        "sndr": EstimatorSpec(
            modelled.sndr, (*SLATE, *MODEL), "Slates the target shows were possible in the log" + _NORMALISED,
            unbiased=False,
        ),
        "switch": EstimatorSpec(
            modelled.switch, (*SLATE, *MODEL), "The model is right where weights are above √n.", unbiased=False
        ),
    }
)  # fmt: skip
