"""Condition 1 and Theorem 1's choices: plain powers where they fit, logarithms where they do not."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from neuclust.errors import ConfigError
from neuclust.theory.conditions import Sizes, condition_1, contraction, theorem_1

SMALL = Sizes(rounds=20, arms=7, slate_size=3, width=50, depth=2, ridge=0.5, confidence=0.05)
MOVIELENS = Sizes(rounds=1000, arms=10168, slate_size=5, width=20, depth=1)


def test_every_line_is_its_formula() -> None:
    t, n, k, m, depth, ridge, delta = 20, 7, 3, 50, 2, 0.5, 0.05
    tk, floor = t * k, 0.1
    asked = [
        depth**-1.5 * k**-0.5 * ridge**0.5 * math.log(t * n * depth**2 / delta) ** 1.5,
        (t * n * depth) ** 6 * math.log(t**2 * n**2 * depth / delta) * max(floor**-4, 1),
        tk * depth**12 / ridge,
        tk**7 * depth**24 / ridge**7,
        tk**10 * depth**24 / ridge,
        tk**7 * depth**21 / ridge**7 * (ridge + tk * depth) ** 6 * (1 + math.sqrt(tk / ridge)) ** 6,
    ]
    lines = condition_1(SMALL, floor)
    assert [line.required for line in lines] == pytest.approx([math.log10(each) for each in asked])
    here = [math.log10(m), math.log10(m / math.log(m) ** 3)]
    assert [line.actual for line in lines] == pytest.approx([here[line.name != "m"] for line in lines])
    assert [line.holds for line in lines] == [
        math.log10(a) <= line.actual for a, line in zip(asked, lines, strict=True)
    ]
    assert {line.holds for line in lines} == {True, False}


def test_the_papers_experiment_is_as_far_from_its_condition_as_stated() -> None:
    lines = condition_1(MOVIELENS, 1.0)
    assert lines[1].required > 42
    assert lines[-1].required == pytest.approx(59, abs=0.5)
    assert condition_1(MOVIELENS, 0.0)[1].required == math.inf
    assert condition_1(MOVIELENS, 1e-3)[1].required == pytest.approx(lines[1].required + 12)


def test_a_width_whose_powers_no_float_holds_is_a_logarithm() -> None:
    huge = replace(MOVIELENS, width=3e300)
    assert all(line.holds for line in condition_1(huge, 1.0))
    assert condition_1(huge, 1.0)[0].actual == pytest.approx(300 + math.log10(3))
    assert theorem_1(huge).step == pytest.approx(1e-300 / 3 / 5001)
    with pytest.raises(ConfigError, match="width"):
        replace(MOVIELENS, width=10**400)


def test_j_is_what_descent_needs_and_the_printed_one_is_negative() -> None:
    choices = theorem_1(MOVIELENS)
    assert choices.steps == 127_786  # SPEC, A25
    assert choices.printed_steps == pytest.approx(-127_760, abs=1)
    assert choices.step == pytest.approx(1 / (5000 * 20 + 20))
    assert choices.least_ridge == 5
    assert contraction(MOVIELENS, choices.step, choices.steps) <= 1
    assert contraction(MOVIELENS, choices.step, choices.steps - 200) > 1


@pytest.mark.parametrize("name", ["rounds", "width", "ridge", "confidence"])
def test_sizes_that_cannot_be_are_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        replace(MOVIELENS, **{name: 0})
