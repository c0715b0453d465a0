"""Who differs from whom, by how much, and whether the seeds can tell: all paired differences of every problem."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from neuclust.errors import ConfigError, DataError, one_of
from neuclust.experiment.records import RunRecord
from neuclust.report.groups import Contender, Estimate, ProblemRuns, estimate, problems
from neuclust.report.paired import bootstrap_interval, holm, pairs_needed, signed_rank_p, smallest_p

METRIC = "expected_regret"
Verdict = Literal["more regret", "less regret", "noise", "identical", "no common seeds"]


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


def compare(records: Sequence[RunRecord], *, confidence: float = 0.95, baseline: str | None = None) -> list[Comparison]:
    """All differences of every problem, or those to `baseline` (`POLICY[:PRESET]`) alone."""
    if not 0.5 <= confidence < 1.0:
        raise ConfigError(f"--confidence: expected a number from 0.5 to below 1, got {confidence:g}; 0.95 is usual")
    found = problems(records)
    if not found:
        raise DataError("expected runs to compare, got none with a round played; run some policies first")
    if baseline is not None and not any(_named(problem, baseline) for problem in found):
        known = sorted({_code(one) for problem in found for one in problem.contenders})
        raise ConfigError(f"--baseline: {one_of(baseline, known)}; name one that has run")
    return [_comparison(problem, confidence, baseline) for problem in found]


def level_of(confidence: float) -> float:
    """1 − confidence without the rounding of binary fractions: 0.05, not 0.050000000000000044."""
    return round(1.0 - confidence, 12)


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
    couples = [] if baseline is not None and rival is None else _couples(problem.contenders, rival)
    pairs = _corrected([_pair(problem, *couple, confidence) for couple in couples], level_of(confidence))
    return Comparison(
        env=problem.env,
        rounds=problem.rounds,
        slate_size=problem.slate_size,
        options=problem.options,
        title=problem.description,
        confidence=confidence,
        standings=tuple(_standing(problem, contender) for contender in problem.contenders),
        pairs=pairs,
        notes=tuple(_notes(problem, pairs, confidence, baseline if rival is None else None)),
    )


def _couples(contenders: Sequence[Contender], rival: Contender | None) -> list[tuple[Contender, Contender]]:
    """(one, against): the one with more regret first; whoever knows the truth only where it was asked for."""
    learners = [one for one in contenders if not one.knows_truth]
    if rival is not None:
        return [(one, rival) for one in learners if one is not rival]
    return [(worse, better) for better, worse in itertools.combinations(learners, 2)]


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


def _by_seed(contender: Contender) -> dict[int, float]:
    return {run.seed: run.expected_regret for run in contender.runs}


def _pair(problem: ProblemRuns, one: Contender, against: Contender, confidence: float) -> Pair:
    """The difference with its own p; what the other tests of the problem do to it comes later."""
    title, other = _title(problem, one), _title(problem, against)
    ours, theirs = _by_seed(one), _by_seed(against)
    seeds = tuple(sorted(ours.keys() & theirs.keys()))
    if not seeds:
        return Pair(title, other)
    mean, against_mean = (sum(values[seed] for seed in seeds) / len(seeds) for values in (ours, theirs))
    gaps = [ours[seed] - theirs[seed] for seed in seeds]
    return Pair(
        title=title,
        against=other,
        seeds=seeds,
        mean=mean,
        against_mean=against_mean,
        difference=estimate(gaps),
        ratio=mean / against_mean if against_mean else None,
        interval=bootstrap_interval(gaps, confidence, f"{problem.env} {title} {other}"),
        p=signed_rank_p(gaps),
        verdict="noise" if any(gaps) else "identical",
    )


def _corrected(pairs: Sequence[Pair], level: float) -> tuple[Pair, ...]:
    """Holm over the differences of one problem; a verdict needs a corrected p below the level."""
    corrected = iter(holm([pair.p for pair in pairs if pair.p is not None]))
    found = []
    for pair in pairs:
        p = None if pair.p is None else next(corrected)
        found.append(replace(pair, corrected_p=p, verdict=_verdict(pair, p, level)))
    return tuple(found)


def _verdict(pair: Pair, corrected_p: float | None, level: float) -> Verdict:
    if corrected_p is None or corrected_p >= level or pair.difference is None or pair.verdict != "noise":
        return pair.verdict
    return "more regret" if pair.difference.mean > 0 else "less regret"


def _notes(problem: ProblemRuns, pairs: Sequence[Pair], confidence: float, absent: str | None) -> list[str]:
    level = level_of(confidence)
    notes = [f"{absent} has not run on this problem: nothing is compared here."] if absent is not None else []
    tested = [pair for pair in pairs if pair.p is not None]
    if tested:
        notes += [_reading(len(tested), confidence), *_powerless(tested, level), *_noise(tested)]
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
    how = (
        "1 test, nothing to correct for"
        if tests == 1
        else f"Holm's correction over the {tests} differences of this problem"
    )
    return (
        f"p: two-sided Wilcoxon signed-rank test over common seeds ({how}). Interval: {confidence * 100:g} % paired "
        "bootstrap (BCa) of the mean difference, each by itself. A difference counts where the corrected p is below "
        f"{level_of(confidence):.2g}."
    )


def _powerless(pairs: Sequence[Pair], level: float) -> list[str]:
    """Say so where no outcome whatever could have been told from chance."""
    most = max(len(pair.seeds) for pair in pairs)
    tests = len(pairs)
    if tests * smallest_p(most) < level:
        return []
    seeds = "this 1 seed" if most == 1 else f"these {most} seeds"
    shown = "1 pair" if most == 1 else f"{most} pairs"
    best = smallest_p(most)
    if best >= level:
        why = f"{shown} can never give p < {level:.2g} in a two-sided Wilcoxon test"
    else:
        why = f"{shown} give p = {best:.2g} at best, which {tests} comparisons turn into {tests * best:.2g}"
    return [f"No difference can be told from {seeds}: {why}; {pairs_needed(tests, level)} seeds could."]


def _noise(pairs: Sequence[Pair]) -> list[str]:
    alike = [f"{pair.title} and {pair.against}" for pair in pairs if pair.verdict == "noise"]
    same = [f"{pair.title} and {pair.against}" for pair in pairs if pair.verdict == "identical"]
    notes = (
        [f"Noise, no difference shown (which does not show that they are equal): {'; '.join(alike)}."] if alike else []
    )
    return notes + ([f"Identical on every common seed: {'; '.join(same)}."] if same else [])


def _doubles(contender: Contender) -> list[str]:
    twice = [str(seed) for seed, count in Counter(run.seed for run in contender.runs).items() if count > 1]
    if not twice:
        return []
    return [f"{contender.title} has run more than once with seed {', '.join(twice)}: pairs use the last of them."]
