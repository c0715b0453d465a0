"""What a newcomer meets first: files of several kinds, single rows, and sentences that name the option to change."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from neuclust import Category, Features, Recommender, Vector
from neuclust.errors import ConfigError, DataError, NeuclustError
from neuclust.recommender.names import MEANT
from neuclust.registry import policies

ITEMS = [{"sku": f"a{n}", "price": float(n), "kind": "xy"[n % 2], "tags": ["p", "q"][: n % 3]} for n in range(6)]


def shop_of(items: Any = ITEMS, **options: Any) -> Recommender:
    given: dict[str, Any] = {"policy": "popular", "slate_size": 3, "clock": lambda: 0.0}
    return Recommender(items, "sku", **(given | options))


def said_by(call: Any, kind: type[NeuclustError] = DataError) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# --- sentences ------------------------------------------------------------------------------------------------


def test_a_sum_outside_the_range_names_the_option() -> None:
    shop = shop_of(combine="sum")
    choice = shop.recommend()
    shop.feedback(choice, {choice.items[0]: 1}, partial=True)
    assert "declare a wider range (reward_range)" in said_by(lambda: shop.feedback(choice, {choice.items[0]: 1}))


@pytest.mark.parametrize(
    ("k", "advice"),
    [(0, "leave it out for the slate size"), ("2", "leave it out"), (True, "leave it out"),
     (4, "make the recommender with a larger slate_size")],
)  # fmt: skip
def test_more_slots_are_advised_only_where_more_were_asked_for(k: Any, advice: str) -> None:
    assert f"from 1 to 3, the slate size, got {k!r}; {advice}" in said_by(lambda: shop_of().recommend(k=k))


def test_at_most_is_named_with_the_columns_there_are() -> None:
    said = said_by(lambda: shop_of().recommend(at_most={"category": 1}))
    assert said == "at_most: expected a column of the items, got 'category'; the columns are price, kind, tags"
    assert "did you mean kind?" in said_by(lambda: shop_of().recommend(at_most={"kinds": 1}))
    assert said_by(lambda: shop_of().recommend(at_most={"tags": 1})).startswith("at_most: expected a column with one")
    assert said_by(lambda: shop_of([{"sku": 1}]).recommend(at_most={"x": 1})).endswith("there are no columns")


def test_an_empty_id_and_types_are_named_in_words() -> None:
    assert "got an empty text; give every row its own id" in said_by(lambda: shop_of([{"sku": ""}]))
    assert "got a text of 2,000" in said_by(lambda: shop_of([{"sku": "x" * 2_000}]))
    assert said_by(lambda: shop_of(17)).endswith("got an int")
    assert "got a set" in said_by(lambda: shop_of({1}))


@pytest.mark.parametrize(
    ("options", "said"),
    [({"window": "1h"}, "window: expected a finite number, got '1h'; give seconds, such as 3600"),
     ({"window": 0}, "window: expected a number above 0, got 0; give seconds, such as 3600"),
     ({"learn_after": -1}, "learn_after: expected a number of at least 0, got -1; give seconds, such as 3600"),
     ({"combine": "mean"}, "combine: expected one of max, last, sum, got 'mean'"),
     ({"remember": 0}, "remember: expected a number from 1")],
)  # fmt: skip
def test_options_are_refused_by_their_own_names(options: dict[str, Any], said: str) -> None:
    assert said_by(lambda: shop_of(**options), ConfigError).startswith(said)
    if options.keys() <= {"window", "learn_after"}:
        assert said_by(lambda: shop_of().change(**options), ConfigError) == said


def test_settings_of_a_policy_are_refused_by_their_own_names() -> None:
    said = said_by(lambda: shop_of(policy="linucb", settings={"alpha": -1}), ConfigError)
    assert said == "settings: alpha: expected a number of at least 0, got -1.0"


@pytest.mark.parametrize(
    ("name", "meant"),
    [("random", "uniform"), ("thompson", "lin-ts"), ("greedy", "epsilon-greedy"), ("Thompson Sampling", "lin-ts"),
     ("lincub", "linucb"), ("popularity", "popular")],
)  # fmt: skip
def test_an_unknown_policy_is_answered_by_the_one_that_was_meant(name: str, meant: str) -> None:
    assert f"did you mean {meant}" in said_by(lambda: shop_of(policy=name), ConfigError)


def test_policies_that_are_given_the_truth_are_not_offered() -> None:
    said = said_by(lambda: shop_of(policy="xyzzy"), ConfigError)
    assert said.startswith("policy: no policy 'xyzzy'; expected one of auto, ")
    assert "oracle" not in said
    assert "neuclust-online" not in said  # tracks profiles, which no recommender has
    assert "oracle" not in said_by(lambda: shop_of(policy="oracl"), ConfigError).partition(";")[2]
    assert set(MEANT.values()) <= policies().keys()


def test_a_shop_is_shown_in_one_line() -> None:
    shop = shop_of(users=[{"user": 1}], user_id="user")
    choice, _ = shop.recommend(), shop.recommend()
    assert shop.feedback(choice, {choice.items[0]: 1}).status == "learned"
    assert repr(shop) == "<Recommender popular: 6 items, 1 users, 1 slates learned, 1 open>"


# --- tables ---------------------------------------------------------------------------------------------------


def test_one_row_may_be_a_dictionary_of_its_values() -> None:
    shop = shop_of()
    assert shop.add_items({"sku": 101, "price": 3.5, "kind": None}).added == [101]
    assert shop.stock.catalogue.raw(6) == {"price": 3.5, "kind": None, "tags": None}
    assert "got a str in 'kind'" in said_by(lambda: shop.add_items({"sku": [1, 2], "kind": "x"}))
    assert shop.add_items({"sku": ["b1", "b2"]}).added == ["b1", "b2"]


@pytest.mark.parametrize("name", ["items.jsonl", "items.ndjson", "items.jsonl.gz", "items.tsv", "items.tsv.gz"])
def test_files_of_lines_are_read(tmp_path: Path, name: str) -> None:
    if ".tsv" in name:
        text = "sku\tprice\tnote\n1\t2.5\ta, b\n\n2\tNA\t\n"
    else:
        rows = [{"sku": 1, "price": 2.5, "note": "a, b", "since": {"date": "2026-01-31"}}, {"sku": 2}]
        text = "\n\n".join(map(json.dumps, rows))
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    shop = shop_of(path)
    assert shop.stock.catalogue.ids() == [1, 2]
    assert [shop.stock.catalogue.raw(code)["price"] for code in (0, 1)] == [2.5, None]
    assert shop.stock.catalogue.raw(0)["note"] == "a, b"
    if ".tsv" not in name:
        assert shop.features.rows[-1].kind != "category"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"sku": 1}\n\n{"sku": \n', "a.jsonl: line 3: expected JSON, got other text"),
        ("a.jsonl", "[1]\n", "a.jsonl: line 1: expected an object with the values by column, got [1]"),
        ("a.jsonl", '\n{"sku": {"x": 1}}', "column 'sku', line 2: expected a number"),
        ("a.csv", "sku,x\n1,2\n\n1,3\n", "expected every id once, got 1 again in line 4"),
        ("a.csv", 'sku,x\n1,"a\nb"\n,3\n', "column 'sku', line 4: expected text or a whole number as an id"),
        ("a.csv", 'sku,x\n1,"a\nb"\n2\n', "expected 2 cells per row, as there are headings, got 1 in line 4"),
        ("a.csv", "sku,price\n1,2\n2,4.50 €\n", "column 'price', line 3: expected a number, got '4.50 €'; write 4.50"),
        ("a.tsv", "sku,x\n1,2\n", "expected a CSV file with tabs between its cells"),
        ("a.csv", "sku\tx\n1\t2\n", "expected a CSV file with commas between its cells"),
        ("a.csv", "", "expected the column 'sku' with the ids, got"),
        ("a.jsonl", "", "which has no columns; was it written whole?"),
        ("a.xlsx", "", "save it as CSV, or read it with pandas and give that"),
    ],
)
def test_a_file_is_refused_by_the_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(said)):
        shop_of(path, features=Features(columns={"price": "number"}))


@pytest.mark.parametrize(
    ("kind", "cells", "said"),
    [
        (Vector(separator="|"), ("1|2", "1|2|3"), "line 4: expected a vector of 2 numbers, got 3"),
        (Vector(separator="|"), ("", "1|2"), None),
        (Category(), ("red", "x" * 100_001), "line 4: expected text of at most"),
    ],
)
def test_cells_of_other_kinds_are_refused_by_the_line(
    tmp_path: Path, kind: Any, cells: tuple[str, str], said: str | None
) -> None:
    """Fails when a refusal counts rows from 0 where the file has lines."""
    path = tmp_path / "items.csv"
    path.write_text("sku,x\n1,{}\n\n2,{}\n".format(*cells), encoding="utf-8")
    if said is None:
        assert len(shop_of(path, features=Features(columns={"x": kind})).stock.catalogue.ids()) == 2
        return
    with pytest.raises(DataError, match=re.escape(f"column 'x', {said}")):
        shop_of(path, features=Features(columns={"x": kind}))


def test_a_log_of_another_system_is_refused_by_the_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("decision,item,reward\nd,a1,1\n\nd,a2,7\n", encoding="utf-8")
    assert "decision 'd', line 4: expected a reward from 0 to 1, got 7" in said_by(lambda: shop_of().fit_log(path))
    path.write_text("decision,item,reward\nd,a1,1\n\n,a2,1\n", encoding="utf-8")
    assert "fit_log: decision, line 4: expected text or" in said_by(lambda: shop_of().fit_log(path))
