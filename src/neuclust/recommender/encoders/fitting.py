"""Encoders by the kind of their column: fitted on values, or read back from a save."""

from collections.abc import Sequence
from typing import Any, cast

from neuclust.errors import ConfigError, StateError
from neuclust.recommender.encoders.dates import DateEncoder
from neuclust.recommender.encoders.encoder import Encoder, saved_entry
from neuclust.recommender.encoders.frames import FRAME, FrameEncoder
from neuclust.recommender.encoders.levels import CategoryEncoder, TagsEncoder
from neuclust.recommender.encoders.scales import BooleanEncoder, NumberEncoder
from neuclust.recommender.encoders.transformers import TransformerEncoder
from neuclust.recommender.encoders.vectors import VectorEncoder
from neuclust.recommender.tables.columns import (
    Boolean,
    Category,
    Date,
    Ignore,
    Kind,
    Number,
    Tags,
    Transformer,
    Vector,
    kind_from_json,
    word_of,
)
from neuclust.recommender.tables.values import Value

_ENCODERS: dict[type, Any] = {
    Number: NumberEncoder, Boolean: BooleanEncoder, Category: CategoryEncoder, Date: DateEncoder, Tags: TagsEncoder,
    Vector: VectorEncoder, Transformer: TransformerEncoder,
}  # fmt: skip


RESERVE = 8  # free columns of a category that is fitted before its values are known


def fit_encoder(name: str, kind: Kind, values: Sequence[Value], reserve: int = 0) -> Encoder:
    """The encoder of a column of this kind, fitted on its plain values; an ignored column has none.

    `reserve`: how many levels of a category may still come, as those of request context do.
    """
    if isinstance(kind, Ignore):
        raise ConfigError(f"column {name!r:.100}: expected a kind that is learned from, got an ignored column")
    if isinstance(kind, Category):
        return CategoryEncoder.fit(name, kind, values, reserve)
    return cast("Encoder", _ENCODERS[type(kind)].fit(name, kind, values))


def encoder_from_json(saved: Any, transformer: Any = None) -> Encoder:
    """What `to_json` of an encoder wrote; a transformer is given again, fitted, and checked by its outputs."""
    name, described = saved_entry(saved, "name", str), saved_entry(saved, "kind", dict)
    if described.get("kind") == "transformer" and saved.get("form") == FRAME:
        return FrameEncoder.from_json(saved_entry(described, "class", str), saved, transformer)
    if described.get("kind") == "transformer":
        return TransformerEncoder.from_json(name, saved_entry(described, "class", str), saved, transformer)
    kind = kind_from_json(described)
    if isinstance(kind, Ignore):
        raise StateError(f"saved features: column {name!r:.100}: expected an encoder, got {word_of(kind)}")
    if isinstance(kind, Boolean):
        return BooleanEncoder(name, kind)
    return cast("Encoder", _ENCODERS[type(kind)].from_json(name, kind, saved))
