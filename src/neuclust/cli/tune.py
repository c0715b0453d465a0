"""`neuclust tune`: choose settings on some seeds and rounds, report them on others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from neuclust.cli.command import Heading, limit_threads, option
from neuclust.cli.options import ProblemOptions, Quiet

ROUNDS = "Rounds per run; a file must hold twice as many. Default: 1000, or half of a shorter file."


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    policy: Annotated[str, option("Whose settings (see `neuclust policies`).", "NAME[:PRESET]")] = "neuclust"
    problem: Annotated[ProblemOptions, {"rounds": ROUNDS}]
    settings: Annotated[
        list[str] | None,
        option("A setting and what to try for it; may be repeated.", "KEY=V1,V2 | KEY=LOW:HIGH[:log]", "--param"),
        Heading("The search"),
    ] = None
    grid: Annotated[str | None, option("The paper's settings; the default without --param.", "paper")] = None
    trials: Annotated[int, option("Settings to try at most: the budget.", "N", min=1)] = 20
    tune_seeds: Annotated[str, option("Seeds to tune on.", "A..B")] = "1000..1004"
    report_seeds: Annotated[str, option("Fresh seeds for the result.", "A..B")] = "0..9"
    out: Annotated[
        Path | None, option("Keep trials and records; the same command goes on there.", "DIR"), Heading("Results")
    ] = None
    json: Annotated[str | None, option("The result as JSON; - is stdout, with nothing else on it.", "FILE")] = None
    quiet: Quiet = False


def tune(options: TuneOptions) -> None:
    """Tune a policy's settings, then test them on seeds and rounds the tuning never saw."""
    limit_threads()
    from neuclust.cli.outputs import Outputs
    from neuclust.cli.tune_session import execute
    from neuclust.experiment.contestants import split_name
    from neuclust.experiment.tuning.space import parse_space
    from neuclust.experiment.tuning.tune import TuningPlan, parse_seeds

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
