"""The gradient covariance Z = λI + Σ ĝĝᵀ in two exact forms: `primal`, Z and Z⁻¹ (p × p, Woodbury), and `dual`, all
gradients as factors with an incremental Cholesky factor of λI + ĜĜᵀ."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from neuclust.kernels import widths
from neuclust.kernels.network import Factors, flatten, gram, squared_norms
from neuclust.models.state import expect, numbered, take, take_count, take_number, take_numbered, take_rows

SMALL = 128  # parameters below which exact widths are cheap enough
FEW = 8  # updates below which there is hardly anything explored
BOUND_SLACK = 1e-12  # relative to ‖ĝ‖²/λ: a bound must not fall below what rounding makes of the exact width


class PrimalCovariance:
    """Z and Z⁻¹ as (p, p) matrices; K new gradients cost O(K p²)."""

    def __init__(self, size: int, first: tuple[int, int], ridge: float, refresh: int, bounded: bool = True) -> None:
        """`first` is the shape of W_0; `bounded`: whether bounds (`narrow`) will be needed."""
        self._first, self._refresh, self._size, self._ridge = first, refresh, size, ridge
        self._bounded = bounded and size >= SMALL
        self._matrix = torch.eye(size, dtype=torch.float64) * ridge
        self._inverse = torch.eye(size, dtype=torch.float64) / ridge
        self._updates = 0
        # number of updates and Z after them: which widths are computed together, and so their last digits, must follow
        # from what was learned, not from when it was scored or loaded
        self._earlier: tuple[int, Tensor] | None = None
        self._explored: Tensor | None = None  # `widths.explored_directions` of the earlier Z
        self.logdet = 0.0

    def forms(self, factors: Factors, columns: Tensor) -> Tensor:
        """Ĝ Z⁻¹ Ĝᵀ of groups of gradients on the given input columns: (R, q, q)."""
        inverse = self._inverse
        if len(columns) < self._first[1]:
            inverse = widths.submatrix(inverse, self._coordinates(columns))
        return widths.primal_forms(inverse, flatten(factors))

    def cost(self, columns: int) -> int:
        """Numbers held per query."""
        return self._size - (self._first[1] - columns) * self._first[0]

    def narrow(self, factors: Factors, columns: Tensor, cutoff: Tensor, early: bool = False) -> tuple[Tensor, Tensor]:
        """w² of k gradients, or a bound below `cutoff` (k,), and which of them are exact: (k,), (k,) bool."""
        basis = self._basis() if early or bool((cutoff > -torch.inf).any()) else None
        if basis is None:
            return self._squares(factors, columns), torch.ones(len(cutoff), dtype=torch.bool)
        if len(columns) < self._first[1]:
            basis = basis[self._coordinates(columns)]
        largest = squared_norms(factors) / self._ridge
        squares = largest * (1 + BOUND_SLACK) - (flatten(factors) @ basis).square().sum(1)
        if early:
            return squares, torch.zeros(len(cutoff), dtype=torch.bool)
        alive = squares >= cutoff
        squares[alive] = self._squares(factors[alive], columns)
        return squares, alive

    def _squares(self, factors: Factors, columns: Tensor) -> Tensor:
        return self.forms(one_by_one(factors), columns).flatten()

    def _basis(self) -> Tensor | None:
        """Directions explored a while ago, which bounds widths as well; None while there are hardly any."""
        if self._earlier is None:
            return None
        if self._explored is None:
            self._explored = widths.explored_directions(self._earlier[1], self._ridge, self._size // 16)
        return self._explored

    def _look_back(self) -> None:
        """Keep Z for bounds, until there are a quarter more updates."""
        due = self._earlier is None or self._updates > 1.25 * self._earlier[0]
        if self._bounded and self._updates >= FEW and due:
            self._earlier, self._explored = (self._updates, self._matrix.clone()), None

    def work(self, columns: int) -> float:
        """Multiplications one width takes."""
        return float(self.cost(columns)) ** 2

    def observe(self, factors: Factors) -> None:
        """Z += ĜᵀĜ and the matching Z⁻¹; only the coordinates of non-zero inputs are touched in Z."""
        columns = torch.nonzero((factors.inputs[0] != 0).any(0)).flatten()
        index = self._coordinates(columns)
        features = flatten(Factors((factors.inputs[0][:, columns], *factors.inputs[1:]), factors.deltas))
        due = (self._updates + 1) % self._refresh == 0
        gain = None if due else widths.woodbury_(self._inverse, index, features)
        if gain is None:  # all or nothing: this may be refused
            self._matrix, self._inverse, logdet = widths.refactored(self._matrix, index, features)
            self.logdet = logdet - self._size * math.log(self._ridge)
        else:
            widths.add_products_(self._matrix, index, features)
            self.logdet += float(gain)
        self._updates += 1
        self._look_back()

    def state_dict(self) -> dict[str, Tensor]:
        state = {"matrix": self._matrix.clone(), "inverse": self._inverse.clone()}
        if self._earlier is not None:
            state |= {"earlier": self._earlier[1].clone(), "earlier_updates": torch.tensor(self._earlier[0])}
        logdet = torch.tensor(self.logdet, dtype=torch.float64)
        return state | {"logdet": logdet, "updates": torch.tensor(self._updates)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        matrix, inverse = take(state, "matrix", self._matrix), take(state, "inverse", self._inverse)
        definite = bool((torch.diagonal(matrix) > 0).all() and (torch.diagonal(inverse) > 0).all())
        expect(definite, "a covariance with a diagonal above 0", "0 or less")
        logdet, updates = take_number(state, "logdet"), take_count(state, "updates")
        earlier = None
        if "earlier" in state or "earlier_updates" in state:
            earlier = take_count(state, "earlier_updates"), take(state, "earlier", self._matrix)
            expect(self._bounded and 0 < earlier[0] <= updates, f"earlier_updates from 1 to {updates}", earlier[0])
        self._matrix, self._inverse, self.logdet, self._updates = matrix, inverse, logdet, updates
        self._earlier, self._explored = earlier, None
        if earlier is None:  # saved by an earlier version: bounds from now on, of the same slates
            self._look_back()

    def _coordinates(self, columns: Tensor) -> Tensor:
        """Positions in θ of W_0's given columns and of all later layers."""
        out, fan_in = self._first
        first = (torch.arange(out).unsqueeze(1) * fan_in + columns.cpu()).flatten()
        return torch.cat([first, torch.arange(out * fan_in, self._size)])


class DualCovariance:
    """Past gradients as factors and the Cholesky factor of λI + ĜĜᵀ; K new ones cost O(K n²)."""

    def __init__(self, ridge: float, shapes: Sequence[tuple[int, int]]) -> None:
        """`shapes` (out, in) of the layers whose gradients are kept."""
        self._ridge, self._shapes = ridge, shapes
        self._count = 0
        self._history: Factors | None = None  # buffers with room to grow
        self._factor = torch.zeros(0, 0, dtype=torch.float64)

    @property
    def logdet(self) -> float:
        """log det(I + ĜĜᵀ/λ)."""
        diagonal = torch.diagonal(self._factor)[: self._count]
        return float(2 * torch.log(diagonal).sum()) - self._count * math.log(self._ridge)

    def forms(self, factors: Factors, columns: Tensor) -> Tensor:
        """(κ − k(λI + ĜĜᵀ)⁻¹kᵀ)/λ of groups of gradients on the given input columns: (R, q, q)."""
        past, used = self._past_on(factors, columns), self._factor[: self._count, : self._count]
        return widths.dual_forms(used, gram(factors, past), gram(factors, factors), self._ridge)

    def narrow(self, factors: Factors, columns: Tensor, cutoff: Tensor, early: bool = False) -> tuple[Tensor, Tensor]:
        """w² of k gradients, or a bound below `cutoff` (k,), and which of them are exact: (k,), (k,) bool."""
        past, used = self._past_on(factors, columns), self._factor[: self._count, : self._count]

        def cross(alive: Tensor, rows: slice) -> Tensor:
            return gram(past[rows], factors[alive])

        return widths.narrowing(used, cross, squared_norms(factors), cutoff, self._ridge, early)

    def work(self, columns: int) -> float:
        """Multiplications one width takes: half of n² to solve, n times the products with the past."""
        factors = 0 if self._history is None else sum(d.shape[1] for d in self._history.deltas) * 2
        return 0.5 * self._count**2 + self._count * (columns + factors)

    def cost(self, columns: int) -> int:
        """Numbers held per query."""
        return max(self._count, columns)

    def observe(self, factors: Factors) -> None:
        past, new = self._past(factors), len(factors.deltas[0])
        corner = gram(factors, factors)
        corner.diagonal().add_(self._ridge)
        used = self._factor[: self._count, : self._count]
        left, right = widths.cholesky_rows(used, gram(factors, past), corner)
        self._grow(factors, self._count + new)
        assert self._history is not None
        rows = slice(self._count, self._count + new)
        self._factor[rows, : self._count], self._factor[rows, rows] = left, right
        for buffers, values in ((self._history.inputs, factors.inputs), (self._history.deltas, factors.deltas)):
            for buffer, value in zip(buffers, values, strict=True):
                buffer[rows] = value
        self._count += new

    def state_dict(self) -> dict[str, Tensor]:
        # with its spare room: libraries may sum in another order when a matrix lies differently in memory
        state = {"factor": self._factor, "count": torch.tensor(self._count)}
        if self._history is not None:
            past = self._history[: self._count]
            state |= numbered("input", past.inputs) | numbered("delta", past.deltas)
        return {name: tensor.clone() for name, tensor in state.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        room = len(state["factor"]) if "factor" in state and state["factor"].ndim else 0
        factor, count = take_rows(state, "factor", (room,)), take_count(state, "count")
        expect(count <= room, f"a count of at most the {room} rows of factor", count)
        expect(bool((torch.diagonal(factor)[:count] > 0).all()), "a factor with a diagonal above 0", "0 or less")
        shapes = self._shapes if room else ()
        inputs = take_numbered(state, "input", [factor.new_empty(count, fan_in) for _, fan_in in shapes])
        deltas = take_numbered(state, "delta", [factor.new_empty(count, out) for out, _ in shapes])
        self._factor, self._count = factor, count
        self._history = Factors(tuple(map(self._roomy, inputs)), tuple(map(self._roomy, deltas))) if room else None

    def _past(self, like: Factors) -> Factors:
        if self._history is not None:
            return self._history[: self._count]
        empty = [a.new_zeros(0, a.shape[-1]) for a in (*like.inputs, *like.deltas)]
        return Factors(tuple(empty[: len(like.inputs)]), tuple(empty[len(like.inputs) :]))

    def _past_on(self, like: Factors, columns: Tensor) -> Factors:
        """The past's gradients, read on the input columns `like` has."""
        past = self._past(like)
        if like.inputs[0].shape[-1] == past.inputs[0].shape[-1]:
            return past
        return Factors((past.inputs[0][:, columns], *past.inputs[1:]), past.deltas)

    def _grow(self, like: Factors, needed: int) -> None:
        """Double the buffers when they are full."""
        if needed <= len(self._factor):
            return
        room = max(2 * len(self._factor), needed, 64)
        factor = self._factor.new_zeros(room, room)
        factor[: self._count, : self._count] = self._factor[: self._count, : self._count]
        past, self._factor = self._past(like), factor
        self._history = Factors(tuple(map(self._roomy, past.inputs)), tuple(map(self._roomy, past.deltas)))

    def _roomy(self, rows: Tensor) -> Tensor:
        """Rows in a buffer as long as the factor's."""
        buffer = rows.new_zeros(len(self._factor), rows.shape[-1])
        buffer[: len(rows)] = rows
        return buffer


def one_by_one(factors: Factors) -> Factors:
    """Gradients (n, ·) as n groups of one each, (n, 1, ·)."""
    return Factors(tuple(a.unsqueeze(1) for a in factors.inputs), tuple(d.unsqueeze(1) for d in factors.deltas))


Covariance = PrimalCovariance | DualCovariance
