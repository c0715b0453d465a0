"""The final table as plain LaTeX: a tabular that compiles without any package."""

from __future__ import annotations

from collections.abc import Sequence

from neuclust.analysis.groups import Estimate, ProblemRuns
from neuclust.analysis.verdicts import UNTOLD
from neuclust.report.tables import Row, Summary, decimals, number

SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "…": r"\ldots{}",
    "γ": r"$\gamma$",
    "λ": r"$\lambda$",
}
HEADINGS = ("policy", "expected regret", "versus best", "clipped regret", "its floor", "successes", "seconds")


def escape(text: str) -> str:
    """Text that LaTeX prints as it stands; what its plain fonts lack is named by its code point."""
    return "".join(map(_letter, text))


def _letter(letter: str) -> str:
    if letter in SPECIAL:
        return SPECIAL[letter]
    if letter.isspace():
        return " "
    return letter if " " <= letter <= "~" else f"(U+{ord(letter):04X})"


def latex_table(problem: ProblemRuns, summary: Summary) -> str:
    """A `tabular` of one problem, least regret first, with what to know when reading it as comments."""
    pairs = zip(problem.contenders, summary.rows, strict=True)
    told = (summary.title, "Means over seeds, ± 1 standard error; * not told from the best.", *summary.notes)
    lines = [_line(_cells(contender.title, row)) for contender, row in pairs]
    comments = [f"% {' '.join(text.split())}" for text in told]  # on one line, whatever a name holds
    return "\n".join(
        [
            *comments,
            rf"\begin{{tabular}}{{l{'r' * (len(HEADINGS) - 1)}}}",
            r"\hline",
            _line(HEADINGS),
            r"\hline",
            *lines,
            r"\hline",
            r"\end{tabular}",
            "",
        ]
    )


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cells(title: str, row: Row) -> list[str]:
    return [
        escape(title),
        _with_error(row.regret),
        _versus_best(row),
        _with_error(row.clipped),
        number(row.floor),
        _with_error(row.successes),
        f"{row.seconds:.2f}",
    ]


def _versus_best(row: Row) -> str:
    """The paired difference; a star where the seeds do not tell the two apart."""
    if row.verdict in ("best", "reference"):
        return row.verdict
    if row.difference is None:
        return "--"
    return _with_error(row.difference, sign=True, mark="^{*}" if row.verdict in UNTOLD else "")


def _with_error(value: Estimate, sign: bool = False, mark: str = "") -> str:
    places = decimals(value.mean)
    mean = f"{value.mean:{'+' if sign else ''}.{places}f}"
    return f"${mean}{mark}$" if value.error is None else rf"${mean} \pm {value.error:.{places}f}{mark}$"
