"""One ridge regression for every arm, at the cost of the arms that were ever played."""

from collections.abc import Mapping

import torch
from torch import Tensor

from neuclust.models.history import GrowingTable, found_among, load_tables
from neuclust.models.state import check_indices, check_lengths, expect

LONGEST = 1e6  # of a context: I − BᵀB of longer ones is made of rounding


class ArmwiseRidge:
    """A_i = I + X_iᵀX_i and θ_i = A_i⁻¹ X_iᵀ r_i for contexts X_i (n_i, d) of arm i; A_i = I where never played.
    A_i⁻¹ = I − B_iᵀB_i with B_i = L_i⁻¹X_i, L_iL_iᵀ = I + X_iX_iᵀ. A play appends one row A_i⁻¹x/√(1 + xᵀA_i⁻¹x) to
    B_i, in one table for all arms: a query costs one pass over the plays so far, never over d × d matrices."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._ids = GrowingTable(dtype=torch.int64)  # slot -> arm
        self._thetas = GrowingTable(dim)  # slot -> θ_i
        self._rows = GrowingTable(dim)  # play -> its row of B
        self._owner = GrowingTable(dtype=torch.int64)  # play -> slot

    @property
    def theta_sum(self) -> Tensor:
        """Σ_i θ_i, (d,)."""
        return self._thetas.rows.sum(0)

    def played(self, arm_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Positions of `arm_ids` (n,) that have a model of their own, and their slots."""
        return found_among(self._ids.rows, arm_ids)

    def thetas(self, slots: Tensor) -> Tensor:
        """θ of the given slots, (s, d)."""
        return self._thetas.rows[slots]

    def solved(self, slots: Tensor, x: Tensor) -> Tensor:
        """A_i⁻¹ x_i for one context of each given slot: slots (s,) distinct, x (s, d) -> (s, d)."""
        asked = torch.full((len(self._ids),), -1, dtype=torch.int64)
        asked[slots] = torch.arange(len(slots))
        place = asked[self._owner.rows]
        plays = torch.nonzero(place >= 0).flatten()
        rows, place = self._rows.rows[plays], place[plays]
        shares = (rows * x[place]).sum(1, keepdim=True)
        return x.index_add(0, place, rows * shares, alpha=-1)

    def learn(self, arm: int, x: Tensor, reward: float) -> Tensor:
        """Take in one play with context x (d,); returns its row of B, (d,)."""
        slot = self._slot(arm)
        solved = self.solved(torch.tensor([slot]), x.unsqueeze(0))[0]
        left = x @ solved
        if not bool(left > 0):  # what is left of x is rounding: nothing more can be learned along it
            solved, left = torch.zeros_like(solved), torch.zeros_like(left)
        root = torch.sqrt(1 + left)
        row = solved / root
        self._thetas.rows[slot] += row / root * (reward - self._thetas.rows[slot] @ x)
        self._rows.append(row)
        self._owner.append(slot)
        return row

    def _slot(self, arm: int) -> int:
        found = torch.nonzero(self._ids.rows == arm).flatten()
        if len(found):
            return int(found[0])
        self._ids.append(arm)
        self._thetas.append(torch.zeros(self.dim, dtype=torch.float64))
        return len(self._ids) - 1

    def state_dict(self) -> dict[str, Tensor]:
        return {name: table.rows.clone() for name, table in self._tables().items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        load_tables(self._tables(), state, _check_models)

    def _tables(self) -> dict[str, GrowingTable]:
        return {name[1:]: value for name, value in vars(self).items() if isinstance(value, GrowingTable)}


def _check_models(tables: Mapping[str, Tensor]) -> None:
    ids, owner = tables["ids"], tables["owner"]
    check_lengths(ids=ids, thetas=tables["thetas"])
    check_lengths(rows=tables["rows"], owner=owner)
    check_indices("owner", owner, len(ids))
    expect(len(torch.unique(ids)) == len(ids), "every arm once in ids", "some twice")
