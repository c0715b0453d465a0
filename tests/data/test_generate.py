"""Generated raw files: the publishers' layouts, exact sizes, equal bytes, and they prepare without a bad row."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command_line import completed

from neuclust.data import generate
from neuclust.data.generate import generate_movielens, generate_yelp
from neuclust.data.movielens import MovieLensOptions, prepare_movielens
from neuclust.data.raw import RawFile
from neuclust.data.yelp import YelpOptions, prepare_yelp
from neuclust.errors import ConfigError


def test_movielens_has_the_published_layout(tmp_path: Path) -> None:
    generate_movielens(30_000, tmp_path)
    ratings, movies = pd.read_csv(tmp_path / "ratings.csv"), pd.read_csv(tmp_path / "movies.csv")
    assert ratings.columns.tolist() == ["userId", "movieId", "rating", "timestamp"]
    assert movies.columns.tolist() == ["movieId", "title", "genres"]
    assert len(ratings) == 30_000
    assert not ratings.duplicated(["userId", "movieId"]).any()
    assert ratings.equals(ratings.sort_values(["userId", "movieId"], ignore_index=True))
    assert ((ratings.rating * 2) % 1 == 0).all()
    assert ratings.rating.between(0.5, 5).all()
    assert ratings.movieId.isin(movies.movieId).all()
    assert movies.title.str.contains('"').any()  # titles that need quoting
    assert {path.name for path in tmp_path.iterdir()} == {"ratings.csv", "movies.csv"}


def test_movielens_prepares_with_the_papers_filters(tmp_path: Path) -> None:
    generate_movielens(60_000, tmp_path)
    files = RawFile(tmp_path / "ratings.csv"), RawFile(tmp_path / "movies.csv")
    dataset, report = prepare_movielens(*files, MovieLensOptions(min_ratings=100))
    assert report.ratings_read == 60_000
    assert report.bad_rows == report.duplicates == 0
    assert 0 < report.outside_dates < 60_000
    assert len(dataset.arms) > 1


def test_movielens_is_written_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "USERS_PER_BLOCK", 20)
    steps: list[int] = []
    generate_movielens(9_000, tmp_path, progress=steps.append)
    assert len(steps) > 2
    assert steps[-1] == 9_000
    assert pd.read_csv(tmp_path / "ratings.csv").userId.is_monotonic_increasing


def test_yelp_has_the_published_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "REVIEWS_PER_BLOCK", 4_000)
    generate_yelp(10_000, tmp_path, text_length=60)
    reviews = [json.loads(line) for line in (tmp_path / "review.json").read_text("utf-8").splitlines()]
    businesses = [json.loads(line) for line in (tmp_path / "business.json").read_text("utf-8").splitlines()]
    assert len(reviews) == 10_000
    assert list(reviews[0]) == [
        *("review_id", "user_id", "business_id", "stars", "useful", "funny", "cool", "text", "date")
    ]
    assert list(businesses[0]) == [
        *("business_id", "name", "address", "city", "state", "postal_code", "latitude", "longitude"),
        *("stars", "review_count", "is_open", "attributes", "categories", "hours"),
    ]
    assert {review["business_id"] for review in reviews} <= {one["business_id"] for one in businesses}
    assert len({review["review_id"] for review in reviews}) == 10_000
    assert all(len(review["user_id"]) == 22 for review in reviews)
    assert 30 < sum(len(review["text"]) for review in reviews) / 10_000 < 120


def test_yelp_prepares(tmp_path: Path) -> None:
    generate_yelp(20_000, tmp_path, text_length=20)
    files = RawFile(tmp_path / "business.json"), RawFile(tmp_path / "review.json")
    dataset, report = prepare_yelp(*files, YelpOptions(min_term_weight=3.0))
    assert (report.reviews_read, report.bad_rows, report.users) == (20_000, 0, 1000)
    assert "restaurants" in dataset.features
    assert "fast" in dataset.features


def test_equal_seeds_give_equal_files(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate_movielens(3_000, tmp_path / name, seed)
        generate_yelp(500, tmp_path / name, seed)
    for file in ("ratings.csv", "movies.csv", "business.json", "review.json"):
        contents = [(tmp_path / name / file).read_bytes() for name in "abc"]
        assert contents[0] == contents[1]
        assert contents[0] != contents[2]
    dates = [[json.loads(line)["date"] for line in text.splitlines()] for text in contents]
    assert dates[0] != dates[2]  # other reviews, and not only other names


def test_failure_leaves_no_file(tmp_path: Path) -> None:
    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_movielens(1_000, tmp_path, progress=stop)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="at least one rating"):
        generate_movielens(0, tmp_path)
    with pytest.raises(ConfigError, match="at least one review"):
        generate_yelp(0, tmp_path)


def test_command_refuses_a_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here first")
    done = completed("data", "generate", "movielens", "--ratings", 10, "--out", tmp_path / "file" / "sub")
    assert done.returncode == 2
    assert "--out: expected a folder that can be written" in done.stderr
    assert "file is no folder" in done.stderr


def test_commands_write_the_files(tmp_path: Path) -> None:
    for words in (["movielens", "--ratings", "500"], ["yelp", "--reviews", "200"]):
        done = completed("data", "generate", *words, "--out", tmp_path)
        assert done.returncode == 0, done.stderr
        assert "wrote" in done.stdout
    assert len((tmp_path / "ratings.csv").read_text().splitlines()) == 501
    assert len((tmp_path / "review.json").read_text().splitlines()) == 200
