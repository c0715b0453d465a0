"""A folder in KuaiRand's layout with known chances: invented users, videos and exposures."""

from contextlib import ExitStack
from dataclasses import dataclass
from json import dumps
from pathlib import Path

import numpy as np
import polars as pl

from neuclust.data.logged.kuairand_files import ENCRYPTED
from neuclust.data.options import Codes, Floats, check_least
from neuclust.data.raw import Progress
from neuclust.files import placed, write_text
from neuclust.randomness import stream

SEGMENTS, TAGS = 7, 12  # values of onehot_feat1, and tags of videos
RANDOM_FROM, STANDARD_FROM = 1_650_556_800_000, 1_649_347_200_000  # 22 and 8 April 2022, 00:00 in Beijing, in ms
DAY = 86_400_000
BEIJING = 8 * 3_600_000
ROWS_PER_BLOCK = 500_000


@dataclass(frozen=True, slots=True)
class KuaiRandSize:
    """Exposures of the random log, users and videos; the log before has as many rows as the random one."""

    rows: int = 100_000
    users: int = 1_000
    videos: int = 200

    def __post_init__(self) -> None:
        check_least(self, rows=1, users=1, videos=1)


def click_chances(seed: int) -> Floats:
    """P(is_click) of a user with onehot_feat1 = s and a video whose first tag is g, (7, 12): 2 to 60 %."""
    return np.round(0.02 + 0.58 * stream(seed, "kuairand chances").random((SEGMENTS, TAGS)) ** 3, 4)


def generate_kuairand(size: KuaiRandSize, out: Path, seed: int = 0, progress: Progress | None = None) -> None:
    """`log_random`, `log_standard_4_08_to_4_21`, `user_features`, `video_features_basic` and `truth.json`.

    Random exposures draw videos uniformly; the standard log prefers the videos of low number.
    """
    out.mkdir(parents=True, exist_ok=True)
    segment, tag = _segments(size, seed), _first_tags(size, seed)
    names = ("log_random_4_22_to_5_08", "log_standard_4_08_to_4_21", "user_features", "video_features_basic")
    files = [out / f"{name}_pure.csv" for name in names]
    with ExitStack() as opened:
        random, standard, users, videos = (opened.enter_context(placed(file)) for file in files)
        _users(segment, seed).write_csv(users)
        _videos(tag, seed).write_csv(videos)
        for block, start in enumerate(range(0, size.rows, ROWS_PER_BLOCK)):
            n = min(ROWS_PER_BLOCK, size.rows - start)
            for is_rand, file in ((1, random), (0, standard)):
                _exposures(n, is_rand, segment, tag, seed, block).write_csv(file, include_header=block == 0)
            if progress is not None:
                progress(start + n)
    truth = {"is_click": click_chances(seed).tolist(), "rows": "onehot_feat1", "columns": "first tag"}
    write_text(out / "truth.json", dumps(truth, indent=1) + "\n")


def _segments(size: KuaiRandSize, seed: int) -> Codes:
    return stream(seed, "kuairand segments").integers(0, SEGMENTS, size.users)


def _first_tags(size: KuaiRandSize, seed: int) -> Codes:
    return stream(seed, "kuairand tags").integers(0, TAGS, size.videos)


def _exposures(n: int, is_rand: int, segment: Codes, tag: Codes, seed: int, block: int) -> pl.DataFrame:
    """n rows of a log in any order of users, ascending in time within a block."""
    rng = stream(seed, "kuairand exposures", 2 * block + is_rand)
    user = rng.integers(0, len(segment), n)
    video = (len(tag) * rng.random(n) ** (1.0 if is_rand else 2.0)).astype(np.int64)
    days, first = (17, RANDOM_FROM) if is_rand else (14, STANDARD_FROM)
    moment = np.sort(rng.integers(first, first + days * DAY, n))
    clicked = (rng.random(n) < click_chances(seed)[segment[user], tag[video]]).astype(np.int64)
    longer = clicked * (rng.random(n) < 0.6)
    local = pl.from_epoch(pl.Series(moment + BEIJING), time_unit="ms")
    zeros = np.zeros(n, np.int64)
    return pl.DataFrame(
        {
            "user_id": user, "video_id": video,
            "date": local.dt.strftime("%Y%m%d"), "hourmin": local.dt.hour().cast(pl.Int64) * 100,
            "time_ms": moment, "is_click": clicked, "is_like": clicked * (rng.random(n) < 0.04),
            "is_follow": zeros, "is_comment": zeros, "is_forward": zeros, "is_hate": zeros, "long_view": longer,
            "play_time_ms": clicked * rng.integers(7_000, 18_000, n) + longer * 11_000,
            "duration_ms": 20_000 + 100 * video, "profile_stay_time": zeros,
            "comment_stay_time": zeros, "is_profile_enter": zeros,
            "is_rand": np.full(n, is_rand), "tab": rng.choice([0, 1, 4], n, p=[0.2, 0.7, 0.1]),
        }
    )  # fmt: skip


def _users(segment: Codes, seed: int) -> pl.DataFrame:
    rng = stream(seed, "kuairand users")
    n = len(segment)
    follows, fans, friends = (rng.lognormal(mean, 1.5, n).astype(np.int64) for mean in (3.0, 2.0, 1.0))
    days = rng.integers(15, 3_000, n)
    columns: dict[str, object] = {
        "user_id": np.arange(n),
        "user_active_degree": rng.choice(["full_active", "high_active", "middle_active", "UNKNOWN"], n),
        "is_lowactive_period": np.zeros(n, np.int64),
        "is_live_streamer": rng.integers(0, 2, n),
        "is_video_author": rng.integers(0, 2, n),
        "follow_user_num": follows,
        "follow_user_num_range": _ranges(follows, (1, 11, 51, 101, 151, 251, 501), FOLLOW_RANGES),
        "fans_user_num": fans,
        "fans_user_num_range": _ranges(fans, (1, 10, 100, 1_000, 5_000, 10_000), FANS_RANGES),
        "friend_user_num": friends,
        "friend_user_num_range": _ranges(friends, (1, 5, 30, 60, 120, 250), FRIEND_RANGES),
        "register_days": days,
        "register_days_range": _ranges(days, (31, 61, 91, 181, 366, 731), DAY_RANGES),
    }
    for name, values in zip(ENCRYPTED, ENCRYPTED_VALUES, strict=True):
        columns[name] = rng.integers(0, values, n)
    columns["onehot_feat1"] = segment
    known = pl.Series(rng.integers(0, 15, n)).cast(pl.Float64)
    columns["onehot_feat4"] = known.set(pl.Series(rng.random(n) < 0.1), None)  # decimals and gaps, as published
    return pl.DataFrame(columns)


FOLLOW_RANGES = ("0", "(0,10]", "(10,50]", "(50,100]", "(100,150]", "(150,250]", "(250,500]", "500+")
FANS_RANGES = ("0", "[1,10)", "[10,100)", "[100,1k)", "[1k,5k)", "[5k,1w)", "[1w,10w)")
FRIEND_RANGES = ("0", "[1,5)", "[5,30)", "[30,60)", "[60,120)", "[120,250)", "250+")
DAY_RANGES = ("15-30", "31-60", "61-90", "91-180", "181-365", "366-730", "730+")
ENCRYPTED_VALUES = (2, 7, 50, 1471, 15, 34, 3, 118, 454, 7, 5, 5, 2, 2, 2, 2, 2, 2)


def _ranges(amounts: Codes, starts: tuple[int, ...], names: tuple[str, ...]) -> list[str]:
    return [names[place] for place in np.searchsorted(starts, amounts, side="right").tolist()]


def _videos(tag: Codes, seed: int) -> pl.DataFrame:
    rng = stream(seed, "kuairand videos")
    n = len(tag)
    second = rng.integers(TAGS, TAGS + 20, n)
    pairs = zip(tag.tolist(), second.tolist(), strict=True)
    lists = [f"{first},{more}" if more % 3 == 0 else str(first) for first, more in pairs]
    uploaded = pl.from_epoch(pl.Series(RANDOM_FROM - rng.integers(1, 400, n) * DAY), time_unit="ms")
    return pl.DataFrame(
        {
            "video_id": np.arange(n), "author_id": rng.integers(0, 8_839_735, n),
            "video_type": rng.choice(["NORMAL", "AD"], n, p=[0.9, 0.1]), "upload_dt": uploaded.dt.strftime("%Y-%m-%d"),
            "upload_type": rng.choice(["ShortImport", "LongImport", "Web", "Kmovie"], n),
            "visible_status": np.ones(n), "video_duration": 20_000.0 + 100 * np.arange(n),
            "server_width": np.full(n, 720.0), "server_height": rng.choice([1280.0, 720.0], n),
            "music_id": rng.integers(0, 2**40, n), "music_type": rng.choice([4.0, 7.0, 9.0], n), "tag": lists,
        }
    )  # fmt: skip
