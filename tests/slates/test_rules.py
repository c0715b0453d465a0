"""Arms that may enter a slate, against the definition; slates within the rules, against trying all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruled_rounds import naive_longest, naive_options, rounds
from small_problems import not_none
from torch import Tensor

from neuclust.core import Cap, Round, Rules, Slate
from neuclust.errors import DataError
from neuclust.kernels.ranking import top
from neuclust.randomness import stream
from neuclust.slates import constraints
from neuclust.slates.assembly import greedy_basis
from neuclust.slates.rules import Filling, allowed, check_rules, keeps, keeps_rules, longest, row_rules, within_rules

CATEGORIES = torch.tensor([0, 0, 0, 1, 1, 2])


def six(k: int = 3, **rules: Any) -> Round:
    """Arms 10, 20, …, 60."""
    return Round(4, torch.arange(1, 7) * 10, torch.ones(6, 2), None, k, rules=Rules(**rules))


class TopK:
    """Plays the k arms of the largest values, which belong to ids; counts how often it is asked."""

    dim, slate_size = 2, 4

    def __init__(self, values: dict[int, float], k: int = 4) -> None:
        self.values, self.asked, self.slate_size = values, list[Round](), k

    def choose(self, round: Round) -> Slate:
        self.asked.append(round)
        scores = torch.tensor([self.values[arm] for arm in round.arm_ids.tolist()], dtype=torch.float64)
        best = top(scores, round.arm_ids, round.slate_size)
        ones = torch.ones(len(best), dtype=torch.float64)
        return Slate(best, scores[best] - 1, ones, propensities=ones, cluster=3)

    @keeps_rules
    def select(self, round: Round) -> Slate:
        return self.choose(round)


def valued(round: Round, seed: int) -> TopK:
    """Values with many ties."""
    drawn = stream(seed, "test rules").integers(4, size=len(round.arm_ids)).tolist()
    return TopK(dict(zip(round.arm_ids.tolist(), map(float, drawn), strict=True)), round.slate_size)


# --- refused rules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"required": [10, 20, 30, 40]}, "at most k = 3 required arms, got 4"),
        ({"required": [11]}, "required arms among those offered, got arm 11"),
        ({"required": [10], "excluded": [20, 10]}, "required or excluded, got arm 10 as both"),
        ({"caps": (Cap(CATEGORIES[:5], 1),)}, "one group of a cap for every arm, got 5 for 6 arms"),
        ({"required": [10, 20], "caps": (Cap(CATEGORIES, 1),)}, "1 arms of a group, but 2 are required of group 0"),
    ],
)
def test_what_cannot_be_kept_is_refused(rules: dict[str, Any], said: str) -> None:
    round = six(**rules)
    for refused in (check_rules, longest, allowed, Filling.of, lambda round: within_rules(round, TopK({}).choose)):
        with pytest.raises(DataError, match=rf"round 4: expected .*{said}"):
            refused(round)


def test_excluded_arms_that_are_not_offered_are_ignored() -> None:
    assert allowed(six(excluded=[70, 20])).tolist() == [True, False, True, True, True, True]
    assert allowed(Round(1, torch.arange(3), torch.ones(3, 2), None, 2)).tolist() == [True] * 3


# --- arms that may enter --------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(round=rounds(), data=st.data())
def test_options_are_those_of_the_definition_whatever_the_order(round: Round, data: st.DataObject) -> None:
    """Fails when required arms are given no place or no room in their groups, or when full groups drop them."""
    length = longest(round)
    filling = Filling.of(round)
    while True:
        options = naive_options(round, filling.taken, length)
        assert filling.options().nonzero()[0].tolist() == options
        assert filling.left == len(options)
        if not options:
            break
        filling.take(data.draw(st.sampled_from(options)))
    assert set(row_rules(round).required) <= set(filling.taken)
    assert keeps(row_rules(round), filling.taken)
    if len(not_none(round.rules).caps) < 2:  # a matroid: no order gets stuck
        assert len(filling.taken) == length
    assert len(filling.taken) <= length


@settings(max_examples=100, deadline=None)
@given(round=rounds())
def test_the_longest_slate_is_the_largest_allowed_set(round: Round) -> None:
    found, largest = longest(round), naive_longest(round)
    if len(not_none(round.rules).caps) < 2:
        assert found == largest
    else:  # an upper bound, and that of each cap by itself
        assert found >= largest


def test_an_arm_that_may_not_be_added_is_refused_and_changes_nothing() -> None:
    filling = Filling.of(six(required=[60], caps=(Cap(CATEGORIES, 1),)))
    filling.take(0)
    before = filling.options().copy()
    for row in (0, 1, -1, 6):
        with pytest.raises(DataError, match="expected an arm that may be added"):
            filling.take(row)
    assert filling.taken == [0]
    assert (filling.options() == before).all()


@settings(max_examples=60, deadline=None)
@given(round=rounds(most_arms=5))
def test_keeping_the_rules_is_being_a_longest_allowed_set(round: Round) -> None:
    assume(len(not_none(round.rules).caps) < 2)
    required, length = set(row_rules(round).required), longest(round)
    for size in range(len(round.arm_ids) + 1):
        for rows in combinations(range(len(round.arm_ids)), size):
            fits = all(row in naive_options(round, rows[:place], length) for place, row in enumerate(rows))
            assert keeps(row_rules(round), rows) == (fits and size == length and required <= set(rows))
    assert not keeps(row_rules(round), [0] * length) or length < 2
    assert not keeps(row_rules(round), [len(round.arm_ids)])


# --- slates within the rules ----------------------------------------------------------------------------------------


def naive_greedy(round: Round, values: dict[int, float]) -> list[int]:
    """Required arms, then arms by (−value, id), each if the rules still allow it."""
    ids = round.arm_ids.tolist()
    chosen = list(row_rules(round).required)
    for row in sorted(range(len(ids)), key=lambda row: (-values[ids[row]], ids[row])):
        if row in naive_options(round, chosen, round.slate_size):
            chosen.append(row)
    return chosen


@settings(max_examples=150, deadline=None)
@given(round=rounds(full=True), seed=st.integers(0, 1000))
def test_top_k_within_the_rules_is_the_greedy_basis(round: Round, seed: int) -> None:
    """Fails when answers are taken past the caps, when required arms come late, or when full groups are asked for."""
    policy, caps = valued(round, seed), not_none(round.rules).caps
    slate = within_rules(round, policy.choose)
    assert sorted(slate.positions.tolist()) == sorted(naive_greedy(round, policy.values))
    assert all(part.rules is None for part in policy.asked)
    assert len(policy.asked) <= round.slate_size
    rows = row_rules(round)
    if len(caps) < 2:
        groups = caps[0].groups if caps else torch.zeros(len(round.arm_ids), dtype=torch.int64)
        cap = caps[0].most if caps else round.slate_size
        kept = constraints.Rules(
            torch.from_numpy(rows.allowed), torch.tensor(rows.required, dtype=torch.int64), groups, cap
        )
        values = torch.tensor([policy.values[arm] for arm in round.arm_ids.tolist()], dtype=torch.float64)
        basis = greedy_basis(values, round.arm_ids, kept, round.slate_size)
        assert sorted(slate.positions.tolist()) == sorted(basis.tolist())
        assert float(values[slate.positions].sum()) == best_sum(round, values)
    ids = round.arm_ids[slate.positions].tolist()
    assert (slate.means + slate.bonuses).tolist() == sorted((policy.values[arm] for arm in ids), reverse=True)
    assert [policy.values[arm] for arm in ids] == (slate.means + slate.bonuses).tolist()
    assert not_none(slate.propensities).tolist() == [1.0] * len(ids)


def best_sum(round: Round, values: Tensor) -> float:
    slates = combinations(range(len(round.arm_ids)), round.slate_size)
    return max(float(values[list(rows)].sum()) for rows in slates if keeps(row_rules(round), rows))


def test_rules_that_do_not_bind_cost_one_question_and_change_nothing() -> None:
    policy = TopK({10: 1.0, 20: 2.0, 30: 3.0, 40: 4.0, 50: 5.0, 60: 6.0})
    round = six(excluded=[70], caps=(Cap(torch.tensor([0, 0, 1, 1, 2, 3]), 1), Cap(CATEGORIES, 3)), k=2)
    slate = within_rules(round, policy.choose)
    assert len(policy.asked) == 1
    assert policy.asked[0].profiles is round.profiles
    assert slate.positions.tolist() == [5, 4]
    assert slate.cluster == 3


def test_a_round_without_rules_is_played_as_it_is() -> None:
    policy, round = TopK({0: 0.0, 1: 1.0, 2: 2.0}), Round(1, torch.arange(3), torch.ones(3, 2), None, 2)
    assert policy.select(round).positions.tolist() == [2, 1]
    assert policy.asked[0] is round
    assert within_rules(round, policy.choose).positions.tolist() == [2, 1]
    assert policy.asked[1] is round


def answered(rows: Sequence[int], explored: Sequence[bool] | None, propensity: float, bonus: float = 0.0) -> Slate:
    k = len(rows)
    means, bonuses = torch.tensor([0.1 * row for row in rows]), torch.full((k,), bonus)
    given = None if explored is None else torch.tensor(explored)
    return Slate(torch.tensor(rows), means, bonuses, torch.full((k,), propensity), cluster=1, explored=given)


def test_one_answer_that_enters_whole_keeps_its_order_and_its_chances() -> None:
    slate = within_rules(six(excluded=[10], k=2), lambda part: answered([1, 3], [False, True], 0.25))
    assert slate.positions.tolist() == [2, 4]  # not ordered by mean: 0.1 before 0.3
    assert not_none(slate.propensities).tolist() == [0.25, 0.25]
    assert not_none(slate.explored).tolist() == [False, True]
    assert slate.cluster == 1


def test_several_answers_are_ordered_by_mean_and_bonus_with_explored_arms_last() -> None:
    def choose(part: Round) -> Slate:
        if part.slate_size == 1:  # the required arm 40: row 3, mean 0, bonus 0.2
            return answered([0], None, 1.0, bonus=0.2)
        return answered([1, 4], [False, True], 0.5)  # of arms 10, 20, 30, 50, 60: rows 1 and 5

    slate = within_rules(six(required=[40]), choose)
    assert slate.positions.tolist() == [3, 1, 5]
    assert slate.means.tolist() == pytest.approx([0.0, 0.1, 0.4])
    assert slate.bonuses.tolist() == pytest.approx([0.2, 0.0, 0.0])
    assert not_none(slate.explored).tolist() == [False, False, True]
    assert slate.propensities is None
    assert slate.cluster is None


def test_rounds_that_cannot_be_filled_are_refused_with_the_length_that_can() -> None:
    policy = TopK(dict.fromkeys(range(10, 70, 10), 0.0))
    with pytest.raises(DataError, match=r"leave k = 4 arms, but only 3 fit; ask for slate_size=3"):
        within_rules(six(k=4, caps=(Cap(CATEGORIES, 1),)), policy.choose)
    assert policy.asked == []


def test_several_caps_may_end_a_slate_early() -> None:
    """Arms (0, 0), (0, 1), (1, 0) with one per row and one per column: two fit, but not besides the first."""
    caps = (Cap(torch.tensor([0, 0, 1]), 1), Cap(torch.tensor([0, 1, 0]), 1))
    round = Round(1, torch.arange(3), torch.ones(3, 2), None, 2, rules=Rules(caps=caps))
    assert longest(round) == 2
    first = within_rules(round, TopK({0: 3.0, 1: 2.0, 2: 1.0}).choose)
    assert first.positions.tolist() == [0]
    assert not_none(first.propensities).tolist() == [1.0]
    assert within_rules(round, TopK({0: 1.0, 1: 2.0, 2: 3.0}).choose).positions.tolist() == [2, 1]


@pytest.mark.parametrize("rows", [[0], [0, 0], [0, 5], [-1, 0], [0, 1, 2]])
def test_answers_that_are_no_slate_are_refused(rows: list[int]) -> None:
    with pytest.raises(DataError, match="expected 2 distinct rows below 5 from the policy"):
        within_rules(six(excluded=[10], k=2), lambda part: answered(rows, None, 1.0))


# --- the decorator --------------------------------------------------------------------------------------------------


def test_a_decorated_policy_keeps_the_rules_and_its_name() -> None:
    policy = TopK({arm: float(arm) for arm in range(10, 70, 10)})
    slate = policy.select(six(required=[10], caps=(Cap(CATEGORIES, 1),)))
    assert sorted(slate.positions.tolist()) == [0, 4, 5]
    assert TopK.select.__name__ == "select"


def test_a_slate_beyond_the_policys_is_refused_though_its_parts_are_not() -> None:
    policy = TopK(dict.fromkeys(range(10, 70, 10), 0.0), k=2)
    with pytest.raises(DataError, match="slates of up to 2, the round asks for 4"):
        policy.select(six(k=4, required=[10, 20]))
    assert policy.asked == []


def test_further_arguments_are_handed_on() -> None:
    class Told(TopK):
        @keeps_rules
        def select(self, round: Round, add: float = 0.0) -> Slate:
            slate = self.choose(round)
            return Slate(slate.positions, slate.means + add, slate.bonuses)

    policy = Told(dict.fromkeys(range(10, 70, 10), 0.0))
    assert policy.select(six(required=[30]), add=2.0).means.tolist() == [1.0] * 3
