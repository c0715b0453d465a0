"""The commands that play runs again name every option and seed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from invented_records import invented

from neuclust.analysis.groups import problems
from neuclust.cli.provenance import commands, commands_of, stretches


@given(st.sets(st.integers(0, 40)))
def test_stretches_hold_every_seed_once_and_never_touch(seeds: set[int]) -> None:
    found = stretches(seeds)
    assert [seed for stretch in found for seed in stretch] == sorted(seeds)
    assert all(later.start > earlier.stop for earlier, later in pairwise(found))


def test_commands_repeat_every_option_and_seed() -> None:
    more: dict[str, Any] = {"env": "ratings", "problem": {"slate_reward": "mean", "start_ratings": None}}
    runs = [
        invented("neuclust", seed, 5.0, preset="paper", clusters=7, settings={"a b": "x y"}, **more)
        for seed in (3, 4, 9)
    ]
    (problem,) = problems(runs)
    common = (
        "neuclust run --data ratings.npz --rounds 100 --slate-size 5 --slate-reward mean "
        "--policy neuclust:paper --clusters 7 --set 'a b=x y'"
    )
    assert (
        commands(problem)
        == commands_of(runs)
        == [f"{common} --seeds 2 --first-seed 3", f"{common} --seeds 1 --first-seed 9"]
    )
