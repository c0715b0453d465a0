"""The page of a reproduction: what it rests on, Table 1, the figures, our protocol, and what reproduces."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from neuclust.analysis.claims import JudgedClaim
from neuclust.analysis.published import NAMES
from neuclust.experiment.reproduction.phases import OURS, PHASE_TITLES, TUNED, YARDSTICKS
from neuclust.report.columns import Picture
from neuclust.report.html import Section, document, failures_html, figure_html, section_content
from neuclust.report.provenance import page_versions, run_versions
from neuclust.report.reproduction import (
    DASH,
    Reproduction,
    Row,
    Search,
    cells,
    label,
    table_notes,
    table_rows,
)
from neuclust.report.reproduction_readings import reading_cells, reading_orders, readings_json

NAMING = ("policy", "settings", "runs")  # together in the first column
MARKS = {"reproduces": "✓", "does not reproduce": "✗", "cannot be told": "?", "finding": "•"}


def page_title(found: Reproduction) -> str:
    return f"{found.study.title}: the paper's tables and figures made again"


def reproduction_page(
    found: Reproduction, verdicts: Sequence[JudgedClaim], figures: Sequence[Picture], sections: Mapping[str, Section]
) -> str:
    """The whole HTML document; `sections` are tables of all policies by phase."""
    title = page_title(found)
    parts = [
        _opening(found, title),
        _readings(found),
        _verdicts(verdicts),
        _table(found),
        _figures(found, figures),
        _ours(found, sections),
        failures_html(found.failures),
        _made(found),
    ]
    return document(title, "\n".join(parts))


def _opening(found: Reproduction, title: str) -> str:
    readings = '<li><a href="#readings">What the order turns on</a></li>' if reading_orders(found) else ""
    return (
        f'<header><h1>{escape(title)}</h1><p class="finding"><strong>{escape(label(found))}.</strong> '
        f"{_prose(_source(found))}</p>{_partial(found)}"
        f'<ul>{readings}<li><a href="#verdicts">What reproduces and what does not</a></li>'
        '<li><a href="#table-1">Table 1</a></li><li><a href="#figures">Figures</a></li>'
        '<li><a href="#ours">Our protocol: everybody, expected regret first</a></li>'
        '<li><a href="#made">How this was made</a></li></ul></header>'
    )


def _prose(text: str) -> str:
    """Escaped, with options of the command line in one piece."""
    return re.sub(r"(--[a-z]+( N\b| FILE\.npz)?)", r"<code>\1</code>", escape(text))


def _source(found: Reproduction) -> str:
    if found.source is None:
        return (
            f"Played on {found.study.twin}, a synthetic twin of the paper's data that comes with the package: what "
            "follows shows the method and the sizes, not the paper's numbers. With the real data: "
            f"neuclust reproduce {found.study.name} --data FILE.npz."
        )
    return f"Played on {found.source}."


def _partial(found: Reproduction) -> str:
    lines = []
    if found.scale.quick:
        what = f"{found.rounds} of the paper's 1000 rounds, few seeds and few numbers of clusters"
        left_out = "".join(f"; {NAMES.get(name, name)} is left out" for name in found.scale.left_out)
        changed = "".join(f"; {key} = {value}" for key, value in found.scale.settings.items())
        lines.append(f"A quick look: {what}{left_out}{changed}. Without --quick the whole protocol is played.")
    if found.missing:
        runs = "1 run is" if found.missing == 1 else f"{found.missing} runs are"
        lines.append(f"Not finished: {runs} missing; the same command takes them up.")
    return "".join(f"<p>{_prose(line)}</p>" for line in lines)


def _verdicts(found: Sequence[JudgedClaim]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(each.claim)}</th>'
        f'<td class="words">{MARKS[each.answer]} {escape(each.answer)}</td>'
        f'<td class="words">{escape(each.evidence)}</td></tr>'
        for each in found
    )
    return (
        '<section id="verdicts"><h2>What reproduces and what does not</h2>'
        "<p>Every answer is computed from the runs of this page unless it says otherwise. “Cannot be told” means that "
        "the difference is less than two standard errors, or that there are too few seeds.</p>"
        '<div class="wide"><table><thead><tr><th scope="col">claim</th><th scope="col" class="words">answer</th>'
        f'<th scope="col" class="words">what it rests on</th></tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _readings(found: Reproduction) -> str:
    """NeUClust and CN-UCB under every reading that was played."""
    lines = [reading_cells(row) for row in readings_json(found)]
    if not lines:
        return ""
    prose = ("reading", "what it means")
    head = "".join(f'<th scope="col"{_words(heading in prose)}>{escape(heading)}</th>' for heading in lines[0])
    body = "".join(
        "<tr>"
        + "".join(f"<td{_words(heading in prose)}>{escape(word)}</td>" for heading, word in line.items())
        + "</tr>"
        for line in lines
    )
    return (
        '<section id="readings"><h2>Readings: what the order of NeUClust and CN-UCB turns on</h2>'
        "<p>Expected regret, mean ± standard error over the same seeds and the same coins.</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>'
    )


def _words(prose: bool) -> str:
    return ' class="words"' if prose else ""


def _table(found: Reproduction) -> str:
    rows = table_rows(found)
    headings = ["policy", *(heading for heading in cells(found, rows[0]) if heading not in NAMING)]
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body, group = "", ""
    for row in rows:
        if (now := _group(row)) != group:
            body += f'<tr><th scope="rowgroup" colspan="{len(headings)}"><em>{escape(now)}</em></th></tr>'
            group = now
        body += _line(cells(found, row))
    notes = "".join(f"<li>{escape(note)}</li>" for note in table_notes(found))
    return (
        '<section id="table-1"><h2>Table 1: regret and runtime, published and measured</h2>'
        f"<p>{escape(_protocol(found))}</p>"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<ul class="notes">{notes}</ul></section>'
    )


def _protocol(found: Reproduction) -> str:
    study = found.study
    return (
        f"The paper's protocol: 1000 rounds, slates of 5, {study.runs} runs, {study.clusters} clusters. Played here: "
        f"{found.rounds} rounds, slates of {found.slate_size}, {found.scale.runs} runs."
    )


def _group(row: Row) -> str:
    return "not in the paper, for scale" if row.policy in YARDSTICKS else PHASE_TITLES[row.protocol]


def _line(words: dict[str, str]) -> str:
    rest = [(heading, word) for heading, word in words.items() if heading not in NAMING]
    line = "".join(f"<td>{escape(word)}</td>" for _, word in rest)
    runs = "not run" if words["runs"] == DASH else "1 run" if words["runs"] == "1" else f"{words['runs']} runs"
    small = f'<span class="small">{escape(words["settings"])}, {runs}</span>'
    return f'<tr><th scope="row">{escape(words["policy"])}{small}</th>{line}</tr>'


def _figures(found: Reproduction, figures: Sequence[Picture]) -> str:
    drawn = "".join(figure_html("paper", picture, f"{picture.title}, {found.study.title}") for picture in figures)
    other = "Yelp" if found.study.name == "movielens" else "MovieLens"
    return (
        '<section id="figures"><h2>Figures</h2>'
        "<p>Figures 2 to 5 of the paper are regret and reward on both data sets, 6 and 7 the elbow, 8 and 9 the number "
        f"of clusters; those of {other} are on its own page. Which of 2 and 3 (4 and 5) shows regret is not in our "
        f'notes, so they share a heading.</p><div class="pictures">{drawn}</div></section>'
    )


def _ours(found: Reproduction, sections: Mapping[str, Section]) -> str:
    content = section_content(sections[OURS]) if OURS in sections else "<p>Not played yet.</p>"
    tuned = f"<h3>After tuning</h3>{section_content(sections[TUNED])}" if TUNED in sections else ""
    return (
        f'<section id="ours"><h2>Our protocol: everybody, expected regret first</h2><p>{_prose(_budget(found))}</p>'
        f"{content}{tuned}{_searches(found.searches)}</section>"
    )


def _budget(found: Reproduction) -> str:
    """The settings everybody plays with, and why that is fair or not."""
    seeds = found.scale.our_seeds
    start = f"{seeds} seeds, the same for all, and the same coins. "
    tuned = [search for search in found.searches if search.phase == TUNED]
    if not tuned:
        return start + (
            "Everybody plays its default preset: nothing was tuned for this page. --tune N gives each policy N trials "
            "on development seeds and rounds that are not reported."
        )
    trials, rounds = tuned[0].trials, tuned[0].rounds
    return start + (
        f"The table below is of default presets; the one after it of settings found with {trials} trials each, on "
        f"development seeds {_listed(tuned[0].seeds)} and {rounds} later rounds, none of which are reported."
    )


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))


def _searches(searches: Sequence[Search]) -> str:
    if not searches:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(each.policy)}</th><td class="words">{escape(PHASE_TITLES[each.phase])}</td>'
        f'<td>{each.trials}</td><td class="words">{escape(_settings(each))}</td></tr>'
        for each in searches
    )
    return (
        '<h3>Settings that were searched for</h3><div class="wide"><table><thead><tr><th scope="col">policy</th>'
        '<th scope="col" class="words">search</th><th scope="col">trials</th>'
        f'<th scope="col" class="words">chosen</th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _settings(search: Search) -> str:
    if search.best is None:
        return "not finished"
    return ", ".join(f"{key}={value}" for key, value in search.best.items()) or DASH


def _made(found: Reproduction) -> str:
    records = [run for runs in found.runs.values() for run in runs]
    lines = "\n".join(found.commands)
    return (
        '<section id="made"><h2>How this was made</h2>'
        f"<p>Runs: {escape(run_versions(records))}. Every number of this page is in summary.json, every run in "
        f"records/runs/*.parquet, Table 1 in table1.csv, .md and .tex, the figures in figures/.</p>"
        f"<pre>{escape(lines)}</pre><p>Made with {escape(page_versions())}.</p></section>"
    )
