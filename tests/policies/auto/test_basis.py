"""Random Fourier features: columns by their formula, and the kernel they approximate."""

from __future__ import annotations

import math

import pytest
import torch
from small_problems import random_round
from torch import Tensor

from neuclust.policies.auto.basis import FREQUENCIES, LENGTH_SCALES, FourierFeatures
from neuclust.policies.auto.features import BlocksConfig, FeatureBlocks
from neuclust.randomness import stream

D, N = 3, 6
QUERY = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)


def settled(masked: bool = False) -> FeatureBlocks:
    blocks = FeatureBlocks.of(BlocksConfig(), random_round(1, 50, D, 2, query=QUERY if masked else None))
    assert blocks is not None
    return blocks


def contexts(masked: bool = False) -> Tensor:
    return random_round(2, N, D, 2, query=QUERY if masked else None).contexts


@pytest.mark.parametrize("masked", [False, True])
def test_columns_are_one_the_context_and_cosines(masked: bool) -> None:
    blocks = settled(masked)
    features, fourier = blocks.read(contexts(masked)), FourierFeatures.of(blocks, 3, "test")
    dim = D + masked  # masked contexts have a pooled column
    columns = fourier(features)
    assert columns.shape == (N, 1 + dim + len(LENGTH_SCALES) * FREQUENCIES)
    assert fourier.sizes == (1, dim, FREQUENCIES, FREQUENCIES)
    assert torch.equal(columns[:, 0], torch.ones(N).double())
    x = columns[:, 1 : 1 + dim]
    torch.testing.assert_close(x, features.inputs[:, :dim] / blocks.input_length)
    for row, given in zip(columns[:, 1 + dim :].tolist(), x.tolist(), strict=True):
        for w, (value, phase) in enumerate(zip(row, fourier.phases.tolist(), strict=True)):
            angle = sum(v * f for v, f in zip(given, fourier.frequencies[:, w].tolist(), strict=True)) + phase
            assert value == pytest.approx(math.sqrt(2 / FREQUENCIES) * math.cos(angle))


def test_a_typical_context_has_length_one_before_it_becomes_fourier_features() -> None:
    blocks = settled()
    x = FourierFeatures.of(blocks, 3, "test")(blocks.read(random_round(1, 50, D, 2).contexts))[:, 1 : 1 + D]
    assert float(x.square().sum(1).mean()) == pytest.approx(1)


@pytest.mark.parametrize("which", [0, 1])
def test_products_of_fourier_features_are_the_kernel_on_average(which: int) -> None:
    """E φ(x)ᵀφ(y) = exp(−‖x − y‖²/2ℓ²), within five standard errors for every pair of contexts."""
    blocks = settled()
    features = blocks.read(contexts())
    first = 1 + D + which * FREQUENCIES
    drawn = [FourierFeatures.of(blocks, seed, "test")(features) for seed in range(300)]
    products = torch.stack([c[:, first : first + FREQUENCIES] @ c[:, first : first + FREQUENCIES].T for c in drawn])
    expected = torch.exp(
        -(torch.cdist(drawn[0][:, 1 : 1 + D], drawn[0][:, 1 : 1 + D]) ** 2) / (2 * LENGTH_SCALES[which] ** 2)
    )
    errors = (products.mean(0) - expected).abs()
    standard = products.std(0) / math.sqrt(len(drawn))
    assert bool((errors < 5 * standard).all())
    assert float(standard.max()) < 0.01
    assert float(expected.max() - expected.min()) > 0.1  # contexts near and far: a constant would not do


def test_a_product_with_weights_is_that_of_the_columns() -> None:
    blocks = settled()
    features, fourier = blocks.read(contexts()), FourierFeatures.of(blocks, 3, "test")
    weights = torch.from_numpy(stream(0, "test weights").standard_normal(sum(fourier.sizes)))
    torch.testing.assert_close(fourier.dot(features, weights), fourier(features) @ weights)


def test_the_same_seed_and_purpose_give_the_same_frequencies() -> None:
    one, same, other, elsewhere = (
        FourierFeatures.of(settled(), seed, purpose) for seed, purpose in ((3, "a"), (3, "a"), (4, "a"), (3, "b"))
    )
    assert torch.equal(one.frequencies, same.frequencies)
    assert torch.equal(one.phases, same.phases)
    for unlike in (other, elsewhere):
        assert not torch.equal(one.frequencies, unlike.frequencies)
        assert not torch.equal(one.phases, unlike.phases)
