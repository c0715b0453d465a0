"""Draws the paper's Figures 2 to 9 from docs/records as docs/figures/figure-N-….svg.

    python -m tools.reproduction_figures                                  # again from the numbers kept
    python -m tools.reproduction_figures --take yelp RUNS.jsonl … --elbow ELBOW.json
    python -m tools.reproduction_figures --take movielens DIR             # a folder of `neuclust reproduce`

Runs are lines of `neuclust.experiment.reproduction.bare` or the folder of `neuclust reproduce`;
docs/records/NAME_runs.json keeps their sums and every fourth point of their curves. Figure 8 is drawn from
docs/records/movielens.json, which keeps the regret by number of clusters.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuclust.analysis.estimates import Estimate, with_error
from neuclust.analysis.groups import problems
from neuclust.analysis.reproduction.results import Reproduction
from neuclust.analysis.reproduction.verdicts import verdicts
from neuclust.experiment.records import RunRecord, record_from_json
from neuclust.experiment.reproduction.lines import read_runs_of
from neuclust.experiment.reproduction.phases import (
    AUTHORS,
    CLUSTERS,
    PAPER,
    PAPER_POLICIES,
    STUDIES,
    YARDSTICKS,
    Study,
    full_scale,
    paper_preset,
)
from neuclust.report.drawing import Picture, svg_text
from neuclust.report.reproduction.figures import cluster_pictures, drawn_runs, paper_figures, seeds_words

DOCS = Path(__file__).parents[1] / "docs"
RECORDS, FIGURES = DOCS / "records", DOCS / "figures"
EVERY, DIGITS = 4, 4
Record = Mapping[str, Any]


def phase_of(study: Study, run: RunRecord) -> str | None:
    """The part of the protocol a run belongs to; None where its settings are of no figure."""
    if run.settings:
        return None
    if run.clusters is not None or run.policy == "cluster-oracle":
        return CLUSTERS
    if run.preset == study.authors:
        return AUTHORS
    known = run.policy in (*PAPER_POLICIES, *YARDSTICKS)
    return PAPER if known and run.preset == paper_preset(run.policy, study) else None


def kept(run: RunRecord, curves: bool) -> dict[str, Any]:
    """A run as it is kept: sums, and every fourth point of its curves where they are drawn."""

    def thin(curve: Sequence[tuple[int, float]]) -> list[list[float]]:
        points = [*curve[EVERY - 1 :: EVERY]]
        points += [] if points and points[-1] == curve[-1] else [curve[-1]]
        return [[t, round(value, DIGITS)] for t, value in points]

    row = {key: round(value, DIGITS) if isinstance(value, float) else value for key, value in run.to_json().items()}
    row |= {"curve": thin(run.curve) if curves else [], "reward_curve": thin(run.reward_curve) if curves else []}
    return row | {"chosen_clusters": []}


def record_of(study: Study, runs: Collection[RunRecord], elbow: Sequence[Sequence[float]]) -> dict[str, Any]:
    """What docs/records keeps of the runs of a study."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in sorted(runs, key=lambda run: (run.policy, run.preset, run.clusters or 0, run.seed)):
        phase = phase_of(study, run)
        if phase is not None:
            found.setdefault(phase, []).append(kept(run, phase != CLUSTERS))
    if CLUSTERS in found:  # the paper's number of clusters is played by its protocol already
        theirs = [run for run in runs if phase_of(study, run) == PAPER and run.policy == "neuclust"]
        found[CLUSTERS] += [kept(replace(run, clusters=study.clusters), False) for run in theirs]
    first = next(run for runs in found.values() for run in runs)
    head = {"study": study.name, "env": first["env"], "rounds": first["rounds"], "slate_size": first["slate_size"]}
    return head | {"elbow": [list(point) for point in elbow], "runs": found}


def record_text(record: Record) -> str:
    """JSON with a run per line."""
    phases = [
        f'"{phase}": [\n' + ",\n".join(json.dumps(run, ensure_ascii=False) for run in runs) + "\n]"
        for phase, runs in record["runs"].items()
    ]
    head = [f'"{key}": {json.dumps(record[key])}' for key in record if key != "runs"]
    return "{" + ",\n".join([*head, '"runs": {\n' + ",\n".join(phases) + "\n}"]) + "}\n"


def reproduction_of(record: Record) -> Reproduction:
    """The kept runs as a reproduction, which draws and judges them."""
    study = STUDIES[record["study"]]
    runs = {
        phase: tuple(record_from_json(row, f"{record['study']}_runs, {phase}") for row in rows)
        for phase, rows in record["runs"].items()
    }
    return Reproduction(
        study=study,
        source=None if record["env"] == study.twin else record["env"],
        rounds=record["rounds"],
        slate_size=record["slate_size"],
        scale=full_scale(study),
        runs=runs,
        elbow=tuple((int(count), float(squares)) for count, squares in record["elbow"]),
    )


def pictures(records: Mapping[str, Any]) -> list[Picture]:
    """Figures 2 to 9, as far as the records reach."""
    found = [
        picture
        for name in STUDIES
        if f"{name}_runs" in records
        for picture in paper_figures(reproduction_of(records[f"{name}_runs"]))
    ]
    drawn = {picture.name for picture in found}
    found += [picture for picture in _movielens(records["movielens"]) if picture.name not in drawn]
    return sorted(found, key=lambda picture: picture.name)


def _movielens(record: Record) -> list[Picture]:
    """The number of clusters from the record of the study, which keeps means and errors."""
    points: dict[str, list[tuple[int, Estimate]]] = {"neuclust": [], "cluster-oracle": []}
    seeds = 0
    for row in record["rows"]:
        count = re.fullmatch(r"clusters=(\d+)", row["settings"])
        if row["protocol"] == CLUSTERS and count:
            found = Estimate(row["expected_regret_mean"], row["expected_regret_se"])
            points[row["policy"]].append((int(count[1]), found))
            seeds = row["seeds"]
    ordered = {policy: sorted(each, key=lambda point: point[0]) for policy, each in points.items()}
    return cluster_pictures(STUDIES["movielens"], ordered, record["rounds"], seeds)


# --- words of docs/reproduction.md ----------------------------------------------------------------------------------


def figure(_: Record, name: str, *words: str) -> str:
    """The link to a picture with its alternative text."""
    return f"![{' '.join(words)}](figures/figure-{name}.svg)"


def seeds_of(records: Record, study: str) -> str:
    """How many seeds of whom the curves of a study have."""
    found = reproduction_of(records[f"{study}_runs"])
    return seeds_words(problems(drawn_runs(found))[0])


def judged(records: Record, study: str, *start: str) -> str:
    """The verdicts on the kept runs whose claims hold these words, as rows of a table."""
    words = " ".join(start)
    rows = [each for each in verdicts(reproduction_of(records[f"{study}_runs"])) if words in each.claim]
    if not rows:
        raise KeyError(words)
    return table_rows_text([[each.claim, each.answer, each.evidence] for each in rows])


def kept_verdict(records: Record, study: str, *start: str) -> str:
    """A verdict of the study's own record."""
    words = " ".join(start)
    rows = [each for each in records[study]["verdicts"] if words in each["claim"]]
    if not rows:
        raise KeyError(words)
    return table_rows_text([[each["claim"], each["answer"], each["evidence"]] for each in rows])


def table_rows_text(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def runs_table(records: Record, study: str) -> str:
    """Everybody whose runs are kept, least expected regret first."""
    found = reproduction_of(records[f"{study}_runs"])
    lines = sorted(
        (one for phase in (PAPER, AUTHORS) for one in found.contenders(phase)),
        key=lambda one: one.over_seeds("expected_regret").mean,
    )
    head = table_rows_text([["policy", "expected regret", "clipped regret", "slates that succeeded", "seeds"]])
    head += "\n| --- | ---: | ---: | ---: | ---: |"
    columns = ("expected_regret", "clipped_regret", "successes")
    rows = [
        [f"`{one.code}`", *(with_error(one.over_seeds(name)) for name in columns), str(len(one.runs))] for one in lines
    ]
    return f"{head}\n{table_rows_text(rows)}"


KINDS: Mapping[str, Callable[..., str]] = {
    "figure": figure,
    "seeds-of": seeds_of,
    "judged": judged,
    "kept-verdict": kept_verdict,
    "runs-table": runs_table,
}


def kept_records() -> dict[str, Any]:
    names = [*STUDIES, *(f"{name}_runs" for name in STUDIES)]
    files = {name: RECORDS / f"{name}.json" for name in names}
    return {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}


def take(name: str, sources: Sequence[Path], elbow: Path | None) -> None:
    """Keep runs, the first of each key, in place of those kept before."""
    from neuclust.experiment.store import read_records

    found = read_runs_of([source for source in sources if source.is_file()])
    for folder in (source for source in sources if source.is_dir()):
        found |= read_records(folder / "records")
    if elbow is None:  # the study's own
        points = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8")).get("elbow", [])
    else:
        points = json.loads(elbow.read_text(encoding="utf-8"))
    text = record_text(record_of(STUDIES[name], found.values(), points))
    (RECORDS / f"{name}_runs.json").write_text(text, encoding="utf-8")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--take", nargs="+", metavar=("NAME", "SOURCE"), help="keep new runs first")
    parser.add_argument("--elbow", type=Path, help="with --take: [[clusters, sum of squares], …] as JSON")
    chosen = parser.parse_args(words)
    if chosen.take:
        take(chosen.take[0], [Path(source) for source in chosen.take[1:]], chosen.elbow)
    for picture in pictures(kept_records()):
        (FIGURES / f"{picture.name}.svg").write_text(svg_text(picture.figure), encoding="utf-8")
        print(f"wrote docs/figures/{picture.name}.svg")


if __name__ == "__main__":
    main()
