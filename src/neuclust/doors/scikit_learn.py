"""The encoders of the front door as a scikit-learn transformer, for pipelines of one's own."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from neuclust.recommender.encoders.side import Side, fit_side
from neuclust.recommender.schema import check_names
from neuclust.recommender.tables.columns import LEVELS
from neuclust.recommender.tables.features import Features
from neuclust.recommender.tables.tables import Table, read_table

NAME = "X"  # of the table in sentences


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Columns of numbers as a `Recommender` makes them of a table: kinds are inferred, or given by column.

    `kinds`: as in `Features(items=…)`: words, `Number(low=0, high=100)`, other transformers. `levels`: of a category or
    of tags that get a column each. Frames are read by the names of their columns, arrays as x0, x1, …; missing values
    are None or NaN. After `fit`: `side_`, which describes every column (`side_.describe()`).
    """

    def __init__(self, kinds: Mapping[str, Any] | None = None, levels: int = LEVELS) -> None:
        self.kinds = kinds
        self.levels = levels

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # as scikit-learn names them
        """Infer how each column is read; `y` is not looked at."""
        features = Features(items=self.kinds, levels=self.levels)
        table = self._table(X, reset=True)
        check_names(features, table, Table({}, 0))
        self.side_: Side = fit_side(table, features.declared("items", table.columns), NAME, self.levels)
        self._n_features_out = self.side_.width
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """(n, width)."""
        check_is_fitted(self)
        return self.side_.encode(self._table(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """`price`, `category=shoes`, …; columns of free levels have names, too."""
        check_is_fitted(self)
        return np.array(self.side_.labels, dtype=object)

    def _table(self, X: Any, reset: bool) -> Table:
        """X as columns of plain values, with scikit-learn's own checks of names, sizes and infinities."""
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return read_table(X, NAME)
        found = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        names = getattr(self, "feature_names_in_", [f"x{place}" for place in range(found.shape[1])])
        return read_table({str(name): found[:, place] for place, name in enumerate(names)}, NAME)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
