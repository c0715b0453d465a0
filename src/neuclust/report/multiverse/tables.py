"""Tables of a grid of readings in Markdown, and a page of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuclust.analysis.multiverse.effects import Effect, interactions, main_effects
from neuclust.analysis.multiverse.outcomes import (
    CLIPPED,
    CN_UCB,
    INFERRED,
    NEUCLUST,
    PRINTED,
    WITHOUT_F,
    Estimate,
    Outcome,
    outcomes_of,
)
from neuclust.analysis.multiverse.verdict import verdict_of
from neuclust.analysis.published import comparable
from neuclust.report.multiverse.curve import sorted_cells

STRONGEST = 12
_NOTHING = "–"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column holds words."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def with_error(found: Estimate, sign: bool = False) -> str:
    """Mean ± standard error."""
    if found.count == 0:
        return _NOTHING
    mean = signed(found.mean) if sign else f"{found.mean:.1f}"
    return mean if found.count < 2 else f"{mean} ± {found.error:.1f}"


def interval(found: Estimate) -> str:
    return f"{signed(found.low)} to {signed(found.high)}"


def title(record: Mapping[str, Any], cell: Outcome) -> str:
    """What a cell reads otherwise than preferred."""
    pairs = zip(record["readings"], cell.options, strict=True)
    return ", ".join(f"{r['name']}={option}" for r, option in pairs if option != r["preferred"]) or "**preferred**"


def readings_table(record: Mapping[str, Any]) -> str:
    """Every question with its answers, and why one of them is preferred."""
    rows = []
    for reading in record["readings"]:
        options = dict(reading["options"])
        first = options.pop(reading["preferred"])
        others = "; ".join(f"`{name}`: {words}" for name, words in options.items())
        rows.append(
            [
                f"`{reading['name']}`: {reading['question']}",
                f"`{reading['preferred']}`: {first}",
                reading["why"],
                others,
            ]
        )
    return markdown(["reading", "preferred", "argument", "other answers"], rows).replace("---:", "---")


def cells_table(record: Mapping[str, Any]) -> str:
    """Every cell, sorted as in the curve; beside the published numbers where the runs are comparable with them."""
    beside = comparable(record["rounds"], record["slate_size"])
    head = ["cell", "NeUClust", "CN-UCB", "NeUClust without F", "NeUClust − CN-UCB", "effect of F", "order"]
    head += ["times published, NeUClust / CN-UCB", "clipped, NeUClust / CN-UCB", "size", "gap"] if beside else []
    return markdown(head, [_cell_row(record, cell, beside) for cell in sorted_cells(record)])


def _cell_row(record: Mapping[str, Any], cell: Outcome, beside: bool) -> list[str]:
    mark = "" if cell.sound or not cell.played else " †"
    roles = [with_error(cell.mean(role)) if cell.regret[role]["expected"] else "failed" for role in _ROLES]
    if not cell.played:
        return [title(record, cell), *roles, _NOTHING, _NOTHING, cell.order, *[_NOTHING] * (4 * beside)]
    few = f" ({cell.gap.count} seeds)" if cell.gap.count < len(record["seeds"]) else ""
    effect = with_error(cell.effect_of_f, sign=True) if cell.gaps(NEUCLUST, WITHOUT_F) else _NOTHING
    row = [title(record, cell) + mark + few, *roles, with_error(cell.gap, sign=True), effect, cell.order]
    if not beside:
        return row
    times = " / ".join(f"{cell.mean(role).mean / INFERRED[role]:.2f}" for role in (NEUCLUST, CN_UCB))
    clipped = " / ".join(f"{cell.mean(role, CLIPPED).mean:.0f}" for role in (NEUCLUST, CN_UCB))
    size = " / ".join("fits" if cell.size_fits(role) else "no" for role in (NEUCLUST, CN_UCB))
    return [*row, times, clipped, size, "fits" if cell.gap_fits else "no"]


_ROLES = (NEUCLUST, CN_UCB, WITHOUT_F)


def effects_table(record: Mapping[str, Any]) -> str:
    """Every option against the preferred one of its reading."""
    effects = main_effects(record, outcomes_of(record))
    rows = [[*_effect_row(effect), f"{effect.turned} of {effect.cells}"] for effect in effects]
    return markdown(["answer", "change of the difference", "interval", "order turned round, of pairs"], rows)


def interactions_table(record: Mapping[str, Any]) -> str:
    """The strongest interactions of cells that trained, decided ones first."""
    found = sorted(_sound_interactions(record), key=lambda effect: not effect.change.decided)[:STRONGEST]
    rows = [[*_effect_row(effect), str(effect.cells)] for effect in found]
    return markdown(["answers together", "beyond the sum of both", "interval", "fours of cells"], rows)


def _sound_interactions(record: Mapping[str, Any]) -> list[Effect]:
    return [effect for effect in interactions(record, outcomes_of(record)) if effect.sound]


def interactions_words(record: Mapping[str, Any]) -> str:
    """How many interactions there are and how many are decided."""
    found = _sound_interactions(record)
    return f"{sum(effect.change.decided for effect in found)} of {len(found)}"


def _effect_row(effect: Effect) -> list[str]:
    mark = "**" if effect.change.decided else ""
    words = f"`{effect.words}`" + ("" if effect.sound else " †")
    return [words, f"{mark}{with_error(effect.change, sign=True)}{mark}", interval(effect.change)]


def page(record: Mapping[str, Any], picture: str) -> str:
    """A page on any grid: verdict, curve, effects, cells and readings."""
    printed = f"NeUClust {PRINTED[NEUCLUST]:g}, CN-UCB {PRINTED[CN_UCB]:g} (clipped regret)"
    parts = [
        f"# {record['name']}: the paper under its readings",
        f"{verdict_of(record).sentence}",
        f"{record['problem']}, {record['rounds']:,} rounds, slates of {record['slate_size']}, "
        f"{len(record['seeds'])} seeds, preset `{record['preset']}`. Published on MovieLens: {printed}. "
        "Regret is expected regret, mean ± standard error; † marks cells in which trainings failed.",
        f"![Specification curve]({picture})",
        "## What each answer changes", effects_table(record),
        "## The strongest interactions", interactions_table(record),
        "## Every cell", cells_table(record),
        "## The readings", readings_table(record),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"
