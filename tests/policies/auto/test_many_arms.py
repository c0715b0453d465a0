"""Selections by compiled loops equal those of plain products, and a catalogue that stays is read once."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import random_round
from torch import Tensor

from neuclust.core import Feedback, Round
from neuclust.kernels import jit
from neuclust.kernels.scoring.arm_scores import LANES
from neuclust.policies.auto.context_reader import ContextReader
from neuclust.policies.auto.policy import Auto, AutoConfig
from neuclust.randomness import stream

K = 4
READERS = [
    f"neuclust.policies.auto.{name}.serves"
    for name in ("features", "learners.forest_regression", "learners.index_regression", "learners.net_regression")
]


def clustered(t: int, arms: int, dim: int) -> Round:
    """Contexts around five centres."""
    rng, centres = stream(3, "test arms", t), 6 * stream(3, "test centres").standard_normal((5, dim))
    rows = centres[rng.integers(5, size=arms)] + rng.standard_normal((arms, dim))
    return Round(t, torch.arange(arms), torch.from_numpy(rows), None, K)


def taught(dim: int, slates: int) -> Auto:
    """A policy after slates out of 120 arms."""
    policy = Auto(AutoConfig(), dim, K)
    for t in range(1, slates + 1):
        round = clustered(t, 120, dim)
        slate = policy.select(round)
        rewards = (round.profiles[slate.positions, 0] > 0).double()
        policy.update(round, slate, Feedback(rewards, rewards.mean()))
    return policy


@pytest.fixture(scope="module")
def policies() -> dict[int, Auto]:
    """By the number of features; all of them found clusters, so that every learner is there."""
    found = {dim: taught(dim, 12) for dim in (3, 5)}
    for policy in found.values():
        assert policy.ensemble is not None
        assert set(policy.ensemble.learners) > {"local", "index", "net", "logistic"}
    return found


def plain(policy: Auto, round: Round, patch: pytest.MonkeyPatch) -> tuple[Tensor, dict[str, Tensor]]:
    """The slate and every learner's scores without compiled loops."""
    for name in READERS:
        patch.setattr(name, lambda *_: False)
    return policy.select(round).positions, scores(policy, round)


def scores(policy: Auto, round: Round) -> dict[str, Tensor]:
    """By learner."""
    assert policy.ensemble is not None
    features, group = ContextReader().read(policy.ensemble.blocks, round.contexts)
    return {name: one.scores(features, round.t)[0][group] for name, one in policy.ensemble.learners.items()}


@pytest.mark.skipif(not jit.available, reason="Numba is not installed")
@settings(deadline=None, max_examples=25)
@given(
    arms=st.sampled_from([K, LANES - 1, LANES, LANES + 1, 5 * LANES + 3]), dim=st.sampled_from([3, 5]),
    t=st.integers(1000, 1020), repeated=st.booleans(),
)  # fmt: skip
def test_slates_equal_those_of_plain_products(
    policies: dict[int, Auto], arms: int, dim: int, t: int, repeated: bool
) -> None:
    round = clustered(t, arms, dim)
    if repeated:  # every context twice: ties go to the smaller arm id
        round = replace(round, profiles=round.profiles[torch.arange(arms) // 2])
    policy, found = policies[dim], scores(policies[dim], round)
    slate = policy.select(round).positions
    with pytest.MonkeyPatch.context() as patch:
        expected, references = plain(policy, round, patch)
    for name, reference in references.items():
        torch.testing.assert_close(found[name], reference, rtol=1e-9, atol=1e-9, msg=name)
    assert slate.tolist() == expected.tolist()


def test_masked_and_wide_contexts_are_scored_by_plain_products() -> None:
    for dim, query in ((5, torch.tensor([1.0, 0, 1, 0, 1])), (70, None)):
        policy, round = Auto(AutoConfig(), dim, K), replace(random_round(1, 30, dim, K), query=query)
        policy.settle(round)
        assert policy.ensemble is not None
        features, group = ContextReader().read(policy.ensemble.blocks, round.contexts)
        assert not features.compiled
        assert torch.equal(features.x[group], policy.ensemble.blocks.scaled(round.contexts))


def test_a_catalogue_that_stays_is_read_once_until_it_is_written_into(policies: dict[int, Auto]) -> None:
    assert policies[3].ensemble is not None
    blocks, reader, z = policies[3].ensemble.blocks, ContextReader(), clustered(1, 50, 3).profiles
    first = reader.read(blocks, z)[0]
    assert reader.read(blocks, z)[0] is first
    assert reader.read(replace(blocks, scale=2.0), z)[0] is not first
    again = reader.read(blocks, z)[0]
    z[0] = 0.0
    written = reader.read(blocks, z)[0]
    assert written is not again
    assert torch.equal(written.x, blocks.scaled(z))
    assert reader.read(blocks, z.clone())[0] is not written


def test_a_catalogue_is_not_kept_alive(policies: dict[int, Auto]) -> None:
    assert policies[3].ensemble is not None
    reader, z = ContextReader(), clustered(1, 50, 3).profiles
    reader.read(policies[3].ensemble.blocks, z)
    assert reader._latest is not None
    assert reader._latest[0]() is z
    del z
    assert reader._latest[0]() is None
