"""Training rows packed four by four, so that every weight that is loaded serves four rows.

Rows with the same non-zero columns stand next to each other; a tile is four rows and the union of their columns, four
columns per block, padded with zeros.
"""

from dataclasses import dataclass

import numpy as np

from neuclust.kernels.jit import Floats, Integers, compiled, exact, inlined
from neuclust.kernels.rows import Entries, Rows

StepSizes = tuple[int, float, float]  # how many steps, how long each is, and the pull towards the anchor
TILE = 4
SPARE = TILE  # columns that are not there, for blocks that are not full


@dataclass(frozen=True, slots=True)
class Tiles:
    """Blocks of tile i are starts[i] … starts[i + 1] − 1; order −1 stands for no row."""

    order: Integers  # (4 · tiles,) the row at every place
    starts: Integers  # (tiles + 1,)
    columns: Integers  # (blocks, 4)
    values: Floats  # (blocks, 4 columns, 4 rows)

    def placed(self, entries: Floats) -> Floats:
        """One number per row, in the order of the tiles, 0 where there is no row."""
        return np.where(self.order >= 0, entries[self.order], 0.0)


def tile_rows(rows: Rows) -> Tiles:
    """Pack sparse rows."""
    order = np.argsort(_support_keys(rows.starts, rows.index, rows.width), kind="stable")
    order = np.concatenate([order, np.full(-len(order) % TILE, -1)])
    return Tiles(order, *_packed(rows.entries, rows.width, order))


@exact
def _support_keys(starts: Integers, index: Integers, width: int) -> Integers:
    """One number per row, equal for rows with equal first columns."""
    bits = 1
    while (1 << bits) <= width:
        bits += 1
    keys = np.zeros(len(starts) - 1, np.int64)
    for i in range(len(keys)):
        room = 62
        for e in range(starts[i], starts[i + 1]):
            room -= bits
            if room < 0:
                break
            keys[i] |= (index[e] + 1) << room
    return keys


@exact
def _packed(rows: Entries, width: int, order: Integers) -> tuple[Integers, Integers, Floats]:
    starts, index, value = rows
    tiles = len(order) // TILE
    firsts = np.zeros(tiles + 1, np.int64)
    room = len(index) // TILE + tiles + 1  # a tile of e entries has at most e/4 + 1 blocks
    columns, values = np.empty((room, TILE), np.int64), np.zeros((room, TILE, TILE))
    place = np.full(width, -1, np.int64)
    for t in range(tiles):
        base, count = firsts[t] * TILE, 0
        for lane in range(TILE):
            row = order[t * TILE + lane]
            if row < 0:
                continue
            for e in range(starts[row], starts[row + 1]):
                j = index[e]
                if place[j] < 0:
                    place[j] = count
                    columns[(base + count) // TILE, count % TILE] = j
                    count += 1
                at = base + place[j]
                values[at // TILE, at % TILE, lane] = value[e]
        while count % TILE or count == 0:
            columns[(base + count) // TILE, count % TILE] = width + count % TILE
            count += 1
        for lane in range(TILE):
            row = order[t * TILE + lane]
            if row >= 0:
                for e in range(starts[row], starts[row + 1]):
                    place[index[e]] = -1
        firsts[t + 1] = firsts[t] + count // TILE
    return firsts, columns[: firsts[tiles]].copy(), values[: firsts[tiles]].copy()


@inlined
def _entries(block: Floats) -> tuple[float, ...]:
    """The sixteen values of a block (4 columns, 4 rows): only one by one does the compiler keep them in registers."""
    a, b, c, d = block[0], block[1], block[2], block[3]
    return (
        a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3], c[0], c[1], c[2], c[3], d[0], d[1], d[2], d[3]
    )  # fmt: skip


@compiled
def descend_tiles(
    data: tuple[Integers, Integers, Floats, Floats, Floats],
    weights: tuple[Floats, Floats],
    anchor: tuple[Floats, Floats],
    net: tuple[bool, float],
    steps: StepSizes,
) -> None:
    """Full-batch steps in place on weights w0 (in + 4, m) and w1 (m or m + 1); `net` is its biases and its scale.

    The data are starts, columns and values of `Tiles`, then targets and weights in the order of the tiles.
    """
    (starts, columns, values, target, weight), (w0, w1), (a0, a1) = data, weights, anchor
    (bias, scale), (number, step, pull) = net, steps
    width = w0.shape[1]
    g0, g1 = np.empty_like(w0), np.empty_like(w1)
    ha, hb, hc, hd = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    keep, home = 1.0 - step * pull, step * pull
    for _ in range(number):
        g0[:] = 0.0
        g1[:] = 0.0
        for t in range(len(starts) - 1):
            ha[:] = 0.0
            hb[:] = 0.0
            hc[:] = 0.0
            hd[:] = 0.0
            for b in range(starts[t], starts[t + 1]):
                wa, wb, wc, wd = w0[columns[b, 0]], w0[columns[b, 1]], w0[columns[b, 2]], w0[columns[b, 3]]
                aa, ab, ac, ad, ba, bb, bc, bd, ca, cb, cc, cd, da, db, dc, dd = _entries(values[b])
                for k in range(width):
                    p, q = wa[k], wb[k]
                    r, s = wc[k], wd[k]
                    ha[k] += aa * p + ba * q + ca * r + da * s
                    hb[k] += ab * p + bb * q + cb * r + db * s
                    hc[k] += ac * p + bc * q + cc * r + dc * s
                    hd[k] += ad * p + bd * q + cd * r + dd * s
            fa = w1[width] if bias else 0.0
            fb, fc, fd = fa, fa, fa
            for k in range(width):
                u = w1[k]
                fa += max(ha[k], 0.0) * u
                fb += max(hb[k], 0.0) * u
                fc += max(hc[k], 0.0) * u
                fd += max(hd[k], 0.0) * u
            i = TILE * t
            ea = scale * weight[i] * (scale * fa - target[i])
            eb = scale * weight[i + 1] * (scale * fb - target[i + 1])
            ec = scale * weight[i + 2] * (scale * fc - target[i + 2])
            ed = scale * weight[i + 3] * (scale * fd - target[i + 3])
            if bias:
                g1[width] += ea + eb + ec + ed
            for k in range(width):  # from here on the h are deltas
                u, p, q, r, s = w1[k], ha[k], hb[k], hc[k], hd[k]
                g1[k] += ea * max(p, 0.0) + eb * max(q, 0.0) + ec * max(r, 0.0) + ed * max(s, 0.0)
                ha[k] = ea * u if p > 0.0 else 0.0
                hb[k] = eb * u if q > 0.0 else 0.0
                hc[k] = ec * u if r > 0.0 else 0.0
                hd[k] = ed * u if s > 0.0 else 0.0
            for b in range(starts[t], starts[t + 1]):
                ga, gb, gc, gd = g0[columns[b, 0]], g0[columns[b, 1]], g0[columns[b, 2]], g0[columns[b, 3]]
                aa, ab, ac, ad, ba, bb, bc, bd, ca, cb, cc, cd, da, db, dc, dd = _entries(values[b])
                for k in range(width):
                    p, q, r, s = ha[k], hb[k], hc[k], hd[k]
                    ga[k] += aa * p + ab * q + ac * r + ad * s
                    gb[k] += ba * p + bb * q + bc * r + bd * s
                    gc[k] += ca * p + cb * q + cc * r + cd * s
                    gd[k] += da * p + db * q + dc * r + dd * s
        for j in range(w0.shape[0]):
            for k in range(width):
                w0[j, k] = keep * w0[j, k] - step * g0[j, k] + home * a0[j, k]
        for k in range(len(w1)):
            w1[k] = keep * w1[k] - step * g1[k] + home * a1[k]
