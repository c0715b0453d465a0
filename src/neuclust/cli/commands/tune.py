"""`neuclust tune`: choose settings on some seeds and rounds, report them on others."""

from dataclasses import dataclass
from pathlib import Path

import typer

from neuclust.cli.command import group, limit_threads, option
from neuclust.cli.options import ProblemOptions, json_option, quiet_flag

ROUNDS = "Rounds per run; a file must hold twice as many. Default: 1000, or half of a shorter file."


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    policy: str = option("neuclust", "Whose settings (see `neuclust policies`).", "NAME[:PRESET]")
    problem: ProblemOptions = group(rounds=ROUNDS)
    settings: list[str] | None = option(
        None,
        "A setting and what to try for it; may be repeated.",
        "KEY=V1,V2 | KEY=LOW:HIGH[:log]",
        "--param",
        heading="The search",
    )
    grid: str | None = option(None, "The paper's settings; the default without --param.", "paper")
    trials: int = option(20, "Settings to try at most: the budget.", "N", min=1)
    tune_seeds: str = option("1000..1004", "Seeds to tune on.", "A..B")
    report_seeds: str = option("0..9", "Fresh seeds for the result.", "A..B")
    out: Path | None = option(
        None, "Keep trials and records; the same command goes on there.", "DIR", heading="Results"
    )
    json: str | None = json_option("The result")
    quiet: bool = quiet_flag("No progress on stderr.")


def tune(options: TuneOptions) -> None:
    """Tune a policy's settings, then test them on seeds and rounds the tuning never saw."""
    limit_threads()
    from neuclust.cli.outputs import Outputs
    from neuclust.cli.tune_session import execute
    from neuclust.experiment.tuning.space import parse_space
    from neuclust.experiment.tuning.tune import TuningPlan, parse_seeds
    from neuclust.registry import split_name

    name, preset = split_name(options.policy)
    preset = preset or "default"
    plan = TuningPlan(
        problem=options.problem.named(),
        policy=name,
        preset=preset,
        space=parse_space(name, preset, options.settings or (), options.grid),
        trials=options.trials,
        tune_seeds=parse_seeds("tune_seeds", options.tune_seeds),
        report_seeds=parse_seeds("report_seeds", options.report_seeds),
    )
    raise typer.Exit(execute(plan, Outputs(options.out, options.json), options.quiet))
