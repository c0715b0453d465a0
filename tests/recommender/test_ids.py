"""An id is its decimal text: 17 and "17" name one item or user everywhere, and answers give it as it came first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuclust import Recommender
from neuclust.errors import DataError
from neuclust.recommender.log.rounds import logged_decisions
from neuclust.recommender.tables.ids import other_form


def shop_of(**options: Any) -> Recommender:
    """Items with numbers, among them one with a text, and users with numbers."""
    items = [{"sku": sku, "price": float(at)} for at, sku in enumerate(["A1", "17", 18, "007"])]
    users = [{"user": 1, "age": 20}, {"user": 2, "age": 70}]
    given: dict[str, Any] = {
        "users": users,
        "user_id": "user",
        "slate_size": 4,
        "policy": "linucb",
        "clock": lambda: 0.0,
    } | options
    return Recommender(items, "sku", **given)


@pytest.mark.parametrize(
    ("id", "other"),
    [(17, "17"), ("17", 17), (-3, "-3"), ("0", 0), (10**50, str(10**50)), ("007", None), ("-0", None), ("1.0", None),
     ("", None), ("²", None), ("١", None), (" 17", None), (10**60, None), ("9" * 1_000, None)],
)  # fmt: skip
def test_the_other_form_is_of_whole_numbers_without_zeros_before_them(id: Any, other: Any) -> None:
    assert other_form(id) == other
    assert other is None or other_form(other) == id


def test_a_csv_of_numbers_changes_items_of_a_csv_of_texts(tmp_path: Path) -> None:
    base, delta = tmp_path / "base.csv", tmp_path / "delta.csv"
    base.write_text("sku,price\nA1,1\n17,2\n18,3\n", encoding="utf-8")
    delta.write_text("sku,price\n17,9\n19,4\n", encoding="utf-8")
    shop = Recommender(base, "sku", policy="popular", slate_size=9)
    changes = shop.add_items(delta)
    assert (changes.added, changes.changed) == ([19], ["17"])
    assert sorted(map(str, shop.recommend().items)) == ["17", "18", "19", "A1"]
    assert shop.stock.catalogue.raw(1) == {"price": 9}


def test_requests_and_feedback_may_write_ids_either_way() -> None:
    plain, mixed = shop_of(), shop_of()
    asked = plain.recommend(user=1, eligible=["17", 18, "A1"], exclude=["A1"], required=[18])
    choice = mixed.recommend(user="1", eligible=[17, "18", "A1"], exclude=["A1"], required=["18"])
    assert (choice.items, choice.user, choice.means, choice.required) == (
        asked.items, 1, asked.means, asked.required,
    )  # fmt: skip
    assert True in choice.required
    assert mixed.feedback(choice.id, {17: 1, "18": 0}, shown=["17", 18]).status == "learned"
    assert mixed.feedback(choice.id, {"17": 1, 18: 0}).status == "duplicate"  # closed: known by its hash alone
    plain.feedback(asked.id, {"17": 1, 18: 0})
    assert mixed.recommend(user=1).means == plain.recommend(user="1").means


def test_zeros_before_a_number_make_another_id() -> None:
    shop = shop_of()
    assert shop.recommend(eligible=[7, "7", "07"]).ignored == [7, "7", "07"]
    assert shop.recommend(eligible=["007"]).items == ["007"]
    assert shop.recommend(eligible=[17, "17"]).ignored == ["17"]


def test_a_reader_and_a_repeated_request_know_the_user_in_both_forms() -> None:
    shop = shop_of()
    first = shop.recommend(user="1", request_id="r")
    assert shop.recommend(user=1, request_id="r") == first
    choice = shop.reader().recommend(user="2", eligible=[17, 18], required=[17])
    shop.accept(choice)
    assert (choice.user, sorted(map(str, choice.items)), choice.required.count(True)) == (2, ["17", "18"], 1)
    assert shop.feedback(choice.id, {17: 1}).status == "learned"


def test_twins_are_refused_as_repeats_are() -> None:
    with pytest.raises(DataError, match="expected every id once, got '1' again in row 1, which is the same id as 1"):
        Recommender([{"sku": 1}, {"sku": "1"}], "sku")
    shop = shop_of()
    with pytest.raises(DataError, match="nothing was removed"):
        shop.remove_items([17, "17"])
    with pytest.raises(DataError, match="nobody was removed"):
        shop.remove_users([1, "1"])
    with pytest.raises(DataError, match="every id once"):
        shop.recommend(required=[17, "17"])
    with pytest.raises(DataError, match="not excluded, got 17 in both"):
        shop.recommend(required=[17], exclude=["17"])
    with pytest.raises(DataError, match="expected every item once, got '17' in two forms"):
        shop.feedback(shop.recommend().id, {17: 1, "17": 0})
    with pytest.raises(DataError, match="expected every item once, got '18' again"):
        shop.fit_log([{"decision": 1, "item": item, "reward": 1} for item in (18, "18")])


def test_what_is_taken_out_is_told_as_it_was_given() -> None:
    shop = shop_of()
    assert shop.remove_items([17, "18"]) == ["17", 18]
    assert shop.remove_users(["2"]) == [2]
    assert shop.add_items([{"sku": 17, "price": 5.0}]).added == ["17"]
    assert shop.add_users([{"user": "1", "age": 3}]).changed == [1]


def test_a_log_of_another_system_may_write_ids_either_way() -> None:
    rows = [(17, 1, 1), ("18", 1, 0), ("nobody", 1, 0)]
    table = [{"decision": 1, "item": item, "user": str(user), "reward": r} for item, user, r in rows]
    plain = [{"decision": 1, "item": item, "user": 1, "reward": r} for item, r in (("17", 1), (18, 0), ("nobody", 0))]
    one, other = shop_of(), shop_of()
    assert one.fit_log(table) == other.fit_log(plain)
    assert one.fit_log(table).dropped == 1
    other.fit_log(plain)
    assert one.recommend(user=1).means == other.recommend(user=1).means


def test_the_log_is_read_back_and_refitted(tmp_path: Path) -> None:
    shop = shop_of(log=tmp_path / "log.jsonl", exploration=0.5)
    shop.fit_log([{"decision": 1, "item": 17, "user": "1", "reward": 1}])
    choice = shop.recommend(user="1", eligible=[17, "18"])
    shop.feedback(choice.id, {17: 1, "18": 0}, shown=["17", 18])
    shop.refit()
    shop.remove_items([17])
    (decision,) = logged_decisions(tmp_path / "log.jsonl").decisions()
    assert (decision.user, sorted(decision.rewards.tolist())) == (1, [0.0, 1.0])


def test_a_shop_that_holds_both_forms_as_two_items_still_loads(tmp_path: Path) -> None:
    shop = shop_of()
    shop.stock.catalogue.rows.ids.append(17)  # as earlier versions took it in
    shop.stock.catalogue.rows.codes[17] = 4
    shop.stock.catalogue.rows.columns["price"].append(9.0)
    shop.stock.catalogue._alive = np.ones(5, dtype=bool)
    choice = shop.recommend(eligible=[17, "17"])
    assert sorted(map(repr, choice.items)) == ["'17'", "17"]
    shop.save(tmp_path / "shop")
    other = Recommender.load(tmp_path / "shop", clock=lambda: 0.0)
    assert other.feedback(choice.id, {17: 1, "17": 0}).status == "learned"
    assert other.remove_items([17]) == [17]
    assert other.recommend(eligible=["17"]).items == ["17"]
