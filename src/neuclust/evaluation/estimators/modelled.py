"""Estimators with a model of rewards: by itself, and corrected by weighted residuals of the log.

A model fitted on the rows it is applied to must be cross-fitted: a row's values come from a model that has not seen it.
"""

import math

import numpy as np

from neuclust.errors import ConfigError
from neuclust.evaluation.estimators.rows import Contributions, Floats, Rows
from neuclust.evaluation.estimators.weighting import mean_of_slots, normalised, prefix_weights, slate_weights


def direct(rows: Rows) -> Contributions:
    """The direct method: mean of E_π r̂(S), the model's reward of what the target plays.

    Assumes that the model is right where the target plays. Fails where it was fitted on slates of another policy and is
    wrong elsewhere: its bias E_π[r̂ − R] does not fall with the number of rows.
    """
    values = rows.of("model_target")
    return Contributions.of(values, np.ones(len(values)))


def dr(rows: Rows) -> Contributions:
    """Doubly robust: mean of E_π r̂ + w (R − r̂(S)), w = π(S)/μ(S) (Dudík et al. 2011).

    Assumes support and right propensities, or a right model; R may be any function of the slate. Fails by variance as
    `ips` does where residuals are large: a wrong model and a handful of rows with weight.
    """
    weights = slate_weights(rows)
    residuals = rows.of("slate_rewards") - rows.of("model_logged")
    return Contributions.of(rows.of("model_target") + weights * residuals, weights)


def sndr(rows: Rows) -> Contributions:
    """Self-normalised doubly robust: mean of E_π r̂ + Σ w (R − r̂(S)) / Σ w.

    Assumes what `dr` does, and many rows: the bias falls as 1/n. Fails on one row: the residual of μ's slate is added
    to the model's value of π.
    """
    weights = slate_weights(rows)
    residuals = rows.of("slate_rewards") - rows.of("model_logged")
    corrections = normalised(weights[:, None], residuals[:, None], np.ones((len(weights), 1), np.bool_))
    return Contributions.of(rows.of("model_target") + corrections, weights)


def switch(rows: Rows, threshold: float | None = None) -> Contributions:
    """Doubly robust without the largest weights: mean of E_π r̂ + w 1[w ≤ τ] (R − r̂(S)) (Wang et al. 2017).

    τ is `threshold`, √n where it is None: it grows with the log, so that the bias −E_π[(R − r̂) 1[w > τ]] ends where τ
    passes the largest possible weight. Assumes a right model where w > τ. Fails as `direct` does where the target is
    nearly always above τ: a deterministic target and few rows.
    """
    if threshold is not None and not threshold >= 0:
        got = f"got {threshold}; leave it out for √n"
        raise ConfigError(f"switch: expected a largest weight of at least 0, {got}")
    most = math.sqrt(len(rows)) if threshold is None else threshold
    weights = slate_weights(rows)
    weights = np.where(weights <= most, weights, 0.0)
    residuals = rows.of("slate_rewards") - rows.of("model_logged")
    return Contributions.of(rows.of("model_target") + weights * residuals, weights)


# --- slot by slot ---------------------------------------------------------------------------------------------------


def cascade_dr(rows: Rows) -> Contributions:
    """Cascade doubly robust (Kiyohara et al. 2022): mean of Σ_j w_j (r_j − q̂_j) + w_{j−1} v̂_j, w_j = Π_{i ≤ j} ρ_i.

    w_0 = 1; q̂_j is a model's reward of slots j to k under π after the logged S_1, …, S_j, and v̂_j its mean over arms of
    slot j, Σ_a π(a | S_1, …, S_{j−1}) q̂_j(a); rewards of slot j alone do as well, with more variance. Assumes that r_j
    depends on the arms in slots 1 to j alone; the model may be wrong. Fails where `rips` does: a later arm that draws
    clicks away from an earlier one.
    """
    weights = prefix_weights(rows)
    gains = weights * (rows.of("rewards") - rows.of("q_hat")) + _before(weights) * rows.of("v_hat")
    return Contributions.of(gains.sum(axis=1), mean_of_slots(weights, rows))


def scascade_dr(rows: Rows) -> Contributions:
    """Self-normalised cascade doubly robust: each slot's w_j divided by its mean over the rows, w_{j−1} by its own.

    Assumes what `cascade_dr` does, and many rows in which each slot's weights are not 0; fails where `cascade_dr` or
    `snips` do.
    """
    weights = prefix_weights(rows)
    real = rows.real(weights.shape[1])
    values = normalised(weights, rows.of("rewards") - rows.of("q_hat"), real)
    values = values + normalised(_before(weights), rows.of("v_hat"), real)
    return Contributions.of(values, mean_of_slots(weights, rows))


def _before(weights: Floats) -> Floats:
    """w_{j−1} of every slot, w_0 = 1: (n, k)."""
    return np.concatenate([np.ones((len(weights), 1)), weights[:, :-1]], axis=1)
