"""Table 1 of a reproduction as CSV, Markdown, LaTeX and words; every column is declared once here."""

from collections.abc import Callable, Mapping
from typing import Any

from neuclust.analysis.claims import regret_of
from neuclust.analysis.estimates import Estimate, number, with_error
from neuclust.analysis.groups import Contender
from neuclust.analysis.published import NAMES, UNPLACED
from neuclust.analysis.reproduction.results import Reproduction, Row, inferred_regret, row_json, speed_ratio, table_rows
from neuclust.report.tables import csv_text, latex_escape, latex_tabular, markdown_text

DASH = "–"


def _measured(cell: Callable[[Contender], str]) -> Callable[[Reproduction, Row], str]:
    return lambda _, row: DASH if row.measured is None else cell(row.measured)


def _number(value: float | None, form: str, unit: str = "") -> str:
    return DASH if value is None else f"{value:{form}}{unit}"


COLUMNS: Mapping[str, Callable[[Reproduction, Row], str]] = {
    "policy": lambda _, row: row.name,
    "settings": lambda _, row: row.preset if row.measured is None else row.measured.preset_and_settings,
    "runs": _measured(lambda one: str(len(one.runs))),
    "clipped regret, published": lambda _, row: _number(row.published.regret, ".0f"),
    "clipped regret, measured": _measured(lambda one: regret_of(one, "clipped_regret")),
    "its floor": _measured(lambda one: number(one.over_seeds("clipped_floor").mean)),
    "expected regret behind the published": lambda found, row: _number(inferred_regret(found, row), ".1f"),
    "expected regret, measured": _measured(regret_of),
    "reward, measured": _measured(lambda one: regret_of(one, "successes")),
    "seconds, published": lambda _, row: _number(row.published.seconds, ",.0f"),
    "seconds, measured": _measured(lambda one: f"{one.over_seeds('seconds').mean:.2f}"),
    "times faster": lambda found, row: _number(speed_ratio(found, row), ",.0f", "×"),
}


def cells(found: Reproduction, row: Row) -> dict[str, str]:
    """The words of a line by heading; a dash where there is no number."""
    return {heading: cell(found, row) for heading, cell in COLUMNS.items()}


def table_texts(found: Reproduction) -> dict[str, str]:
    """Table 1 by file name: CSV with full precision, Markdown and LaTeX with what to know when reading it."""
    rows, notes = table_rows(found), table_notes(found)
    numbers = [row_json(found, row) for row in rows]
    words = [list(cells(found, row).values()) for row in rows]
    tex = [[latex_escape(word.replace("×", "x")) for word in line] for line in (list(COLUMNS), *words)]
    return {
        "table1.csv": csv_text([numbers[0], *(row.values() for row in numbers)]),
        "table1.md": "\n".join([markdown_text(list(COLUMNS), words), *(f"- {note}" for note in notes), ""]),
        "table1.tex": latex_tabular(f"ll{'r' * (len(COLUMNS) - 2)}", tex, notes),
    }


def table_notes(found: Reproduction) -> list[str]:
    """What to know when reading Table 1."""
    notes = [
        f"{DASH}: no such number, or for the paper: not stated in our notes of it.",
        "Clipped regret is the paper's metric, Σ max(0, reward of the best slate − reward). A perfect policy pays its "
        "floor, so only what lies above the floor is regret; expected regret is free of it.",
        "“Expected regret behind the published” is (published − floor) / average value of the best slate. “Times "
        "faster” compares the paper's GTX 1080 Ti with the machine of this page: a size, not a measurement."
        if found.comparable
        else f"The published numbers are sums over 1000 rounds and cannot be compared with these {found.rounds}; the "
        "columns that would compare them are empty.",
    ]
    if found.source is None:
        notes.append("Measured on the embedded synthetic twin, not on the paper's data: sizes are similar, not equal.")
    notes.append(UNPLACED[found.study.name])
    absent = [NAMES[row.policy] for row in table_rows(found) if row.measured is None and row.policy in NAMES]
    if absent:
        notes.append(f"Not run here: {', '.join(absent)}.")
    if found.study.name == "yelp":
        notes.append("The authors' clocks of K-LinUCB and Neural-MAB count the reading of the data; the others do not.")
    return notes


def reading_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """The words of a line of `readings_json` by heading."""

    def words(key: str, sign: bool = False) -> str:
        return DASH if row[key] is None else with_error(Estimate(**row[key]), sign=sign)

    return {
        "reading": str(row["reading"]),
        "what it means": str(row["words"]),
        "NeUClust": words("neuclust"),
        "CN-UCB": words("cn_ucb"),
        "NeUClust without F": words("without_f"),
        "NeUClust − CN-UCB, paired": words("difference", sign=True),
        "NeUClust ahead": f"{row['ahead']} of {row['seeds']} seeds",
    }
