"""Constraints on a slate: required and excluded arms, at most c arms per category, a weight on diversity.

Feasible slates are the bases of a matroid: the partition matroid "at most c of each category", cut to K arms,
restricted to the allowed arms and contracted by the required ones. A required set within the caps can therefore always
be completed, and a slate exists exactly where Σ_c min(allowed arms of c, cap) ≥ K.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from neuclust.configuration import AT_LEAST_ONE, NON_NEGATIVE, checked
from neuclust.core import Round
from neuclust.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
@checked(at_most=AT_LEAST_ONE, diversity_weight=NON_NEGATIVE)
class Constraints:
    """Required and excluded arm ids, `at_most` arms per category (None: any), and δ of δ·D(S) (`slates.assembly`).
    `categories` (n,) are whole numbers, one per arm of the round; None: the policy's own categories or its clusters."""

    required: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    at_most: int | None = None
    diversity_weight: float = 0.0
    categories: Tensor | None = None

    def __post_init__(self) -> None:
        for name in ("required", "excluded"):
            object.__setattr__(self, name, _ids(name, getattr(self, name)))
        both = sorted(set(self.required) & set(self.excluded))
        if both:
            raise ConfigError(f"constraints: expected arms to be required or excluded, got arm {both[0]} as both")


@dataclass(frozen=True, slots=True)
class Rules:
    """Constraints as one round's positions: allowed arms (n,), required ones (r,), categories (n,), the cap."""

    allowed: Tensor
    required: Tensor
    categories: Tensor
    cap: int


def _ids(name: str, ids: Sequence[int]) -> tuple[int, ...]:
    arms = tuple(int(arm) for arm in ids)
    if len(set(arms)) != len(arms):
        raise ConfigError(f"constraints.{name}: expected every arm id once, got {list(arms)}")
    return arms


def rules(
    constraints: Constraints, round: Round, categories: Tensor, strict: bool, eligible: Tensor | None = None
) -> Rules:
    """The constraints on this round's arms, refused where no slate satisfies them.
    `categories` (n,) are used where the constraints have none; `eligible` (n,) are the arms that may be chosen besides
    required ones. `strict` refuses ids that are not offered; otherwise they are left out."""
    own = constraints.categories
    categories = categories if own is None else _checked(own, round)
    required = _positions("required", constraints.required, round, strict)
    allowed = torch.ones_like(round.arm_ids, dtype=torch.bool) if eligible is None else eligible.clone()
    allowed[required] = True
    allowed[_positions("excluded", constraints.excluded, round, strict)] = False
    cap = round.slate_size if constraints.at_most is None else constraints.at_most
    found = Rules(allowed, required, categories, cap)
    _check_feasible(round, found)
    return found


def _positions(name: str, ids: tuple[int, ...], round: Round, strict: bool) -> Tensor:
    wanted = torch.tensor(ids, dtype=torch.int64, device=round.arm_ids.device)
    if strict:
        unknown = wanted[~torch.isin(wanted, round.arm_ids)]
        if len(unknown):
            got = f"got arm {int(unknown[0])}, which is not; drop it from the constraints"
            raise DataError(f"round {round.t}: expected {name} arms among those offered, {got}")
    return torch.nonzero(torch.isin(round.arm_ids, wanted)).flatten()


def _checked(categories: Tensor, round: Round) -> Tensor:
    if categories.shape != round.arm_ids.shape or categories.is_floating_point():
        got = f"got {tuple(categories.shape)} of {str(categories.dtype).removeprefix('torch.')}"
        raise DataError(f"round {round.t}: expected {len(round.arm_ids)} whole numbers as categories, {got}")
    return categories


def _check_feasible(round: Round, found: Rules) -> None:
    k = round.slate_size
    if len(found.required) > k:
        raise DataError(f"round {round.t}: expected at most K = {k} required arms, got {len(found.required)}")
    names, of = torch.unique(found.categories, return_inverse=True)
    needed = torch.bincount(of[found.required], minlength=len(names))
    if bool((needed > found.cap).any()):
        worst = int(torch.argmax(needed))
        got = f"but {int(needed[worst])} are required of category {int(names[worst])}; raise at_most or require fewer"
        raise DataError(f"round {round.t}: expected at most {found.cap} arms of a category, {got}")
    room = int(torch.bincount(of[found.allowed], minlength=len(names)).clamp(max=found.cap).sum())
    if room < k:
        arms, categories = int(found.allowed.sum()), len(torch.unique(found.categories[found.allowed]))
        got = f"{arms} arms are allowed, in {categories} categories with at most {found.cap} each"
        raise DataError(f"round {round.t}: expected constraints that leave K = {k} arms, but only {room} fit: {got}")
