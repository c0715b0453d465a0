"""Numbers among texts: marks of missing values, columns that a few values make text, and what to write instead."""

from __future__ import annotations

import re
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from neuclust import Recommender
from neuclust.errors import DataError, LearningWarning
from neuclust.recommender.encoders.scales import number_of
from neuclust.recommender.tables.columns import Category, Ignore, Number, infer
from neuclust.recommender.tables.csv_tables import typed
from neuclust.recommender.tables.features import Features
from neuclust.recommender.tables.texts import MISSING

PRICES: list[Any] = [str(price) for price in range(999)]


@pytest.mark.parametrize("mark", [*sorted(MISSING), " NA "])
def test_a_mark_of_a_missing_value_beside_numbers_is_none(mark: str) -> None:
    assert typed(["1", mark, "", "3"]) == pytest.approx([1, None, None, 3], nan_ok=True) or mark == "nan"
    assert typed([mark, "true", "false"]) == [None, True, False]
    assert typed(["2024-05-31", mark]) == [date(2024, 5, 31), None]
    assert typed(["red", mark, "blue"]) == ["red", mark, "blue"]
    assert typed(["1", mark, "007"]) == ["1", mark, "007"]  # texts of digits are texts


def test_a_column_of_marks_alone_stays_text() -> None:
    assert typed(["NA", "NA", ""]) == ["NA", "NA", None]
    assert typed(["2024-02-31", "NA"]) == ["2024-02-31", "NA"]
    assert typed(["1.5", "-", "-2"]) == [1.5, None, -2.0]


def test_a_price_column_with_one_null_is_numbers(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("sku,price\n" + "".join(f"{n},{n / 4 if n != 5 else 'NULL'}\n" for n in range(50)), "utf-8")
    shop = Recommender(path, "sku", policy="popular")
    assert [(row.column, row.kind, row.reason) for row in shop.features] == [("price", "number", "numbers")]


def test_the_reason_names_the_value_that_makes_a_column_text() -> None:
    said = "999 of 1,000 are numbers, row 5 holds 'abc': make it empty or state Number()"
    assert infer([*PRICES[:5], "abc", *PRICES[5:]]) == (Ignore(), said)
    few = [*[str(n % 9) for n in range(19)], None, "abc"]
    found = "19 of 20 are numbers, row 20 holds 'abc': make it empty or state Number()"
    assert infer(few) == (Category(), f"10 distinct values; {found}")
    assert infer([1.5] * 19 + ["abc"])[1] == (
        "2 distinct values, numbers and text mixed; 19 of 20 are numbers, row 19 holds 'abc': "
        "make it empty or state Number()"
    )


@pytest.mark.parametrize("values", [["abc"] * 2 + PRICES[:17], PRICES, ["0" + each for each in PRICES], ["a", "b"]])
def test_other_columns_of_text_are_told_as_before(values: list[Any]) -> None:
    kind, reason = infer(values)
    assert reason == ("unique strings" if isinstance(kind, Ignore) else f"{len(set(values))} distinct values")


def shop_of(prices: list[Any], **options: Any) -> Recommender:
    items = [{"sku": at, "price": price, "x": at % 3} for at, price in enumerate(prices)]
    return Recommender(items, "sku", policy="popular", **options)


def test_it_is_told_once_when_the_features_are_settled(tmp_path: Path) -> None:
    shop = shop_of([*PRICES[:50], "abc"], log=tmp_path / "log")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "50 of 51 are numbers, row 50 holds 'abc': make it empty or state Number()" in str(shop.features)
        shop.warm_up()
    with pytest.warns(LearningWarning, match="items: column 'price' is not read as numbers: 50 of 51") as told:
        choice = shop.recommend()
    assert (len(told), told[0].filename) == (1, __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shop.feedback(choice.id, {})
        shop.recommend()
    with pytest.warns(LearningWarning, match="50 of 51"):
        shop_of([*PRICES[:50], "abc"]).fit_log([{"decision": 1, "item": 1, "reward": 1}])
    with pytest.warns(LearningWarning, match="50 of 51"):
        shop.refit()


@pytest.mark.parametrize(
    ("cell", "advice"),
    [("4,50 €", "write 4.50"), ("12%", "write 12"), ("$ 3.5", "write 3.5"), ("1,234", "make it empty"),
     ("abc", "make it empty, or declare the column a category"), ("inf", "make it empty"),
     ("1_000", "make it empty")],
)  # fmt: skip
def test_a_declared_number_reads_texts_and_names_the_first_that_is_none(cell: str, advice: str) -> None:
    features = Features(items={"price": "number"})
    said = f"items: column 'price', row 2: expected a number, got {cell!r}; {advice}"
    with pytest.raises(DataError, match=re.escape(said)):
        shop_of(["1", "2.5", cell, "x"], features=features)


def test_texts_of_numbers_are_learned_as_numbers() -> None:
    features = Features(items={"price": Number()})
    texts, numbers = (
        shop_of(list(prices), features=features) for prices in (["1", " 2.5", "NA", "4e1"], [1, 2.5, None, 40])
    )
    texts.recommend()
    numbers.recommend()
    codes = texts.stock.catalogue.all_codes()
    assert (texts.stock.catalogue.profiles(codes) == numbers.stock.catalogue.profiles(codes)).all()
    assert [number_of(text, "price") for text in ("007", "-.5", "NaN", "\\N")] == [7, -0.5, None, None]
    assert texts.add_items([{"sku": 9, "price": "3"}]).added == [9]
