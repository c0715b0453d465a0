"""Compiled scores of many contexts, 64 at a time with their columns side by side: one instruction serves several.

Every context goes through the same operations in the same order, wherever it stands: equal contexts have equal scores.
Rows x are (n, d), contiguous and in double precision. A tile is (d, 64), with zeros where there is no row.
"""

import math

import numpy as np

from neuclust.kernels.jit import Floats, Integers, compiled, inlined

LANES = 64  # contexts per tile, few enough for all intermediate results to stay in the nearest cache

# sin(2πy)/y on |y| <= ¼ as a polynomial in y², from the highest power: a Chebyshev fit with an error of 2e-16
SINE = (
    -0.6925067010720717, 3.817365633469135, -15.09450614073429, 42.05868995395094, -76.70585968962867,
    81.60524927557977, -41.341702240398284, 6.283185307179585,
)  # fmt: skip
_S7, _S6, _S5, _S4, _S3, _S2, _S1, _S0 = SINE


@inlined
def _tile(x: Floats, order: Integers, start: int, stop: int, out: Floats) -> None:
    """Rows order[start … stop − 1] as the columns of `out` (d, 64); row numbers themselves where order is empty."""
    for j in range(x.shape[1]):
        out[j, :] = 0.0
    for lane in range(stop - start):
        row = order[start + lane] if len(order) else start + lane
        for j in range(x.shape[1]):
            out[j, lane] = x[row, j]


@inlined
def _product(weights: Floats, count: int, tile: Floats, out: Floats) -> None:
    """out (64,) += Σ_j weights_j tile_j over the first `count` columns, four at a time."""
    for j in range(0, count - 3, 4):
        a, b, c, d = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for lane in range(LANES):
            first = a * tile[j, lane] + b * tile[j + 1, lane]
            out[lane] += first + (c * tile[j + 2, lane] + d * tile[j + 3, lane])
    for j in range(count - count % 4, count):
        a = weights[j]
        for lane in range(LANES):
            out[lane] += a * tile[j, lane]


@compiled
def quadratic_forms(x: Floats, constant: float, slopes: Floats, squares: Floats) -> Floats:
    """c + bᵀx + Σ_{i >= j} A_ij x_i x_j for slopes b (d,) and the lower triangle of squares A (d, d): (n,)."""
    n, d = x.shape
    tile, inner, total, out = np.empty((d, LANES)), np.empty(LANES), np.empty(LANES), np.empty(n)
    nowhere = np.empty(0, np.int64)
    for start in range(0, n, LANES):
        stop = min(n, start + LANES)
        _tile(x, nowhere, start, stop, tile)
        total[:] = constant
        for i in range(d):
            inner[:] = slopes[i]
            _product(squares[i], i + 1, tile, inner)
            for lane in range(LANES):
                total[lane] += inner[lane] * tile[i, lane]
        out[start:stop] = total[: stop - start]
    return out


@compiled
def affine_beliefs(x: Floats, groups: tuple[Integers, Integers], means: Floats, roots: Floats) -> tuple[Floats, Floats]:
    """m_gᵀy and ‖R_g y‖, y = [1, x], of rows in groups g: means (G, d + 1), R lower triangular (G, d + 1, d + 1).
    groups = (order, starts): rows order[starts[g] … starts[g + 1] − 1] form group g; an empty order is 0, 1, …"""
    order, starts = groups
    n, d = x.shape
    tile, inner = np.empty((d, LANES)), np.empty(LANES)
    mean, square = np.empty(LANES), np.empty(LANES)
    values, lengths = np.empty(n), np.empty(n)
    for g in range(len(starts) - 1):
        for start in range(starts[g], starts[g + 1], LANES):
            stop = min(starts[g + 1], start + LANES)
            _tile(x, order, start, stop, tile)
            mean[:] = means[g, 0]
            _product(means[g, 1:], d, tile, mean)
            square[:] = roots[g, 0, 0] ** 2
            for i in range(1, d + 1):
                inner[:] = roots[g, i, 0]
                _product(roots[g, i, 1:], i, tile, inner)
                for lane in range(LANES):
                    square[lane] += inner[lane] * inner[lane]
            for lane in range(stop - start):
                row = order[start + lane] if len(order) else start + lane
                values[row], lengths[row] = mean[lane], math.sqrt(square[lane])
    return values, lengths


@compiled
def nearest_rows(x: Floats, centres: Floats) -> Integers:
    """The nearest of centres (C, d) of every row, the first of equals: argmin_c ½‖c‖² − cᵀx, (n,)."""
    n, d = x.shape
    tile, gap, best = np.empty((d, LANES)), np.empty(LANES), np.empty(LANES)
    label, out, nowhere = np.empty(LANES, np.int64), np.empty(n, np.int64), np.empty(0, np.int64)
    halves = np.array([0.5 * (centre * centre).sum() for centre in centres])
    negative = -centres
    for start in range(0, n, LANES):
        stop = min(n, start + LANES)
        _tile(x, nowhere, start, stop, tile)
        best[:] = np.inf
        label[:] = 0
        for c in range(len(centres)):
            gap[:] = halves[c]
            _product(negative[c], d, tile, gap)
            for lane in range(LANES):
                label[lane] = c if gap[lane] < best[lane] else label[lane]
                best[lane] = min(gap[lane], best[lane])
        out[start:stop] = label[: stop - start]
    return out


@inlined
def _waves(index: Floats, turns: Floats, heights: Floats, phases: Floats, total: Floats) -> None:
    """total (64,) += Σ_j h_j cos 2π(φ_j + Σ_r turns_jr index_r) on four directions r."""
    for j in range(len(turns)):
        a, b, c, d, phase, height = turns[j, 0], turns[j, 1], turns[j, 2], turns[j, 3], phases[j], heights[j]
        for lane in range(LANES):  # cos 2πa = sin 2πy for y = ¼ − |a − round a|
            angle = phase + ((a * index[0, lane] + b * index[1, lane]) + (c * index[2, lane] + d * index[3, lane]))
            y = 0.25 - abs(angle - math.floor(angle + 0.5))
            s = y * y
            sine = ((((((_S7 * s + _S6) * s + _S5) * s + _S4) * s + _S3) * s + _S2) * s + _S1) * s + _S0
            total[lane] += height * (y * sine)


@compiled
def cosine_sums(x: Floats, linear: Floats, turns: Floats, heights: Floats, phases: Floats) -> Floats:
    """l_m0 + l_mᵀx + Σ_j h_mj cos 2π(φ_mj + Σ_r W_mjr p_mrᵀx) of M models on four directions p_mr each: (M, n).
    `linear` (M, 5, d + 1) has the rows [l_m0, l_m] and [0, p_mr], `turns` is W (M, D, 4), h and φ are (M, D)."""
    n, d = x.shape
    tile, index = np.empty((d, LANES)), np.empty((4, LANES))
    total, out, nowhere = np.empty(LANES), np.empty((len(turns), n)), np.empty(0, np.int64)
    for start in range(0, n, LANES):
        stop = min(n, start + LANES)
        _tile(x, nowhere, start, stop, tile)
        for m in range(len(turns)):
            index[:, :] = 0.0
            for r in range(4):
                _product(linear[m, 1 + r, 1:], d, tile, index[r])
            total[:] = linear[m, 0, 0]
            _product(linear[m, 0, 1:], d, tile, total)
            _waves(index, turns[m], heights[m], phases[m], total)
            out[m, start:stop] = total[: stop - start]
    return out


@compiled
def relu_outputs(x: Floats, hidden: Floats, outputs: Floats, longest: float) -> Floats:
    """v_0 + vᵀφ for every v of outputs (V, m + 1), φ = max(0, W[x, 1]) shortened to `longest`, W (m, d + 1): (V, n)."""
    n, d = x.shape
    tile, unit, length = np.empty((d, LANES)), np.empty(LANES), np.empty(LANES)
    total, out = np.empty((len(outputs), LANES)), np.empty((len(outputs), n))
    nowhere = np.empty(0, np.int64)
    for start in range(0, n, LANES):
        stop = min(n, start + LANES)
        _tile(x, nowhere, start, stop, tile)
        length[:] = 0.0
        total[:, :] = 0.0
        for k in range(len(hidden)):
            unit[:] = hidden[k, d]
            _product(hidden[k], d, tile, unit)
            for lane in range(LANES):
                unit[lane] = max(unit[lane], 0.0)
                length[lane] += unit[lane] * unit[lane]
            for v in range(len(outputs)):
                weight = outputs[v, k + 1]
                for lane in range(LANES):
                    total[v, lane] += weight * unit[lane]
        for v in range(len(outputs)):
            for lane in range(stop - start):
                share = min(1.0, longest / max(math.sqrt(length[lane]), 1e-300))
                out[v, start + lane] = outputs[v, 0] + share * total[v, lane]
    return out


@compiled
def shortened_rows(z: Floats, longest: float, scale: float) -> Floats:
    """Rows z (n, d) of at most `longest`, longer ones scaled to that length, divided by `scale`."""
    out = np.empty_like(z)
    for i in range(len(z)):
        square = 0.0
        for j in range(z.shape[1]):
            square += z[i, j] * z[i, j]
        length = math.sqrt(square)
        factor = longest / length if length > longest else 1.0
        for j in range(z.shape[1]):
            out[i, j] = z[i, j] * factor / scale
    return out
