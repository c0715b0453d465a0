"""The least-squares problem an arm net is fitted to: gradients, loss and curvature, compiled where that serves."""

from dataclasses import replace

import torch
from torch import Tensor

from neuclust.kernels import fused, jit
from neuclust.kernels.network import Network, augment, layer_factors, squared_norms
from neuclust.kernels.training import Parameters, Steps, arm_gradients, arm_objective
from neuclust.models.fitting import LeastSquares, TrainingConfig
from neuclust.models.history import History
from neuclust.randomness import stream


def arm_problem(net: Network, initial: Network, history: History, training: TrainingConfig, seed: int) -> LeastSquares:
    """L(θ) = Σ w_u (f(x_u; θ) − r̄_u)²/2 + (pull/2)‖θ − θ_0‖² over the distinct contexts of a history."""
    contexts, target, counts = history.targets()
    width = net.weights[-1].shape[1] - net.bias
    share, pull = training.weights(history.observations, width)
    x, weight = augment(net, contexts), counts * share

    def minibatch(weights: Parameters, index: int) -> Parameters:
        rng = stream(seed, f"minibatch {index}", history.observations)
        chosen = torch.from_numpy(rng.integers(history.observations, size=training.batch_size))
        batch = augment(net, history.contexts.rows[history.seen.rows[chosen]])
        even = torch.full((len(chosen),), share * history.observations / len(chosen), dtype=batch.dtype)
        return arm_gradients(replace(net, weights=weights), batch, history.rewards.rows[chosen], even)

    def full_batch(weights: Parameters, _: int) -> Parameters:
        return arm_gradients(replace(net, weights=weights), x, target, weight)

    anchor = initial.weights if training.anchor == "initial" else None
    rows = _training_rows(net, history, x) if fusible(net, training) else None

    def loss(weights: Parameters) -> float:
        if rows is None:
            return float(arm_objective(replace(net, weights=weights), x, target, weight))
        means, _ = fused.arm_means_and_norms(net, weights, rows.rows)
        return 0.5 * float((weight * (means - target) ** 2).sum())

    def curvature(weights: Parameters) -> float:
        if rows is None:
            return float((weight * squared_norms(layer_factors(replace(net, weights=weights), x))).sum())
        return float((weight * fused.arm_means_and_norms(net, weights, rows.rows)[1]).sum())

    def at_once(start: Parameters, step: float) -> Parameters:
        assert rows is not None
        return fused.descend_arm(net, start, rows, target, weight, Steps(training.steps, step, pull, anchor))

    return LeastSquares(
        gradient=minibatch if training.optimizer == "sgd" else full_batch,
        loss=loss,
        curvature=curvature,
        pull=pull,
        anchor=anchor,
        fused=at_once if rows is not None else None,
    )


def fusible(net: Network, training: TrainingConfig) -> bool:
    """Whether all steps of a training run as one compiled loop."""
    wanted = training.engine == "auto" and training.optimizer == "gd" and len(net.weights) == 2
    return wanted and jit.serves(*net.weights)


def _training_rows(net: Network, history: History, x: Tensor) -> fused.SparseRows:
    """Rewarded contexts (u, in), augmented already; without biases they are kept from round to round."""
    known = history.sparse_contexts() if not net.bias else None
    return fused.SparseRows(x if known is None or len(known) != len(x) else known)
