"""Tuning: the budget is kept, reported seeds and rounds are fresh, and an interruption costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sweep_files import tiny_dataset

from neuclust.data.dataset import ProfileDataset
from neuclust.data.offers import Offers
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.engines.engine import Outcome, Progress
from neuclust.experiment.held_out import LaterRounds, split_problem
from neuclust.experiment.problem import OpenProblem, Problem, open_problem
from neuclust.experiment.run import RunLabel, run
from neuclust.experiment.store import read_store
from neuclust.experiment.tasks import Task
from neuclust.experiment.tuning.space import PAPER_GRIDS, Range, Values, grid_settings, grid_size, parse_space
from neuclust.experiment.tuning.trials import TrialResult
from neuclust.experiment.tuning.tune import Tuning, TuningPlan, parse_seeds, tune
from neuclust.randomness import stream
from neuclust.registry import policy_config

ROUNDS = 12


def small_dataset() -> ProfileDataset:
    return tiny_dataset("small", "tuning problem")


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    path = tmp_path_factory.mktemp("tune") / "small.npz"
    small_dataset().save(path)
    return Problem(data=path, rounds=ROUNDS)


@dataclass
class Onlooker:
    """Writes down which runs were really played; asks to stop in the middle of the n-th."""

    stop_in: int | None = None
    runs: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    trials: list[TrialResult] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    begun: int = 0
    cut: bool = False

    def started(self, task: Task) -> None:
        self.begun += 1

    def played(self, task: Task, progress: Progress) -> None:
        self.cut |= self.begun == self.stop_in and progress.rounds == ROUNDS // 2

    def ended(self, outcome: Outcome) -> None:
        record = outcome.record()
        if not record.interrupted:
            self.runs.append((record.seed, dict(record.settings)))

    def say(self, text: str) -> None:
        self.sentences.append(text)

    def stopped(self) -> bool:
        return self.cut


def linucb_plan(problem: Problem, *params: str, trials: int = 6, tune_seeds: str = "100..103") -> TuningPlan:
    space = parse_space("linucb", "default", params or ("alpha=0.01,0.1,1,10",))
    seeds = parse_seeds("tune_seeds", tune_seeds)
    return TuningPlan(problem, "linucb", "default", space, trials, seeds, (0, 1, 2))


def played(part: OpenProblem, seed: int) -> LaterRounds:
    """The rounds a task of this part plays."""
    return LaterRounds(part.environment(seed), part.skipped)


def tuned(plan: TuningPlan, folder: Path | None = None, stop_in: int | None = None) -> tuple[Tuning, Onlooker]:
    onlooker = Onlooker(stop_in)
    return tune(plan, split_problem(plan.problem), folder, onlooker, onlooker.trials.append), onlooker


def test_small_grids_are_tried_whole_and_the_best_is_the_least_mean(problem: Problem) -> None:
    plan = linucb_plan(problem, "alpha=0.01,1,10", "ridge=0.5,2")
    assert plan.exhaustive
    tuning, onlooker = tuned(plan)
    assert [trial.settings for trial in tuning.trials] == list(grid_settings(plan.space))
    assert [trial.settings for trial in onlooker.trials] == [trial.settings for trial in tuning.trials]
    whole = [trial for trial in tuning.trials if trial.state == "complete"]
    assert all(trial.seeds == 4 for trial in whole)
    assert tuning.best == min(whole, key=lambda trial: trial.regret or 0.0).settings
    assert all(3 <= trial.seeds < 4 for trial in tuning.trials if trial.state == "pruned")
    tune_runs = [seed for seed, _ in onlooker.runs if seed >= 100]
    assert len(tune_runs) == sum(trial.seeds for trial in tuning.trials) <= plan.most_runs - 6


def test_the_report_holds_the_preset_and_the_best_on_fresh_seeds_and_rounds(problem: Problem) -> None:
    tuning, _ = tuned(linucb_plan(problem))
    assert [(record.seed, dict(record.settings)) for record in tuning.report] == [
        (seed, settings) for seed in (0, 1, 2) for settings in ({}, tuning.best)
    ]
    environment = open_problem(problem).environment(0)
    policy = Contestant("linucb").build(environment, 0)
    plain = run(policy, environment, ROUNDS, 0, label=RunLabel("linucb"))
    assert tuning.report[0].expected_regret == plain.expected_regret  # what `neuclust run` plays


def test_development_rounds_are_not_reported(problem: Problem) -> None:
    split = split_problem(problem)
    queries = small_dataset().rounds
    for part, start in ((split.development, ROUNDS), (split.report, 0)):
        environment = played(part, 7)
        assert environment.horizon >= ROUNDS
        for t in range(1, ROUNDS + 1):
            query = environment.round(t).query
            assert query is not None
            assert np.array_equal(query.numpy().astype(np.float32), queries[start + t - 1])


def test_catalogue_problems_are_split_too() -> None:
    split = split_problem(Problem("bump", rounds=5))
    offered = {
        name: played(part, 3).round(2).arm_ids for name, part in (("tune", split.development), ("report", split.report))
    }
    assert not torch.equal(offered["tune"], offered["report"])
    assert "rounds 6 to 10" in split.note


def test_recorded_rounds_are_split_by_record(tmp_path: Path) -> None:
    plain = small_dataset()
    arms = np.tile(np.arange(60), 60)
    rewards = (stream(1, "rewards").random(3600) > 0.5).astype(np.float32)
    offers = Offers(np.arange(61) * 60, arms, rewards)
    queries = np.repeat(np.arange(1, 61, dtype=np.float32)[:, None], 6, axis=1)  # each tells its record
    replace(plain, rounds=queries, offers=offers).save(tmp_path / "replay.npz")
    split = split_problem(Problem(data=tmp_path / "replay.npz", rounds=30))

    def records(part: LaterRounds) -> set[int]:
        found = [part.round(t).query for t in range(1, 31)]
        return {int(query[0]) - 1 for query in found if query is not None}

    assert records(played(split.report, 0)) == set(range(30))
    assert records(played(split.development, 1000)) == set(range(30, 60))
    late = played(split.development, 1000)
    first = late.round(1)
    assert first.query is not None
    row = int(first.query[0]) - 1
    assert np.array_equal(late.environment.means(first).numpy(), rewards[row * 60 : row * 60 + 60])


def test_a_file_without_enough_rounds_is_refused(problem: Problem) -> None:
    with pytest.raises(ConfigError, match="at most 30 rounds, half of the 60"):
        split_problem(replace(problem, rounds=31))
    assert split_problem(replace(problem, rounds=None)).rounds == 30


def test_seeds_in_both_sets_are_refused(problem: Problem) -> None:
    with pytest.raises(ConfigError, match="got 2 in both"):
        linucb_plan(problem, tune_seeds="2..5")


def test_large_spaces_keep_to_the_budget_and_are_the_same_again(problem: Problem) -> None:
    plan = linucb_plan(problem, "alpha=0.01:10:log", "ridge=0.1:10", trials=5, tune_seeds="100..102")
    assert not plan.exhaustive
    first, second = tuned(plan)[0], tuned(plan)[0]
    assert len(first.trials) == 5
    assert first.trials == second.trials
    assert len({tuple(trial.settings.values()) for trial in first.trials}) == 5
    for trial in first.trials:
        assert 0.01 <= float(trial.settings["alpha"]) <= 10
        assert 0.1 <= float(trial.settings["ridge"]) <= 10


@pytest.mark.parametrize("param", ["alpha=0.01,0.1,1,10", "alpha=0.01:10:log"])
@pytest.mark.parametrize("stop_in", [2, 6, 16])
def test_an_interrupted_tuning_goes_on_as_if_nothing_had_happened(
    problem: Problem, tmp_path: Path, param: str, stop_in: int
) -> None:
    plan = linucb_plan(problem, param, trials=4, tune_seeds="100..102")
    whole, onlooker = tuned(plan)
    cut, before = tuned(plan, tmp_path, stop_in=stop_in)
    assert cut.stopped
    again, after = tuned(plan, tmp_path)
    assert not again.stopped
    assert (again.trials, again.best) == (whole.trials, whole.best)
    regrets = [[record.expected_regret for record in tuning.report] for tuning in (whole, again)]
    assert regrets[0] == regrets[1]
    assert before.runs + after.runs == onlooker.runs  # nothing twice, nothing left out
    assert len(read_store(tmp_path / "report")) == 6


def test_what_a_kill_leaves_behind_does_no_harm(problem: Problem, tmp_path: Path) -> None:
    plan = linucb_plan(problem, "alpha=0.01:10:log", trials=3)
    tuned(plan, tmp_path, stop_in=2)
    with (tmp_path / "tuning.jsonl").open("a") as journal:
        journal.write('{"op_code": 4, "work')  # a line cut short
    (tmp_path / "tuning.jsonl.lock").symlink_to(tmp_path / "tuning.jsonl")  # Optuna's lock of a dead process
    assert tuned(plan, tmp_path)[0].trials == tuned(plan)[0].trials


def test_damaged_records_are_set_aside_and_played_again(problem: Problem, tmp_path: Path) -> None:
    plan = linucb_plan(problem, "alpha=0.1,1", trials=2)
    whole, _ = tuned(plan, tmp_path)
    for place in ("tuning", "report"):
        file = min((tmp_path / place / "runs").iterdir())
        file.write_bytes(file.read_bytes()[:-10])
    again, onlooker = tuned(plan, tmp_path)
    heard = onlooker.sentences
    assert [record.expected_regret for record in again.report] == [record.expected_regret for record in whole.report]
    assert len(onlooker.runs) == 1  # the report's; finished trials are in the journal and need no run
    assert len(heard) == 2
    assert all("now in" in sentence for sentence in heard)


def test_more_trials_go_on_from_the_earlier_ones(problem: Problem, tmp_path: Path) -> None:
    few = linucb_plan(problem, "alpha=0.1:10:log", trials=2)
    tuned(few, tmp_path)
    more, onlooker = tuned(replace(few, trials=4), tmp_path)
    assert len(more.trials) == 4
    assert tuned(replace(few, trials=4))[0].trials == more.trials
    assert len(onlooker.trials) == 2


def test_another_question_in_the_same_folder_is_refused(problem: Problem, tmp_path: Path) -> None:
    tuned(linucb_plan(problem), tmp_path)
    with pytest.raises(ConfigError, match="another problem, policy, space, seeds or rounds"):
        tuned(linucb_plan(problem, "ridge=1,2"), tmp_path)


def test_settings_that_cannot_work_fail_alone(problem: Problem) -> None:
    space = parse_space("neuclust", "default", ["clusters=3,500"])
    tuning, _ = tuned(TuningPlan(problem, "neuclust", "default", space, 2, (100,), (0,)))
    good, bad = tuning.trials
    assert (good.state, bad.state, bad.regret) == ("complete", "failed", None)
    assert "500 clusters for 60 arms" in bad.reason
    assert tuning.best == {"clustering.count": "3"}
    with pytest.raises(ConfigError, match=r"all 1 failed; the first: .*500 clusters"):
        tuned(
            TuningPlan(
                problem, "neuclust", "default", parse_space("neuclust", "default", ["clusters=500"]), 2, (9,), (0,)
            )
        )


def test_hopeless_settings_are_given_up_early(problem: Problem) -> None:
    plan = linucb_plan(replace(problem, rounds=30), "alpha=10,0", trials=2, tune_seeds="100..111")
    kept, lost = tuned(plan)[0].trials
    assert (kept.state, kept.seeds) == ("complete", 12)
    assert (lost.state, lost.seeds < 12) == ("pruned", True)


def test_paper_grids_can_be_built_and_hold_what_the_paper_prints() -> None:
    for policy, grid in PAPER_GRIDS.items():
        for settings in list(grid_settings(grid))[:: max(1, (grid_size(grid) or 1) // 9)]:
            policy_config(policy, "default", overrides=settings)
    printed = {
        "arms.training.step": "1e-3",
        "arms.schedule.gamma": "1",
        "slate.training.step": "1e-3",
        "clustering.count": "22",
    }
    assert printed in list(grid_settings(PAPER_GRIDS["neuclust"]))
    assert grid_size(PAPER_GRIDS["neuclust"]) == 216


def test_params_are_read_and_replace_the_grid() -> None:
    space = parse_space("neuclust", "paper", ["clusters=5:40:log", "gamma=0.5,2"], grid="paper")
    assert space[-2:] == (Range("clustering.count", 5, 40, True, True), Values("arms.schedule.gamma", ("0.5", "2")))
    assert [entry.key for entry in space[:-2]] == ["arms.training.step", "slate.training.step"]
    assert grid_size(space) is None
    assert parse_space("linucb", "default", ["alpha=0:2"]) == (Range("alpha", 0, 2, False, False),)


def test_nothing_asked_for_is_the_papers_grid_where_it_knows_the_policy() -> None:
    assert parse_space("cn-ucb", "default", []) == parse_space("cn-ucb", "default", [], grid="paper")
    with pytest.raises(ConfigError, match=r"got none, .* not auto; add KEY=V1,V2"):
        parse_space("auto", "default", [])


@pytest.mark.parametrize(
    ("params", "grid", "message"),
    [
        (["alpha"], None, "expected key=v1,v2"),
        (["alpha="], None, "expected key=v1,v2"),
        (["alfa=1,2"], None, "alfa: no such setting; did you mean alpha"),
        (["alpha=1,x"], None, "alpha: expected a number, got 'x'"),
        (["alpha=2:1"], None, "low < high"),
        (["alpha=0:1:log"], None, "both above 0"),
        (["alpha=a:b"], None, "expected numbers"),
        (["alpha=1:2:lin"], None, "low:high:log"),
        (["alpha=-1:2"], None, "alpha: expected a number of at least 0"),
        (["alpha=1,2", "alpha=3,4"], None, "alpha twice"),
        ([], "mine", "expected paper, got 'mine'"),
    ],
)
def test_bad_spaces_are_refused(params: list[str], grid: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_space("linucb", "default", params, grid)


def test_policies_without_settings_have_no_grid() -> None:
    with pytest.raises(ConfigError, match="got uniform"):
        parse_space("uniform", "default", [], "paper")


@pytest.mark.parametrize(
    ("text", "seeds"), [("3", (3,)), ("0..2", (0, 1, 2)), ("1,2,5", (1, 2, 5)), ("0..1,9", (0, 1, 9))]
)
def test_seeds_are_read(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds("tune_seeds", text) == seeds


@pytest.mark.parametrize("text", ["", "a", "5..1", "1..", "..3", "-1", "1,1", "0..3,2", "1.5"])
def test_bad_seeds_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="report_seeds"):
        parse_seeds("report_seeds", text)
