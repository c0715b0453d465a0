"""What is the exact bias of every estimator where its assumption holds, and where it does not?

    python -m benchmarks.estimator_bias [--quick] [--json FILE]

All slates of 3 of 6 arms, their chances under the logging design and under the target, and the expected rewards of
their slots: the expectation of an estimator over one logged slate is a sum over these. Bias is that expectation less
the target's true value, the largest in size over three targets (deterministic, random, and a mixture of three slates).
Models are fixed and wrong. A star marks cells in which the estimator's assumption holds.

Self-normalised estimators are biased for few rows: over logs of one and of two rows, all of them enumerated, and in the
limit of many, which is a log that holds every slate as often as its chance says.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import combinations_with_replacement, permutations
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.tables import Record, markdown, write_record
from neuclust.core import Cap, Round, Rules
from neuclust.evaluation.designs import Drawn, Mixture, next_chances, slot_chances, slot_marginals
from neuclust.evaluation.estimators import modelled, weighting
from neuclust.evaluation.estimators.rows import Contributions, Rows
from neuclust.evaluation.pseudo_inverse import pseudo_inverse_weight
from neuclust.logs.decisions import Design

Floats = NDArray[np.float64]
Estimator = Callable[[Rows], Contributions]
ARMS, SLOTS = 6, 3
TAU = 1.5  # of switch: some slates are above it under every design
ABOVE_ALL = 1e9
SLATES = [*permutations(range(ARMS), SLOTS)]
PULLS = np.array([0.7, 0.1, 0.45, 0.3, 0.6, 0.2])  # of the arms
SIGHT = np.array([[0.9, 0.5, 0.2], [0.3, 0.8, 0.4], [0.6, 0.1, 0.9], [0.2, 0.7, 0.3], [0.8, 0.4, 0.6], [0.1, 0.9, 0.5]])


# --- rewards --------------------------------------------------------------------------------------------------------


def by_item(slate: Sequence[int]) -> Floats:
    """θ(S_j)."""
    return PULLS[list(slate)]


def by_place(slate: Sequence[int]) -> Floats:
    """θ(S_j, j)."""
    return SIGHT[list(slate), range(SLOTS)]


def cascade(slate: Sequence[int]) -> Floats:
    """θ(S_j) Π_{i < j} (1 − θ(S_i)): users stop at the first click."""
    pulls = PULLS[list(slate)]
    seen: Floats = np.concatenate([[1.0], np.cumprod(1 - pulls[:-1])])
    return pulls * seen


def interacting(slate: Sequence[int]) -> Floats:
    """θ(S_j) (1 − the largest θ of the other slots): arms draw clicks away from each other, later from earlier too."""
    pulls = PULLS[list(slate)]
    return np.array([pull * (1 - np.delete(pulls, place).max()) for place, pull in enumerate(pulls)])


REWARDS: Mapping[str, Callable[[Sequence[int]], Floats]] = {
    "item": by_item,
    "item and place": by_place,
    "cascade": cascade,
    "interacting": interacting,
}


# --- designs and targets --------------------------------------------------------------------------------------------

PLAIN = Round(1, torch.arange(ARMS), torch.zeros(ARMS, 1), None, SLOTS)
RULED = replace(PLAIN, rules=Rules(caps=(Cap(torch.tensor([0, 0, 0, 1, 1, 1]), 2),)))
AROUND = Design("sequential", (0, 1, 3), 0.5, (0, 1, 2, 3), 0.5)
DESIGNS: Mapping[str, tuple[Round, Design]] = {
    "sequential": (PLAIN, AROUND),
    "one coin": (PLAIN, Design("one-coin", (0, 1, 3), 0.5)),
    "uniform": (PLAIN, Design("uniform")),
    "sequential, rules": (RULED, AROUND),
}
TARGETS: Mapping[str, Drawn] = {
    "deterministic": Design("deterministic", (3, 0, 1)),
    "random": Design("sequential", (4, 2, 1), 0.4, (4, 2, 1, 5), 0.2),
    "mixture": Mixture(tuple(Design("deterministic", slate) for slate in [(4, 0, 2), (2, 4, 3), (5, 3, 0)])),
}


def wrong_model(slate: Sequence[int]) -> float:
    """A model's reward of a slate: linear in numbers that have nothing to do with the arms."""
    return 0.2 + sum(0.1 * arm * (place + 1) for place, arm in enumerate(slate)) / 3


def wrong_q(prefix: Sequence[int]) -> float:
    """A model's reward after these slots; it depends on all of them."""
    return 0.1 * prefix[-1] + 0.05 * sum(prefix) + 0.02 * len(prefix) * prefix[0]


# --- everything that can be logged ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Everything:
    """All slates with a chance under the logging design, as rows, their chances (m,) and the target's true value."""

    rows: Rows
    chances: Floats
    truth: float

    def expectation(self, estimator: Estimator) -> float:
        """Of an estimator whose contributions are functions of their own row."""
        return float(self.chances @ estimator(self.rows).values)

    def bias(self, estimator: Estimator) -> float:
        return self.expectation(estimator) - self.truth


def chance(drawn: Drawn, round: Round, slate: Sequence[int]) -> float:
    return float(slot_chances(drawn, round, slate).prod())


@lru_cache(None)
def loggable(design: str, target: str) -> tuple[list[tuple[int, ...]], Floats, Rows]:
    """The slates that can be logged, their chances, and rows of every column but rewards."""
    (round, logging), wanted = DESIGNS[design], TARGETS[target]
    seen = [slate for slate in SLATES if chance(logging, round, slate) > 0]
    rows = Rows(
        logging=np.array([slot_chances(logging, round, slate) for slate in seen]),
        target=np.array([slot_chances(wanted, round, slate) for slate in seen]),
        logging_marginals=slot_marginals(logging, round)[range(SLOTS), np.array(seen)],
        target_marginals=slot_marginals(wanted, round)[range(SLOTS), np.array(seen)],
        pi_weights=np.array([pseudo_inverse_weight(logging, wanted, round, slate) for slate in seen]),
        q_hat=np.array([[wrong_q(slate[: place + 1]) for place in range(SLOTS)] for slate in seen]),
        v_hat=np.array([expected_q(wanted, round, slate) for slate in seen]),
        model_logged=np.array([wrong_model(slate) for slate in seen]),
        model_target=np.full(len(seen), expected(design, target, wrong_model)),
    )
    return seen, np.array([chance(logging, round, slate) for slate in seen]), rows


def expected(design: str, target: str, value: Callable[[Sequence[int]], float]) -> float:
    """E_π of a function of the slate."""
    round = DESIGNS[design][0]
    return sum(chance(TARGETS[target], round, slate) * value(slate) for slate in SLATES)


def everything(design: str, target: str, reward: Callable[[Sequence[int]], Floats]) -> Everything:
    """All rows there can be of a design, with every column that an estimator may need."""
    seen, chances, rows = loggable(design, target)
    rewards = np.array([reward(slate) for slate in seen])
    truth = expected(design, target, lambda slate: float(reward(slate).sum()))
    return Everything(replace(rows, rewards=rewards, slate_rewards=rewards.sum(1)), chances, truth)


def expected_q(target: Drawn, round: Round, slate: Sequence[int]) -> list[float]:
    """v̂_j = Σ_a π(a | S_1, …, S_{j−1}) q̂_j(S_1, …, S_{j−1}, a) of every slot."""
    found = []
    for place in range(SLOTS):
        following = next_chances(target, round, slate[:place]).tolist()
        found.append(sum(share * wrong_q([*slate[:place], arm]) for arm, share in enumerate(following)))
    return found


# --- biases ---------------------------------------------------------------------------------------------------------

ADDITIVE = ("item", "item and place")
CASCADE = (*ADDITIVE, "cascade")
ANY = tuple(REWARDS)
ESTIMATED: Mapping[str, tuple[Estimator, tuple[str, ...]]] = {  # with the rewards for which the assumption holds
    "ips": (weighting.ips, ANY),
    "iips": (weighting.iips, ADDITIVE),
    "rips": (weighting.rips, CASCADE),
    "pi": (weighting.pseudo_inverse, ADDITIVE),
    "cascade-dr": (modelled.cascade_dr, CASCADE),
    "dr": (modelled.dr, ANY),
    f"switch, τ = {TAU}": (partial(modelled.switch, threshold=TAU), ()),
    "switch, τ = ∞": (partial(modelled.switch, threshold=ABOVE_ALL), ANY),
    "dm": (modelled.direct, ()),
}
NORMALISED: Mapping[str, tuple[Estimator, tuple[str, ...]]] = {
    "snips": (weighting.snips, ANY),
    "siips": (weighting.siips, ADDITIVE),
    "srips": (weighting.srips, CASCADE),
    "scascade-dr": (modelled.scascade_dr, CASCADE),
    "sndr": (modelled.sndr, ANY),
}


def largest(biases: Iterable[float]) -> float:
    """The largest in size."""
    return max(biases, key=abs)


def picked(rows: Rows, indices: Sequence[int] | NDArray[np.int64]) -> Rows:
    """A log that holds these rows."""
    names = [name for name in Rows.__dataclass_fields__ if getattr(rows, name) is not None]
    return Rows(**{name: getattr(rows, name)[np.asarray(indices)] for name in names})


def bias_of_logs(found: Everything, estimator: Estimator, length: int) -> float:
    """The exact bias over all logs of so many rows."""
    total = 0.0
    for log in combinations_with_replacement(range(len(found.chances)), length):  # the order does not matter
        orders = len(set(permutations(log)))
        total += orders * float(found.chances[list(log)].prod()) * estimator(picked(found.rows, log)).estimate
    return total - found.truth


def population(found: Everything, length: int) -> Rows:
    """A log of `length` rows that holds every slate as often as its chance says; the chances are such fractions."""
    counts = np.rint(found.chances * length).astype(np.int64)
    if not np.allclose(counts, found.chances * length, atol=1e-9):
        raise ValueError(f"chances are no fractions of {length}")
    return picked(found.rows, np.repeat(np.arange(len(counts)), counts))


POPULATIONS = {"uniform": 120, "one coin": 240}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="logs of one row alone, and of many")
    parser.add_argument("--json", type=Path, default=None, help="where every bias goes")
    options = parser.parse_args(arguments)
    rows, record = bias_rows()
    print(markdown(["estimator", "reward", *DESIGNS], rows, words=2))
    few = (1,) if options.quick else (1, 2)
    more, limits = limit_rows(few)
    print("\nSelf-normalised, random target, by rows of the log:\n")
    print(markdown(["estimator", "reward", "design", *map(str, few), "many"], more, words=3))
    command = "OMP_NUM_THREADS=1 python -m benchmarks.estimator_bias --json FILE"
    write_record(options.json, {"command": command, "bias": record, "few rows": limits})


def bias_rows() -> tuple[list[list[str]], list[Record]]:
    """The largest bias over targets for every estimator, reward and design."""
    table: list[list[str]] = []
    record: list[Record] = []
    for reward, function in REWARDS.items():
        cases = {design: [everything(design, target, function) for target in TARGETS] for design in DESIGNS}
        for name, (estimator, holds) in ESTIMATED.items():
            biases = {design: largest(case.bias(estimator) for case in found) for design, found in cases.items()}
            record += [{"estimator": name, "reward": reward, "design": at, "bias": b} for at, b in biases.items()]
            star = " *" if reward in holds else ""
            table.append([name, reward, *(f"{bias:.1e}{star}" for bias in biases.values())])
    return sorted(table, key=lambda row: [*ESTIMATED].index(row[0])), record


def limit_rows(lengths: Sequence[int]) -> tuple[list[list[str]], list[Record]]:
    """Biases over logs of few rows, and of a log as long as it takes."""
    table: list[list[str]] = []
    record: list[Record] = []
    for design, length in POPULATIONS.items():
        for reward in ("item", "cascade"):
            found = everything(design, "random", REWARDS[reward])
            for name, (estimator, _) in NORMALISED.items():
                few = {str(rows): bias_of_logs(found, estimator, rows) for rows in lengths}
                many = estimator(population(found, length)).estimate - found.truth
                table.append([name, reward, design, *(f"{bias:.1e}" for bias in (*few.values(), many))])
                record.append({"estimator": name, "reward": reward, "design": design, **few, "many": many})
    return sorted(table, key=lambda row: [*NORMALISED].index(row[0])), record


if __name__ == "__main__":
    main()
