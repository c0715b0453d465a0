"""Triton kernels of fused.py; imported only where Triton is. Grid: blocks of rows × runs, or units × runs.

Scales are compile-time constants because Triton hands run-time numbers over in float32.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "room", "blocks"])  # type: ignore[untyped-decorator]
def arm_partials(  # type: ignore[no-untyped-def]
    contexts, target, weight, first, last, partial, rows, room, blocks,
    SCALE: tl.constexpr, DIM: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Σ over a block of rows of x (e σ'(h))ᵀ, e = s·weight·(f − target): partial (R, blocks, d', m)."""
    block, run = tl.program_id(0), tl.program_id(1)
    row = block * BLOCK + tl.arange(0, BLOCK)
    unit, j = tl.arange(0, PADDED), tl.arange(0, COLUMNS)
    inside, known, used = row < rows, unit < WIDTH, j < DIM
    columns = contexts + run * DIM * room + j[None, :] * room + row[:, None]
    x = tl.load(columns, mask=inside[:, None] & used[None, :], other=0.0)
    weights = first + (run * WIDTH + unit[None, :]) * DIM + j[:, None]
    w = tl.load(weights, mask=known[None, :] & used[:, None], other=0.0)
    hidden = tl.dot(x, w, out_dtype=tl.float64)
    out = tl.load(last + run * WIDTH + unit, mask=known, other=0.0)
    total = tl.sum(tl.where(hidden > 0, hidden, 0.0) * out[None, :], axis=1)
    share = tl.load(weight + run * room + row, mask=inside, other=0.0)
    wanted = tl.load(target + run * room + row, mask=inside, other=0.0)
    error = SCALE * share * (SCALE * total - wanted)
    pulled = tl.dot(tl.trans(x), tl.where(hidden > 0, error[:, None], 0.0), out_dtype=tl.float64)
    place = partial + ((run * blocks + block) * DIM + j[:, None]) * PADDED + unit[None, :]
    tl.store(place, pulled, mask=used[:, None])


@triton.jit(do_not_specialize=["rows", "room", "blocks"])  # type: ignore[untyped-decorator]
def arm_update(  # type: ignore[no-untyped-def]
    partial, first, last, home_first, home_last, step, pull, blocks,
    DIM: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One unit's weights: G its row of the summed partials, ∇W_0 = w_1 G, ∇w_1 = ⟨W_0, G⟩."""
    unit, run = tl.program_id(0), tl.program_id(1)
    j = tl.arange(0, COLUMNS)
    inside = j < DIM
    total = tl.zeros((COLUMNS,), tl.float64)
    for start in range(0, blocks, CHUNK):
        b = start + tl.arange(0, CHUNK)
        place = partial + ((run * blocks + b)[:, None] * DIM + j[None, :]) * PADDED + unit
        total += tl.sum(tl.load(place, mask=(b < blocks)[:, None] & inside[None, :], other=0.0), axis=0)
    place = (run * WIDTH + unit) * DIM + j
    w0 = tl.load(first + place, mask=inside, other=0.0)
    w1 = tl.load(last + run * WIDTH + unit)
    size, strength = tl.load(step + run), tl.load(pull + run)
    keep, back = 1.0 - size * strength, size * strength
    a0 = tl.load(home_first + place, mask=inside, other=0.0)
    a1 = tl.load(home_last + run * WIDTH + unit)
    tl.store(first + place, keep * w0 - size * w1 * total + back * a0, mask=inside)
    tl.store(last + run * WIDTH + unit, keep * w1 - size * tl.sum(w0 * total, axis=0) + back * a1)


@triton.jit(do_not_specialize=["rows", "room", "blocks"])  # type: ignore[untyped-decorator]
def slate_partials(  # type: ignore[no-untyped-def]
    inputs, target, weight, moving, partial, rows, room, blocks,
    SCALE_0: tl.constexpr, SCALE_1: tl.constexpr, SIZE: tl.constexpr,
    WIDTH: tl.constexpr, PADDED: tl.constexpr, COUNT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums over a block of slates, before the slope of q: partial (R, blocks, parameters), laid out as `moving`."""
    block, run = tl.program_id(0), tl.program_id(1)
    row = block * BLOCK + tl.arange(0, BLOCK)
    unit = tl.arange(0, PADDED)
    inside, known = row < rows, unit < WIDTH
    theta = moving + run * COUNT
    arms = inputs + run * SIZE * room + row
    bias = tl.load(theta + SIZE * WIDTH + WIDTH + unit, mask=known, other=0.0)
    hidden = tl.zeros((BLOCK, PADDED), tl.float64) + bias[None, :]
    for k in range(SIZE):
        r = tl.load(arms + k * room, mask=inside, other=0.0)
        raw = tl.load(theta + k * WIDTH + unit, mask=known, other=0.0)
        q = tl.where(known, SCALE_0 / (1.0 + tl.exp(-raw)), 0.0)
        hidden += r[:, None] * q[None, :]
    raw = tl.load(theta + SIZE * WIDTH + unit, mask=known, other=0.0)
    out = tl.where(known, SCALE_1 / (1.0 + tl.exp(-raw)), 0.0)
    active = tl.where(hidden > 0, hidden, 0.0)
    value = tl.sum(active * out[None, :], axis=1) + tl.load(theta + SIZE * WIDTH + 2 * WIDTH)
    share = tl.load(weight + run * room + row, mask=inside, other=0.0)
    wanted = tl.load(target + run * room + row, mask=inside, other=0.0)
    error = share * (value - wanted)
    delta = tl.where(hidden > 0, error[:, None] * out[None, :], 0.0)
    place = partial + (run * blocks + block) * COUNT
    for k in range(SIZE):
        r = tl.load(arms + k * room, mask=inside, other=0.0)
        tl.store(place + k * WIDTH + unit, tl.sum(delta * r[:, None], axis=0), mask=known)
    tl.store(place + SIZE * WIDTH + unit, tl.sum(active * error[:, None], axis=0), mask=known)
    tl.store(place + SIZE * WIDTH + WIDTH + unit, tl.sum(delta, axis=0), mask=known)
    tl.store(place + SIZE * WIDTH + 2 * WIDTH, tl.sum(error, axis=0))


@triton.jit(do_not_specialize=["rows", "room", "blocks"])  # type: ignore[untyped-decorator]
def slate_update(  # type: ignore[no-untyped-def]
    partial, moving, home, step, pull, blocks,
    SCALE_0: tl.constexpr, SCALE_1: tl.constexpr, SIZE: tl.constexpr,
    WIDTH: tl.constexpr, COUNT: tl.constexpr, PADDED: tl.constexpr, CHUNK: tl.constexpr, FREE: tl.constexpr,
):  # fmt: skip
    """All parameters of one run: the sums times c q'(Θ) for weights and times FREE, 1 or 0, for biases."""
    run = tl.program_id(0)
    p = tl.arange(0, PADDED)
    inside = p < COUNT
    total = tl.zeros((PADDED,), tl.float64)
    for start in range(0, blocks, CHUNK):
        b = start + tl.arange(0, CHUNK)
        place = partial + (run * blocks + b)[:, None] * COUNT + p[None, :]
        total += tl.sum(tl.load(place, mask=(b < blocks)[:, None] & inside[None, :], other=0.0), axis=0)
    theta = tl.load(moving + run * COUNT + p, mask=inside, other=0.0)
    anchor = tl.load(home + run * COUNT + p, mask=inside, other=0.0)
    sigmoid = 1.0 / (1.0 + tl.exp(-theta))
    rise = sigmoid * (1.0 - sigmoid)
    slope = tl.where(p < SIZE * WIDTH, SCALE_0 * rise, tl.where(p < SIZE * WIDTH + WIDTH, SCALE_1 * rise, FREE))
    size, strength = tl.load(step + run), tl.load(pull + run)
    keep, back = 1.0 - size * strength, size * strength
    tl.store(moving + run * COUNT + p, keep * theta - size * slope * total + back * anchor, mask=inside)
