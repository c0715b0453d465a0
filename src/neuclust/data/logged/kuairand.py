"""KuaiRand from the raw files to logged exposures: random videos, their clicks, and features of users and videos."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from neuclust.data.dataset import ProfileDataset, profile_dataset
from neuclust.data.logged.encoding import Block
from neuclust.data.logged.exposures import Exposures, Pools, seen_pools
from neuclust.data.logged.kuairand_features import request_block, tag_block, taste_rates, user_block, video_block
from neuclust.data.logged.kuairand_files import (
    REWARDS,
    KuaiRandFiles,
    known_rows,
    read_history,
    read_random,
    read_users,
    read_videos,
)  # fmt: skip
from neuclust.data.options import Codes, Floats, check_choice, check_dates, check_least
from neuclust.data.raw import BadRows, Progress
from neuclust.data.tables import LINE
from neuclust.errors import DataError
from neuclust.randomness import stream

STARS = 5.0  # the scale of ratings that the simulated reward tanh(s / 4) was made for


@dataclass(frozen=True, slots=True)
class KuaiRandOptions:
    """Which rows are kept, what they pay, and what they were drawn from; dates are seconds, both ends strict."""

    reward: Literal["is_click", "long_view", "is_like"] = "is_click"
    pool: Literal["all", "day"] = "all"
    rows: int | None = None  # drawn evenly from those within the dates; None: all
    after: int | None = None
    before: int | None = None
    levels: int = 20  # values of a category that get a column of their own
    shrink: float = 5.0  # c: earlier exposures at the user's own rate that every tag starts with
    history: bool = True  # read the log of the two weeks before, where it is there
    seed: int = 0
    skip_bad: int = 0

    def __post_init__(self) -> None:
        check_choice(self, "reward", *REWARDS)
        check_choice(self, "pool", "all", "day")
        check_dates(self.after, self.before)
        check_least(self, rows=1, levels=1, shrink=0, seed=0, skip_bad=0)


@dataclass(frozen=True, slots=True)
class KuaiRandReport:
    """How many rows were read, dropped and kept, and how far they look like uniform draws."""

    rows_read: int
    bad_rows: int
    bad_examples: tuple[str, ...]
    not_random: int
    outside_dates: int
    not_sampled: int
    rows_kept: int
    paid: int  # of the rows kept
    users: int
    pool_sizes: tuple[int, int]  # smallest and largest
    shown_per_video: float  # in the pool where it is smallest
    dispersion: tuple[float, float]  # of exposures per video, and its standard deviation around 1 for uniform draws
    earlier_exposures: int  # of the same users and videos in the log before


@dataclass(frozen=True, slots=True)
class KuaiRandTables:
    """What was read: exposures by time, users and videos ascending by id, and how users liked tags before."""

    log: pl.DataFrame
    users: pl.DataFrame
    videos: pl.DataFrame
    tags: Block  # (V, g) indicators
    rates: Floats  # (U, g) of the reward in the log before
    pools: Pools  # of all random exposures; `pool` of the log points into it
    report: KuaiRandReport


def read_kuairand(files: KuaiRandFiles, options: KuaiRandOptions, progress: Progress | None = None) -> KuaiRandTables:
    """Read, check and filter the raw files."""
    bad = BadRows(options.skip_bad)
    log = read_random(files.random, bad, progress)
    rows_read = log.height
    users = read_users(files.users, log["user_id"].unique(), bad)
    videos = read_videos(files.videos, log["video_id"].unique(), bad)
    log = known_rows(log, "user_id", users["user_id"], (files.random, files.users), bad)
    log = known_rows(log, "video_id", videos["video_id"], (files.random, files.videos), bad)
    drawn, pools = _drawn(log, videos, options)
    within = drawn.filter(_within(options))
    kept = _sampled(within, options)
    seen = read_history(
        files.history if options.history else (), users["user_id"], videos["video_id"], options.reward, bad
    )
    tags = tag_block(videos, options.levels)
    report = KuaiRandReport(
        rows_read=rows_read,
        bad_rows=bad.count,
        bad_examples=tuple(bad.examples),
        not_random=log.height - drawn.height,
        outside_dates=drawn.height - within.height,
        not_sampled=within.height - kept.height,
        rows_kept=kept.height,
        paid=int(kept[options.reward].sum()),
        users=kept["user_id"].n_unique(),
        pool_sizes=(min(map(len, pools.arms)), max(map(len, pools.arms))),
        shown_per_video=pools.shown_per_arm,
        dispersion=(pools.dispersion, pools.dispersion_sd),
        earlier_exposures=int(seen["shown"].sum()),
    )
    rates = taste_rates(seen, users, videos, tags, options.shrink)
    return KuaiRandTables(kept, users, videos, tags, rates, pools, report)


def kuairand_exposures(tables: KuaiRandTables, options: KuaiRandOptions) -> Exposures:
    """Each randomly exposed video as a slate of one, of propensity 1/|pool|.

    Contexts are [video, tags, tags ⊙ rates of the user, user, tab]: profiles hold (video, tags, tags, 1, 1) and
    queries (1, 1, rates, user, tab).
    """
    log, rates = tables.log, tables.rates
    video, user = video_block(tables.videos, options.levels), user_block(tables.users, options.levels)
    pairs, query = np.unique(np.stack([_codes(log, tables.users, "user_id"), log["tab"]]), axis=1, return_inverse=True)
    requests = request_block(user, pairs)
    if not tables.report.earlier_exposures:  # nothing is known of tastes: no columns that all users share
        rates = rates[:, :0]
    tastes = _liked(tables.tags, rates.shape[1])
    ones = np.ones((len(tables.videos), len(requests.names)))
    profiles = np.hstack([video.values, tables.tags.values, tastes.values, ones])
    fixed = np.ones((pairs.shape[1], len(video.names) + len(tables.tags.names)))
    arm, pool = _codes(log, tables.videos, "video_id"), log["pool"].to_numpy()
    sizes = np.array([len(each) for each in tables.pools.arms])
    return Exposures(
        name="kuairand",
        logger="random",
        features=(*video.names, *tables.tags.names, *tastes.names, *requests.names),
        arm_ids=tables.videos["video_id"].to_numpy(),
        profiles=profiles,
        queries=np.hstack([fixed, rates[pairs[0]], requests.values]),
        pools=tables.pools.arms,
        pool_names=tables.pools.names,
        pool=pool,
        query=query.ravel(),
        arm=arm,
        propensity=1 / sizes[pool],
        reward=log[options.reward].to_numpy().astype(np.float64),
        time=log["time_ms"].to_numpy() / 1000,
        line=log[LINE].to_numpy(),
        uniform=True,
        user=log["user_id"].to_numpy(),
    )


def kuairand_contexts(tables: KuaiRandTables) -> ProfileDataset:
    """A problem to simulate: arms are the videos' tags, rounds the rates of the users of the log, from 0 to 5."""
    if not tables.report.earlier_exposures:
        what = "log_standard_4_08_to_4_21 with exposures of these users, from which what they ask for is computed"
        raise DataError(f"contexts: expected {what}, got none; pass a folder that has it, or leave contexts out")
    users = np.unique(_codes(tables.log, tables.users, "user_id"))
    tagged = np.flatnonzero(tables.tags.values.any(axis=1))
    arms = tables.videos["video_id"].to_numpy()[tagged], tables.tags.values[tagged]
    rounds = tables.users["user_id"].to_numpy()[users], STARS * tables.rates[users]
    return profile_dataset("kuairand", tables.tags.names, arms, rounds)


def _liked(tags: Block, width: int) -> Block:
    """The first `width` tags, to be multiplied by what users thought of them."""
    return Block(tuple(f"{name} liked" for name in tags.names[:width]), tags.values[:, :width])


def _drawn(log: pl.DataFrame, videos: pl.DataFrame, options: KuaiRandOptions) -> tuple[pl.DataFrame, Pools]:
    """Random exposures with the index of their pool, and the pools."""
    drawn = log.filter(pl.col("is_rand") == 1)
    if drawn.is_empty():
        raise DataError(f"expected rows with is_rand = 1, got none among {log.height:,}; is this the random log?")
    part = drawn["date"].to_numpy() if options.pool == "day" else np.zeros(drawn.height, np.int64)
    pools = seen_pools(part, _codes(drawn, videos, "video_id"))
    return drawn.with_columns(pl.Series("pool", pools.of)), pools


def _within(options: KuaiRandOptions) -> pl.Expr:
    inside = pl.lit(True)
    if options.after is not None:
        inside &= pl.col("time_ms") > options.after * 1000
    if options.before is not None:
        inside &= pl.col("time_ms") < options.before * 1000
    return inside


def _sampled(log: pl.DataFrame, options: KuaiRandOptions) -> pl.DataFrame:
    """At most `rows` of them, each set of that size equally likely, by time; file order where times tie."""
    if log.is_empty():
        raise DataError("expected random exposures within the dates, got none; widen them", field="after")
    if options.rows is not None and options.rows < log.height:
        rows = stream(options.seed, "kuairand rows").choice(log.height, options.rows, replace=False)
        log = log[np.sort(rows)]
    return log.sort("time_ms", maintain_order=True)


def _codes(log: pl.DataFrame, table: pl.DataFrame, key: str) -> Codes:
    """The row of each id in a table that is ascending by it, (n,)."""
    return np.searchsorted(table[key].to_numpy(), log[key].to_numpy()).astype(np.int64)
