"""Tables of any library become the same plain values, and what is no table is refused in one sentence."""

from __future__ import annotations

import gzip
import importlib
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust import core
from neuclust.errors import DataError, StateError
from neuclust.recommender.tables import tables, values
from neuclust.recommender.tables.tables import Table, ids_of, read_table
from neuclust.recommender.tables.values import plain_id, plain_row, value_from_json, value_to_json

pa: Any = importlib.import_module("pyarrow")  # it has no types

ROWS: list[dict[str, Any]] = [
    {"sku": "a-1", "price": 1.5, "stock": 3, "new": True, "added": date(2024, 5, 31), "tags": ["red", "new"]},
    {"sku": "b-2", "price": None, "stock": 4, "new": False, "added": None, "tags": []},
    {"sku": "c-3", "price": 2.0, "stock": 5, "new": None, "added": date(2024, 6, 1), "tags": None},
]
FLAT = [{name: value for name, value in row.items() if name != "tags"} for row in ROWS]
EXPECTED = {
    "sku": ["a-1", "b-2", "c-3"], "price": [1.5, None, 2.0], "stock": [3, 4, 5], "new": [True, False, None],
    "added": [date(2024, 5, 31), None, date(2024, 6, 1)], "tags": [("red", "new"), (), None],
}  # fmt: skip


class Colour(Enum):
    RED = "red"


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


SOURCES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy": lambda: pl.LazyFrame(ROWS),
    "arrow": lambda: pa.Table.from_pylist(ROWS),
    "batch": lambda: pa.RecordBatch.from_pylist(ROWS),
    "reader": lambda: pa.Table.from_pylist(ROWS).to_reader(),
    "list": lambda: ROWS,
    "tuple": lambda: tuple(ROWS),
    "iterator": lambda: iter(ROWS),
    "columns": lambda: columns(ROWS),
    "series": lambda: {name: pl.Series(each) for name, each in columns(ROWS).items()},
    "arrays": lambda: {name: np.array(each, dtype=object) for name, each in columns(ROWS).items()},
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", SOURCES)
def test_every_library_gives_the_same_plain_values(kind: str) -> None:
    table = read_table(SOURCES[kind](), "items")
    assert table.columns == EXPECTED
    assert [type(value) for value in table.columns["stock"]] == [int] * 3
    assert [type(value) for value in table.columns["added"]] == [date, type(None), date]
    assert len(table) == 3
    assert table.row(1) == {"sku": "b-2", "price": None, "stock": 4, "new": False, "added": None, "tags": ()}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".CSV", ".parquet", ".pq"])
def test_files_give_the_same(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"items{ending}"
    frame = pl.DataFrame(FLAT)
    if ending.lower() == ".csv":
        frame.write_csv(path)
    elif ending == ".csv.gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
    else:
        frame.write_parquet(path)
    for source in (path, str(path)):
        table = read_table(source, "items")
        assert table.columns == {name: EXPECTED[name] for name in FLAT[0]}


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (float("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.float32("nan"), None),
        (np.datetime64("NaT"), None),
        (Decimal("NaN"), None),
        (np.bool_(True), True),
        (np.int8(3), 3),
        (np.uint64(2**63), 2**63),
        (np.float32(0.5), 0.5),
        (np.longdouble(2), 2.0),
        (np.str_("x"), "x"),
        (Text("x"), "x"),
        (Decimal("1.5"), 1.5),
        (Fraction(1, 4), 0.25),
        (Colour.RED, "red"),
        (pd.Interval(0, 10), "(0, 10]"),
        (uuid.UUID(int=1), str(uuid.UUID(int=1))),
        (pd.Timestamp("2024-05-31 12:30:00.000000001"), datetime(2024, 5, 31, 12, 30)),
        (np.datetime64("2024-05-31"), datetime(2024, 5, 31)),
        (datetime(2024, 5, 31, 1, tzinfo=timezone(timedelta(hours=2))), datetime(2024, 5, 30, 23, tzinfo=UTC)),
        (np.array([1, 2]), (1.0, 2.0)),
        (torch.tensor([0.5]), (0.5,)),
        (pl.Series([1.0]), (1.0,)),
        (np.array(3), 3),
        ([True, 2], (1.0, 2.0)),
        (["b", 1.0, None], ("b", "1")),
        ({"b", "a"}, ("a", "b")),
        ({3, 12}, ("12", "3")),
        ((), ()),
        ("😀", "😀"),
    ],
)
def test_values_become_plain(given: Any, plain: Any) -> None:
    (found,) = read_table([{"x": given}], "items").columns["x"]
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"x", "decode"),
        ({"a": 1}, "make each of its entries a column"),
        (1j, "real part"),
        (np.complex128(1), "got a NumPy complex128"),
        (object(), "got an object"),
        (time(12), "hour"),
        (timedelta(1), "seconds"),
        (float("inf"), "infinity"),
        (-(10**60), "a larger one"),
        ([10**5000], "a larger one"),
        (Decimal("1e999"), "infinity"),
        (Fraction(10**400), "no float can hold"),
        ([[1], [2]], "flatten"),
        (np.ones((2, 2)), "flatten"),
        ([1.0, None], "entry 1"),
        ([1.0, float("nan")], "entry 1"),
        ([float("inf")], "infinity"),
        (["a"] * (values.LONGEST + 1), "at most 10000 entries"),
        ("\ud800", "surrogates"),
        (["\ud800"], "surrogates"),
        (np.datetime64(-(10**6), "Y"), "years 1 to 9999"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))), "years 1 to 9999"),
        (int, "got a type"),
    ],
)
def test_what_no_cell_may_hold_is_named_by_column_and_row(bad: Any, said: str) -> None:
    with pytest.raises(DataError, match=r"^items: column 'x', row 1: expected .*") as caught:
        read_table([{"x": 1}, {"x": bad}], "items")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (17, "got an int"),
        (None, "got a NoneType"),
        ([1], "dictionary for every row, got an int in row 0"),
        ([{}, ("a", 1)], "in row 1"),
        ({"a": [1, 2], "b": [1]}, "columns of one length, got 2 in 'a' and 1 in 'b'"),
        ({"a": 1, "b": [1]}, "list of values for every column"),
        ({"a": "text", "b": (1,)}, "list of values for every column"),
        ([{1: 2}], "as the name of a column, got 1"),
        ([{10**5000: 2}], "as the name of a column, got a whole number"),
        ([{"": 2}], "as the name of a column, got ''"),
        ([{"x" * 1001: 2}], "1 to 1000 characters"),
        ([{"\udfff": 2}], "UTF-8"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "got 'a' twice"),
        (pd.DataFrame([[1]]), "as the name of a column, got 0"),
        (pa.table([[1], [2]], names=["a", "a"]), "got 'a' twice"),
        (pd.Series([1]), "got a Series"),
        (pl.LazyFrame({"a": [1]}).select("b"), "lazy frame"),
        ("items.xlsx", "ends in .csv"),
        ("https://example.org/items.csv", "check the path"),
        ("nothing/here.parquet", "check the path"),
        ("\0.csv", "items: expected a file"),
        (np.ones((2, 2)), "got a ndarray"),
    ],
)
def test_what_is_no_table_is_refused(source: Any, said: str) -> None:
    with pytest.raises(DataError, match=r"^items: ") as caught:
        read_table(source, "items")
    assert said in str(caught.value)


def test_an_endless_iterator_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless() -> Iterator[dict[str, int]]:
        while True:
            yield {}

    monkeypatch.setattr(tables, "MOST_CELLS", 1_000)
    with pytest.raises(DataError, match="at most 1,000 cells"):
        read_table(endless(), "items")
    with pytest.raises(DataError, match="at most 1,000 cells"):
        read_table({"a": range(1_001)}, "items")


def test_a_row_without_a_key_lacks_the_value() -> None:
    table = read_table([{"a": 1}, {"b": 2}, {}], "items")
    assert table.columns == {"a": [1, None, None], "b": [None, 2, None]}


@pytest.mark.parametrize("source", [[], {}, {"a": []}, pd.DataFrame(), pl.DataFrame({"a": []}), pa.table({})])
def test_empty_tables_are_fine(source: Any) -> None:
    assert len(read_table(source, "items")) == 0


def test_rows_without_columns_are_counted() -> None:
    assert len(read_table([{}, {}], "items")) == 2


def test_a_named_index_of_pandas_is_a_column() -> None:
    frame = pd.DataFrame({"sku": ["a", "b"], "price": [1, 2]}).set_index("sku")
    assert read_table(frame, "items").columns == {"sku": ["a", "b"], "price": [1, 2]}


def test_types_of_pandas_columns() -> None:
    frame = pd.DataFrame({
        "level": pd.Categorical(["u", None]), "whole": pd.array([1, None], dtype="Int64"),
        "time": pd.Series([pd.Timestamp("2024-05-31 01:00+02:00"), pd.NaT]),
    })  # fmt: skip
    read = read_table(frame, "items").columns
    assert read == {
        "level": ["u", None], "whole": [1, None], "time": [datetime(2024, 5, 30, 23, tzinfo=UTC), None],
    }  # fmt: skip
    assert type(read["time"][0]) is datetime


# --- CSV ------------------------------------------------------------------------------------------------------


def csv(tmp_path: Path, text: str | bytes) -> Table:
    path = tmp_path / "items.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table(path, "items")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "-2", ""], [1, -2, None]),
        (["1", "2.5", "nan"], [1.0, 2.5, None]),
        (["1e3", ".5", " 7 "], [1000.0, 0.5, 7.0]),
        (["0017", "18", "19"], ["0017", "18", "19"]),
        (["true", "False", ""], [True, False, None]),
        (["2024-05-31", "", "2024-06-01"], [date(2024, 5, 31), None, date(2024, 6, 1)]),
        (["2024-05-31", "2024-05-31 10:00", " "], [datetime(2024, 5, 31), datetime(2024, 5, 31, 10), None]),
        (["2024-05-31T10:00:00Z", "", ""], [datetime(2024, 5, 31, 10, tzinfo=UTC), None, None]),
        (["2024-02-31", "2024-02-01", ""], ["2024-02-31", "2024-02-01", None]),
        (["a|b", "NA", "1"], ["a|b", "NA", "1"]),
        (['"x, ""y"""', "z\u00e9", "w"], ['x, "y"', "zé", "w"]),
        (["", "", ""], [None, None, None]),
    ],
)
def test_the_cells_of_a_csv_column_decide_what_it_holds(tmp_path: Path, cells: list[str], expected: list[Any]) -> None:
    lines = ["n, x", *(f"{row}, {cell}" for row, cell in enumerate(cells))]
    found = csv(tmp_path, "\ufeff" + "\r\n".join(lines) + "\r\n\r\n").columns
    assert found == {"n": [0, 1, 2], "x": expected}
    assert [type(value) for value in found["x"]] == [type(value) for value in expected]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,a\n1,2\n", "got 'a' twice"),
        ("a;b\n1;2\n", "commas"),
        ("a,b\n1\n", "2 cells per row, as there are headings, got 1 in line 2"),
        ("a,\n1,2\n", "as the name of a column, got ''"),
        (b"a\n\xff\n", "UTF-8"),
        ('a\n"open\n', "cannot be read"),
        ("a\ninf\n", "infinity"),
    ],
)
def test_a_csv_file_that_is_wrong_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(DataError, match=r"^items: ") as caught:
        csv(tmp_path, text)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["items.csv.gz", "items.parquet"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not what it says")
    with pytest.raises(DataError, match=r"^items: expected a (CSV|Parquet) file"):
        read_table(tmp_path / name, "items")


def test_an_empty_csv_file_is_an_empty_table(tmp_path: Path) -> None:
    assert csv(tmp_path, "").columns == {}
    assert csv(tmp_path, "a,b\n").columns == {"a": [], "b": []}


# --- ids ------------------------------------------------------------------------------------------------------


def test_ids_are_texts_or_whole_numbers() -> None:
    table = read_table({"id": ["a", 17, 18.0, np.int64(3), "017"]}, "items")
    ids = ids_of(table, "id", "items")
    assert ids == ["a", 17, 18, 3, "017"]
    assert [type(each) for each in ids] == [str, int, int, int, str]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["a", None], "row 1: expected text or a whole number as an id, got a missing value"),
        (["a", True], "got True"),
        ([1.5], "got 1.5"),
        ([1e17], "got 1e\\+17"),
        ([date(2024, 1, 1)], "got datetime.date"),
        ([("a",)], "got \\('a',\\)"),
        (["x" * 1001], "1 to 1000 characters, got a text of 1,001"),
        ([""], "1 to 1000 characters, got an empty text"),
        (["a", "b", "b", "a"], "every id once, got 'b' again in row 2"),
        ([1, 1.0], "every id once, got 1 again in row 1"),
    ],
)
def test_other_ids_are_refused(cells: list[Any], said: str) -> None:
    with pytest.raises(DataError, match=f"^items: column 'id'.*{said}"):
        ids_of(read_table({"id": cells}, "items"), "id", "items")


def test_a_missing_id_column_is_named_with_the_closest() -> None:
    table = read_table({"sku": [1], "price": [2]}, "items")
    with pytest.raises(DataError, match=r"^items: expected the column 'skus' with the ids.*did you mean sku"):
        ids_of(table, "skus", "items")
    with pytest.raises(DataError, match="there are no columns"):
        ids_of(read_table([], "items"), "sku", "items")


def test_one_id_of_a_request() -> None:
    assert plain_id(np.str_("u1"), "user") == "u1"
    with pytest.raises(DataError, match=r"^user: expected text or a whole number as an id; .*bytes"):
        plain_id(b"u1", "user")


# --- rows, saving, hostile input, a bare machine ----------------------------------------------------------------


def test_one_row_is_checked_as_a_table_is() -> None:
    assert plain_row({"hour": np.int64(14), "x": float("nan")}, "context") == {"hour": 14, "x": None}
    for bad, said in (([1], "expected a dictionary"), ({1: 2}, "name of a column"), ({"x": b"y"}, "'x': expected")):
        with pytest.raises(DataError, match=f"^context: .*{said}"):
            plain_row(bad, "context")


def test_the_largest_number_is_that_of_a_round() -> None:
    assert values.LARGEST == core.LARGEST


@pytest.mark.parametrize("value", [None, True, 3, 1.5, "x", date(2024, 1, 2), datetime(2024, 1, 2, 3), ("a",), (1.0,)])
def test_values_are_saved_as_json(value: Any) -> None:
    found = value_from_json(value_to_json(value))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "saved", [{"date": "x"}, {"time": "12:00"}, {"date": 3}, {"a": 1, "b": 2}, [[1]], float("inf")]
)
def test_damaged_values_are_refused(saved: Any) -> None:
    with pytest.raises(StateError, match="saved values"):
        value_from_json(saved)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3), st.dates(),
    st.datetimes(), st.timedeltas(), st.decimals(), st.fractions(), st.complex_numbers(), st.uuids(),
)  # fmt: skip
HOSTILE = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=2), SCALARS, max_size=1)
KEYS = st.text(max_size=3) | st.integers() | st.none()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.dictionaries(KEYS, HOSTILE, max_size=2), max_size=3))
def test_whatever_comes_is_plain_or_refused(rows: list[dict[Any, Any]]) -> None:
    said, table = "items: ", None
    try:
        table = read_table(rows, "items")
    except DataError as error:
        said = str(error)
    assert said.startswith("items: ")
    assert len(said) < 700
    if table is None:
        return
    assert len(table) == len(rows)
    for cells in table.columns.values():
        for cell in cells:
            assert type(cell) in (type(None), bool, int, float, str, date, datetime, tuple)
            if isinstance(cell, tuple):
                assert {type(entry) for entry in cell} in (set(), {str}, {float})


def test_dictionaries_work_on_a_machine_without_table_libraries(tmp_path: Path) -> None:
    program = """
import sys
for name in ("polars", "pandas", "pyarrow"):
    sys.modules[name] = None
from neuclust.recommender.encoders.side import fit_side
from neuclust.recommender.tables.tables import read_table
table = read_table([{"a": 1, "b": "x"}, {"a": 2.5, "b": "y"}], "items")
assert fit_side(table, {}).encode(table).shape == (2, 4)
try:
    read_table(sys.argv[1], "items")
except Exception as error:
    assert "polars, which is not installed" in str(error), error
else:
    raise SystemExit("expected an error")
assert "torch" not in sys.modules and "sklearn" not in sys.modules
"""
    path = tmp_path / "items.parquet"
    pl.DataFrame(FLAT).write_parquet(path)
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
