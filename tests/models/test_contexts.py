"""A round's contexts as models read them: distinct ones once, and the same values whichever way they are asked for."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from neuclust.core import Round
from neuclust.models.encoder import Encoder, EncoderConfig, distinct, encoded, full_at

PROFILES = torch.tensor([[1.0, 2.0, 0.0], [0.0, 5.0, 1.0], [1.0, 2.0, 3.0], [4.0, 0.0, 1.0]], dtype=torch.float64)
QUERIES = (None, torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))


@pytest.mark.parametrize("query", QUERIES, ids=["unmasked", "masked"])
@pytest.mark.parametrize("kind", ["raw", "scale", "unit", "lift"])
def test_every_arm_has_its_encoded_context(kind: Any, query: Any) -> None:
    round, encoder = (
        Round(1, torch.arange(4), PROFILES, query, 2),
        Encoder(EncoderConfig(kind, rho=None), 3, even=False),
    )
    everyone = torch.arange(4)
    full = full_at(encoder, round, everyone)
    x, columns, group = distinct(encoder, round)
    assert full.shape == (4, encoder.dim)
    assert torch.equal(full[:, columns], x[group])
    assert float(full.sum()) == pytest.approx(float(x[group].sum()))  # other columns are 0
    assert len(x) == (4 if query is None else 3)  # without the last feature, arms 0 and 2 are alike
    values, numbers = encoded(encoder, round, everyone)
    assert torch.equal(values, x[group])
    assert torch.equal(numbers, columns)
