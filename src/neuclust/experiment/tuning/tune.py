"""Tuning with held-out rounds: settings are chosen on seeds and rounds that no report plays.

A trial is one setting, played seed by seed and pruned once clearly behind the best (Wilcoxon). Small grids are tried
whole, others by a tree-structured Parzen estimator. The best setting and the preset are compared on fresh seeds.

    DIR/tuning.jsonl    every trial, as Optuna's journal
    DIR/tuning/         records of the development runs
    DIR/report/         records of the report

No run is played twice: proposals depend on the trials before alone, and finished runs are in the store.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from neuclust.errors import ConfigError, writing
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.engines.engine import InlineEngine, Watch
from neuclust.experiment.held_out import Part, Split
from neuclust.experiment.problem import Problem
from neuclust.experiment.records import RunRecord
from neuclust.experiment.store import open_store, present, read_store, set_aside, write_run
from neuclust.experiment.tasks import Task, content_of, label_of
from neuclust.experiment.tuning.space import Settings, Space, grid_size
from neuclust.experiment.tuning.trials import TrialResult, best_settings, is_exhaustive, open_study, results, try_next

JOURNAL = "tuning.jsonl"
FOLDERS: dict[Part, str] = {"development": "tuning", "report": "report"}


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
            raise ConfigError(f"expected seeds to tune on and to report with none in common, got {both[0]} in both")

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


class KeptRuns:
    """Runs of one part by key, in memory and in a store where there is a folder: none is played twice."""

    def __init__(self, folder: Path | None, watch: Watch) -> None:
        self._folder, self._watch, self._kept = folder, watch, dict[str, RunRecord]()
        if folder is not None:
            open_store(folder, make=True)
            for sentence in set_aside(folder, present(folder)).values():
                watch.say(sentence)
            self._kept = read_store(folder)

    def get(self, task: Task) -> RunRecord | None:
        """The record of the task, played now where there is none; None where it was cut short, which is not kept."""
        if task.key in self._kept:
            return self._kept[task.key]
        for outcome in InlineEngine(titled=False).play([task], self._watch):
            record = outcome.record()
            self._watch.ended(outcome)
            if record.interrupted:
                return None
            self._kept[task.key] = record
            if self._folder is not None:
                with writing(self._folder):
                    write_run(self._folder, task.key, record)
        return self._kept.get(task.key)


@dataclass(frozen=True, slots=True)
class Question:
    """All that the outcome of a trial depends on: plan, opened problem and the hash of its file."""

    plan: TuningPlan
    split: Split
    content: str | None

    @property
    def text(self) -> str:
        """As JSON; the number of trials may grow later and is left out."""
        plan = self.plan
        problem: dict[str, Any] = asdict(plan.problem) | {"rounds": self.split.rounds}
        if self.content is not None:
            problem["data"] = self.content
        space = [asdict(entry) for entry in plan.space]
        seeds = {"tune": plan.tune_seeds, "report": plan.report_seeds}
        return json.dumps({"problem": problem, "policy": [plan.policy, plan.preset], "space": space, "seeds": seeds})

    def task(self, part: Part, settings: Settings, seed: int) -> Task:
        """One run of a setting, under a key of the question, the label and the seed."""
        who = Contestant(self.plan.policy, self.plan.preset, settings=settings)
        task = Task("", self.plan.problem, self.content, who, seed, self.split.rounds, part)
        label = asdict(label_of(task, self.split.part(part)))
        del label["rewards"]  # the question settles them
        text = json.dumps([self.text, label, seed], sort_keys=True)
        return replace(task, key=hashlib.sha256(text.encode()).hexdigest()[:24])


def tune(
    plan: TuningPlan, split: Split, folder: Path | None, watch: Watch, on_trial: Callable[[TrialResult], None]
) -> Tuning:
    """Spend the budget, then report; with a folder a second call goes on where the first was stopped."""
    first = plan.tune_seeds[0]
    Contestant(plan.policy, plan.preset).build(split.development.environment(first), first)
    question = Question(plan, split, content_of(plan.problem))
    study = open_study(question.text, None if folder is None else folder / JOURNAL)
    runs = KeptRuns(None if folder is None else folder / FOLDERS["development"], watch)

    def play(settings: Settings, seed: int) -> RunRecord | None:
        return runs.get(question.task("development", settings, seed))

    while not watch.stopped():
        result = try_next(study, plan.space, plan.trials, plan.tune_seeds, play)
        if result is None:
            break
        on_trial(result)
    trials = results(study, plan.space)
    best = best_settings(trials)
    if watch.stopped():
        return Tuning(trials, best, (), stopped=True)
    if best is None:
        raise ConfigError(f"expected a trial that can run, but all {len(trials)} failed; the first: {trials[0].reason}")
    report = _report(question, best, KeptRuns(None if folder is None else folder / FOLDERS["report"], watch))
    return Tuning(trials, best, tuple(report), stopped=watch.stopped())


def _report(question: Question, best: Settings, runs: KeptRuns) -> list[RunRecord]:
    """Seed by seed, the preset and the best setting; only seeds that both have finished."""
    records: list[RunRecord] = []
    for seed in question.plan.report_seeds:
        pair = [runs.get(question.task("report", settings, seed)) for settings in ({}, best)]
        finished = [record for record in pair if record is not None]
        if len(finished) < len(pair):
            break
        records += finished
    return records


def parse_seeds(field: str, text: str) -> tuple[int, ...]:
    """Seeds from `A..B` (both included), a list `1,2,5`, or both: `0..4,9`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dots, last = (piece.strip() for piece in part.partition(".."))
        if not first.isdecimal() or (dots and not last.isdecimal()) or int(last or first) < int(first):
            raise ConfigError(f"expected seeds such as 0..9 or 1,2,5, got {text!r}; A..B with A <= B", field=field)
        seeds += range(int(first), int(last or first) + 1)
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"expected each seed once, got {text!r}; drop the repeated ones", field=field)
    return tuple(seeds)
