"""A claim about the paper with the answer the records give, and when an order may be told from chance."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from neuclust.analysis.groups import Contender, Estimate
from neuclust.report.tables import FEW_SEEDS, NOISE, is_within_noise, with_error

Answer = Literal["reproduces", "does not reproduce", "cannot be told", "finding"]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim, the answer the records give, and the sentence with the numbers."""

    claim: str
    answer: Answer
    evidence: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def order_verdict(difference: Estimate, pairs: int) -> Answer:
    """The paper's order is a negative difference NeUClust − CN-UCB; two standard errors tell it from chance.

    A standard error from fewer than five pairs is too rough to be counted in.
    """
    if pairs < FEW_SEEDS or difference.error is None or is_within_noise(difference):
        return "cannot be told"
    return "reproduces" if difference.mean < 0 else "does not reproduce"


def common_seeds(one: Contender, other: Contender) -> int:
    """How many seeds both were played with."""
    return len({run.seed for run in one.runs} & {run.seed for run in other.runs})


def order_evidence(ours: Contender, theirs: Contender, gap: Estimate, pairs: int) -> str:
    """Both regrets and their paired difference, with the number of seeds it rests on."""
    one, other = (with_error(contender.over_seeds("expected_regret")) for contender in (ours, theirs))
    text = f"Expected regret {one} against {other}; paired difference {with_error(gap, sign=True)}"
    if pairs < FEW_SEEDS:
        seeds = "1 common seed" if pairs == 1 else f"{pairs} common seeds"
        return f"{text} over {seeds}; at least {FEW_SEEDS} are needed to say anything."
    errors = f", {abs(gap.mean) / gap.error:.1f} standard errors" if gap.error else ""
    return f"{text} over {pairs} common seeds{errors} ({NOISE:g} are needed to tell a difference from chance)."
