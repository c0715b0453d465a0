"""What columns are taken for, and the numbers that become of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MultiLabelBinarizer,
    OneHotEncoder,
    StandardScaler,
)

from neuclust.errors import ConfigError, DataError, NeuclustError, StateError
from neuclust.recommender.encoders.encoder import Encoder
from neuclust.recommender.encoders.fitting import encoder_from_json, fit_encoder
from neuclust.recommender.encoders.transformers import TransformerEncoder
from neuclust.recommender.tables.columns import (
    Boolean,
    Category,
    Date,
    Ignore,
    Kind,
    Number,
    Tags,
    Transformer,
    Vector,
    infer,
    kind_from_json,
    kind_of,
    kind_to_json,
)

DAYS = [date(2024, 1, 1) + timedelta(days=day) for day in range(5)]
TITLES = [f"title {number}" for number in range(40)]


def saved(encoder: Encoder) -> Any:
    return json.loads(json.dumps(encoder.to_json(), allow_nan=False))


def made(kind: Any, **entries: Any) -> Any:
    """A kind with entries of types that a type checker would not allow."""
    return kind(**entries)


# --- kinds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Number(low=0), "both low and high or neither"),
        (lambda: Number(low=1, high=1), "low below high"),
        (lambda: Number(low=float("nan"), high=1), "Number.low"),
        (lambda: made(Number, low="0", high=1), "Number.low"),
        (lambda: Number(low=0, high=1e60), "Number.high"),
        (lambda: Category(levels=0), "Category.levels: expected 1 to 1000"),
        (lambda: Category(levels=True), "Category.levels"),
        (lambda: Category(levels="abc"), "Category.levels"),
        (lambda: Category(levels=["a", "a"]), "distinct"),
        (lambda: Category(levels=[]), "Category.levels"),
        (lambda: Tags(levels=10**6), "Tags.levels"),
        (lambda: Tags(separator=""), "Tags.separator"),
        (lambda: Vector(dim=0), "Vector.dim"),
        (lambda: made(Vector, separator=3), "Vector.separator"),
        (lambda: made(Date, missing="unknown"), "Date.missing"),
        (lambda: Transformer(StandardScaler), "make one of it"),
        (lambda: Transformer(3), "fit and transform"),
        (lambda: kind_of("numbre", "price"), "did you mean number"),
        (lambda: kind_of("transformer", "price"), "expected one of"),
        (lambda: kind_of(3, "price"), "column 'price': expected one of number"),
        (lambda: kind_of(StandardScaler, "price"), "make one of it"),
    ],
)
def test_kinds_that_cannot_work_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert said in str(caught.value)


def test_words_stand_for_kinds() -> None:
    words = ("number", "boolean", "date", "vector", "ignore")
    assert [kind_of(word, "x") for word in words] == [Number(), Boolean(), Date(), Vector(), Ignore()]
    assert [kind_of(word, "x", levels=7) for word in ("category", "tags")] == [Category(7), Tags(7)]
    assert kind_of(Number(0, 1), "x") == Number(0, 1)
    assert isinstance(kind_of(StandardScaler(), "x"), Transformer)


@pytest.mark.parametrize(
    "kind",
    [Number(), Number(0, 2.5), Boolean(), Category(5), Category(("a", "b")), Date(("?",)), Tags(3, "|"), Vector(4)],
)
def test_kinds_are_saved_as_json(kind: Kind) -> None:
    assert kind_from_json(json.loads(json.dumps(kind_to_json(kind)))) == kind


@pytest.mark.parametrize(
    "damaged",
    [None, {}, {"kind": "x"}, {"kind": "number", "low": 1}, {"kind": "boolean", "x": 1}, {"kind": ["number"]}, 3],
)
def test_damaged_kinds_are_refused(damaged: Any) -> None:
    with pytest.raises(StateError, match="saved features"):
        kind_from_json(damaged)


# --- inferred kinds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "reason"),
    [
        ([True, False, None], Boolean(), "true and false"),
        ([1, 2.5, None], Number(), "numbers"),
        ([True, 2], Number(), "numbers"),
        (DAYS, Date(), "dates"),
        (["2024-05-31", "2024-06-01T10:00", None], Date(), "dates"),
        (["2024-05-31", "2024-06-01", "unknown"], Date(("unknown",)), "dates; 'unknown' missing"),
        (["2024-05-31", "unknown"], Category(), "2 distinct values"),
        (["20240531", "20240601"], Category(), "2 distinct values"),
        ([("a", "b"), (), None], Tags(), "lists of tags"),
        ([(1.0, 2.0), (3.0, 4.0)], Vector(2), "2 numbers each"),
        ([(1.0, 2.0), (3.0,)], Tags(), "lists of numbers, of several lengths"),
        ([(), ()], Ignore(), "one constant value"),
        ([(), (), None], Ignore(), "empty lists"),
        ([("a",), "b"], Ignore(), "lists and single values mixed"),
        (["x", "y", "x"], Category(), "2 distinct values"),
        (["x", 1, 1.0], Category(), "2 distinct values, numbers and text mixed"),
        ([DAYS[0], 1], Category(), "2 distinct values, several types mixed"),
        (TITLES, Ignore(), "unique strings"),
        (TITLES[:32], Category(), "32 distinct values"),
        (TITLES * 2, Category(), "40 distinct values"),
        (TITLES[:33] + ["same"] * 33, Category(), "34 distinct values"),
        (TITLES[:33] + ["same"] * 32, Ignore(), "unique strings"),
        ([None, None], Ignore(), "all missing"),
        ([], Ignore(), "all missing"),
        (["same"] * 3, Ignore(), "one constant value"),
        (["sale", None, "sale"], Category(), "1 distinct value"),
        (["mobile"], Category(), "1 distinct value"),
        ([14], Number(), "numbers"),
        (["x" * 10_001, "y"], Ignore(), "texts over 10,000 characters"),
        ([("x" * 10_001,), ("y",)], Ignore(), "texts over 10,000 characters"),
    ],
)
def test_values_tell_what_a_column_is(values: list[Any], kind: Kind, reason: str) -> None:
    assert infer(values) == (kind, reason)


def test_identifiers_are_ignored_and_levels_are_passed_on() -> None:
    assert infer(["a", "b"], ids=True) == (Ignore(), "identifier")
    assert infer(["a", "b"], levels=7)[0] == Category(7)
    assert infer([("a",), ("b",)], levels=7)[0] == Tags(7)


# --- numbers and booleans -------------------------------------------------------------------------------------


def test_a_declared_range_is_the_scale() -> None:
    encoder = fit_encoder("price", Number(10, 30), [15, None])
    assert encoder.encode([10, 15, 30, 40, -5, None, True]).tolist() == [
        [0, 0], [0.25, 0], [1, 0], [1, 0], [0, 0], [0.5, 1], [0, 0],
    ]  # fmt: skip
    assert encoder.labels == ("price", "price missing")
    assert encoder.settled
    assert "10 to 30" in encoder.describe()


def test_other_numbers_are_standardised_and_clipped() -> None:
    values = [1.0, 2.0, 3.0, 6.0]
    encoder = fit_encoder("price", Number(), values)
    assert encoder.labels == ("price",)
    found = encoder.encode([*values, 1e40, -1e40, None])[:, 0]
    mean, std = np.mean(values), np.std(values)
    np.testing.assert_allclose(found[:4], (np.array(values) - mean) / (2 * std))
    assert found[4:].tolist() == [1.5, -1.5, 0.0]


def test_the_running_scale_is_welfords_and_freezes_after_1000_values() -> None:
    numbers = np.random.default_rng(3).normal(5, 2, 1_200)
    encoder = fit_encoder("x", Number(), numbers[:400].tolist())
    for number in numbers[400:].tolist():
        encoder.observe([number, None])
    assert encoder.settled
    seen = numbers[:1_000]
    expected = np.clip((numbers[:5] - seen.mean()) / (2 * seen.std()), -1.5, 1.5)
    np.testing.assert_allclose(encoder.encode(numbers[:5].tolist())[:, 0], expected, rtol=1e-12)
    assert "frozen" in encoder.describe()


def test_all_values_of_a_table_count() -> None:
    numbers = np.arange(5_000.0)
    encoder = fit_encoder("x", Number(), numbers.tolist())
    assert encoder.encode([numbers.mean()]).tolist() == [[0.0]]
    assert encoder.settled


@pytest.mark.parametrize("values", [[3.3] * 7, [1e45 + 1] * 3, []])
def test_numbers_without_a_spread_are_zero(values: list[float]) -> None:
    assert fit_encoder("x", Number(), values).encode([3.3, 7.0]).tolist() == [[0.0], [0.0]]


def test_a_wrong_value_in_observe_changes_nothing() -> None:
    encoder = fit_encoder("x", Number(), [1.0, 2.0])
    before = saved(encoder)
    with pytest.raises(DataError, match=r"column 'x': expected a number.*got 'a'"):
        encoder.observe([3.0, "a"])
    assert saved(encoder) == before


def test_booleans() -> None:
    encoder = fit_encoder("new", Boolean(), [True, None])
    assert encoder.encode([True, False, None, 1, 0.0]).tolist() == [[1], [0], [0.5], [1], [0]]
    assert encoder.labels == ("new",)


# --- categories and tags --------------------------------------------------------------------------------------


def test_the_most_frequent_levels_have_columns() -> None:
    encoder = fit_encoder("colour", Category(2), ["b", "c", "a", "c", None])
    assert encoder.labels == ("colour=c", "colour=a", "colour=other", "colour missing")
    assert encoder.levels == ("c", "a")
    assert encoder.encode(["c", "a", "b", "new", None]).tolist() == [
        [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1],
    ]  # fmt: skip


def test_levels_are_compared_by_their_text() -> None:
    encoder = fit_encoder("code", Category(), [1, 1.0, "1", 2])
    assert encoder.levels == ("1", "2")
    assert encoder.encode(["2", 2.0, 2]).tolist() == [[0, 1, 0]] * 3


def test_a_missing_level_without_a_column_is_zeros() -> None:
    assert fit_encoder("x", Category(), ["a"]).encode([None]).tolist() == [[0, 0]]


def test_a_level_called_other_is_not_the_column_for_all_others() -> None:
    assert fit_encoder("x", Category(), ["other"]).labels == ("x=other", "x=(other)")
    assert fit_encoder("x", Tags(), [("other",)]).labels == ("x=other", "x=(other)")


def test_long_levels_are_compared_whole_and_shown_cut() -> None:
    one, other = "x" * 500 + "1", "x" * 500 + "2"
    encoder = fit_encoder("x", Category(), [one, other])
    assert encoder.encode([one, other]).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert all(len(label) < 50 for label in encoder.labels)


def test_listed_levels_keep_their_order() -> None:
    encoder = fit_encoder("device", Category(["tablet", "mobile"]), [])
    assert encoder.encode(["mobile", "tablet", "tv"]).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


def test_free_columns_take_the_levels_that_come() -> None:
    encoder = fit_encoder("device", Category(), ["mobile"], reserve=2)
    assert encoder.labels == ("device=mobile", "device=(free) 2", "device=(free) 3", "device=other")
    assert encoder.encode(["tv"]).tolist() == [[0, 0, 0, 1]]
    assert not encoder.settled
    encoder.observe(["tv", None, "mobile", "car", "watch"])
    assert encoder.settled
    assert encoder.labels == ("device=mobile", "device=tv", "device=car", "device=other")
    assert encoder.encode(["tv", "watch", "mobile"]).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert fit_encoder("device", Category(2), ["a"], reserve=8).width == 3


def test_tags_have_unit_length() -> None:
    encoder = fit_encoder("tags", Tags(2), [("red", "new", "red"), ("red", "old"), ("new",), None])
    assert encoder.labels == ("tags=new", "tags=red", "tags=other")
    half = 1 / math.sqrt(2)
    expected: list[list[float]] = [[half, half, 0], [0, half, half], [0, 0, half], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    rows: list[Any] = [("red", "new"), ("red", "x"), ("x", "y"), ("red", "red"), (), None]
    np.testing.assert_allclose(encoder.encode(rows), expected)


def test_text_is_split_where_a_separator_is_declared() -> None:
    encoder = fit_encoder("tags", Tags(separator="|"), ["a| b |", "b", ""])
    assert encoder.levels == ("b", "a")
    assert encoder.encode(["b|a", ("a",), "  "]).tolist() == [[1 / math.sqrt(2)] * 2 + [0], [0, 1, 0], [0, 0, 0]]


def test_lists_of_numbers_can_be_tags() -> None:
    assert fit_encoder("codes", Tags(), [(3.0, 17.0), (3.0,)]).levels == ("3", "17")


# --- dates ----------------------------------------------------------------------------------------------------


def test_dates_are_days_on_a_running_scale() -> None:
    encoder = fit_encoder("added", Date(), [*DAYS, None])
    assert encoder.labels == ("added", "added missing")
    expected = (np.arange(5) - 2) / (2 * math.sqrt(2))
    np.testing.assert_allclose(encoder.encode(DAYS), np.column_stack([expected, np.zeros(5)]), atol=1e-12)
    assert encoder.encode([None, "2024-01-03"]).tolist() == [[0, 1], [0, 0]]
    assert "2024-01-03" in encoder.describe()


def test_datetimes_have_a_weekday_and_those_with_a_time_an_hour() -> None:
    days = fit_encoder("seen", Date(), [datetime(2024, 1, 1), datetime(2024, 1, 8)])  # Mondays
    assert days.labels == ("seen", "seen weekday sin", "seen weekday cos")
    np.testing.assert_allclose(days.encode([datetime(2024, 1, 15)])[0, 1:], [0, 1], atol=1e-12)
    tuesday = [math.sin(2 * math.pi / 7), math.cos(2 * math.pi / 7)]
    np.testing.assert_allclose(days.encode([datetime(2024, 1, 16)])[0, 1:], tuesday, atol=1e-12)
    hours = fit_encoder("seen", Date(), [datetime(2024, 1, 1, 6), date(2024, 1, 2)])
    assert hours.labels[-2:] == ("seen hour sin", "seen hour cos")
    np.testing.assert_allclose(hours.encode([datetime(2024, 1, 1, 6)])[0, -2:], [1, 0], atol=1e-12)
    assert hours.encode([date(2024, 1, 1)])[0, -2:].tolist() == [0, 0]


def test_time_zones_are_utc() -> None:
    east = timezone(timedelta(hours=6))
    encoder = fit_encoder("seen", Date(), [datetime(2024, 1, 1, 6), datetime(2024, 1, 3, 6)])
    same = [datetime(2024, 1, 2, 6), datetime(2024, 1, 2, 6, tzinfo=UTC), datetime(2024, 1, 2, 12, tzinfo=east)]
    rows = encoder.encode([*same, "2024-01-02T12:00+06:00", "2024-01-02 06:00Z"])
    assert (rows == rows[0]).all()


def test_texts_that_count_as_missing() -> None:
    encoder = fit_encoder("added", Date(("unknown",)), ["unknown", "2024-01-01", "2024-01-03"])
    assert encoder.encode(["unknown", None]).tolist() == [[0, 1], [0, 1]]


# --- vectors --------------------------------------------------------------------------------------------------


def test_vectors_are_divided_by_their_usual_length() -> None:
    encoder = fit_encoder("embedding", Vector(), [(3.0, 4.0), None, (0.0, 5.0)])
    assert encoder.labels == ("embedding[0]", "embedding[1]")
    assert encoder.encode([(3.0, 4.0), None, (1e30, -1e30)]).tolist() == [[0.6, 0.8], [0, 0], [10, -10]]
    assert fit_encoder("e", Vector(2), []).encode([(1.0, 2.0)]).tolist() == [[1, 2]]
    assert fit_encoder("e", Vector(2), [(0.0, 0.0)]).encode([(0.0, 1.0)]).tolist() == [[0, 1]]
    assert fit_encoder("e", Vector(separator="|"), ["[3|4]"]).encode(["3| 4 "]).tolist() == [[0.6, 0.8]]


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        (Vector(), [None], "declare it, as in Vector(dim=8)"),
        (Vector(), [(1.0, 2.0), (1.0,)], "row 1: expected a vector of 2 numbers, got 1"),
        (Vector(3), [(1.0,)], "row 0: expected a vector of 3 numbers, got 1"),
        (Vector(), [()], "1 to 4096 numbers, got 0"),
        (Vector(), [("a",)], "row 0: expected a vector"),
        (Vector(), ["1|2"], "Vector(separator='|')"),
        (Vector(separator="|"), ["1|x"], "numbers between '|'"),
        (Vector(separator="|"), ["1|nan"], "finite numbers"),
        (Number(), [1, "17 kg"], "row 1: expected a number"),
        (Number(), [date(2024, 1, 1)], "expected a number"),
        (Number(0, 1), [1e60], "expected a number"),
        (Boolean(), ["true"], "expected true or false"),
        (Boolean(), [2], "expected true or false"),
        (Category(), [("a",)], "declare the column tags or a vector"),
        (Category(), ["x" * 10_001], "at most 10,000 characters, got 10,001"),
        (Tags(), ["a|b"], "Tags(separator='|')"),
        (Tags(), [3], "a list of tags"),
        (Date(), [17], "ISO text"),
        (Date(), ["31.5.2024"], "ISO text"),
        (Date(), ["0001-01-01T00:00+05:00"], "years 1 to 9999"),
        (Ignore(), [1], "ignored column"),
    ],
)
def test_values_that_do_not_fit_their_kind_are_refused(kind: Kind, values: list[Any], said: str) -> None:
    with pytest.raises(NeuclustError, match=r"^column 'x'") as caught:
        fit_encoder("x", kind, values)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


FITTED: list[tuple[Kind, list[Any], Any]] = [
    (Number(), [1.0, 2.0], "three"),
    (Boolean(), [True], "yes"),
    (Category(), ["a"], ("b",)),
    (Date(), DAYS, 3.5),
    (Tags(), [("a",)], "a"),
    (Vector(), [(1.0, 2.0)], (1.0, 2.0, 3.0)),
]


@pytest.mark.parametrize(("kind", "values", "bad"), FITTED)
def test_a_wrong_type_is_refused_when_encoded(kind: Kind, values: list[Any], bad: Any) -> None:
    encoder = fit_encoder("x", kind, values)
    with pytest.raises(DataError, match=r"^column 'x', row 1: expected"):
        encoder.encode([values[0], bad])
    with pytest.raises(DataError, match=r"^column 'x': expected"):
        encoder.write(bad, np.zeros(encoder.width))


# --- all encoders ---------------------------------------------------------------------------------------------

CELLS = {
    Number(): st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats(-1e50, 1e50),
    Number(-1, 2): st.none() | st.floats(-1e50, 1e50),
    Boolean(): st.sampled_from([None, True, False, 0, 1.0]),
    Category(3): st.none() | st.text(max_size=2) | st.integers() | st.booleans() | st.dates(),
    Date(("?",)): st.none() | st.dates() | st.datetimes() | st.just("?") | st.dates().map(str),
    Tags(3): st.none() | st.lists(st.text(max_size=1), max_size=3).map(tuple),
    Vector(2): st.none() | st.tuples(st.floats(-1e50, 1e50), st.floats(-1e50, 1e50)),
}


@pytest.mark.parametrize("kind", CELLS, ids=repr)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_encoders_keep_their_contract(kind: Any, data: st.DataObject) -> None:
    values = data.draw(st.lists(CELLS[kind], max_size=5))
    later = data.draw(st.lists(CELLS[kind], max_size=5))
    encoder = fit_encoder("x", kind, values)
    encoder.observe(later[:2])
    rows = encoder.encode(later)
    assert rows.shape == (len(later), encoder.width) == (len(later), len(encoder.labels))
    assert rows.dtype == np.float64
    assert (np.abs(rows) <= 10).all()
    assert len(set(encoder.labels)) == encoder.width
    one_by_one = np.zeros_like(rows)
    for value, out in zip(later, one_by_one, strict=True):
        encoder.write(value, out)
    assert (one_by_one == rows).all()
    again = encoder_from_json(saved(encoder))
    assert (again.encode(later) == rows).all()
    assert (again.labels, again.levels, again.kind) == (encoder.labels, encoder.levels, encoder.kind)
    again.observe(later)
    encoder.observe(later)
    assert saved(again) == saved(encoder)


DAMAGES: list[tuple[Kind, Sequence[Any], dict[str, Any]]] = [
    (Number(), [1.0], {"scale": None}),
    (Number(), [1.0], {"scale": {"count": -1, "mean": 0.0, "m2": 0.0}}),
    (Number(), [1.0], {"scale": {"count": 1, "mean": float("nan"), "m2": 0.0}}),
    (Number(), [1.0], {"missing": 1}),
    (Number(), [1.0], {"kind": {"kind": "ignore"}}),
    (Number(), [1.0], {"name": None}),
    (Category(2), ["a"], {"levels": ["a", "a"]}),
    (Category(2), ["a"], {"levels": [1]}),
    (Category(2), ["a"], {"slots": 3}),
    (Category(2), ["a"], {"slots": 0}),
    (Tags(2), [("a",)], {"levels": ["a", "b", "c"]}),
    (Date(), DAYS, {"hour": None}),
    (Vector(), [(1.0,)], {"width": 0}),
    (Vector(), [(1.0,)], {"length": 0.0}),
]


@pytest.mark.parametrize(("kind", "values", "damage"), DAMAGES)
def test_damaged_encoders_are_refused(kind: Kind, values: Sequence[Any], damage: dict[str, Any]) -> None:
    with pytest.raises(StateError, match="saved features"):
        encoder_from_json(saved(fit_encoder("x", kind, values)) | damage)


# --- transformers ---------------------------------------------------------------------------------------------


def test_a_transformer_reads_numbers_as_a_matrix() -> None:
    scaler = StandardScaler()
    encoder = fit_encoder("price", Transformer(scaler), [1, 3])
    assert encoder.encode([1, 3, 2]).tolist() == [[-1], [1], [0]]
    assert not hasattr(scaler, "mean_")  # the user's own stays as it is
    assert encoder.encode([]).shape == (0, 1)
    assert "StandardScaler" in encoder.describe()


@pytest.mark.parametrize(
    ("transformer", "values", "width"),
    [
        (OneHotEncoder(handle_unknown="ignore"), ["a", "b", "a"], 2),
        (CountVectorizer(), ["red shoe", "blue shoe", None], 3),
        (TfidfVectorizer(), [("red", "new"), ("blue",)], 3),
        (make_pipeline(TfidfVectorizer(), TruncatedSVD(2, random_state=0)), ["red shoe", "blue shoe", "hat"], 2),
        (PCA(1), [(1.0, 2.0), (2.0, 1.0), (0.0, 0.0)], 1),
        (MultiLabelBinarizer(), [("a",), ("b", "a")], 2),
        (KBinsDiscretizer(3), list(range(12)), 3),
        (FunctionTransformer(lambda rows: [[row[0].year] for row in rows]), DAYS, 1),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_transformers_of_many_kinds(transformer: Any, values: list[Any], width: int) -> None:
    encoder = fit_encoder("x", Transformer(transformer), values)
    rows = encoder.encode(values)
    assert rows.shape == (len(values), width)
    assert len(encoder.labels) == width
    out = np.zeros(width)
    encoder.write(values[0], out)
    np.testing.assert_allclose(out, rows[0])


def test_a_transformer_is_given_again_and_known_by_its_outputs() -> None:
    encoder = fit_encoder("price", Transformer(StandardScaler()), [1.0, 3.0, 7.0])
    assert isinstance(encoder, TransformerEncoder)
    again = encoder_from_json(saved(encoder), transformer=encoder.transformer)
    assert (again.encode([5.0]) == encoder.encode([5.0])).all()
    other = StandardScaler().fit([[1.0], [2.0]])
    for wrong, said in (
        (None, "got none; give it again"),
        (PCA(1), "expected the fitted StandardScaler it was saved with, got a PCA"),
        (StandardScaler(), "expected the fitted StandardScaler"),
        (other, "other outputs"),
    ):
        with pytest.raises(StateError, match=said):
            encoder_from_json(saved(encoder), transformer=wrong)
    with pytest.raises(StateError, match="probes"):
        encoder_from_json(saved(encoder) | {"probes": []}, transformer=encoder.transformer)
    with pytest.raises(StateError, match="StandardScaler"):
        encoder_from_json(saved(encoder) | {"outputs": [["x"]]}, transformer=encoder.transformer)


@pytest.mark.parametrize(
    ("transformer", "values", "said"),
    [
        (StandardScaler(), ["a", "b"], "StandardScaler cannot be fitted on it"),
        (StandardScaler(), [], "expected values to fit"),
        (FunctionTransformer(lambda rows: np.zeros((len(rows), 513))), [1, 2], "1 to 512 columns"),
        (FunctionTransformer(lambda rows: np.zeros((1, 1))), [1, 2], "expected 2 rows"),
        (FunctionTransformer(lambda rows: rows * np.inf), [1, 2], "NaN, infinity"),
        (FunctionTransformer(lambda rows: [["x"] for _ in rows]), [1, 2], "refuses"),
    ],
)
def test_transformers_that_cannot_work_are_refused(transformer: Any, values: list[Any], said: str) -> None:
    with pytest.raises(DataError, match=r"^column 'x': ") as caught:
        fit_encoder("x", Transformer(transformer), values)
    assert said in str(caught.value)


def test_what_a_transformer_refuses_later_is_said() -> None:
    encoder = fit_encoder("x", Transformer(OneHotEncoder()), ["a", "b"])
    with pytest.raises(DataError, match=r"^column 'x': OneHotEncoder refuses \['c'\]"):
        encoder.encode(["c"])


def test_a_missing_value_a_transformer_makes_nothing_of_is_zeros() -> None:
    encoder = fit_encoder("x", Transformer(StandardScaler()), [1.0, None, 3.0])
    assert encoder.encode([None, 3.0]).tolist() == [[0.0], [1.0]]
    out = np.full(1, 7.0)
    encoder.write(None, out)
    assert out.tolist() == [0.0]
    with pytest.raises(DataError, match="missing ones alone"):
        fit_encoder("x", Transformer(StandardScaler()), [None, None])


def test_texts_of_several_tags_are_told_by_their_separator() -> None:
    texts = [f"{a}|{b}" for a in ("red", "blue", "green") for b in ("wool", "silk", "linen")]
    kind, reason = infer(texts)
    assert (kind, reason) == (Tags(separator="|"), "texts separated by |")
    encoder = fit_encoder("tags", kind, texts)
    assert encoder.levels is not None
    assert set(encoder.levels) == {"red", "blue", "green", "wool", "silk", "linen"}
    assert infer([text.replace("|", "; ") for text in texts])[0] == Tags(separator=";")
    assert isinstance(infer(["a|b", "a|b", "c", "d"])[0], Category)  # most are single words
    assert isinstance(infer([f"AC|{n}" for n in range(20)])[0], Category)  # parts that never come again
