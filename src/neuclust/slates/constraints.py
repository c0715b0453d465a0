"""What a slate must keep to: arms it needs, arms it may not hold, at most c of a category, a weight on variety.

Slates that hold every required arm, no excluded one and at most c of each category are the bases of a matroid: the
partition matroid "at most c of each category", cut to K arms, restricted to the allowed arms and contracted by the
required ones. A required set that keeps to the caps can therefore always be completed to the full size, and a slate
exists exactly where Σ_c min(allowed arms of c, cap) ≥ K.
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
    """Required and excluded arm ids, `at_most` arms of one category (None: any), and a weight on variety.

    `categories` (n,) are whole numbers, one for every arm of the round; where they are None the policy's own
    categories, or else its clusters, are counted. `diversity_weight` is δ in U(S) + δ·D(S) (`slates.assembly`).
    """

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
    """The constraints on this round's arms, refused where no slate can keep to them.

    `categories` (n,) stand in where the constraints bring none; `eligible` (n,) says which arms may be chosen besides
    required arms. `strict` refuses ids that are not offered; otherwise they are left out.
    """
    own = constraints.categories
    categories = categories if own is None else _checked(own, round)
    required = _positions("required", constraints.required, round, strict)
    allowed = torch.ones_like(round.arm_ids, dtype=torch.bool) if eligible is None else eligible.clone()
    allowed[required] = True
    allowed[_positions("excluded", constraints.excluded, round, strict)] = False
    cap = round.slate_size if constraints.at_most is None else constraints.at_most
    _check_feasible(round, Rules(allowed, required, categories, cap))
    return Rules(allowed, required, categories, cap)


def _positions(name: str, ids: tuple[int, ...], round: Round, strict: bool) -> Tensor:
    wanted = torch.tensor(ids, dtype=torch.int64, device=round.arm_ids.device)
    if strict:
        unknown = wanted[~torch.isin(wanted, round.arm_ids)]
        if len(unknown):
            raise DataError(
                f"round {round.t}: expected {name} arms among those offered, got arm {int(unknown[0])}, which is not; "
                "drop it from the constraints"
            )
    return torch.nonzero(torch.isin(round.arm_ids, wanted)).flatten()


def _checked(categories: Tensor, round: Round) -> Tensor:
    if categories.shape != round.arm_ids.shape or categories.is_floating_point():
        raise DataError(
            f"round {round.t}: expected categories as {len(round.arm_ids)} whole numbers, one per arm, got "
            f"{tuple(categories.shape)} of {str(categories.dtype).removeprefix('torch.')}"
        )
    return categories


def _check_feasible(round: Round, found: Rules) -> None:
    k = round.slate_size
    if len(found.required) > k:
        raise DataError(
            f"round {round.t}: expected at most K = {k} required arms, got {len(found.required)}; require fewer"
        )
    names, of = torch.unique(found.categories, return_inverse=True)
    needed = torch.bincount(of[found.required], minlength=len(names))
    if bool((needed > found.cap).any()):
        worst = int(torch.argmax(needed))
        raise DataError(
            f"round {round.t}: expected at most {found.cap} arms of a category, but {int(needed[worst])} are required "
            f"of category {int(names[worst])}; raise at_most or require fewer"
        )
    room = int(torch.bincount(of[found.allowed], minlength=len(names)).clamp(max=found.cap).sum())
    if room < k:
        raise DataError(
            f"round {round.t}: expected constraints that leave K = {k} arms, but only {room} fit: "
            f"{int(found.allowed.sum())} arms are allowed, in {len(torch.unique(found.categories[found.allowed]))} "
            f"categories with at most {found.cap} each; raise at_most or exclude fewer"
        )
