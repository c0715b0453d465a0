"""Who differs from whom, by how much, and whether the seeds can tell: all paired differences of every problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from neuclust.analysis.groups import Contender, Estimate, ProblemRuns, estimate, problems
from neuclust.analysis.paired import bootstrap_interval
from neuclust.analysis.verdicts import CONFIDENCE, Judged, Verdict, couples_of, judge, powerless_note, reading_note
from neuclust.errors import ConfigError, DataError, one_of
from neuclust.experiment.records import RunRecord

METRIC = "expected_regret"


@dataclass(frozen=True, slots=True)
class Standing:
    """One contender by itself; `title` is what the pairs call it."""

    title: str
    policy: str
    preset: str
    settings: str
    seeds: int
    regret: Estimate


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
    """One problem: contenders by regret, their differences, and what to know when reading them."""

    env: str
    rounds: int
    slate_size: int
    options: str
    title: str
    confidence: float
    standings: tuple[Standing, ...]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]


def compare(
    records: Sequence[RunRecord], *, confidence: float = CONFIDENCE, baseline: str | None = None
) -> list[Comparison]:
    """All differences of every problem, or those to `baseline` (`POLICY[:PRESET]`) alone."""
    if not 0.5 <= confidence < 1.0:
        raise ConfigError(f"--confidence: expected a number from 0.5 to below 1, got {confidence:g}; 0.95 is usual")
    found = problems(records)
    if not found:
        raise DataError("expected runs to compare, got none with a round played; run some policies first")
    if baseline is not None and not any(_named(problem, baseline) for problem in found):
        known = sorted({_code(one) for problem in found for one in problem.contenders})
        raise ConfigError(f"--baseline: {one_of(baseline, known)}")
    return [_comparison(problem, confidence, baseline) for problem in found]


def _code(contender: Contender) -> str:
    return contender.policy if contender.preset == "default" else f"{contender.policy}:{contender.preset}"


def _named(problem: ProblemRuns, baseline: str) -> Contender | None:
    """The contender of this name, the one without settings where several have it."""
    policy, _, preset = baseline.partition(":")
    matching = [one for one in problem.contenders if (one.policy, one.preset) == (policy, preset or "default")]
    plain = [one for one in matching if not one.settings]
    if len(matching) > 1 and not plain:
        settings = "; ".join(one.settings for one in matching)
        raise ConfigError(
            f"--baseline: expected one contender, but {baseline} has run with {settings}, and never without settings; "
            "run it once without, or drop --baseline"
        )
    return next(iter(plain or matching), None)


def _comparison(problem: ProblemRuns, confidence: float, baseline: str | None) -> Comparison:
    rival = None if baseline is None else _named(problem, baseline)
    couples = [] if baseline is not None and rival is None else couples_of(problem.contenders, rival)
    judged = judge(couples, confidence)
    pairs = tuple(_pair(problem, each, confidence) for each in judged)
    return Comparison(
        env=problem.env,
        rounds=problem.rounds,
        slate_size=problem.slate_size,
        options=problem.options,
        title=problem.description,
        confidence=confidence,
        standings=tuple(_standing(problem, contender) for contender in problem.contenders),
        pairs=pairs,
        notes=tuple(_notes(problem, judged, pairs, confidence, baseline if rival is None else None)),
    )


def _title(problem: ProblemRuns, contender: Contender) -> str:
    """The short title, or settings with their whole names where two short ones are the same."""
    alike = [one for one in problem.contenders if one.title == contender.title]
    return contender.title if len(alike) == 1 else f"{contender.policy} {contender.preset} ({contender.settings})"


def _standing(problem: ProblemRuns, contender: Contender) -> Standing:
    return Standing(
        title=_title(problem, contender),
        policy=contender.policy,
        preset=contender.preset,
        settings=contender.settings,
        seeds=len(contender.runs),
        regret=contender.over_seeds(METRIC),
    )


def _pair(problem: ProblemRuns, judged: Judged, confidence: float) -> Pair:
    """What was judged, with the means, their ratio and an interval of the difference."""
    title, other = _title(problem, judged.one), _title(problem, judged.against)
    if not judged.seeds:
        return Pair(title, other)
    mean, against_mean = (_mean_over(each, judged.seeds) for each in (judged.one, judged.against))
    return Pair(
        title=title,
        against=other,
        seeds=judged.seeds,
        mean=mean,
        against_mean=against_mean,
        difference=estimate(judged.gaps),
        ratio=mean / against_mean if against_mean else None,
        interval=bootstrap_interval(judged.gaps, confidence, f"{problem.env} {title} {other}"),
        p=judged.p,
        corrected_p=judged.corrected_p,
        verdict=judged.verdict,
    )


def _mean_over(contender: Contender, seeds: Sequence[int]) -> float:
    regrets = {run.seed: run.expected_regret for run in contender.runs}
    return sum(regrets[seed] for seed in seeds) / len(seeds)


def _notes(
    problem: ProblemRuns, judged: Sequence[Judged], pairs: Sequence[Pair], confidence: float, absent: str | None
) -> list[str]:
    notes = [f"{absent} has not run on this problem: nothing is compared here."] if absent is not None else []
    tested = [pair for pair in pairs if pair.p is not None]
    if tested:
        powerless = powerless_note(judged, confidence)
        notes += [_reading(len(tested), confidence), *([powerless] if powerless else []), *_noise(tested)]
    compared = {pair.against for pair in pairs}
    told = [one.title for one in problem.contenders if one.knows_truth and one.title not in compared]
    if told and tested:
        notes.append(f"Not compared, since told the truth beforehand: {', '.join(told)}.")
    notes += [
        f"{pair.title} and {pair.against} have no seed in common: nothing is paired."
        for pair in pairs
        if not pair.seeds
    ]
    notes += [note for one in problem.contenders for note in _doubles(one)]
    notes += [
        f"{run.policy}, seed {run.seed}, stopped after round {run.rounds} of {run.rounds_asked} and is left out."
        for run in problem.left_out
    ]
    return notes


def _reading(tests: int, confidence: float) -> str:
    return (
        f"p: {reading_note(tests, confidence)}. Interval: {confidence * 100:g} % paired bootstrap (BCa) of the mean "
        "difference, each by itself."
    )


def _noise(pairs: Sequence[Pair]) -> list[str]:
    """Who could not be told from whom, by the reason why."""
    words: dict[Verdict, str] = {
        "noise": "Noise, no difference shown (which does not show that they are equal)",
        "too few seeds": "Too few seeds to show any difference, however large",
        "identical": "Identical on every common seed",
    }
    notes = []
    for verdict, start in words.items():
        alike = [f"{pair.title} and {pair.against}" for pair in pairs if pair.verdict == verdict]
        notes += [f"{start}: {'; '.join(alike)}."] if alike else []
    return notes


def _doubles(contender: Contender) -> list[str]:
    twice = [str(seed) for seed, count in Counter(run.seed for run in contender.runs).items() if count > 1]
    if not twice:
        return []
    return [f"{contender.title} has run more than once with seed {', '.join(twice)}: pairs use the last of them."]
