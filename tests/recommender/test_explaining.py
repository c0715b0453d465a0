"""Explanations: contributions are what the model has, in the words of the tables; warm-up leaves no trace."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuclust import Category, Features, Number, Recommender
from neuclust.errors import DataError
from neuclust.policies.linear import SharedLinUCB
from neuclust.recommender.choices import Choice
from neuclust.recommender.explaining.explanation import AVERAGE, Contribution, Explanation, Reason

Rows = list[dict[str, Any]]
FEATURES = Features(
    items={"price": Number(0, 100)},
    users={"age": Number(0, 100)},
    context={"device": Category(["phone", "desktop"])},
)


def items(count: int = 40) -> Rows:
    kinds = ("shoes", "shirts", "toys", "books")
    return [
        {"sku": f"s{at}", "kind": kinds[at % 4], "price": float(3 * at % 97), "name": f"unique {at}"}
        for at in range(count)
    ]


USERS = [{"user": f"u{at}", "segment": ("gold", "new")[at % 2], "age": 20.0 + at} for at in range(10)]


def shop(policy: str = "linucb", requests: int = 60, **options: Any) -> Recommender:
    made = Recommender(
        items(), "sku", users=USERS, user_id="user", slate_size=3, policy=policy,
        **{"features": FEATURES, "cross": [("segment", "kind")], **options},
    )  # fmt: skip
    rng = np.random.default_rng(6)
    for at in range(requests):
        choice = made.recommend(f"u{at % 10}", context={"device": "phone" if at % 3 else "desktop"})
        chance = [0.8 if (int(sku[1:]) % 4 == 0) == (at % 2 == 0) else 0.1 for sku in map(str, choice.items)]
        made.feedback(choice.id, dict(zip(choice.items, (rng.random(3) < chance).astype(float), strict=True)))
    return made


def amounts(reason: Reason) -> dict[str, float]:
    return {str(each): each.amount for each in reason.contributions}


# --- linear models: exact ---------------------------------------------------------------------------------------------


def test_contributions_of_a_linear_model_are_its_weights_times_the_distance_from_the_average() -> None:
    made = shop()
    choice = made.recommend("u4", context={"device": "phone"})
    assert made.learner is not None
    assert made.schema is not None
    policy, schema = made.learner.policy, made.schema
    assert isinstance(policy, SharedLinUCB)
    assert policy.encoder.rho is not None
    theta = (policy.inverse @ policy.moment / policy.encoder.rho).numpy()
    weights = dict(zip(schema.design.labels, theta, strict=True))
    averages = made.stock.catalogue.profiles(made.stock.catalogue.all_codes()).mean(0)
    price = schema.items.slices["price"]
    for reason in made.explain(choice):
        slot = reason.slot - 1
        assert choice.shown is not None
        away = float((choice.shown.items[slot, price] - averages[price])[0])
        assert amounts(reason)[f"price = {items()[int(str(reason.item)[1:])]['price']:g}"] == pytest.approx(
            weights["price"] * away, abs=1e-12
        )
        assert reason.rest == pytest.approx(0.0, abs=1e-12)
        assert reason.base + sum(amounts(reason).values()) == pytest.approx(reason.now, abs=1e-9)
        assert reason.now == pytest.approx(choice.means[slot])


def test_a_taste_that_was_learned_speaks_for_its_items() -> None:
    made = shop(requests=120)
    (reason,) = made.explain(made.recommend("u4", context={"device": "phone"}, required=["s8"], k=1))
    assert reason.required
    assert "required" in reason.headline
    assert amounts(reason)["segment = gold with kind = shoes"] > 0.02
    (other,) = made.explain(made.recommend("u5", context={"device": "phone"}, eligible=["s8"]))
    assert amounts(other)["segment = new with kind = shoes"] < -0.02
    assert not other.required


def test_columns_that_are_not_learned_are_not_named() -> None:
    text = str(shop().explain(shop().recommend("u1")))
    assert "name" not in text
    assert "device = missing" not in text  # a request that does not say it is the average


def test_exploration_and_propensities_are_told() -> None:
    made = shop(exploration=0.9)
    explained = made.explain(made.recommend("u1"))
    assert any(reason.explored for reason in explained)
    assert "drawn to explore" in str(explained)
    assert all(reason.propensity is not None and reason.propensity < 1 for reason in explained)
    assert "propensity" in str(explained)


# --- other policies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["auto", "lin-ts", "linucb-disjoint", "neural-linear", "cn-ucb", "neuclust"])
def test_every_policy_is_explained_and_learns_nothing_by_it(policy: str) -> None:
    made = shop(policy, requests=12)
    choice = made.recommend("u2", context={"device": "phone"})
    assert made.learner is not None
    before = {name: value.clone() for name, value in made.learner.policy.state_dict().items()}
    explained = made.explain(choice)
    assert [reason.item for reason in explained] == choice.items
    assert any(reason.contributions for reason in explained)
    for reason in explained:
        total = reason.base + sum(each.amount for each in reason.contributions) + reason.rest
        assert total == pytest.approx(reason.now, abs=1e-6)
        assert reason.now == pytest.approx(choice.means[reason.slot - 1], abs=1e-6)
    after = made.learner.policy.state_dict()
    assert all(torch.equal(value, after[name]) or bool(value.isnan().any()) for name, value in before.items())
    json.dumps(explained.to_json(), allow_nan=False)


def test_a_policy_without_features_says_what_items_earned() -> None:
    made = Recommender(items(5), "sku", slate_size=2, policy="popular")
    for value in (1.0, 0.0, 1.0):
        choice = made.recommend(eligible=["s0", "s1"])
        made.feedback(choice.id, {"s0": value})
    explained = made.explain(made.recommend(eligible=["s0", "s1"]))
    said = {reason.item: str(reason.counted) for reason in explained}
    assert said == {"s0": "shown 3 times, 2 rewards", "s1": "shown 3 times, 0 rewards"}
    assert "shown 3 times, 2 rewards" in str(explained)
    assert "shown 3 times, 2 rewards" in explained._repr_html_()
    assert explained.to_json()["items"][0]["counted"] == {"shown": 3, "rewards": 2.0}


def test_uniform_says_that_nothing_is_learned() -> None:
    made = Recommender(items(5), "sku", slate_size=2, policy="uniform")
    assert "drawn evenly" in str(made.explain(made.recommend()))


# --- which choices ------------------------------------------------------------------------------------------------


def test_an_open_choice_can_be_named_by_its_id_or_come_without_rows() -> None:
    made = shop()
    choice = made.recommend("u3", context={"device": "phone"})
    whole = made.explain(choice)
    assert made.explain(replace(choice, shown=None)) == whole
    by_id = made.explain(choice.id)
    assert [reason.item for reason in by_id] == choice.items
    assert by_id.reasons[0].base == whole.reasons[0].base
    made.feedback(choice.id, {})
    assert len(made.explain(choice)) == 3  # with its rows it is explained for ever
    with pytest.raises(DataError, match="explain: expected a choice with its rows, or one that is open"):
        made.explain(choice.id)


def test_what_was_learned_since_is_told_apart() -> None:
    made = shop()
    choice = made.recommend("u3", context={"device": "phone"}, k=1)
    for _ in range(5):
        made.feedback(made.recommend("u3", eligible=choice.items).id, {choice.items[0]: 1.0})
    (reason,) = made.explain(choice)
    assert reason.mean == choice.means[0]
    assert reason.now > reason.mean
    assert "now" in reason.headline


def test_items_that_changed_are_explained_by_what_they_were() -> None:
    made = shop()
    choice = made.recommend("u3", k=1, eligible=["s4"])
    made.add_items([{"sku": "s4", "kind": "books", "price": 99.0}])
    assert {"kind = shoes", "price = 12"} <= set(amounts(made.explain(choice).reasons[0]))
    made.remove_items(["s4"])
    assert {"kind = shoes", "price = 12"} <= set(amounts(made.explain(choice).reasons[0]))


def test_features_of_a_request_are_read_back_from_its_row() -> None:
    made = shop()
    choice = made.recommend("u4", user_features={"segment": "new", "age": 70.0}, context={"device": "phone"})
    said = set(amounts(made.explain(choice).reasons[0]))
    assert {"segment = new", "age = 70", "device = phone"} <= said
    anonymous = made.recommend({"segment": "gold", "age": 30.0})
    assert {"segment = gold", "age = 30"} <= set(amounts(made.explain(anonymous).reasons[0]))


def test_choices_of_another_shop_or_schema_are_refused() -> None:
    made = shop()
    choice = made.recommend("u3")
    assert choice.shown is not None
    with pytest.raises(DataError, match="schema in force, version 1, got one of version 7"):
        made.explain(replace(choice, shown=replace(choice.shown, version=7)))
    with pytest.raises(DataError, match="rows of"):
        made.explain(replace(choice, shown=replace(choice.shown, user=np.zeros(2))))
    other: Any = 3
    with pytest.raises(DataError, match="expected a choice or its id, got 3"):
        made.explain(other)
    empty = made.explain(made.recommend(eligible=["nothing"]))
    assert len(empty) == 0
    assert "none of the eligible ids is known" in str(empty)


# --- how it reads ---------------------------------------------------------------------------------------------------


def test_the_text_names_the_largest_and_sums_the_others() -> None:
    many = tuple(Contribution((f"c{at}",), ("x",), 0.01 * (12 - at)) for at in range(12))
    text = str(Explanation("d-1", "linucb", "u1", (Reason("a", 1, 0.5, 0.1, 0.5, contributions=many, base=0.1),)))
    head = ["choice d-1 for u1, by linucb", "1. a: expected 0.5, bonus 0.1", "       +0.1200  c0 = x"]
    assert text.splitlines()[:3] == head
    assert "+0.1000  4 smaller ones" in text
    assert f"+0.1000  {AVERAGE}" in text


def test_nothing_of_the_data_is_read_as_html_or_moves_a_terminal() -> None:
    wild = "<script>alert(1)</script>\x1b[2J"
    rows = [{"sku": f"{wild}{at}", "kind": wild if at % 2 else "b"} for at in range(6)]
    made = Recommender(rows, "sku", slate_size=2, policy="linucb")
    made.feedback(made.recommend(wild).id, {})
    explained = made.explain(made.recommend(wild))
    assert "<script>" not in explained._repr_html_()
    assert "&lt;script&gt;" in explained._repr_html_()
    assert "\x1b" not in str(explained) + explained._repr_html_()


# --- warm-up --------------------------------------------------------------------------------------------------------


def untouched(choice: Choice) -> tuple[Any, ...]:
    return choice.items, choice.means, choice.bonuses, choice.propensities


@pytest.mark.parametrize("policy", ["linucb", "popular", "auto"])
def test_warm_up_leaves_no_trace(policy: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr("neuclust.recommender.warming.SECONDS", 0.0)
    one, other = shop(policy, 4), shop(policy, 4, log=tmp_path / "log.jsonl")
    lines = (tmp_path / "log.jsonl").read_text()
    counts, table = other.decisions.counts, str(other.features)
    other.warm_up()
    assert (other.decisions.counts, str(other.features)) == (counts, table)
    assert (tmp_path / "log.jsonl").read_text() == lines
    for at in range(3):
        request: dict[str, Any] = {"user": f"u{at}", "context": {"device": "phone"}}
        first, second = one.recommend(**request), other.recommend(**request)
        assert untouched(first) == untouched(second)
        assert second.id.endswith(f"-{5 + at}")


def test_a_draft_stays_a_draft_and_crosses_of_context_wait_for_it() -> None:
    made = shop(requests=0, cross=[("moment", "kind")])
    made.warm_up()
    assert (made.schema, made.learner) == (None, None)
    made.recommend("u1", context={"moment": "evening"})
    assert made.schema is not None
    assert any("moment" in label for label in made.schema.design.labels)
    Recommender([], "sku", policy="linucb").warm_up()  # nothing to warm up with
