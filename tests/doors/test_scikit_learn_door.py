"""Pipelines of the real scikit-learn as features of a whole table, and our encoders in pipelines of scikit-learn."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from neuclust import Features, Number, Recommender, Transformer
from neuclust.doors.scikit_learn import TableEncoder
from neuclust.errors import ConfigError, DataError, StateError
from neuclust.randomness import stream
from neuclust.recommender.encoders.side import columns_read

WORDS = ("red wool", "blue wool", "red silk", "green cotton", "blue cotton")


def items(count: int = 30) -> list[dict[str, Any]]:
    rng = stream(1, "pipeline items")
    return [
        {"sku": f"s{at}", "price": None if at % 7 == 0 else float(rng.gamma(2.0, 10.0)), "kind": "abc"[at % 3],
         "title": WORDS[at % 5], "since": date(2024, 1, 1 + at % 28)}
        for at in range(count)
    ]  # fmt: skip


def users(count: int = 12) -> list[dict[str, Any]]:
    return [{"user": f"u{at}", "age": 20.0 + at, "plan": "gold" if at % 3 else None} for at in range(count)]


def item_columns() -> ColumnTransformer:
    """What users of scikit-learn write: every column by its name, missing values imputed, texts as components."""
    return ColumnTransformer([
        ("price", make_pipeline(SimpleImputer(), StandardScaler()), ["price"]),
        ("kind", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
        ("title", make_pipeline(TfidfVectorizer(), TruncatedSVD(2, random_state=0)), "title"),
    ])  # fmt: skip


def user_pipeline() -> Any:
    plan = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore"))
    return make_pipeline(ColumnTransformer([("age", StandardScaler(), ["age"]), ("plan", plan, ["plan"])]))


def shop(**features: Any) -> Recommender:
    made = Features(**({"items": item_columns(), "users": user_pipeline()} | features))
    return Recommender(
        items(), "sku", users=users(), user_id="user", slate_size=3, policy="linucb", features=made, seed=4
    )


def play(made: Recommender, first: int = 0, count: int = 15) -> list[list[Any]]:
    """Slates of a few requests with clicks on one kind; users that are known, described by the request, and unknown."""
    rng, shown = stream(first, "pipeline clicks"), []
    for at in range(first, first + count):
        who: Any = (f"u{at % 12}", {"age": 33.0, "plan": "tin"}, None)[at % 3]
        choice = made.recommend(who, context={"hour": at % 24})
        made.feedback(
            choice.id, {item: float(rng.random() < 0.5) for item in choice.items if int(str(item)[1:]) % 3 == 1}
        )
        shown.append(choice.items)
    return shown


def encoded(made: Recommender) -> Any:
    """What models read of the items, (n, width)."""
    assert made.schema is not None
    return made.schema.items.encode(made.stock.item_table())


def dense(found: Any) -> Any:
    return found.toarray() if hasattr(found, "toarray") else found


def test_a_column_transformer_describes_items_and_a_pipeline_users() -> None:
    """Fails when what models read of the tables is not what the transformers make of them."""
    made = shop()
    play(made, count=1)
    assert made.schema is not None
    frame = pd.DataFrame(items()).drop(columns="sku")
    np.testing.assert_allclose(encoded(made), dense(item_columns().fit_transform(frame)), atol=1e-12)
    known = user_pipeline().fit(pd.DataFrame(users()).drop(columns="user"))
    row = made.schema.user.encode_row({"age": 25.0, "plan": "gold"})[0]
    wanted = dense(known.transform(pd.DataFrame({"age": [25.0], "plan": ["gold"]})))[0]
    np.testing.assert_allclose(row[made.schema.user.slices["*"]], wanted)
    table = {(each.table, each.column): each for each in made.features}
    assert (table["items", "*"].kind, table["items", "*"].width) == ("transformer", 6)
    assert table["items", "price"].reason == "read by *"
    assert table["context", "hour"].kind == "number"
    assert any("price__price" in label for label in made.schema.items.labels)


def test_an_unknown_user_and_a_new_item_are_encoded() -> None:
    made = shop()
    play(made)
    changes = made.add_items([{"sku": "s90", "price": 3.0, "kind": "new", "title": "wool", "since": date(2025, 1, 1)}])
    assert changes.added == ["s90"]
    assert made.recommend(eligible=["s90"]).items == ["s90"]
    with pytest.raises(DataError, match="items: ColumnTransformer refuses"):
        made.add_items([{"sku": "s91", "price": 3.0, "kind": "a", "title": 7.5}])  # a number for a title


def test_a_save_asks_for_the_fitted_transformers_and_goes_on(tmp_path: Path) -> None:
    """Fails when a pickle is written, another transformer is taken, or a loaded shop chooses otherwise."""
    made = shop()
    play(made)
    made.save(tmp_path / "shop")
    fitted = made.transformers
    assert sorted(fitted) == ["items.*", "users.*"]
    with pytest.raises(StateError, match=r"ColumnTransformer.*transformers="):
        Recommender.load(tmp_path / "shop")
    other = {**fitted, "items.*": item_columns().fit(pd.DataFrame(items(10)).drop(columns="sku"))}
    with pytest.raises(StateError, match=r"expected the fitted ColumnTransformer"):
        Recommender.load(tmp_path / "shop", transformers=other)
    back = Recommender.load(tmp_path / "shop", transformers=fitted)
    assert play(back, 100) == play(made, 100)


def test_a_refit_fits_a_fresh_copy_and_a_fitted_one_stays(tmp_path: Path) -> None:
    frame = pd.DataFrame(items(300)).drop(columns="sku")
    pretrained = item_columns().fit(frame)
    made = Recommender(
        items(), "sku", users=users(), user_id="user", slate_size=3, policy="linucb", log=tmp_path / "log.jsonl",
        features=Features(items=Transformer(pretrained, fitted=True), users=user_pipeline()),
    )  # fmt: skip
    play(made)
    assert made.transformers["items.*"] is pretrained
    wanted = dense(pretrained.transform(pd.DataFrame(items()).drop(columns="sku")))
    np.testing.assert_allclose(encoded(made), wanted, atol=1e-12)
    before = made.transformers["users.*"]
    made.refit()
    assert made.transformers["items.*"] is pretrained
    assert made.transformers["users.*"] is not before
    play(made, 200, 5)


def test_columns_that_are_named_are_read_by_themselves() -> None:
    scaled = ColumnTransformer([("kind", OneHotEncoder(), ["kind"])])
    made = shop(items={"*": scaled, "price": Number(low=0, high=100), "title": "ignore"}, users=None)
    play(made, count=1)
    assert made.schema is not None
    assert made.schema.items.names == ("*", "price")
    assert columns_read(made.schema.items) == ("kind", "since", "price")
    assert set(made.schema.items.ignored) == {"title"}


@pytest.mark.parametrize(
    ("features", "error", "said"),
    [
        ({"context": StandardScaler()}, ConfigError, "of items or of users"),
        ({"columns": {"*": StandardScaler()}}, ConfigError, "of items or of users"),
        ({"items": {"*": "number"}}, ConfigError, "expected a transformer for all columns"),
        ({"items": StandardScaler}, ConfigError, "expected a dictionary"),
        ({"items": StandardScaler()}, DataError, "items: StandardScaler cannot be fitted on price, kind"),
        ({"items": Transformer(item_columns(), fitted=True)}, DataError, "not fitted|refuses"),
        ({"items": FunctionTransformer(lambda frame: np.full((len(frame), 1), np.inf))}, DataError, "infinity"),
        (
            {"items": Transformer(StandardScaler().fit(pd.DataFrame({"weight": [1.0]})), fitted=True)},
            DataError,
            "the column 'weight', which the transformer was fitted on",
        ),
    ],
)
def test_transformers_of_tables_that_cannot_work_are_refused(
    features: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        shop(**features).recommend()


def test_tables_that_are_transformed_as_a_whole_are_crossed_by_their_star() -> None:
    made = shop(
        cross=[("users.*", "items.*"), ("users.*", "items.since")], items={"*": item_columns(), "since": "date"}
    )
    play(made, count=1)
    assert made.schema is not None
    widths = [side.slices["*"].stop - side.slices["*"].start for side in (made.schema.user, made.schema.items)]
    assert made.schema.design.describe()[1] == f"* x *: {widths[0] * widths[1]} columns"


def test_a_fitted_transformer_of_one_column_is_used_as_it_is() -> None:
    scaler = StandardScaler().fit([[0.0], [100.0]])
    made = shop(items={"price": Transformer(scaler, fitted=True), "since": "ignore"}, users=None)
    play(made, count=1)
    assert made.transformers["price"] is scaler


# --- our encoders in pipelines of scikit-learn ------------------------------------------------------------------------


def test_every_check_of_scikit_learn_passes() -> None:
    results = check_estimator(TableEncoder(), on_skip=None)
    assert len(results) > 30
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    assert set(skipped) <= {"check_array_api_input"}  # needs a variable of the environment


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_are_encoded_as_a_recommender_does(frame: Any) -> None:
    table = frame(items())
    encoder = TableEncoder(kinds={"price": Number(low=0, high=100), "sku": "ignore"}).fit(table)
    found = encoder.transform(table)
    made = shop(items={"price": Number(low=0, high=100)}, users=None)
    play(made, count=1)
    np.testing.assert_array_equal(found, encoded(made))
    names = encoder.get_feature_names_out().tolist()
    assert len(names) == found.shape[1]
    assert {"kind=a", "kind=b", "kind=c"} <= set(names)
    assert encoder.set_output(transform="pandas").transform(table).columns.tolist() == names


def test_it_works_in_a_pipeline_and_beside_other_transformers() -> None:
    table = pd.DataFrame(items(60))
    clicked = (table["kind"] == "b").astype(int)
    model = make_pipeline(TableEncoder(kinds={"sku": "ignore"}), LogisticRegression(max_iter=1000)).fit(table, clicked)
    assert model.score(table, clicked) == 1.0
    beside = ColumnTransformer([("ours", TableEncoder(), ["kind", "price"]), ("theirs", StandardScaler(), ["price"])])
    assert beside.fit(table.dropna()).get_feature_names_out().tolist()[:3] == [
        "ours__kind=a",
        "ours__kind=b",
        "ours__kind=c",
    ]


def test_columns_are_told_by_their_names() -> None:
    table = pd.DataFrame(items())
    encoder = TableEncoder().fit(table)
    with pytest.raises(ConfigError, match="did you mean price"):
        TableEncoder(kinds={"prise": "number"}).fit(table)
    with pytest.raises(ValueError, match="feature names"):
        encoder.transform(table.rename(columns={"price": "cost"}))
    with pytest.raises(DataError, match="X: column 'price'"):
        encoder.transform(table.assign(price="dear"))
