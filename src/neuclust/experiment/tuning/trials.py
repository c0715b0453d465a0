"""Trials of a tuning as Optuna keeps them: what is tried next, when it is given up, and what came of it."""

from __future__ import annotations

import fcntl
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from neuclust.errors import ConfigError, StateError
from neuclust.experiment.records import RunRecord
from neuclust.experiment.tuning.space import Range, Settings, Space, Values, grid_settings, grid_size, setting_text
from neuclust.extras import extra
from neuclust.randomness import stream

if TYPE_CHECKING:
    import optuna

PRUNE_BELOW, PRUNE_FROM = 0.15, 3  # worse on each of the first 3 seeds (p = 1/8) is enough to give a trial up

Play = Callable[[Settings, int], RunRecord | None]  # None: cut short


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One setting: mean expected regret over the development seeds it has played."""

    settings: Settings
    regret: float | None
    seeds: int
    state: Literal["complete", "pruned", "failed"]
    reason: str = ""


class KernelLock:
    """A lock of the journal that ends with its process; Optuna's own lock file would outlive a kill and block."""

    def __init__(self, path: Path) -> None:
        self._path, self._handle = path, -1

    def acquire(self) -> bool:
        self._handle = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o644)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        os.close(self._handle)


def _drop_torn_line(journal: Path) -> None:
    """A kill in the middle of a write leaves a line without its end: what it said did not happen."""
    if journal.exists():
        whole = journal.read_bytes().rpartition(b"\n")
        if whole[2]:
            os.truncate(journal, len(whole[0]) + len(whole[1]))


def open_study(question: str, journal: Path | None) -> optuna.Study:
    """The study of this journal, or one in memory; a journal of another question is refused."""
    with extra("tuning"):
        import optuna
        from optuna.storages.journal import JournalFileBackend
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = None
    if journal is not None:
        journal.parent.mkdir(parents=True, exist_ok=True)
        _drop_torn_line(journal)
        lock: Any = KernelLock(journal.with_suffix(".lock"))
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(journal), lock_obj=lock))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        pruner = optuna.pruners.WilcoxonPruner(p_threshold=PRUNE_BELOW, n_startup_steps=PRUNE_FROM)
        study = optuna.create_study(storage=storage, pruner=pruner, study_name="tuning", load_if_exists=True)
    if journal is not None and study.user_attrs.get("question", question) != question:
        got = "one of another problem, policy, space, seeds or rounds"
        wanted = "a new folder or an earlier tuning of the same question"
        raise ConfigError(f"{journal.parent}: expected {wanted}, got {got}; name another folder")
    study.set_user_attr("question", question)
    for trial in study.get_trials(states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)  # cut short: it will be proposed again
    return study


def _finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Trials that count: complete, pruned, or failed for a reason of their own."""
    ended = ("COMPLETE", "PRUNED")
    return [trial for trial in study.trials if trial.state.name in ended or "reason" in trial.user_attrs]


def is_exhaustive(space: Space, trials: int) -> bool:
    """Whether the budget suffices for every setting there is."""
    size = grid_size(space)
    return size is not None and size <= trials


def try_next(study: optuna.Study, space: Space, trials: int, seeds: Sequence[int], play: Play) -> TrialResult | None:
    """Try one more setting; None where the budget or the grid is spent, or the trial was cut short."""
    import optuna

    done = _finished(study)
    if len(done) >= trials or (is_exhaustive(space, trials) and not _enqueue(study, space, done)):
        return None
    # A fresh sampler per trial: after an interruption the next proposal is the one that would have come anyway.
    seed = int(stream(0, "tuning proposals", len(done)).integers(2**31))
    study.sampler = optuna.samplers.TPESampler(seed=seed)
    trial = study.ask()
    settings = _settings(space, {entry.key: _suggest(trial, entry) for entry in space})
    counts = _evaluate(study, trial, settings, seeds, play)
    return _result(space, study.trials[trial.number]) if counts else None


def _enqueue(study: optuna.Study, space: Space, done: Sequence[optuna.trial.FrozenTrial]) -> bool:
    """Make the next setting of the grid the next trial; False where all have been tried."""
    import optuna

    tried = [_settings(space, trial.params) for trial in done]
    left = next((settings for settings in grid_settings(space) if settings not in tried), None)
    if left is None:
        return False
    if not study.get_trials(states=(optuna.trial.TrialState.WAITING,)):  # one may wait since an interruption
        study.enqueue_trial(left)
    return True


def _suggest(trial: optuna.Trial, entry: Values | Range) -> Any:
    if isinstance(entry, Values):
        return trial.suggest_categorical(entry.key, entry.values)
    if entry.whole:
        return trial.suggest_int(entry.key, round(entry.low), round(entry.high), log=entry.log)
    return trial.suggest_float(entry.key, entry.low, entry.high, log=entry.log)


def _settings(space: Space, params: dict[str, Any]) -> Settings:
    return {
        entry.key: params[entry.key] if isinstance(entry, Values) else setting_text(entry, params[entry.key])
        for entry in space
        if entry.key in params
    }


def _evaluate(study: optuna.Study, trial: optuna.Trial, settings: Settings, seeds: Sequence[int], play: Play) -> bool:
    """Seed by seed; False where it was cut short and does not count."""
    import optuna

    regrets: list[float] = []
    for step, seed in enumerate(seeds):
        try:
            record = play(settings, seed)
        except (ConfigError, StateError) as error:
            trial.set_user_attr("reason", str(error))
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return True
        if record is None:
            return False
        regrets.append(record.expected_regret)
        trial.report(record.expected_regret, step)
        if len(regrets) < len(seeds) and trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return True
    study.tell(trial, fmean(regrets))
    return True


def _result(space: Space, trial: optuna.trial.FrozenTrial) -> TrialResult:
    regrets = list(trial.intermediate_values.values())
    states: dict[str, Literal["complete", "pruned", "failed"]] = {"COMPLETE": "complete", "PRUNED": "pruned"}
    mean, reason = fmean(regrets) if regrets else None, str(trial.user_attrs.get("reason", ""))
    state = states.get(trial.state.name, "failed")
    return TrialResult(_settings(space, trial.params), mean, len(regrets), state, reason)


def results(study: optuna.Study, space: Space) -> tuple[TrialResult, ...]:
    """All trials that count, in order."""
    return tuple(_result(space, trial) for trial in _finished(study))


def best_settings(trials: Sequence[TrialResult]) -> Settings | None:
    """Least mean regret of those that played every seed; the earlier one where two are equal."""
    whole = [(trial.regret, place) for place, trial in enumerate(trials) if trial.state == "complete"]
    return trials[min(whole)[1]].settings if whole else None
