"""The page of a reproduction: what it rests on, Table 1, the figures, our protocol, and what reproduces."""

from collections.abc import Mapping, Sequence
from html import escape

from neuclust.analysis.claims import JudgedClaim
from neuclust.analysis.estimates import counted
from neuclust.analysis.published import NAMES
from neuclust.analysis.reproduction.readings import readings_json
from neuclust.analysis.reproduction.results import Reproduction, Search, table_rows
from neuclust.experiment.reproduction.phases import OURS, PHASE_TITLES, TUNED, YARDSTICKS
from neuclust.report import html
from neuclust.report.drawing import Picture
from neuclust.report.html import Section
from neuclust.report.reproduction.tables import COLUMNS, DASH, cells, reading_cells, table_notes

NAMING = ("policy", "settings", "runs")  # together in the first column
NOT_NAMING = [heading for heading in COLUMNS if heading not in NAMING]
TWIN = (
    "a synthetic twin of the paper's data that comes with the package: what follows shows the method and the sizes, "
    "not the paper's numbers. The real data, prepared as a file, takes its place"
)
MARKS = {"reproduces": "✓", "does not reproduce": "✗", "cannot be told": "?", "finding": "•"}


def reproduction_page(
    found: Reproduction, verdicts: Sequence[JudgedClaim], figures: Sequence[Picture], sections: Mapping[str, Section]
) -> str:
    """The whole HTML document; `sections` are tables of all policies by phase."""
    title = f"{found.study.title}: the paper's tables and figures made again"
    parts = [
        _opening(found, title),
        _readings(found),
        _verdicts(verdicts),
        _table(found),
        _figures(found, figures),
        _ours(found, sections),
        html.failures_html(found.failures),
        _made(found),
    ]
    return html.document(title, "\n".join(parts))


def _opening(found: Reproduction, title: str) -> str:
    links = {
        **({"readings": "What the order turns on"} if readings_json(found) else {}),
        "verdicts": "What reproduces and what does not",
        "table-1": "Table 1",
        "figures": "Figures",
        "ours": "Our protocol: all policies, expected regret first",
        "made": "How this was made",
    }
    listed = "".join(f'<li><a href="#{target}">{text}</a></li>' for target, text in links.items())
    partial = "".join(f"<p>{escape(line)}</p>" for line in _partial(found))
    source = "Played on " + (found.source or f"{found.study.twin}, {TWIN}") + "."
    return (
        f'<header><h1>{escape(title)}</h1><p class="finding"><strong>{escape(found.label)}.</strong> '
        f"{escape(source)}</p>{partial}<ul>{listed}</ul></header>"
    )


def _partial(found: Reproduction) -> list[str]:
    lines = []
    if found.scale.quick:
        what = f"{found.rounds} of the paper's 1000 rounds, few seeds and few numbers of clusters"
        left_out = "".join(f"; {NAMES.get(name, name)} is left out" for name in found.scale.left_out)
        changed = "".join(f"; {key} = {value}" for key, value in found.scale.settings.items())
        lines.append(f"A quick look, not the whole protocol: {what}{left_out}{changed}.")
    if found.missing:
        runs = f"{counted(found.missing, 'run')} {'is' if found.missing == 1 else 'are'}"
        lines.append(f"Not finished: {runs} missing; the same command takes them up.")
    return lines


def _verdicts(found: Sequence[JudgedClaim]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(each.claim)}</th>'
        f'<td class="words">{MARKS[each.answer]} {escape(each.answer)}</td>'
        f'<td class="words">{escape(each.evidence)}</td></tr>'
        for each in found
    )
    head = html.heading_html("claim") + html.heading_html("answer", True) + html.heading_html("what it rests on", True)
    return (
        '<section id="verdicts"><h2>What reproduces and what does not</h2>'
        "<p>Every answer is computed from the runs of this page unless it says otherwise. “Cannot be told” means that "
        "the difference is less than two standard errors, or that there are too few seeds.</p>"
        f"{html.table_html(head, rows)}</section>"
    )


def _readings(found: Reproduction) -> str:
    """NeUClust and CN-UCB under every reading that was played."""
    lines = [reading_cells(row) for row in readings_json(found)]
    if not lines:
        return ""
    prose = ("reading", "what it means")
    head = "".join(html.heading_html(heading, heading in prose) for heading in lines[0])
    body = "".join(f"<tr>{''.join(_td(word, key in prose) for key, word in line.items())}</tr>" for line in lines)
    return (
        '<section id="readings"><h2>Readings: what the order of NeUClust and CN-UCB turns on</h2>'
        "<p>Expected regret, mean ± standard error over the same seeds and the same coins.</p>"
        f"{html.table_html(head, body)}</section>"
    )


def _td(text: str, words: bool = False) -> str:
    return f"<td{html.words_class(words)}>{escape(text)}</td>"


def _table(found: Reproduction) -> str:
    body, group = "", ""
    for row in table_rows(found):
        now = "not in the paper, for scale" if row.policy in YARDSTICKS else PHASE_TITLES[row.protocol]
        if now != group:
            body += f'<tr><th scope="rowgroup" colspan="{len(NOT_NAMING) + 1}"><em>{escape(now)}</em></th></tr>'
            group = now
        words = cells(found, row)
        runs = "not run" if words["runs"] == DASH else counted(int(words["runs"]), "run")
        small = f'<span class="small">{escape(words["settings"])}, {runs}</span>'
        line = "".join(_td(words[heading]) for heading in NOT_NAMING)
        body += f'<tr><th scope="row">{escape(words["policy"])}{small}</th>{line}</tr>'
    head = "".join(map(html.heading_html, ("policy", *NOT_NAMING)))
    protocol = (
        f"The paper's protocol: 1000 rounds, slates of 5, {found.study.runs} runs, {found.study.clusters} clusters. "
        f"Played here: {found.rounds} rounds, slates of {found.slate_size}, {found.scale.runs} runs."
    )
    return (
        '<section id="table-1"><h2>Table 1: regret and runtime, published and measured</h2>'
        f"<p>{escape(protocol)}</p>{html.table_html(head, body)}"
        f"{html.notes_html(notes := table_notes(found), len(notes))}</section>"
    )


def _figures(found: Reproduction, figures: Sequence[Picture]) -> str:
    drawn = "".join(html.figure_html("paper", picture, f"{picture.title}, {found.study.title}") for picture in figures)
    other = "Yelp" if found.study.name == "movielens" else "MovieLens"
    return (
        '<section id="figures"><h2>Figures</h2>'
        "<p>Figures 2 and 3 of the paper are regret on MovieLens and Yelp, 4 and 5 reward, 6 and 7 the elbow, 8 and 9 "
        f"the number of clusters; those of {other} are on its own page.</p>"
        f'<div class="pictures">{drawn}</div></section>'
    )


def _ours(found: Reproduction, sections: Mapping[str, Section]) -> str:
    content = html.section_content(sections[OURS]) if OURS in sections else "<p>Not played yet.</p>"
    tuned = f"<h3>After tuning</h3>{html.section_content(sections[TUNED])}" if TUNED in sections else ""
    return (
        '<section id="ours"><h2>Our protocol: all policies, expected regret first</h2>'
        f"<p>{escape(_budget(found))}</p>"
        f"{content}{tuned}{_searches(found.searches)}</section>"
    )


def _budget(found: Reproduction) -> str:
    """The settings of all policies, and why that is fair or not."""
    seeds = found.scale.our_seeds
    start = f"{seeds} seeds, the same for all, and the same coins. "
    tuned = [search for search in found.searches if search.phase == TUNED]
    if not tuned:
        return start + (
            "Every policy plays its default preset: nothing was tuned for this page. A budget of trials would tune "
            "each policy on development seeds and rounds that are not reported."
        )
    on = ", ".join(map(str, tuned[0].seeds))
    return start + (
        f"The table below is of default presets; the one after it of settings found with {tuned[0].trials} trials "
        f"each, on development seeds {on} and {tuned[0].rounds} later rounds, none of which are reported."
    )


def _searches(searches: Sequence[Search]) -> str:
    if not searches:
        return ""
    rows = ""
    for each in searches:
        best = None if each.best is None else ", ".join(f"{key}={value}" for key, value in each.best.items()) or DASH
        cells = (_td(PHASE_TITLES[each.phase], True), _td(str(each.trials)), _td(best or "not finished", True))
        rows += f'<tr><th scope="row">{escape(each.policy)}</th>{"".join(cells)}</tr>'
    columns = {"policy": False, "search": True, "trials": False, "chosen": True}
    head = "".join(html.heading_html(heading, words) for heading, words in columns.items())
    return f"<h3>Settings that were searched for</h3>{html.table_html(head, rows)}"


def _made(found: Reproduction) -> str:
    records = [run for runs in found.runs.values() for run in runs]
    return (
        '<section id="made"><h2>How this was made</h2>'
        f"<p>Runs: {escape(html.run_versions(records))}. Every number of this page is in summary.json, every run in "
        f"records/runs/*.parquet, Table 1 in table1.csv, .md and .tex, the figures in figures/.</p>"
        f"<pre>{escape(chr(10).join(found.commands))}</pre><p>Made with {escape(html.page_versions())}.</p></section>"
    )
