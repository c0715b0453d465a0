"""Feature rows: every column is the product its label says, within the bound on the width."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from neuclust.errors import ConfigError, DataError, StateError
from neuclust.recommender.basis import principal
from neuclust.recommender.default_crossing import Sample, principal_terms
from neuclust.recommender.design import Design

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Side:
    """Columns of given widths; those of a name in `texts` are levels."""

    widths: Mapping[str, int]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.widths)

    @property
    def slices(self) -> dict[str, slice]:
        ends = np.cumsum([0, *self.widths.values()]).tolist()
        return {name: slice(*ends[at : at + 2]) for at, name in enumerate(self.widths)}

    @property
    def labels(self) -> tuple[str, ...]:
        found: list[str] = []
        for name, width in self.widths.items():
            levels = [f"{name}={level}" for level in self.texts.get(name, ())]
            others = [f"{name}[{at}]" for at in range(width)] if width > 1 else [name]
            found += (levels + [f"{name}=other"] * (width - len(levels))) if levels else others
        return tuple(found)

    @property
    def width(self) -> int:
        return sum(self.widths.values())

    def levels(self, name: str) -> tuple[str, ...] | None:
        return self.texts.get(name)


@dataclass(frozen=True)
class Spec:
    cross: Sequence[Sequence[str]] | None = None
    match: Sequence[Sequence[str]] | None = None
    width: int = 128


ITEMS = Side({"price": 1, "kind": 3, "tags": 4}, {"kind": ("shoe", "hat"), "tags": ("red", "blue", "wool")})
USER = Side({"segment": 2, "age": 1, "tastes": 3}, {"segment": ("gold", "new"), "tastes": ("blue", "silk", "red")})


def rows(side: Side, count: int, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).normal(size=(count, side.width))


def fit(spec: Spec, items: Side = ITEMS, user: Side = USER, count: int = 40) -> Design:
    return Design.fit(spec, items, user, rows(items, count), rows(user, count, 1))


def value(label: str, x: Matrix, u: Matrix, user: Side) -> Any:
    """What a label of plain columns says, item by item."""
    out: Any = np.ones(len(x))
    for part in label.split(" x "):
        if part in ITEMS.labels:
            out = out * x[:, ITEMS.labels.index(part)]
        elif part in user.labels:
            out = out * u[user.labels.index(part)]
        else:
            assert part == "constant"
    return out


def check(design: Design, user: Side = USER) -> None:
    x, u = rows(ITEMS, 5, 2), rows(user, 1, 3)[0]
    z = design.rows(x, u)
    assert z.shape == (5, design.width)
    for at, label in enumerate(design.labels):
        np.testing.assert_allclose(z[:, at], value(label, x, u, user), atol=1e-12, err_msg=label)


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


def test_a_width_that_is_too_small_is_refused_with_one_that_would_do() -> None:
    spec = Spec([("kind", "tags", "tastes"), ("segment", "price")], width=30)
    with pytest.raises(ConfigError, match=r"width: .*38 products .*; width=53 would do") as refused:
        fit(spec)
    assert refused.value.field == "width"
    assert fit(Spec(spec.cross, width=53)).width == 53
    with pytest.raises(ConfigError, match="width=53 would do"):
        fit(Spec(spec.cross, width=52))


def test_the_width_of_a_huge_cross_is_told_without_making_it() -> None:
    items = Side({f"c{at}": 100 for at in range(3)})
    with pytest.raises(ConfigError, match="1000000 products"):
        fit(Spec([("c0", "c1", "c2")]), items)


PLAIN = Side({"segment": 2, "age": 1, "city": 3}, {"segment": ("gold", "new"), "city": ("red", "Oslo", "Rome")})


def test_nothing_stated_takes_all_products_where_they_fit() -> None:
    design = fit(Spec(), user=PLAIN)  # one level in common is no match
    assert set(design.labels[15:]) == {f"{user} x {item}" for user, item in product(PLAIN.labels, ITEMS.labels)}
    check(design, PLAIN)
    assert design.describe()[1:] == ["every other user column x item column: 48 columns"]


def test_nothing_stated_matches_columns_alike_and_multiplies_the_others() -> None:
    design = fit(Spec())
    assert design.labels[15:17] == ("tastes=blue x tags=blue", "tastes=red x tags=red")
    others = product(USER.labels[:3], ITEMS.labels[:4])
    assert set(design.labels[17:]) == {f"{user} x {item}" for user, item in others}
    check(design)
    assert design.describe()[1:] == [
        "tastes matched with tags: 2 columns",
        "every other user column x item column: 12 columns",
    ]


def test_vectors_of_one_length_are_alike_and_numbers_are_not() -> None:
    items = Side({"embedding": 4, "price": 1, "other": 3})
    design = fit(Spec(), items, Side({"wish": 4, "age": 1}))
    assert design.labels[14:18] == tuple(f"wish[{at}] x embedding[{at}]" for at in range(4))
    assert design.labels[18:] == ("age x price", *(f"age x other[{at}]" for at in range(3)))


def test_matches_and_projections_of_the_others_stand_together() -> None:
    design = fit(Spec(width=24))
    assert design.labels[15:17] == ("tastes=blue x tags=blue", "tastes=red x tags=red")
    assert len(design.labels[17:]) == 7
    x, u = rows(ITEMS, 6), rows(USER, 1)[0]
    z = design.rows(x, u)
    x[:, 4:] = 7  # tags have a match: no projection reads them
    np.testing.assert_allclose(design.rows(x, u)[:, 17:], z[:, 17:])
    u[3:] = 7
    np.testing.assert_allclose(design.rows(x, u)[:, 17:], z[:, 17:])
    assert (np.abs(z[:, 17:]).max(0) > 0).all()


def test_an_empty_list_states_that_nothing_is_crossed() -> None:
    assert fit(Spec([])).width == 15
    assert fit(Spec(None, [])).width == 15


def test_products_that_do_not_fit_are_those_of_projections() -> None:
    design = fit(Spec(width=40), user=PLAIN)
    assert design.width == 40
    assert design.labels[:15] == ("constant", *ITEMS.labels, *PLAIN.labels)
    assert "user 1 of" in design.labels[15]
    assert "items 1 of" in design.labels[15]
    assert "projection" in design.describe()[1]


def test_principal_products_span_most_of_the_variance_of_all_products() -> None:
    rng = np.random.default_rng(4)
    x, u = rng.normal(size=(300, 8)) * np.linspace(2, 0.2, 8), rng.normal(size=(200, 6)) * np.linspace(1, 0.1, 6)
    sample = Sample.of(Side({"e": 8}), Side({"f": 6}), x, u)
    terms = principal_terms(sample, 10)
    items, user = sample.items.joined.variances, sample.user.joined.variances
    kept = sum(items[term.items] * user[term.user] for term in terms)
    every = np.sort(
        np.outer(np.linalg.eigvalsh(np.cov(x.T, bias=True)), np.linalg.eigvalsh(np.cov(u.T, bias=True))).ravel()
    )
    assert kept == pytest.approx(every[-10:].sum())


def test_projected_products_are_the_products_of_centred_rows() -> None:
    items, user = Side({"e": 6}), Side({"f": 5})
    x, u = rows(items, 30) + 3, rows(user, 20, 1) - 2
    design = Design.fit(Spec(width=20), items, user, x, u)
    both = [at for at, label in enumerate(design.labels) if " x " in label]
    z = np.stack([design.rows(x, one)[:, both] for one in u])
    assert abs(z.mean((0, 1))).max() < 1e-12
    flat = z.reshape(-1, len(both))
    products = flat.T @ flat
    np.testing.assert_allclose(products - np.diag(np.diag(products)), 0, atol=1e-8)  # uncorrelated


def test_columns_never_seen_to_vary_are_crossed_as_they_are() -> None:
    user = Side({"segment": 20, "hour": 2})
    x, u = rows(ITEMS, 40), rows(user, 40, 1) * 0.2
    u[:, 20:] = 0.5  # context, unknown in the table of users
    design = Design.fit(Spec(width=60), ITEMS, user, x, u)
    assert any(label.startswith("hour[0] x items") for label in design.labels)
    assert "hour[1]" in design.labels


def test_many_columns_are_projected_themselves() -> None:
    items, user = Side({f"c{at}": 30 for at in range(10)}), Side({"s": 50, "hour": 3})
    u = rows(user, 200, 1)
    u[:, 50:] = 0
    design = Design.fit(Spec(), items, user, rows(items, 400), u)
    assert design.width == 128
    assert sum(label.startswith("items") for label in design.labels) == 64
    assert sum(label.startswith(("user", "hour")) and " x " not in label for label in design.labels) == 32
    assert {"hour[0]", "hour[1]", "hour[2]"} <= set(design.labels)


@pytest.mark.parametrize("count", [0, 1])
def test_tables_without_rows_give_a_design(count: int) -> None:
    design = fit(Spec(width=20), count=count)
    assert design.labels[0] == "constant"
    assert design.rows(rows(ITEMS, 3), rows(USER, 1)[0]).shape == (3, design.width)


def test_no_user_columns_at_all() -> None:
    design = fit(Spec(), user=Side({}))
    assert design.labels == ("constant", *ITEMS.labels)
    assert design.rows(rows(ITEMS, 2), np.zeros(0)).shape == (2, 9)


@settings(max_examples=60)
@given(st.integers(2, 200), st.integers(3, 40), st.integers(0, 40))
def test_the_width_is_a_bound_or_the_default_says_what_would_do(width: int, items: int, user: int) -> None:
    sides = Side({"x": items}), Side({"u": user})
    if width < 4:
        with pytest.raises(ConfigError, match=r"width=\d+ would do") as refused:
            fit(Spec(width=1 + width // 2), *sides, count=1)  # nothing is known of directions: no column is projected
        width = int(str(refused.value).split("width=")[1].split()[0])
        assert width == 1 + items + user
    design = fit(Spec(width=width), *sides, count=12)
    assert design.width <= width
    assert len(set(design.labels)) == design.width


def test_many_requests_in_one_pass_equal_single_ones() -> None:
    for spec in (Spec(), Spec([("kind", "segment", "age")]), Spec(width=24)):
        design = fit(spec)
        x, u = rows(ITEMS, 9, 5), rows(USER, 3, 6)
        owner = np.array([2, 0, 0, 1, 2, 2, 1, 0, 1])
        many = design.rows_many(x, u, owner)
        np.testing.assert_allclose(many, np.vstack([design.rows(x[k : k + 1], u[owner[k]]) for k in range(9)]))


def test_labels_follow_columns_whose_levels_came_later() -> None:
    user = Side({"hour": 3}, {"hour": ("day",)})
    design = fit(Spec([("hour", "kind", "price")]), user=user)
    later = Side({"hour": 3}, {"hour": ("day", "night")})
    again = design.relabelled(ITEMS, later)
    assert again.labels == fit(Spec([("hour", "kind", "price")]), user=later).labels
    assert again.labels != design.labels
    x, u = rows(ITEMS, 3), rows(user, 1)[0]
    assert (again.rows(x, u) == design.rows(x, u)).all()


def test_vectors_too_long_to_match_meet_in_projections() -> None:
    items, user = Side({"embedding": 100}), Side({"wish": 100})
    design = fit(Spec(), items, user, count=150)
    assert design.width == 128
    assert not any("wish[" in label for label in design.labels)
    assert sum(" x " in label for label in design.labels) == 128 - 1 - 64 - 32


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
