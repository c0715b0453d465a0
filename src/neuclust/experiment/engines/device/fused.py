"""The J training steps of R runs as two small kernels per step, where Triton is available and tensors are on a GPU.

One kernel leaves partial sums over the rows, the other adds them up, in one fixed order, and moves the parameters.
"""

import importlib.util
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from neuclust.kernels.monotone import MonotoneNetwork
from neuclust.kernels.training import Examples, Parameters, Steps

available = importlib.util.find_spec("triton") is not None  # it comes with torch for CUDA
LARGEST_LAYER = 4096  # weights of a first layer beyond which matrix products are faster


def serves_arms(parameters: Parameters) -> bool:
    """Whether these are small enough networks on a GPU."""
    return available and parameters[0].is_cuda and parameters[0][0].numel() <= LARGEST_LAYER


def serves_slates(net: MonotoneNetwork) -> bool:
    """Whether these are slate networks as the paper has them, on a GPU."""
    return serves_arms(net.parameters) and net.transform == "sigmoid" and not net.relu_out


def arm_steps(data: Examples, parameters: Parameters, rows: int, steps: Steps, scale: float) -> None:
    """The steps on the first rows, in place on W_0 (R, m, d') and w_1 (R, 1, m); inputs (R, d', room) by column."""
    from neuclust.experiment.engines.device import triton_kernels

    first, last = parameters
    runs, width, dim = first.shape
    block = 32
    blocks = math.ceil(rows / block)
    padded, columns = max(16, _power_of_two(width)), max(16, _power_of_two(dim))
    partial = torch.empty(runs, blocks, dim, padded, dtype=first.dtype, device=first.device)
    anchor = _anchor(parameters, steps)
    for _ in range(steps.number):
        triton_kernels.arm_partials[(blocks, runs)](
            *data, first, last, partial, rows, data.inputs.shape[2], blocks,
            SCALE=scale, DIM=dim, WIDTH=width, PADDED=padded, COLUMNS=columns, BLOCK=block,
        )  # fmt: skip
        triton_kernels.arm_update[(width, runs)](
            partial, first, last, *anchor, steps.size, steps.pull, blocks,
            DIM=dim, WIDTH=width, PADDED=padded, COLUMNS=columns, CHUNK=32, num_warps=2,
        )  # fmt: skip


def slate_steps(
    data: Examples, parameters: Parameters, rows: int, steps: Steps, scales: Sequence[float], biases: bool
) -> None:
    """The same for slate networks with scales c_0 and c_1; inputs (R, K, room). Without `biases` they stay at 0."""
    from neuclust.experiment.engines.device import triton_kernels

    runs, width, size = parameters[0].shape
    block = 64
    blocks = math.ceil(rows / block)
    moving, anchor = _flat(parameters), _flat(_anchor(parameters, steps))
    count = moving.shape[1]
    partial = torch.empty(runs, blocks, count, dtype=moving.dtype, device=moving.device)
    for _ in range(steps.number):
        triton_kernels.slate_partials[(blocks, runs)](
            *data, moving, partial, rows, data.inputs.shape[2], blocks,
            SCALE_0=scales[0], SCALE_1=scales[1], SIZE=size, WIDTH=width,
            PADDED=_power_of_two(width), COUNT=count, BLOCK=block,
        )  # fmt: skip
        triton_kernels.slate_update[(runs,)](
            partial, moving, anchor, steps.size, steps.pull, blocks,
            SCALE_0=scales[0], SCALE_1=scales[1], SIZE=size, WIDTH=width,
            COUNT=count, PADDED=_power_of_two(count), CHUNK=8, FREE=1.0 if biases else 0.0,
        )  # fmt: skip
    t0, t1, b0, b1 = torch.split(moving, [size * width, width, width, 1], 1)
    pieces = (t0.view(runs, size, width).mT, t1.unsqueeze(1), b0, b1)
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.copy_(piece)


def _anchor(parameters: Parameters, steps: Steps) -> Parameters:
    return tuple(torch.zeros_like(p) for p in parameters) if steps.anchor is None else steps.anchor


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length() if number > 1 else 1


def _flat(parameters: Parameters) -> Tensor:
    """Θ_0 by input, Θ_1, b_0, b_1 of every run in one row: (R, K·n + 2n + 1)."""
    t0, t1, b0, b1 = parameters
    return torch.cat([t0.mT.flatten(1), t1.flatten(1), b0, b1], 1)
