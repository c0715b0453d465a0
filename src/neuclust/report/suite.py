"""The suite's one table: problems down, policies across, mean ± standard error, the best learner in bold."""

from matplotlib.figure import Figure
from rich.table import Table

from neuclust.analysis.estimates import with_error
from neuclust.analysis.suite import SuiteRow, SuiteTable
from neuclust.report.drawing import bare, new_figure
from neuclust.report.tables import csv_text, markdown_text, terminal_table


def _cell(row: SuiteRow, title: str) -> str:
    return with_error(row.regrets[title]) if title in row.regrets else "–"


def markdown(table: SuiteTable) -> str:
    """A table for a page of documentation."""

    def marked(row: SuiteRow, title: str) -> str:
        return f"**{_cell(row, title)}**" if title == row.best else _cell(row, title)

    rows = [[row.name, *(marked(row, title) for title in table.titles)] for row in table.rows]
    return markdown_text(["problem", *table.titles], rows)


def comma_separated(table: SuiteTable) -> str:
    """One line per problem and policy, with full precision."""
    rows = [
        (row.name, title, row.seeds[title], regret.mean, regret.error, title == row.best)
        for row in table.rows
        for title, regret in row.regrets.items()
    ]
    return csv_text([("problem", "policy", "seeds", "expected_regret", "standard_error", "best"), *rows])


def rich_suite_table(table: SuiteTable) -> Table:
    """For a terminal."""
    rows = [[row.name, *(_cell(row, title) for title in table.titles)] for row in table.rows]
    bold = [(place, 1 + table.titles.index(row.best)) for place, row in enumerate(table.rows) if row.best]
    title = "Expected regret, mean ± s.e."
    return terminal_table(["problem", *table.titles], rows, ["problem"], title=title, bold=bold)


def picture(table: SuiteTable) -> Figure:
    """Regret as a share of uniform play's, or of the largest where uniform has not played: left is better."""
    figure = new_figure((7.5, 1.2 + 0.34 * len(table.rows)), layout="constrained")
    axes = bare(figure.add_subplot(), grid="x")
    for column, title in enumerate(table.titles):
        shares = [(row.share(title), place) for place, row in enumerate(table.rows)]
        seen = [(share, place) for share, place in shares if share is not None]
        marker = "osD^vP*Xph<>"[column % 12]
        axes.plot([x for x, _ in seen], [y for _, y in seen], marker=marker, linestyle="none", label=title)
    axes.set_yticks(range(len(table.rows)), [row.name for row in table.rows])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("expected regret, as a share of uniform play's")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure
