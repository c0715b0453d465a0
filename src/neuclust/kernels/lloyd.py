"""k-means from given centres: Lloyd's iterations with Hamerly's bounds (2010) and scikit-learn's stopping rule.

u_i bounds the distance of point i to its own centre from above, l_i those to all others from below. When centres move,
u_i grows by the move of its centre and l_i shrinks by the largest move; while u_i < l_i the label of i cannot change.
"""

import numpy as np

from neuclust.kernels.jit import Floats, Integers, compiled

TOLERANCE = 1e-4  # of the mean variance of a feature: scikit-learn's default


def lloyd(points: Floats, centres: Floats, max_iter: int) -> tuple[Integers, Floats, Integers] | None:
    """Labels (n,), means (C, d) and sizes (C,) of the clusters found from `centres`; None where one came out empty."""
    n, count = len(points), len(centres)
    labels, upper, lower = np.zeros(n, np.int64), np.full(n, np.inf), np.zeros(n)
    limit = TOLERANCE * float(points.var(0).mean())
    current = centres.copy()
    for _ in range(max_iter):
        changed = _assigned(points, current, labels, upper, lower)
        means, sizes = _means(points, labels, count)
        if not sizes.all():
            return None
        moves = np.sqrt(((means - current) ** 2).sum(1))
        current = means
        _drifted(labels, moves, upper, lower)
        if changed == 0:
            return labels, means, sizes
        if (moves**2).sum() <= limit:
            break
    _assigned(points, current, labels, upper, lower)  # near enough: the labels of these centres, and their means
    means, sizes = _means(points, labels, count)
    return (labels, means, sizes) if sizes.all() else None


@compiled
def _assigned(points: Floats, centres: Floats, labels: Integers, upper: Floats, lower: Floats) -> int:
    """Bring labels and bounds up to date in place; how many labels changed (all count as changed at the start)."""
    n, d = points.shape
    changed = 0
    for i in range(n):
        if upper[i] * (1 + 1e-12) < lower[i]:
            continue
        nearest, best, second = 0, np.inf, np.inf
        for c in range(len(centres)):
            square = 0.0
            for j in range(d):
                gap = points[i, j] - centres[c, j]
                square += gap * gap
            if square < best:
                nearest, best, second = c, square, best
            elif square < second:
                second = square
        if nearest != labels[i] or upper[i] == np.inf:
            changed += 1
        labels[i], upper[i], lower[i] = nearest, np.sqrt(best), np.sqrt(second)
    return changed


@compiled
def _means(points: Floats, labels: Integers, count: int) -> tuple[Floats, Integers]:
    means, sizes = np.zeros((count, points.shape[1])), np.zeros(count, np.int64)
    for i in range(len(points)):
        sizes[labels[i]] += 1
        for j in range(points.shape[1]):
            means[labels[i], j] += points[i, j]
    for c in range(count):
        for j in range(points.shape[1]):
            means[c, j] /= max(sizes[c], 1)
    return means, sizes


@compiled
def _drifted(labels: Integers, moves: Floats, upper: Floats, lower: Floats) -> None:
    largest = moves.max()
    for i in range(len(labels)):
        upper[i] += moves[labels[i]]
        lower[i] -= largest
