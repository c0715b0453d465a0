"""Tables with a header: columns by name, every row checked, equal answers by chunks and line by line."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.data import tables
from neuclust.data.raw import BadRows, RawFile, line_chunks
from neuclust.data.tables import LARGEST, LINE, Table, one_per_id, whole_table
from neuclust.errors import DataError

TABLE = Table.of(whole=("id",), flag=("seen",), number=("size",), text=("kind",))
TEXT = 'extra,kind,id,size,seen\nx,"a,b",7,1.5,1\n,,8,,0\ny,c,9,-2e3,1\n'


def read(tmp_path: Path, text: str, skip_bad: int = 0) -> pl.DataFrame:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    return whole_table(RawFile(path), TABLE, BadRows(skip_bad))


def test_columns_are_found_by_name_and_empty_fields_are_null(tmp_path: Path) -> None:
    """Fails when columns are taken by place, quotes are not read, or empty fields become 0 or text."""
    frame = read(tmp_path, TEXT)
    assert frame.rows() == [(2, 7, 1, 1.5, "a,b"), (3, 8, 0, None, None), (4, 9, 1, -2000.0, "c")]
    assert frame.columns == [LINE, "id", "seen", "size", "kind"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("x,c,-1,1,0", "expected a whole number from 0 to 9223372036854775807 for id, got '-1'"),
        ("x,c,9223372036854775808,1,0", "got '9223372036854775808'"),
        ("x,c,1.5,1,0", "for id, got '1.5'"),
        ("x,c,,1,0", "for id, got ''"),
        ("x,c,1,1,2", "expected 0 or 1 for seen, got '2'"),
        ("x,c,1,nan,0", "expected a finite number or nothing for size, got 'nan'"),
        ("x,c,1,1e999,0", "expected a finite number or nothing for size"),
        ("x,c,1,1_0,0", "expected a finite number or nothing for size"),
        ("x,c,1,1", "expected 5 fields, got 4"),
        ("x,c,1,1,0,0", "expected 5 fields, got 6"),
        ('x,"c,1,1,0', "expected comma-separated fields"),
    ],
)
def test_bad_rows_are_named_by_file_and_line(line: str, sentence: str, tmp_path: Path) -> None:
    """Fails when a bad row is taken, dropped without a word, or named by another line."""
    with pytest.raises(DataError, match=r"table\.csv:5: ") as caught:
        read(tmp_path, f"{TEXT}{line}\nz,d,10,1,1\n")
    assert sentence in str(caught.value)
    assert read(tmp_path, f"{TEXT}{line}\nz,d,10,1,1\n", skip_bad=1)[LINE].to_list() == [2, 3, 4, 6]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"table\.csv:1: expected the columns id, seen, size, kind, the file is empty"),
        ("id,seen,size\n1,1,1\n", r"table\.csv:1: .* without kind"),
        ("id,seen,size,kind,id\n", r"table\.csv:1: expected every column once, got id twice"),
    ],
)
def test_foreign_headers_are_refused(text: str, sentence: str, tmp_path: Path) -> None:
    """Fails when a file without a needed column is read, or a bad row allowance hides it."""
    with pytest.raises(DataError, match=sentence):
        read(tmp_path, text, skip_bad=9)


def test_large_ids_and_other_line_ends(tmp_path: Path) -> None:
    """Fails when ids lose digits above 2**53, or carriage returns and blank lines shift the numbers."""
    text = f"kind,id,size,seen\r\na,{LARGEST},1,1\r\n\r\nb,{LARGEST - 1},2,0\r\n"
    frame = read(tmp_path, text)
    assert frame["id"].to_list() == [LARGEST, LARGEST - 1]
    assert frame[LINE].to_list() == [2, 4]


def test_an_id_met_twice_is_bad(tmp_path: Path) -> None:
    """Fails when the second row of an id replaces the first without a word."""
    text = "kind,id,size,seen\na,5,1,1\nb,3,2,0\nc,5,3,1\n"
    frame, file = read(tmp_path, text), RawFile(tmp_path / "table.csv")
    with pytest.raises(DataError, match=r"table\.csv:4: expected each id once, got 5 again"):
        one_per_id(frame, "id", file, BadRows())
    assert one_per_id(frame, "id", file, BadRows(1))["kind"].to_list() == ["b", "a"]


FIELDS = st.sampled_from(
    ["1", "0", "12", "", " 1", "1 ", "+1", "01", "1.0", "-3", "-0", " +1", "1.", '"1"', '"a', "NaN", "1e2", ".5", "é"]
)


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.tuples(FIELDS, FIELDS, FIELDS, FIELDS), min_size=1, max_size=6), size=st.sampled_from([40, 9999])
)
def test_chunks_read_at_once_say_what_single_lines_say(
    rows: list[tuple[str, ...]], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Fails when the fast reading of whole chunks takes a row that reading line by line refuses, or the reverse."""
    text = "kind,id,size,seen\n" + "".join(f"{','.join(row)}\n" for row in rows)
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "line_chunks", partial(line_chunks, chunk_bytes=size))
        fast = read(folder, text, skip_bad=99)
        patch.setattr(tables, "_whole_chunk", lambda *_: None)
        assert read(folder, text, skip_bad=99).rows() == fast.rows()
