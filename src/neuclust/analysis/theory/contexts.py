"""Contexts of a problem's first rounds as a net reads them, with their mean rewards and some slates."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Round
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError
from neuclust.models.encoder import Encoder, EncoderConfig, full_at
from neuclust.randomness import stream
from neuclust.theory.assumptions import slopes
from neuclust.theory.folding import Folded, fold
from neuclust.theory.pivoting import Watch, unwatched

SLATES = 200  # whose slopes are looked at
WHOLE = 4000  # contexts of which every pair is looked at: matrices of 128 MB


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many distinct contexts of how many first rounds, drawn with a seed."""

    contexts: int = 2000
    rounds: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, least in (("contexts", self.contexts, 2), ("rounds", self.rounds, 1)):
            if value < least:
                raise ConfigError(f"expected at least {least}, got {value}", field=name)


@dataclass(frozen=True, slots=True)
class Sample:
    """Distinct contexts as encoded (n, d'), their means (n,), and slopes of the slate reward."""

    contexts: Tensor
    means: Tensor
    folded: Folded
    looked_at: int  # rounds
    arms: int  # offered per round, at most
    steepest: float  # largest ∂u/∂h on sampled slates
    flattest: float  # smallest
    lowest_mean: float  # of all arms in the rounds looked at
    highest_mean: float

    @property
    def paired(self) -> tuple[Tensor, Tensor]:
        """Contexts and means of which every pair is looked at: all of them, or `WHOLE`, evenly spaced."""
        count = len(self.contexts)
        chosen = torch.linspace(0, count - 1, min(count, WHOLE), dtype=torch.float64).round().long()
        return self.contexts[chosen], self.means[chosen]


def sample(environment: SlateEnvironment, config: EncoderConfig, how: Sampling, watch: Watch = unwatched) -> Sample:
    """Distinct contexts, as evenly as they come from the first rounds."""
    looked_at = min(how.rounds, environment.horizon)
    encoder = Encoder(config, environment.dim, even=False)
    rows, means, seen = list[Tensor](), list[Tensor](), set[bytes]()
    ends, arms = [math.inf, -math.inf], 0
    steep = list[Tensor]()
    for t in range(1, looked_at + 1):
        round = environment.round(t)
        encoder.settle(round.read)
        truth = environment.means(round)
        ends = [min(ends[0], float(truth.min())), max(ends[1], float(truth.max()))]
        arms = max(arms, len(truth))
        order = torch.from_numpy(stream(how.seed, "theory contexts", t).permutation(len(truth)))
        wanted = math.ceil((how.contexts - len(seen)) / (looked_at - t + 1))
        picked = _new(encoder, round, order, wanted, seen)
        rows.append(full_at(encoder, round.read, picked))
        means.append(truth[picked])
        if len(steep) < SLATES:
            steep += _slopes(environment, round, truth, order, 1 + SLATES // looked_at)
        watch("contexts", t, looked_at)
    contexts, values = torch.cat(rows), torch.cat(means)
    if len(contexts) < 2:
        held = "one and the same in all of them" if len(contexts) else "none"
        asked = f"{environment.name}: expected at least 2 distinct contexts that are not 0 in {looked_at} rounds"
        advice = "H is singular there: name arms with different profiles, more rounds, or another file"
        raise DataError(f"{asked} of up to {arms:,} arms, got {held}; {advice}")
    gathered = torch.cat(steep)
    return Sample(
        contexts, values, fold(contexts), looked_at, arms, float(gathered.max()), float(gathered.min()), *ends
    )


def _new(encoder: Encoder, round: Round, order: Tensor, wanted: int, seen: set[bytes]) -> Tensor:
    """Positions, in the order given, of at most `wanted` contexts that are not 0 and not seen before."""
    picked = list[int]()
    for start in range(0, len(order), 4 * max(wanted, 1)):
        if len(picked) >= wanted:
            break
        part = order[start : start + 4 * max(wanted, 1)]
        whole: NDArray[np.float64] = full_at(encoder, round.read, part).numpy() + 0.0
        held = np.ascontiguousarray(whole).tobytes()
        size = len(held) // len(part)
        for place, (position, there) in enumerate(zip(part.tolist(), np.any(whole != 0, axis=1).tolist(), strict=True)):
            key = held[place * size : (place + 1) * size]
            if there and len(picked) < wanted and key not in seen:
                seen.add(key)
                picked.append(position)
    return torch.tensor(picked, dtype=torch.int64)


def _slopes(environment: SlateEnvironment, round: Round, means: Tensor, order: Tensor, count: int) -> list[Tensor]:
    """∂u/∂h of the best slate and of some drawn ones."""
    size = round.slate_size
    slates = [environment.best_positions(round)]
    slates += [order[i * size : (i + 1) * size] for i in range(count) if (i + 1) * size <= len(order)]
    labels = environment.labels(round)
    found = []
    for positions in slates:

        def worth(values: Tensor, groups: Tensor = labels[positions]) -> float:
            paid, chances = environment.pays.outcomes(values, groups)
            return float(chances @ paid)

        found.append(slopes(worth, means[positions]))
    return found
