"""Scores for the best slate only: upper bounds for all arms, exact widths for those that can still win."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from neuclust.kernels.network import Network, layer_factors, scaled
from neuclust.kernels.pruning import SLACK, Bounds, Integers
from neuclust.kernels.rows import Rows, forward_norms
from neuclust.models.confidence import FullConfidence, feature_scale

MANY = 8  # active columns above which activation regions are as many as arms
HEAVY_WIDTH = 1e6  # multiplications of one width from which even few regions are dear
HEAVY_ROUND = 2e7  # multiplications of all widths from which bounds pay: about a millisecond


@dataclass(slots=True)
class Choice:
    """How a round's widths were found, and for how many arms, distinct contexts and active columns."""

    way: Literal["regions", "direct", "pruned"]
    arms: int
    contexts: int
    columns: int
    widths: int  # computed: q a region, one a context, or only those that mattered


def pruning_pays(confidence: FullConfidence, arms: int, columns: int) -> bool:
    """The cost model: few columns mean few regions, so that only dear widths are worth bounding there."""
    if confidence.config.pruning != "auto":
        return confidence.config.pruning == "on"
    work = confidence.work(columns)
    return work >= HEAVY_WIDTH if columns <= MANY else arms * work >= HEAVY_ROUND


def contenders(
    net: Network, contexts: Rows, group: Integers, confidence: FullConfidence, columns: Tensor, gamma: float
) -> tuple[Bounds, Choice]:
    """f and f + γ‖ĝ‖/√λ ≥ v of distinct encoded contexts, for a bias-free one-hidden-layer net on `columns`.

    The choice counts the widths as they are computed.
    """
    w0, w1 = np.ascontiguousarray(net.weights[0].numpy().T), net.weights[1][0].numpy()
    means, norms = forward_norms(contexts, w0, w1, float(net.scale))
    scale = feature_scale(confidence.config, net)
    ceiling = gamma * scale * np.sqrt(norms / confidence.config.ridge) * (1 + SLACK)

    def tighten(rows: Integers, floor: float, early: bool = False) -> None:
        factors = scaled(layer_factors(net, torch.from_numpy(contexts.dense(rows))), scale)
        # a bound that is not made exact must end below the floor after its own slack, which grows with |f|
        margin = SLACK * (abs(floor) + np.abs(means[rows]) + 1) if np.isfinite(floor) else 0.0
        cutoff = torch.from_numpy((floor - margin - means[rows]) / gamma)
        width, exact = confidence.narrow(factors, columns, cutoff, early)
        bounds.bonuses[rows] = gamma * width.numpy() * np.where(exact.numpy(), 1.0, 1 + SLACK)
        bounds.upper[rows] = means[rows] + bounds.bonuses[rows]
        bounds.exact[rows] = exact.numpy()
        choice.widths += int(exact.sum())

    known = np.full(len(means), gamma == 0)
    bounds = Bounds(means, ceiling, means + ceiling, known, known.copy(), group, tighten)
    choice = Choice("pruned", len(group), len(means), len(columns), 0)
    return bounds, choice
