"""What comes back, as the user of a recommender sees it: windows, late values, repeats, ranges, what a slate is worth.

The policy is `popular` without smoothing, whose means are the average rewards of each item.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neuclust import Recommender
from neuclust.errors import ConfigError, DataError
from neuclust.recommender.choices import Choice

ITEMS = [{"sku": name, "price": float(price)} for price, name in enumerate("abcdef")]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def shop_of(**options: Any) -> Recommender:
    given = {"policy": "popular", "settings": {"smoothing": 0}, "slate_size": 3, "clock": Clock(), **options}
    return Recommender(ITEMS, "sku", **given)


def shown(shop: Recommender, *items: str) -> Choice:
    """A choice of these items."""
    return shop.recommend(eligible=list(items), k=len(items))


def mean(shop: Recommender, item: str) -> float:
    """The average reward learned of an item."""
    return shop.recommend(eligible=[item], k=1).means[0]


def wait(shop: Recommender, seconds: float) -> None:
    assert isinstance(shop.clock, Clock)
    shop.clock.now += seconds


def test_feedback_closes_the_decision_and_items_not_named_count_0() -> None:
    shop = shop_of()
    choice = shown(shop, "a", "b", "c")
    assert shop.feedback(choice.id, {"b": 1}).status == "learned"
    assert [mean(shop, item) for item in "abc"] == [0.0, 1.0, 0.0]
    assert shop.decisions.counts.learned == 1


def test_the_same_message_is_learned_once_and_other_values_are_refused_with_both_shown() -> None:
    shop = shop_of()
    choice = shown(shop, "a", "b")
    shop.feedback(choice.id, {"a": 1})
    assert shop.feedback(choice.id, {"a": 1}).status == "duplicate"
    assert shop.feedback(choice.id, {"a": True, "b": 0}).status == "duplicate"
    with pytest.raises(DataError, match=r"closed with slot 1: 1, slot 2: 0, got \{'b': 1\}"):
        shop.feedback(choice.id, {"b": 1})
    assert [mean(shop, item) for item in "ab"] == [1.0, 0.0]
    assert shop.decisions.counts.duplicates == 2


def test_a_feedback_id_is_taken_once() -> None:
    shop = shop_of()
    first, second = shown(shop, "a", "b"), shown(shop, "c", "d")
    shop.feedback(first.id, {"a": 0.5}, feedback_id="m1", partial=True)
    assert shop.feedback(first.id, {"a": 0.5}, feedback_id="m1", partial=True).status == "duplicate"
    with pytest.raises(DataError, match="feedback_id: expected the same message"):
        shop.feedback(first.id, {"a": 0.25}, feedback_id="m1", partial=True)
    with pytest.raises(DataError, match="feedback_id"):
        shop.feedback(second.id, {"c": 1}, feedback_id="m1")
    assert shop.feedback(second.id, {"c": 1}, feedback_id="m2").status == "learned"


@pytest.mark.parametrize(
    ("items", "details", "said"),
    [
        ({"f": 1}, {}, "expected items of this decision's slate of 2 .*got 'f'"),
        ({"a": 2}, {}, "expected a number from 0 to 1, got 2"),
        ({"a": -0.1}, {}, "from 0 to 1"),
        ({"a": float("nan")}, {}, "got nan"),
        ({"a": "1"}, {}, "got '1'"),
        ({"a": None}, {}, "got None"),
        (["a"], {}, "a mapping from items to values"),
        ({"a": 1}, {"shown": ["b"]}, "was not; add it to shown"),
        ({}, {"shown": 3}, "leading slots from 0 to 2"),
        ({}, {"slate": 9}, "slate"),
        ({}, {"partial": "yes"}, "partial: expected true or false"),
        ({}, {"feedback_id": ""}, "feedback_id"),
    ],
)
def test_what_cannot_be_feedback_is_refused_and_nothing_is_learned(items: Any, details: Any, said: str) -> None:
    shop = shop_of()
    choice = shown(shop, "a", "b")
    with pytest.raises(DataError, match=said):
        shop.feedback(choice.id, items, **details)
    with pytest.raises(DataError, match="unknown decision 'none'"):
        shop.feedback("none", {})
    assert shop.decisions.counts.learned == 0
    assert shop.feedback(choice.id, {"a": 1}).status == "learned"  # the decision is as open as it was
    assert shop.decisions.counts.refused == 2


def test_partial_feedback_leaves_the_decision_open_until_its_window_ends() -> None:
    shop = shop_of(window=100.0)
    choice = shown(shop, "a", "b", "c")
    assert shop.feedback(choice.id, {"a": 1}, partial=True).status == "open"
    wait(shop, 99.0)
    assert shop.decisions.counts.learned == 0
    shop.feedback(choice.id, {"c": 1}, partial=True)
    wait(shop, 1.0)
    assert [mean(shop, item) for item in "abc"] == [1.0, 0.0, 1.0]
    assert shop.decisions.counts.closed == 1


@pytest.mark.parametrize("unanswered", ["zeros", "unseen"])
def test_expire_settles_open_decisions_as_zeros_or_as_unseen(unanswered: Any) -> None:
    shop = shop_of(window=1e6)
    liked = shown(shop, "a", "b")
    shop.feedback(liked.id, {"a": 1, "b": 1})
    old = shown(shop, "a", "b")
    shop.feedback(old.id, {"a": 1}, partial=True)
    wait(shop, 50.0)
    young = shown(shop, "a", "b")
    assert shop.expire(older_than=50.0, unanswered=unanswered) == 1
    assert mean(shop, "b") == (0.5 if unanswered == "zeros" else 1.0)
    assert shop.feedback(young.id, {}).status == "learned"
    assert shop.expire() > 0
    assert shop.decisions.counts.open == 0


def test_values_after_learn_after_are_learned_as_differences_where_the_policy_can() -> None:
    shop, auto = (
        shop_of(window=1_000.0, learn_after=10.0),
        shop_of(window=1_000.0, learn_after=10.0, policy="auto:linear", settings=None),
    )
    for each in (shop, auto):
        choice = shown(each, "a", "b")
        each.feedback(choice.id, {"a": 0.25}, partial=True)
        wait(each, 10.0)
        each.recommend(eligible=["f"])
        each.feedback(choice.id, {"b": 1}, partial=True)
        each.feedback(choice.id, {"a": 0.75})
    assert [mean(shop, item) for item in "ab"] == [0.75, 1.0]
    assert (shop.decisions.counts.late, shop.decisions.counts.revised) == (0, 2)
    assert auto.decisions.counts.late == 2


def test_values_for_a_decision_whose_window_has_ended_are_late() -> None:
    shop = shop_of(window=10.0)
    choice = shown(shop, "a", "b")
    wait(shop, 48 * 3600.0)
    assert shop.feedback(choice.id, {"a": 1}).status == "late"
    assert mean(shop, "a") == 0.0
    assert shop.feedback(choice.id, {"a": 1}).status == "duplicate"
    assert shop.decisions.counts.late == 1


def test_the_clock_may_go_back() -> None:
    shop = shop_of(window=100.0)
    choice = shown(shop, "a", "b")
    wait(shop, -1e6)
    assert shop.feedback(choice.id, {"a": 1}).status == "learned"
    assert mean(shop, "a") == 1.0


@pytest.mark.parametrize(("combine", "expected"), [("max", 0.5), ("last", 0.25), ("sum", 0.75)])
def test_values_of_one_item_combine(combine: Any, expected: float) -> None:
    shop = shop_of(combine=combine)
    choice = shown(shop, "a", "b")
    shop.feedback(choice.id, {"a": 0.5}, partial=True)
    shop.feedback(choice.id, {"a": 0.25})
    assert mean(shop, "a") == expected


def test_items_that_were_not_shown_are_unseen() -> None:
    shop = shop_of()
    shop.feedback(shown(shop, "a", "b", "c").id, {"a": 1, "b": 1, "c": 1})
    choice = shown(shop, "a", "b", "c")
    shop.feedback(choice.id, {}, shown=choice.items[:1])
    assert [mean(shop, str(item)) for item in choice.items] == [0.5, 1.0, 1.0]
    again = shown(shop, "b", "c")
    shop.feedback(again.id, {}, shown=1)
    assert [mean(shop, str(item)) for item in again.items] == [0.5, 1.0]
    shop.feedback(shown(shop, "b", "c").id, {}, shown=0)  # nobody looked
    assert sorted(mean(shop, item) for item in "bc") == [0.5, 1.0]


@pytest.mark.parametrize(
    ("reward_range", "value", "expected"),
    [((0, 5), 4, 0.8), ((0, 200.0), 50, 0.25), ((1, 5), 1, 0.0), ((-1, 1), 0, 0.5), ((-1, 1), np.float32(1), 1.0)],
)
def test_grades_and_money_are_scaled_by_their_range(reward_range: Any, value: Any, expected: float) -> None:
    """Fails when a policy learns anything but the share of the range, or a person reads that share."""
    shop = shop_of(reward_range=reward_range)
    shop.feedback(shown(shop, "a").id, {"a": value})
    assert shop.recommend(eligible=["a"], k=1).logged()[0] == pytest.approx([expected])
    assert mean(shop, "a") == pytest.approx(value)
    with pytest.raises(DataError, match="expected a number from"):
        shop.feedback(shown(shop, "a").id, {"a": reward_range[1] + 1})


@pytest.mark.parametrize(
    ("reward", "clicks", "worth"),
    [
        ("sum", "", 0.0), ("sum", "a", 1 / 3), ("any", "a", 1.0), ("any", "", 0.0), ("threshold:0.6", "a", 0.0),
        ("threshold:0.6", "ab", 1.0), (lambda values: max(values) / 2, "ab", 0.5),
    ],
)  # fmt: skip
def test_what_a_slate_is_worth(reward: Any, clicks: str, worth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = shop_of(reward=reward)
    choices = [shown(shop, "a", "b", "c") for _ in range(2)]
    learned: list[float] = []  # slate rewards as the policy is given them
    assert shop.learner is not None
    monkeypatch.setattr(shop.learner.policy, "update", lambda *given: learned.append(float(given[2].slate_reward)))
    shop.feedback(choices[0].id, dict.fromkeys(clicks, 1))
    shop.feedback(choices[1].id, {}, slate=1)
    assert learned == pytest.approx([worth, 1 / 3 if reward == "sum" else 1.0])


@pytest.mark.parametrize("reward", ["most", "threshold:2", 3, lambda values: "much"])
def test_a_worth_that_is_none_is_refused_at_once(reward: Any) -> None:
    with pytest.raises((ConfigError, DataError), match="reward"):
        shop_of(reward=reward)


def test_old_decisions_are_forgotten() -> None:
    shop = shop_of(remember=3)
    ids = [shown(shop, "a", "b").id for _ in range(5)]
    for id in ids:
        shop.feedback(id, {"a": 1})
    assert shop.feedback(ids[-1], {"a": 1}).status == "duplicate"
    with pytest.raises(DataError, match="unknown decision"):
        shop.feedback(ids[0], {"a": 1})


def test_ids_may_be_numbers() -> None:
    shop = Recommender([{"id": n, "x": float(n)} for n in range(4)], "id", policy="popular", slate_size=2)
    choice = shop.recommend(eligible=np.array([1, 2, 3]), required=[2])
    clicked: Any = np.int64(2)
    assert shop.feedback(choice.id, {clicked: 1}).status == "learned"
    with pytest.raises(DataError, match="slate"):
        shop.feedback(shop.recommend(eligible=[1]).id, {"01": 1})
