"""Small rounds with rules, and what the rules mean by their definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import torch
from hypothesis import assume
from hypothesis import strategies as st

from neuclust.core import Cap, Round, Rules
from neuclust.slates.rules import longest


@st.composite
def rounds(draw: st.DrawFn, most_arms: int = 6, most_slots: int = 4, full: bool = False) -> Round:
    """Rounds of a few arms with required and excluded ones and up to two caps that can be kept; `full`: k = k′ > 0."""
    n, k = draw(st.integers(1, most_arms)), draw(st.integers(1, most_slots))
    ids = draw(st.permutations(range(3, 3 + 2 * n, 2)))
    caps = []
    for _ in range(draw(st.integers(0, 2))):
        groups = draw(st.lists(st.sampled_from([-4, 0, 7]), min_size=n, max_size=n))
        caps.append(Cap(torch.tensor(groups), draw(st.integers(1, 2))))
    excluded = draw(st.sets(st.sampled_from([*ids, 100]), max_size=n))
    free = [arm for arm in ids if arm not in excluded]
    required = draw(st.lists(st.sampled_from(free), unique=True, max_size=min(k, 2))) if free else []
    rules = Rules(
        torch.tensor(required, dtype=torch.int64), torch.tensor(sorted(excluded), dtype=torch.int64), tuple(caps)
    )
    profiles = torch.arange(2.0 * n, dtype=torch.float64).reshape(n, 2)
    round = Round(1, torch.tensor(ids), profiles, None, k, rules=rules)
    assume(_within_caps(round, [ids.index(arm) for arm in required]))
    if full:
        k = longest(round)
        assume(k > 0)
    return replace(round, slate_size=k)


def _rows(round: Round, ids: torch.Tensor) -> set[int]:
    return {row for row, arm in enumerate(round.arm_ids.tolist()) if arm in ids.tolist()}


def _within_caps(round: Round, rows: Sequence[int]) -> bool:
    caps = () if round.rules is None else round.rules.caps
    return all(max(Counter(cap.groups[list(rows)].tolist()).values(), default=0) <= cap.most for cap in caps)


def naive_options(round: Round, chosen: Sequence[int], length: int) -> list[int]:
    """A(S) by its definition: new arms a, not excluded, with S ∪ {a} ∪ R within the caps and of at most k′ members."""
    rules = Rules() if round.rules is None else round.rules
    required, excluded = _rows(round, rules.required), _rows(round, rules.excluded)
    found = []
    for row in range(len(round.arm_ids)):
        union = {*chosen, row, *required}
        if row not in chosen and row not in excluded and len(union) <= length and _within_caps(round, sorted(union)):
            found.append(row)
    return found


def naive_longest(round: Round) -> int:
    """The size of the largest set, of at most k arms, that is allowed and holds the required arms."""
    rules = Rules() if round.rules is None else round.rules
    required, excluded = _rows(round, rules.required), _rows(round, rules.excluded)
    free = [row for row in range(len(round.arm_ids)) if row not in excluded]
    sizes = range(min(round.slate_size, len(free)), -1, -1)
    sets = (rows for size in sizes for rows in combinations(free, size))
    return next(len(rows) for rows in sets if required <= set(rows) and _within_caps(round, rows))


def finished_slates(round: Round, length: int) -> dict[tuple[int, ...], bool]:
    """Every sequence of distinct rows of at most k′ + 1 of them, and whether filling slots by A(S) can end with it."""
    found: dict[tuple[int, ...], bool] = {}
    n = len(round.arm_ids)

    def grow(chosen: tuple[int, ...], reached: bool) -> None:
        options = naive_options(round, chosen, length) if reached else []
        found[chosen] = reached and not options
        if len(chosen) <= length:
            for row in range(n):
                if row not in chosen:
                    grow((*chosen, row), row in options)

    grow((), True)
    return found


def kept(round: Round, chosen: Sequence[int]) -> bool:
    """Whether a slate keeps the round's rules: every arm once and allowed, all required ones, the caps."""
    rules = Rules() if round.rules is None else round.rules
    required, excluded = _rows(round, rules.required), _rows(round, rules.excluded)
    once = len(set(chosen)) == len(chosen)
    return once and required <= set(chosen) and not excluded & set(chosen) and _within_caps(round, chosen)
