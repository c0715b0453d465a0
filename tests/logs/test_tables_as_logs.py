"""Plain tables as logs: named columns, blocks of arrays, whole rounds where unchosen arms are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from neuclust.errors import ConfigError, DataError
from neuclust.logs import DecisionLog, TableBlock, TableLog, read_table, table_blocks

NAMES: Any = {"decision": "request", "arm": "item", "slot": "place", "reward": "click", "propensity": "p"}


def shown_only() -> pl.DataFrame:
    """Three decisions, of two, three and one slots."""
    return pl.DataFrame({
        "request": ["a", "a", "b", "b", "b", "c"], "place": [2, 1, 1, 2, 3, 1], "item": ["x", "y", "x", "y", "z", "z"],
        "click": [1.0, 0.0, 1.0, None, 0.0, 1.0], "p": [0.5, 0.25, 0.1, 0.2, 0.3, 1.0],
        "new": [0.0, 1.0, 0.5, 0.5, 0.5, 0.75], "worth": [3.0, 3.0, 4.0, 4.0, 4.0, 5.0],
    })  # fmt: skip


def table_log(table: Any, **options: Any) -> TableLog:
    log = read_table(table, **(NAMES | {"targets": {"mine": "new"}} | options))
    assert isinstance(log, TableLog)
    return log


def gathered(log: TableLog) -> TableBlock:
    """All blocks as one."""
    parts = list(log.blocks())
    targets = {name: np.concatenate([part.targets[name] for part in parts]) for name in log.targets}
    logging, rewards, worth, slots = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("logging", "rewards", "slate_rewards", "slots")
    )
    return TableBlock(logging, targets, rewards, worth, slots)


@pytest.mark.parametrize("kind", ["csv", "parquet", "polars", "pandas"])
def test_a_table_becomes_arrays(tmp_path: Path, kind: str) -> None:
    """Fails when an entry comes to the wrong decision or slot, or kinds of tables are read differently."""
    frame = shown_only()
    if kind == "csv":
        frame.write_csv(tmp_path / "a.csv")
    elif kind == "parquet":
        frame.write_parquet(tmp_path / "a.parquet")
    frames: dict[str, Any] = {"polars": frame, "pandas": pd.DataFrame(frame.to_dict(as_series=False))}
    log = table_log(frames.get(kind, tmp_path / f"a.{kind}"))
    assert isinstance(log, DecisionLog)
    assert (log.targets, log.skipped, log.slate_size, log.reward) == (("mine",), 0, 3, "sum")
    block = gathered(log)
    nan = np.nan
    np.testing.assert_array_equal(block.logging, [[0.25, 0.5, 1], [0.1, 0.2, 0.3], [1, 1, 1]])
    np.testing.assert_array_equal(block.targets["mine"], [[1, 0, 1], [0.5, 0.5, 0.5], [0.75, 1, 1]])
    np.testing.assert_array_equal(block.rewards, [[0, 1, nan], [1, nan, 0], [1, nan, nan]])
    np.testing.assert_array_equal(block.slots, [[1, 1, 0], [1, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(block.slate_rewards, [1.0, nan, 1.0])


def test_the_reward_of_the_slate_may_be_a_column() -> None:
    """Fails when a slate's own reward is replaced by the sum of its slots."""
    log = table_log(shown_only(), slate_reward="worth")
    block = gathered(log)
    assert block.slate_rewards.tolist() == [3, 4, 5]
    assert log.reward is None


def test_shown_arms_alone_give_no_rounds() -> None:
    """Fails when a policy is let choose among the shown arms only, or the way out is not named."""
    with pytest.raises(DataError, match=r"expected features of all eligible arms.*targets=, or features= with rows"):
        table_log(shown_only()).decisions()
    named = NAMES | {"features": ["worth"]}
    with pytest.raises(DataError, match=r"rows of the arms that were eligible and not shown.*as targets="):
        read_table(shown_only(), **named)


def test_blocks_do_not_depend_on_how_the_file_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a decision whose rows lie in two batches is split, or rows are counted wrongly behind a batch."""
    rng, n = np.random.default_rng(0), 500
    length = rng.integers(1, 4, n)
    ids, place = np.repeat(np.arange(n), length), np.concatenate([np.arange(each) for each in length])
    chances = rng.uniform(0.1, 1, len(ids))
    frame = pl.DataFrame(
        {"request": ids, "place": place, "item": place, "click": chances, "p": chances, "new": chances}
    )
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=64)
    whole = gathered(table_log(tmp_path / "a.parquet"))
    monkeypatch.setattr(table_blocks, "ROWS", 37)
    log = table_log(tmp_path / "a.parquet")
    parts = list(log.blocks())
    assert len(parts) > 5
    np.testing.assert_array_equal(np.concatenate([part.logging for part in parts]), whole.logging)
    np.testing.assert_array_equal(np.concatenate([part.slots for part in parts]), whole.slots)
    row = int(np.flatnonzero(ids == 400)[0])
    wrong = frame.with_columns(pl.when(pl.int_range(pl.len()) == row).then(2.0).otherwise("p").alias("p"))
    wrong.write_parquet(tmp_path / "b.parquet", row_group_size=64)
    with pytest.raises(DataError, match=f"row {row + 1}: expected propensities above 0 and at most 1, got 2.0"):
        table_log(tmp_path / "b.parquet")


BAD = {
    "zero": ("p", 0.0, "expected propensities above 0 and at most 1, got 0.0"),
    "missing": ("p", None, "expected propensities above 0 and at most 1, got None"),
    "target": ("new", 1.5, "expected propensities of mine from 0 to 1, got 1.5"),
    "infinite": ("click", float("inf"), "expected finite rewards, got inf"),
    "slot twice": ("place", 1, "expected each slot of the slate once, without gaps, got 1"),
    "slot gap": ("place", 4, "expected each slot of the slate once, without gaps, got 4"),
    "no slot": ("place", None, "expected each slot of the slate once, without gaps, got None"),
    "no arm": ("item", None, "expected the arm of a slot, got None"),
    "arm": ("item", "x", "expected every arm of a slate once, got 'x'"),
}


@pytest.mark.parametrize(("column", "value", "said"), BAD.values(), ids=BAD.keys())
def test_a_bad_row_of_a_table_is_named_or_costs_its_decision(column: str, value: Any, said: str) -> None:
    """Fails when a bad row is read, is not named, or takes more than its decision with it."""
    frame = shown_only()
    values = frame[column].to_list()
    values[3] = value
    bad = frame.with_columns(pl.Series(column, values))
    with pytest.raises(DataError) as refused:
        table_log(bad)
    assert str(refused.value).startswith("table, row 4: ")
    assert said in str(refused.value)
    told: list[str] = []
    log = table_log(bad, skip_bad=2, on_bad=told.append)
    assert log.skipped == len(told) >= 1
    block = gathered(log)
    np.testing.assert_array_equal(block.logging[:, :2], [[0.25, 0.5], [1, 1]])


def test_a_decision_whose_rows_are_apart_is_named() -> None:
    """Fails when one decision counts as two because its rows do not stand together."""
    bad = shown_only().with_columns(pl.Series("request", ["a", "a", "b", "b", "b", "a"]))
    with pytest.raises(DataError, match="row 6: expected the rows of a decision together"):
        table_log(bad)


def test_names_that_are_not_there_are_refused(tmp_path: Path) -> None:
    """Fails when a misspelt or a text column, a missing file or another kind of file is taken."""
    with pytest.raises(DataError, match="expected a column 'clock', got none; did you mean click"):
        table_log(shown_only(), reward="clock")
    with pytest.raises(DataError, match="expected numbers in column 'item'"):
        table_log(shown_only(), reward="item")
    with pytest.raises(ConfigError, match="expected the name of a column"):
        table_log(shown_only(), arm=None)
    with pytest.raises(DataError, match="found no such file"):
        table_log(tmp_path / "a.csv")
    with pytest.raises(ConfigError, match=r"expected a .csv or .parquet file"):
        table_log(tmp_path / "a.xls")
    with pytest.raises(DataError, match="expected slots counted from 0 or 1"):
        table_log(shown_only().with_columns(pl.col("place") + 4))


def test_a_table_with_unchosen_arms_is_a_whole_log(tmp_path: Path) -> None:
    """Fails when rounds of a table lack arms, mix features, or slots come in the order of rows."""
    pl.DataFrame({
        "request": [7, 7, 7, 8, 8, 8], "place": [1, None, 0, None, 0, None], "item": ["x", "y", "z", "z", "y", "x"],
        "click": [1, None, 0, None, 1, None], "p": [0.5, None, 0.25, None, 0.2, None],
        "size": [1.0, 2.0, 3.0, 3.5, 2.5, 1.5], "age": [0, 1, 0, 1, 0, 1], "who": ["u", "u", "u", "v", "v", "v"],
    }).write_csv(tmp_path / "a.csv")  # fmt: skip
    named = NAMES | {"features": ["size", "age"], "user": "who", "learning": False}
    log = read_table(tmp_path / "a.csv", **named)
    one, two = log.decisions()
    assert (log.dim, log.slate_size, log.runs["table"].learning) == (2, 2, False)
    assert one.round.arm_ids.tolist() == [0, 1, 2]
    assert two.round.arm_ids.tolist() == [2, 1, 0]
    assert one.slate.tolist() == [2, 0]
    assert one.propensities is not None
    assert one.propensities.tolist() == [0.25, 0.5]
    assert one.rewards.tolist() == [0.0, 1.0]
    assert two.round.contexts.tolist() == [[3.5, 1], [2.5, 0], [1.5, 1]]
    assert (one.id, one.user, two.user, two.round.slate_size) == ("7", "u", "v", 1)
    assert (one.round.t, two.round.t) == (1, 2)
    again = read_table(pd.read_csv(tmp_path / "a.csv"), **named)  # where empty places are NaN
    assert [each.slate.tolist() for each in again.decisions()] == [[2, 0], [1]]
    for column, values, said in (
        ("request", [7, 7, 7, None, None, None], "row 4: expected a text as id, got None"),
        ("item", ["x", None, "z", "z", "y", "x"], "row 1: expected arm ids as eligible, whole numbers, got None"),
        ("size", [1.0, 2.0, None, 3.5, 2.5, 1.5], "row 1: expected finite numbers as features, got None"),
    ):
        with pytest.raises(DataError, match=said):
            read_table(pl.read_csv(tmp_path / "a.csv").with_columns(pl.Series(column, values)), **named)
    bad = pl.read_csv(tmp_path / "a.csv").with_columns(pl.Series("place", [1, None, 1, None, 0, None]))
    with pytest.raises(DataError, match="table, row 1: expected each slot of the slate once"):
        read_table(bad, **named)
