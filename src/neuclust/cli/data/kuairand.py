"""`neuclust data prepare kuairand`: random exposures of KuaiRand as a log, and its users and videos to simulate on."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuclust.cli.command import argument, flag, option
from neuclust.cli.data import prepare
from neuclust.errors import writing

if TYPE_CHECKING:
    from neuclust.data.logged.kuairand import KuaiRandOptions, KuaiRandReport, KuaiRandTables

FEW_SHOWN = 5.0  # exposures per video: a share of e⁻⁵ of a pool or more is unseen below it
FAR_FROM_UNIFORM = 5.0  # standard deviations of the dispersion


class Pool(enum.StrEnum):
    """What a random video was drawn from."""

    ALL = "all"
    DAY = "day"


class Reward(enum.StrEnum):
    """Which signal is the reward."""

    IS_CLICK = "is_click"
    LONG_VIEW = "long_view"
    IS_LIKE = "is_like"


@dataclass(frozen=True, slots=True, kw_only=True)
class KuaiRandCommand:
    place: Path = argument(..., "The folder or .tar.gz as published, Pure, 1K or 27K.", "FOLDER")
    out: Path = prepare.log_option()
    contexts: Path | None = option(None, "Also a problem to simulate on: videos for users.", "FILE.npz")
    reward: Reward = option(Reward.IS_CLICK, "The signal that is the reward.", heading=prepare.SHAPE)
    pool: Pool = option(Pool.ALL, "Videos were drawn evenly from all random ones, or from those of the day.")
    levels: int = option(20, "Values of a category that get a column of their own.", "N", min=1)
    shrink: float = option(5.0, "Exposures at the user's own rate that every taste starts with.", "C", min=0)
    no_history: bool = flag("Leave the log of the two weeks before, and tastes, out.")
    rows: int | None = option(None, "A random sample of N rows. Default: all.", "N", heading=prepare.FILTERS, min=1)
    seed: int = option(0, "Draws the sample.", min=0)
    after: str | None = option(None, prepare.AFTER, "DATE")
    before: str | None = prepare.before_option()
    skip_bad: int = prepare.skip_option()

    def chosen(self) -> KuaiRandOptions:
        from neuclust.data.logged.kuairand import KuaiRandOptions

        return KuaiRandOptions(
            reward=self.reward.value,
            pool=self.pool.value,
            rows=self.rows,
            after=prepare.seconds(self.after),
            before=prepare.seconds(self.before),
            levels=self.levels,
            shrink=self.shrink,
            history=not self.no_history,
            seed=self.seed,
            skip_bad=self.skip_bad,
        )


def kuairand(options: KuaiRandCommand) -> None:
    """KuaiRand: randomly exposed videos with real clicks, as a log to evaluate policies from."""
    from neuclust.data.logged.kuairand import kuairand_exposures, read_kuairand
    from neuclust.data.logged.kuairand_files import kuairand_files

    prepare.check_log(options.out)
    if options.contexts is not None:
        prepare.check_out(options.contexts, "contexts")
    chosen, files = options.chosen(), kuairand_files(options.place)
    with prepare.bar(files.random.label, files.random.size) as show:
        tables = read_kuairand(files, chosen, lambda done: show(done, None))
    _echo_rows(tables.report, options)
    _echo_pool(tables.report, options.pool)
    if options.contexts is not None:
        _write_contexts(tables, options.contexts)
    prepare.write_log(options.out, kuairand_exposures(tables, chosen))


def _write_contexts(tables: KuaiRandTables, out: Path) -> None:
    from neuclust.data.logged.kuairand import kuairand_contexts

    dataset = kuairand_contexts(tables)
    with writing(out):
        dataset.save(out)
    prepare.echo_written(out, dataset, "videos", "users")


def _echo_rows(report: KuaiRandReport, options: KuaiRandCommand) -> None:
    typer.echo(
        f"read {report.rows_read:,} rows: {report.not_random:,} not randomly exposed, {report.outside_dates:,} outside "
        f"the dates, {report.not_sampled:,} not sampled, {report.rows_kept:,} kept of {report.users:,} users, "
        f"{report.paid:,} of them with {options.reward.value} = 1"
    )
    prepare.echo_bad(report.bad_rows, report.bad_examples)
    if report.earlier_exposures:
        typer.echo(f"tastes come from {report.earlier_exposures:,} exposures of the two weeks before")
    else:
        typer.echo("no exposures of the two weeks before: contexts have no tastes")


def _echo_pool(report: KuaiRandReport, pool: Pool) -> None:
    """The assumption behind the propensities, and what speaks against it."""
    smallest, largest = report.pool_sizes
    size = f"{largest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    drawn = "all random videos" if pool is Pool.ALL else "the random videos of the day"
    typer.echo(f"assumed: every random video was drawn evenly from {drawn}, {size} of them; propensity 1 / {size}")
    dispersion, deviation = report.dispersion
    if dispersion > 1 + FAR_FROM_UNIFORM * deviation:
        typer.echo(
            f"warning: exposures per video vary {dispersion:.2f} times as much as under uniform draws "
            f"(1 ± {deviation:.2f}): propensities are not exact, and estimates by them are biased"
        )
    if report.shown_per_video < FEW_SHOWN:
        advice = "; --pool all has more" if pool is Pool.DAY else ""
        typer.echo(
            f"warning: {report.shown_per_video:.1f} exposures per video in the smallest pool: videos that were never "
            f"shown by chance are missing from it, and propensities are too large{advice}"
        )
