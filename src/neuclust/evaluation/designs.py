"""What a design says of slates: chances of slots, of what follows a prefix, of arms in slots and of pairs of them.

Everything is exact. Chances of slots are those of `slates.propensities`. Without rules, moments are summed over classes
of arms (`evaluation.moments`); with rules, over all slates (`evaluation.enumeration`), where these are few enough.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from neuclust.core import Round
from neuclust.errors import ConfigError, DataError
from neuclust.evaluation.enumeration import Slates, enumerated_slates
from neuclust.evaluation.moments import Floats, Labelled, first_moments, labelled, moments
from neuclust.logs.decisions import Design
from neuclust.slates.propensities import Exploration, SlateSampler, prefix_ratios
from neuclust.slates.rules import keeps, row_rules


@dataclass(frozen=True, slots=True)
class Mixture:
    """One of several designs, each with the same chance: a randomised target scored by its own draws."""

    designs: tuple[Design, ...]

    def __post_init__(self) -> None:
        if not self.designs:
            raise DataError("mixture: expected at least one design, got none; draw from the target at least once")


Drawn = Design | Mixture
MOST_PAIRED = 4_096  # slots times arms: 128 MiB


class _Part(NamedTuple):
    """A design that is drawn with a probability; its kind is deterministic, sequential or uniform."""

    weight: float
    design: Design


def _parts(drawn: Drawn, round: Round) -> Iterator[_Part]:
    """A mixture as its members, and one coin per slate as the base slate or a slate drawn evenly; checked."""
    if isinstance(drawn, Mixture):
        for design in drawn.designs:
            yield from (_Part(part.weight / len(drawn.designs), part.design) for part in _parts(design, round))
        return
    check_design(drawn, round)
    if drawn.kind == "one-coin":
        yield _Part(1 - drawn.share, Design("deterministic", drawn.base))
        yield _Part(drawn.share, Design("uniform"))
    else:
        yield _Part(1.0, drawn)


# --- chances of slots -----------------------------------------------------------------------------------------------


def slot_chances(drawn: Drawn, round: Round, slate: Sequence[int]) -> Floats:
    """P(S_j | S_1, …, S_{j−1}) of each slot's arm, 0 from the first one that cannot follow: positions (k,) -> (k,).

    The last is 0 too where the slate would not end there: the product is the chance of the slate. Of a mixture it is
    Σ_m P_m(S_1, …, S_j) / Σ_m P_m(S_1, …, S_{j−1}).
    """
    rows = [int(row) for row in slate]
    if isinstance(drawn, Mixture):
        prefixes = [np.cumprod(slot_chances(design, round, rows)) for design in drawn.designs]
        after = np.mean(prefixes, axis=0)
        before = np.concatenate([[1.0], after[:-1]])
        ratios: Floats = np.divide(after, before, out=np.zeros(len(rows)), where=before > 0)
        return ratios
    check_design(drawn, round)
    if drawn.kind == "deterministic":
        alike = [place < len(drawn.base) and row == drawn.base[place] for place, row in enumerate(rows)]
        if alike and len(drawn.base) > len(rows):
            alike[-1] = False
        return np.cumprod(alike, dtype=np.float64)
    if drawn.kind == "one-coin":
        found = prefix_ratios(torch.tensor(rows), torch.tensor(drawn.base), round, drawn.share)
        return np.array(found.tolist())
    return np.array(_sampler(drawn, round).chances(rows))


def next_chances(drawn: Drawn, round: Round, prefix: Sequence[int]) -> Floats:
    """P(a | S) of every arm in the slot that follows the arms S: (n,), zeros where S cannot be or the slate ends."""
    total, reached = np.zeros(len(round.arm_ids)), 0.0
    for weight, following in _followers(drawn, round):
        chance = weight
        for place, row in enumerate(prefix):
            chance *= float(following(prefix[:place])[row])
        if chance > 0:
            total, reached = total + chance * following(prefix), reached + chance
    return total / reached if reached > 0 else total


def _followers(drawn: Drawn, round: Round) -> Iterator[tuple[float, Callable[[Sequence[int]], Floats]]]:
    """Of every part its weight, and P(· | S) as a function of S."""
    for weight, design in _parts(drawn, round):
        if design.kind == "deterministic":
            yield weight, _following_base(design.base, len(round.arm_ids))
        else:
            yield weight, _sampler(design, round).following


def _following_base(base: Sequence[int], n: int) -> Callable[[Sequence[int]], Floats]:
    def following(prefix: Sequence[int]) -> Floats:
        found = np.zeros(n)
        if len(prefix) < len(base) and all(row == base[place] for place, row in enumerate(prefix)):
            found[base[len(prefix)]] = 1.0
        return found

    return following


def _sampler(design: Design, round: Round) -> SlateSampler:
    """The distribution of a sequential or uniform design."""
    base, pool = (design.base, design.pool) if design.kind == "sequential" else ((), ())
    first, among = (torch.tensor(rows, dtype=torch.int64) for rows in (base, pool))
    return SlateSampler(first, among, round, _exploration(design, round))


def _exploration(design: Design, round: Round) -> Exploration:
    if design.kind == "uniform":
        return Exploration(share=1.0, anywhere=1.0)
    try:
        return Exploration(share=design.share, anywhere=design.anywhere)
    except ConfigError as error:
        raise DataError(f"round {round.t}: design: {error}") from None


# --- designs that can be computed with ------------------------------------------------------------------------------


def check_design(design: Design, round: Round) -> None:
    """Refuse a design that does not fit the round, or gives no chances to slates other than the logged one."""
    n, at = len(round.arm_ids), f"round {round.t}: design"
    if design.kind == "unknown":
        wanted = "expected a design that gives chances to slates, got 'unknown'"
        raise DataError(f"{at}: {wanted}; use ips with the logged propensities, or log the design")
    outside = [row for row in (*design.base, *design.pool) if not 0 <= row < n]
    if outside:
        raise DataError(f"{at}: expected rows from 0 to below {n} in base and pool, got {outside[0]}; log positions")
    if design.kind == "deterministic" and not 0 < len(set(design.base)) == len(design.base) <= round.slate_size:
        wanted = f"expected 1 to {round.slate_size} distinct arms in a deterministic slate"
        raise DataError(f"{at}: {wanted}, got {list(design.base)!r:.100}; log the slate as the base")
    if design.kind == "one-coin" and not _whole(design, round):
        wanted = "expected a base slate that keeps the rules and cannot grow"
        raise DataError(f"{at}: {wanted}, got {list(design.base)!r:.100}; log the greedy slate as the base")


def _whole(design: Design, round: Round) -> bool:
    """Whether filling can end with the base slate; without rules its arms only need counting."""
    if round.rules is None:
        return len(set(design.base)) == len(design.base) == min(round.slate_size, len(round.arm_ids))
    return keeps(row_rules(round), design.base)


# --- moments --------------------------------------------------------------------------------------------------------


def slot_marginals(drawn: Drawn, round: Round) -> Floats:
    """P(slot j holds arm a): (k, n); slots in which slates have ended have rows that add up to less than 1."""
    total = np.zeros((round.slate_size, len(round.arm_ids)))
    for weight, design in _parts(drawn, round):
        if design.kind == "deterministic":
            total[np.arange(len(design.base)), list(design.base)] += weight
        elif round.rules is None:
            shape, labels = shape_of(design, round)
            total[: shape.slots] += weight * first_moments(shape).of_arms()[:, labels]
        else:
            total += weight * _all_slates(design, round).marginals()
    return total


def pair_marginals(drawn: Drawn, round: Round) -> Floats:
    """Γ, P(slot i holds a and slot j holds b): (k·n, k·n) with rows i·n + a; the marginals on its diagonal."""
    k, n = round.slate_size, len(round.arm_ids)
    if k * n > MOST_PAIRED:
        wanted = f"expected at most {MOST_PAIRED} pairs of slot and arm, got {k} × {n}"
        raise DataError(f"round {round.t}: pair marginals: {wanted}; use ips or rips, which need none")
    total = np.zeros((k, n, k, n))
    for weight, design in _parts(drawn, round):
        if design.kind == "deterministic":
            at = np.arange(len(design.base)) * n + np.array(design.base)
            total.reshape(k * n, k * n)[np.ix_(at, at)] += weight
        elif round.rules is None:
            used = shape_of(design, round).shape.slots
            total[:used, :, :used] += weight * _arm_pairs(shape_of(design, round))
        else:
            total += weight * _all_slates(design, round).pairs()
    return total.reshape(k * n, k * n)


def _arm_pairs(labelled: Labelled) -> Floats:
    """Second moments of classes as those of arms: (k, n, k, n)."""
    found, labels = moments(labelled.shape), labelled.labels
    arms, slots = np.arange(len(labels)), np.arange(labelled.shape.slots)[:, None]
    pairs: Floats = found.of_pairs()[:, labels][:, :, :, labels]
    pairs[:, arms, :, arms] = 0.0  # no arm is in two slots
    pairs[slots, arms, slots, arms] = found.of_arms()[:, labels]
    return pairs


def _all_slates(design: Design, round: Round) -> Slates:
    return enumerated_slates(design, round, _sampler(design, round).following)


def shape_of(design: Design, round: Round) -> Labelled:
    """The shape of a design without rules, and the classes of its arms (`evaluation.moments`).

    A deterministic design has ε = 0 and ends with its base slate. One coin per slate has the classes of its base slate
    and its own ε, and its moments are those of ε = 0 and of ε = 1, mixed. A uniform design has ε = 1 and no base slate.
    """
    n, k = len(round.arm_ids), min(round.slate_size, len(round.arm_ids))
    if design.kind == "sequential":
        exploration = _exploration(design, round)
        return labelled(n, k, design.base, design.pool, exploration.share, exploration.anywhere)
    if design.kind == "deterministic":
        return labelled(n, len(design.base), design.base, (), 0.0, 1.0)
    if design.kind == "one-coin":
        return labelled(n, k, design.base, (), design.share, 1.0)
    return labelled(n, k, (), (), 1.0, 1.0)
