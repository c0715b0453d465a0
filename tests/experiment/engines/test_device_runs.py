"""The device engine against single runs: the same slates, sums, clusters, restarts and warnings."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_problems import small_environment

from neuclust.configuration import with_setting
from neuclust.core import Round, Slate
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, LearningWarning
from neuclust.experiment.engines.device import BatchRun, batches_of, run_batch, trace_batch
from neuclust.experiment.records import RunRecord
from neuclust.experiment.run import RunLabel, run
from neuclust.policies.combinatorial_neural import CombinatorialNeuralUCB
from neuclust.policies.neuclust import NeUClust, NeUClustConfig
from neuclust.registry import policy_config

ROUNDS = 20
no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; this machine has none")

CASES: dict[str, tuple[str, str, dict[str, str]]] = {
    "default": ("neuclust", "default", {}),
    "paper": ("neuclust", "paper", {}),
    "paper, no slate net": ("neuclust", "paper", {"slate.weight": "0"}),
    "yelp-sized, dual": ("neuclust", "paper-yelp", {"arms.network.width": "10", "solver": "dual"}),
    "dual, ridge 0.3": ("neuclust", "default", {"solver": "dual", "confidence.ridge": "0.3"}),
    "refreshed often": ("neuclust", "default", {"refresh": "7", "confidence.ridge": "0.5"}),
    "lifted and doubled": ("neuclust", "paper-lift", {}),
    "literal, unguarded": ("neuclust", "paper-literal", {"clustering.small": "merge"}),
    "steps that must be halved": ("neuclust", "paper", {"arms.training.step": "0.5", "slate.training.step": "4"}),
    "from the start, now and then": (
        "neuclust", "default", {"arms.training.start": "restart", "arms.training.train_every": "3"},
    ),
    "clamped slate net": ("neuclust", "default", {"clamp_all": "true", "slate.training.anchor": "zero"}),
    "small clusters skipped": ("neuclust", "default", {"clustering.small": "skip", "clustering.count": "9"}),
    "ranked by mean": (
        "neuclust", "default", {"rank_by": "mean", "slate.input": "optimistic", "arms.network.init": "he"},
    ),
    "cluster scores averaged": ("neuclust", "default", {"slate.score": "mean"}),
    "nets that die and restart": (
        "neuclust", "default", {"arms.network.width": "4", "arms.training.step": "3", "arms.training.ridge": "0"},
    ),
    "dead nets kept": (
        "cn-ucb", "default",
        {"arms.network.width": "4", "arms.training.step": "3", "arms.training.ridge": "0", "revive": "false"},
    ),
    "automatic scale": ("neuclust", "default", {"rho": "none"}),
    "gamma from the log-determinant": ("neuclust", "default", {"schedule.kind": "det", "confidence.ridge": "0.5"}),
    "the same, dual": ("cn-ucb", "default", {"schedule.kind": "det", "solver": "dual", "confidence.ridge": "0.5"}),
    "gamma of Eq. 8": ("neuclust", "paper", {"schedule.kind": "theory", "c_1": "1e-3", "c_gamma_3": "1e-3"}),
    "F learns from rewards": ("neuclust", "paper", {"slate.train_input": "realised", "slate.sort_input": "false"}),
    "F learns from earlier means": ("neuclust", "paper", {"slate.train_input": "predicted-then"}),
    "the printed F": (
        "neuclust", "paper", {"slate.biases": "none", "slate.training.pull_inside_sum": "true", "relu_out": "true"},
    ),
    "nets read profiles": ("neuclust", "paper-raw", {"arms.reads": "profile"}),
    "cn-ucb": ("cn-ucb", "default", {}),
    "cn-ucb, paper": ("cn-ucb", "paper", {}),
}  # fmt: skip


def configuration(case: str) -> Any:
    policy, preset, settings = CASES[case]
    clusters = 4 if "clustering.count" not in settings else None
    return policy_config(policy, preset, clusters, settings)


def three_runs(config: Any, environments: Sequence[SlateEnvironment]) -> list[BatchRun]:
    """Seeds 0, 1, 2 with γ of 1, 0.3 and 2."""
    gammas = ("1", "0.3", "2")
    return [
        BatchRun(with_setting(config, "gamma", gamma), environment, seed, RunLabel("tested"))
        for seed, (gamma, environment) in enumerate(zip(gammas, environments, strict=True))
    ]


def coins_apart(**changes: Any) -> list[SlateEnvironment]:
    """One problem with three sets of coins."""
    environments = [small_environment(**changes) for _ in range(3)]
    for seed, environment in enumerate(environments):
        environment.seed = seed
    return environments


def single(batch_run: BatchRun, rounds: int) -> tuple[RunRecord, list[list[int]]]:
    """The run by itself, and its slates."""
    environment, config = batch_run.environment, batch_run.config
    shape = environment.dim, environment.slate_size, batch_run.seed
    policy: Any
    if isinstance(config, NeUClustConfig):
        policy = NeUClust(config, *shape, catalogue=(environment.arm_ids, environment.profiles))
    else:
        policy = CombinatorialNeuralUCB(config, *shape)
    slates: list[list[int]] = []
    select = policy.select

    def remembered(round: Round) -> Slate:
        slate: Slate = select(round)
        slates.append(slate.positions.tolist())
        return slate

    policy.select = remembered
    return run(policy, environment, rounds, batch_run.seed, label=batch_run.label), slates


def assert_same_slates(runs: list[BatchRun], rounds: int) -> None:
    trace = trace_batch(runs, rounds)
    for row, batch_run in enumerate(runs):
        assert trace.slates[row].tolist() == single(batch_run, rounds)[1]


def assert_same(batched: RunRecord, alone: RunRecord) -> None:
    left, right = (
        replace(record, seconds=0.0, select_seconds=0.0, update_seconds=0.0).to_json() for record in (batched, alone)
    )
    assert left.keys() == right.keys()
    for name, value in left.items():
        if isinstance(value, float) or name.endswith("curve"):
            np.testing.assert_allclose(value, right[name], atol=1e-9, err_msg=name)
        else:
            assert value == right[name], name


@pytest.mark.parametrize("case", CASES)
def test_equal_to_single_runs(case: str) -> None:
    runs = three_runs(configuration(case), coins_apart())
    assert batches_of(runs) == [[0, 1, 2]]
    assert_same_slates(runs, ROUNDS)


@pytest.mark.parametrize("case", ["default", "literal, unguarded", "nets that die and restart", "cn-ucb"])
def test_records_equal_to_single_runs(case: str) -> None:
    runs = three_runs(configuration(case), coins_apart())
    for batch_run, record in zip(runs, run_batch(runs, 12), strict=True):
        assert_same(record, single(batch_run, 12)[0])


@pytest.mark.parametrize(("case", "failures"), [("nets that die and restart", True), ("dead nets kept", False)])
def test_dead_nets_restart_and_are_reported_run_by_run(case: str, failures: bool) -> None:
    """Fails where the device engine trains by other rules than single runs: some nets die, some again and again."""
    runs = three_runs(configuration(case), [small_environment() for _ in range(3)])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        records = run_batch(runs, ROUNDS)
    with warnings.catch_warnings(record=True) as said_alone:
        warnings.simplefilter("always")
        alone = [single(batch_run, ROUNDS)[0] for batch_run in runs]
    assert [r.failed_trainings for r in records] == [r.failed_trainings for r in alone]
    assert any(r.failed_trainings for r in records) == failures
    assert sorted(str(w.message) for w in said) == sorted(str(w.message) for w in said_alone)
    assert bool(said) == failures
    assert all(issubclass(w.category, LearningWarning) for w in said)


def silent_at_first(environment: Any) -> None:
    """The same environment with a first query of zeros."""
    deal = environment.round

    def round(t: int) -> Round:
        dealt: Round = deal(t)
        return dealt if t > 1 else replace(dealt, query=torch.zeros(environment.dim, dtype=torch.float64))

    environment.round = round


def test_the_scale_is_settled_by_the_first_round_that_tells_it() -> None:
    """The first round asks for nothing: ρ = 1 for it alone."""
    environments = coins_apart()
    for environment in environments:
        silent_at_first(environment)
    runs = three_runs(configuration("automatic scale"), environments)
    assert_same_slates(runs, 10)


def test_halving_was_tried() -> None:
    """The case above is one where some run's step is too long; without the guard it would end elsewhere."""
    config = configuration("steps that must be halved")
    free = with_setting(config, "arms.training.guard", "false")
    environments = coins_apart()
    assert (
        trace_batch(three_runs(config, environments), 10)
        .means.ne(trace_batch(three_runs(free, environments), 10).means)
        .any()
    )


@pytest.mark.parametrize("policy", ["neuclust", "cn-ucb"])
def test_volatile_arms(policy: str) -> None:
    """Every seed offers other arms: batches of one, still equal."""
    environments = [small_environment(seed=0, arms_per_round=20) for _ in range(3)]
    for seed, environment in enumerate(environments):
        environment.seed = seed
    runs = three_runs(policy_config(policy, "default", 3), environments)
    assert batches_of(runs) == [[0], [1], [2]]
    for batch_run, record in zip(runs, run_batch(runs, 15), strict=True):
        assert_same(record, single(batch_run, 15)[0])


def test_ties_go_to_the_smaller_id() -> None:
    """Profiles that come twice, in an order of ids that is not that of the rows."""
    environments = coins_apart(n=48)
    for environment in environments:
        environment.profiles = environment.profiles[torch.arange(48) // 2 * 2]
        environment.arm_ids = environment.arm_ids.flip(0)
    runs = three_runs(configuration("default"), environments)
    assert_same_slates(runs, 20)


def test_other_truths_are_other_batches() -> None:
    config = configuration("default")
    label = RunLabel("tested")
    here, there = small_environment(seed=0), small_environment(seed=1)
    wider = with_setting(config, "arms.network.width", "8")
    runs = [BatchRun(c, e, 0, label) for c, e in ((config, here), (config, there), (wider, here), (config, here))]
    assert batches_of(runs) == [[0, 3], [1], [2]]
    assert [record.expected_regret for record in run_batch(runs, 5)] == pytest.approx(
        [single(batch_run, 5)[0].expected_regret for batch_run in runs]
    )


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("tie", "random"), ("depth", "2"), ("form", "diagonal"),
        ("arms.training.optimizer", "sgd"), ("arms.training.after", "sample"), ("init", "torch-default"),
    ],
)  # fmt: skip
def test_refusals(setting: str, text: str) -> None:
    name = f"arms.network.{setting}" if setting in ("depth", "init") else setting
    name = f"arms.confidence.{setting}" if setting == "form" else name
    config = with_setting(configuration("default"), name, text)
    with pytest.raises(ConfigError, match="device engine: expected"):
        run_batch([BatchRun(config, small_environment(), 0, RunLabel("tested"))], 3)


def test_refuses_other_policies_devices_and_rounds() -> None:
    label = RunLabel("tested")
    with pytest.raises(ConfigError, match="expected NeUClust or CN-UCB"):
        run_batch([BatchRun(policy_config("linucb"), small_environment(), 0, label)], 3)
    online = BatchRun(policy_config("neuclust-online", "default", 4), small_environment(), 0, label)
    with pytest.raises(ConfigError, match="expected tracker=None"):
        run_batch([online], 3)
    good = BatchRun(configuration("default"), small_environment(), 0, label)
    with pytest.raises(ConfigError, match="device: expected cpu or cuda"):
        run_batch([good], 3, device="tpu")
    with pytest.raises(ConfigError, match="expected 1 to 60 rounds"):
        run_batch([good], 61)


@no_gpu
@pytest.mark.parametrize("case", CASES)
def test_gpu_follows_a_recorded_trace(case: str) -> None:
    runs = three_runs(configuration(case), coins_apart())
    recorded = trace_batch(runs, ROUNDS)
    followed = trace_batch(runs, ROUNDS, device="cuda", forced=recorded.slates)
    assert followed.slates.equal(recorded.slates)
    # a training that nearly diverges multiplies what the two machines round differently
    rtol = 1e-3 if case == "dead nets kept" else 1e-5
    assert followed.means.allclose(recorded.means, rtol=rtol, atol=1e-6)
    assert followed.bonuses.allclose(recorded.bonuses, rtol=rtol, atol=1e-6)
