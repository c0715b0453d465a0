"""Widths √(ĝᵀZ⁻¹ĝ) from the gradient covariance Z = λI + Σ ĝĝᵀ: exact, or by its diagonal or last layer alone."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, POSITIVE, checked
from neuclust.errors import StateError
from neuclust.kernels import widths
from neuclust.kernels.network import Factors, Network, layer_factors, layers, scaled
from neuclust.kernels.regions import Regions, region_basis, region_widths
from neuclust.models.covariance import Covariance, DualCovariance, PrimalCovariance, one_by_one
from neuclust.models.state import Shape, expect, numbered, take_numbered

_BUDGET = 1 << 24  # numbers in one intermediate block: 128 MB of float64


@dataclass(frozen=True, slots=True)
@checked(ridge=POSITIVE, refresh=AT_LEAST_ONE)
class ConfidenceConfig:
    """Which covariance, in which form; `per_width` divides gradients by √m as the paper does.
    Results are the same for every `solver` (auto: primal up to 2,048 parameters, dual above), `regions` (auto: where
    fewer gradients are formed than there are distinct contexts) and `pruning` of widths that cannot matter
    (kernels/pruning.py; auto: where that is less work, docs/decisions/0012-selection-cost.md)."""

    form: Literal["full", "diagonal", "last-layer"] = "full"
    solver: Literal["auto", "primal", "dual"] = "auto"
    regions: Literal["auto", "always", "never"] = "auto"
    pruning: Literal["auto", "on", "off"] = "auto"
    ridge: float = 1.0
    per_width: bool = True
    refresh: int = 200  # updates between two exact refactorisations, so that rounding cannot pile up


class FullConfidence:
    """Exact widths from the full covariance of all layers, or of the last one."""

    def __init__(self, config: ConfidenceConfig, net: Network) -> None:
        self.config = config
        self._last_only = config.form == "last-layer"
        shapes = [weight.shape for weight in (net.weights[-1:] if self._last_only else net.weights)]
        size = sum(shape.numel() for shape in shapes)
        self.solver = solver_of(config, size)
        bounded = config.form == "full" and config.pruning != "off" and len(net.weights) == 2  # see `ArmModel.bounds`
        self._covariance: Covariance = (
            PrimalCovariance(size, (shapes[0][0], shapes[0][1]), config.ridge, config.refresh, bounded)
            if self.solver == "primal"
            else DualCovariance(config.ridge, [(shape[0], shape[1]) for shape in shapes])
        )

    @property
    def logdet(self) -> float:
        return self._covariance.logdet

    def widths(self, net: Network, x: Tensor, regions: Regions, columns: Tensor) -> Tensor:
        """w of every row x (n, q) of the net restricted to `columns`, given its regions: (n,)."""
        scale = feature_scale(self.config, net)
        if self._last_only:
            last = layers(net, x)[0][-1]
            delta = torch.full_like(last[:, :1], net.scale * scale)
            return self._direct(Factors((last,), (delta,)), torch.arange(last.shape[1]))
        if self.by_regions(len(x), x.shape[1], len(regions.first)):
            return region_widths(x, self.region_forms(net, x[regions.first], columns), regions.region)
        return self._direct(scaled(layer_factors(net, x), scale), columns)

    def by_regions(self, rows: int, columns: int, regions: int) -> bool:
        """Whether one small matrix per region is less work than one width per row."""
        few = self.config.regions == "auto" and regions * columns < rows
        return not self._last_only and (self.config.regions == "always" or few)

    def narrow(self, factors: Factors, columns: Tensor, cutoff: Tensor, early: bool = False) -> tuple[Tensor, Tensor]:
        """w of k gradients ĝ, or an upper bound below `cutoff` (k,) (`early`: any upper bound), and which are exact."""
        floor = torch.where(cutoff > 0, cutoff**2, -torch.inf)
        squares, exact = self._covariance.narrow(factors, columns, floor, early)
        return squares.clamp(min=0).sqrt(), exact

    def work(self, columns: int) -> float:
        """Multiplications per exact width on so many input columns."""
        return self._covariance.work(columns)

    def observe(self, factors: Factors) -> None:
        """Add the gradients ĝ of the arms whose reward was seen."""
        self._covariance.observe(factors.last_layer() if self._last_only else factors)

    def state_dict(self) -> dict[str, Tensor]:
        return self._covariance.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self._covariance.load_state_dict(state)

    def region_forms(self, net: Network, x: Tensor, columns: Tensor) -> Tensor:
        """Q_D of every region, given a row of each, x (R, q): (R, q, q)."""
        q, scale = x.shape[1], feature_scale(self.config, net)
        gates = tuple((z > 0).to(z.dtype) for z in layers(net, x)[1])
        chunk = max(1, _BUDGET // max(1, q * self._covariance.cost(q)))
        starts = range(0, len(gates[0]), chunk)
        bases = (region_basis(net, tuple(gate[i : i + chunk] for gate in gates), q) for i in starts)
        return torch.cat([self._covariance.forms(scaled(basis, scale), columns) for basis in bases])

    def _direct(self, factors: Factors, columns: Tensor) -> Tensor:
        chunk = max(1, _BUDGET // max(1, self._covariance.cost(len(columns))))
        parts = (factors[slice(i, i + chunk)] for i in range(0, len(factors.deltas[0]), chunk))
        squares = [self._covariance.forms(one_by_one(part), columns).flatten() for part in parts]
        return torch.cat(squares).clamp(min=0).sqrt()


class DiagonalConfidence:
    """The usual approximation: only the diagonal U = λ + Σ ĝ ⊙ ĝ, one matrix per layer."""

    def __init__(self, config: ConfidenceConfig, net: Network) -> None:
        self.config = config
        self.diagonal = tuple(torch.full_like(weight, config.ridge) for weight in net.weights)

    @property
    def logdet(self) -> float:
        """log det U/λ^p."""
        return sum(float(torch.log(u / self.config.ridge).sum()) for u in self.diagonal)

    def widths(self, net: Network, x: Tensor, regions: Regions, columns: Tensor) -> Tensor:  # noqa: ARG002
        """w of every row x (n, q) of the net restricted to `columns`; regions do not help here: (n,)."""
        diagonal = (self.diagonal[0][:, columns], *self.diagonal[1:])
        return widths.diagonal_squares(scaled(layer_factors(net, x), feature_scale(self.config, net)), diagonal).sqrt()

    def by_regions(self, rows: int, columns: int, regions: int) -> bool:  # noqa: ARG002
        return False

    def observe(self, factors: Factors) -> None:
        gains = widths.diagonal_gain(factors)
        if not all(bool(torch.isfinite(gain).all()) for gain in gains):  # would never be finite again
            raise StateError("the covariance would not be finite: expected smaller gradients; scale the features")
        self.diagonal = tuple(u + gain for u, gain in zip(self.diagonal, gains, strict=True))

    def state_dict(self) -> dict[str, Tensor]:
        return numbered("diagonal", self.diagonal)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        diagonal = take_numbered(state, "diagonal", self.diagonal)
        expect(all(bool((u > 0).all()) for u in diagonal), "a diagonal above 0", "0 or less")
        self.diagonal = diagonal


def solver_of(config: ConfidenceConfig, size: int) -> Literal["primal", "dual"]:
    """How a full covariance of so many parameters is kept."""
    if config.solver != "auto":
        return config.solver
    return "primal" if size <= 2048 else "dual"


def confidence_shapes(config: ConfidenceConfig, weights: Sequence[Shape]) -> Iterator[tuple[str, Shape]]:
    """What a state of the confidence of a net with these weights holds at least."""
    size = sum(math.prod(shape) for shape in (weights[-1:] if config.form == "last-layer" else weights))
    if config.form != "diagonal" and solver_of(config, size) == "primal":
        yield "matrix", (size, size)


def feature_scale(config: ConfidenceConfig, net: Network) -> float:
    """1/√m for ĝ = g/√m, or 1 where gradients are used as they are."""
    return 1 / math.sqrt(net.weights[-1].shape[1] - net.bias) if config.per_width else 1.0


def build_confidence(config: ConfidenceConfig, net: Network) -> FullConfidence | DiagonalConfidence:
    """The configured form for this net."""
    return DiagonalConfidence(config, net) if config.form == "diagonal" else FullConfidence(config, net)
