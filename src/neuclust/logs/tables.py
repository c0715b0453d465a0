"""Plain tables as logs: one row per decision and slot, CSV, Parquet or a frame, with columns of any names.

Rows of one decision stand together. With features, and rows without a slot for arms that were eligible and not shown,
a table is a whole log. Without them only the logged arms are known, and a target is judged by columns of its own
propensities (`TableLog.blocks`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict, Unpack, cast

from neuclust.errors import ConfigError, DataError, brief, suggestion
from neuclust.extras import extra
from neuclust.logs.events import Event, RunStart, start_event
from neuclust.logs.files import BATCH, Row
from neuclust.logs.reader import Log, OnBad, Tolerance, checked_log
from neuclust.logs.table_blocks import TableColumns, TableLog, check_table

if TYPE_CHECKING:
    import polars

RUN = "table"
NAME = Path("table")  # of a frame in messages


class TableOptions(TypedDict, total=False):
    """Names of the columns; `targets` by the name of a policy, `features` of every row. `learning`: the policy learned
    while it logged (default: true, since a table does not tell)."""

    decision: Required[str]
    arm: Required[str]
    slot: Required[str]
    reward: Required[str]
    propensity: Required[str]
    slate_reward: str
    time: str
    user: str
    targets: Mapping[str, str]
    features: Sequence[str]
    learning: bool
    skip_bad: int
    on_bad: OnBad


def read_table(table: Any, **options: Unpack[TableOptions]) -> "Log | TableLog":
    """A .csv or .parquet file, or a Polars or pandas frame, as a log.

    `propensity` is the chance of the row's arm given the arms in the slots before; slots count from 0 or 1. The reward
    of a slate is its `slate_reward` column, else the sum of its slots'. A bad row costs its decision.
    """
    with extra("reading tables as logs"):
        import polars as pl

    path, frame = _opened(table)
    frame = frame.with_columns(pl.selectors.float().fill_nan(None))  # pandas has NaN for what is empty
    tolerance = Tolerance(options.get("skip_bad", 0), options.get("on_bad"))
    columns = _columns(path, frame, options)
    learning = options.get("learning", True)
    first, last, unshown = _slots(path, frame, columns.slot)
    reward = "sum" if columns.slate_reward is None else None
    start = RunStart(RUN, "", last - first + 1, len(columns.features), learning, reward)
    if not columns.features:
        return check_table(path, frame, columns, start, first, tolerance)
    if not unshown:
        said = "expected rows of the arms that were eligible and not shown, which have no slot, got none"
        raise DataError(f"{path}: {said}; add them, or give propensities of the policies to judge as targets=")
    source = partial(_events, frame, columns, start, first)
    return checked_log(path, source, "row", skip_bad=tolerance.skip_bad, on_bad=tolerance.on_bad)


def _opened(table: Any) -> "tuple[Path, polars.LazyFrame]":
    import polars as pl

    if isinstance(table, pl.LazyFrame | pl.DataFrame):
        return NAME, table.lazy()
    if hasattr(table, "columns") and hasattr(table, "loc"):  # pandas, read without pyarrow
        return NAME, pl.DataFrame({str(name): table[name].tolist() for name in table.columns}, strict=False).lazy()
    if not isinstance(table, str | Path):
        raise ConfigError(f"expected a file or a frame, got {brief(table)}", field="table")
    path = Path(table)
    readers: dict[str, Callable[[Path], pl.LazyFrame]] = {".csv": pl.scan_csv, ".parquet": pl.scan_parquet}
    if path.suffix not in readers:
        raise ConfigError(f"expected a .csv or .parquet file, got {path}; rename it", field="table")
    if not path.is_file():
        raise DataError(f"{path}: expected a table, found no such file; check the name")
    return path, readers[path.suffix](path)


def _columns(path: Path, frame: "polars.LazyFrame", options: Mapping[str, Any]) -> TableColumns:
    """The named columns, each of which must be there and, where it is read as a number, hold numbers."""
    import polars as pl

    try:
        schema = frame.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: expected a table, could not read it ({error!s:.100})") from None
    needed = ("decision", "arm", "slot", "reward", "propensity")
    for name in needed:
        if not options.get(name):
            raise ConfigError("expected the name of a column, got none; name it", field=name)
    named = {name: options.get(name) for name in (*needed, "slate_reward", "time", "user")}
    targets, features = dict(options.get("targets") or {}), tuple(options.get("features") or ())
    found = TableColumns(**cast("dict[str, Any]", named), targets=targets, features=features)
    for name in found.all:
        if name not in schema:
            raise DataError(f"{path}: expected a column {brief(name)}, got none; {suggestion(name, schema)}")
    for name in found.numeric:
        if not schema[name].is_numeric() and schema[name] != pl.Boolean and schema[name] != pl.Null:
            raise DataError(f"{path}: expected numbers in column {brief(name)}, got {schema[name]}; convert them")
    return found


def _slots(path: Path, frame: "polars.LazyFrame", slot: str) -> tuple[int, int, bool]:
    """The first and last slot of the table, and whether rows without one are there."""
    import polars as pl

    column = pl.col(slot)
    said = frame.select(column.min().alias("low"), column.max().alias("high"), column.null_count().alias("none"))
    low, high, none = said.collect(engine="streaming").row(0)
    if low not in (0, 1) or high != int(high):
        raise DataError(f"{path}: expected slots counted from 0 or 1, got {low} to {high}; number them anew")
    return int(low), int(high), bool(none)


# --- whole logs -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Numbers:
    """Arms as whole numbers, as they are or in the order of first sight, and decisions counted from 1."""

    codes: dict[Any, int]
    decisions: int = 0

    def of(self, arm: Any) -> int | None:
        return arm if arm is None or type(arm) is int else self.codes.setdefault(arm, len(self.codes))


def _events(frame: "polars.LazyFrame", columns: TableColumns, start: RunStart, first: int) -> Iterator[Row]:
    """The start, then the rows of each decision as one event, counted by the first of them."""
    yield Row(1, start_event(start))
    numbers, number = _Numbers({}), 0
    held: list[dict[str, Any]] = []
    for batch in frame.select(columns.all).collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True):
        for row in batch.iter_rows(named=True):
            if held and row[columns.decision] != held[0][columns.decision]:
                yield _row(number - len(held) + 1, held, columns, numbers, first)
                held = []
            held.append(row)
            number += 1
    if held:
        yield _row(number - len(held) + 1, held, columns, numbers, first)


def _row(number: int, rows: list[dict[str, Any]], columns: TableColumns, numbers: _Numbers, first: int) -> Row:
    """The decision that these rows are, or why they are none."""
    numbers.decisions += 1
    shown = sorted((row for row in rows if row[columns.slot] is not None), key=lambda row: row[columns.slot])
    slots = [row[columns.slot] for row in shown]
    if slots != list(range(first, first + len(slots))):
        said = f"expected each slot of the slate once, without gaps, got {brief(slots)}"
        return Row(number, None, f"{said}; number them {first}, {first + 1}, …")
    return Row(number, _event(rows, shown, columns, numbers))


def _event(rows: list[dict[str, Any]], shown: list[dict[str, Any]], columns: TableColumns, numbers: _Numbers) -> Event:
    head = rows[0]
    rewards = [row[columns.reward] for row in shown]
    rewards = [None if one is None or one != one else float(one) for one in rewards]
    if columns.slate_reward is not None:
        worth = head[columns.slate_reward]
    else:
        worth = None if None in rewards else sum(one for one in rewards if one is not None)
    told = {name: None if column is None else head[column] for name, column in columns.labels}
    id = head[columns.decision]
    return {
        "event": "decision", "run": RUN, "id": None if id is None else str(id), "t": numbers.decisions, **told,
        "eligible": [numbers.of(row[columns.arm]) for row in rows],
        "features": [row[name] for row in rows for name in columns.features], "k": len(shown),
        "slate": [numbers.of(row[columns.arm]) for row in shown], "design": {"kind": "unknown"},
        "propensities": [row[columns.propensity] for row in shown], "rewards": rewards, "slate_reward": worth,
    }  # fmt: skip
