"""What is known of KuaiRand's users and videos before an exposure, as numbers."""

from datetime import date
from typing import Any

import numpy as np
import polars as pl

from neuclust.data.logged.encoding import Block, flags, joined, log_scaled, multi_hot, one_hot, split_list
from neuclust.data.logged.kuairand_files import AMOUNTS, CATEGORIES, MARKS
from neuclust.data.options import Codes, Floats

FIRST_DAY = date(2022, 4, 22)  # of random exposure


def user_block(users: pl.DataFrame, levels: int) -> Block:
    """Marks as 0 or 1, amounts as scaled logarithms, ranges and encrypted features as indicators: (U, d)."""
    blocks = [flags(users[name]) for name in MARKS]
    blocks += [log_scaled(users[name]) for name in AMOUNTS]
    blocks += [one_hot(users[name], levels) for name in CATEGORIES]
    return joined(blocks, len(users))


def video_block(videos: pl.DataFrame, levels: int) -> Block:
    """Duration and age as scaled logarithms, upright or not, types as indicators: (V, d).

    `visible_status` is left out, since it is that of the time of publication.
    """
    uploaded = videos["upload_dt"].str.to_date("%Y-%m-%d", strict=False)
    age = (pl.Series([FIRST_DAY]) - uploaded).dt.total_days().alias("age")
    upright = (videos["server_height"] > videos["server_width"]).cast(pl.Float64).alias("upright")
    numbers = [log_scaled(videos["video_duration"]), log_scaled(age), flags(upright)]
    types = [one_hot(videos[name], levels) for name in ("video_type", "upload_type", "music_type")]
    return joined([*numbers, *types], len(videos))


def tag_block(videos: pl.DataFrame, levels: int) -> Block:
    """1 for each of a video's tags, (V, g)."""
    return multi_hot(split_list(videos["tag"]), levels)


def request_block(user: Block, pairs: Codes) -> Block:
    """The user and an indicator of the tab for each pair of a user's row and a tab; `pairs` (2, Q) -> (Q, d)."""
    tabs = pl.Series("tab", pairs[1]).cast(pl.String)
    return joined([Block(user.names, user.values[pairs[0]]), one_hot(tabs, len(np.unique(pairs[1])))], pairs.shape[1])


def taste_rates(seen: pl.DataFrame, users: pl.DataFrame, videos: pl.DataFrame, tags: Block, shrink: float) -> Floats:
    """Share of rewarded exposures by user and tag before the random log, drawn to the user's own share: (U, g).

    rate[u, g] = (paid[u, g] + c·r_u) / (shown[u, g] + c) with c = `shrink`, r_u = (paid_u + c·r) / (shown_u + c) and r
    the share of all users; 0 where c and the exposures are 0.
    """
    shown, paid = (_counts(seen, name, users, videos) for name in ("shown", "paid"))
    by_tag = [np.asarray(counts @ tags.values) for counts in (shown, paid)]
    in_all = [np.asarray(counts.sum(axis=1), np.float64).reshape(-1, 1) for counts in (shown, paid)]
    overall = float(in_all[1].sum() / max(in_all[0].sum(), 1.0))
    own = _shrunk(in_all[1], in_all[0], overall, shrink)
    return _shrunk(by_tag[1], by_tag[0], own, shrink)


def _counts(seen: pl.DataFrame, name: str, users: pl.DataFrame, videos: pl.DataFrame) -> Any:
    """A sparse matrix (U, V) of the column of that name."""
    from scipy.sparse import csr_matrix

    rows = np.searchsorted(users["user_id"].to_numpy(), seen["user_id"].to_numpy())
    columns = np.searchsorted(videos["video_id"].to_numpy(), seen["video_id"].to_numpy())
    values: Floats = seen[name].to_numpy().astype(np.float64)
    return csr_matrix((values, (rows, columns)), shape=(len(users), len(videos)))


def _shrunk(sums: Floats, counts: Floats, centre: Floats | float, weight: float) -> Floats:
    total = counts + weight
    return np.asarray(np.divide(sums + weight * centre, total, out=np.zeros_like(sums), where=total > 0))
