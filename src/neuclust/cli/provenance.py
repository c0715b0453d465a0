"""The commands that make the numbers of a report again."""

import shlex
from collections.abc import Iterable, Mapping, Sequence

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
        _command(problem, together, seeds)
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


def option_words(options: Mapping[str, object]) -> list[str]:
    """`--name value` of every option that is given, once per value of a list."""
    lists = {name: value if isinstance(value, list) else [value] for name, value in options.items()}
    given = [(f"--{name.replace('_', '-')}", value) for name, values in lists.items() for value in values]
    return [word for name, value in given if value is not None for word in (name, str(value))]


def _command(problem: ProblemRuns, together: Sequence[Contender], seeds: range) -> str:
    first = together[0].runs[0]
    source = {"env": problem.env} if problem.env in ENVIRONMENTS else {"data": f"{problem.env}.npz"}
    options: dict[str, object] = {
        **source,
        "rounds": first.rounds_asked or first.rounds,
        "slate_size": problem.slate_size or None,
        **first.problem,
        "policy": [each.code for each in together],
        "clusters": first.clusters,
        "set": [f"{key}={value}" for key, value in sorted(first.settings.items())],
        "seeds": len(seeds),
        "first_seed": seeds.start or None,
    }
    return shlex.join(["neuclust", "run", *option_words(options)])
