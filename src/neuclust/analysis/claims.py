"""A claim about the paper with the answer the records give, and when an order may be told from chance."""

from dataclasses import dataclass
from typing import Literal

from neuclust.analysis.estimates import FEW_SEEDS, NOISE, Estimate, counted, estimate, is_within_noise, with_error
from neuclust.analysis.groups import Contender
from neuclust.analysis.verdicts import common_gaps

Answer = Literal["reproduces", "does not reproduce", "cannot be told", "finding"]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim, the answer the records give, and the sentence with the numbers."""

    claim: str
    answer: Answer
    evidence: str


@dataclass(frozen=True, slots=True)
class PairedRegrets:
    """Two contenders on their common seeds; `gap` is the regret of `ours` minus that of `theirs`, paired by seed."""

    ours: Contender
    theirs: Contender
    gaps: tuple[float, ...]

    @property
    def gap(self) -> Estimate:
        return estimate(self.gaps)

    @property
    def few(self) -> bool:
        """Whether the seeds are too few to say anything."""
        return len(self.gaps) < FEW_SEEDS

    @property
    def difference(self) -> str:
        """The gap in words."""
        return with_error(self.gap, sign=True)

    @property
    def within_noise(self) -> bool:
        return is_within_noise(self.gap)

    def judged(self, claim: str) -> JudgedClaim:
        """The claim that `ours` has less regret; the evidence holds both regrets, their paired difference and seeds."""
        errors = f", {abs(self.gap.mean) / self.gap.error:.1f} standard errors" if self.gap.error else ""
        needed = f"{errors} ({NOISE:g} are needed to tell a difference from chance)."
        evidence = (
            f"Expected regret {regret_of(self.ours)} against {regret_of(self.theirs)}; paired difference "
            f"{self.difference} over {counted(len(self.gaps), 'common seed')}"
            f"{f'; at least {FEW_SEEDS} are needed to say anything.' if self.few else needed}"
        )
        return JudgedClaim(claim, order_verdict(self.gap, len(self.gaps)), evidence)


def paired(ours: Contender | None, theirs: Contender | None) -> PairedRegrets | None:
    """None where one of them, or every common seed, is missing."""
    if ours is None or theirs is None or not (gaps := common_gaps(ours, theirs)):
        return None
    return PairedRegrets(ours, theirs, tuple(gaps.values()))


def regret_of(contender: Contender, column: str = "expected_regret") -> str:
    """A regret of a contender over seeds, in words."""
    return with_error(contender.over_seeds(column))


def order_verdict(difference: Estimate, pairs: int) -> Answer:
    """The paper's order is a negative difference NeUClust − CN-UCB; two standard errors tell it from chance."""
    if pairs < FEW_SEEDS or difference.error is None or is_within_noise(difference):
        return "cannot be told"
    return "reproduces" if difference.mean < 0 else "does not reproduce"
