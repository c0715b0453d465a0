"""Writes docs/multiverse.md and its specification curve from a template and docs/records/multiverse.json.

    python -m tools.multiverse_page

The template holds the words; {{...}} are filled in. A test keeps page, curve, template and record equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuclust.analysis.multiverse.effects import main_effects
from neuclust.analysis.multiverse.outcomes import (
    AHEAD,
    BEHIND,
    CLIPPED,
    CN_UCB,
    EXPECTED,
    FEW_FAILURES,
    INFERRED,
    LEVEL,
    NEUCLUST,
    PRINTED,
    WITHOUT_F,
    Outcome,
    outcomes_of,
)
from neuclust.analysis.multiverse.verdict import fits, orders_by, verdict_of
from neuclust.experiment.multiverse.record import read_record
from neuclust.report.drawing import svg_text
from neuclust.report.multiverse.curve import curve
from neuclust.report.multiverse.tables import (
    STRONGEST,
    cells_table,
    effects_table,
    interactions_table,
    interactions_words,
    markdown,
    readings_table,
    title,
    with_error,
)
from tools.reproduction_page import DOCS, render

TEMPLATE = Path(__file__).parent / "templates" / "multiverse.md"
PAGE, RECORD, PICTURE = (
    DOCS / "multiverse.md",
    DOCS / "records" / "multiverse.json",
    DOCS / "figures" / "multiverse.svg",
)
_ROLES = (NEUCLUST, CN_UCB, WITHOUT_F)
Record = Mapping[str, Any]


def _sound(record: Record) -> list[Outcome]:
    return [cell for cell in outcomes_of(record) if cell.sound]


def _cell(record: Record, changes: Sequence[str]) -> Outcome:
    """The preferred cell with some answers changed, READING=OPTION."""
    changed = dict(change.split("=") for change in changes)
    wanted = tuple(changed.pop(reading["name"], reading["preferred"]) for reading in record["readings"])
    if changed:
        raise KeyError(", ".join(changed))
    return next(cell for cell in outcomes_of(record) if cell.options == wanted)


def _count(record: Record, what: str) -> str:
    """A number of cells, seeds or readings by name."""
    seeds = record["seeds"]
    known: dict[str, Callable[[], int]] = {
        "cells": lambda: len(record["cells"]),
        "untrained": lambda: sum(cell.played and not cell.sound for cell in outcomes_of(record)),
        "failed": lambda: sum(not cell.played for cell in outcomes_of(record)),
        "readings": lambda: len(record["readings"]),
        "seeds": lambda: len(seeds),
        "first-seed": lambda: seeds[0],
        "last-seed": lambda: seeds[-1],
        "rounds": lambda: record["rounds"],
        "few": lambda: sum(cell.played and cell.gap.count < len(seeds) for cell in outcomes_of(record)),
        "few-seeds": lambda: min(cell.gap.count for cell in outcomes_of(record) if cell.played),
        "device": lambda: sum(cell.engine == "device" for cell in outcomes_of(record)),
        "f-helps": lambda: verdict_of(record).f_helps,
        "f-hurts": lambda: verdict_of(record).f_hurts,
        "whole": lambda: verdict_of(record).whole_fits,
        "strongest": lambda: STRONGEST,
    }
    return f"{known[what]():,}"


def _orders(record: Record, *pairs: str) -> str:
    """`34 of 50 (level in 13, behind in 3)`: sound cells with these answers, READING=OPTION."""
    wanted = dict(pair.split("=") for pair in pairs)
    found = orders_by(record, _sound(record), list(wanted)).get(tuple(wanted.values()))
    if found is None:
        raise KeyError(" ".join(pairs))
    total = sum(found.values())
    return f"{found[AHEAD]} of {total} (level in {found[LEVEL]}, behind in {found[BEHIND]})"


def _orders_table(record: Record, *names: str) -> str:
    """Sound cells by the answers to some readings."""
    found = orders_by(record, _sound(record), names)
    rows = [
        [", ".join(f"`{name}={option}`" for name, option in zip(names, options, strict=True)),
         *(str(orders[order]) for order in (AHEAD, LEVEL, BEHIND))]
        for options, orders in found.items()
    ]  # fmt: skip
    return markdown(["cells with", "NeUClust ahead", "level", "NeUClust behind"], rows)


def _near(record: Record) -> str:
    orders = verdict_of(record).near_orders
    return f"{orders[AHEAD]} of {sum(orders.values())} (level in {orders[LEVEL]}, behind in {orders[BEHIND]})"


def _preferred_value(record: Record, what: str, *changes: str) -> str:
    """A number of the preferred cell, or of one beside it: the regret of a role, `difference`, `ahead`, …"""
    cell = _cell(record, changes)
    gaps = cell.gaps().values()
    role, _, measure = what.partition(":")
    if role in _ROLES and measure in ("", CLIPPED):
        return with_error(cell.mean(role, measure or EXPECTED))
    if role in (NEUCLUST, CN_UCB) and measure == "size":
        return _fit_word(cell.size_fits(role))
    known: dict[str, Callable[[], str]] = {
        "difference": lambda: with_error(cell.gap, sign=True),
        "ahead": lambda: f"{sum(gap < 0 for gap in gaps)} of {len(gaps)}",
        "effect-of-f": lambda: with_error(cell.effect_of_f, sign=True),
        "gap": lambda: _fit_word(cell.gap_fits),
    }
    return known[what]()


def _fit_word(good: bool) -> str:
    return "fits" if good else "does not fit"


def _published(_: Record, role: str) -> str:
    return f"{PRINTED[role]:g}"


def _inferred(_: Record, role: str) -> str:
    return f"{INFERRED[role]:g}"


def _whole_cells(record: Record) -> str:
    """The cells in which order, sizes and gap are the printed ones."""
    return "; ".join(f"`{title(record, cell)}`" for cell in _sound(record) if fits(cell))


def _idle(record: Record) -> str:
    """Readings none of whose answers changes the difference, as far as these seeds tell."""
    decided: dict[str, bool] = {}
    for effect in main_effects(record, outcomes_of(record)):
        name = effect.words.partition("=")[0]
        decided[name] = decided.get(name, False) or effect.change.decided
    return ", ".join(f"`{name}`" for name, told in decided.items() if not told)


def _preferred_words(record: Record) -> str:
    return ", ".join(f"`{reading['name']}={reading['preferred']}`" for reading in record["readings"])


_KINDS: Mapping[str, Callable[..., str]] = {
    "verdict": lambda record: verdict_of(record).sentence,
    "count": _count,
    "orders": _orders,
    "orders-table": _orders_table,
    "near-orders": _near,
    "preferred": _preferred_value,
    "preferred-words": _preferred_words,
    "published": _published,
    "inferred": _inferred,
    "whole-cells": _whole_cells,
    "idle": _idle,
    "few-failures": lambda _: f"{FEW_FAILURES:.0%}",
    "problem": lambda record: str(record["problem"]),
    "readings": readings_table,
    "effects": effects_table,
    "interactions": interactions_table,
    "interactions-decided": interactions_words,
    "cells": cells_table,
}


def page_text(template: str, record: Record) -> str:
    """The template with the record's numbers."""
    return render(template, record, _KINDS)


def picture_text(record: Record) -> str:
    """The specification curve as SVG."""
    return svg_text(curve(record))


def main(words: Sequence[str] | None = None) -> None:
    import argparse

    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args(words)
    record = read_record(RECORD)
    PAGE.write_text(page_text(TEMPLATE.read_text(encoding="utf-8"), record), encoding="utf-8")
    PICTURE.write_text(picture_text(record), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(DOCS.parent)} and {PICTURE.relative_to(DOCS.parent)}")


if __name__ == "__main__":
    main()
