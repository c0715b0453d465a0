"""Invented records of a grid of readings: every regret is said by the test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

OPTIONS = {"start": ("zero", "other"), "scale": ("raw", "fifth"), "order": ("ranked", "sorted")}
SEEDS = tuple(range(8))
Regret = Callable[[Mapping[str, str], str, int], float | None]  # None: the run failed


def _reading(name: str, options: tuple[str, ...]) -> dict[str, Any]:
    words = {option: f"it is {option}" for option in options}
    return {"name": name, "question": f"Which {name}?", "preferred": options[0], "why": "So printed.", "options": words}


def invented_multiverse(regret: Regret, failed: Callable[[Mapping[str, str]], int] = lambda _: 0) -> dict[str, Any]:
    """The full cross of three readings with two options each; clipped regret is 140 more than expected regret."""
    cells = []
    for options in product(*OPTIONS.values()):
        chosen, runs = dict(zip(OPTIONS, options, strict=True)), {}
        for role in ("neuclust", "cn-ucb", "without-f"):
            found = {seed: value for seed in SEEDS if (value := regret(chosen, role, seed)) is not None}
            runs[role] = {
                "seeds": list(found),
                "expected": list(found.values()),
                "clipped": [140.0 + value for value in found.values()],
                "failed": [failed(chosen)] * len(found),
            }
        cells.append({"options": list(options), "engine": "device", "runs": runs})
    return {
        "name": "invented", "preset": "paper", "rounds": 1000, "slate_size": 5, "seeds": list(SEEDS),
        "problem": "invented", "content": "0", "floor": 140.0, "engines": ["inline"], "cells": cells,
        "readings": [_reading(name, options) for name, options in OPTIONS.items()],
    }  # fmt: skip
