"""The pseudo-inverse weight of a slate for additive rewards (Swaminathan et al. 2017), for any design of ours.

With 1_S (k·n,) the indicator of which arm is in which slot, Γ_μ = E_μ[1_S 1_Sᵀ] and q_π = E_π[1_S],

    w(S) = q_πᵀ Γ_μ⁺ 1_S,   E_μ[w(S) φᵀ1_S] = q_πᵀ Γ_μ⁺ Γ_μ φ = q_πᵀ φ   for every φ, where q_π is in the range of Γ_μ.

1_S is in the range of Γ_μ for every slate that μ can draw, so that any generalised inverse gives the same weight. Here
it is D^{−½} (D^{−½} Γ D^{−½})⁺ D^{−½}, D the diagonal of Γ: rare arms keep their digits.

Without rules Γ commutes with every exchange of two arms of one class (`evaluation.moments`), and has two kinds of
invariant subspaces: sums over classes, a matrix of k times the number of classes, and for each class of m ≥ 2 arms the
differences between its arms, on which it acts as one matrix (k, k). Nothing larger is inverted, and decisions of the
same shape share the inverses.
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

SMALLEST = 1e-11  # eigenvalues of the scaled Γ that are not 0, against the largest
OUTSIDE = 1e-7  # share of the scaled q_π that may lie outside the range
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
    complement: Floats  # I − C C⁺, C = D^{−½} Γ D^{−½}

    @classmethod
    def of(cls, gamma: Floats, null: int | None = None) -> Self:
        """Of a symmetric positive semi-definite matrix (s, s); `null` is the dimension of its null space, if known."""
        diagonal = np.diag(gamma)
        scale = np.divide(1.0, np.sqrt(np.maximum(diagonal, 0)), out=np.zeros(len(gamma)), where=diagonal > 0)
        values, vectors = np.linalg.eigh(scale[:, None] * gamma * scale)
        if null is None:
            kept = values > SMALLEST * max(values.max(initial=0.0), np.finfo(np.float64).tiny)
        else:
            kept = np.arange(len(values)) >= null + np.count_nonzero(diagonal <= 0)
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
    """On sums over classes, (k·c, k·c) with rows j·c + class, and on differences within each class, (k, k) or None."""

    sums: Inverse
    within: tuple[Inverse | None, ...]
    sizes: Floats  # (c,)
    slots: int
    every: bool  # each slate has a chance, and an arm is left over: every target of k arms is supported


@functools.lru_cache(CACHED)
def _inverses(kind: Kind, shape: Shape) -> _Inverses:
    found = _moments(kind, shape)
    k, classes = found.first.shape
    root = np.sqrt(np.maximum(found.sizes, 1))
    sums = found.second / (root[:, None, None] * root[None, None, :])
    slots, kinds = np.arange(k)[:, None], np.arange(classes)
    arms = found.of_arms()
    sums[slots, kinds, slots, kinds] = arms
    pairs = found.of_pairs()
    every = kind != "deterministic" and shape.share > 0 and shape.arms > k
    within = [
        Inverse.of(np.diag(arms[:, c]) - pairs[:, c, :, c], 0 if every else None) if found.sizes[c] > 1 else None
        for c in range(classes)
    ]
    # the only sums that are 0 for all slates: Σ_a 1[slot i holds a] − Σ_a 1[slot j holds a]
    whole = Inverse.of(sums.reshape(k * classes, -1), k - 1 if every else None)
    return _Inverses(whole, tuple(within), found.sizes, k, every)


def _moments(kind: Kind, shape: Shape) -> Moments:
    if kind != "one-coin":
        return moments(shape)
    ends = [moments(Shape(shape.arms, shape.slots, shape.base, 0, share, 1.0)) for share in (0.0, 1.0)]
    return mixed((1 - shape.share, shape.share), ends)


def _by_classes(found: _Inverses, labels: Codes, wanted: Floats, slate: Sequence[int]) -> tuple[bool, float]:
    """Whether q_π (k, n) is in the range, and the weight: the part of sums plus that of differences within classes."""
    k, classes, rows = found.slots, len(found.sizes), np.asarray(slate)
    wanted, beyond = wanted[:k], wanted[k:]
    root = np.sqrt(np.maximum(found.sizes, 1))
    totals = np.stack([np.bincount(labels, weights=row, minlength=classes) for row in wanted]) / root
    at = np.arange(len(rows)) * classes + labels[rows]
    weight = float(totals.reshape(-1) @ found.sums.inverse[:, at] @ (1 / root[labels[rows]]))
    every = found.every and bool((np.abs(wanted.sum(1) - 1) < OUTSIDE).all())
    supported = not beyond.any() and (every or found.sums.holds(totals.reshape(-1, 1)))
    for label, inverse in enumerate(found.within):
        if inverse is not None:
            differences = wanted - (totals[:, label] / root[label])[:, None]
            here = np.flatnonzero(labels[rows] == label)
            weight += float((differences[:, rows[here]] * inverse.inverse[:, here]).sum())
            supported = supported and (every or inverse.holds(differences[:, labels == label]))
    return supported, weight


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
