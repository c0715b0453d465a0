"""A round's contexts as a model reads them: encoded at the encoder's scale, equal ones once."""

from torch import Tensor

from neuclust.core import Round
from neuclust.kernels.regions import group_rows
from neuclust.models.encoder import Encoder, active_contexts, contexts_at


def distinct(encoder: Encoder, round: Round) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct contexts encoded (u, q'), the numbers of their columns (q',) and the row of every arm (n,).

    Equal contexts are computed once, so that their scores are exactly equal and ties stay ties.
    """
    contexts = active_contexts(round)
    first, group = group_rows(contexts)
    return (*encoded(encoder, round, contexts[first]), group)


def encoded(encoder: Encoder, round: Round, contexts: Tensor) -> tuple[Tensor, Tensor]:
    """Encoded contexts (n, q') of the round's contexts z (n, q), and the numbers of their columns (q',)."""
    return encoder.encode(contexts, round.active, encoder.scale_of(round))


def encoded_at(encoder: Encoder, round: Round, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Encoded contexts (k, q') of the arms at `positions` (k,), and the numbers of their columns (q',)."""
    return encoded(encoder, round, contexts_at(round, positions))


def full_at(encoder: Encoder, round: Round, positions: Tensor) -> Tensor:
    """Encoded contexts of the arms at `positions` with all columns, (k, d')."""
    return encoder.full(contexts_at(round, positions), round.active, encoder.scale_of(round))
