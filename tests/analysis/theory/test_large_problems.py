"""Problems that are too large for every round and every pair of contexts."""

from types import SimpleNamespace
from typing import Any, cast

import torch

from neuclust.analysis.theory.contexts import WHOLE, Sample
from neuclust.cli.theory_session import affordable
from neuclust.theory.folding import Folded


def sized(arms: int, dim: int) -> Any:
    return SimpleNamespace(n_arms=arms, dim=dim)


def test_all_rounds_are_played_unless_a_round_has_very_many_numbers() -> None:
    assert affordable(sized(10_168, 20), 1000) == 1000  # MovieLens
    assert affordable(sized(52_268, 171), 1000) == 111  # Yelp
    assert affordable(sized(52_268, 171), 50) == 50
    assert affordable(sized(10_000_000, 1000), 1000) == 20


def sample(count: int) -> Sample:
    contexts = torch.arange(float(count)).unsqueeze(1)
    return Sample(contexts, contexts.flatten() / count, cast("Folded", None), 1, count, 0.0, 0.0, 0.0, 1.0)


def test_pairs_are_of_all_contexts_or_of_evenly_spaced_ones_from_first_to_last() -> None:
    few, means = sample(100).paired
    assert torch.equal(few.flatten(), torch.arange(100.0))
    assert torch.equal(means, torch.arange(100.0) / 100)
    many, means = sample(3 * WHOLE).paired
    assert len(many) == len(means) == WHOLE
    assert (float(many[0]), float(many[-1])) == (0.0, 3 * WHOLE - 1)
    assert torch.equal(means, many.flatten() / (3 * WHOLE))
    steps = many.flatten().diff()
    assert (float(steps.min()), float(steps.max())) == (3.0, 4.0)
