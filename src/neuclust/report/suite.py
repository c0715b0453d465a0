"""The suite's one table: problems down, policies across, mean ± standard error, the best learner in bold."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuclust.analysis.groups import Contender, ProblemRuns, problems
from neuclust.experiment.records import RunRecord
from neuclust.report.tables import with_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """Contenders by problem and title; `best` is the title of the learner with the least regret of each problem."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, Mapping[str, Contender], str | None], ...]  # problem, contenders, best


def suite_table(records: Sequence[RunRecord], names: Mapping[str, str]) -> SuiteTable:
    """`names` orders the problems and says what each recorded environment is called in the suite."""
    order = {env: place for place, env in enumerate(names)}
    found = sorted(
        (problem for problem in problems(records) if problem.env in names), key=lambda problem: order[problem.env]
    )
    titles = dict.fromkeys(run.title for problem in found for run in problem.contenders)
    return SuiteTable(tuple(sorted(titles)), tuple(_row(problem, names[problem.env]) for problem in found))


def _row(problem: ProblemRuns, name: str) -> tuple[str, Mapping[str, Contender], str | None]:
    learners = [contender for contender in problem.contenders if not contender.knows_truth]
    best = learners[0].title if learners else None  # contenders come least regret first
    label = f"{name} (T={problem.rounds})"
    return label, {contender.title: contender for contender in problem.contenders}, best


def _cell(contenders: Mapping[str, Contender], title: str) -> str:
    return with_error(contenders[title].over_seeds("expected_regret")) if title in contenders else "–"


def markdown(table: SuiteTable) -> str:
    """A table for a page of documentation."""
    lines = ["| problem | " + " | ".join(table.titles) + " |", "|---" * (len(table.titles) + 1) + "|"]
    for name, contenders, best in table.rows:
        cells = [_cell(contenders, title) for title in table.titles]
        marked = [f"**{cell}**" if title == best else cell for title, cell in zip(table.titles, cells, strict=True)]
        lines.append(f"| {name} | " + " | ".join(marked) + " |")
    return "\n".join(lines) + "\n"


def comma_separated(table: SuiteTable) -> str:
    """One line a problem and policy, with full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("problem", "policy", "seeds", "expected_regret", "standard_error", "best"))
    for name, contenders, best in table.rows:
        for title, contender in contenders.items():
            regret = contender.over_seeds("expected_regret")
            writer.writerow((name, title, len(contender.runs), regret.mean, regret.error, title == best))
    return out.getvalue()


def rich_suite_table(table: SuiteTable) -> Table:
    """For a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=Text("Expected regret, mean ± s.e."), title_justify="left", box=box.SIMPLE_HEAD)
    drawn.add_column("problem", no_wrap=True)
    for title in table.titles:
        drawn.add_column(title, justify="right", no_wrap=True)
    for name, contenders, best in table.rows:
        cells = [Text(_cell(contenders, title), style="bold" if title == best else "") for title in table.titles]
        drawn.add_row(Text(name), *cells)
    return drawn


def picture(table: SuiteTable) -> Figure:
    """Regret as a share of uniform play's, or of the worst where nobody plays at random: left is better."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 1.2 + 0.34 * len(table.rows)), layout="constrained")
    axes = figure.subplots()
    for column, title in enumerate(table.titles):
        shares = [(_share(contenders, title), place) for place, (_, contenders, _) in enumerate(table.rows)]
        seen = [(share, place) for share, place in shares if share is not None]
        marker = "osD^vP*Xph<>"[column % 12]
        axes.plot([x for x, _ in seen], [y for _, y in seen], marker=marker, linestyle="none", label=title)
    axes.set_yticks(range(len(table.rows)), [name for name, _, _ in table.rows])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("expected regret, as a share of uniform play's")
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure


def _share(contenders: Mapping[str, Contender], title: str) -> float | None:
    if title not in contenders:
        return None
    regrets = {name: one.over_seeds("expected_regret").mean for name, one in contenders.items()}
    yardstick = regrets.get("uniform", max(regrets.values()))
    return regrets[title] / yardstick if yardstick > 0 else None
