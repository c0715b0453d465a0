"""Tuning that does not deceive itself: settings are chosen on seeds and rounds that no report plays.

A trial is one setting, played seed by seed on the development rounds and given up once it is clearly behind the best
(Optuna's Wilcoxon pruner). Small grids are tried whole, larger ones and ranges by a tree-structured Parzen estimator.
The best setting and the untouched preset then meet on fresh seeds.

    DIR/tuning.jsonl    every trial, as Optuna's journal
    DIR/tuning/         records of the development runs
    DIR/report/         records of the report, for `neuclust compare DIR/report`

With DIR nothing played is played again: a trial cut short is proposed again, since each proposal depends on the trials
before it and their number alone, and its finished runs are in the store.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from neuclust.errors import ConfigError, writing
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.plan import Problem
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import RunLabel, Tally, run
from neuclust.experiment.store import open_store, present, read_store, set_aside, write_run
from neuclust.experiment.tuning.held_out import LaterRounds, Split
from neuclust.experiment.tuning.space import Settings, Space, grid_size
from neuclust.experiment.tuning.trials import TrialResult, best_settings, is_exhaustive, open_study, results, try_next

JOURNAL, DEVELOPMENT, REPORT = "tuning.jsonl", "tuning", "report"
LABELLED = {"held_out": "tuning"}  # keeps development runs apart from reported ones wherever records meet


@dataclass(frozen=True, slots=True)
class TuningPlan:
    """What is tuned on which problem, and with what budget: `trials` settings, each on all `tune_seeds`."""

    problem: Problem
    policy: str
    preset: str
    space: Space
    trials: int
    tune_seeds: tuple[int, ...]
    report_seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        both = sorted(set(self.tune_seeds) & set(self.report_seeds))
        if both:
            raise ConfigError(
                f"expected seeds to tune on and seeds to report that have none in common, got {both[0]} in both; "
                "change --tune-seeds or --report-seeds"
            )

    @property
    def most_runs(self) -> int:
        """Runs if nothing is pruned."""
        size = grid_size(self.space)
        trials = self.trials if size is None else min(self.trials, size)
        return trials * len(self.tune_seeds) + 2 * len(self.report_seeds)

    @property
    def exhaustive(self) -> bool:
        return is_exhaustive(self.space, self.trials)


@dataclass(frozen=True, slots=True)
class Tuning:
    """All finished trials, the best setting, and how it and the untouched preset did on the report's seeds."""

    trials: tuple[TrialResult, ...]
    best: Settings | None
    report: tuple[RunRecord, ...]
    stopped: bool


class Watcher(Protocol):
    """Told of every run that is really played."""

    def begin(self, title: str, seed: int, rounds: int) -> None: ...

    def on_round(self, tally: Tally) -> None: ...

    def finish(self, record: RunRecord) -> None: ...


@dataclass(frozen=True, slots=True)
class Watch:
    """Who looks on, what is said after a trial, whether to stop, and who hears of damaged records."""

    runs: Watcher
    on_trial: Callable[[TrialResult], None]
    stop: Callable[[], bool]
    on_bad: Callable[[str], None] | None = None


class KeptRuns:
    """Runs by key, in memory and in a store where there is a folder: none is played twice."""

    def __init__(self, folder: Path | None, on_bad: Callable[[str], None] | None = None) -> None:
        self._folder, self._kept = folder, dict[str, RunRecord]()
        if folder is not None:
            open_store(folder, make=True)
            for sentence in set_aside(folder, present(folder)).values():
                if on_bad is not None:
                    on_bad(sentence)
            self._kept = read_store(folder)

    def get(self, key: str, play: Callable[[], RunRecord]) -> RunRecord:
        """The run of this key, played now where it is not there; one cut short is not kept."""
        if key in self._kept:
            return self._kept[key]
        record = play()
        if not record.interrupted:
            self._kept[key] = record
            if self._folder is not None:
                with writing(self._folder):
                    write_run(self._folder, key, record)
        return record


def tune(plan: TuningPlan, split: Split, folder: Path | None, watch: Watch) -> Tuning:
    """Spend the budget, then report; with a folder a second call goes on where the first was stopped."""
    Contestant(plan.policy, plan.preset).build(split.development(plan.tune_seeds[0]).environment, plan.tune_seeds[0])
    question = _question(plan, split.rounds)
    study = open_study(question, None if folder is None else folder / JOURNAL)
    development = KeptRuns(None if folder is None else folder / DEVELOPMENT, watch.on_bad)

    def play(settings: Settings, seed: int) -> RunRecord:
        label = _label(plan, split, settings, LABELLED)
        return _kept_run(development, question, label, split.development, split.rounds, seed, watch)

    while not watch.stop():
        result = try_next(study, plan.space, plan.trials, plan.tune_seeds, play)
        if result is None:
            break
        watch.on_trial(result)
    trials = results(study, plan.space)
    best = best_settings(trials)
    if watch.stop():
        return Tuning(trials, best, (), stopped=True)
    if best is None:
        raise ConfigError(f"expected a trial that can run, but all {len(trials)} failed; the first: {trials[0].reason}")
    report = tuple(_report(plan, split, best, folder, question, watch))
    return Tuning(trials, best, report, stopped=watch.stop())


def _question(plan: TuningPlan, rounds: int) -> str:
    """All that the outcome of a trial depends on, as text; the number of trials may grow later."""
    problem: dict[str, Any] = asdict(plan.problem) | {"rounds": rounds}
    if plan.problem.data is not None:
        with plan.problem.data.open("rb") as file:
            problem["data"] = hashlib.file_digest(file, "sha256").hexdigest()
    space = [asdict(entry) for entry in plan.space]
    seeds = {"tune": plan.tune_seeds, "report": plan.report_seeds}
    return json.dumps({"problem": problem, "policy": [plan.policy, plan.preset], "space": space, "seeds": seeds})


def _label(plan: TuningPlan, split: Split, settings: Settings, more: Mapping[str, str]) -> RunLabel:
    problem = {**plan.problem.options, **more}
    name = plan.problem.name
    return RunLabel(plan.policy, plan.preset, name, settings=settings, problem=problem, rewards=split.rewards)


def _kept_run(
    kept: KeptRuns,
    question: str,
    label: RunLabel,
    environment_of: Callable[[int], LaterRounds],
    rounds: int,
    seed: int,
    watch: Watch,
) -> RunRecord:
    contestant = Contestant(label.policy, label.preset, settings=label.settings)

    def play() -> RunRecord:
        environment = environment_of(seed)
        contestant.check(environment.environment)
        policy = contestant.build(environment.environment, seed)
        watch.runs.begin(contestant.title, seed, rounds)
        record = run(policy, environment, rounds, seed, label=label, on_round=watch.runs.on_round, stop=watch.stop)
        if record.rounds > 0:
            watch.runs.finish(record)
        return record

    told = {name: value for name, value in asdict(label).items() if name != "rewards"}  # the question settles them
    text = json.dumps([question, told, seed], sort_keys=True)
    return kept.get(hashlib.sha256(text.encode()).hexdigest()[:24], play)


def _report(
    plan: TuningPlan, split: Split, best: Settings, folder: Path | None, question: str, watch: Watch
) -> list[RunRecord]:
    """Seed by seed, the preset and the best setting; only seeds that both have finished."""
    kept = KeptRuns(None if folder is None else folder / REPORT, watch.on_bad)
    labels = [_label(plan, split, settings, split.report_label) for settings in ({}, best)]
    records: list[RunRecord] = []
    for seed in plan.report_seeds:
        couple = [_kept_run(kept, question, label, split.report, split.rounds, seed, watch) for label in labels]
        if any(record.interrupted for record in couple):
            break
        records += couple
    return records


def parse_seeds(option: str, text: str) -> tuple[int, ...]:
    """Seeds from `A..B` (both included), a list `1,2,5`, or both: `0..4,9`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dots, last = (piece.strip() for piece in part.partition(".."))
        if not first.isdecimal() or (dots and not last.isdecimal()) or int(last or first) < int(first):
            raise ConfigError(f"{option}: expected seeds such as 0..9 or 1,2,5, got {text!r}; write A..B with A <= B")
        seeds += range(int(first), int(last or first) + 1)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"{option}: expected each seed once, got {text!r}; drop the repeated ones")
    return tuple(seeds)
