"""The cross-fitted reward model against a regression fitted on the rows it may use."""

from typing import Literal

import numpy as np
import pytest

from neuclust.evaluation.reward_model import RIDGE, RewardModel


@pytest.mark.parametrize("use", ["others", "earlier"])
def test_a_block_is_predicted_by_rows_outside_it_alone(use: Literal["others", "earlier"]) -> None:
    """Fails when a row's own block teaches the model that predicts it, or with `earlier` a later one."""
    rng = np.random.default_rng(3)
    slates = [(block, rng.normal(size=(4, 3)), rng.random(4)) for block in (0, 1, 2, 1, 0, 2)]
    slates[0][2][1] = np.nan  # unseen: teaches nothing
    model = RewardModel(3, 3, use)
    for block, contexts, rewards in slates:
        model.observe(block, contexts, rewards)
    asked = rng.normal(size=(5, 3))
    for block in range(3):
        own = [each for each in slates if (each[0] < block if use == "earlier" else each[0] != block)]
        x = np.concatenate([each[1] for each in own] or [np.zeros((0, 3))])
        r = np.concatenate([each[2] for each in own] or [np.zeros(0)])
        x = np.column_stack([np.ones(len(x)), x])[~np.isnan(r)]
        weights = np.linalg.solve(x.T @ x + RIDGE * np.eye(4), x.T @ r[~np.isnan(r)])
        assert model.means(block, asked) == pytest.approx(np.column_stack([np.ones(5), asked]) @ weights)
