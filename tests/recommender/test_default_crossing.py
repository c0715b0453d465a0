"""Where nothing is stated: columns alike are matched, the others multiplied, in projections where they do not fit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented_sides import ITEMS, PLAIN, USER, Side, Spec, check, fit, rows

from neuclust.errors import ConfigError
from neuclust.recommender.crossing.design import Design
from neuclust.recommender.crossing.inferred import FACTOR, Sample, principal_terms
from neuclust.recommender.encoders.side import fit_side, with_context
from neuclust.recommender.tables.features import Features
from neuclust.recommender.tables.tables import read_table


def test_nothing_stated_takes_all_products_where_they_fit() -> None:
    design = fit(Spec(), user=PLAIN)  # one level in common is no match
    assert set(design.labels[15:]) == {f"{user} x {item}" for user, item in product(PLAIN.labels, ITEMS.labels)}
    check(design, PLAIN, reduced=15)
    assert design.describe()[1:] == ["every other user column x item column: 48 columns"]


def test_nothing_stated_matches_columns_alike_and_multiplies_the_others() -> None:
    design = fit(Spec())
    assert design.labels[15:17] == ("tastes=blue x tags=blue", "tastes=red x tags=red")
    others = product(USER.labels[:3], ITEMS.labels[:4])
    assert set(design.labels[17:]) == {f"{user} x {item}" for user, item in others}
    check(design, reduced=17)
    assert design.describe()[1:] == [
        "tastes matched with tags: 2 columns",
        "every other user column x item column: 12 columns",
    ]


def test_vectors_of_one_length_are_alike_and_numbers_are_not() -> None:
    items = Side({"embedding": 4, "price": 1, "other": 3})
    design = fit(Spec(), items, Side({"wish": 4, "age": 1}))
    assert design.labels[14:18] == tuple(f"wish[{at}] x embedding[{at}]" for at in range(4))
    assert design.labels[18:] == ("age x price", *(f"age x other[{at}]" for at in range(3)))


@pytest.mark.parametrize(
    ("user", "item", "names", "alike"),
    [
        (("red", "blue"), ("red", "blue", "green"), ("colour", "paint"), True),
        (("red", "blue", "a", "b", "c"), ("red", "blue", "d", "e", "f"), ("colour", "paint"), False),
        (("yes", "no"), ("yes", "no"), ("member", "sale"), False),
        (("1", "2", "3.5"), ("1", "2", "3.5"), ("group", "size"), False),
        (("1", "2", "3.5"), ("1", "2", "3.5"), ("size", "size"), True),
    ],
)
def test_levels_in_common_make_columns_alike(
    user: tuple[str, ...], item: tuple[str, ...], names: tuple[str, str], alike: bool
) -> None:
    users, items = Side({names[0]: len(user)}, {names[0]: user}), Side({names[1]: len(item)}, {names[1]: item})
    lines = fit(Spec(), items, users).describe()[1:]
    assert any("matched" in line for line in lines) == alike


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
    items, user = sample.items.rest.variances, sample.user.rest.variances
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


def test_vectors_too_long_to_match_do_so_along_common_directions() -> None:
    items, user = Side({"price": 1, "embedding": 100}), Side({"wish": 100, "age": 1})
    x, u = rows(items, 150), rows(user, 90, 1)
    x[:, 1:] = x[:, 1:13] @ np.random.default_rng(2).normal(size=(12, 100))  # of twelve dimensions
    design = Design.fit(Spec(), items, user, x, u)
    assert design.width <= 128
    lines = design.describe()
    assert lines[1] == "wish matched with embedding: 12 columns, along the leading directions of the items"
    assert lines[2] == "every other user column x item column: 1 column"
    both = [at for at, label in enumerate(design.labels) if " x " in label][:12]
    z = np.stack([design.rows(x, one)[:, both].sum(1) for one in u])
    centred = (u - u.mean(0))[:, :100] @ (x - x.mean(0))[:, 1:].T
    np.testing.assert_allclose(z, centred, atol=1e-8)  # their sum is the inner product


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


def test_tables_of_a_shop_meet() -> None:
    tags = ("red", "silk", "wool")
    kinds = ["shoe" if at % 3 else "hat" for at in range(40)]
    items = read_table([{"price": at % 7, "kind": kinds[at], "tags": tags[: at % 4]} for at in range(40)], "items")
    segments = ["gold" if at % 5 else "new" for at in range(40)]
    users = read_table([{"segment": segments[at], "tastes": tags[1 : at % 4]} for at in range(40)], "users")
    item_side = fit_side(items, {})
    user_side = with_context(fit_side(users, {}, "users"), {"hour": 14, "device": "phone"}, {})
    x, u = item_side.encode(items), user_side.encode(users)
    design = Design.fit(Features(), item_side, user_side, x, u)
    assert design.describe()[1] == "tastes matched with tags: 2 columns"
    assert {"hour x price", "segment=gold x kind=shoe", "device=phone x price"} <= set(design.labels)
    stated = Design.fit(Features(cross=[("context.hour", "items.price")]), item_side, user_side, x, u)
    assert stated.labels[-1] == "hour x price"
    row, _ = user_side.encode_row({"segment": "gold", "hour": 15})
    features = design.rows(x, row)
    assert features.shape == (40, design.width)
    at = design.labels.index("segment=gold x kind=shoe")
    assert features[:, at].tolist() == [FACTOR * (kind == "shoe") for kind in kinds]
