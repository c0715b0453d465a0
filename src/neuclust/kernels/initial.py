"""Initial weights of the arm network, one function per rule."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

from neuclust.errors import ConfigError
from neuclust.kernels.network import Network

Generator = np.random.Generator


def initial_network(rule: str, dim: int, width: int, depth: int, scale: float, rng: Generator) -> Network:
    """A net of `depth` hidden layers of `width` units on `dim` inputs, initialised by a named rule."""
    if rule not in RULES:
        raise ConfigError(f"network.init: expected one of {', '.join(RULES)}, got {rule!r}")
    weights, bias = RULES[rule](dim, width, depth, rng)
    return Network(tuple(weights), scale, bias)


def network_shapes(rule: str, dim: int, width: int, depth: int) -> Iterator[tuple[int, int]]:
    """Shapes of the weights of such a net, one after the other, without making them."""
    for fan_in, out in itertools.pairwise([dim, *[width] * depth, 1]):
        yield out, fan_in + (rule == "torch-default")  # biases are one more column


def _normal(rng: Generator, variance: float, *shape: int) -> Tensor:
    return torch.from_numpy(rng.standard_normal(shape) * math.sqrt(variance))


def _paired(block: Tensor) -> Tensor:
    """[[B, 0], [0, B]]: two halves that never mix at the start."""
    zero = torch.zeros_like(block)
    return torch.cat([torch.cat([block, zero], 1), torch.cat([zero, block], 1)])


def _cancelling(first: Tensor, width: int, depth: int, rng: Generator) -> tuple[list[Tensor], bool]:
    """`first`, blocks B_l ~ N(0, 4/m) in pairs, W_L = [wᵀ, −wᵀ], w ~ N(0, 2/m): the halves cancel and f(·; θ_0) = 0."""
    hidden = [_paired(_normal(rng, 4 / width, width // 2, width // 2)) for _ in range(depth - 1)]
    half = _normal(rng, 2 / width, 1, width // 2)
    return [first, *hidden, torch.cat([half, -half], 1)], False


def _even(name: str, value: int, rule: str) -> None:
    if value % 2:
        raise ConfigError(f"network.init={rule!r} needs an even {name}, got {value}; use {value + 1} or another init")


def _symmetric(dim: int, width: int, depth: int, rng: Generator) -> tuple[list[Tensor], bool]:
    """The paper's block-symmetric rule: B_l ~ N(0, 4/m) on the diagonal, W_L = [wᵀ, −wᵀ]."""
    _even("width", width, "symmetric")
    _even("number of encoded features", dim, "symmetric")
    return _cancelling(_paired(_normal(rng, 4 / width, width // 2, dim // 2)), width, depth, rng)


def _mirrored(dim: int, width: int, depth: int, rng: Generator) -> tuple[list[Tensor], bool]:
    """Units in equal pairs [B; B] with opposite signs: f(·; θ_0) = 0 without duplicated inputs."""
    _even("width", width, "mirrored")
    block = _normal(rng, 2 / width, width // 2, dim)
    return _cancelling(torch.cat([block, block]), width, depth, rng)


def _he(dim: int, width: int, depth: int, rng: Generator) -> tuple[list[Tensor], bool]:
    """N(0, 2 / fan-in) for hidden layers, N(0, 1/m) for the last."""
    hidden = [_normal(rng, 2 / dim, width, dim)]
    hidden += [_normal(rng, 2 / width, width, width) for _ in range(depth - 1)]
    return [*hidden, _normal(rng, 1 / width, 1, width)], False


def _uniform(dim: int, width: int, depth: int, rng: Generator, bias: bool = False) -> tuple[list[Tensor], bool]:
    """U(±1/√fan-in) for weights and, with `bias`, for biases: torch.nn.Linear's default (the authors' choice)."""
    sizes = itertools.pairwise([dim, *[width] * depth, 1])
    return [torch.from_numpy(rng.uniform(-1, 1, (out, n + bias)) / math.sqrt(n)) for n, out in sizes], bias


RULES: dict[str, Callable[[int, int, int, Generator], tuple[list[Tensor], bool]]] = {
    "symmetric": _symmetric,
    "mirrored": _mirrored,
    "he": _he,
    "torch-default": partial(_uniform, bias=True),
    "uniform": _uniform,
}
