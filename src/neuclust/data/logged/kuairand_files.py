"""KuaiRand's files as published: Pure, 1K and 27K differ in size, the end of their names and the number of parts."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from neuclust.data.folders import files_in, matching, the_one
from neuclust.data.raw import BadRows, Progress, RawFile
from neuclust.data.tables import LINE, Table, one_per_id, read_table, whole_table
from neuclust.errors import DataError

REWARDS = ("is_click", "long_view", "is_like")
VERSION = r"_[0-9a-z]+"  # pure, 1k, 27k
PART = r"(_part\d+)?\.csv"
RANGES = ("follow_user_num_range", "fans_user_num_range", "friend_user_num_range", "register_days_range")
AMOUNTS = ("follow_user_num", "fans_user_num", "friend_user_num", "register_days")
ENCRYPTED = tuple(f"onehot_feat{i}" for i in range(18))
MARKS = ("is_lowactive_period", "is_live_streamer", "is_video_author")
CATEGORIES = ("user_active_degree", *RANGES, *ENCRYPTED)

IDS = ("user_id", "video_id")
LOG = Table.of(whole=(*IDS, "date", "time_ms", "tab"), flag=(*REWARDS, "is_rand"))
HISTORY = Table.of(whole=IDS, flag=REWARDS)
USERS = Table.of(whole=("user_id",), number=(*MARKS, *AMOUNTS), text=CATEGORIES)
VIDEOS = Table.of(
    whole=("video_id",),
    number=("video_duration", "server_width", "server_height"),
    text=("video_type", "upload_dt", "upload_type", "music_type", "tag"),
)


@dataclass(frozen=True, slots=True)
class KuaiRandFiles:
    """The random log, the users, the videos, and what was logged in the two weeks before, where it is there."""

    random: RawFile
    users: RawFile
    videos: RawFile
    history: tuple[RawFile, ...] = ()


def kuairand_files(place: Path) -> KuaiRandFiles:
    """The files of one version in a folder or archive; `video_features_statistic` is not read.

    Its numbers are averages over the whole month, the days of the random log included.
    """
    files = files_in(place)
    ends = sorted({name.removesuffix(".gz") for name in files if name.startswith("log_random")})
    if len(ends) > 1:
        raise DataError(f"{place}: expected one version of KuaiRand, got {' and '.join(ends[:3])}; pass one folder")
    return KuaiRandFiles(
        the_one(files, rf"log_random(_\w+)?{VERSION}\.csv", place, "log_random_4_22_to_5_08_pure.csv"),
        the_one(files, rf"user_features{VERSION}\.csv", place, "user_features_pure.csv"),
        the_one(files, rf"video_features_basic{VERSION}\.csv", place, "video_features_basic_pure.csv"),
        tuple(matching(files, rf"log_standard_4_08_to_4_21{VERSION}{PART}")),
    )


def read_random(file: RawFile, bad: BadRows, progress: Progress | None = None) -> pl.DataFrame:
    """Every row of the random log with the number of its line, in file order."""
    frame = whole_table(file, LOG, bad, progress=progress)
    dates = pl.col("date").cast(pl.String).str.to_date("%Y%m%d", strict=False)
    wrong = frame.filter(dates.is_null())
    for number, date in wrong.select(LINE, "date").iter_rows():
        bad.report(file, number, f"expected a date such as 20220422, got {date}")
    if frame.is_empty():
        raise DataError(f"{file.label}: expected exposures below the header, got none")
    return frame.filter(dates.is_not_null())


def read_users(file: RawFile, wanted: pl.Series, bad: BadRows) -> pl.DataFrame:
    """The features of the wanted users, ascending by id."""
    return one_per_id(whole_table(file, USERS, bad, pl.col("user_id").is_in(wanted.implode())), "user_id", file, bad)


def read_videos(file: RawFile, wanted: pl.Series, bad: BadRows) -> pl.DataFrame:
    """The features of the wanted videos, ascending by id."""
    return one_per_id(whole_table(file, VIDEOS, bad, pl.col("video_id").is_in(wanted.implode())), "video_id", file, bad)


def read_history(
    files: tuple[RawFile, ...], users: pl.Series, videos: pl.Series, reward: str, bad: BadRows
) -> pl.DataFrame:
    """How often these users were shown each of these videos before, and the sum of the rewards."""
    known = pl.col("user_id").is_in(users.implode()) & pl.col("video_id").is_in(videos.implode())
    pieces = [pl.DataFrame(schema={"user_id": pl.Int64, "video_id": pl.Int64, "shown": pl.Int64, "paid": pl.Int64})]
    for file in files:
        for frame in read_table(file, HISTORY, bad):
            counted = frame.filter(known).group_by("user_id", "video_id")
            pieces.append(
                counted.agg(pl.len().cast(pl.Int64).alias("shown"), pl.col(reward).sum().cast(pl.Int64).alias("paid"))
            )
    summed = pl.concat(pieces).group_by("user_id", "video_id").agg(pl.col("shown", "paid").sum())
    return summed.sort("user_id", "video_id")


def known_rows(
    log: pl.DataFrame, column: str, known: pl.Series, files: tuple[RawFile, RawFile], bad: BadRows
) -> pl.DataFrame:
    """Rows whose id has features; the others are bad. `files` are that of the rows and that of the features."""
    found = pl.col(column).is_in(known.implode())
    for number, value in log.filter(~found).select(LINE, column).iter_rows():
        bad.report(files[0], number, f"expected a {column} of {files[1].label}, got the unknown {value}")
    return log.filter(found)
