"""A played grid as plain values under names that stay: its record, cells, effects and verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from neuclust.analysis.multiverse.effects import Effect, interactions, main_effects
from neuclust.analysis.multiverse.outcomes import CN_UCB, NEUCLUST, WITHOUT_F, Estimate, Outcome, outcomes_of
from neuclust.analysis.multiverse.verdict import verdict_of

SCHEMA = 1


def summary_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Every number of the page; None where there is none."""
    cells = outcomes_of(record)
    verdict = verdict_of(record, cells)
    return {
        "schema": SCHEMA,
        "verdict": {
            "sentence": verdict.sentence,
            "orders": dict(verdict.orders),
            "orders_of_cells_that_trained": dict(verdict.sound_orders),
            "all_printed_numbers_fit": verdict.whole_fits,
            "f_helps": verdict.f_helps,
            "f_hurts": verdict.f_hurts,
        },
        "cells": [_cell(record, cell) for cell in cells],
        "main_effects": [_effect(effect) for effect in main_effects(record, cells)],
        "interactions": [_effect(effect) for effect in interactions(record, cells)],
        "record": record,
    }


def _cell(record: Mapping[str, Any], cell: Outcome) -> dict[str, Any]:
    names = [reading["name"] for reading in record["readings"]]
    roles = (NEUCLUST, CN_UCB, WITHOUT_F)
    regrets = {role: _estimate(cell.mean(role)) if cell.regret[role]["expected"] else None for role in roles}
    return {
        "options": dict(zip(names, cell.options, strict=True)),
        "engine": cell.engine,
        "order": cell.order,
        "trained": cell.sound,
        "expected_regret": regrets,
        "difference": _estimate(cell.gap) if cell.played else None,
        "effect_of_f": _estimate(cell.effect_of_f) if cell.gaps(NEUCLUST, WITHOUT_F) else None,
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "options": effect.words,
        "change": _estimate(effect.change),
        "contrasts": effect.cells,
        "turned": effect.turned,
        "trained": effect.sound,
    }


def _estimate(found: Estimate) -> dict[str, Any]:
    numbers = {"mean": found.mean, "error": found.error, "low": found.low, "high": found.high}
    return {key: value if math.isfinite(value) else None for key, value in numbers.items()} | {"seeds": found.count}
