"""`neuclust evaluate`: what other policies would have earned, from a log of what was shown and what came back."""

from dataclasses import dataclass
from pathlib import Path

import typer

from neuclust.cli.command import argument, limit_threads, option
from neuclust.cli.options import json_option, quiet_flag, settings_option
from neuclust.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EvaluateOptions:
    log: Path | None = argument(
        None, "A log: of a Recommender (log=), of `neuclust run --log`, or one of --format.", "LOG"
    )
    policy: list[str] | None = option(
        None,
        "A policy to judge (see `neuclust policies`), or module:Class; may be given several times.",
        "NAME[:PRESET]",
        heading="Who is judged",
    )
    settings: list[str] | None = settings_option()
    target: list[str] | None = option(
        None,
        "A column of a Parquet log or a table with a target's chances; may be repeated.",
        "NAME",
    )
    learning: str = option(
        "frozen", "frozen: fitted on the first part, then judged; replay: learns every logged slate after it.", "HOW"
    )
    fit: float = option(0.5, "The part of the log that policies are fitted on; 0 with --learning replay.", "SHARE")
    draws: int = option(5, "Independent slates that stand for a policy whose slates are random.", "N", min=1)
    seed: int = option(0, "Of the policies and their draws.", "N", min=0)
    reward: str | None = option(
        None,
        "What a slate is worth: sum, any, threshold:C, table:V0,V1,...,VK of its slots' rewards, or slate (as logged). "
        "Default: as the log says, else sum.",
        "TEXT",
        heading="How",
    )
    reward_range: str | None = option(
        None,
        "Smallest and largest reward of a slot (of the slate with `slate`). Default: as the log says, else 0:1.",
        "LOW:HIGH",
    )
    unseen: str | None = option(
        None,
        "Rewards that were not observed: error, zero, or drop the row. Default: decisions still open at the end are "
        "left out, others count what the log says, else error.",
        "HOW",
    )
    estimator: str = option("auto", "auto, or one of: see `neuclust evaluate --estimators`.", "NAME")
    interval: str | None = option(
        None, "asymptotic, bootstrap, empirical-bernstein, martingale or confidence-sequence.", "KIND"
    )
    level: float = option(0.95, "Of the intervals.", "SHARE")
    hold_back: float = option(0.3, "The part of the evaluated rows that the winner is judged on once more.", "SHARE")
    format: str | None = option(None, "vw (CCB dsjson), obp (.npz) or table (.csv, .parquet). Default: ours.", "NAME")
    column: list[str] | None = option(
        None,
        "A column of a table: decision, arm, slot, reward, propensity, features=A,B.",
        "PART=NAME",
    )
    skip_bad: int = option(0, "Go on after so many bad lines, which are named.", "N", min=0)
    out: Path | None = option(
        None, "Folder for the table, the picture and the JSON document.", "DIR", heading="Results"
    )
    json: str | None = json_option("The evaluation")
    plot: Path | None = option(None, "Values and intervals as .png or .svg.", "FILE")
    save: Path | None = option(None, "Folder for the best policy, learned from the whole log.", "DIR")
    estimators: bool = option(False, "List the estimators with their assumptions and leave.", None, "--estimators")
    quiet: bool = quiet_flag("No progress on stderr.")


def evaluate(options: EvaluateOptions) -> None:
    """Judge policies from a log, before anything goes live.

    Estimates what each would have earned per slate, with intervals, the difference to what ran, and a sentence: better,
    worse, or this log cannot tell.
    """
    limit_threads()
    from neuclust.cli.evaluate_session import judge, list_estimators

    if options.estimators:
        list_estimators()
        return
    if options.log is None:
        raise ConfigError("expected a log, got none; write neuclust evaluate LOG --policy NAME", field="log")
    if bool(options.policy) == bool(options.target):
        got = "both" if options.policy else "neither"
        raise ConfigError(f"expected policies to judge (--policy) or columns (--target), got {got}", field="policy")
    raise typer.Exit(judge(options.log, options))
