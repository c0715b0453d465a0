"""The pseudo-inverse weight of a slate for additive rewards (Swaminathan et al. 2017), for any design of ours.

With 1_S (k·n,) the indicator of which arm is in which slot, Γ_μ = E_μ[1_S 1_Sᵀ] and q_π = E_π[1_S],

    w(S) = q_πᵀ Γ_μ⁺ 1_S,   E_μ[w(S) φᵀ1_S] = q_πᵀ Γ_μ⁺ Γ_μ φ = q_πᵀ φ   for every φ, where q_π is in the range of Γ_μ.

1_S is in the range of Γ_μ for every slate that μ can draw, so that any generalised inverse gives the same weight, and
any set of functions of the slate with the span of the indicators does.

Without rules Γ commutes with every exchange of two arms of one class (`evaluation.moments`). Functions of the slate
then fall into two orthogonal kinds: those of classes in slots, and for each class of m ≥ 2 arms the differences between
its arms, on which Γ acts as one matrix (k, k). Of the first kind are the events "slot j holds an arm of class c", "arm
i of the base is in no slot" and the certain one. "In no slot" is a sum of the others, but a sequential design leaves
the first arm of its base out with a chance of ε^k, which only an event of its own keeps from rounding. Nothing larger
is inverted, and decisions of the same shape share the inverses.
"""

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from neuclust.core import Round
from neuclust.errors import DataError
from neuclust.evaluation.designs import Drawn, check_design, pair_marginals, shape_of, slot_marginals
from neuclust.evaluation.enumeration import rules_key
from neuclust.evaluation.moments import Codes, Floats, Moments, Shape, mixed, moments
from neuclust.logs.decisions import Design, Kind

SMALLEST = 1e-11  # eigenvalues of C that are not 0; its diagonal is of ones
OUTSIDE = 1e-8  # share of the scaled q_π that may lie outside the range
ROUNDING = 1e-14
CACHED = 256


def pseudo_inverse_weight(logging: Drawn, target: Drawn, round: Round, slate: Sequence[int]) -> float:
    """w(S) = q_πᵀ Γ_μ⁺ 1_S of a logged slate, positions (k,); refused where the target is not supported."""
    wanted = slot_marginals(target, round)
    if isinstance(logging, Design) and round.rules is None:
        check_design(logging, round)
        shape, labels = shape_of(logging, round)
        supported, weight = _by_classes(_inverses(logging.kind, shape), labels, wanted, slate)
    else:
        key = None if round.rules is None else rules_key(round)
        whole = _whole_inverse(_Case(logging, round.slate_size, len(round.arm_ids), key, round))
        at = np.arange(len(slate)) * len(round.arm_ids) + np.asarray(slate)
        supported = whole.holds(wanted.reshape(-1, 1))
        weight = float(wanted.reshape(-1) @ whole.inverse[:, at].sum(1))
    if not supported:
        said = "expected a target whose slots and arms the log can tell apart, got one with arms in slots it cannot"
        raise DataError(f"round {round.t}: missing support: {said}; log with more exploration, or evaluate another one")
    return weight


class Inverse(NamedTuple):
    """A generalised inverse of Γ (s, s), the scale D^{−½} (s,) with 0 where D is, and the scaled range's complement."""

    inverse: Floats
    scale: Floats
    complement: Floats  # I − C C⁺

    @classmethod
    def of(cls, gamma: Floats) -> Self:
        """Of a symmetric positive semi-definite matrix (s, s): D^{−½} C⁺ D^{−½}, C = D^{−½} Γ D^{−½}, D its diagonal.

        Scaled so, rare arms keep their digits.
        """
        diagonal = np.diag(gamma)
        scale = np.divide(1.0, np.sqrt(np.maximum(diagonal, 0)), out=np.zeros(len(gamma)), where=diagonal > 0)
        values, vectors = np.linalg.eigh(scale[:, None] * gamma * scale)
        kept = values > SMALLEST
        basis = vectors[:, kept]
        inverse = scale[:, None] * ((basis / values[kept]) @ basis.T) * scale
        return cls(inverse, scale, np.eye(len(gamma)) - basis @ basis.T)

    def holds(self, columns: Floats) -> bool:
        """Whether columns (s, m) are in the range of Γ; 0 within rounding is."""
        scaled = self.scale[:, None] * columns
        lost = np.abs(columns[self.scale == 0]).max(initial=0.0)
        size = np.abs(scaled).max(initial=0.0)
        return bool(lost <= OUTSIDE and np.abs(self.complement @ scaled).max(initial=0.0) <= OUTSIDE * max(size, 1.0))


# --- without rules: classes of arms ---------------------------------------------------------------------------------


class _Inverses(NamedTuple):
    """On events of classes, (1 + k·c + b,), and on differences within each class, (k, k), or None for one arm."""

    events: Inverse  # the certain one, slot j holds class c at 1 + j·c + class, and arms of the base that are absent
    within: tuple[Inverse | None, ...]
    slots: int
    base: int


@functools.lru_cache(CACHED)
def _inverses(kind: Kind, shape: Shape) -> _Inverses:
    found = _moments(kind, shape)
    arms, pairs = found.of_arms(), found.of_pairs()
    within = [
        Inverse.of(np.diag(arms[:, c]) - pairs[:, c, :, c]) if size > 1 else None for c, size in enumerate(found.sizes)
    ]
    return _Inverses(Inverse.of(_events(found)), tuple(within), shape.slots, len(shape.base))


def _moments(kind: Kind, shape: Shape) -> Moments:
    if kind != "one-coin":
        return moments(shape)
    ends = [moments(Shape(shape.arms, shape.slots, shape.base, 0, share, 1.0)) for share in (0.0, 1.0)]
    return mixed((1 - shape.share, shape.share), ends)


def _events(found: Moments) -> Floats:
    """P(both events) for all pairs of events of classes: (1 + k·c + b, 1 + k·c + b)."""
    placed = found.first.reshape(-1)
    second = found.second.reshape(len(placed), -1) + np.diag(placed)
    absent = found.absent.reshape(len(placed), -1)
    missing = np.diag(found.absent_pairs)
    certain = np.concatenate([[1.0], placed, missing])
    return np.block(
        [
            [certain[None, :]],
            [placed[:, None], second, absent],
            [missing[:, None], absent.T, found.absent_pairs],
        ]
    )


def _by_classes(found: _Inverses, labels: Codes, wanted: Floats, slate: Sequence[int]) -> tuple[bool, float]:
    """Whether q_π (k, n) is in the range, and the weight: the part of events plus that of differences in classes."""
    k, classes, rows = found.slots, len(found.within), np.asarray(slate)
    wanted, beyond = wanted[:k], wanted[k:]
    totals = np.array([np.bincount(labels, weights=row, minlength=classes) for row in wanted], np.float64)
    shown = np.zeros((k, classes))
    shown[np.arange(len(rows)), labels[rows]] = 1.0
    mean = _event_values(totals, found.base)
    weight = float(mean @ found.events.inverse @ _event_values(shown, found.base))
    supported = not beyond.any() and found.events.holds(mean[:, None])
    for label, inverse in enumerate(found.within):
        if inverse is not None:
            here, arms = np.flatnonzero(labels[rows] == label), labels == label
            differences = wanted - (totals[:, label] / arms.sum())[:, None]
            weight += float((differences[:, rows[here]] * inverse.inverse[:, here]).sum())
            supported = supported and inverse.holds(differences[:, arms])
    return supported, weight


def _event_values(placed: Floats, base: int) -> Floats:
    """Of classes in slots (k, c), or their chances, the values of all events; 1 − Σ within rounding of 0 is 0."""
    absent = 1 - placed[:, :base].sum(0)
    return np.concatenate([[1.0], placed.reshape(-1), np.where(absent > ROUNDING, absent, 0.0)])


# --- with rules, or a mixture that logged: the whole matrix ---------------------------------------------------------


@dataclass(frozen=True)
class _Case:
    """What Γ depends on."""

    logging: Drawn
    slots: int
    arms: int
    rules: Hashable
    round: Round = field(compare=False)


@functools.lru_cache(8)
def _whole_inverse(case: _Case) -> Inverse:
    return Inverse.of(pair_marginals(case.logging, case.round))
