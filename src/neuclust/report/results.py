"""The table of results for terminals, CSV, LaTeX and HTML: a column is one line of COLUMNS, `metric` for a number."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from rich.console import Console
from rich.table import Table

from neuclust.analysis.estimates import Estimate, number, with_error
from neuclust.analysis.summary import Row, Summary, summaries
from neuclust.analysis.verdicts import UNTOLD
from neuclust.experiment.records import RunRecord
from neuclust.report.tables import csv_text, latex_escape, latex_tabular, terminal_table

UNBOUNDED = 10_000  # letters, more than any line has
Cell = Callable[[Row], str]
Values = dict[str, Callable[[Row], object]]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `tables`; `values` are those of the CSV file, by name; `small` stands below the HTML cell.

    A narrow terminal drops columns by `dispensable`, the smallest first; 0 stays.
    """

    heading: str
    values: Values
    cell: Cell
    tables: str = "text latex html"
    latex: Cell | None = None  # where it differs
    html: Cell | None = None
    small: Cell | None = None
    dispensable: int = 0
    words: bool = False  # text, aligned left

    @property
    def title(self) -> str:
        """The heading on one line."""
        return " ".join(self.heading.split())


def metric(field: str, heading: str, *also: str, small: Cell | None = None, dispensable: int = 0) -> Column:
    """Mean ± standard error over seeds of a number that records hold; `also` are further means for the CSV file."""
    values = _means(field) | {f"{field}_se": lambda row: row.over_seeds(field).error} | _means(*also)

    def cell(words: Callable[[Estimate], str]) -> Cell:
        return lambda row: words(row.over_seeds(field))

    return Column(heading, values, cell(with_error), latex=cell(_tex), small=small, dispensable=dispensable)


def _means(*fields: str) -> Values:
    def mean(field: str) -> Callable[[Row], object]:
        return lambda row: row.over_seeds(field).mean

    return {field: mean(field) for field in fields}


def _number(field: str, start: str = "") -> Cell:
    return lambda row: f"{start}{number(row.over_seeds(field).mean)}"


def _seconds(*fields: str) -> Cell:
    return lambda row: " + ".join(f"{row.over_seeds(field).mean:.2f}" for field in fields)


def _versus_best(row: Row) -> str:
    """How far behind the best learner a row is, with the verdict where it is not simply more."""
    if row.verdict in ("best", "reference") or row.difference is None:
        return row.verdict if row.verdict in ("best", "reference") else "-"
    gap = with_error(row.difference, sign=True)
    return gap if row.verdict == "more regret" else f"{gap} ({row.verdict})"


def _tex_versus_best(row: Row) -> str:
    """The paired difference; a star where the seeds do not tell the two apart."""
    if row.verdict in ("best", "reference"):
        return row.verdict
    if row.difference is None:
        return "--"
    return _tex(row.difference, sign=True, mark="^{*}" if row.verdict in UNTOLD else "")


def _tex(value: Estimate, sign: bool = False, mark: str = "") -> str:
    mean, _, error = with_error(value, sign, pm="|").partition("|")
    return rf"${mean} \pm {error}{mark}$" if error else f"${mean}{mark}$"


def _in_words(row: Row) -> str:
    """What a verdict means beside the best learner."""
    best = row.best.title
    words = {
        "best": "least regret",
        "reference": "knows the truth: a yardstick, no rival",
        "no common seeds": f"no common seeds with {best}",
        "noise": f"noise: not told from {best}",
        "too few seeds": f"too few seeds to tell from {best}",
        "identical": f"identical to {best}",
        "less regret": f"less regret than {best} on the seeds both played",  # the means are over unequal seeds
    }
    return words.get(row.verdict, f"{row.verdict} than {best}")


_policy = attrgetter("contender.policy")
_NAMES: Values = {"preset": lambda row: row.contender.preset, "settings": lambda row: row.contender.settings}
_GAP: Values = {
    "difference_to_best": lambda row: row.difference and row.difference.mean,
    "difference_se": lambda row: row.difference and row.difference.error,
}
_PARTS = ("select_seconds", "update_seconds")
COLUMNS = (
    Column(
        "policy", {"policy": _policy}, _policy, "text latex", lambda row: latex_escape(row.contender.title), words=True
    ),
    Column("preset", _NAMES, attrgetter("contender.preset_and_settings"), "text", dispensable=4, words=True),
    Column("seeds", {"seeds": lambda row: len(row.contender.runs)}, lambda row: str(len(row.contender.runs)), "html"),
    metric("expected_regret", "expected\nregret"),
    Column(
        "versus\nbest",
        _GAP,
        _versus_best,
        latex=_tex_versus_best,
        html=lambda row: "–" if row.difference is None else with_error(row.difference, sign=True),
        dispensable=5,
    ),
    Column("verdict", {"verdict": lambda row: row.verdict}, _in_words, "html", words=True),
    metric("clipped_regret", "clipped\nregret"),
    Column("its\nfloor", _means("clipped_floor"), _number("clipped_floor")),
    metric("successes", "\nsuccesses", "best_expected", small=_number("best_expected", "best: "), dispensable=2),
    Column("seconds\nper run", _means("seconds"), _seconds("seconds"), small=_seconds(*_PARTS), dispensable=3),
    Column("select +\nupdate", _means(*_PARTS), _seconds(*_PARTS), "text", dispensable=1),
)


def columns_of(table: str) -> list[tuple[Column, Cell]]:
    """The columns of a table and what makes their cells in it."""
    return [(column, getattr(column, table, None) or column.cell) for column in COLUMNS if table in column.tables]


def rich_table(summary: Summary, width: int) -> Table:
    """The summary as a Rich table (text left, numbers right), without the columns that `width` has no room for."""
    shown, left_out = [column for column, _ in columns_of("text")], list[str]()
    spare = sorted((column for column in shown if column.dispensable), key=lambda column: -column.dispensable)
    while Console(width=UNBOUNDED).measure(table := _terminal(summary, shown)).maximum > width and spare:
        shown.remove(spare[-1])
        left_out.append(spare.pop().title)
    if left_out:
        table.caption = f"(the window is too narrow for: {', '.join(left_out)})"
    return table


def _terminal(summary: Summary, columns: Sequence[Column]) -> Table:
    best = [place for place, row in enumerate(summary.rows) if row.verdict == "best" and len(summary.rows) > 1]
    bold = [(place, column) for place in best for column in range(len(columns))]
    rows = [[column.cell(row) for column in columns] for row in summary.rows]
    words = [column.heading for column in columns if column.words]
    return terminal_table([column.heading for column in columns], rows, words, title=summary.title, bold=bold)


def text_table(records: Sequence[RunRecord], width: int = UNBOUNDED) -> str:
    """All summaries as plain text."""
    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False)
    for summary in summaries(records):
        console.print(rich_table(summary, width))
        for note in summary.notes:
            console.print(note, markup=False, soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def csv_table(found: Sequence[Summary]) -> str:
    """Summaries as CSV with full precision; an empty cell where there is no number."""
    values = {name: value for column in COLUMNS for name, value in column.values.items()}
    rows = [
        [summary.problem.env, summary.problem.rounds, *(value(row) for value in values.values())]
        for summary in found
        for row in summary.rows
    ]
    return csv_text([["env", "rounds", *values], *rows])


def latex_table(summary: Summary) -> str:
    """A `tabular` of one problem, least regret first, with what to know when reading it as comments."""
    columns = columns_of("latex")
    rows = [[cell(row) for _, cell in columns] for row in summary.rows]
    notes = (summary.title, "Means over seeds, ± 1 standard error; * not told from the best.", *summary.notes)
    return latex_tabular(f"l{'r' * (len(columns) - 1)}", [[column.title for column, _ in columns], *rows], notes)
