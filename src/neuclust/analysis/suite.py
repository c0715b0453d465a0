"""The suite as one table of numbers: problems down, policies across, the learner with the least regret of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuclust.analysis.estimates import Estimate
from neuclust.analysis.groups import ProblemRuns, problems
from neuclust.experiment.records import RunRecord


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """Expected regret and seeds on one problem by title; `best` is the title of the learner with the least regret."""

    name: str
    regrets: Mapping[str, Estimate]
    seeds: Mapping[str, int]
    best: str | None

    def share(self, title: str) -> float | None:
        """Regret over that of uniform play, or over the largest where uniform has not played."""
        yardstick = self.regrets.get("uniform", max(self.regrets.values(), key=lambda regret: regret.mean)).mean
        return self.regrets[title].mean / yardstick if title in self.regrets and yardstick > 0 else None


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """One row per problem; `titles` of all contenders, sorted."""

    titles: tuple[str, ...]
    rows: tuple[SuiteRow, ...]


def suite_table(records: Sequence[RunRecord], names: Mapping[str, str]) -> SuiteTable:
    """`names` orders the problems and says what each recorded environment is called in the suite."""
    found = problems(records)
    rows = tuple(_row(problem, name) for env, name in names.items() for problem in found if problem.env == env)
    return SuiteTable(tuple(sorted({title for row in rows for title in row.regrets})), rows)


def _row(problem: ProblemRuns, name: str) -> SuiteRow:
    return SuiteRow(
        name=f"{name} (T={problem.rounds})",
        regrets={one.title: one.over_seeds("expected_regret") for one in problem.contenders},
        seeds={one.title: len(one.runs) for one in problem.contenders},
        best=next((one.title for one in problem.learners), None),
    )
