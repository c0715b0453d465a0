"""Records sorted into problems and contestants, with means and standard errors over seeds."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from neuclust.analysis.estimates import Estimate, counted, estimate
from neuclust.experiment.records import RunRecord
from neuclust.registry import knows_truth


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
    def code(self) -> str:
        """`POLICY[:PRESET]`, as it is asked for."""
        return self.policy if self.preset == "default" else f"{self.policy}:{self.preset}"

    @property
    def title(self) -> str:
        """Name, preset unless default, and settings without the path before their last dot."""
        preset = "" if self.preset == "default" else f" {self.preset}"
        short = re.sub(r"[\w.-]+\.(\w+=)", r"\1", self.settings)
        return f"{self.policy}{preset}" + (f" ({short})" if short else "")

    @property
    def preset_and_settings(self) -> str:
        return f"{self.preset} ({self.settings})" if self.settings else self.preset

    @property
    def knows_truth(self) -> bool:
        """A policy that is given the true means is a yardstick: learners are not compared with it."""
        return knows_truth(self.policy)

    def over_seeds(self, column: str) -> Estimate:
        return estimate([getattr(run, column) for run in self.runs])

    def values(self, column: str) -> dict[int, float]:
        """A column of the records by seed; of a seed played twice the last run counts."""
        return {run.seed: getattr(run, column) for run in self.runs}


@dataclass(frozen=True, slots=True)
class ProblemRuns:
    """All contenders of one problem, least regret first; `left_out` are runs cut short beside whole ones."""

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
    def learners(self) -> list[Contender]:
        """Contenders that are not given the truth, least regret first."""
        return [contender for contender in self.contenders if not contender.knows_truth]

    @property
    def runs(self) -> list[RunRecord]:
        return [run for contender in self.contenders for run in contender.runs]

    @property
    def rewards(self) -> str:
        """Where the rewards came from, if the records say."""
        return self.contenders[0].runs[0].rewards

    @property
    def description(self) -> str:
        size = f"slates of {self.slate_size}, {counted(self.rounds, 'round')}, {counted(self.seeds, 'seed')}"
        return f"{self.env}: {size}{f', {self.options}' if self.options else ''}"


def problems(records: Iterable[RunRecord]) -> list[ProblemRuns]:
    """Records by problem (environment, length, slate size, options), in order of appearance."""
    found: dict[str, list[RunRecord]] = {}
    for record in records:
        if record.rounds > 0:
            asked = record.rounds_asked or record.rounds
            key = json.dumps([record.env, asked, record.slate_size, sorted(record.problem.items())])
            found.setdefault(key, []).append(record)
    return [_problem(runs) for runs in found.values()]


def _problem(records: Sequence[RunRecord]) -> ProblemRuns:
    """Runs cut short would pull the means down, so they only count where nothing else is there."""
    whole = [record for record in records if not record.interrupted]
    kept = whole or records
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
        found.setdefault((record.policy, record.preset, ", ".join(settings_of(record))), []).append(record)
    contenders = [Contender(*key, tuple(sorted(runs, key=lambda run: run.seed))) for key, runs in found.items()]
    return tuple(sorted(contenders, key=lambda contender: contender.over_seeds("expected_regret").mean))


def settings_of(record: RunRecord) -> list[str]:
    """`key=value` of every setting, the number of clusters last."""
    clusters = [] if record.clusters is None else [f"clusters={record.clusters}"]
    return [*(f"{key}={value}" for key, value in sorted(record.settings.items())), *clusters]
