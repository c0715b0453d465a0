"""Checks of options and arrays, and sums over sparse observations, for all prepared problems."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import ConfigError, DataError

Bools = NDArray[np.bool_]
Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


def check_choice(options: object, name: str, *known: str) -> None:
    if (value := getattr(options, name)) not in known:
        raise ConfigError(f"expected {' or '.join(known)}, got {value!r}", field=name)


def check_least(options: object, **least: float) -> None:
    """Refuse options below their least value; None is no limit."""
    for name, smallest in least.items():
        value = getattr(options, name)
        if value is not None and not smallest <= value < np.inf:
            raise ConfigError(f"expected {smallest} or more, got {value}", field=name)


def check_dates(after: int | None, before: int | None) -> None:
    """Both ends are strict, so that a second must lie between them."""
    if after is not None and before is not None and before <= after + 1:
        raise ConfigError(f"expected a date later than {after}, from where ratings count, got {before}", field="before")


def refuse_where(bad: Bools, name: str, array: NDArray[Any], expected: str, advice: str = "") -> None:
    """Refuse an array with a bad entry, and name the first one: `arms[3, 1]: expected …, got …`."""
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        entry = f"{name}[{', '.join(map(str, place))}]"
        raise DataError(f"{entry}: expected {expected}, got {array[place]}{advice and f'; {advice}'}")


def ratio(sums: Floats, counts: Floats) -> Floats:
    """sums / counts, 0 where there is nothing to divide by."""
    return np.asarray(np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0))


def feature_sums(rows: Codes, columns: Codes, values: Floats, features: Any, n_rows: int) -> tuple[Floats, Floats]:
    """Σ of a row's values over columns with a feature, and their number, (n_rows, d) each; features (M, d) 0 or 1."""
    from scipy.sparse import csr_matrix

    def summed(entries: Floats) -> Floats:
        product: Any = csr_matrix((entries, (rows, columns)), shape=(n_rows, features.shape[0])) @ features
        return np.asarray(product if isinstance(product, np.ndarray) else product.toarray())

    return summed(values), summed(np.ones_like(values))
