"""Feature rows: every column is the product its label says, within the bound on the width."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from invented_sides import ITEMS, USER, Side, Spec, check, fit, rows

from neuclust.errors import ConfigError, DataError, LearningWarning, StateError
from neuclust.recommender.crossing.basis import principal
from neuclust.recommender.crossing.design import Design
from neuclust.recommender.crossing.frequent import entry_sizes, most_frequent
from neuclust.recommender.crossing.stated import Term


def test_a_stated_cross_is_the_outer_product_after_the_columns() -> None:
    design = fit(Spec([("segment", "price")]))
    assert design.labels[:1] == ("constant",)
    assert design.labels[1:15] == (*ITEMS.labels, *USER.labels)
    assert design.labels[15:] == ("segment=gold x price", "segment=new x price")
    check(design)


@pytest.mark.parametrize(
    ("names", "width"),
    [
        (("kind", "segment"), 6),
        (("age", "price"), 1),
        (("kind", "price"), 3),
        (("segment", "age"), 2),
        (("price", "segment", "kind"), 6),
        (("segment", "kind", "age", "tags"), 24),
    ],
)
def test_crosses_of_any_sides_and_number(names: tuple[str, ...], width: int) -> None:
    design = fit(Spec([names]))
    crossed = design.labels[15:]
    assert len(set(crossed)) == width == len(crossed)
    check(design)


def test_several_crosses_stand_side_by_side() -> None:
    design = fit(Spec([("segment", "price"), ("kind", "price"), ("tags", "kind"), ("age", "segment", "kind")]))
    assert design.width == 15 + 2 + 3 + 12 + 6
    check(design)
    lines = ["segment x price: 2", "kind x price: 3", "tags x kind: 12", "age x segment x kind: 6"]
    assert design.describe()[1:] == [f"{line} columns" for line in lines]


def test_a_match_multiplies_equal_levels_and_nothing_else() -> None:
    design = fit(Spec(match=[("tastes", "tags")]))
    assert design.labels[15:] == ("tastes=blue x tags=blue", "tastes=red x tags=red")
    check(design)


def test_vectors_are_matched_by_position() -> None:
    items, user = Side({"embedding": 3, "price": 1}), Side({"wish": 3})
    design = fit(Spec(match=[("wish", "embedding")]), items, user)
    assert design.labels[8:] == tuple(f"wish[{at}] x embedding[{at}]" for at in range(3))
    x, u = rows(items, 4), rows(user, 1)[0]
    np.testing.assert_allclose(design.rows(x, u)[:, 8:], x[:, :3] * u)


def test_a_match_within_a_cross_is_there_once() -> None:
    design = fit(Spec([("tastes", "tags")], [("tastes", "tags")]))
    assert design.width == 15 + 12
    check(design)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (Spec(match=[("tastes", "kind")]), "match: expected two columns with levels in common"),
        (Spec(match=[("tastes", "price")]), "match: expected two columns with levels in common"),
        (Spec(match=[("tags", "tastes")]), "match: expected pairs of a user column and an item column"),
        (Spec(match=[("tastes",)]), "match: expected pairs"),
        (Spec([("segment", "prize")]), "cross: .*did you mean price"),
        (Spec([("segment",)]), "cross: expected two or more"),
        (Spec([("age", "age")]), "cross: expected two or more different"),
        (Spec([("age", "users.age")]), "cross: expected two or more different"),
        (Spec([("age", "price"), ("price", "age")]), "cross: .*price x age twice"),
        (Spec([("items.age", "price")]), "cross: expected columns that are encoded"),
        (Spec(width=1), "width: expected 2 to"),
        (Spec(width=10**6), "width: expected 2 to"),
    ],
)
def test_what_cannot_be_crossed_is_refused(spec: Spec, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        fit(spec)


def test_an_ignored_column_cannot_be_crossed() -> None:
    with pytest.raises(ConfigError, match="which is ignored"):
        fit(Spec([("age", "title")]), Side({"price": 1, "title": 0}))


def test_names_of_two_tables_say_which_they_mean() -> None:
    items, user = Side({"age": 1, "price": 1}), Side({"age": 1, "hour": 2})
    with pytest.raises(ConfigError, match=r"write items\.age or users\.age"):
        fit(Spec([("age", "price")]), items, user)
    design = fit(Spec([("users.age", "items.age"), ("context.hour", "items.price")]), items, user)
    assert design.labels[1:6] == ("items.age", "price", "user.age", "hour[0]", "hour[1]")
    x, u = rows(items, 4), rows(user, 1)[0]
    np.testing.assert_allclose(design.rows(x, u)[:, 6], x[:, 0] * u[0])
    np.testing.assert_allclose(design.rows(x, u)[:, 7:], x[:, 1:] * u[1:])


def test_stated_products_beyond_the_width_keep_the_most_frequent_and_say_which_width_holds_all() -> None:
    spec = Spec([("kind", "tags", "tastes"), ("segment", "price")], width=30)
    with pytest.warns(LearningWarning, match=r"the 15 most frequent of 38 products are kept; width=53 holds all"):
        design = fit(spec)
    assert design.width == 30
    assert any("width=53 holds all" in line for line in design.describe())
    whole = fit(Spec(spec.cross, width=53))
    assert whole.width == 53
    assert [label for label in whole.labels if label in design.labels] == list(design.labels)


def test_the_most_frequent_products_are_those_of_the_largest_entries() -> None:
    terms = [Term((i,), (j,)) for i in range(3) for j in range(2)]
    sizes = np.array([0.5, 0.3, 0.0]), np.array([0.9, 0.1])
    kept, line = most_frequent(terms, sizes, 4, enough=9)  # 0.45, 0.05, 0.27, 0.03, 0, 0: nothing is lost
    assert kept == terms[:4]
    assert line == "the 4 most frequent of 6 products are kept; width=9 holds all"
    with pytest.warns(LearningWarning, match="the 2 most frequent of 6"):
        assert most_frequent(terms, sizes, 2, enough=9)[0] == [terms[0], terms[2]]


def test_columns_that_no_row_has_anything_of_count_as_evenly_frequent() -> None:
    columns = Side({"segment": 2, "device": 4})
    seen = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    assert entry_sizes(columns, seen).tolist() == [1.0, 0.0, 0.25, 0.25, 0.25, 0.25]


def test_a_width_that_does_not_hold_the_columns_is_refused_with_one_that_would_do() -> None:
    user = Side({"context": 40})
    with pytest.raises(ConfigError, match=r"width: expected at most 20 features, got .* columns; width=\d+ would do"):
        fit(Spec([], width=20), user=user, count=1)


def test_a_huge_cross_is_refused_without_making_it() -> None:
    items = Side({f"c{at}": 100 for at in range(3)})
    with pytest.raises(ConfigError, match=r"cross: .*got 1,000,000"):
        fit(Spec([("c0", "c1", "c2")]), items)


def test_an_empty_list_states_that_nothing_is_crossed() -> None:
    assert fit(Spec([])).width == 15
    assert fit(Spec(None, [])).width == 15


@pytest.mark.parametrize("count", [0, 1])
def test_tables_without_rows_give_a_design(count: int) -> None:
    design = fit(Spec(width=20), count=count)
    assert design.labels[0] == "constant"
    assert design.rows(rows(ITEMS, 3), rows(USER, 1)[0]).shape == (3, design.width)


def test_no_user_columns_at_all() -> None:
    design = fit(Spec(), user=Side({}))
    assert design.labels == ("constant", *ITEMS.labels)
    assert design.rows(rows(ITEMS, 2), np.zeros(0)).shape == (2, 9)


def test_many_requests_in_one_pass_equal_single_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuclust.recommender.crossing.design.BLOCK", 4)
    for spec in (Spec(), Spec([("kind", "segment", "age")]), Spec(width=24)):
        design = fit(spec)
        x, u = rows(ITEMS, 9, 5), rows(USER, 3, 6)
        owner = np.array([2, 0, 0, 1, 2, 2, 1, 0, 1])
        many = design.rows_many(x, u, owner)
        np.testing.assert_allclose(many, np.vstack([design.rows(x[k : k + 1], u[owner[k]]) for k in range(9)]))
        assert design.rows_many(x[:0], u, owner[:0]).shape == (0, design.width)


def test_rows_of_another_schema_are_refused() -> None:
    design = fit(Spec())
    with pytest.raises(DataError, match=r"expected shape \(n, 8\)"):
        design.rows(np.zeros((3, 7)), np.zeros(6))
    with pytest.raises(DataError, match=r"expected shape \(n, 6\)"):
        design.rows(np.zeros((3, 8)), np.zeros(7))
    with pytest.raises(DataError, match="encoded rows"):
        Design.fit(Spec(), ITEMS, USER, np.zeros((3, 2)), np.zeros((3, 6)))


def test_directions_are_orthonormal_with_definite_signs() -> None:
    found = principal(rows(ITEMS, 50))
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(ITEMS.width), atol=1e-12)
    assert (found.vectors[np.abs(found.vectors).argmax(0), np.arange(ITEMS.width)] > 0).all()
    assert (np.diff(found.variances) <= 0).all()
    one_hot = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    assert principal(one_hot).vectors.shape == (3, 2)  # the levels sum to 1


def test_directions_of_long_rows_are_those_of_the_covariance() -> None:
    wide = np.random.default_rng(1).normal(size=(12, 30)) * np.linspace(1, 3, 30)
    found = principal(wide)  # fewer rows than columns
    spread = wide - wide.mean(0)
    assert found.vectors.shape == (30, 11)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(11), atol=1e-9)
    np.testing.assert_allclose(spread.T @ spread / 12 @ found.vectors, found.vectors * found.variances, atol=1e-9)


def test_very_many_rows_are_represented_by_some(monkeypatch: pytest.MonkeyPatch) -> None:
    many = rows(ITEMS, 4000) * np.linspace(3, 1, ITEMS.width)
    full = principal(many)
    monkeypatch.setattr("neuclust.recommender.crossing.basis.MOST_WORK", 1)
    some = principal(many)
    assert (some.centre == full.centre).all()
    np.testing.assert_allclose(some.variances, full.variances, rtol=0.2)
    assert not np.array_equal(some.variances, full.variances)


@pytest.mark.parametrize("spec", [Spec(), Spec(width=24), Spec([("segment", "kind", "price")], [("tastes", "tags")])])
def test_what_is_saved_comes_back(spec: Spec) -> None:
    design = fit(spec)
    again = Design.from_state(json.loads(json.dumps(design.to_json())), design.arrays())
    x, u = rows(ITEMS, 4), rows(USER, 1)[0]
    assert (again.rows(x, u) == design.rows(x, u)).all()
    assert (again.labels, again.describe()) == (design.labels, design.describe())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pairs", None),
        ("pairs", np.zeros((2, 3), dtype=np.int64)),
        ("pairs", np.full((2, 29), 99, dtype=np.int64)),
        ("pairs", np.full((2, 29), -1, dtype=np.int64)),
        ("pairs", np.zeros((2, 29))),
        ("factors", np.zeros(3)),
        ("factors", np.full(29, np.inf)),
        ("items.centre", np.zeros(3)),
        ("items.centre", np.full(8, np.nan)),
        ("user.projection", np.zeros((5, 0))),
        ("user.products", np.full((1, 2), 7, dtype=np.int64)),
    ],
)
def test_damaged_arrays_are_refused(name: str, value: Any) -> None:
    design = fit(Spec())
    arrays = {key: array for key, array in design.arrays().items() if key != name} | (
        {} if value is None else {name: value}
    )
    with pytest.raises(StateError, match="saved features"):
        Design.from_state(design.to_json(), arrays)


@pytest.mark.parametrize(
    "damage", [{"labels": 3}, {"labels": []}, {"notes": [1]}, {"items": None}, {"user": {"labels": ["a"]}}]
)
def test_damaged_json_is_refused(damage: dict[str, Any]) -> None:
    design = fit(Spec())
    with pytest.raises(StateError, match="saved features"):
        Design.from_state({**design.to_json(), **damage}, design.arrays())
    with pytest.raises(StateError, match="saved features"):
        Design.from_state(None, design.arrays())
