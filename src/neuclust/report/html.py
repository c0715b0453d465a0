"""One self-contained page of a whole report, without scripts.

Every text from records or people passes `escape`; the page's Content-Security-Policy forbids scripts and requests too.
"""

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from neuclust import __version__
from neuclust.analysis.estimates import counted, sentence, with_error
from neuclust.analysis.groups import ProblemRuns, settings_of
from neuclust.analysis.sources import Failure
from neuclust.analysis.summary import Row, Summary
from neuclust.analysis.verdicts import CONFIDENCE, UNTOLD, level_of
from neuclust.environments.catalogue import ENVIRONMENTS
from neuclust.experiment.records import RunRecord
from neuclust.report.drawing import Picture, inline_svg
from neuclust.report.pictures import MOST_DRAWN, MOST_PANELS, colours
from neuclust.report.results import Cell, Column, columns_of

CSS = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
READING = Path(__file__).with_name("reading.html").read_text(encoding="utf-8")
PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "matplotlib")
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
TRACEBACK = "<details><summary>traceback</summary><pre>{}</pre></details>"
MOST_FAILURES = 100  # shown one by one
MOST_NOTES, MOST_NAMED = 8, 4  # before the rest is folded away, or only counted


@dataclass(frozen=True, slots=True)
class Section:
    """One problem with its table and pictures; `slug` names it in links and files."""

    slug: str
    summary: Summary
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a page comes from: the command that made it, those that play its runs again, and versions."""

    command: str
    runs: str  # versions behind the runs
    page: str  # and behind the page
    again: Sequence[str] = ()


def run_versions(records: Iterable[RunRecord]) -> str:
    """The versions of neuclust that the records name, in a phrase."""
    named = sorted({record.version for record in records if record.version})
    return f"neuclust {', '.join(named)}" if named else "a neuclust that did not leave its version"


def page_versions() -> str:
    """What a page is made with."""
    packages = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    return f"neuclust {__version__}, Python {platform.python_version()}, {packages}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


def page(title: str, sections: Sequence[Section], failures: Sequence[Failure], made: Provenance) -> str:
    """The whole HTML document."""
    parts = [_opening(title, sections, failures), *map(_section, sections), failures_html(failures)]
    reading = READING.replace("LEVEL", f"{level_of(CONFIDENCE):g}")
    return document(title, "\n".join([*parts, reading, _made(made)]))


def document(title: str, body: str) -> str:
    """A self-contained HTML document around a body that is safe already."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def table_html(head: str, body: str) -> str:
    """A table that scrolls sideways where it has no room."""
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def heading_html(heading: str, words: bool = False) -> str:
    return f'<th scope="col"{words_class(words)}>{escape(heading)}</th>'


def words_class(words: bool) -> str:
    """The class of cells that hold text."""
    return ' class="words"' if words else ""


def _opening(title: str, sections: Sequence[Section], failures: Sequence[Failure]) -> str:
    contenders = [contender for section in sections for contender in section.summary.problem.contenders]
    runs = sum(len(contender.runs) for contender in contenders)
    policies = len({contender.policy for contender in contenders})
    on = f"{counted(runs, 'run')} of {counted(policies, 'policy', 'policies')} on {counted(len(sections), 'problem')}"
    failed = f'; <a href="#failures">{counted(len(failures), "run")} failed</a>' if failures else ""
    links = "".join(
        f'<li><a href="#{section.slug}">{escape(section.summary.title)}</a>: {escape(_finding(section.summary))}</li>'
        for section in sections
    )
    contents = f"<ul>{links}</ul>" if len(sections) > 1 else ""
    return f'<header><h1>{escape(title)}</h1><p class="soft">{on}{failed}.</p>{contents}</header>'


def _section(section: Section) -> str:
    problem, finding = section.summary.problem, escape(_finding(section.summary))
    start = f"<h2>{escape(problem.env)}</h2><p>{escape(_what_it_is(problem))}</p>"
    return f'<section id="{section.slug}">{start}<p class="finding">{finding}</p>{section_content(section)}</section>'


def section_content(section: Section) -> str:
    """Table, notes and pictures of one problem."""
    where = section.summary.title
    drawn = "".join(figure_html(section.slug, each, f"{each.title} on {where}") for each in section.pictures)
    return f'{_table(section.summary)}{_notes(section)}<div class="pictures">{drawn}</div>'


def _what_it_is(problem: ProblemRuns) -> str:
    """The problem in a sentence or two."""
    known = ENVIRONMENTS.get(problem.env)
    what = sentence(known.summary) if known else "A problem from a file or of your own."
    slate = f"a slate of {problem.slate_size}" if problem.slate_size else "a slate"
    how = f"In each of {counted(problem.rounds, 'round')} a policy plays {slate}"
    options = f" ({problem.options})" if problem.options else ""
    seeds = "one seed" if problem.seeds == 1 else f"{problem.seeds} seeds, the same for all policies"
    return f"{what} {how}{options}; {seeds}."


def _finding(summary: Summary) -> str:
    """The learner with the least regret, and those that cannot be told from it."""
    best = summary.best
    if best is None:
        return "Only policies that know the truth have played."
    alike = [row.contender.title for row in summary.rows if row.verdict in UNTOLD]
    more = [f"{len(alike) - MOST_NAMED} more"] if len(alike) > MOST_NAMED else []
    start = f"{best.contender.title} has the least expected regret, {with_error(best.over_seeds('expected_regret'))}"
    return f"{start}; not told from it: {', '.join([*alike[:MOST_NAMED], *more])}." if alike else f"{start}."


def _table(summary: Summary) -> str:
    shown, columns = colours(summary.problem), columns_of("html")
    head = heading_html("policy") + "".join(heading_html(column.title, column.words) for column, _ in columns)
    return table_html(head, "".join(_row(row, columns, shown.get(row.contender.title)) for row in summary.rows))


def _row(row: Row, columns: Sequence[tuple[Column, Cell]], colour: str | None) -> str:
    one = row.contender
    swatch = f'<span class="swatch" style="background:{colour}"></span>' if colour else ""
    preset = [] if one.preset == "default" else [f"preset {one.preset}"]
    small = "".join(map(_small, (*preset, *settings_of(one.runs[0]))))
    line = "".join(
        f"<td{words_class(column.words)}>{escape(cell(row))}{_small(column.small(row)) if column.small else ''}</td>"
        for column, cell in columns
    )
    kind = ' class="best"' if row.verdict == "best" else ""
    return f'<tr{kind}><th scope="row">{swatch}{escape(one.policy)}{small}</th>{line}</tr>'


def _small(text: str) -> str:
    return f'<span class="small">{escape(text)}</span>'


def _notes(section: Section) -> str:
    drawn, contenders = [], section.summary.problem.contenders
    if (left := len(contenders) - MOST_DRAWN) > 0:
        drawn.append(f"The pictures show the {MOST_DRAWN} with the least regret; {left} more are in the table.")
    players = sum(any(run.chosen_clusters for run in each.runs) for each in contenders[:MOST_DRAWN])
    if players > MOST_PANELS:
        drawn.append(f"Clusters are drawn for the first {MOST_PANELS} of {players} policies that play them.")
    missing = {"regret", "reward"} - {picture.name for picture in section.pictures}
    drawn += [f"No {name} curves: some records came without them." for name in sorted(missing)]
    return notes_html(dict.fromkeys((*drawn, *section.summary.notes)))


def notes_html(notes: Iterable[str], most: int = MOST_NOTES) -> str:
    """A list of notes; those after the first `most` are folded away."""
    lines = [f"<li>{escape(note)}</li>" for note in notes]
    shown, rest = "".join(lines[:most]), "".join(lines[most:])
    folded = f"<li><details><summary>more notes</summary><ul>{rest}</ul></details></li>" if rest else ""
    return f'<ul class="notes">{shown}{folded}</ul>'


def figure_html(slug: str, picture: Picture, label: str) -> str:
    """A picture inside the page; `slug` makes its ids unique, `label` describes it to readers who cannot see it."""
    svg = inline_svg(picture.figure, f"{slug}-{picture.name}", escape(label))
    return (
        f'<figure id="{slug}-{picture.name}"><h3>{escape(picture.title)}</h3>{svg}'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def failures_html(failures: Sequence[Failure]) -> str:
    """The section of runs that ended in an error; nothing where none did."""
    if not failures:
        return ""
    shown = "".join(
        f"<dt>{escape(each.name)}</dt><dd>{escape(each.error)}"
        f"{TRACEBACK.format(escape(each.traceback)) if each.traceback else ''}</dd>"
        for each in failures[:MOST_FAILURES]
    )
    more = len(failures) - MOST_FAILURES
    rest = f"<p>… and {more} more.</p>" if more > 0 else ""
    said = f"{counted(len(failures), 'run')} ended in an error and {'is' if len(failures) == 1 else 'are'}"
    return (
        f'<section id="failures"><h2>Failures</h2><div class="failures">'
        f"<p>{said} not in any table or picture.</p><dl>{shown}</dl>{rest}</div></section>"
    )


def _made(made: Provenance) -> str:
    again = escape("\n".join(made.again))
    runs = f"<p>The same runs again:</p><pre>{again}</pre>" if again else ""
    return (
        '<section id="made"><h2>How this was made</h2>'
        f"<p>Runs: {escape(made.runs)}.</p>{runs}"
        f"<p>This page:</p><pre>{escape(made.command)}</pre><p>Made with {escape(made.page)}.</p></section>"
    )
