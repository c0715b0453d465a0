"""The value behind a column's encoded numbers, as text for people."""

import math
from datetime import timedelta

import numpy as np

from neuclust.errors import DataError
from neuclust.recommender.encoders.dates import EPOCH, DateEncoder
from neuclust.recommender.encoders.encoder import Encoder, Matrix
from neuclust.recommender.encoders.levels import CategoryEncoder, TagsEncoder
from neuclust.recommender.encoders.scales import CLIP, BooleanEncoder, NumberEncoder, RangeScale, RunningScale
from neuclust.recommender.encoders.vectors import VectorEncoder
from neuclust.recommender.tables.values import Value

LONGEST_SHOWN = 40  # characters of a value
MISSING = "missing"
MOVED = 0.05  # by which a scale that still runs may have moved a value since


def value_text(encoder: Encoder, block: Matrix, raw: Value = None) -> str:
    """The value that became `block` (width,): `raw` where it is still encoded so, else read back from the numbers.

    Numbers read back from a running scale are as near as the scale has stayed since.
    """
    if raw is not None and _encodes(encoder, raw, block):
        return _shortened(_plain(raw))
    return _shortened(_decoded(encoder, block))


def _encodes(encoder: Encoder, raw: Value, block: Matrix) -> bool:
    found = np.zeros(encoder.width)
    try:
        encoder.write(raw, found)
    except DataError:
        return False
    return bool(np.allclose(found, block, rtol=0.0, atol=0.0 if encoder.settled else MOVED))


def _plain(raw: Value) -> str:
    if isinstance(raw, tuple):
        return ", ".join(str(each) if isinstance(each, str) else f"{each:.4g}" for each in raw[:LONGEST_SHOWN])
    return f"{raw:.6g}" if isinstance(raw, float) else str(raw)


def _decoded(encoder: Encoder, block: Matrix) -> str:
    if isinstance(encoder, CategoryEncoder | TagsEncoder):
        return _levels(encoder, block)
    if isinstance(encoder, BooleanEncoder):
        return {0.0: "False", 1.0: "True"}.get(float(block[0]), MISSING)
    if isinstance(encoder, NumberEncoder):
        return MISSING if encoder.missing and block[1] else _number(encoder.scale, float(block[0]))
    if isinstance(encoder, DateEncoder):
        return MISSING if encoder.missing and block[1] else _day(encoder.scale, float(block[0]))
    if isinstance(encoder, VectorEncoder):
        return f"{len(block)} numbers" if block.any() else MISSING
    return f"{len(block)} columns"


def _levels(encoder: CategoryEncoder | TagsEncoder, block: Matrix) -> str:
    """The levels of the columns that are not 0."""
    start = len(encoder.name) + 1
    return ", ".join(encoder.labels[at][start:] for at in np.flatnonzero(block).tolist()) or MISSING


def _number(scale: RangeScale | RunningScale, scaled: float) -> str:
    if isinstance(scale, RangeScale):
        value, ends = scale.low + scaled * (scale.high - scale.low), (0.0, 1.0)
    else:
        value, ends = scale.mean + 2 * scale.std * scaled, (-CLIP, CLIP)
    clipped = " or less" if scaled <= ends[0] else " or more" if scaled >= ends[1] else ""
    return f"{value:.4g}{clipped}"


def _day(scale: RunningScale, scaled: float) -> str:
    days = scale.mean + 2 * scale.std * scaled
    try:
        return f"about {(EPOCH + timedelta(days=days)).date()}"
    except (OverflowError, ValueError):
        return f"day {days:.0f}" if math.isfinite(days) else MISSING


def _shortened(text: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in text[: LONGEST_SHOWN + 1])
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
