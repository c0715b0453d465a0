"""Items and users by id: codes for ever, raw and encoded values together, nothing half done, saved and read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from neuclust.errors import DataError, StateError
from neuclust.recommender.items.catalogue import Catalogue, Users
from neuclust.recommender.tables.tables import MOST_COLUMNS
from neuclust.recommender.tables.values import Id

Rows = NDArray[np.float64]


def rows(*values: float) -> Rows:
    return np.array(values, dtype=np.float64)[:, None]


def shop() -> Catalogue:
    items = Catalogue(1)
    items.add(["a", 7, "c"], {"kind": ["x", None, "y"], "price": [1, 2.5, None]}, rows(1, 2, 3))
    return items


def test_added_items_have_codes_rows_and_values() -> None:
    items = shop()
    assert (len(items), items.ids(), items.all_codes().tolist()) == (3, ["a", 7, "c"], [0, 1, 2])
    assert items.profiles(np.array([2, 0])).tolist() == [[3.0], [1.0]]
    assert items.raw(1) == {"kind": None, "price": 2.5}
    assert [items.id_of(code) for code in range(3)] == ["a", 7, "c"]


def test_a_known_id_is_changed_in_place() -> None:
    items = shop()
    changes = items.add([7, "d"], {"price": [9, 4], "colour": ["red", "blue"]}, rows(20, 40))
    assert (changes.added, changes.changed) == (["d"], [7])
    assert items.ids() == ["a", 7, "c", "d"]
    assert items.profiles(items.all_codes())[:, 0].tolist() == [1, 20, 3, 40]
    assert items.raw(1) == {"kind": None, "price": 9, "colour": "red"}
    assert items.raw(0) == {"kind": "x", "price": 1, "colour": None}  # columns that come later are missing before
    assert items.raw(3) == {"kind": None, "price": 4, "colour": "blue"}


def test_columns_not_given_are_missing_in_a_changed_item() -> None:
    items = shop()
    items.add(["a"], {"price": [5]}, rows(9))
    assert items.raw(0) == {"kind": None, "price": 5}


def test_a_removed_id_comes_back_with_its_old_code_and_lends_it_to_nobody() -> None:
    items = shop()
    assert items.remove([7]) == [7]
    assert (items.ids(), items.raw(1)["price"], items.profiles(np.array([1])).tolist()) == (["a", "c"], None, [[0.0]])
    items.add(["d"], {"price": [3]}, rows(4))
    assert items.all_codes().tolist() == [0, 2, 3]
    changes = items.add([7], {"price": [8]}, rows(5))
    assert (changes.added, changes.changed) == ([7], [])
    assert items.codes_of([7])[0].tolist() == [1]


def test_unknown_ids_are_refused_before_any_is_removed() -> None:
    items = shop()
    for ids in (["a", "nobody"], ["a", "a"], [7, 8, 9]):
        with pytest.raises(DataError, match="nothing was removed"):
            items.remove(ids)
    items.remove(["a"])
    with pytest.raises(DataError, match="'a'"):
        items.remove(["a"])
    assert items.ids() == [7, "c"]


def test_codes_are_of_known_ids_at_their_first_occurrence() -> None:
    items = shop()
    items.add(["d"], {}, rows(4))
    items.remove(["c"])
    codes, ignored = items.codes_of(["d", "c", "a", "d", "07", "7", 7, "nobody", "a"])
    assert codes.tolist() == [3, 0, 1]
    assert ignored == ["c", "d", "07", 7, "nobody", "a"]
    assert codes.dtype == np.int64
    assert items.codes_of([])[0].tolist() == []
    assert items.codes_of(item for item in ("a", "d"))[0].tolist() == [0, 3]
    assert items.codes_of(np.array([7]))[0].tolist() == [1]
    assert Catalogue(2).codes_of(["a", "a"])[1] == ["a", "a"]


@given(st.lists(st.integers(0, 12), max_size=30), st.sets(st.integers(0, 9)))
def test_codes_and_ignored_ids_agree_with_a_plain_loop(asked: list[int], removed: set[int]) -> None:
    items = Catalogue(1)
    items.add(list(range(10)), {}, np.zeros((10, 1)))
    items.remove(sorted(removed))
    kept: list[Id] = []
    ignored: list[Id] = []
    for each in asked:
        (ignored if each in kept or each in removed or each > 9 else kept).append(each)
    codes, others = items.codes_of(asked)
    assert ([items.id_of(code) for code in codes.tolist()], others) == (kept, ignored)


@pytest.mark.parametrize("bad", [True, 1.5, None, ["a"], b"a", float("nan"), ("a",)])
def test_ids_of_other_types_are_refused(bad: Any) -> None:
    items = shop()
    with pytest.raises(DataError, match="whole numbers"):
        items.codes_of(["a", bad])
    with pytest.raises(DataError, match="whole numbers"):
        items.add(["new", bad], {}, rows(1, 2))
    with pytest.raises(DataError, match="whole numbers"):
        Users(1).row(bad)
    assert items.ids() == ["a", 7, "c"]


@pytest.mark.parametrize("bad", ["abc", b"abc", {"a": 1}, 17])
def test_ids_come_in_a_list(bad: Any) -> None:
    with pytest.raises(DataError, match="list of ids"):
        shop().codes_of(bad)


@pytest.mark.parametrize(
    ("ids", "columns", "encoded", "match"),
    [
        (["d", "d"], {}, rows(1, 2), "'d' twice"),
        (["d"], {}, rows(1, 2), "shape"),
        (["d"], {}, rows(float("nan")), "finite"),
        (["d"], {"price": [1, 2]}, rows(1), "2"),
        (["d"], {"price": [float("inf")]}, rows(1), "'price'"),
        (["d"], {"price": [(1, float("nan"))]}, rows(1), "'price'"),
        (["d"], {"price": [{"a": 1}]}, rows(1), "'price'"),
        (["d"], {3: [1]}, rows(1), "names as text"),
        (["d" * 1001], {}, rows(1), "1000"),
        ([10**5000], {}, rows(1), "very many digits"),
        (["d"], {"price": [10**5000]}, rows(1), "very many digits"),
        (["d"], {"price": [((1,), 2)]}, rows(1), "'price'"),
        (["d"], {f"column {at}": [1] for at in range(MOST_COLUMNS)}, rows(1), "columns"),
    ],
)
def test_what_cannot_be_kept_changes_nothing(ids: Sequence[Id], columns: Any, encoded: Rows, match: str) -> None:
    items, users = shop(), Users(1)
    before = items.to_state()
    with pytest.raises(DataError, match=match):
        items.add(
            ["a", *ids], {name: ["x", *values] for name, values in columns.items()}, np.vstack([[[5.0]], encoded])
        )
    after = items.to_state()
    assert before[0] == after[0]
    assert all((before[1][name] == after[1][name]).all() for name in before[1])
    with pytest.raises(DataError, match=match):
        users.add(ids, {**columns, "kind": [1] * len(ids), "more": [1] * len(ids)}, encoded)
    assert len(users) == 0


def test_groups_are_by_text_with_missing_values_apart() -> None:
    items = Catalogue(1)
    items.add(list(range(7)), {"kind": [1, 1.0, "1", None, "x", None, 1.5]}, np.zeros((7, 1)))
    groups = items.groups("kind").tolist()
    assert groups == [0, 0, 0, 1, 2, 1, 3]
    assert items.groups("kind") is items.groups("kind")  # once per change
    items.add([7], {"kind": ["x"]}, np.zeros((1, 1)))
    assert items.groups("kind").tolist() == [0, 0, 0, 1, 2, 1, 3, 2]


def test_groups_need_a_column_of_single_values() -> None:
    items = shop()
    items.add(["d"], {"tags": [("x", "y")]}, rows(1))
    with pytest.raises(DataError, match="did you mean kind"):
        items.groups("kinds")
    with pytest.raises(DataError, match="one value per item"):
        items.groups("tags")
    with pytest.raises(DataError, match="there are no columns"):
        Catalogue(1).groups("kind")


def test_many_items_in_small_additions_keep_their_rows() -> None:
    items = Catalogue(2)
    for start in range(0, 300, 7):
        ids = list(range(start, start + 7))
        items.add(ids, {"n": ids}, np.array([[at, -at] for at in ids], dtype=np.float64))
    codes, ignored = items.codes_of(range(299, -1, -1))
    assert not ignored
    assert items.profiles(codes)[:, 1].tolist() == [-at for at in range(299, -1, -1)]


def test_items_are_encoded_again_from_their_raw_values() -> None:
    items = shop()
    items.remove([7])
    again = items.reencoded(
        lambda columns: np.array([[len(columns["kind"]), value == "y"] for value in columns["kind"]])
    )
    assert (again.dim, again.ids(), again.all_codes().tolist()) == (2, ["a", "c"], [0, 2])
    assert again.profiles(np.array([0, 1, 2])).tolist() == [[2, 0], [0, 0], [2, 1]]
    assert items.dim == 1
    with pytest.raises(DataError, match="2 rows"):
        items.reencoded(lambda _: np.zeros((5, 2)))


def test_items_of_ids_alone_are_encoded_again() -> None:
    items = Catalogue(0)
    items.add(["a", "b"], {}, np.zeros((2, 0)))
    again = items.reencoded(lambda columns: np.zeros((len(columns), 3)))
    assert again.profiles(again.all_codes()).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_copy_lives_its_own_life() -> None:
    items = shop()
    twin = items.copy()
    items.add(["a", "z"], {"kind": ["new", "new"]}, rows(50, 60))
    items.remove(["c"])
    assert twin.ids() == ["a", 7, "c"]
    assert twin.raw(0)["kind"] == "x"
    assert twin.profiles(twin.all_codes())[:, 0].tolist() == [1, 2, 3]


def test_users_are_found_or_never_seen() -> None:
    users = Users(2)
    changes = users.add(["u1", 5], {"age": [20, None]}, np.array([[1.0, 2], [3, 4]]))
    assert (changes.added, changes.changed) == (["u1", 5], [])
    assert users.add(["u1"], {"age": [21]}, np.array([[9.0, 9]])).changed == ["u1"]
    row = users.row("u1")
    assert row is not None
    row[:] = 0  # a copy
    assert users.encoded().tolist() == [[9, 9], [3, 4]]
    assert (users.row("05"), users.raw("u2"), users.raw(5)) == (None, None, {"age": None})
    again = users.reencoded(lambda columns: np.array([[float(age or 0)] for age in columns["age"]]))
    assert (again.dim, again.ids(), again.encoded().tolist()) == (1, ["u1", 5], [[21], [0]])
    twin = users.copy()
    users.add(["u3"], {}, np.ones((1, 2)))
    assert (len(twin), len(users)) == (2, 3)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.dates(),
    st.datetimes(timezones=st.sampled_from([None, UTC])).map(lambda each: each.replace(fold=0)),
)
values = st.one_of(scalars, st.lists(st.text()).map(tuple), st.lists(st.floats(-9, 9)).map(tuple))
tables = st.dictionaries(st.one_of(st.text(max_size=20), st.integers()), st.tuples(values, values), max_size=8)


@settings(max_examples=50, deadline=None)
@given(tables, st.data())
def test_what_is_saved_comes_back(table: dict[Id, tuple[Any, Any]], data: st.DataObject) -> None:
    ids = list(table)
    columns = {"one 🛒": [row[0] for row in table.values()], "": [row[1] for row in table.values()]}
    encoded = np.arange(2.0 * len(ids)).reshape(len(ids), 2)
    items, users = Catalogue(2), Users(2)
    items.add(ids, columns, encoded)
    users.add(ids, columns, encoded)
    items.remove(data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else [])
    state, arrays = items.to_state()
    again = Catalogue.from_state(json.loads(json.dumps(state)), arrays)
    assert (again.ids(), again.all_codes().tolist()) == (items.ids(), items.all_codes().tolist())
    for code in range(len(ids)):
        assert repr(again.raw(code)) == repr(items.raw(code))
    assert (again.profiles(np.arange(len(ids))) == items.profiles(np.arange(len(ids)))).all()
    other = Users.from_state(*users.to_state())
    assert (other.ids(), repr([other.raw(each) for each in ids])) == (ids, repr([users.raw(each) for each in ids]))
    assert (other.encoded() == encoded).all()


def saved() -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    items = shop()
    items.add(["d"], {"since": [date(2024, 5, 1)], "at": [datetime(2024, 5, 1, 12)]}, rows(4))
    return items.to_state()


def bytes_of(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def test_the_text_of_the_save_is_plain_json() -> None:
    state, arrays = saved()
    assert state == {"count": 4, "dim": 1}
    content = json.loads(arrays["text"].tobytes())
    assert content["columns"]["since"][3] == {"date": "2024-05-01"}
    assert content["columns"]["at"][3] == {"datetime": "2024-05-01T12:00:00"}


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("rows", None, "rows"),
        ("rows", np.zeros((4, 2)), "rows"),
        ("rows", np.full((4, 1), np.nan), "finite"),
        ("rows", np.zeros((4, 1), dtype=np.float32), "rows"),
        ("alive", np.zeros(3, dtype=np.uint8), "alive"),
        ("alive", np.full(4, 2, dtype=np.uint8), "flags"),
        ("text", bytes_of("{"), "JSON"),
        ("text", np.full(9, 255, dtype=np.uint8), "JSON"),
        ("text", bytes_of("[" * 100_000), "JSON"),
        ("text", bytes_of("[1]"), "lists"),
        ("text", bytes_of('{"ids": 3, "columns": {}}'), "lists"),
        ("text", bytes_of('{"ids": [1, 2, 3, 4], "columns": {"a": 3}}'), "lists"),
        ("text", bytes_of('{"ids": [1, 2, 3], "columns": {}}'), "4 ids"),
        ("text", bytes_of('{"ids": [1, 2, 3, 3], "columns": {}}'), "twice"),
        ("text", bytes_of('{"ids": [1, 2, 3, 1.5], "columns": {}}'), "whole numbers"),
        ("text", bytes_of('{"ids": [1, 2, 3, 4], "columns": {"a": [1, 2, 3]}}'), "4 ids"),
        ("text", bytes_of('{"ids": [1, 2, 3, 4], "columns": {"a": [1, 2, 3, {"date": "x"}]}}'), "ISO"),
        ("text", bytes_of('{"ids": [1, 2, 3, 4], "columns": {"a": [1, 2, 3, {"b": 1, "c": 2}]}}'), "ISO"),
        ("text", bytes_of('{"ids": [1, 2, 3, 4], "columns": {"a": [1, 2, 3, NaN]}}'), "finite"),
    ],
)
def test_damaged_saves_are_refused_in_a_sentence(name: str, value: Any, match: str) -> None:
    state, arrays = saved()
    arrays = {key: array for key, array in arrays.items() if key != name} | ({} if value is None else {name: value})
    with pytest.raises(StateError, match=match):
        Catalogue.from_state(state, arrays)


@pytest.mark.parametrize("state", [None, [], {}, {"count": 4}, {"count": True, "dim": 1}, {"count": 4, "dim": -1}])
def test_damaged_sizes_are_refused(state: Any) -> None:
    with pytest.raises(StateError, match="whole number"):
        Catalogue.from_state(state, saved()[1])
