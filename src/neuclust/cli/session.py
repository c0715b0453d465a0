"""One command's worth of runs: play the plan, keep what is finished, draw it, say what happened."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from neuclust.analysis.unpaid import unpaid_notes
from neuclust.cli.console import Reporter, make_reporter, print_tables
from neuclust.cli.interrupt import STOPPED, patient_interrupt
from neuclust.cli.outputs import Outputs, check_outputs, draw, keep
from neuclust.errors import NeuclustError, writing
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.plan import Plan, rewards_sentence
from neuclust.experiment.records import RunRecord, runs_document
from neuclust.experiment.run import RunLabel, run


def execute(plan: Plan, outputs: Outputs, quiet: bool, device: str | None = None) -> int:
    """Play every run of the plan, all at once where a device is named; the exit code is 0, or 130 after Ctrl-C."""
    check_outputs(outputs)
    if any(contestant.clustering is not None for contestant in plan.contestants):
        import sklearn.cluster  # noqa: F401  # loaded here, or the first run's clock would count it
    reporter = make_reporter(plan.size, quiet)
    if not quiet:
        reporter.say(rewards_sentence(plan.rewards, plan.problem.name))
    records: list[RunRecord] = []
    try:
        with patient_interrupt(lambda: reporter.say(ONE_MORE_ROUND)) as stopped:
            if device is None:
                _play(plan, outputs, reporter, records, stopped)
            else:
                _play_at_once(plan, outputs, reporter, records, stopped, device)
    except NeuclustError:
        if records:
            draw(outputs, records)
        raise
    finally:
        reporter.close()
    _conclude(outputs, records)
    for note in unpaid_notes(records):
        reporter.say(f"warning: {note}")
    if not stopped():
        return 0
    reporter.say(stopped_sentence(records, outputs.run_files))
    return STOPPED


ONE_MORE_ROUND = "Ctrl-C: stopping after this round; press it again to stop at once."


def _play(
    plan: Plan, outputs: Outputs, reporter: Reporter, records: list[RunRecord], stopped: Callable[[], bool]
) -> None:
    """Every run in turn; `records` grows and is written after each."""
    left = plan.size
    for seed, environment, contestant in plan.matches():
        if stopped():
            return
        left -= 1
        policy = contestant.build(environment, seed)
        reporter.begin(contestant.title, seed, plan.rounds)
        label = _label(plan, contestant)
        record = run(policy, environment, plan.rounds, seed, label=label, on_round=reporter.on_round, stop=stopped)
        if record.rounds == 0:
            return
        records.append(record)
        earlier = keep(outputs, records)
        reporter.finish(record)
        if earlier is not None:
            reporter.say(f"Earlier results of this folder are kept as {earlier}.")
        if outputs.save is not None and (left == 0 or stopped()):
            with writing(outputs.save):
                policy.save(outputs.save)


def _play_at_once(
    plan: Plan,
    outputs: Outputs,
    reporter: Reporter,
    records: list[RunRecord],
    stopped: Callable[[], bool],
    device: str,
) -> None:
    """Every run of the plan in as few batches as possible; `records` are written when all are played."""
    from neuclust.experiment.engines.device import BatchRun, run_batch
    from neuclust.registry import policy_config

    runs = []
    for seed, environment, who in plan.matches():
        config = policy_config(who.policy, who.preset, who.clusters, who.settings)
        runs.append(BatchRun(config, environment, seed, _label(plan, who)))
    found = run_batch(runs, plan.rounds, device=device, stop=stopped)
    records.extend(record for record in found if record.rounds)
    if records:
        keep(outputs, records)
    for record in records:
        reporter.finish(record)


def _label(plan: Plan, contestant: Contestant) -> RunLabel:
    return RunLabel(
        policy=contestant.policy,
        preset=contestant.preset,
        env=plan.problem.name,
        clusters=contestant.clusters,
        settings=contestant.settings,
        problem=plan.problem.options,
        rewards=plan.rewards,
    )


def _conclude(outputs: Outputs, records: list[RunRecord]) -> None:
    """Files first, stdout last: a closed pipe must not cost a picture."""
    if records:
        draw(outputs, records)
    if outputs.json_to_stdout:
        sys.stdout.write(runs_document(records))
    elif outputs.json is None and records:
        print_tables(records)


def stopped_sentence(records: list[RunRecord], files: tuple[Path, ...]) -> str:
    """What was kept when Ctrl-C came."""
    if not records:
        return "Stopped before a round was played: nothing was written."
    whole = sum(not record.interrupted for record in records)
    finished = "1 finished run" if whole == 1 else f"{whole} finished runs"
    last = records[-1]
    kept = f"{finished} and {last.rounds} rounds of {last.policy}, seed {last.seed}," if last.interrupted else finished
    where = f" are in {' and '.join(map(str, files))}" if files else " are shown; --out DIR would have kept them"
    return f"Stopped by Ctrl-C: {kept}{where}."
