"""Stated products beyond the bound on the width: those of the most frequent entries are kept."""

import warnings
from collections.abc import Sequence

import numpy as np

from neuclust.errors import ConfigError, LearningWarning
from neuclust.recommender.crossing.basis import Columns, Matrix
from neuclust.recommender.crossing.stated import Function, Term

MOST_STATED = 200_000  # products that are looked at


def entry_sizes(columns: Columns, rows: Matrix) -> Matrix:
    """Mean sizes E|r_j| of entries (d,), from encoded rows (N, d).

    Columns that no row has anything of, such as request context in a table of users, count as if their entries were
    equally frequent; entries that are merely reserved, such as *other*, as 0.
    """
    sizes = np.abs(rows).mean(0) if len(rows) else np.zeros(columns.width)
    for place in columns.slices.values():
        if not sizes[place].any():
            sizes[place] = 1 / max(1, place.stop - place.start)
    return sizes


def most_frequent(
    terms: Sequence[Term], sizes: tuple[Matrix, Matrix], room: int, enough: int
) -> tuple[list[Term], str]:
    """At most `room` terms, those of the largest E|x|·E|u| first, in their given order, and a line that says so.

    `sizes` of item entries (d_i,) and user entries (d_u,); `enough` is the width that holds all of them.
    """
    weights = np.array([_size(term.items, sizes[0]) * _size(term.user, sizes[1]) for term in terms])
    kept = np.sort(np.argsort(-weights, kind="stable")[:room])
    lost = int((weights > 0).sum()) - int((weights[kept] > 0).sum())
    line = f"the {len(kept)} most frequent of {len(terms)} products are kept; width={enough} holds all"
    if lost > 0:
        warnings.warn(f"features: {line}", LearningWarning, stacklevel=2)
    return [terms[at] for at in kept.tolist()], line


def _size(function: Function, sizes: Matrix) -> float:
    return float(np.prod(sizes[list(function)])) if isinstance(function, tuple) else 1.0


def check_stated(count: int, names: str) -> None:
    """Refuse crosses of so many products that they should not even be listed."""
    if count > MOST_STATED:
        wanted = f"expected crosses of at most {MOST_STATED:,} products"
        raise ConfigError(f"{wanted}, got {count:,} ({names:.200}); cross fewer columns", field="cross")
