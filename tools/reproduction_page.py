"""Writes docs/reproduction.md from its template and the numbers under docs/records.

    python -m tools.reproduction_page                          # the page again from the numbers kept
    python -m tools.reproduction_page --take movielens DIR     # keep summary.json of `neuclust reproduce`
    python -m tools.reproduction_page --take ablations DIR ... # keep the folders of the ablation sweeps
    python -m tools.reproduction_page --take clusterings DIR   # that of experiments/ablations/clusterings.toml
    python -m tools.reproduction_page --take yelp DIR          # and that of experiments/yelp-degenerate.toml

The template holds the words; {{...}} are filled in. A test keeps page, template and numbers equal.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuclust.analysis.multiverse.verdict import verdict_of
from neuclust.report.reproduction.tables import reading_cells
from tools.reproduction_figures import KINDS as FIGURE_KINDS

if TYPE_CHECKING:
    from neuclust.analysis.groups import Contender, ProblemRuns

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "records"
TEMPLATE, PAGE = Path(__file__).parent / "templates" / "reproduction.md", DOCS / "reproduction.md"

KEPT = ("label", "rounds", "slate_size", "rows", "verdicts", "readings", "elbow", "commands", "version")
Row = Mapping[str, Any]


def render(template: str, records: Any, kinds: Mapping[str, Callable[..., str]] | None = None) -> str:
    """The template with every {{expression}} replaced; an unknown one is an error that names it."""
    known = _KINDS if kinds is None else kinds
    return re.sub(r"\{\{\s*(.+?)\s*\}\}", lambda match: _value(match[1], records, known), template)


def _value(expression: str, records: Any, kinds: Mapping[str, Callable[..., str]]) -> str:
    kind, *words = expression.split()
    try:
        return str(kinds[kind](records, *words))
    except (KeyError, StopIteration, IndexError, TypeError) as error:
        raise SystemExit(f"{{{{{expression}}}}}: not in docs/records ({error!r})") from None


def _row(records: Mapping[str, Any], study: str, protocol: str, contestant: str) -> Row:
    """The row of POLICY[:PRESET][/SETTINGS]."""
    title, _, settings = contestant.partition("/")
    policy, _, preset = title.partition(":")
    wanted = {"protocol": protocol, "policy": policy, "preset": preset or "default", "settings": settings}
    rows: Sequence[Row] = records[study]["rows"]
    return next(row for row in rows if wanted.items() <= {key: row[key] for key in wanted}.items())


def _measure(records: Mapping[str, Any], study: str, protocol: str, contestant: str, column: str) -> str:
    row = _row(records, study, protocol, contestant)
    return with_error(row[f"{column}_mean"], row.get(f"{column}_se"))


def _plain(records: Mapping[str, Any], study: str, protocol: str, contestant: str, column: str) -> str:
    return number(_row(records, study, protocol, contestant)[column])


def _digits(value: float) -> int:
    return 0 if value == 0 else 3 if abs(value) < 0.1 else 2 if abs(value) < 10 else 1


def number(value: float | None) -> str:
    """Three digits or so, thousands separated, whole numbers as they are; a dash for nothing."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{_digits(value)}f}"


def with_error(mean: float | None, error: float | None) -> str:
    """Mean and standard error with equally many decimals; no error where there is none."""
    if mean is None or not error:
        return number(mean)
    digits = _digits(mean)
    return f"{mean:,.{digits}f} ± {error:,.{digits}f}" if round(error, digits) else f"{mean:,.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], rule: str = "---:", words: int = 1) -> str:
    """A Markdown table; `rule` aligns every column after the first ones, which hold words."""
    lines = [head, [*["---"] * words, *[rule] * (len(head) - words)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _name(row: Row) -> str:
    return f"`{row['policy']}`" if row["preset"] == "default" else f"`{row['policy']}:{row['preset']}`"


def _paper_table(records: Mapping[str, Any], study: str, protocol: str) -> str:
    """Published beside measured, in the order of the paper's protocol."""
    rows = [row for row in records[study]["rows"] if row["protocol"] == protocol]
    head = [
        *("policy", "clipped, published", "clipped, measured", "expected, behind the published", "expected, measured"),
        *("seconds, published", "seconds, measured", "runs"),
    ]
    return table(
        head,
        [
            [
                _name(row),
                number(row.get("published_regret")),
                with_error(row["clipped_mean"], row.get("clipped_se")),
                number(row.get("published_expected_regret")),
                with_error(row["expected_regret_mean"], row.get("expected_regret_se")),
                number(row.get("published_seconds")),
                number(row["seconds_mean"]),
                str(row["seeds"]),
            ]
            for row in rows
        ],
    )


def _our_table(records: Mapping[str, Any], study: str, protocol: str) -> str:
    """Everybody by expected regret, least first."""
    rows = [row for row in records[study]["rows"] if row["protocol"] == protocol and row["settings"] == ""]
    rows.sort(key=lambda row: row["expected_regret_mean"])
    return table(
        ["policy", "expected regret", "clipped regret", "slate successes", "seconds", "seeds"],
        [
            [
                _name(row),
                with_error(row["expected_regret_mean"], row.get("expected_regret_se")),
                with_error(row["clipped_mean"], row.get("clipped_se")),
                number(row["reward_mean"]),
                number(row["seconds_mean"]),
                str(row["seeds"]),
            ]
            for row in rows
        ],
    )


def _reading(records: Mapping[str, Any], study: str, title: str, column: str) -> str:
    row = next(row for row in records[study]["readings"] if row["reading"] == title)
    return with_error(row[column]["mean"], row[column]["error"])


def _readings_table(records: Mapping[str, Any], study: str) -> str:
    lines = [reading_cells(row) for row in records[study]["readings"]]
    return table(list(lines[0]), [list(line.values()) for line in lines], words=2)


def _verdict_table(records: Mapping[str, Any], study: str) -> str:
    return table(
        ["claim", "answer", "what it rests on"],
        [[verdict["claim"], verdict["answer"], verdict["evidence"]] for verdict in records[study]["verdicts"]],
        rule="---",
    )


def _ablation_table(records: Mapping[str, Any], name: str) -> str:
    """Regret of every setting on every problem, and its paired difference to the preset as it is."""
    rows: Sequence[Row] = (records["ablations"] | records.get("clusterings", {}))[name]
    problems = list(dict.fromkeys(row["env"] for row in rows))
    titles = list(dict.fromkeys(row["title"] for row in rows))
    found = {(row["title"], row["env"]): (with_error(row["mean"], row["error"]), _difference(row)) for row in rows}
    head = [words for problem in problems for words in (f"`{problem}`", "difference, paired")]
    lines = [[title, *[cell for problem in problems for cell in found[title, problem]]] for title in titles]
    return table(["setting", *head], lines)


def _difference(row: Row) -> str:
    mean, error = row["difference"], row["difference_error"]
    if mean is None:
        return "–"
    told = mean != 0 and abs(mean) >= 2 * error
    return f"{'+' if mean > 0 else ''}{with_error(mean, error)}{' *' if told else ''}"


def _sweep_table(records: Mapping[str, Any], study: str, name: str) -> str:
    rows = sorted(records[study][name], key=lambda row: row["mean"])
    measures = [(row, with_error(row["mean"], row["error"]), number(row["seconds"])) for row in rows]
    return table(
        ["policy", "expected regret", "seconds", "seeds"],
        [[f"`{row['policy']}`", regret, seconds, str(row["seeds"])] for row, regret, seconds in measures],
    )


def _commands(records: Mapping[str, Any], study: str) -> str:
    return "```\n" + str(records[study]["commands"][0]) + "\n```"


_KINDS: Mapping[str, Callable[..., str]] = {
    "measure": _measure,
    "plain": _plain,
    "paper-table": _paper_table,
    "our-table": _our_table,
    "reading": _reading,
    "readings": _readings_table,
    "verdicts": _verdict_table,
    "ablation": _ablation_table,
    "sweep-table": _sweep_table,
    "command": _commands,
    "multiverse": lambda records: verdict_of(records["multiverse"]).sentence,
    **FIGURE_KINDS,
}


def kept_records() -> dict[str, Any]:
    """Everything under docs/records that the page is made of."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDS.glob("*.json"))}


def take_study(name: str, folder: Path) -> None:
    """Keep what the page needs of a `neuclust reproduce` folder."""
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    summary["commands"] = [_anywhere(command) for command in summary["commands"]]
    _write(name, {key: summary[key] for key in KEPT if key in summary})


def _anywhere(command: str) -> str:
    """The command as anyone would type it: files without their folders, no --out."""
    return re.sub(r"(\s)\S*/(\S+)", r"\1\2", re.sub(r"\s--out\s+\S+", "", command))


def take_sweeps(name: str, folders: Sequence[Path]) -> None:
    """Keep mean and standard error of every contestant of these sweeps."""
    from neuclust.analysis.groups import problems
    from neuclust.experiment.store import read_records

    _write(name, {
        folder.name.removeprefix("ablation-"): [
            row
            for problem in problems(read_records(folder).values())
            for row in _sweep_rows(problem)
        ]
        for folder in folders
    })  # fmt: skip


def _sweep_rows(problem: ProblemRuns) -> list[Row]:
    from neuclust.analysis.verdicts import paired_difference

    plain = next((one for one in problem.contenders if _is_plain(one)), None)
    rows: list[Row] = []
    for one in sorted(problem.contenders, key=lambda each: each.settings):
        regret = one.over_seeds("expected_regret")
        gap = None if plain is None or one is plain else paired_difference(one, plain)
        rows.append({
            "env": problem.env, "policy": one.policy, "title": _short(one.settings), "mean": regret.mean,
            "error": regret.error, "difference": None if gap is None else gap.mean,
            "difference_error": None if gap is None else gap.error, "seconds": one.over_seeds("seconds").mean,
            "seeds": len(one.runs),
        })  # fmt: skip
    return rows


def _is_plain(contender: Contender) -> bool:
    """Whether the settings are those of the preset, but for the number of clusters."""
    from neuclust.registry import policy_config

    first = contender.runs[0]
    preset = policy_config(first.policy, first.preset, first.clusters)
    return bool(policy_config(first.policy, first.preset, first.clusters, first.settings) == preset)


def _short(settings: str) -> str:
    """Settings by the last part of their names, numbers with two decimals at most."""
    names = re.sub(r"[\w.-]+\.(\w+=)", r"\1", settings)
    return re.sub(r"(\.\d\d)\d+", r"\1", names) or "as the paper"


def _write(name: str, content: Any) -> None:
    RECORDS.mkdir(exist_ok=True)
    (RECORDS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write docs/reproduction.md from docs/records.")
    parser.add_argument("--take", nargs="+", metavar=("NAME", "DIR"), help="keep new numbers first")
    chosen = parser.parse_args(words)
    if chosen.take:
        name, *folders = chosen.take
        if name in ("ablations", "clusterings", "yelp"):
            take_sweeps(name, [Path(folder) for folder in folders])
        else:
            take_study(name, Path(folders[0]))
    PAGE.write_text(render(TEMPLATE.read_text(encoding="utf-8"), kept_records()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
