"""Indicators and scaled amounts of raw columns."""

import numpy as np
import polars as pl

from neuclust.data.logged.encoding import flags, joined, log_scaled, multi_hot, one_hot, split_list


def test_frequent_values_get_columns_and_the_rest_share_one() -> None:
    """Fails when a rare value takes the place of a frequent one, ties depend on order, or null gets a column."""
    block = one_hot(pl.Series("c", ["b", "a", "b", "d", "e", None, "a", ""]), 2)
    assert block.names == ("c=a", "c=b", "c=other")
    assert block.values.tolist() == [
        *([0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]), *([0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0]),
    ]  # fmt: skip
    assert one_hot(pl.Series("c", ["b", "a"]), 2).names == ("c=a", "c=b")


def test_numbers_written_with_decimals_are_the_same_value() -> None:
    """Fails when 3 and 3.0 become two values, or 10 stands before 9."""
    assert one_hot(pl.Series("c", ["3.0", "3", "10.0", "9"]), 9).names == ("c=3", "c=9", "c=10")


def test_tags_are_counted_one_by_one() -> None:
    """Fails when a list is taken for one value, or an empty one for a tag."""
    block = multi_hot(split_list(pl.Series("tag", ["12,65", "65", None, "", "7, 12,"])), 9)
    assert block.names == ("tag=7", "tag=12", "tag=65")
    assert block.values.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0], [1, 1, 0]]


def test_amounts_lie_between_zero_and_one() -> None:
    """Fails when the largest amount is not 1, null or a negative code is not 0, or a column of zeros divides by 0."""
    block = log_scaled(pl.Series("n", [0, None, -124, 9, 99]))
    assert block.names == ("log n",)
    assert np.allclose(block.values[:, 0], [0, 0, 0, 0.5, 1])
    assert log_scaled(pl.Series("n", [0, 0])).values.tolist() == [[0.0], [0.0]]
    assert flags(pl.Series("f", [1, 0, -124, None])).values.tolist() == [[1.0], [0.0], [0.0], [0.0]]


def test_blocks_are_joined_in_order() -> None:
    """Fails when names and columns part ways, or no blocks have no rows."""
    both = joined([flags(pl.Series("a", [1, 0])), flags(pl.Series("b", [0, 1]))], 2)
    assert both.names == ("a", "b")
    assert both.values.tolist() == [[1, 0], [0, 1]]
    assert joined([], 3).values.shape == (3, 0)
