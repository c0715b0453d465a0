"""Whether seeds tell two contenders apart: two-sided Wilcoxon signed-rank tests with Holm's correction per problem."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from neuclust.analysis.estimates import Estimate, counted, estimate
from neuclust.analysis.groups import Contender
from neuclust.analysis.paired import holm, pairs_needed, signed_rank_p, smallest_p

CONFIDENCE = 0.95
Verdict = Literal["more regret", "less regret", "noise", "too few seeds", "identical", "no common seeds"]
UNTOLD: tuple[Verdict, ...] = ("noise", "too few seeds", "identical")  # the seeds show no difference


@dataclass(frozen=True, slots=True)
class Judged:
    """Regret of `one` minus regret of `against` seed by seed, and what follows from it."""

    one: Contender
    against: Contender
    gaps: Mapping[int, float]  # by common seed
    p: float | None
    corrected_p: float | None
    verdict: Verdict


def level_of(confidence: float) -> float:
    """1 − confidence without the rounding of binary fractions: 0.05, not 0.050000000000000044."""
    return round(1.0 - confidence, 12)


def couples_of(contenders: Sequence[Contender], rival: Contender | None = None) -> list[tuple[Contender, Contender]]:
    """(one, against): the one with more regret first; a policy that knows the truth only as the `rival`."""
    learners = [one for one in contenders if not one.knows_truth]
    if rival is not None:
        return [(one, rival) for one in learners if one is not rival]
    return [(worse, better) for better, worse in itertools.combinations(learners, 2)]


def judge(couples: Sequence[tuple[Contender, Contender]], confidence: float = CONFIDENCE) -> tuple[Judged, ...]:
    """All couples of one problem together, since every further question makes a chance hit more likely."""
    gaps = [common_gaps(*couple) for couple in couples]
    ps = [signed_rank_p(list(each.values())) if each else None for each in gaps]
    tested = [p for p in ps if p is not None]
    corrected = iter(holm(tested))
    found = []
    for couple, each, p in zip(couples, gaps, ps, strict=True):
        after = None if p is None else next(corrected)
        verdict = _verdict(tuple(each.values()), after, len(tested), level_of(confidence))
        found.append(Judged(*couple, each, p, after, verdict))
    return tuple(found)


def common_gaps(one: Contender, against: Contender) -> dict[int, float]:
    """Differences in expected regret by common seed, ascending; of a seed played twice the last run counts."""
    ours, theirs = (each.values("expected_regret") for each in (one, against))
    return {seed: ours[seed] - theirs[seed] for seed in sorted(ours.keys() & theirs.keys())}


def paired_difference(contender: Contender, best: Contender) -> Estimate | None:
    """Mean and s.e. of regret − regret of `best` over the seeds both have played; None without one."""
    gaps = common_gaps(contender, best)
    return estimate(list(gaps.values())) if gaps else None


def _verdict(gaps: Sequence[float], corrected_p: float | None, tests: int, level: float) -> Verdict:
    if corrected_p is None:
        return "no common seeds"
    if not any(gaps):
        return "identical"
    if corrected_p < level:
        return "more regret" if sum(gaps) > 0 else "less regret"
    return "too few seeds" if tests * smallest_p(len(gaps)) >= level else "noise"


def powerless_note(judged: Sequence[Judged], confidence: float = CONFIDENCE) -> str | None:
    """A sentence where no outcome whatever could have been told from chance, with the seeds that could."""
    tested, level = [len(each.gaps) for each in judged if each.gaps], level_of(confidence)
    if not tested or len(tested) * smallest_p(max(tested)) < level:
        return None
    most, tests = max(tested), len(tested)
    seeds, shown = f"{'this' if most == 1 else 'these'} {counted(most, 'seed')}", counted(most, "pair")
    best = smallest_p(most)
    if best >= level:
        why = f"{shown} can never give p < {level:.2g} in a two-sided Wilcoxon test"
    else:
        why = f"{shown} give p = {best:.2g} at best, which {tests} comparisons turn into {tests * best:.2g}"
    return f"No difference can be told from {seeds}: {why}; {pairs_needed(tests, level)} seeds could."


def reading_note(tests: int, confidence: float = CONFIDENCE) -> str:
    """How a difference was tested, and when it counts."""
    many = f"Holm's correction over the {tests} differences of this problem"
    how = "1 test, nothing to correct for" if tests == 1 else many
    return (
        f"two-sided Wilcoxon signed-rank test over common seeds ({how}); a difference counts where the corrected p is "
        f"below {level_of(confidence):.2g}"
    )
