"""One page that holds a whole report: no script, no file beside it, nothing fetched from anywhere.

Every text that comes from records or people passes `escape`; a policy of the page itself (CSP) forbids
scripts and requests, so that even a mistake here could not run anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from neuclust.analysis.groups import Contender, ProblemRuns
from neuclust.analysis.verdicts import CONFIDENCE, UNTOLD, level_of
from neuclust.environments.catalogue import ENVIRONMENTS
from neuclust.report.columns import MOST_DRAWN, MOST_PANELS, Picture, colours
from neuclust.report.page_style import CSS
from neuclust.report.provenance import commands
from neuclust.report.tables import Row, Summary, number, with_error
from neuclust.report.vectors import inline_svg

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MOST_FAILURES = 100  # shown one by one
MOST_NOTES, MOST_NAMED = 8, 4  # before the rest is folded away, or only counted
HEADINGS = (
    "policy", "seeds", "expected regret", "versus best", "verdict", "clipped regret", "its floor", "successes",
    "seconds a run",
)  # fmt: skip
WORDS = ("verdict",)  # columns of text


@dataclass(frozen=True, slots=True)
class Section:
    """One problem with its table and pictures; `slug` names it in links and files."""

    slug: str
    problem: ProblemRuns
    summary: Summary
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that ended in an error; `traceback` may be empty."""

    name: str
    error: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The command that made the page, and the versions behind the runs and behind the page."""

    command: str
    runs: str
    page: str


def page(title: str, sections: Sequence[Section], failures: Sequence[Failure], made: Provenance) -> str:
    """The whole HTML document."""
    return document(
        title,
        "\n".join(
            [
                _opening(title, sections, failures),
                *map(_section, sections),
                failures_html(failures),
                _reading(),
                _made(sections, made),
            ]
        ),
    )


def document(title: str, body: str) -> str:
    """A self-contained HTML document around a body that is safe already."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _opening(title: str, sections: Sequence[Section], failures: Sequence[Failure]) -> str:
    runs = sum(len(contender.runs) for section in sections for contender in section.problem.contenders)
    policies = len({contender.policy for section in sections for contender in section.problem.contenders})
    counts = f"{_count(runs, 'run')} of {_count(policies, 'policy', 'policies')} on {_count(len(sections), 'problem')}"
    failed = f'; <a href="#failures">{_count(len(failures), "run")} failed</a>' if failures else ""
    links = "".join(
        f'<li><a href="#{section.slug}">{escape(section.summary.title)}</a>: {escape(_finding(section))}</li>'
        for section in sections
    )
    contents = f"<ul>{links}</ul>" if len(sections) > 1 else ""
    return f'<header><h1>{escape(title)}</h1><p class="soft">{counts}{failed}.</p>{contents}</header>'


def _count(number_of: int, one: str, many: str = "") -> str:
    return f"{number_of} {one if number_of == 1 else many or one + 's'}"


def _section(section: Section) -> str:
    return (
        f'<section id="{section.slug}"><h2>{escape(section.problem.env)}</h2>'
        f"<p>{escape(_what_it_is(section.problem))}</p>"
        f'<p class="finding">{escape(_finding(section))}</p>'
        f"{section_content(section)}</section>"
    )


def section_content(section: Section) -> str:
    """Table, notes and pictures of one problem."""
    drawn = "".join(
        figure_html(section.slug, picture, f"{picture.title} on {section.summary.title}")
        for picture in section.pictures
    )
    return f'{_table(section)}{_notes(section)}<div class="pictures">{drawn}</div>'


def _what_it_is(problem: ProblemRuns) -> str:
    """The problem in a sentence or two."""
    known = ENVIRONMENTS.get(problem.env)
    what = f"{known.summary[0].upper()}{known.summary[1:]}." if known else "A problem from a file or of your own."
    slate = f"a slate of {problem.slate_size}" if problem.slate_size else "a slate"
    how = f"In each of {_count(problem.rounds, 'round')} a policy plays {slate}"
    options = f" ({problem.options})" if problem.options else ""
    seeds = "one seed" if problem.seeds == 1 else f"{problem.seeds} seeds, the same for all policies"
    return f"{what} {how}{options}; {seeds}."


def _finding(section: Section) -> str:
    """Who lost least, and who cannot be told from it."""
    best = _best(section)
    if best is None:
        return "Only policies that know the truth have played."
    contender, row = best
    alike = [other.title for other, line in _pairs(section) if line.verdict in UNTOLD]
    more = [f"{len(alike) - MOST_NAMED} more"] if len(alike) > MOST_NAMED else []
    start = f"{contender.title} has the least expected regret, {with_error(row.regret)}"
    return f"{start}; not told from it: {', '.join([*alike[:MOST_NAMED], *more])}." if alike else f"{start}."


def _best(section: Section) -> tuple[Contender, Row] | None:
    return next((pair for pair in _pairs(section) if pair[1].verdict == "best" and not pair[0].knows_truth), None)


def _pairs(section: Section) -> list[tuple[Contender, Row]]:
    return list(zip(section.problem.contenders, section.summary.rows, strict=True))


def _table(section: Section) -> str:
    best = _best(section)
    name = best[0].title if best else ""
    shown = colours(section.problem)
    head = "".join(f'<th scope="col"{_class(heading)}>{heading}</th>' for heading in HEADINGS)
    rows = "".join(_row(contender, row, name, shown.get(contender.title)) for contender, row in _pairs(section))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(contender: Contender, row: Row, best: str, colour: str | None) -> str:
    swatch = f'<span class="swatch" style="background:{colour}"></span>' if colour else ""
    preset = [] if row.preset == "default" else [f"preset {row.preset}"]
    settings = [f"{key}={value}" for key, value in sorted(contender.runs[0].settings.items())]
    clusters = [f"clusters={count}"] if (count := contender.runs[0].clusters) is not None else []
    small = "".join(map(_small, (*preset, *settings, *clusters)))
    difference = "–" if row.difference is None else with_error(row.difference, sign=True)
    cells = {
        "seeds": str(row.runs),
        "expected regret": with_error(row.regret),
        "versus best": difference,
        "verdict": escape(verdict_in_words(row, best)),
        "clipped regret": with_error(row.clipped),
        "its floor": number(row.floor),
        "successes": with_error(row.successes) + _small(f"best: {number(row.best_expected)}"),
        "seconds a run": f"{row.seconds:.2f}" + _small(f"{row.select_seconds:.2f} + {row.update_seconds:.2f}"),
    }
    line = "".join(f"<td{_class(heading)}>{cell}</td>" for heading, cell in cells.items())
    kind = ' class="best"' if row.verdict == "best" else ""
    return f'<tr{kind}><th scope="row">{swatch}{escape(contender.policy)}{small}</th>{line}</tr>'


def _class(heading: str) -> str:
    return ' class="words"' if heading in WORDS else ""


def _small(text: str) -> str:
    return f'<span class="small">{escape(text)}</span>'


def verdict_in_words(row: Row, best: str) -> str:
    """What the paired difference to the best learner allows to say."""
    if row.verdict == "best":
        return "least regret"
    if row.verdict == "reference":
        return "knows the truth: a yardstick, no rival"
    words = {
        "no common seeds": f"no common seeds with {best}",
        "noise": f"noise: not told from {best}",
        "too few seeds": f"too few seeds to tell from {best}",
        "identical": f"identical to {best}",
        "less regret": f"less regret than {best} on the seeds both played",  # the means are over unequal seeds
    }
    return words.get(row.verdict, f"{row.verdict} than {best}")


def _notes(section: Section) -> str:
    drawn = []
    if (left := len(section.problem.contenders) - MOST_DRAWN) > 0:
        drawn.append(f"The pictures show the {MOST_DRAWN} with the least regret; {left} more are in the table.")
    players = sum(any(run.chosen_clusters for run in each.runs) for each in section.problem.contenders[:MOST_DRAWN])
    if players > MOST_PANELS:
        drawn.append(f"Clusters are drawn for the first {MOST_PANELS} of {players} policies that play them.")
    missing = {"regret", "reward"} - {picture.name for picture in section.pictures}
    drawn += [f"No {name} curves: some records came without them." for name in sorted(missing)]
    lines = [f"<li>{escape(note)}</li>" for note in dict.fromkeys((*drawn, *section.summary.notes))]
    shown, rest = "".join(lines[:MOST_NOTES]), "".join(lines[MOST_NOTES:])
    folded = f"<li><details><summary>more notes</summary><ul>{rest}</ul></details></li>" if rest else ""
    return f'<ul class="notes">{shown}{folded}</ul>'


def figure_html(slug: str, picture: Picture, label: str) -> str:
    """A picture inside the page; `slug` makes its ids unique, `label` says what it shows to who cannot see it."""
    svg = inline_svg(picture.figure, f"{slug}-{picture.name}", escape(label))
    return (
        f'<figure id="{slug}-{picture.name}"><h3>{escape(picture.title)}</h3>{svg}'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def failures_html(failures: Sequence[Failure]) -> str:
    """The section of runs that ended in an error; nothing where none did."""
    if not failures:
        return ""
    shown = "".join(map(_failure, failures[:MOST_FAILURES]))
    more = len(failures) - MOST_FAILURES
    rest = f"<p>… and {more} more.</p>" if more > 0 else ""
    counted = f"{_count(len(failures), 'run')} ended in an error and {'is' if len(failures) == 1 else 'are'}"
    return (
        f'<section id="failures"><h2>Failures</h2><div class="failures">'
        f"<p>{counted} not in any table or picture.</p><dl>{shown}</dl>{rest}</div></section>"
    )


def _failure(failure: Failure) -> str:
    traceback = f"<details><summary>traceback</summary><pre>{escape(failure.traceback)}</pre></details>"
    return f"<dt>{escape(failure.name)}</dt><dd>{escape(failure.error)}{traceback if failure.traceback else ''}</dd>"


def _reading() -> str:
    """What the numbers mean, for someone who sees them for the first time."""
    terms = (
        (
            "Expected regret",
            "The sum over rounds of the expected reward of the best slate minus that of the slate played. The luck of "
            "the coins is not in it; 0 is perfect.",
        ),
        ("± and shaded bands", "One standard error of the mean over seeds: the standard deviation over √seeds."),
        (
            "Versus best",
            "Every policy meets the same seeds and the same coins, so regrets are subtracted seed by seed from those "
            "of the best learner; the mean of these differences and its standard error are shown.",
        ),
        (
            "Verdict",
            "The one of `neuclust compare`: a two-sided Wilcoxon signed-rank test over common seeds, with Holm's "
            f"correction over all differences between learners of the problem. More or less regret: p < "
            f"{level_of(CONFIDENCE):g}. Noise: chance could explain the difference, which does not show that the two "
            "are equal. Too few seeds: no difference, however large, could be told from chance by so few.",
        ),
        (
            "Clipped regret and its floor",
            "Clipped regret counts max(0, reward of the best slate − reward received) per round, each from coins of "
            "its own. Bad luck adds to it and good luck never takes away, so on average even a perfect policy pays the "
            "floor; only what lies above the floor on average could have been avoided. The floor is an expectation: a "
            "single run scatters about it and can fall below it.",
        ),
        ("Successes", "The sum of the slate rewards received; below it, what the best slates would get on average."),
        ("Seconds a run", "Wall time of a whole run, mean over seeds; below it, the time to select + to update."),
    )
    items = "".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in terms)
    return f'<section id="reading"><h2>How to read the numbers</h2><dl>{items}</dl></section>'


def _made(sections: Sequence[Section], made: Provenance) -> str:
    lines = "\n".join(command for section in sections for command in commands(section.problem))
    again = f"<p>The same runs again:</p><pre>{escape(lines)}</pre>" if lines else ""
    return (
        '<section id="made"><h2>How this was made</h2>'
        f"<p>Runs: {escape(made.runs)}.</p>{again}"
        f"<p>This page:</p><pre>{escape(made.command)}</pre><p>Made with {escape(made.page)}.</p></section>"
    )
