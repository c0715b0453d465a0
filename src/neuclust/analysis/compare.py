"""All paired differences of every problem: how large they are, and whether the seeds can tell them from chance."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from neuclust.analysis.estimates import Estimate, estimate
from neuclust.analysis.groups import Contender, ProblemRuns, problems
from neuclust.analysis.paired import bootstrap_interval
from neuclust.analysis.verdicts import CONFIDENCE, Judged, Verdict, couples_of, judge, powerless_note, reading_note
from neuclust.errors import ConfigError, DataError, one_of
from neuclust.experiment.records import RunRecord

METRIC = "expected_regret"
ALIKE: dict[Verdict, str] = {  # why pairs could not be told apart
    "noise": "Noise, no difference shown (which does not show that they are equal)",
    "too few seeds": "Too few seeds to show any difference, however large",
    "identical": "Identical on every common seed",
}


@dataclass(frozen=True, slots=True)
class Pair:
    """Regret of `title` minus regret of `against` over the seeds both have played."""

    title: str
    against: str
    seeds: tuple[int, ...] = ()
    mean: float | None = None
    against_mean: float | None = None
    difference: Estimate | None = None
    ratio: float | None = None  # of the means; None where the other is 0
    interval: tuple[float, float] | None = None
    p: float | None = None
    corrected_p: float | None = None
    verdict: Verdict = "no common seeds"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One problem, what its contenders are called, their differences, and what to know when reading them."""

    problem: ProblemRuns
    confidence: float
    titles: tuple[str, ...]  # of problem.contenders
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]


def compare(
    records: Sequence[RunRecord], *, confidence: float = CONFIDENCE, baseline: str | None = None
) -> list[Comparison]:
    """All differences of every problem, or those to `baseline` (`POLICY[:PRESET]`) alone."""
    if not 0.5 <= confidence < 1.0:
        raise ConfigError(f"expected a number from 0.5 to below 1, say 0.95, got {confidence:g}", field="confidence")
    found = problems(records)
    if not found:
        raise DataError("expected runs to compare, got none with a round played; run some policies first")
    if baseline is not None and not any(_named(problem, baseline) for problem in found):
        known = sorted({one.code for problem in found for one in problem.contenders})
        raise ConfigError(one_of(baseline, known), field="baseline")
    return [_comparison(problem, confidence, baseline) for problem in found]


def _named(problem: ProblemRuns, baseline: str) -> Contender | None:
    """The contender of this name, the one without settings where several have it."""
    policy, _, preset = baseline.partition(":")
    matching = [one for one in problem.contenders if (one.policy, one.preset) == (policy, preset or "default")]
    plain = [one for one in matching if not one.settings]
    if len(matching) > 1 and not plain:
        settings = "; ".join(one.settings for one in matching)
        advice = "run it once without settings, or compare without a baseline"
        raise ConfigError(f"expected one contender, but {baseline} has run with {settings}; {advice}", field="baseline")
    return next(iter(plain or matching), None)


def _comparison(problem: ProblemRuns, confidence: float, baseline: str | None) -> Comparison:
    rival = None if baseline is None else _named(problem, baseline)
    couples = [] if baseline is not None and rival is None else couples_of(problem.contenders, rival)
    judged = judge(couples, confidence)
    pairs = tuple(_pair(problem, each, confidence) for each in judged)
    titles = tuple(_title(problem, contender) for contender in problem.contenders)
    notes = [f"{baseline} has not run on this problem: nothing is compared here."] if baseline and not rival else []
    notes += [*_test_notes(problem, judged, pairs, confidence), *_seed_notes(problem, pairs)]
    return Comparison(problem, confidence, titles, pairs, tuple(notes))


def _title(problem: ProblemRuns, contender: Contender) -> str:
    """The short title, or settings with their whole names where two short ones are the same."""
    alike = [one for one in problem.contenders if one.title == contender.title]
    return contender.title if len(alike) == 1 else f"{contender.policy} {contender.preset} ({contender.settings})"


def _pair(problem: ProblemRuns, judged: Judged, confidence: float) -> Pair:
    """What was judged, with the means, their ratio and an interval of the difference."""
    title, other = _title(problem, judged.one), _title(problem, judged.against)
    if not judged.gaps:
        return Pair(title, other)
    seeds, gaps = zip(*judged.gaps.items(), strict=True)
    regrets = [each.values(METRIC) for each in (judged.one, judged.against)]
    mean, against_mean = (sum(each[seed] for seed in seeds) / len(seeds) for each in regrets)
    ratio = mean / against_mean if against_mean else None
    interval = bootstrap_interval(gaps, confidence, f"{problem.env} {title} {other}")
    tested = (judged.p, judged.corrected_p, judged.verdict)
    return Pair(title, other, seeds, mean, against_mean, estimate(gaps), ratio, interval, *tested)


def _test_notes(problem: ProblemRuns, judged: Sequence[Judged], pairs: Sequence[Pair], confidence: float) -> list[str]:
    """How differences were tested, which of them are noise, and which contenders were left out."""
    tested = [pair for pair in pairs if pair.p is not None]
    if not tested:
        return []
    reading = (
        f"p: {reading_note(len(tested), confidence)}. Interval: {confidence * 100:g} % paired bootstrap (BCa) of the "
        "mean difference, each by itself."
    )
    compared = {pair.against for pair in pairs}
    yardsticks = [one.title for one in problem.contenders if one.knows_truth and one.title not in compared]
    aside = [f"Not compared, since they know the truth: {', '.join(yardsticks)}."] if yardsticks else []
    alike = {verdict: [f"{p.title} and {p.against}" for p in tested if p.verdict == verdict] for verdict in ALIKE}
    noise = [f"{start}: {'; '.join(alike[verdict])}." for verdict, start in ALIKE.items() if alike[verdict]]
    return [note for note in (reading, powerless_note(judged, confidence), *noise, *aside) if note]


def _seed_notes(problem: ProblemRuns, pairs: Sequence[Pair]) -> list[str]:
    """Pairs without a common seed, seeds played twice, and runs cut short."""
    apart = [f"{p.title} and {p.against} have no seed in common: nothing is paired." for p in pairs if not p.seeds]
    for one in problem.contenders:
        twice = [str(seed) for seed, count in Counter(run.seed for run in one.runs).items() if count > 1]
        if twice:
            seeds = ", ".join(twice)
            apart.append(f"{one.title} has run more than once with seed {seeds}: pairs use the last of them.")
    return apart + [
        f"{run.policy}, seed {run.seed}, stopped after round {run.rounds} of {run.rounds_asked} and is left out."
        for run in problem.left_out
    ]
