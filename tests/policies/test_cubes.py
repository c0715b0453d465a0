"""CC-MAB against a dictionary of integer tuples."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_problems import small_environment

from neuclust.errors import ConfigError
from neuclust.models.encoder import EncoderConfig
from neuclust.policies.tabular import CubeBandit, CubeConfig, parts_per_axis, plays_wanted

DIM, K = 6, 3


def test_cubes_and_plays_wanted_follow_the_formulas() -> None:
    """The sizes the method has on MovieLens and Yelp contexts."""
    assert [parts_per_axis(1000, 1.0, dim) for dim in (1, 2, 20, 171)] == [6, 4, 2, 2]
    assert plays_wanted(1, 1.0, 20) == 0.0
    assert plays_wanted(1000, 1.0, 20) == pytest.approx(12.6, abs=0.05)


@pytest.mark.parametrize(("scale", "clip"), [(0.5, True), (5.0, True), (1.0, False)])
def test_selection_equals_a_dictionary_of_cubes(scale: float, clip: bool) -> None:
    """At scale 0.5 nearly all entries lie beyond 1 and are clipped into the last cube; two queries take turns.

    Fails when cubes are never or always clipped, when the slate is filled with the worst means, or when K(t) loses
    log t.
    """
    environment = small_environment(n=20, horizon=300)
    policy = CubeBandit(CubeConfig(EncoderConfig("scale", rho=scale), horizon=300, clip=clip), DIM, K)
    parts = parts_per_axis(300, 1.0, DIM)
    seen: dict[tuple[int, ...], list[float]] = {}
    kinds = set()
    for t in range(1, 301):
        round = replace(environment.round(1 + t % 2), t=t)
        last = parts - 1 if clip else 1000
        cubes = [tuple(min(int(v * parts), last) for v in row) for row in (round.contexts / scale).tolist()]
        under = {i for i, c in enumerate(cubes) if len(seen.get(c, [])) <= plays_wanted(t, 1.0, DIM)}
        means = [sum(seen[c]) / len(seen[c]) if c in seen else 0.0 for c in cubes]
        slate = policy.select(round)
        chosen = slate.positions.tolist()
        assert slate.means.tolist() == pytest.approx([means[i] for i in chosen])
        if len(under) >= K:
            assert set(chosen) <= under
        else:
            others = sorted(set(range(len(cubes))) - under, key=lambda i: (-means[i], int(round.arm_ids[i])))
            assert chosen == [*sorted(under), *others[: K - len(under)]]
        kinds.add("explore" if len(under) >= K else "mixed" if under else "exploit")
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        for i, reward in zip(chosen, outcome.arm_rewards.tolist(), strict=True):
            seen.setdefault(cubes[i], []).append(reward)
    assert "explore" in kinds
    assert "exploit" in kinds or not clip


def test_the_cube_is_the_same_whichever_columns_are_active() -> None:
    """A masked column is a 0, not a missing column; different cubes keep different names."""
    environment = small_environment()
    policy = CubeBandit(CubeConfig(), DIM, K)
    round = environment.round(2)
    assert round.query is not None
    masked = policy._names(round)
    whole = type(round)(round.t, round.arm_ids, round.contexts, None, K)
    assert torch.equal(masked, policy._names(whole))
    coordinates = (round.contexts / 5 * policy._parts).floor().clamp(0, policy._parts - 1)
    assert len(torch.unique(masked)) == len(torch.unique(coordinates, dim=0))


@pytest.mark.parametrize("change", [{"horizon": 0}, {"smoothness": 0.0}, {"smoothness": math.nan}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"CubeConfig.(horizon|smoothness): expected"):
        CubeConfig(**change)
