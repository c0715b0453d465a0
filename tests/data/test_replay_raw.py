"""Replays from raw files: disjoint halves, shrunk profiles, rounds that were really rated."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import completed
from hypothesis import given
from hypothesis import strategies as st

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.movielens import GENRES, KeptRatings, MovieLensOptions
from neuclust.data.raw import RawFile
from neuclust.data.replay import ReplayOptions, ReplayReport, prepare_replay, profile_half, shrunk_profiles
from neuclust.errors import ConfigError, DataError

SHARED = Path(os.environ.get("NEUCLUST_SHARED_DATA") or Path(__file__).parents[2] / "../shared/data")
SMALL = SHARED / "ml-latest-small"
ALL = MovieLensOptions(after=-1, min_ratings=1)
EVERYTHING = ReplayOptions(ALL, split="time", min_arms=1)

MOVIES = """movieId,title,genres
1,A,Comedy
2,B,Comedy|Drama
3,C,War
4,D,Unheard
"""
# user 7 rates 1 2 | 3, user 8 rates 3 1 | 2 4, user 9 rates only 2; the bar parts the halves in time
RATINGS = """userId,movieId,rating,timestamp
7,1,4.0,100
7,3,3.5,300
7,2,2.0,200
8,1,5.0,120
8,2,4.0,130
8,3,1.0,110
8,4,5.0,140
9,2,3.0,100
"""


def write(folder: Path, ratings: str = RATINGS) -> tuple[RawFile, RawFile]:
    (folder / "ratings.csv").write_text(ratings)
    (folder / "movies.csv").write_text(MOVIES)
    return RawFile(folder / "ratings.csv"), RawFile(folder / "movies.csv")


def prepare(folder: Path, options: ReplayOptions = EVERYTHING) -> tuple[ProfileDataset, ReplayReport]:
    return prepare_replay(*write(folder), options)


def recorded(dataset: ProfileDataset) -> dict[int, dict[int, float]]:
    """movie -> user -> reward."""
    assert dataset.offers is not None
    found = {}
    for row, movie in enumerate(dataset.round_ids.tolist()):
        arms, rewards = dataset.offers.of(row)
        found[movie] = dict(zip(dataset.arm_ids[arms].tolist(), rewards.tolist(), strict=True))
    return found


def test_a_small_replay_by_hand(tmp_path: Path) -> None:
    dataset, report = prepare(tmp_path)
    # 8's rating of movie 4 is no round (no listed genre); 9's only rating makes the profile, so 9 is never offered
    assert recorded(dataset) == {3: {7: 0.0}, 2: {8: 1.0}}
    assert dataset.arm_ids.tolist() == [7, 8]
    profile = {
        user: dict(zip(GENRES, row, strict=True)) for user, row in zip([7, 8], dataset.arms.tolist(), strict=True)
    }
    assert profile[7]["Comedy"] == pytest.approx((4 + 2 + 5 * 3.0) / 7)
    assert profile[7]["Drama"] == pytest.approx((2 + 5 * 3.0) / 6)
    assert profile[7]["War"] == pytest.approx(3.0)  # never rated in this half: the user's mean
    assert profile[8]["War"] == pytest.approx((1 + 5 * 3.0) / 6)
    assert dataset.counts is not None
    assert dict(zip(GENRES, dataset.counts[0].tolist(), strict=True))["Comedy"] == 7
    assert dataset.rounds[dataset.round_ids.tolist().index(2)].nonzero()[0].tolist() == [
        GENRES.index("Comedy"),
        GENRES.index("Drama"),
    ]
    assert (report.profile_ratings, report.replayed_ratings, report.liked) == (5, 2, 0.5)
    assert report.arms_per_round == (1, 1.0, 1)


def test_users_of_whom_nothing_is_known_are_never_offered(tmp_path: Path) -> None:
    rows = [f"{user},{movie},4.0,{user}" for user in range(60) for movie in (1, 2)]  # a quarter has no profile rating
    files = write(tmp_path, "userId,movieId,rating,timestamp\n" + "\n".join(rows))
    dataset, _ = prepare_replay(*files, ReplayOptions(ALL, min_arms=1))
    assert 20 < len(dataset.arms) < 40  # those with one rating in each half
    assert (dataset.arms == 4.0).all()


def test_the_threshold_decides_what_is_liked(tmp_path: Path) -> None:
    lower, _ = prepare(tmp_path, ReplayOptions(ALL, split="time", min_arms=1, threshold=3.5))
    higher, _ = prepare(tmp_path, ReplayOptions(ALL, split="time", min_arms=1, threshold=4.5))
    assert recorded(lower) == {3: {7: 1.0}, 2: {8: 1.0}}
    assert recorded(higher) == {3: {7: 0.0}, 2: {8: 0.0}}


def test_without_shrinkage_a_genre_never_rated_is_zero(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, ReplayOptions(ALL, split="time", min_arms=1, shrink=0.0))
    profile = dict(zip(GENRES, dataset.arms[0].tolist(), strict=True))
    assert (profile["Comedy"], profile["Drama"], profile["War"]) == (3.0, 2.0, 0.0)


def kept(users: list[int], movies: list[int], times: list[int]) -> KeptRatings:
    n = len(users)
    stars = np.linspace(0.5, 5.0, n)
    user, movie = np.array(users, dtype=np.int64), np.array(movies, dtype=np.int64)
    return KeptRatings(np.arange(max(users) + 1), np.arange(max(movies) + 1), user, movie, stars, np.array(times))


rows = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=40)


@given(rows)
def test_in_time_no_profile_rating_is_later_than_a_replayed_one(table: list[tuple[int, int, int]]) -> None:
    ratings = kept(*map(list, zip(*table, strict=True)))
    first = profile_half(ratings, "time", seed=0)
    for user in set(ratings.user.tolist()):
        mine = ratings.user == user
        assert int(first[mine].sum()) == -(-int(mine.sum()) // 2)
        later = ratings.timestamp[mine & ~first]
        assert len(later) == 0 or ratings.timestamp[mine & first].max() <= later.min()


@given(rows, st.floats(0, 20))
def test_profiles_lie_between_the_genres_mean_and_the_users(table: list[tuple[int, int, int]], shrink: float) -> None:
    ratings = kept(*map(list, zip(*table, strict=True)))
    genres = np.eye(6)[:, :4][: len(ratings.movies)]  # movies 4 and 5 have no genre of the list
    first = profile_half(ratings, "random", seed=3)
    profiles, counts = shrunk_profiles(ratings, first, genres, shrink)
    for user in range(len(ratings.users)):
        mine = first & (ratings.user == user)
        for genre in range(4):
            here = ratings.rating[mine & (genres[ratings.movie, genre] > 0)]
            total = len(here) + shrink
            if not mine.any() or total == 0:
                assert (profiles[user, genre], counts[user, genre]) == (0, 0 if not mine.any() else total)
                continue
            expected = (here.sum() + shrink * ratings.rating[mine].mean()) / total
            assert profiles[user, genre] == pytest.approx(expected)
            assert counts[user, genre] == pytest.approx(total)


def test_a_random_half_is_half_and_follows_the_seed() -> None:
    ratings = kept([0] * 4000, [0] * 4000, [1] * 4000)
    one, again, other = (profile_half(ratings, "random", seed) for seed in (1, 1, 2))
    assert abs(int(one.sum()) - 2000) < 160  # 5 standard deviations
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.skipif(not SMALL.is_dir(), reason="the real ml-latest-small is not here")
def test_real_rewards_are_real_ratings_that_no_profile_has_seen() -> None:
    files = RawFile(SMALL / "ratings.csv"), RawFile(SMALL / "movies.csv")
    dataset, report = prepare_replay(*files, ReplayOptions(seed=5))
    frame = pd.read_csv(SMALL / "ratings.csv")
    stars = frame.set_index(["userId", "movieId"]).rating
    played = [(user, movie, paid) for movie, row in recorded(dataset).items() for user, paid in row.items()]
    assert all((stars[user, movie] >= 4) == (paid == 1) for user, movie, paid in played)
    assert len(played) == report.replayed_ratings
    assert min(len(row) for row in recorded(dataset).values()) >= 20
    movies = pd.read_csv(SMALL / "movies.csv").set_index("movieId").genres
    replayed = {(user, movie) for user, movie, _ in played}
    assert dataset.counts is not None
    for row in (0, 100, 300):
        user = int(dataset.arm_ids[row])
        rated = [movie for movie in frame[frame.userId == user].movieId if (user, movie) not in replayed]
        for genre in ("Drama", "War"):
            behind = dataset.counts[row, GENRES.index(genre)] - 5
            assert behind <= sum(genre in movies[movie] for movie in rated)
    half = report.profile_ratings / report.reading.ratings_kept
    assert half == pytest.approx(0.5, abs=0.01)


@pytest.mark.skipif(not SMALL.is_dir(), reason="the real ml-latest-small is not here")
def test_equal_seeds_give_equal_files_and_others_do_not(tmp_path: Path) -> None:
    files = RawFile(SMALL / "ratings.csv"), RawFile(SMALL / "movies.csv")
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        prepare_replay(*files, ReplayOptions(seed=seed))[0].save(tmp_path / f"{name}.npz")
    one, same, other = ((tmp_path / f"{name}.npz").read_bytes() for name in "abc")
    assert one == same
    assert one != other


def test_too_few_raters_are_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^min_arms: .*at least 2 users rated in the replay half, got at most 1 users"):
        prepare(tmp_path, ReplayOptions(ALL, split="time", min_arms=2))


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"split": "half"}, "^split"),
        ({"shrink": -1.0}, "^shrink"),
        ({"shrink": float("nan")}, "^shrink"),
        ({"threshold": 6.0}, "^threshold"),
        ({"min_arms": 0}, "^min_arms"),
    ],
)
def test_options_that_cannot_work_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        ReplayOptions(**wrong)


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return completed(*words, env={"COLUMNS": "200"})


def test_command_prepares_and_run_plays_it_back(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    lines = [f"{u}::{m}::{generator.integers(1, 6)}::{u + m}" for u in range(40) for m in range(1, 13)]
    with gzip.open(tmp_path / "ratings.csv.gz", "wt") as file:
        file.write("userId,movieId,rating,timestamp\n" + "\n".join(line.replace("::", ",") for line in lines))
    (tmp_path / "ratings.dat").write_text("\n".join(lines))
    (tmp_path / "movies.dat").write_text("\n".join(f"{m}::Movie {m}::{GENRES[m]}" for m in range(1, 13)))
    short = ("--min-ratings", 1, "--min-arms", 5, "--rounds", 10)
    for ratings in ("ratings.csv.gz", "ratings.dat"):
        files = ("--ratings", tmp_path / ratings, "--movies", tmp_path / "movies.dat")
        done = command("data", "prepare", "replay", *files, *short, "--out", tmp_path / f"{ratings}.npz")
        assert done.returncode == 0, done.stderr
        assert "10 rounds (movies)" in done.stdout
        assert "ratings are behind the profiles" in done.stdout
    one, other = (load_dataset(tmp_path / f"{name}.npz") for name in ("ratings.csv.gz", "ratings.dat"))
    assert recorded(one) == recorded(other)
    played = command(
        "run", "--data", tmp_path / "ratings.dat.npz", "--policy", "oracle", "--slate-size", 3, "--json", "-"
    )
    (run,) = json.loads(played.stdout)["runs"]
    best = sum(sum(sorted(row.values())[-3:]) >= 3 for row in recorded(other).values())
    assert (run["rounds"], run["expected_regret"], run["clipped_floor"]) == (10, 0.0, 0.0)
    assert run["successes"] == run["best_expected"] == best


def test_command_leaves_nothing_behind_where_it_fails(tmp_path: Path) -> None:
    write(tmp_path)
    files = ("--ratings", tmp_path / "ratings.csv", "--movies", tmp_path / "movies.csv")
    done = command("data", "prepare", "replay", *files, "--min-ratings", 1, "--out", tmp_path / "out" / "r.npz")
    assert done.returncode == 65
    assert "lower it, or keep more ratings" in done.stderr
    assert not (tmp_path / "out" / "r.npz").exists()
