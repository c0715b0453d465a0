"""Feature blocks against their formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import random_round
from torch import Tensor

from neuclust.core import Round
from neuclust.errors import ConfigError, StateError
from neuclust.policies.auto.features import MOST_COMPILED, ORDER, BlocksConfig, FeatureBlocks
from neuclust.randomness import stream

D, N = 5, 40
QUERY = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.0], dtype=torch.float64)


def settled(round: Round, config: BlocksConfig | None = None) -> FeatureBlocks:
    blocks = FeatureBlocks.of(config or BlocksConfig(), round)
    assert blocks is not None
    return blocks


def by_hand(z: Tensor, masked: bool) -> dict[str, Tensor]:
    rows: dict[str, list[list[float]]] = {name: [] for name in ORDER}
    for row in z.tolist():
        q = max(1, sum(v != 0 for v in row)) if masked else 1
        rows["constant"].append([1.0])
        rows["pooled"].append([sum(row) / q])
        rows["average"].append([v / q for v in row])
        rows["mask"].append([(v != 0) / q for v in row])
        rows["pooled-square"].append([sum(v * v for v in row) / q])
        rows["squares"].append([v * v / q for v in row])
        rows["crosses"].append([row[i] * row[j] for i in range(len(row)) for j in range(i + 1, len(row))])
    names = ORDER if masked else ("constant", "average", "squares", "crosses")
    return {name: torch.tensor(rows[name], dtype=torch.float64) for name in names}


@pytest.mark.parametrize("masked", [True, False])
def test_blocks_are_their_formulas_divided_by_their_length_in_the_settling_round(masked: bool) -> None:
    first, later = (random_round(t, N, D, 3, query=QUERY if masked else None) for t in (1, 2))
    blocks = settled(first)
    assert blocks.masked == masked
    lengths = {name: float((b**2).sum(1).mean().sqrt()) for name, b in by_hand(first.contexts, masked).items()}
    expected = [block / lengths[name] for name, block in by_hand(later.contexts, masked).items()]
    torch.testing.assert_close(blocks.read(later.contexts).matrix, torch.cat(expected, 1))
    assert blocks.size == sum(block.shape[1] for block in expected)
    assert list(blocks.sizes("crosses").values()) == [block.shape[1] for block in expected]


@pytest.mark.parametrize("masked", [True, False])
def test_products_with_weights_never_need_the_matrix(masked: bool) -> None:
    round = random_round(1, N, D, 3, query=QUERY if masked else None)
    blocks = settled(round)
    features = blocks.read(round.contexts)
    for last in ("mask", "squares", "crosses"):
        size = sum(blocks.sizes(last).values())
        weights = torch.from_numpy(stream(0, "test weights").standard_normal(size))
        torch.testing.assert_close(features.dot(weights), features.matrix[:, :size] @ weights)
        assert torch.equal(features.columns(size), features.matrix[:, :size])


def test_units_do_not_matter() -> None:
    round = random_round(1, N, D, 3, query=QUERY)
    scaled = replace(round, profiles=round.profiles * 2.0**-20)
    assert torch.equal(settled(round).read(round.contexts).matrix, settled(scaled).read(scaled.contexts).matrix)
    assert torch.equal(settled(round).read(round.contexts).inputs, settled(scaled).read(scaled.contexts).inputs)


def test_many_zeros_count_as_a_mask_and_a_few_do_not() -> None:
    round = random_round(1, N, D, 3)
    for share, masked in ((0.02, False), (0.2, True)):
        profiles = round.profiles.clone()
        profiles.view(-1)[: int(share * profiles.numel())] = 0
        assert settled(replace(round, profiles=profiles)).masked == masked


def _flagged(n: int = 60, d: int = 12, even: bool = False) -> Tensor:
    """Contexts of both signs: the second half of the columns is a number where the arm's flag is set, else 0."""
    rng = stream(5, "flagged")
    z, flags = rng.standard_normal((n, d)), rng.random((n, d // 2)) < 0.4
    if even:  # every arm has as many flags
        flags = np.argsort(rng.random((n, d // 2)), axis=1) < 2
    z[:, d // 2 :] *= flags
    return torch.from_numpy(z)


def test_zeros_of_signed_features_are_values_and_those_of_affinities_are_a_mask() -> None:
    """Fails when a feature that happens to be 0 divides all the others by another number of entries."""
    z = _flagged()
    round = replace(random_round(1, len(z), z.shape[1], 3), profiles=z)
    blocks = settled(round)
    assert not blocks.masked
    assert blocks.clusters is None
    assert torch.equal(blocks.read(z).plain[:, 1:13], z / blocks.scale / blocks.norms[2])
    assert settled(replace(round, profiles=z.abs())).masked
    assert settled(replace(round, query=torch.ones(z.shape[1], dtype=torch.float64))).masked
    assert settled(replace(round, profiles=_flagged(even=True))).masked  # a sum is a mean there, and quicker to read
    wide = _flagged(d=MOST_COMPILED + 2)
    assert settled(replace(random_round(1, len(wide), wide.shape[1], 3), profiles=wide)).masked


def test_one_outlier_sets_no_scale_and_is_itself_bounded() -> None:
    round = random_round(1, N, D, 3)
    profiles = round.profiles.clone()
    profiles[0] *= 1e9
    blocks, plain = settled(replace(round, profiles=profiles)), settled(round)
    assert blocks.scale < 5 * plain.scale
    assert float(blocks.read(profiles).matrix.abs().max()) < 1e3


def test_there_are_no_crosses_of_many_features_nor_of_one() -> None:
    assert "crosses" not in settled(random_round(1, N, D, 3), BlocksConfig(cross_limit=4)).sizes("crosses")
    assert settled(random_round(1, N, 1, 3)).sizes("crosses") == {"constant": 1, "average": 1, "squares": 1}


def test_nothing_is_settled_by_contexts_that_are_all_zero() -> None:
    round = random_round(1, N, D, 3, query=torch.zeros(D, dtype=torch.float64))
    assert FeatureBlocks.of(BlocksConfig(), round) is None


def test_a_state_brings_the_scales_back() -> None:
    blocks = settled(random_round(1, N, D, 3, query=QUERY))
    assert FeatureBlocks.from_state(BlocksConfig(), D, blocks.state_dict()) == blocks
    with pytest.raises(StateError, match="expected contexts of 6"):
        FeatureBlocks.from_state(BlocksConfig(), 6, blocks.state_dict())


@pytest.mark.parametrize("change", [{"cap": 0.5}, {"cross_limit": -1}, {"masked_share": -0.1}])
def test_impossible_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        BlocksConfig(**change)
