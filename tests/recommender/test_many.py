"""`recommend_many` answers as `recommend` does, one request after another, in one pass where the policy knows how."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from neuclust import Features, Number, Recommender
from neuclust.core import Feedback, Round
from neuclust.kernels.scoring.function_table import FunctionTable
from neuclust.models.crossed import CrossedRounds
from neuclust.policies.auto.policy import Auto
from neuclust.policies.linear import SharedLinUCB
from neuclust.recommender.choices import Choice
from neuclust.registry import build_policy

Rows = list[dict[str, Any]]
COLOURS = ("red", "blue", "green")


def items(count: int = 60) -> Rows:
    rng = np.random.default_rng(1)
    return [
        {"sku": f"s{at}", "price": float(rng.integers(5, 90)), "colour": COLOURS[at % 3], "sale": bool(at % 4 == 0)}
        for at in range(count)
    ]


HOURS = Features(
    users={"age": Number(0, 99)}, context={"hour": Number(0, 23)}
)  # scales that run would move with all requests before the first is answered
USERS = [{"user": f"u{at}", "segment": ("gold", "new")[at % 2], "age": 20 + at} for at in range(20)]


def shop(policy: str = "linucb", **options: Any) -> Recommender:
    made = Recommender(
        items(), "sku", users=USERS, user_id="user", slate_size=4, policy=policy, features=HOURS, **options
    )
    rng = np.random.default_rng(2)
    for t in range(40):
        choice = made.recommend(f"u{t % 20}", context={"hour": float(t % 24)})
        made.feedback(choice.id, {each: float(rng.random() < 0.4) for each in choice.items})
    return made


def requests(count: int = 12) -> Rows:
    rng = np.random.default_rng(3)
    return [
        {"user": f"u{at}", "context": {"hour": float(at)}, "eligible": [f"s{row}" for row in rng.permutation(60)[:30]]}
        for at in range(count)
    ]


def same(one: Choice, other: Choice) -> None:
    assert one.items == other.items
    assert one.means == pytest.approx(other.means, rel=1e-9, abs=1e-12)
    assert one.bonuses == pytest.approx(other.bonuses, rel=1e-9, abs=1e-12)
    assert (one.propensities, one.short, one.reason) == (other.propensities, other.short, other.reason)


@pytest.mark.parametrize("policy", ["linucb", "lin-ts", "popular", "uniform"])
def test_many_requests_are_answered_as_one_after_another(policy: str) -> None:
    one, many = shop(policy), shop(policy)
    answers = many.recommend_many(requests())
    for request, answer in zip(requests(), answers, strict=True):
        same(one.recommend(request.pop("user"), **request), answer)


def test_requests_with_rules_and_without_items_are_answered_among_others() -> None:
    asked = requests(6)
    asked[1] |= {"required": [asked[1]["eligible"][7]], "at_most": {"colour": 1}}
    asked[2]["eligible"] = []
    asked[3]["k"] = 2
    asked[4]["eligible"] = asked[4]["eligible"][:3]
    one, many = shop(), shop()
    answers = many.recommend_many(asked)
    assert [len(answer) for answer in answers] == [4, 3, 0, 2, 3, 4]
    assert asked[1]["required"][0] in answers[1].items
    for request, answer in zip(asked, answers, strict=True):
        same(one.recommend(request.pop("user"), **request), answer)


def test_one_pass_is_used_and_exploration_is_not_lost_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    select = SharedLinUCB.select_many

    def noted(self: SharedLinUCB, rounds: CrossedRounds) -> Any:
        seen.append(len(rounds.arm_ids))
        return select(self, rounds)

    monkeypatch.setattr(SharedLinUCB, "select_many", noted)
    shop().recommend_many(requests())
    assert seen == [1] * 40 + [12]  # those of `shop` come one by one
    answers = shop(exploration=0.5).recommend_many(requests())
    assert len(seen) == 41
    assert any(any(answer.explored) for answer in answers)


def policy(tie: str = "id", **settings: str) -> SharedLinUCB:
    made = build_policy("linucb", dim=7, slate_size=3, seed=4, overrides={"tie": tie, **settings})
    assert isinstance(made, SharedLinUCB)
    return made


def crossed(copies: int = 1) -> tuple[CrossedRounds, list[Round]]:
    """Three rounds of eight arms, each arm so many times over, and the same with dense features."""
    rng, index = np.random.default_rng(5), np.array([0, 1, 2, 0, 1, 2, 2])
    functions = np.concatenate([np.tile(rng.random((8, 3)), (copies, 1)) for _ in range(3)])
    weights = rng.random((3, 7))
    weights[2, [1, 4]] = 0.0  # the third round does not tell arms apart by their second function
    rows = np.split(np.arange(len(functions)), 3)
    functions[rows[2][:, None], [0, 2]] = functions[rows[2][0], [0, 2]]
    ids = [3 * each for each in rows]
    dense = [torch.from_numpy(functions[rows[at]][:, index] * weights[at]) for at in range(3)]
    rounds = [
        Round(at + 1, torch.from_numpy(ids[at]), torch.from_numpy(functions[rows[at]]), None, 3, features=dense[at])
        for at in range(3)
    ]
    return CrossedRounds(ids, rows, partial(FunctionTable.of, functions), weights, index, [3, 3, 3], [1, 2, 3]), rounds


def learned(chosen: SharedLinUCB, rounds: list[Round]) -> SharedLinUCB:
    for round in rounds:
        chosen.update(round, chosen.select(round), Feedback(torch.tensor([1.0, 0.0, 1.0]), torch.tensor(2.0)))
    return chosen


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("kind", ["raw", "scale"])
def test_the_pass_selects_what_single_rounds_select_and_ties_stay_ties(copies: int, kind: str) -> None:
    many, rounds = crossed(copies)
    chosen = learned(policy(**{"encoder.kind": kind}), rounds)
    slates = chosen.select_many(many)
    for slate, round in zip(slates, rounds, strict=True):
        assert slate is not None
        single = chosen.select(round)
        assert slate.positions.tolist() == single.positions.tolist()
        torch.testing.assert_close(slate.means, single.means, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(slate.bonuses, single.bonuses, rtol=1e-10, atol=1e-12)
    assert slates[2] is not None
    assert slates[2].positions.tolist() == [0, 1, 2]  # all are equal: the smaller ids


@pytest.mark.parametrize(
    "settings", [{"tie": "random"}, {"bias": "true"}, {"encoder.kind": "unit"}, {"encoder.duplicate": "true"}]
)
def test_settings_that_need_single_rounds_are_left_to_them(settings: dict[str, str]) -> None:
    assert policy(**settings).select_many(crossed()[0]) == [None, None, None]


def test_rounds_the_policy_cannot_play_are_left_to_single_ones_which_refuse_them() -> None:
    many, _ = crossed()
    assert many.fits(7, 3)
    assert not many.fits(6, 3)
    assert not many.fits(7, 2)
    long = replace(many.functions, largest=1e60)
    assert not replace(many, table=lambda: long).fits(7, 3)
    assert not replace(many, weights=many.weights * np.nan).fits(7, 3)


def crossed_shop(**options: Any) -> Recommender:
    """A shop whose `auto` reads more than 40 features, most of them 0, and 200 items."""
    kinds = [f"k{at}" for at in range(12)]
    rng = np.random.default_rng(7)
    table = [
        {"sku": f"s{at}", "kind": kinds[int(rng.integers(12))], "price": float(rng.integers(5, 90))}
        for at in range(200)
    ]
    people = [{"user": f"u{at}", "segment": f"g{at % 5}", "age": 20 + at} for at in range(20)]
    made = Recommender(
        table, "sku", users=people, user_id="user", slate_size=4, policy="auto", features=HOURS, **options
    )
    for t in range(30):
        choice = made.recommend(f"u{t % 20}", context={"hour": float(t % 24)})
        made.feedback(choice.id, {each: float(rng.random() < 0.3) for each in choice.items})
    return made


def whole_rows(made: Recommender) -> Recommender:
    """The same shop, which reads the features of every item."""
    made.learner.player = Whole(made.learner.policy)  # type: ignore[union-attr]
    return made


class Whole:
    """A policy without `select_many`."""

    def __init__(self, policy: Any) -> None:
        self.select, self.update, self.state_dict = policy.select, policy.update, policy.state_dict
        self.load_state_dict, self.name, self.save = policy.load_state_dict, policy.name, policy.save


def test_auto_reads_functions_of_items_and_answers_as_by_their_features(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    select = Auto.select_many

    def noted(self: Auto, rounds: CrossedRounds) -> Any:
        found = select(self, rounds)
        seen.extend(slate is not None for slate in found)
        return found

    monkeypatch.setattr(Auto, "select_many", noted)
    one, other = crossed_shop(), whole_rows(crossed_shop())
    assert one.schema is not None
    assert one.schema.design.width > 40
    assert all(seen)
    for t in range(25):
        asked: dict[str, Any] = {"user": f"u{t % 20}", "context": {"hour": float(t % 24)}}
        if t % 3 == 1:
            asked["eligible"] = [f"s{at}" for at in range(t, 170)]
        if t == 9:  # an item changes, one comes, and one is like none before
            for each in (one, other):
                each.add_items([{"sku": "s3", "kind": "k1", "price": 7.5}, {"sku": "new", "kind": "k2", "price": 30.0}])
                each.add_items([{"sku": "odd", "kind": None, "price": None}])
                each.remove_items(["s5"])
        first, second = one.recommend(**asked), other.recommend(**asked)
        same(first, second)
        for each, choice in ((one, first), (other, second)):
            each.feedback(choice.id, {choice.items[t % 4]: 1.0})
    assert len(seen) == 30 + 30 + 25
    assert all(seen)


def test_functions_are_read_once_for_all_models_of_a_schema_and_never_where_none_reads_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails when a published model, which brings a schema of its own, has all items read anew, or when functions are
    made for a policy that reads every context whole."""
    one, made, of = crossed_shop(), list[int](), FunctionTable.of

    def noted(functions: Any) -> FunctionTable:
        made.append(len(functions))
        return of(functions)

    monkeypatch.setattr(FunctionTable, "of", noted)
    assert one.schema is not None
    design, functions = one.schema.design, one.stock.catalogue.functions
    first = functions.of(design, one.stock.catalogue.rows)
    assert functions.of(copy.deepcopy(design), one.stock.catalogue.rows) is first
    assert not made
    moved = replace(design, items=replace(design.items, centre=design.items.centre + 1))
    assert functions.of(moved, one.stock.catalogue.rows) is not first
    assert made == [200]
    dense = Recommender([{"sku": at, "price": float(at)} for at in range(200)], "sku", slate_size=3, policy="auto")
    for _ in range(5):
        dense.feedback(dense.recommend().id, {})
    assert made == [200]


def test_auto_sees_few_items_and_rules_whole() -> None:
    one, other = crossed_shop(), whole_rows(crossed_shop())
    for asked in ({"eligible": [f"s{at}" for at in range(9)]}, {"at_most": {"kind": 1}}, {"k": 2}):
        same(one.recommend("u3", context={"hour": 4.0}, **asked), other.recommend("u3", context={"hour": 4.0}, **asked))
