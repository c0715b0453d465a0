"""`neuclust data prepare obd`: the Open Bandit Dataset as a log."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

import typer

from neuclust.cli.command import argument, option
from neuclust.cli.data import prepare

FEW_CLICKS = 1000  # ±6 % of a click rate, at two standard errors, of the logging policy itself


class Logger(enum.StrEnum):
    """Who chose."""

    RANDOM = "random"
    BTS = "bts"


class Campaign(enum.StrEnum):
    """Which items."""

    ALL = "all"
    MEN = "men"
    WOMEN = "women"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBanditCommand:
    place: Path = argument(..., "Such as obd/random/all, or obd with --logger and --campaign.", "FOLDER")
    out: Path = prepare.log_option()
    logger: Logger = option(Logger.RANDOM, "Uniform draws, or Bernoulli Thompson sampling.", heading=prepare.SHAPE)
    campaign: Campaign = option(Campaign.ALL, "Items of all, men's or women's campaign.")
    levels: int = option(20, "Values of a category that get a column of their own.", "N", min=1)
    skip_bad: int = prepare.skip_option(heading=prepare.FILTERS)


def obd(options: OpenBanditCommand) -> None:
    """The Open Bandit Dataset: single items at one of three positions, with propensities and clicks, as a log."""
    from neuclust.data.logged.open_bandit import OpenBanditOptions, open_bandit_files, prepare_open_bandit

    prepare.check_log(options.out)
    chosen = OpenBanditOptions(options.logger.value, options.campaign.value, options.levels, options.skip_bad)
    log, items, logger = open_bandit_files(options.place, chosen)
    with prepare.bar(log.label, log.size) as show:
        exposures, report = prepare_open_bandit(log, items, logger, chosen, lambda done: show(done, None))
    design = "drawn evenly" if report.uniform else "with the propensities logged"
    clicks = f"{report.clicks:,} clicks"
    typer.echo(f"read {report.rows_read:,} rows of {logger}: {report.items:,} items, {design}, {clicks}")
    prepare.echo_bad(report.bad_rows, report.bad_examples)
    if report.clicks < FEW_CLICKS:
        relative = 2 / max(report.clicks, 1) ** 0.5
        typer.echo(
            f"warning: {clicks} are too few to tell: the click rate of what ran is itself known to ±{relative:.0%} "
            "only, that of another policy less well"
        )
    prepare.write_log(options.out, exposures)
