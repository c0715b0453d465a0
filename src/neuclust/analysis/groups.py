"""Records sorted into problems and contestants, with means and standard errors over seeds."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from neuclust.experiment.records import RunRecord


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds with its standard error s/√n; None from one seed, which has no spread."""

    mean: float
    error: float | None


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and standard error of one number a seed."""
    error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return Estimate(fmean(values), error)


@dataclass(frozen=True, slots=True)
class Contender:
    """All runs of one policy, preset and settings on one problem, by seed."""

    policy: str
    preset: str
    settings: str  # empty, or "key=value, ..."
    runs: tuple[RunRecord, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """What sets it apart from all others on its problem."""
        return self.policy, self.preset, self.settings

    @property
    def title(self) -> str:
        """Name, preset unless default, and settings without the path before their last dot."""
        preset = "" if self.preset == "default" else f" {self.preset}"
        short = re.sub(r"[\w.-]+\.(\w+=)", r"\1", self.settings)
        return f"{self.policy}{preset}" + (f" ({short})" if short else "")

    @property
    def knows_truth(self) -> bool:
        """An oracle is a yardstick, not a rival: nobody is compared with what it was told beforehand."""
        return "oracle" in self.policy or self.policy == "static"

    def over_seeds(self, column: str) -> Estimate:
        return estimate([getattr(run, column) for run in self.runs])


@dataclass(frozen=True, slots=True)
class ProblemRuns:
    """All who met on one problem, least regret first; `left_out` are runs cut short beside whole ones."""

    env: str
    rounds: int
    slate_size: int
    options: str
    contenders: tuple[Contender, ...]
    left_out: tuple[RunRecord, ...]

    @property
    def seeds(self) -> int:
        return max(len(contender.runs) for contender in self.contenders)

    @property
    def rewards(self) -> str:
        """Whose rewards were played, where the records say."""
        return self.contenders[0].runs[0].rewards

    @property
    def description(self) -> str:
        seeds = "1 seed" if self.seeds == 1 else f"{self.seeds} seeds"
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        extra = f", {self.options}" if self.options else ""
        return f"{self.env}: slates of {self.slate_size}, {rounds}, {seeds}{extra}"


def problems(records: Iterable[RunRecord]) -> list[ProblemRuns]:
    """Records by problem (environment, length, slate size, options), in order of appearance."""
    found: dict[str, list[RunRecord]] = {}
    for record in records:
        if record.rounds > 0:
            found.setdefault(_problem_key(record), []).append(record)
    return [_problem(runs) for runs in found.values()]


def _problem_key(record: RunRecord) -> str:
    asked = record.rounds_asked or record.rounds
    return json.dumps([record.env, asked, record.slate_size, sorted(record.problem.items())])


def _problem(records: Sequence[RunRecord]) -> ProblemRuns:
    """Runs cut short would pull the means down, so they only count where nothing else is there."""
    whole = [record for record in records if not record.interrupted]
    kept = whole or list(records)
    first = kept[0]
    options = [f"{key}_{value}" for key, value in first.problem.items() if value is not None]
    return ProblemRuns(
        env=first.env,
        rounds=max(record.rounds for record in kept),
        slate_size=first.slate_size,
        options=", ".join(options).replace("_", " "),
        contenders=_contenders(kept),
        left_out=tuple(record for record in records if record.interrupted and whole),
    )


def _contenders(records: Sequence[RunRecord]) -> tuple[Contender, ...]:
    found: dict[tuple[str, str, str], list[RunRecord]] = {}
    for record in records:
        found.setdefault((record.policy, record.preset, _settings(record)), []).append(record)
    contenders = [Contender(*key, tuple(sorted(runs, key=lambda run: run.seed))) for key, runs in found.items()]
    return tuple(sorted(contenders, key=lambda contender: contender.over_seeds("expected_regret").mean))


def _settings(record: RunRecord) -> str:
    pairs = [f"{key}={value}" for key, value in sorted(record.settings.items())]
    if record.clusters is not None:
        pairs.append(f"clusters={record.clusters}")
    return ", ".join(pairs)
