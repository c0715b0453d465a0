"""MovieLens from raw files: the paper's definitions, every published layout, and bad rows met by line."""

from __future__ import annotations

import gzip
import os
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import completed
from hypothesis import given, settings
from hypothesis import strategies as st

from neuclust.data import movielens_files
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.movielens import GENRES, MovieLensOptions, MovieLensReport, genre_indicator, prepare_movielens
from neuclust.data.raw import RawFile, line_chunks, seconds_since_1970, zip_member
from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream

SHARED = Path(os.environ.get("NEUCLUST_SHARED_DATA") or Path(__file__).parents[2] / "../shared/data")
SMALL = SHARED / "ml-latest-small"
EVERYTHING = MovieLensOptions(after=-1, min_ratings=1, skip_rounds=0)

MOVIES = """movieId,title,genres
1,Toy Story (1995),Adventure|Animation|Children|Comedy|Fantasy
2,"Crime, and ""More"" (1995)",Crime|Thriller
3,Nothing Said (2001),(no genres listed)
4,Été (1999),Drama
"""
RATINGS = """userId,movieId,rating,timestamp
7,1,4.0,1500000000
7,2,2.5,1500000001
7,4,3.0,1500000002
9,2,5.0,1500000003
9,3,1.0,1500000004
"""


def write(folder: Path, ratings: str = RATINGS, movies: str = MOVIES) -> tuple[RawFile, RawFile]:
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "ratings.csv").write_text(ratings, encoding="utf-8", newline="")
    (folder / "movies.csv").write_text(movies, encoding="utf-8", newline="")
    return RawFile(folder / "ratings.csv"), RawFile(folder / "movies.csv")


def prepare(
    folder: Path, ratings: str = RATINGS, movies: str = MOVIES, options: MovieLensOptions = EVERYTHING
) -> tuple[ProfileDataset, MovieLensReport]:
    return prepare_movielens(*write(folder, ratings, movies), options)


def same(one: ProfileDataset, other: ProfileDataset) -> bool:
    assert one.counts is not None
    assert other.counts is not None
    arrays = ("arms", "rounds", "arm_ids", "round_ids", "counts")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return completed("data", *arguments, env={"COLUMNS": "200"})


def by_pandas(after: int, min_ratings: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """User × genre means and counts, computed in the plainest way there is."""
    ratings, movies = pd.read_csv(SMALL / "ratings.csv"), pd.read_csv(SMALL / "movies.csv")
    kept = ratings[ratings.timestamp > after]
    kept = kept.groupby("userId").filter(lambda rows: len(rows) >= min_ratings)
    joined = kept.merge(movies, on="movieId", how="left")
    means, counts = {}, {}
    for genre in GENRES:
        chosen = joined[joined.genres.str.contains(genre, regex=False)].groupby("userId").rating
        means[genre], counts[genre] = chosen.mean(), chosen.size()
    users = pd.Index(kept.userId.unique())
    return pd.DataFrame(means).reindex(users).fillna(0), pd.DataFrame(counts).reindex(users).fillna(0)


@pytest.mark.skipif(not SMALL.is_dir(), reason="the real ml-latest-small is not here")
@pytest.mark.parametrize(("after", "min_ratings"), [(0, 20), (1_420_070_400, 200)])
def test_real_files_agree_with_pandas(after: int, min_ratings: int) -> None:
    options = MovieLensOptions(after=after, min_ratings=min_ratings)
    dataset, report = prepare_movielens(RawFile(SMALL / "ratings.csv"), RawFile(SMALL / "movies.csv"), options)
    means, counts = by_pandas(after, min_ratings)
    assert dataset.arm_ids.tolist() == means.index.tolist()
    np.testing.assert_allclose(dataset.arms, means.to_numpy(), atol=1e-6)
    np.testing.assert_array_equal(dataset.counts, counts.to_numpy())
    assert report.ratings_read == 100_836
    assert report.ratings_kept + report.outside_dates + report.duplicates <= report.ratings_read


@pytest.mark.skipif(not SMALL.is_dir(), reason="the real ml-latest-small is not here")
def test_real_rounds_are_the_movies_in_order_of_appearance_from_index_one() -> None:
    options = MovieLensOptions(after=0, min_ratings=20, rounds=50)
    dataset, _ = prepare_movielens(RawFile(SMALL / "ratings.csv"), RawFile(SMALL / "movies.csv"), options)
    listed = pd.read_csv(SMALL / "ratings.csv").movieId.unique()
    assert dataset.round_ids.tolist() == listed[1:51].tolist()
    fields = pd.read_csv(SMALL / "movies.csv").set_index("movieId").genres
    expected = [[float(genre in fields[movie]) for genre in GENRES] for movie in listed[1:51]]
    np.testing.assert_array_equal(dataset.rounds, expected)


@pytest.mark.skipif(not (SHARED / "movielens-25m.npz").is_file(), reason="the real prepared file is not here")
def test_genre_order_is_that_of_the_papers_problem() -> None:
    assert load_dataset(SHARED / "movielens-25m.npz").features == GENRES


def test_a_small_problem_by_hand(tmp_path: Path) -> None:
    dataset, report = prepare(tmp_path)
    profile = dict(zip(GENRES, dataset.arms[0].tolist(), strict=True))
    assert profile["Comedy"] == 4.0
    assert profile["Crime"] == 2.5
    assert profile["Drama"] == 3.0
    assert profile["War"] == 0.0
    assert dict(zip(GENRES, dataset.arms[1].tolist(), strict=True))["(no genres listed)"] == 1.0
    assert dataset.arm_ids.tolist() == [7, 9]
    assert dataset.round_ids.tolist() == [1, 2, 4, 3]
    assert (report.users, report.movies, report.ratings_kept) == (2, 4, 5)


def test_first_movie_of_the_list_is_never_dealt_by_default(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, options=replace(EVERYTHING, skip_rounds=None))
    assert dataset.round_ids.tolist() == [2, 4, 3]


def test_movies_as_arms_are_genres_times_mean_rating_over_five(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, options=replace(EVERYTHING, arms="movies", min_movie_ratings=1))
    assert dataset.arm_ids.tolist() == [1, 2, 4, 3]
    crime = dict(zip(GENRES, dataset.arms[1].tolist(), strict=True))
    assert crime["Crime"] == pytest.approx(3.75 / 5)
    assert crime["Comedy"] == 0.0
    assert dataset.counts is not None
    assert dataset.counts[1].sum() == 4  # two ratings behind each of two genres
    assert dataset.round_ids.tolist() == [7, 9]
    assert (dataset.arms[:, None] * dataset.rounds).max() <= 5.0


def test_movies_with_few_ratings_are_not_offered(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, options=replace(EVERYTHING, arms="movies", min_movie_ratings=2))
    assert dataset.arm_ids.tolist() == [2]
    with pytest.raises(DataError, match="at least 20 ratings"):
        prepare(tmp_path, options=replace(EVERYTHING, arms="movies"))


def test_dates_are_strict_on_both_sides(tmp_path: Path) -> None:
    dataset, report = prepare(tmp_path, options=replace(EVERYTHING, after=1_500_000_000, before=1_500_000_004))
    assert report.outside_dates == 2  # the ratings in the very seconds of both dates
    assert dataset.round_ids.tolist() == [2, 4]


def test_latest_of_repeated_ratings_counts(tmp_path: Path) -> None:
    repeats = RATINGS + "7,1,1.0,1400000000\n9,2,2.0,1500000003\n"  # an earlier one; one in the same second
    dataset, report = prepare(tmp_path, repeats)
    assert report.duplicates == 2
    assert dataset.arms[0][GENRES.index("Comedy")] == 4.0
    assert dataset.arms[1][GENRES.index("Crime")] == 2.0  # the later row wins a tie
    with pytest.raises(DataError, match="at least 4 ratings"):
        prepare(tmp_path, repeats, options=replace(EVERYTHING, min_ratings=4))  # repeats do not add up


def test_ratings_off_the_half_star_grid_count_as_they_are_and_are_counted(tmp_path: Path) -> None:
    dataset, report = prepare(tmp_path, RATINGS.replace("7,1,4.0", "7,1,4.8").replace("9,3,1.0", "9,3,0.75"))
    assert (report.off_grid, report.ratings_kept) == (2, 5)
    assert dataset.arms[0][GENRES.index("Comedy")] == np.float32(4.8)
    assert prepare(tmp_path)[1].off_grid == 0


def test_users_need_enough_ratings_after_the_dates(tmp_path: Path) -> None:
    dataset, _ = prepare(tmp_path, options=replace(EVERYTHING, min_ratings=3))
    assert dataset.arm_ids.tolist() == [7]
    with pytest.raises(DataError, match="at least 3 ratings within the dates, got none among 4"):
        prepare(tmp_path, options=replace(EVERYTHING, min_ratings=3, after=1_500_000_000))


def test_genres_missing_foreign_and_of_old_spelling(tmp_path: Path) -> None:
    assert genre_indicator("")[-1] == 1.0
    assert genre_indicator("Children's|Sci-Fi").nonzero()[0].tolist() == [3, 14]
    movies = MOVIES.replace("Crime|Thriller", "Telenovela").replace("Drama", "Drama|Telenovela|Opera")
    dataset, report = prepare(tmp_path, movies=movies)
    assert report.foreign_genres == {"Telenovela": 2, "Opera": 1}
    assert report.movies_without_listed_genre == 1
    assert dataset.round_ids.tolist() == [1, 4, 3]  # movie 2 asks for nothing, so it is not dealt
    assert dataset.arms[1].nonzero()[0].tolist() == [19]  # and its rating stands behind no genre


def test_every_layout_gives_the_same_problem(tmp_path: Path) -> None:
    expected, _ = prepare(tmp_path / "csv")
    rows, films = RATINGS.splitlines()[1:], ["1::Toy::Adventure|Animation|Children's|Comedy|Fantasy"]
    films += ["2::Crime, and::Crime|Thriller", "3::Nothing::(no genres listed)", "4::Été (1999)::Drama"]
    old = tmp_path / "ml-1m"
    old.mkdir()
    (old / "ratings.dat").write_text("\n".join(row.replace(",", "::") for row in rows) + "\n")
    (old / "movies.dat").write_text("\n".join(films) + "\n", encoding="latin-1")
    layouts = {"1M": (RawFile(old / "ratings.dat"), RawFile(old / "movies.dat"))}
    layouts["CRLF"] = write(tmp_path / "crlf", RATINGS.replace("\n", "\r\n"), MOVIES.replace("\n", "\r\n"))
    layouts["CR alone"] = write(tmp_path / "cr", RATINGS.replace("\n", "\r"), MOVIES.replace("\n", "\r"))
    layouts["BOM"] = write(tmp_path / "bom", "\ufeff" + RATINGS, "\ufeff" + MOVIES)
    layouts["no last newline"] = write(tmp_path / "cut", RATINGS.rstrip("\n"), MOVIES.rstrip("\n"))
    shuffled = "\n".join(["timestamp,note,userId,rating,movieId"] + [reorder(row) for row in rows]) + "\n"
    layouts["other columns"] = write(tmp_path / "columns", shuffled)
    for name in ("ratings.csv", "movies.csv"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / "csv" / name).read_bytes()))
    layouts["gz"] = (RawFile(tmp_path / "ratings.csv.gz"), RawFile(tmp_path / "movies.csv.gz"))
    with zipfile.ZipFile(tmp_path / "ml.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(old / "ratings.dat", "ml-1m/ratings.dat")
        archive.write(old / "movies.dat", "ml-1m/movies.dat")
        archive.writestr("__MACOSX/ml-1m/movies.dat", "resource fork")
    names = (("ratings.csv", "ratings.dat"), ("movies.csv", "movies.dat"))
    layouts["zip"] = (zip_member(tmp_path / "ml.zip", names[0]), zip_member(tmp_path / "ml.zip", names[1]))
    for name, files in layouts.items():
        dataset, report = prepare_movielens(*files, EVERYTHING)
        assert same(dataset, expected), name
        assert report.bad_rows == 0, name


def test_a_comma_does_not_separate_where_colons_do(tmp_path: Path) -> None:
    _, movies = write(tmp_path)
    old = tmp_path / "ratings.dat"
    old.write_text("7::1::4.0::1500000000\n7,2,2.5,1500000001\n")
    with pytest.raises(DataError, match=r"ratings\.dat:2: expected 4 fields userId::movieId::rating::timestamp, got 1"):
        prepare_movielens(RawFile(old), movies, EVERYTHING)


def reorder(row: str) -> str:
    user, movie, rating, timestamp = row.split(",")
    return f"{timestamp},hi,{user},{rating},{movie}"


BAD_RATINGS = {
    "text for a user": ("x7,1,4.0,1500000000", "whole number .* for userId, got 'x7'"),
    "a decimal movie": ("7,1.5,4.0,1500000000", "whole number .* for movieId, got '1.5'"),
    "a negative user": ("-7,1,4.0,1500000000", "whole number .* for userId, got '-7'"),
    "text for a rating": ("7,1,good,1500000000", "rating from 0.5 to 5.0, got 'good'"),
    "no rating": ("7,1,,1500000000", "rating from 0.5 to 5.0, got ''"),
    "NaN": ("7,1,NaN,1500000000", "rating from 0.5 to 5.0, got 'NaN'"),
    "infinity": ("7,1,inf,1500000000", "rating from 0.5 to 5.0, got 'inf'"),
    "too many stars": ("7,1,50,1500000000", "rating from 0.5 to 5.0, got '50'"),
    "a date for a timestamp": ("7,1,4.0,2015-01-01", "seconds since 1970, got '2015-01-01'"),
    "a cut line": ("7,1,4.", "4 fields userId,movieId,rating,timestamp, got 3"),
    "a field too many": ("7,1,4.0,1500000000,5", "4 fields .*, got 5"),
    "an unknown movie": ("7,99,4.0,1500000000", "movie of the movies file, got the unknown movieId 99"),
    "a huge id": ("99999999999,1,4.0,1500000000", "whole number .* got '99999999999'"),
    "an id above 2**63": ("9223372036854775815,1,4.0,1500000000", "whole number .* got '9223372036854775815'"),
    "an id above 2**64": ("7,18446744073709551617,4.0,1500000000", "whole number .* got '18446744073709551617'"),
    "a time above 2**63": ("7,1,4.0,9223372036854775815", "seconds since 1970, got '9223372036854775815'"),
    "an open quote": ('7,"1,4.0,1500000000', "4 fields .*, got 2"),
    "a NUL": ("7,\x001,4.0,1500000000", "whole number .* for movieId"),
}


BAD_MOVIES = {
    "a cut line": ("5,Unfinished", "3 fields movieId,title,genres, got 2"),
    "text for an id": ("five,Film,Drama", "whole number .* for movieId, got 'five'"),
    "an id twice": ("2,Again,Drama", "each movieId once, got 2 as in line 3"),
}


@pytest.mark.parametrize("name", BAD_RATINGS)
def test_bad_ratings_are_named_by_line(name: str, tmp_path: Path) -> None:
    row, expected = BAD_RATINGS[name]
    lines = RATINGS.splitlines()
    spoilt = "\n".join([*lines[:3], row, *lines[3:]]) + "\n"
    with pytest.raises(DataError, match=rf"ratings\.csv:4: expected .*{expected}"):
        prepare(tmp_path, spoilt)
    clean, _ = prepare(tmp_path)
    dataset, report = prepare(tmp_path, spoilt, options=replace(EVERYTHING, skip_bad=1))
    assert report.bad_rows == 1
    assert len(report.bad_examples) == 1
    assert same(dataset, clean)


def test_bad_rows_past_the_allowance_stop_the_work(tmp_path: Path) -> None:
    spoilt = RATINGS + "7,99,4.0,1\n7,98,4.0,1\n7,97,4.0,1\n"
    with pytest.raises(DataError, match=r"ratings\.csv:9: .*bad row 3, skip_bad is 2"):
        prepare(tmp_path, spoilt, options=replace(EVERYTHING, skip_bad=2))


@pytest.mark.parametrize("name", BAD_MOVIES)
def test_bad_movies_are_named_by_line(name: str, tmp_path: Path) -> None:
    row, expected = BAD_MOVIES[name]
    with pytest.raises(DataError, match=rf"movies\.csv:6: expected .*{expected}"):
        prepare(tmp_path, movies=MOVIES + row + "\n")
    _, report = prepare(tmp_path, movies=MOVIES + row + "\n", options=replace(EVERYTHING, skip_bad=1))
    assert report.bad_rows == 1


def test_wrong_encoding_is_named_by_line_and_byte(tmp_path: Path) -> None:
    ratings, movies = write(tmp_path)
    movies.path.write_text(MOVIES, encoding="latin-1")
    with pytest.raises(DataError, match=r"movies\.csv:5: expected utf-8 text, got byte 0xc9 at column 3"):
        prepare_movielens(ratings, movies, EVERYTHING)
    dataset, _ = prepare_movielens(ratings, movies, replace(EVERYTHING, encoding="latin-1"))
    assert len(dataset.rounds) == 4
    with pytest.raises(ConfigError, match="encoding such as utf-8"):
        MovieLensOptions(encoding="utf-16")
    ratings.path.write_text(RATINGS, encoding="utf-16")
    with pytest.raises(DataError, match=r"ratings\.csv:1: expected utf-8 text, got byte 0xff"):
        prepare_movielens(ratings, movies, replace(EVERYTHING, skip_bad=100))


@pytest.mark.parametrize(
    ("ratings", "movies", "sentence"),
    [
        ("", MOVIES, r"ratings\.csv:1: expected userId,movieId,rating,timestamp, the file is empty"),
        (RATINGS, "", r"movies\.csv:1: expected movieId,title,genres, the file is empty"),
        ("userId,movieId,rating,timestamp\n", MOVIES, "expected ratings below the header"),
        (RATINGS, "movieId,title,genres\n", "expected movies below the header"),
        (RATINGS.replace("rating,", "stars,"), MOVIES, r"ratings\.csv:1: .*missing rating"),
        (RATINGS, MOVIES.replace("genres", "kind"), r"movies\.csv:1: .*missing genres"),
        (MOVIES, RATINGS, r"movies\.csv:1: .*missing title, genres"),
        (RATINGS.replace(",", "\r", 1), MOVIES, r"ratings\.csv:1: expected comma-separated fields"),
    ],
)
def test_empty_and_foreign_files_are_refused(ratings: str, movies: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=sentence):
        prepare(tmp_path, ratings, movies)


def test_lines_that_end_in_a_return_alone_keep_their_numbers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ratings\.csv:7: .*'bad'"):
        prepare(tmp_path, (RATINGS + "1,1,bad,1\n").replace("\n", "\r"))


def spoil(text: bytes, generator: np.random.Generator) -> bytes:
    """Two mishaps anywhere in the file."""
    for _ in range(2):
        place = int(generator.integers(len(text)))
        letters = (b"\r", b"\n", b",", b'"', b"\x00", b"\xff", b"-", b".", b"9" * 20, b" ", b"e", b"::", b"\r\n", b"")
        piece = letters[int(generator.integers(len(letters)))] or generator.bytes(3)
        after = place + int(generator.integers(0, 4))
        text = text[:place] + piece + text[after:] if generator.random() < 0.9 else text[:place]
        if not text:
            break
    return text


def outcome(files: tuple[RawFile, RawFile], options: MovieLensOptions) -> tuple[str, Any]:
    """The sentence of a refusal, or what was read with the numbers of its report."""
    try:
        dataset, report = prepare_movielens(*files, options)
    except DataError as error:
        return "refused", str(error)
    return "read", (report, [array.tolist() for array in (dataset.arms, dataset.arm_ids, dataset.round_ids)])


def attack(tmp_path: Path, tried: int) -> tuple[int, int, int]:
    """Spoilt raw files: refused, read with rows skipped and said, or read whole; line by line says the same."""
    generator, counts = stream(0, "spoilt csv"), {"refused": 0, "said": 0, "read": 0}
    for number in range(tried):
        ends = ("\n", "\r\n", "\r")[number % 3]
        files = write(tmp_path, RATINGS.replace("\n", ends), MOVIES.replace("\n", ends))
        spoilt = files[number % 5 == 0].path
        spoilt.write_bytes(spoil(spoilt.read_bytes(), generator))
        options = replace(EVERYTHING, skip_bad=2 * (number % 2))
        fast = outcome(files, options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(movielens_files, "_parse_whole", lambda *_: None)
            assert outcome(files, options) == fast, spoilt.read_bytes()
        skipped = fast[0] == "read" and fast[1][0].bad_rows
        counts["said" if skipped else fast[0]] += 1
    return counts["refused"], counts["said"], counts["read"]


def test_spoilt_files_are_refused_or_read_as_line_by_line(tmp_path: Path) -> None:
    refused, said, _ = attack(tmp_path, 120)
    assert refused > 30
    assert said > 10


@pytest.mark.soak
def test_thousands_of_spoilt_files_are_refused_or_read_as_line_by_line(
    tmp_path: Path, report_counts: Callable[..., None]
) -> None:
    refused, said, read = attack(tmp_path, 3000)
    report_counts("spoilt ratings and movies", tried=3000, refused=refused, rows_skipped_and_said=said, read_whole=read)


def test_line_numbers_hold_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(movielens_files, "line_chunks", partial(line_chunks, chunk_bytes=64))
    many = RATINGS + "".join(f"{user},1,3.5,15000000{user}\n" for user in range(10, 60))
    whole, _ = prepare(tmp_path, many)
    assert len(whole.arms) == 52
    with pytest.raises(DataError, match=r"ratings\.csv:57: .*'bad'"):
        prepare(tmp_path, many + "1,1,bad,1\n")


@settings(max_examples=30, deadline=None)
@given(lines=st.lists(st.text("ab,é", max_size=9), max_size=30), size=st.integers(1, 40), end=st.booleans())
def test_chunks_are_whole_lines_with_their_numbers(
    lines: list[str], size: int, end: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("chunks") / "lines"
    path.write_bytes("\n".join(lines).encode() + (b"\n" if end else b""))
    found = [pair for chunk in line_chunks(RawFile(path), chunk_bytes=size) for pair in chunk.lines()]
    assert found == [(number, line.encode()) for number, line in enumerate(lines, 1) if line.strip()]


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(1, 6), st.integers(1, 4), st.integers(1, 10), st.integers(0, 50)), min_size=1, max_size=40
    )
)
def test_slow_and_fast_reading_agree(
    rows: list[tuple[int, int, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("paths")
    text = "userId,movieId,rating,timestamp\n" + "".join(f"{u},{m},{r / 2},{t}\n" for u, m, r, t in rows)
    fast, fast_report = prepare(folder, text)
    slow, slow_report = prepare(folder, text + "\n1,1,broken,1\n", options=replace(EVERYTHING, skip_bad=1))
    assert same(fast, slow)
    assert fast_report.duplicates == slow_report.duplicates
    latest: dict[tuple[int, int], tuple[int, float]] = {}
    for user, movie, half_stars, moment in rows:
        if (user, movie) not in latest or moment >= latest[user, movie][0]:
            latest[user, movie] = (moment, half_stars / 2)
    comedy = {user: stars for (user, movie), (_, stars) in latest.items() if movie == 1}
    found = fast.arms[:, GENRES.index("Comedy")].tolist()
    assert found == [comedy.get(user, 0.0) for user in fast.arm_ids.tolist()]
    assert fast_report.duplicates == len(rows) - len(latest)


def test_archives_that_point_outside_or_explode_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "climb.zip", "w") as archive:
        archive.writestr("ratings.csv", RATINGS)
        archive.writestr("../movies.csv", MOVIES)
    with pytest.raises(DataError, match="points outside the archive"):
        zip_member(tmp_path / "climb.zip", ("ratings.csv",))
    line = b"7,1,4.0,1500000000" + b" " * 2**20 + b"\n"
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ratings.csv", line * 120)
    with pytest.raises(DataError, match="at most 200 times the archive's own size"):
        zip_member(tmp_path / "bomb.zip", ("ratings.csv",))
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(line * 120, 6))
    with pytest.raises(DataError, match="at most 200 times the archive's own size"):
        list(line_chunks(RawFile(tmp_path / "bomb.csv.gz")))
    (tmp_path / "endless").write_bytes(b"x" * (70 * 2**20))
    with pytest.raises(DataError, match="without a line end"):
        list(line_chunks(RawFile(tmp_path / "endless")))


def test_damaged_and_odd_archives_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found nothing"):
        prepare_movielens(RawFile(tmp_path / "ratings.csv"), RawFile(tmp_path / "movies.csv"), EVERYTHING)
    (tmp_path / "page.zip").write_text("<html>")
    with pytest.raises(DataError, match="expected a zip archive"):
        zip_member(tmp_path / "page.zip", ("ratings.csv",))
    packed = gzip.compress(RATINGS.encode() * 50)
    (tmp_path / "half.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="expected a complete readable file"):
        list(line_chunks(RawFile(tmp_path / "half.csv.gz")))
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a/ratings.csv", RATINGS)
        archive.writestr("b/ratings.csv", RATINGS)
    with pytest.raises(DataError, match=r"expected one ratings\.csv, got 2"):
        zip_member(tmp_path / "two.zip", ("ratings.csv",))
    with pytest.raises(DataError, match=r"expected tags\.csv inside, got a/ratings\.csv"):
        zip_member(tmp_path / "two.zip", ("tags.csv",))


def test_dates_as_text_and_as_seconds() -> None:
    assert seconds_since_1970("2015-01-01") == 1_420_070_400
    assert seconds_since_1970("1420070400") == 1_420_070_400
    assert seconds_since_1970("2015-01-01T01:00:00+01:00") == 1_420_070_400
    with pytest.raises(ConfigError, match="expected a date"):
        seconds_since_1970("new year")
    with pytest.raises(ConfigError, match=r"^before: expected a date later than"):
        MovieLensOptions(before=5)


def test_command_writes_equal_bytes_without_pickle(tmp_path: Path) -> None:
    ratings, movies = write(tmp_path)
    words = ["prepare", "movielens", "--ratings", ratings.path, "--movies", movies.path, "--after", 0]
    for name in ("one.npz", "two.npz"):
        done = command(*words, "--min-ratings", 1, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
    assert "2 arms (users), 3 rounds (movies), 20 features" in done.stdout
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"arms", "rounds", "arm_ids", "round_ids", "features", "counts"}
    assert len(load_dataset(tmp_path / "one.npz").arms) == 2


def test_command_leaves_nothing_behind_on_bad_data(tmp_path: Path) -> None:
    ratings, movies = write(tmp_path, RATINGS + "7,1,good,1\n")
    words = ["prepare", "movielens", "--ratings", ratings.path, "--movies", movies.path, "--after", 0]
    done = command(*words, "--min-ratings", 1, "--out", tmp_path / "sub" / "out.npz")
    assert done.returncode == 65
    assert "ratings.csv:7: expected a rating from 0.5 to 5.0, got 'good'" in done.stderr
    assert not list(tmp_path.rglob("*.npz*"))
    done = command(*words, "--min-ratings", 1, "--skip-bad", 1, "--out", tmp_path / "out.npz")
    assert done.returncode == 0
    assert "skipped 1 bad rows" in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "x.csv"], "expected a file named .npz"),
        (["--out", "x.npz"], "expected --ratings FILE and --movies FILE"),
        (["--out", "x.npz", "--zip", "a.zip", "--ratings", "r.csv"], "got both"),
        (["--out", "x.npz", "--zip", "a.zip", "--after", "someday"], "expected a date"),
    ],
)
def test_command_refuses_what_cannot_work(words: list[str], sentence: str) -> None:
    done = command("prepare", "movielens", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
