"""What nobody should send to a recommender: odd values, and Hypothesis strategies of calls with some of them."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from neuclust import Exploration, Features, Number


class Silent:
    """An object that cannot show itself."""

    def __repr__(self) -> str:
        raise RuntimeError("silent")


UNSHOWABLE: list[Any] = [10**5_000, Silent(), [Silent()], {Silent(): 1}, {"a": Silent()}, [10**5_000], {"a": 10**5_000}]
ODD: list[Any] = [
    None, True, 0, -1, 2**63, 10**400, 1.5, math.nan, math.inf, -math.inf, 1e50, -1e308, 5e-324, "", "a" * 5_000,
    "😀", "👩👩👧", "\ud800", "\0", "NaN", "1e999", " ", "ß" * 40, b"x", 1j, Decimal("NaN"), Decimal("1e4000"),
    date(1, 1, 1), timedelta(1), np.array(3), np.array([1.0, 2.0]), np.array(["i1", "i2"]), np.float64("nan"),
    np.int64(2), np.array([[1]]), np.datetime64("NaT"), object(), int, len, [], [[]], {}, {"a": {"b": [1]}}, set(),
    range(3), (1, "a", None), [math.nan], ["i1", "i1"], {"i1": 1}, {1: 2}, {"": 1}, {"price": "dear"},
    {"kind": ["a", "b"]}, {"price": math.inf}, [{}], [{"sku": "i1"}, {"sku": "i1"}], [{"sku": math.nan}],
    [{"price": 1}], "nowhere.csv", "/dev/null",
]  # fmt: skip


def odd_value(place: int) -> Any:
    """By its place, since Hypothesis writes out what it samples from."""
    return ODD[place]


scalars = st.one_of(
    st.integers(0, len(ODD) - 1).map(odd_value),
    st.integers(),
    st.floats(),
    st.text(st.characters(exclude_categories=()), max_size=12),
)
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
item_ids = st.sampled_from([*(f"i{n}" for n in range(8)), 7, "new", "😀"])
user_ids = st.sampled_from(["u0", "u1", "u2", "nobody", 3])
numbers = st.one_of(st.floats(-100, 100), st.integers(-5, 5), st.sampled_from([None, math.nan, 1e50, -1e50]))
kinds = st.sampled_from(["a", "b", "😀", "c" * 300, None, 7, 2.5, True])


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The usual three times of four, else anything."""
    return st.one_of(usual, usual, usual, junk)


item_rows = st.lists(
    st.fixed_dictionaries(
        {"sku": mostly(item_ids)},
        optional={
            "price": mostly(numbers), "kind": mostly(kinds), "tags": mostly(st.lists(kinds, max_size=3)), "late": junk,
        },
    ),
    max_size=4,
)  # fmt: skip
user_rows = st.lists(
    st.fixed_dictionaries({"user": mostly(user_ids)}, optional={"age": mostly(numbers), "group": mostly(kinds)}),
    max_size=3,
)
rows_of_user = st.fixed_dictionaries(
    {}, optional={"age": mostly(numbers), "group": mostly(kinds), "hour": mostly(numbers)}
)
id_lists = mostly(st.lists(mostly(item_ids), max_size=6))
requests = st.fixed_dictionaries(
    {},
    optional={
        "user": mostly(st.one_of(user_ids, rows_of_user)),
        "user_features": mostly(rows_of_user),
        "context": mostly(rows_of_user),
        "eligible": id_lists,
        "exclude": id_lists,
        "required": mostly(st.lists(item_ids, max_size=2)),
        "at_most": mostly(st.dictionaries(st.sampled_from(["kind", "price", "tags"]), mostly(st.integers(1, 3)))),
        "k": mostly(st.integers(1, 3)),
        "request_id": mostly(st.sampled_from(["r1", "r2", 3])),
    },
)  # fmt: skip
values = mostly(st.sampled_from([0, 1, 0.5, True]))
details = st.fixed_dictionaries(
    {},
    optional={
        "slate": mostly(st.floats(0, 3)),
        "shown": mostly(st.integers(0, 3) | st.lists(item_ids, max_size=3)),
        "feedback_id": mostly(st.sampled_from(["f1", "f2", 3])),
        "partial": mostly(st.booleans()),
    },
)  # fmt: skip


# --- recommenders nobody should make ----------------------------------------------------------------------------

names = st.one_of(st.integers(), st.none(), st.text(max_size=4))
columns = st.lists(st.one_of(numbers, kinds, scalars), min_size=0, max_size=5)
tables = st.one_of(
    junk,
    item_rows,
    st.lists(st.dictionaries(st.sampled_from(["sku", "a", "b", "c"]), junk, max_size=4), max_size=5),
    st.dictionaries(st.one_of(st.sampled_from(["sku", "a", "b"]), names), columns, max_size=4),
)  # fmt: skip
options = st.fixed_dictionaries(
    {"policy": mostly(st.sampled_from(["linucb", "popular"]))},
    optional={
        "settings": mostly(st.sampled_from([None, {"tie": "id"}])),
        "seed": mostly(st.integers(0, 9)),
        "exploration": mostly(st.sampled_from([0.1, Exploration(0.5)])),
        "features": mostly(st.sampled_from([Features(levels=2), Features({"price": Number(0, 9)})])),
        "cross": mostly(st.sampled_from([[("age", "price")], [("hour", "kind")], []])),
        "match": mostly(st.just([("group", "kind")])),
        "width": mostly(st.integers(2, 40)),
        "reward": mostly(st.sampled_from(["sum", "any", "threshold:0.5", max])),
        "reward_range": mostly(st.sampled_from([(0, 1), (-1, 5)])),
        "window": mostly(st.floats(1, 100)),
        "learn_after": mostly(st.floats(0, 100)),
        "combine": mostly(st.sampled_from(["max", "last", "sum"])),
        "unanswered": mostly(st.sampled_from(["zeros", "unseen"])),
        "remember": mostly(st.integers(1, 100)),
        "slate_size": mostly(st.integers(1, 4)),
        "user_id": mostly(st.just("user")),
        "users": mostly(user_rows),
        "no such option": junk,
    },
)  # fmt: skip
