"""Estimators that weight logged rewards by how much more often the target would have shown the same.

Slates S of k slots with rewards r_j and slate reward R, logged by μ; π is the target. Conditional ratios are
ρ_j = π(S_j | S_1, …, S_{j−1}) / μ(S_j | S_1, …, S_{j−1}). All need support: what π shows, μ can show.
"""

import numpy as np

from neuclust.evaluation.estimators.rows import Contributions, Flags, Floats, Rows


def slate_weights(rows: Rows) -> Floats:
    """w = Π_j ρ_j = π(S)/μ(S): (n,)."""
    weights: Floats = (rows.of("target") / rows.of("logging")).prod(axis=1)
    return weights


def prefix_weights(rows: Rows) -> Floats:
    """w_j = Π_{i ≤ j} ρ_i = π(S_1, …, S_j)/μ(S_1, …, S_j): (n, k)."""
    weights: Floats = (rows.of("target") / rows.of("logging")).cumprod(axis=1)
    return weights


def slot_weights(rows: Rows) -> Floats:
    """w_j = π(slot j holds S_j)/μ(slot j holds S_j): (n, k)."""
    return rows.of("target_marginals") / rows.of("logging_marginals")


# --- whole slates ---------------------------------------------------------------------------------------------------


def ips(rows: Rows) -> Contributions:
    """Slate IPS: mean of w R, w = π(S)/μ(S).

    Assumes nothing but support and right propensities; R may be any function of the slate. Fails by variance: slates of
    5 among 100 arms logged evenly have w = 9·10⁹ where a deterministic target agrees, and nearly no row does.
    """
    weights = slate_weights(rows)
    return Contributions.of(weights * rows.of("slate_rewards"), weights)


def snips(rows: Rows) -> Contributions:
    """Self-normalised slate IPS: V = Σ w R / Σ w (Swaminathan and Joachims 2015).

    Assumes what `ips` does, and many rows: the bias falls as 1/n. Fails on one row: V = R whatever π is.
    """
    return _normalised_slates(slate_weights(rows), rows.of("slate_rewards"))


def _normalised_slates(weights: Floats, rewards: Floats) -> Contributions:
    values = normalised(weights[:, None], rewards[:, None], np.ones((len(weights), 1), np.bool_))
    return Contributions.of(values, weights)


def normalised(weights: Floats, rewards: Floats, real: Flags) -> Floats:
    """Linearised contributions to Σ_j p_j V_j, V_j = Σ_i w_ij r_ij / Σ_i w_ij over the share p_j of rows with slot j:

        Σ_j 1[slot j is real] [V_j + w_ij (r_ij − V_j) / mean w_j],   (n, k), (n, k), (n, k) -> (n,).

    The mean over rows is the estimate. NaN for all rows where the weights of a slot add up to 0.
    """
    counts, totals = real.sum(0), (weights * real).sum(0)
    if not (totals > 0)[counts > 0].all():
        return np.full(len(weights), np.nan)
    mean = np.where(counts > 0, totals, 1.0) / np.maximum(counts, 1)
    value = (weights * rewards * real).sum(0) / np.where(counts > 0, totals, 1.0)
    parts: Floats = (real * (value + weights * (rewards - value) / mean)).sum(axis=1)
    return parts


# --- sums over slots ------------------------------------------------------------------------------------------------


def iips(rows: Rows) -> Contributions:
    """Item-position IPS: mean of Σ_j w_j r_j, w_j = π(slot j holds S_j)/μ(slot j holds S_j) (Li et al. 2018).

    Assumes that r_j depends on the arm in slot j and on j alone. Fails where users stop at the first click: an arm in
    slot 2 then earns by what stands in slot 1, and μ and π put different arms there.
    """
    weights = slot_weights(rows)
    return Contributions.of((weights * rows.of("rewards")).sum(axis=1), mean_of_slots(weights, rows))


def siips(rows: Rows) -> Contributions:
    """Self-normalised item-position IPS: Σ_j V_j, V_j = Σ w_j r_j / Σ w_j over the rows.

    Assumes what `iips` does, and many rows in which each slot's weights are not 0; fails where `iips` or `snips` do.
    """
    weights = slot_weights(rows)
    values = normalised(weights, rows.of("rewards"), rows.real(weights.shape[1]))
    return Contributions.of(values, mean_of_slots(weights, rows))


def rips(rows: Rows) -> Contributions:
    """Reward-interaction IPS: mean of Σ_j w_j r_j, w_j = Π_{i ≤ j} ρ_i (McInerney et al. 2020).

    Assumes that r_j depends on the arms in slots 1 to j alone: users look from the top. Fails where a later arm draws
    clicks away from an earlier one: a bargain in slot 3 that users see before they click in slot 1.
    """
    weights = prefix_weights(rows)
    return Contributions.of((weights * rows.of("rewards")).sum(axis=1), mean_of_slots(weights, rows))


def srips(rows: Rows) -> Contributions:
    """Self-normalised reward-interaction IPS: Σ_j V_j, V_j = Σ w_j r_j / Σ w_j over the rows.

    Assumes what `rips` does, and many rows in which each slot's weights are not 0; fails where `rips` or `snips` do.
    """
    weights = prefix_weights(rows)
    values = normalised(weights, rows.of("rewards"), rows.real(weights.shape[1]))
    return Contributions.of(values, mean_of_slots(weights, rows))


def mean_of_slots(weights: Floats, rows: Rows) -> Floats:
    """The mean weight of a row's real slots, which stands for the row in its effective sample size: (n,)."""
    real = rows.real(weights.shape[1])
    means: Floats = (weights * real).sum(axis=1) / np.maximum(real.sum(axis=1), 1)
    return means


# --- additive slate rewards -----------------------------------------------------------------------------------------


def pseudo_inverse(rows: Rows) -> Contributions:
    """The pseudo-inverse estimator: mean of w R, w = q_πᵀ Γ_μ⁺ 1_S (Swaminathan et al. 2017).

    Assumes that E[R | S] = Σ_j φ(j, S_j) for some φ that need not be known nor seen; any slots may be rewarded. Fails
    where R is "any click": two arms that are clicked together pay once, and the weights count both.
    """
    weights = rows.of("pi_weights")
    return Contributions.of(weights * rows.of("slate_rewards"), weights)


def pseudo_inverse_product(rows: Rows) -> Contributions:
    """The pseudo-inverse estimator for slots that are drawn independently: mean of w R, w = 1 + Σ_j (ρ_j − 1).

    Assumes what `pseudo_inverse` does, and that μ draws each slot from arms of its own, so that μ(S) = Π_j μ_j(S_j).
    Fails for slates without repetition, where a slot's chances depend on the slots before it.
    """
    ratios = rows.of("target") / rows.of("logging")
    weights: Floats = 1 + (ratios - 1).sum(axis=1)
    return Contributions.of(weights * rows.of("slate_rewards"), weights)
