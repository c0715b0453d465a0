"""The commands that make the numbers of a report again."""

import shlex
from collections.abc import Iterable, Sequence

from neuclust.analysis.groups import Contender, ProblemRuns, problems
from neuclust.environments.catalogue import ENVIRONMENTS
from neuclust.experiment.records import RunRecord


def commands_of(records: Iterable[RunRecord]) -> list[str]:
    """The commands that play these records again, problem by problem."""
    return [line for problem in problems(records) for line in commands(problem)]


def commands(problem: ProblemRuns) -> list[str]:
    """`neuclust run …` lines that play the runs again; contenders with equal settings and seeds share one."""
    groups: dict[tuple[object, ...], list[Contender]] = {}
    for contender in problem.contenders:
        first = contender.runs[0]
        seeds = tuple(run.seed for run in contender.runs)
        groups.setdefault((seeds, first.clusters, tuple(sorted(first.settings.items()))), []).append(contender)
    return [
        shlex.join(["neuclust", "run", *_problem_options(problem), *_who(together), *_seeds(seeds)])
        for together in groups.values()
        for seeds in stretches(run.seed for run in together[0].runs)
    ]


def stretches(seeds: Iterable[int]) -> list[range]:
    """Seeds as runs of consecutive numbers: 0 1 2 7 8 are 0–2 and 7–8."""
    found: list[range] = []
    for seed in sorted(set(seeds)):
        if found and found[-1].stop == seed:
            found[-1] = range(found[-1].start, seed + 1)
        else:
            found.append(range(seed, seed + 1))
    return found


def _problem_options(problem: ProblemRuns) -> list[str]:
    first = problem.contenders[0].runs[0]
    source = ["--env", problem.env] if problem.env in ENVIRONMENTS else ["--data", f"{problem.env}.npz"]
    asked = str(first.rounds_asked or first.rounds)
    options = {"rounds": asked, "slate_size": problem.slate_size or None, **first.problem}
    given = ((f"--{key.replace('_', '-')}", str(value)) for key, value in options.items() if value is not None)
    return [*source, *(word for pair in given for word in pair)]


def _who(together: Sequence[Contender]) -> list[str]:
    first = together[0].runs[0]
    clusters = [] if first.clusters is None else ["--clusters", str(first.clusters)]
    settings = [word for key, value in sorted(first.settings.items()) for word in ("--set", f"{key}={value}")]
    return [*(word for each in together for word in ("--policy", each.code)), *clusters, *settings]


def _seeds(seeds: range) -> list[str]:
    return ["--seeds", str(len(seeds)), *(["--first-seed", str(seeds.start)] if seeds.start else [])]
