"""A reproduction as numbers: Table 1 with published beside measured, and every row as JSON, CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from neuclust.analysis.groups import Contender, problems
from neuclust.analysis.published import NAMES, UNPLACED, Published, comparable, published
from neuclust.experiment.records import RunRecord
from neuclust.experiment.reproduction.phases import (
    AUTHORS,
    CLUSTERS,
    GRIDS,
    PAPER,
    PAPER_POLICIES,
    READINGS,
    TUNED,
    YARDSTICKS,
    Phase,
    Reading,
    Scale,
    Study,
    paper_preset,
)
from neuclust.experiment.tasks import labelled
from neuclust.registry import POLICIES
from neuclust.report.html import Failure
from neuclust.report.latex import escape
from neuclust.report.tables import number, with_error

DASH = "–"


@dataclass(frozen=True, slots=True)
class Search:
    """What a search for settings was allowed, and what it chose; `best` None where it is not finished."""

    phase: str
    policy: str
    preset: str
    trials: int
    seeds: tuple[int, ...]
    rounds: int
    best: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Everything a page is made of; `runs` are records by phase, `missing` counts those not played yet."""

    study: Study
    source: str | None  # the prepared file; None: the twin
    rounds: int
    slate_size: int
    scale: Scale
    runs: Mapping[str, tuple[RunRecord, ...]]
    missing: int = 0
    elbow: tuple[tuple[int, float], ...] = ()
    searches: tuple[Search, ...] = ()
    failures: tuple[Failure, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether the printed numbers are sums over as many rounds."""
        return comparable(self.rounds, self.slate_size)

    def contenders(self, phase: str) -> tuple[Contender, ...]:
        found = problems(self.runs.get(phase, ()))
        return found[0].contenders if found else ()

    def contender(self, phase: str, policy: str) -> Contender | None:
        return next((one for one in self.contenders(phase) if one.policy == policy), None)

    def under(self, reading: Reading, policy: str, settings: Mapping[str, str] | None = None) -> Contender | None:
        """A policy of the phase of readings with the reading's settings, and others on top of them."""
        wanted = {**reading.settings, **(settings or {})}
        return next(
            (
                one
                for one in self.contenders(READINGS)
                if (one.policy, one.preset) == (policy, reading.preset) and dict(one.runs[0].settings) == wanted
            ),
            None,
        )


def runs_by_phase(
    phases: Sequence[Phase], records: Mapping[str, RunRecord]
) -> tuple[dict[str, tuple[RunRecord, ...]], int]:
    """The records of every phase and how many are missing.

    A run that two phases share was labelled by the one that played it; each phase calls it what it asked for.
    """
    found = {}
    for phase in phases:
        found[phase.name] = tuple(labelled(records[task.key], task) for task in phase.tasks if task.key in records)
    missing = {task.key for phase in phases for task in phase.tasks} - set(records)
    return found, len(missing)


def without_settings(
    runs: Mapping[str, tuple[RunRecord, ...]], common: Mapping[str, str]
) -> dict[str, tuple[RunRecord, ...]]:
    """The same runs named without settings that all of a quick look share, which the page tells once."""
    return {
        phase: tuple(
            replace(run, settings={key: value for key, value in run.settings.items() if common.get(key) != value})
            for run in records
        )
        for phase, records in runs.items()
    }


@dataclass(frozen=True, slots=True)
class Row:
    """One line of Table 1; `measured` is None for a policy that has not run."""

    protocol: str
    policy: str
    preset: str
    measured: Contender | None
    published: Published = field(default_factory=Published)

    @property
    def name(self) -> str:
        return NAMES.get(self.policy, self.policy)


def table_rows(found: Reproduction) -> list[Row]:
    """The paper's policies by its protocol, the same with other settings, and what the paper leaves out."""
    theirs = [_row(found, PAPER, policy) for policy in PAPER_POLICIES]
    readings = [
        Row(READINGS, one.policy, one.preset, one, published(found.study.name, one.policy))
        for reading in found.study.readings
        for policy in ("neuclust", "cn-ucb")
        if (one := found.under(reading, policy)) is not None
    ]
    others = [
        _row(found, phase, policy)
        for phase in (AUTHORS, GRIDS, TUNED)
        for policy in PAPER_POLICIES
        if found.contender(phase, policy) is not None
    ]
    return [*theirs, *readings, *others, *(_row(found, PAPER, policy) for policy in YARDSTICKS)]


def _row(found: Reproduction, phase: str, policy: str) -> Row:
    measured = found.contender(phase, policy)
    known = policy in POLICIES
    preset = measured.preset if measured else paper_preset(policy, found.study) if known else "default"
    return Row(phase, policy, preset, measured, published(found.study.name, policy))


def inferred_regret(found: Reproduction, row: Row) -> float | None:
    """The expected regret behind a printed clipped one, (C − floor) / ū*, from E[C] = Σu*(1 − u*) + Σu*(u* − u).

    Exact where u* is the same in every round, as it is on MovieLens; None where rounds cannot be compared.
    """
    if row.published.regret is None or not found.comparable:
        return None
    any_run = next((run for runs in found.runs.values() for run in runs), None)
    if any_run is None:
        return None
    return (row.published.regret - any_run.clipped_floor) * any_run.rounds / any_run.best_expected


def speed_ratio(found: Reproduction, row: Row) -> float | None:
    """Printed seconds over ours: other machines, so a size and not a measurement."""
    if row.measured is None or row.published.seconds is None or not found.comparable:
        return None
    return row.published.seconds / row.measured.over_seeds("seconds").mean


def cells(found: Reproduction, row: Row) -> dict[str, str]:
    """The words of a line by heading; a dash where there is no number."""
    measured, ratio = row.measured, speed_ratio(found, row)
    return {
        "policy": row.name,
        "settings": _settings(row),
        "runs": DASH if measured is None else str(len(measured.runs)),
        "clipped regret, published": _number(row.published.regret, ".0f"),
        "clipped regret, measured": DASH if measured is None else with_error(measured.over_seeds("clipped_regret")),
        "its floor": DASH if measured is None else number(measured.over_seeds("clipped_floor").mean),
        "expected regret behind the published": _number(inferred_regret(found, row), ".1f"),
        "expected regret, measured": DASH if measured is None else with_error(measured.over_seeds("expected_regret")),
        "reward, measured": DASH if measured is None else with_error(measured.over_seeds("successes")),
        "seconds, published": _number(row.published.seconds, ",.0f"),
        "seconds, measured": DASH if measured is None else f"{measured.over_seeds('seconds').mean:.2f}",
        "times faster": DASH if ratio is None else f"{ratio:,.0f}×",
    }


def _settings(row: Row) -> str:
    """The preset, and whose settings they are where they are not the paper's."""
    chosen = row.measured.settings if row.measured is not None else ""
    return f"{row.preset} ({chosen})" if chosen else row.preset


def _number(value: float | None, form: str) -> str:
    return DASH if value is None else format(value, form)


def csv_text(found: Reproduction) -> str:
    """Table 1 with full precision: the rows of the summary."""
    rows = [row_json(found, row) for row in table_rows(found)]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def markdown_text(found: Reproduction, notes: Sequence[str]) -> str:
    """Table 1 as Markdown with what to know when reading it."""
    rows = [cells(found, row) for row in table_rows(found)]
    lines = [_bar(rows[0]), _bar(["---"] * len(rows[0])), *(_bar(row.values()) for row in rows)]
    return "\n".join([*lines, "", *(f"- {note}" for note in notes), ""])


def _bar(words: Any) -> str:
    return f"| {' | '.join(word.replace('|', '/') for word in words)} |"


def latex_text(found: Reproduction, notes: Sequence[str]) -> str:
    """Table 1 as a `tabular` that compiles without any package, notes as comments."""
    rows = [cells(found, row) for row in table_rows(found)]
    lines = [" & ".join(_tex(word) for word in words) + r" \\" for words in (rows[0], *(r.values() for r in rows))]
    return "\n".join(
        [
            *(f"% {' '.join(note.split())}" for note in notes),
            rf"\begin{{tabular}}{{ll{'r' * (len(rows[0]) - 2)}}}",
            r"\hline",
            lines[0],
            r"\hline",
            *lines[1:],
            r"\hline",
            r"\end{tabular}",
            "",
        ]
    )


def _tex(word: str) -> str:
    return escape(word.replace("×", "x"))


def row_json(found: Reproduction, row: Row) -> dict[str, Any]:
    """A line as plain numbers under names that stay; None where there is none."""
    return {
        "policy": row.policy,
        "preset": row.preset,
        "protocol": row.protocol,
        **_measured_json(row.measured),
        "published_regret": row.published.regret,
        "published_seconds": row.published.seconds,
        "published_expected_regret": inferred_regret(found, row),
        "seconds_ratio": speed_ratio(found, row),
    }


def _measured_json(measured: Contender | None) -> dict[str, Any]:
    columns = {"expected_regret": "expected_regret", "clipped": "clipped_regret", "reward": "successes"}
    found: dict[str, Any] = {"settings": "" if measured is None else measured.settings}
    for name, column in columns.items():
        estimate = None if measured is None else measured.over_seeds(column)
        found[f"{name}_mean"] = None if estimate is None else estimate.mean
        found[f"{name}_se"] = None if estimate is None else estimate.error
    for name, column in (("clipped_floor", "clipped_floor"), ("seconds_mean", "seconds")):
        found[name] = None if measured is None else measured.over_seeds(column).mean
    return found | {"seeds": 0 if measured is None else len(measured.runs)}


def summary_rows(found: Reproduction) -> list[dict[str, Any]]:
    """Every contender of every phase; printed numbers stand with the paper's policies where its protocol is played."""
    rows = [row_json(found, row) for row in table_rows(found)]
    seen = {(row["protocol"], row["policy"], row["preset"], row["settings"]) for row in rows}
    others = [
        Row(phase, one.policy, one.preset, one)
        for phase in found.runs
        for one in found.contenders(phase)
        if (phase, one.policy, one.preset, one.settings) not in seen
    ]
    return rows + [row_json(found, row) for row in others]


def cluster_points(found: Reproduction, policy: str) -> list[tuple[int, Contender]]:
    """Contenders of the phase over numbers of clusters, by that number."""
    points = [(one.runs[0].clusters, one) for one in found.contenders(CLUSTERS) if one.policy == policy]
    return sorted(((count, one) for count, one in points if count is not None), key=lambda point: point[0])


def label(found: Reproduction) -> str:
    """What was played, in a few words: `quick: T = 120, 2 seeds`."""
    seeds = max((len(one.runs) for phase in found.runs for one in found.contenders(phase)), default=0)
    quick = "quick: " if found.scale.quick else ""
    return f"{quick}T = {found.rounds}, {seeds} {'seed' if seeds == 1 else 'seeds'}"


def table_notes(found: Reproduction) -> list[str]:
    """What to know when reading Table 1."""
    notes = [
        f"{DASH}: no such number, or for the paper: not stated in our notes of it.",
        "Clipped regret is the paper's metric, Σ max(0, reward of the best slate − reward). A perfect policy pays its "
        "floor, so only what lies above the floor is regret; expected regret is free of it.",
    ]
    if found.comparable:
        notes.append(
            "“Expected regret behind the published” is (published − floor) / average value of the best slate. "
            "“Times faster” compares the paper's GTX 1080 Ti with the machine of this page: a size, not a measurement."
        )
    else:
        notes.append(
            f"The published numbers are sums over 1000 rounds and cannot be compared with these {found.rounds}; the "
            "columns that would compare them are empty."
        )
    if found.source is None:
        notes.append("Measured on the embedded synthetic twin, not on the paper's data: sizes are similar, not equal.")
    notes.append(UNPLACED[found.study.name])
    absent = [NAMES[row.policy] for row in table_rows(found) if row.measured is None and row.policy in NAMES]
    if absent:
        notes.append(f"Not run here: {', '.join(absent)}.")
    if found.study.name == "yelp":
        notes.append("The authors' clocks of K-LinUCB and Neural-MAB count the reading of the data; the others do not.")
    return notes
