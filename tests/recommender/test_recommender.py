"""A recommender as its user sees it: tables in, requests, slates, items that come and go."""

from __future__ import annotations

import csv
import importlib
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from neuclust import Exploration, Features, Number, Recommender
from neuclust.errors import ConfigError, DataError

pa: Any = importlib.import_module("pyarrow")  # it has no types
ITEMS = [
    {"sku": f"s{n}", "price": 2.0 * n, "kind": "abc"[n % 3], "new": n % 2 == 0, "since": date(2024, 1, 1 + n)}
    for n in range(9)
]  # fmt: skip
USERS = [{"user": f"u{n}", "age": 20 + 3 * n, "group": "pq"[n % 2]} for n in range(4)]

AGES = Features(users={"age": Number(0, 100)})  # a declared range: no scale that moves with every request


def shop_of(items: Any = ITEMS, **options: Any) -> Recommender:
    given = {"users": USERS, "user_id": "user", "slate_size": 3, "policy": "linucb", **options}
    return Recommender(items, "sku", **given)


def teach(shop: Recommender, clicks: str, requests: int = 6) -> None:
    """Requests whose users click on one item where it is shown."""
    for number in range(requests):
        choice = shop.recommend(f"u{number % 4}")
        shop.feedback(choice.id, {clicks: 1} if clicks in choice.items else {})


def test_a_first_shop_recommends_learns_and_recommends_again() -> None:
    shop = shop_of()
    choice = shop.recommend(user="u1", eligible=["s1", "s2", "s3", "s4"], context={"hour": 14})
    assert set(choice.items) <= {"s1", "s2", "s3", "s4"}
    assert list(choice) == choice.items
    assert len(choice) == len(choice.means) == len(choice.bonuses) == 3
    assert choice.propensities == [1.0, 1.0, 1.0]
    assert not choice.short
    assert choice.reason == ""
    assert shop.feedback(choice.id, {choice.items[0]: 1}).status == "learned"
    again = shop.recommend(user="u1", eligible=["s1", "s2", "s3", "s4"], context={"hour": 14})
    assert again.means[again.items.index(choice.items[0])] > 0
    assert again.id != choice.id


# --- requests -----------------------------------------------------------------------------------------------------


def test_few_eligible_items_give_a_short_slate_and_none_an_empty_one() -> None:
    shop = shop_of()
    two = shop.recommend("u1", eligible=["s4", "s5"])
    assert (sorted(map(str, two.items)), two.short) == (["s4", "s5"], True)
    assert two.reason == "only 2 items are eligible, 3 were asked for"
    assert shop.recommend("u1", eligible=[]).reason == "no item is eligible"
    assert shop.recommend("u1", eligible=["zz"]).reason == "none of the eligible ids is known"
    assert shop.recommend("u1", eligible=["s1"], exclude=["s1"]).reason == "every eligible item is excluded"
    empty = shop_of([]).recommend("u1")
    assert (empty.items, empty.short, empty.reason) == ([], True, "there are no items")
    capped = shop.recommend("u1", eligible=["s0", "s3", "s6", "s1"], at_most={"kind": 1})
    assert len(capped.items) == 2
    assert "at_most allows 2" in capped.reason


def test_an_empty_answer_can_be_answered() -> None:
    shop = shop_of()
    choice = shop.recommend("u1", eligible=[])
    assert choice.propensities == choice.means == choice.bonuses == []
    assert shop.feedback(choice.id, {}).status == "learned"
    assert shop.decisions.counts.open == 0


def test_unknown_and_repeated_eligible_ids_are_listed() -> None:
    choice = shop_of().recommend("u1", eligible=["s1", "nope", "s2", "s1", 17, "s3"])
    assert choice.ignored == ["nope", "s1", 17]
    assert sorted(map(str, choice.items)) == ["s1", "s2", "s3"]


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"k": 4}, "k: expected a whole number from 1 to 3"),
        ({"k": 0}, "k: expected"),
        ({"k": True}, "k: expected"),
        ({"required": ["s8"], "eligible": ["s1"]}, "required: expected ids of eligible items, got 's8'"),
        ({"required": ["zz"]}, "required: expected ids of eligible items"),
        ({"required": ["s1", "s1"]}, "every id once"),
        ({"required": ["s1"], "exclude": ["s1"]}, "in both"),
        ({"required": ["s1", "s2"], "k": 1}, "at most k = 1"),
        ({"required": ["s0", "s3"], "at_most": {"kind": 1}}, "at_most: expected at most 1"),
        ({"at_most": {"colour": 1}}, "colour"),
        ({"eligible": "s1"}, "put one id into a list"),
        ({"eligible": 3}, "expected a list of item ids"),
        ({"exclude": "s1"}, "put one id into a list"),
        ({"context": [1]}, "context: expected a dictionary"),
        ({"context": {"age": "old"}}, "age"),
        ({"elligible": ["s1"]}, "did you mean eligible"),
    ],
)
def test_what_cannot_be_meant_is_refused(details: Any, said: str) -> None:
    shop = shop_of()
    with pytest.raises(DataError, match=said):
        shop.recommend("u1", **details)
    assert shop.decisions.counts.open == 0
    assert shop.schema is None  # a refused request does not end the draft


def test_rules_are_kept_and_arrays_are_lists_of_ids() -> None:
    shop = shop_of()
    teach(shop, "s1")
    two: Any = np.int64(2)
    choice = shop.recommend("u1", required=np.array(["s8"]), exclude=pd.Series(["s1", "s4"]), k=two)
    assert len(choice.items) == 2
    assert "s8" in choice.items
    assert not {"s1", "s4"} & set(choice.items)
    kinds = {str(row["sku"]): row["kind"] for row in ITEMS}
    for most in (1, 2):
        shown = [kinds[str(item)] for item in shop.recommend("u2", at_most={"kind": most})]
        assert max(map(shown.count, shown)) <= most


def test_the_same_request_id_has_one_answer() -> None:
    shop = shop_of()
    first = shop.recommend("u1", request_id="r1", context={"hour": 3})
    shop.feedback(first.id, {first.items[0]: 1})
    again = shop.recommend("u1", request_id="r1", context={"hour": 3})
    assert (again.id, again.items, again.means) == (first.id, first.items, first.means)
    with pytest.raises(DataError, match="request_id: expected the same request"):
        shop.recommend("u2", request_id="r1", context={"hour": 3})
    assert shop.recommend("u1", request_id=1).id != shop.recommend("u1", request_id="1").id
    with pytest.raises(DataError, match="two others"):
        shop.recommend_many([{"user": "u1", "request_id": "r9"}, {"user": "u2", "request_id": "r9"}])
    twice = shop.recommend_many([{"user": "u1", "request_id": "r9"}] * 2)
    assert twice[0].id == twice[1].id


def test_ids_of_decisions_are_never_used_twice() -> None:
    shops = [shop_of(policy="popular") for _ in range(3)]
    ids = [shop.recommend("u1").id for shop in shops for _ in range(20)]
    assert len(set(ids)) == 60


def test_randomness_is_keyed_by_the_seed_and_the_request() -> None:
    shop, same, other = (shop_of(policy="uniform", seed=seed) for seed in (1, 1, 2))
    numbered = [[each.recommend("u1").items for _ in range(6)] for each in (shop, same, other)]
    assert numbered[0] == numbered[1] != numbered[2]
    named = [shop.recommend("u1", request_id=f"r{n}").items for n in range(6)]
    assert [same.recommend("u1", request_id=f"r{n}").items for n in (5, 4, 3, 2, 1, 0)] == named[::-1]
    assert len(set(map(tuple, named))) > 1


@pytest.mark.parametrize("policy", ["linucb", "popular", "uniform", "neuclust", "auto:linear"])
def test_many_requests_have_the_answers_of_single_ones(policy: str) -> None:
    single, many = (shop_of(policy=policy, features=AGES) for _ in range(2))
    for shop in (single, many):
        teach(shop, "s2", 3)
    asked: list[dict[str, Any]] = [
        {"user": "u1", "k": 2}, {"user": "u2", "eligible": ["s1", "s7"]}, {"user": {"age": 44}, "required": ["s5"]}, {},
    ]  # fmt: skip
    alone = [single.recommend(each.get("user"), **{k: v for k, v in each.items() if k != "user"}) for each in asked]
    together = many.recommend_many(asked)
    assert [each.items for each in together] == [each.items for each in alone]
    assert np.allclose(together[0].means, alone[0].means, rtol=0, atol=1e-9)
    with pytest.raises(DataError):
        many.recommend_many([{"user": "u1"}, {"user": "u1", "k": 99}])
    assert many.decisions.counts.open == 4  # all or none


def test_users_unknown_known_and_described() -> None:
    shop = shop_of(features=AGES, cross=[("age", "price")])
    teach(shop, "s8", 8)
    known, described = shop.recommend("u3"), shop.recommend({"age": 29, "group": "q"})
    assert known.means == described.means
    assert known.user == "u3"
    assert described.user is None
    assert shop.recommend("somebody").items
    assert shop.recommend().items
    assert shop.recommend("u3", user_features={"age": 20}).means != known.means  # the request's word is the last
    shop.add_users([{"user": "new", "age": 29, "group": "q"}])
    assert shop.recommend("new").means == known.means


def test_columns_that_come_later_are_named_and_not_learned() -> None:
    shop = shop_of()
    shop.recommend("u1", context={"hour": 3})
    before = shop.recommend("u1", context={"hour": 3}).means
    late = shop.recommend("u1", context={"hour": 3, "weather": "rain"})
    shop.add_items([{"sku": "x", "price": 1.0, "colour": "red"}])
    assert late.means == before
    table = str(shop.features)
    assert "weather" in table
    assert "colour" in table
    assert "not learned" in table


# --- tables -------------------------------------------------------------------------------------------------------


def written(items: list[dict[str, Any]], kind: str, folder: Path) -> Any:
    """The same items as another table."""
    path = folder / f"items.{kind}"
    if kind == "csv":
        with open(path, "w", newline="") as file:
            rows = csv.DictWriter(file, list(items[0]))
            rows.writeheader()
            rows.writerows(items)
        return path
    if kind == "parquet":
        pl.DataFrame(items).write_parquet(path)
        return str(path)
    frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.Table.from_pylist}
    return frames[kind](items)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv", "parquet"])
def test_every_table_of_the_same_items_gives_the_same_slates(kind: str, tmp_path: Path) -> None:
    plain, other = shop_of(), shop_of(written(ITEMS, kind, tmp_path))
    for shop in (plain, other):
        teach(shop, "s4")
    assert other.recommend("u1").items == plain.recommend("u1").items
    assert other.recommend("u2").means == plain.recommend("u2").means
    assert str(other.features) == str(plain.features)


def test_the_schema_is_a_draft_until_the_first_recommendation() -> None:
    shop = shop_of(features=Features(items={"price": Number(0, 100)}))
    shop.add_items([{"sku": "x", "price": 50, "colour": "red"}, {"sku": "y", "price": 60, "colour": "blue"}])
    assert "colour" in str(shop.features)
    with pytest.raises(DataError, match="price"):
        shop.add_items([{"sku": "z", "price": "dear"}])
    with pytest.raises(DataError, match="age"):
        shop.recommend({"age": "old"})
    with pytest.raises(DataError, match="age"):
        shop.recommend_many([{"user": "u1"}, {"user": {"age": "old"}}])
    assert shop.schema is None
    shop.recommend("u1")
    assert shop.schema is not None
    with pytest.raises(DataError, match="price"):
        shop_of([{"sku": "a", "price": "dear"}], features=Features(items={"price": "number"}))


# --- items that come, change and go -------------------------------------------------------------------------------


def test_what_is_learned_is_the_row_that_was_shown() -> None:
    shop, still = shop_of(), shop_of()
    still.ids.token = shop.ids.token
    for each in (shop, still):
        each.recommend("u0")
    choice, _ = (each.recommend("u1") for each in (shop, still))
    first = str(choice.items[0])
    shop.add_items([{"sku": first, "price": 999.0, "kind": "z"}])
    shop.remove_items([choice.items[1]])
    for each in (shop, still):
        each.feedback(choice.id, dict.fromkeys(choice.items[:2], 1))
    assert shop.learner is not None
    assert still.learner is not None
    states = [each.learner.policy.state_dict() for each in (shop, still) if each.learner is not None]
    assert all(bool((states[0][name] == states[1][name]).all()) for name in states[0])
    assert choice.items[1] not in shop.recommend("u1", eligible=choice.items).items
    assert shop.recommend("u1", eligible=choice.items).ignored == [choice.items[1]]


def test_items_are_added_changed_and_removed_while_it_runs() -> None:
    shop = shop_of()
    shop.recommend("u1")
    changes = shop.add_items([{"sku": "n1", "price": 3.0}, {"sku": "s1", "price": 4.0, "kind": "unseen"}])
    assert (changes.added, changes.changed) == (["n1"], ["s1"])
    assert shop.recommend("u1", eligible=["n1"]).items == ["n1"]
    assert shop.remove_items(["n1"]) == ["n1"]
    with pytest.raises(DataError, match="remove_items"):
        shop.remove_items(["s2", "n1"])
    assert shop.recommend("u1", eligible=["s2"]).items == ["s2"]  # nothing of a refused call was done
    shop.remove_items([str(row["sku"]) for row in ITEMS])
    assert shop.recommend("u1").reason == "there are no items"
    shop.add_items([{"sku": "s1", "price": 1.0}])
    assert shop.recommend("u1").items == ["s1"]


@pytest.mark.parametrize("policy", ["linucb", "auto", "popular", "neuclust", "cn-ucb", "lin-ts"])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_small_catalogues_and_items_that_are_all_alike(policy: str, count: int) -> None:
    shop = shop_of([{"sku": n, "price": 1.0, "kind": "a"} for n in range(count)], policy=policy)
    for _ in range(2):
        choice = shop.recommend("u1")
        assert len(choice.items) == min(count, 3)
        shop.feedback(choice.id, dict.fromkeys(choice.items[:1], 1))
    shop.add_items([{"sku": "late", "price": 2.0, "kind": "b"}])
    choice = shop.recommend("u1", required=["late"])
    assert shop.feedback(choice.id, {"late": 1}).status == "learned"


# --- policies and exploration -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["linucb", "auto", "popular", "neuclust"])
def test_what_is_clicked_is_shown(policy: str) -> None:
    shop = shop_of(policy=policy, seed=3, exploration=0.3 if policy == "popular" else None)
    for number in range(20):
        choice = shop.recommend(f"u{number % 4}", k=2)
        shop.feedback(choice.id, {item: 1 for item in choice.items if item in ("s3", "s6")})
    best = shop.recommend("u1", eligible=["s0", "s1", "s3", "s6"], k=2)
    assert {"s3", "s6"} & set(best.items)


@pytest.mark.parametrize("policy", ["auto", "auto:linear"])
@pytest.mark.parametrize("clicked", ["s0", "s4", "s5"])
def test_the_only_item_that_is_clicked_is_soon_found(policy: str, clicked: str) -> None:
    """Items at both ends of the features promise most; shown without a click, they must give way to the others."""
    for seed in range(3):
        shop, clicks = shop_of(policy=policy, seed=seed), 0
        for number in range(30):
            choice = shop.recommend(f"u{number % 4}", k=2)
            clicks += clicked in choice.items
            shop.feedback(choice.id, {clicked: 1} if clicked in choice.items else {})
        assert clicks > 15


def test_settings_of_the_policy_are_its_own() -> None:
    bonuses = [shop_of(settings={"alpha": alpha}).recommend("u1").bonuses[0] for alpha in (1, 2.0)]
    assert bonuses[1] == pytest.approx(2 * bonuses[0])
    with pytest.raises(ConfigError, match="did you mean alpha"):
        shop_of(settings={"alhpa": 1})
    with pytest.raises(ConfigError, match="given the truth"):
        shop_of(policy="oracle")
    with pytest.raises(ConfigError, match="did you mean linucb"):
        shop_of(policy="linucbb")


def test_exploration_around_the_policy_has_exact_propensities() -> None:
    shop, plain = shop_of(exploration=Exploration(0.5, pool=4, anywhere=0.5)), shop_of(exploration=0)
    choices = [shop.recommend("u1") for _ in range(30)]
    assert len({tuple(choice.items) for choice in choices}) > 1
    for choice in choices:
        assert choice.propensities is not None
        assert all(0 < chance < 1 for chance in choice.propensities[:2])
    assert any(any(choice.explored) for choice in choices)
    assert plain.recommend("u1").propensities == [1.0] * 3
    assert shop_of(policy="lin-ts").recommend("u1").propensities is None
