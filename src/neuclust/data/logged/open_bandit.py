"""The Open Bandit Dataset as published: one item at one of three positions, with its propensity and the click."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from neuclust.data.folders import files_in
from neuclust.data.logged.encoding import Block, joined, one_hot
from neuclust.data.logged.exposures import Exposures
from neuclust.data.options import check_choice, check_least
from neuclust.data.raw import BadRows, Progress, RawFile
from neuclust.data.tables import LINE, Table, one_per_id, whole_table
from neuclust.errors import DataError

POSITIONS = 3
ITEM_FILE = "item_context.csv"
USER_FEATURES = tuple(f"user_feature_{i}" for i in range(4))
ITEM_CATEGORIES = tuple(f"item_feature_{i}" for i in range(1, 4))
LOG = Table.of(
    whole=("item_id", "position"), flag=("click",), number=("propensity_score",), text=("timestamp", *USER_FEATURES)
)
ITEMS = Table.of(whole=("item_id",), number=("item_feature_0",), text=ITEM_CATEGORIES)


@dataclass(frozen=True, slots=True)
class OpenBanditOptions:
    """Which log of a folder with several, and how it is encoded."""

    logger: Literal["random", "bts"] = "random"
    campaign: Literal["all", "men", "women"] = "all"
    levels: int = 20  # values of a category that get a column of their own
    skip_bad: int = 0

    def __post_init__(self) -> None:
        check_choice(self, "logger", "random", "bts")
        check_choice(self, "campaign", "all", "men", "women")
        check_least(self, levels=1, skip_bad=0)


@dataclass(frozen=True, slots=True)
class OpenBanditReport:
    """How many rows were read, and what they can tell."""

    rows_read: int
    bad_rows: int
    bad_examples: tuple[str, ...]
    clicks: int
    items: int
    uniform: bool


def open_bandit_files(place: Path, options: OpenBanditOptions) -> tuple[RawFile, RawFile, str]:
    """The log, the items, and who logged: of LOGGER/CAMPAIGN/ inside the folder, or of the folder itself."""
    inner = place / options.logger / options.campaign
    folder = inner if not (place / ITEM_FILE).is_file() and inner.is_dir() else place
    files = files_in(folder)
    logs = [file for name, file in files.items() if name in ("all.csv", "men.csv", "women.csv")]
    if len(logs) != 1 or ITEM_FILE not in files:
        got = ", ".join(sorted(files)[:4]) or "nothing"
        wanted = f"{ITEM_FILE} beside one of all.csv, men.csv and women.csv"
        raise DataError(f"{folder}: expected {wanted}, got {got}; pass a folder such as obd/random/all, or obd")
    parts = folder.resolve().parts
    return logs[0], files[ITEM_FILE], next((part for part in reversed(parts) if part in ("random", "bts")), "logged")


def prepare_open_bandit(
    log: RawFile, items: RawFile, logger: str, options: OpenBanditOptions, progress: Progress | None = None
) -> tuple[Exposures, OpenBanditReport]:
    """Every row as a slate of one at its position; contexts are [item, user, position] side by side."""
    bad = BadRows(options.skip_bad)
    catalogue = one_per_id(whole_table(items, ITEMS, bad), "item_id", items, bad)
    if catalogue.is_empty():
        raise DataError(f"{items.label}: expected items below the header, got none")
    rows = _checked(whole_table(log, LOG, bad, progress=progress), catalogue, log, bad)
    if rows.is_empty():
        raise DataError(f"{log.label}: expected exposures below the header, got none")
    rows = rows.sort("moment", maintain_order=True)
    item, request = _item_block(catalogue, options.levels), _request_block(rows, options.levels)
    queries, query = np.unique(request.values, axis=0, return_inverse=True)
    propensity = rows["propensity_score"].to_numpy()
    uniform = bool(np.allclose(propensity * len(catalogue), 1, rtol=1e-9))
    exposures = Exposures(
        name=f"obd/{log.path.stem}",
        logger=logger,
        features=(*item.names, *request.names),
        arm_ids=catalogue["item_id"].to_numpy(),
        profiles=np.hstack([item.values, np.ones((len(catalogue), len(request.names)))]),
        queries=np.hstack([np.ones((len(queries), len(item.names))), queries]),
        pools=(np.arange(len(catalogue)),),
        pool_names=("all",),
        pool=np.zeros(len(rows), np.int64),
        query=query.ravel().astype(np.int64),
        arm=np.searchsorted(catalogue["item_id"].to_numpy(), rows["item_id"].to_numpy()).astype(np.int64),
        propensity=propensity,
        reward=rows["click"].to_numpy().astype(np.float64),
        time=rows["moment"].to_numpy(),
        line=rows[LINE].to_numpy(),
        uniform=uniform,
    )
    clicks = int(exposures.reward.sum())
    return exposures, OpenBanditReport(len(rows), bad.count, tuple(bad.examples), clicks, len(catalogue), uniform)


def _checked(rows: pl.DataFrame, items: pl.DataFrame, file: RawFile, bad: BadRows) -> pl.DataFrame:
    """Rows with a known item, a position of 1 to 3, a propensity and a time; others are bad."""
    moment = pl.col("timestamp").str.to_datetime("%Y-%m-%d %H:%M:%S%.f%:z", time_zone="UTC", strict=False)
    rows = rows.with_columns((moment.dt.epoch("us") / 1e6).alias("moment"))
    chance = pl.col("propensity_score")
    checks = {
        "item_id": (pl.col("item_id").is_in(items["item_id"].implode()), f"an item of {ITEM_FILE}"),
        "position": (pl.col("position").is_between(1, POSITIONS), f"a position from 1 to {POSITIONS}"),
        "propensity_score": (((chance > 0) & (chance <= 1)).fill_null(False), "a propensity above 0 and up to 1"),
        "timestamp": (pl.col("moment").is_not_null(), "a time such as 2019-11-24 00:00:17.004101+00:00"),
    }
    for name, (fine, wanted) in checks.items():
        for number, value in rows.filter(~fine).select(LINE, name).iter_rows():
            bad.report(file, number, f"expected {wanted} for {name}, got {value!r}")
        rows = rows.filter(fine)
    return rows


def _item_block(items: pl.DataFrame, levels: int) -> Block:
    number = Block(("item_feature_0",), items["item_feature_0"].fill_null(0.0).to_numpy()[:, None])
    return joined([number, *(one_hot(items[name], levels) for name in ITEM_CATEGORIES)], len(items))


def _request_block(rows: pl.DataFrame, levels: int) -> Block:
    positions = one_hot(rows["position"], POSITIONS)
    return joined([*(one_hot(rows[name], levels) for name in USER_FEATURES), positions], len(rows))
