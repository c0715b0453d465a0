"""Chances and moments of designs: against the enumeration of all slates, and against each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from ruled_rounds import rounds

from neuclust.core import Cap, Round, Rules
from neuclust.errors import DataError
from neuclust.evaluation import enumeration, pseudo_inverse
from neuclust.evaluation.designs import (
    Drawn,
    Mixture,
    next_chances,
    pair_marginals,
    slot_chances,
    slot_marginals,
)
from neuclust.evaluation.enumeration import MOST_PREFIXES
from neuclust.evaluation.pseudo_inverse import pseudo_inverse_weight
from neuclust.evaluation.support import check_slot_support, check_support
from neuclust.logs.decisions import Design
from neuclust.slates.rules import Filling, longest

Floats = NDArray[np.float64]
Slates = dict[tuple[int, ...], Fraction]


def plain_round(n: int, k: int) -> Round:
    return Round(1, torch.arange(n) + 10, torch.zeros(n, 1), None, k)


def filled(round: Round, order: list[int]) -> tuple[int, ...]:
    """The slate of the arms in this order, each taken while the rules allow it."""
    filling = Filling.of(round)
    while filling.left:
        filling.take(next(row for row in order if filling.allows(row)))
    return tuple(filling.taken)


@st.composite
def designs(draw: st.DrawFn, round: Round) -> Design:
    """Any design of a round, with bases too short, in part twice, and outside the pool."""
    n = len(round.arm_ids)
    rows = st.lists(st.integers(0, n - 1), max_size=5)
    kind = draw(st.sampled_from(["deterministic", "sequential", "one-coin", "uniform"]))
    share = draw(st.sampled_from([0.05, 0.5, 1.0]))
    order = draw(st.permutations(range(n)))
    if kind == "sequential":
        anywhere = draw(st.sampled_from([0.2, 1.0]))
        return Design("sequential", tuple(draw(rows)), share, tuple(draw(rows)), anywhere)
    if kind == "uniform":
        return Design("uniform")
    return Design("deterministic" if kind == "deterministic" else "one-coin", filled(round, list(order)), share)


@st.composite
def drawn_rounds(draw: st.DrawFn) -> tuple[Round, Drawn]:
    if draw(st.booleans()):
        round = plain_round(draw(st.integers(1, 5)), draw(st.integers(1, 4)))
    else:
        round = draw(rounds(most_arms=5, full=True))
    if draw(st.integers(0, 3)) == 0:
        return round, Mixture(tuple(draw(designs(round)) for _ in range(draw(st.integers(1, 3)))))
    return round, draw(designs(round))


def slates_of(drawn: Drawn, round: Round) -> dict[tuple[int, ...], float]:
    """Every slate of up to k′ arms and its chance, the product of its slots' chances."""
    n = len(round.arm_ids)
    slates = [slate for length in range(1, longest(round) + 1) for slate in permutations(range(n), length)]
    return {slate: float(slot_chances(drawn, round, slate).prod()) for slate in slates}


@settings(max_examples=30)
@given(drawn_rounds())
def test_chances_of_slates_sum_to_one(case: tuple[Round, Drawn]) -> None:
    """Fails when a slate of any design or mixture has a chance too many or too few."""
    round, drawn = case
    assert sum(slates_of(drawn, round).values()) == pytest.approx(1, abs=1e-12)


SEQUENTIAL = [  # base, pool: whole and short bases, in the pool, partly and outside, with a repeated arm, without any
    ((2, 0, 3), (2, 0, 3, 1)),
    ((2, 0, 3), (0, 1)),
    ((2, 0, 3), ()),
    ((2,), (0, 1, 3)),
    ((2, 2, 0), (1,)),
    ((), (3, 1)),
    ((3, 1, 0, 2), (2,)),
]
SIZES = [(4, 2), (5, 3), (4, 4)]
RULES = [None, Rules(required=torch.tensor([11])), Rules(excluded=torch.tensor([13]))]
GROUPS = [[0, 0, 1, 1, 2], [0, 1, 1, 2, 0]]  # one arm of each group: slates of 0 and 2 end there, 1, 3 and 4 are three
EARLY = Rules(caps=tuple(Cap(torch.tensor(groups), 1) for groups in GROUPS))


def swept() -> list[tuple[Round, Drawn]]:
    """Every kind of design by itself, of several sizes, without rules and with them; and two mixtures of each size."""
    found: list[tuple[Round, Drawn]] = []
    for n, k in SIZES:
        for rules in [*RULES, EARLY] if n == 5 else RULES:
            round = replace(plain_round(n, k), rules=rules)
            round = replace(round, slate_size=longest(round))
            slate, other = filled(round, [2, 0, 3, 1, 4]), filled(round, [1, 3, 2, 0, 4])
            kinds = [Design("uniform"), Design("deterministic", slate), Design("one-coin", slate, 0.3)]
            kinds += [Design("sequential", base, 0.3, pool, 0.4) for base, pool in SEQUENTIAL]
            mixtures = [Mixture((kinds[1], Design("deterministic", other))), Mixture((kinds[2], kinds[4], kinds[6]))]
            found += [(round, kind) for kind in kinds]
            found += [(round, mixture) for mixture in mixtures]
    return found


SWEPT = swept()


@pytest.mark.parametrize("case", SWEPT)
def test_marginals_and_pairs_are_sums_over_all_slates(case: tuple[Round, Drawn]) -> None:
    """Fails when moments by classes, or those under rules, are not the ones of the slates' chances."""
    check_moments(*case)


@settings(max_examples=30)
@given(drawn_rounds())
def test_marginals_and_pairs_of_odd_rounds_are_sums_too(case: tuple[Round, Drawn]) -> None:
    """Fails when single arms, slates of all arms or several caps are summed wrongly."""
    check_moments(*case)


def check_moments(round: Round, drawn: Drawn) -> None:
    k, n = round.slate_size, len(round.arm_ids)
    first, second = np.zeros((k, n)), np.zeros((k * n, k * n))
    for slate, chance in slates_of(drawn, round).items():
        shown = np.zeros((k, n))
        shown[range(len(slate)), list(slate)] = 1.0
        first += chance * shown
        second += chance * np.outer(shown, shown)
    np.testing.assert_allclose(slot_marginals(drawn, round), first, atol=1e-13)
    np.testing.assert_allclose(pair_marginals(drawn, round), second, atol=1e-13)


@pytest.mark.parametrize("case", SWEPT)
def test_what_follows_a_prefix_has_the_chances_of_the_slots(case: tuple[Round, Drawn]) -> None:
    """Fails when P(a | S) of all arms is not the chance that a slot of a slate has."""
    round, drawn = case
    for slate, chance in slates_of(drawn, round).items():
        if chance > 0:
            following = [next_chances(drawn, round, slate[:place]) for place in range(len(slate))]
            found = [row[arm] for row, arm in zip(following, slate, strict=True)]
            np.testing.assert_allclose(found, slot_chances(drawn, round, slate), atol=1e-12)
            np.testing.assert_allclose(np.sum(following, axis=1), 1, atol=1e-12)
            assert not next_chances(drawn, round, slate).any()


def test_what_cannot_be_has_no_chance() -> None:
    """Fails when a slate, or what follows it, gets a chance after a slot that its design cannot fill so."""
    round, certain = plain_round(5, 3), Design("deterministic", (2, 0, 1))
    assert slot_chances(certain, round, (2, 1, 0)).tolist() == [1, 0, 0]
    assert slot_chances(certain, round, (2, 0)).tolist() == [1, 0]
    assert slot_chances(certain, round, (2, 0, 1)).tolist() == [1, 1, 1]
    assert not next_chances(certain, round, (0,)).any()
    assert slot_chances(Design("uniform"), round, (3, 3, 0)).tolist() == [0.2, 0, 0]


# --- the pseudo-inverse ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", SWEPT)
def test_weights_are_those_of_the_whole_pseudo_inverse(case: tuple[Round, Drawn]) -> None:
    """Fails when the inverses by classes, or the scaled one, give another weight than q_πᵀ Γ⁺ 1_S."""
    round, logging = case
    orders = [[2, 0, 3, 1, 4], [0, 2, 1, 3, 4], [4, 1, 3, 0, 2] if len(round.arm_ids) > 4 else [3, 1, 2, 0]]
    certain = [Design("deterministic", filled(round, order)) for order in orders]
    targets: list[Drawn] = [*certain, Mixture(tuple(certain)), Design("sequential", (1, 0), 0.5, (1, 0, 3), 0.2)]
    for target in targets:
        check_weights(round, logging, target)


@settings(max_examples=30)
@given(drawn_rounds(), st.data())
def test_weights_of_odd_rounds_are_those_of_the_whole_pseudo_inverse(
    case: tuple[Round, Drawn], data: st.DataObject
) -> None:
    """Fails when single arms, slates of all arms or several caps get another weight."""
    check_weights(*case, data.draw(designs(case[0])))


def check_weights(round: Round, logging: Drawn, target: Drawn) -> None:
    gamma, wanted = pair_marginals(logging, round), slot_marginals(target, round).reshape(-1)
    inverse = np.linalg.pinv(gamma, rcond=1e-10, hermitian=True)
    supported = bool(np.abs(gamma @ inverse @ wanted - wanted).max() < 1e-8)
    for slate, chance in slates_of(logging, round).items():
        if chance > 0 and supported:
            at = np.arange(len(slate)) * len(round.arm_ids) + np.array(slate)
            weight = pseudo_inverse_weight(logging, target, round, slate)
            assert weight == pytest.approx(wanted @ inverse[:, at].sum(1), rel=1e-6, abs=1e-6)
        elif chance > 0:
            with pytest.raises(DataError, match="missing support"):
                pseudo_inverse_weight(logging, target, round, slate)


@pytest.mark.parametrize("logging", [Design("uniform"), Design("one-coin", (7, 3, 5, 1, 0), 0.2)])
def test_weights_of_a_target_that_logged_are_one(logging: Design) -> None:
    """Fails when a policy is not worth what it earned itself, among many arms."""
    round = plain_round(300, 5)
    for slate in [(7, 3, 5, 1, 0), (20, 299, 4, 7, 60)]:
        assert pseudo_inverse_weight(logging, logging, round, slate) == pytest.approx(1, abs=1e-9)


def test_rare_arms_keep_their_digits() -> None:
    """Fails when arms of tiny chances in late slots are taken for ones without support."""
    round, base = plain_round(300, 5), (7, 3, 5, 1, 0)
    logging = Design("sequential", base, 0.02, tuple(range(20)), 0.2)
    target = Design("deterministic", (3, 200, 7, 1, 5))
    slates = [base, (3, 7, 5, 1, 0), (3, 200, 7, 1, 5), (7, 3, 5, 1, 250)]
    weights = [pseudo_inverse_weight(logging, target, round, slate) for slate in slates]
    assert weights[2] > 100
    assert pseudo_inverse_weight(logging, logging, round, base) == pytest.approx(1, abs=1e-9)
    everyone = [pseudo_inverse_weight(logging, Design("uniform"), round, slate) for slate in slates]
    assert np.isfinite(everyone).all()


def exact_chances(n: int, k: int, base: list[int], pool: list[int], share: Fraction, anywhere: Fraction) -> Slates:
    """Every slate with its chance by the formula of P(a | S), in fractions."""
    found: Slates = {}
    for slate in permutations(range(n), k):
        chance = Fraction(1)
        for place, arm in enumerate(slate):
            left = [row for row in range(n) if row not in slate[:place]]
            best = next((row for row in base if row in left), None)
            inside = [row for row in pool if row in left] or left
            explored = anywhere / len(left) + (1 - anywhere) * (arm in inside) / len(inside)
            epsilon = Fraction(1) if best is None else share
            chance *= epsilon * explored + (1 - epsilon) * (arm == best)
        found[slate] = chance
    return found


def solved(gamma: list[list[Fraction]], wanted: list[Fraction]) -> list[Fraction]:
    """A solution of Γ x = q by elimination in fractions; it exists where the target is supported."""
    rows, size = [[*row, right] for row, right in zip(gamma, wanted, strict=True)], len(wanted)
    pivots: list[int] = []
    for column in range(size):
        at = next((row for row in range(len(pivots), size) if rows[row][column] != 0), None)
        if at is None:
            continue
        done = len(pivots)
        rows[done], rows[at] = rows[at], rows[done]
        rows[done] = [value / rows[done][column] for value in rows[done]]
        for row in range(size):
            if row != done and rows[row][column] != 0:
                factor = rows[row][column]
                rows[row] = [value - factor * top for value, top in zip(rows[row], rows[done], strict=True)]
        pivots.append(column)
    assert all(row[-1] == 0 for row in rows[len(pivots) :])
    found = [Fraction(0)] * size
    for row, column in enumerate(pivots):
        found[column] = rows[row][-1]
    return found


def test_tiny_exploration_keeps_its_digits() -> None:
    """Fails when ε^k is lost in rounding: here the base's first arm is left out once in 10¹² slates, and weights are
    still those of exact fractions."""
    n, k, base, pool = 5, 3, [3, 0, 1], [3, 0, 1, 2]
    chances = exact_chances(n, k, base, pool, Fraction(1, 10**4), Fraction(1, 5))
    at = {slate: [place * n + arm for place, arm in enumerate(slate)] for slate in chances}
    gamma = [[Fraction(0)] * (k * n) for _ in range(k * n)]
    for slate, chance in chances.items():
        for row in at[slate]:
            for column in at[slate]:
                gamma[row][column] += chance
    logging = Design("sequential", tuple(base), 1e-4, tuple(pool), 0.2)
    for target in [(3, 2, 0), (2, 4, 0), (0, 3, 1)]:
        solution = solved(gamma, [Fraction(cell in at[target]) for cell in range(k * n)])
        for slate in chances:
            wanted = float(sum(solution[cell] for cell in at[slate]))
            found = pseudo_inverse_weight(logging, Design("deterministic", target), plain_round(n, k), slate)
            assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_decisions_of_one_shape_differ_in_labels_alone() -> None:
    """Fails when relabelled decisions do not have the same weight, or the second one inverts anew."""
    first, second = plain_round(200, 5), plain_round(200, 5)
    one = Design("sequential", (0, 1, 2, 3, 4), 0.11, tuple(range(20)), 0.2)
    move = np.random.default_rng(0).permutation(200)
    other = replace(one, base=tuple(move[list(one.base)].tolist()), pool=tuple(move[list(one.pool)].tolist()))
    target, slate = (1, 0, 150, 4, 12), (0, 1, 150, 3, 4)
    weight = pseudo_inverse_weight(one, Design("deterministic", target), first, slate)
    inverted = pseudo_inverse._inverses.cache_info().misses
    moved = Design("deterministic", tuple(move[list(target)].tolist()))
    again = pseudo_inverse_weight(other, moved, second, tuple(move[list(slate)].tolist()))
    assert pseudo_inverse._inverses.cache_info().misses == inverted
    assert again == pytest.approx(weight, rel=1e-12)


# --- refusals -------------------------------------------------------------------------------------------------------


def test_unknown_designs_and_foreign_rows_are_refused() -> None:
    """Fails when chances are made up for a design that gives none."""
    round = plain_round(5, 2)
    calls: list[Callable[[Design], Floats]] = [
        lambda d: slot_chances(d, round, (0, 1)),
        lambda d: slot_marginals(d, round),
    ]
    calls += [lambda d: next_chances(d, round, ()), lambda d: pair_marginals(d, round)]
    bad = {
        "unknown": Design("unknown"),
        "below 5": Design("sequential", (7,), 0.1),
        "distinct": Design("deterministic", (1, 1)),
        "cannot grow": Design("one-coin", (1,), 0.1),
        "share": Design("sequential", (1,), 1.5),
        "anywhere": Design("sequential", (1,), 0.5, (1,), 0.0),
    }
    for call in calls:
        for word, design in bad.items():
            with pytest.raises(DataError, match=word):
                call(design)
    with pytest.raises(DataError, match="at least one"):
        Mixture(())


def test_too_many_slates_under_rules_are_refused_with_advice() -> None:
    """Fails when marginals of a large round with rules run on without end."""
    round = replace(plain_round(60, 4), rules=Rules(excluded=torch.tensor([10])))
    with pytest.raises(DataError, match=f"at most {MOST_PREFIXES} .* use ips"):
        slot_marginals(Design("uniform"), round)
    with pytest.raises(DataError, match="use ips"):
        slot_marginals(Design("sequential", tuple(range(30)), 0.1), plain_round(100, 30))


def test_support_of_slates() -> None:
    """Fails when a target that plays what the log never could is taken as supported, or a supported one is not."""
    round = plain_round(5, 2)
    certain, other, mixed = Design("deterministic", (1, 0)), Design("deterministic", (0, 1)), Design("uniform")
    check_support(mixed, certain, round)
    check_support(Design("one-coin", (1, 0), 0.1), Mixture((certain, other)), round)
    check_support(Mixture((certain, other)), other, round)
    check_support(Design("sequential", (1, 0), 0.0), certain, round)
    check_support(certain, certain, round)
    for logging, target in [(certain, other), (certain, mixed), (Design("sequential", (1, 0), 0.0), other)]:
        with pytest.raises(DataError, match="missing support"):
            check_support(logging, target, round)
    check_slot_support(Mixture((certain, Design("deterministic", (2, 3)))), Design("deterministic", (1, 3)), round)
    with pytest.raises(DataError, match="row 3 in slot 1"):
        check_slot_support(certain, Design("deterministic", (3, 0)), round)


def test_marginals_of_many_arms_are_not_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when marginals of 300 arms and slates of 5 need slate by slate, or do not add up."""
    monkeypatch.setattr(enumeration, "MOST_PREFIXES", 0)
    found = slot_marginals(Design("sequential", (7, 3, 5, 1, 0), 0.23, (7, 3, 9), 0.2), plain_round(300, 5))
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-12)
    assert (found.sum(0) <= 1 + 1e-12).all()
    assert (found > 0).all()
