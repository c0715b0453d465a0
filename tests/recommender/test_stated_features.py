"""What is declared about columns, the encoded sides of a decision, and the table that shows it."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from neuclust.errors import ConfigError, DataError, StateError
from neuclust.recommender.encoders.feature_table import FeatureRow, FeatureTable
from neuclust.recommender.encoders.side import Side, fit_side, with_context
from neuclust.recommender.encoders.transformers import TransformerEncoder
from neuclust.recommender.schema import check_names
from neuclust.recommender.tables.columns import Boolean, Category, Ignore, Kind, Number, Tags, Transformer, Vector
from neuclust.recommender.tables.features import Features
from neuclust.recommender.tables.tables import Table, read_table

ITEMS: list[dict[str, Any]] = [
    {"sku": "a", "price": 1.0, "brand": "x", "tags": ["red"], "added": date(2024, 1, 1), "note": None, "name": "A"},
    {"sku": "b", "price": None, "brand": "y", "tags": ["blue"], "added": date(2024, 1, 3), "note": None, "name": "B"},
    {"sku": "c", "price": 3.0, "brand": "x", "tags": [], "added": None, "note": None, "name": "C"},
]
USERS = [{"user": 1, "segment": "gold", "age": 30}, {"user": 2, "segment": "new", "age": 50}]


def made(**entries: Any) -> Features:
    """Features with entries of types that a type checker would not allow."""
    return Features(**entries)


def items(**kinds: Kind) -> tuple[Table, Side]:
    table = read_table(ITEMS, "items")
    return table, fit_side(table, {"name": Ignore(), **kinds}, ids=["sku"])


def users() -> Side:
    return fit_side(read_table(USERS, "users"), {}, "users", ids=["user"])


def saved(thing: Side | Features) -> Any:
    return json.loads(json.dumps(thing.to_json(), allow_nan=False))


# --- Features -------------------------------------------------------------------------------------------------


def test_words_kinds_and_transformers_are_declared() -> None:
    scaler = StandardScaler()
    features = Features({"price": "number", "brand": "category"}, items={"brand": "ignore", "w": scaler}, levels=5)
    assert features.declared("items", ["price", "brand"]) == {
        "price": Number(), "brand": Ignore(), "w": Transformer(scaler),
    }  # fmt: skip
    assert features.declared("users", ["brand"]) == {"brand": Category(5)}
    assert features.declared("context") == {}
    with pytest.raises(ConfigError, match="items, users, context"):
        features.declared("shops")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"columns": ["price"]}, "columns: expected a dictionary"),
        ({"items": {3: "number"}}, "items: expected names of columns, got 3"),
        ({"items": {"": "number"}}, "items: expected names of columns"),
        ({"users": {"age": "nummer"}}, "did you mean number"),
        ({"cross": ("segment", "price")}, "cross: expected a list of tuples"),
        ({"cross": "segment"}, "cross: expected a list of tuples"),
        ({"cross": [("segment",)]}, "two or more"),
        ({"cross": [("segment", "segment")]}, "two or more"),
        ({"cross": [("segment", 3)]}, "cross: expected"),
        ({"cross": 3}, "cross: expected"),
        ({"match": [("a", "b", "c")]}, "match: expected a list of pairs"),
        ({"width": 1}, "width: expected a whole number from 2"),
        ({"width": True}, "width"),
        ({"width": 1e3}, "width"),
        ({"levels": 0}, "levels"),
    ],
)
def test_features_that_cannot_work_are_refused(entries: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        made(**entries)
    assert said in str(caught.value)


def test_features_are_saved_as_json() -> None:
    kinds: dict[str, Any] = {"price": Number(0, 9), "brand": Category(["x"]), "tags": Tags(3, ";"), "e": Vector(4)}
    features = Features(kinds, context={"app": "boolean"}, cross=[("a", "b")], match=[], width=64, levels=8)
    assert Features.from_json(saved(features)) == features
    assert Features.from_json(saved(Features())) == Features()
    assert Features(match=[]).match == ()


def test_saved_transformers_are_given_again() -> None:
    scaler = StandardScaler()
    features = Features(items={"price": scaler})
    assert Features.from_json(saved(features), {"price": scaler}) == features
    with pytest.raises(StateError, match="StandardScaler of column 'price'"):
        Features.from_json(saved(features))


@pytest.mark.parametrize(
    "damage", [{"items": None}, {"width": 1}, {"cross": 3}, {"users": {"a": {"kind": "x"}}}, {"levels": "a"}]
)
def test_damaged_features_are_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(StateError):
        Features.from_json(saved(Features()) | damage)


# --- sides ----------------------------------------------------------------------------------------------------


def test_a_side_has_all_columns_one_after_another() -> None:
    table, side = items()
    assert side.names == ("price", "brand", "tags", "added")
    assert side.labels == (
        "price", "price missing", "brand=x", "brand=y", "brand=other", "tags=blue", "tags=red", "tags=other",
        "added", "added missing",
    )  # fmt: skip
    assert side.slices == {"price": slice(0, 2), "brand": slice(2, 5), "tags": slice(5, 8), "added": slice(8, 10)}
    assert side.ignored == {"sku": "identifier", "note": "all missing", "name": "declared"}
    assert (side.levels("brand"), side.levels("price")) == (("x", "y"), None)
    rows = side.encode(table)
    assert rows.shape == (3, side.width) == (3, 10)
    for encoder in side.encoders:
        assert (rows[:, side.slices[encoder.name]] == encoder.encode(table.columns[encoder.name])).all()
    assert rows[:, 1].tolist() == [0, 1, 0]


def test_a_row_is_encoded_as_the_table_is() -> None:
    table, side = items()
    rows = side.encode(table)
    for at in range(3):
        row, unknown = side.encode_row(ITEMS[at])
        assert (row == rows[at]).all()
        assert unknown == frozenset()
    row, unknown = side.encode_row({"brand": "x", "colour": "red"})
    assert unknown == {"colour"}
    assert (row == side.encode(read_table([{"brand": "x"}], "items"))[0]).all()


def test_values_of_numpy_are_read_in_a_row() -> None:
    _, side = items()
    one, _ = side.encode_row({"price": np.float32(1.0), "brand": np.str_("x"), "added": float("nan")})
    other, _ = side.encode_row({"price": 1.0, "brand": "x"})
    assert (one == other).all()


def test_sentences_begin_with_the_table() -> None:
    table, side = items()
    with pytest.raises(DataError, match=r"^items: column 'price': expected a number"):
        side.encode_row({"price": "cheap"})
    with pytest.raises(DataError, match=r"^items: column 'price': .*got a bytes"):
        side.encode_row({"price": b"1"})
    with pytest.raises(DataError, match=r"^items: column 'price', row 0: expected a number"):
        side.encode(read_table([{"price": "cheap"}], "items"))
    with pytest.raises(DataError, match=r"^items: column 'brand', row 0: expected a number"):
        fit_side(table, {"brand": Number()})


def test_a_table_without_columns_is_a_side_without_width() -> None:
    side = fit_side(read_table([{}, {}], "items"), {})
    assert side.width == 0
    assert side.encode(read_table([{}, {}], "items")).shape == (2, 0)
    assert side.encode_row({"a": 1})[0].shape == (0,)


def test_context_joins_the_users_columns() -> None:
    side = users()
    wider = with_context(side, {"hour": 14, "device": "mobile", "later": None}, {"app": Boolean()})
    assert side.width == 4  # as it was
    assert wider.names == ("segment", "age", "app", "hour", "device")
    assert "later" not in wider.reasons
    assert wider.context == {"app", "hour", "device"}
    assert with_context(wider, {"hour": 3}, {"app": Boolean()}) == wider
    rows = {row.column: row.table for row in wider.describe()}
    assert (rows["segment"], rows["hour"]) == ("users", "context")
    with pytest.raises(DataError, match=r"expected a new column, got 'age'"):
        wider.extended("age", None, "")


def test_observing_rows_moves_scales_and_takes_free_levels() -> None:
    side = with_context(users(), {"hour": 10, "device": "mobile"}, {})
    assert not side.settled
    hour, device = side.slices["hour"], side.slices["device"]
    assert side.encode_row({"hour": 20})[0][hour].tolist() == [0.0]
    side.observe({"hour": 20, "device": "tv", "new": 3})
    assert side.encode_row({"hour": 20})[0][hour].tolist() == [0.5]
    assert side.encode_row({"device": "tv"})[0][device][:3].tolist() == [0, 1, 0]
    assert "device=tv" in side.labels
    before = saved(side)
    with pytest.raises(DataError, match=r"column 'hour'"):
        side.observe({"device": "radio", "hour": "late"})
    assert saved(side) == before  # the device was not taken in either


def test_a_side_is_saved_as_json() -> None:
    table, side = items()
    again = Side.from_json(saved(side))
    assert (again.encode(table) == side.encode(table)).all()
    assert (again.labels, again.reasons, again.describe()) == (side.labels, side.reasons, side.describe())
    context = with_context(users(), {"device": "tv"}, {})
    assert Side.from_json(saved(context)).context == {"device"}


def test_transformers_of_a_side_are_given_again() -> None:
    table = read_table([{"price": 1.0, "x": 2}, {"price": 3.0, "x": 5}], "items")
    side = fit_side(table, {"price": Transformer(StandardScaler())})
    (encoder,) = (each for each in side.encoders if isinstance(each, TransformerEncoder))
    again = Side.from_json(saved(side), {"price": encoder.transformer})
    assert (again.encode(table) == side.encode(table)).all()
    with pytest.raises(StateError, match="column 'price'"):
        Side.from_json(saved(side))


@pytest.mark.parametrize("part", ["name", "encoders", "reasons", "context"])
@pytest.mark.parametrize("damage", [None, 3, [3], [["a"]]])
def test_damaged_sides_are_refused(part: str, damage: Any) -> None:
    with pytest.raises(StateError):
        Side.from_json(saved(users()) | {part: damage})


def test_a_column_twice_in_a_save_is_refused() -> None:
    damaged = saved(users())
    damaged["encoders"] *= 2
    with pytest.raises(StateError, match="every column once"):
        Side.from_json(damaged)


CELLS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.lists(st.text(max_size=2), max_size=2)
)
ROWS = st.dictionaries(st.sampled_from(["a", "b", "c"]), CELLS, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=4), ROWS)
def test_any_table_becomes_finite_numbers_or_one_sentence(rows: list[dict[str, Any]], later: dict[str, Any]) -> None:
    try:
        table = read_table(rows, "items")
        side = fit_side(table, {})
        encoded = side.encode(table)
    except DataError:
        return
    assert encoded.shape == (len(rows), side.width)
    assert np.isfinite(encoded).all()
    before, row = saved(side), None
    try:
        side.observe(later)
        row, _ = side.encode_row(later)
    except DataError:
        assert saved(side) == before
    assert row is None or np.isfinite(row).all()


# --- the table ------------------------------------------------------------------------------------------------


def test_the_table_shows_every_column() -> None:
    _, side = items()
    table = FeatureTable((*side.describe(), *users().describe()), ("segment x price",))
    lines = str(table).splitlines()
    assert lines[0].split() == ["table", "column", "kind", "columns", "how", "why"]
    assert len(lines) == 2 + len(table) + 1
    assert lines[2].split() == ["items", "sku", "ignored", "0", "identifier"]
    price = next(line for line in lines if " price " in line)
    assert price.split()[:4] == ["items", "price", "number", "2"]
    assert lines[-1] == "crossed: segment x price"
    assert {line.find("why") for line in lines[:1]} == {line.find("identifier") for line in lines[2:3]}
    assert [row.column for row in table][:2] == ["sku", "price"]


def test_names_from_data_break_neither_the_text_nor_the_page() -> None:
    row = FeatureRow("items", "<script>\n\x1b[31m" + "x" * 500, "category", 3, "a & b", "<b>")
    table = FeatureTable((row,), ("<i>",))
    assert len(str(table).splitlines()) == 4
    assert "\x1b" not in str(table)
    assert max(map(len, str(table).splitlines())) < 200
    page = table._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (Features({"prise": "number"}), "columns: no table has 'prise'; did you mean price?"),
        (Features(items={"age": "number"}), "items: there is no column 'age'"),
        (Features(users={"ages": "number"}), "users: there is no column 'ages'; did you mean age?"),
        (Features(cross=[("segmnt", "price")]), "cross: no table has 'segmnt'; did you mean segment?"),
        (Features(match=[("segment", "items.prce")]), "match: no table has 'items.prce'; did you mean price?"),
    ],
)
def test_misspelt_columns_are_refused_with_the_closest(features: Features, said: str) -> None:
    items, users = read_table([{"price": 1.0}], "items"), read_table([{"segment": "a", "age": 3}], "users")
    with pytest.raises(ConfigError) as caught:
        check_names(features, items, users)
    assert said in str(caught.value)
    check_names(Features({"hour": "number"}, cross=[("hour", "price"), ("context.device", "price")]), items, users)
