"""The analysis as one self-contained page: answers, pictures, tables, and where the statement does not hold."""

from collections.abc import Sequence
from html import escape

from neuclust.analysis.theory.played import RunNumbers
from neuclust.analysis.theory.problem import ProblemNumbers
from neuclust.analysis.theory.words import misprints, sentences
from neuclust.report.drawing import Picture
from neuclust.report.html import document, figure_html, heading_html, page_versions, table_html
from neuclust.report.theory.text import Table, tables


def page(numbers: ProblemNumbers, run: RunNumbers | None, pictures: Sequence[Picture], command: str) -> str:
    """The whole HTML document."""
    title = f"The analysis of {numbers.name}"
    who = "" if run is None else f" and a run of {run.title}, seed {run.seed}"
    answers = "".join(f"<li>{escape(each)}</li>" for each in sentences(numbers, run))
    wrong = "".join(f"<li>{escape(each)}</li>" for each in misprints(numbers, run))
    drawn = "".join(figure_html("theory", each, each.title) for each in pictures)
    body = (
        f'<header><h1>{escape(title)}</h1><p class="soft">{escape(_what(numbers) + who)}.</p></header>'
        f"<section><ul>{answers}</ul></section>"
        f'<section><div class="pictures">{drawn}</div></section>'
        + "".join(_table(each) for each in tables(numbers, run))
        + f"<section><h2>Where the statement does not hold as printed</h2><ul>{wrong}</ul></section>"
        f"<section><h2>How this was made</h2><pre>{escape(command)}</pre>"
        f"<p>Made with {escape(page_versions())}.</p></section>"
    )
    return document(title, body)


def _what(numbers: ProblemNumbers) -> str:
    sizes = numbers.sizes
    net = f"a net of {sizes.depth} hidden layer{'s' if sizes.depth > 1 else ''} of {sizes.width:,}"
    arms = f"{sizes.rounds:,} rounds of up to {sizes.arms:,} arms, slates of {sizes.slate_size}"
    return f"{arms}, {net}, λ = {sizes.ridge:g}"


def _table(table: Table) -> str:
    title, headings, rows = table
    head = "".join(heading_html(each, words=True) for each in headings)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f'<td class="words">{escape(cell)}</td>' for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return f"<section><h2>{escape(title)}</h2>{table_html(head, body)}</section>"
