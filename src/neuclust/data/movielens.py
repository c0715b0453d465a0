"""MovieLens from the raw files to the prepared problem: ratings and movies in, arms and rounds out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from neuclust.data.dataset import ProfileDataset, profile_dataset
from neuclust.data.movielens_files import BEST_RATING, GRID, check_encoding, read_movies, read_ratings
from neuclust.data.options import Codes, Floats, check_choice, check_dates, check_least, feature_sums, ratio
from neuclust.data.raw import BadRows, Progress, RawFile
from neuclust.errors import DataError

GENRES = (
    *("Action", "Adventure", "Animation", "Children", "Comedy", "Crime", "Documentary", "Drama", "Fantasy"),
    *("Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western", "IMAX"),
    "(no genres listed)",
)
START_OF_2015 = 1_420_070_400  # seconds, UTC


@dataclass(frozen=True, slots=True)
class MovieLensOptions:
    """The paper's filters by default; dates are seconds since 1970 and both ends are strict."""

    arms: Literal["users", "movies"] = "users"
    after: int = START_OF_2015
    before: int | None = None
    min_ratings: int = 200  # of a user, after the dates and the duplicates
    min_movie_ratings: int | None = None  # of a movie that is dealt or offered; None: 1 as rounds, 20 as arms
    rounds: int | None = None  # at most; None: all there are
    skip_rounds: int | None = None  # None: 1 with arms=users as in the paper, else 0
    skip_bad: int = 0
    encoding: str = "auto"

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        check_choice(self, "arms", "users", "movies")
        check_dates(self.after, self.before)
        check_least(self, min_ratings=0, min_movie_ratings=0, rounds=1, skip_rounds=0, skip_bad=0)


@dataclass(frozen=True, slots=True)
class MovieLensReport:
    """How many rows were read, dropped and kept."""

    ratings_read: int
    bad_rows: int
    bad_examples: tuple[str, ...]
    outside_dates: int
    duplicates: int
    ratings_kept: int
    off_grid: int  # of them, no whole number of half stars
    users: int
    movies: int
    movies_without_listed_genre: int
    foreign_genres: dict[str, int]


@dataclass(frozen=True, slots=True)
class KeptRatings:
    """Ratings that passed every filter, with users and movies coded by order of appearance."""

    users: Codes  # (U,) ids
    movies: Codes  # (M,) ids
    user: Codes  # (n,) codes
    movie: Codes  # (n,) codes
    rating: Floats  # (n,)
    timestamp: Codes  # (n,) seconds


def prepare_movielens(
    ratings: RawFile, movies: RawFile, options: MovieLensOptions, progress: Progress | None = None
) -> tuple[ProfileDataset, MovieLensReport]:
    """Read, check and filter the raw files, and lay out the arms and rounds `options` asks for."""
    kept, genres, report = read_kept(ratings, movies, options, progress)
    lay_out = _arms_are_users if options.arms == "users" else _arms_are_movies
    return lay_out(kept, genres, options), report


def read_kept(
    ratings: RawFile, movies: RawFile, options: MovieLensOptions, progress: Progress | None = None
) -> tuple[KeptRatings, Floats, MovieLensReport]:
    """Ratings within the dates of users with enough of them, the genres (M, 20) of their movies, and a report."""
    bad = BadRows(options.skip_bad)
    genre_fields = read_movies(movies, options.encoding, bad)
    dates = (options.after, options.before)
    rated, read = read_ratings(ratings, genre_fields, dates, options.encoding, bad, progress)
    kept, duplicates = _filter_users(rated, options)
    genres = np.array([genre_indicator(genre_fields[movie]) for movie in kept.movies.tolist()])
    report = MovieLensReport(
        ratings_read=read,
        bad_rows=bad.count,
        bad_examples=tuple(bad.examples),
        outside_dates=read - rated.height,
        duplicates=duplicates,
        ratings_kept=len(kept.rating),
        off_grid=int(np.count_nonzero(kept.rating % GRID)),
        users=len(kept.users),
        movies=len(kept.movies),
        movies_without_listed_genre=int((genres.sum(1) == 0).sum()),
        foreign_genres=foreign_genres(genre_fields[movie] for movie in kept.movies.tolist()),
    )
    return kept, genres, report


def genre_indicator(field: str) -> Floats:
    """1 where the genre's name occurs in the field (so `Children's` is Children), (20,); empty: no genres listed."""
    text = field.strip() or GENRES[-1]
    return np.array([float(name in text) for name in GENRES])


def foreign_genres(fields: Iterator[str]) -> dict[str, int]:
    """How many movies carry each genre that is not on the list, most frequent first."""
    names = Counter(name for field in fields for name in set(field.split("|")) if name.strip())
    return {name: n for name, n in names.most_common() if not any(genre in name for genre in GENRES)}


def genre_means(
    user: Codes, movie: Codes, rating: Floats, genres: Floats, n_users: int | None = None
) -> tuple[Floats, Floats]:
    """x_{u,g} = mean rating of u over movies of genre g (0 if none), and the counts behind it; (U, d)."""
    sums, counts = feature_sums(user, movie, rating, genres, int(user.max()) + 1 if n_users is None else n_users)
    return ratio(sums, counts), counts


def _filter_users(rated: pl.DataFrame, options: MovieLensOptions) -> tuple[KeptRatings, int]:
    """The latest rating of each user and movie, of users with enough; and how many were earlier ones."""
    latest = _latest(rated)
    frame = latest.filter(pl.len().over("userId") >= options.min_ratings)
    if frame.is_empty():
        what = f"users with at least {options.min_ratings} ratings within the dates"
        raise DataError(f"expected {what}, got none among {rated.height:,}; lower it", field="min_ratings")
    users, user = _codes(frame["userId"])
    movies, movie = _codes(frame["movieId"])
    rating, timestamp = frame["rating"].to_numpy().astype(np.float64), frame["timestamp"].to_numpy()
    return KeptRatings(users, movies, user, movie, rating, timestamp), rated.height - latest.height


def _latest(rated: pl.DataFrame) -> pl.DataFrame:
    """One row per user and movie: the latest by timestamp, the later row where those tie; file order kept."""
    key = (rated["userId"].cast(pl.Int64) * 2**31 + rated["movieId"]).to_numpy()
    if (np.diff(key) > 0).all():  # sorted by user and movie, as published: no row can repeat
        return rated
    order = np.argsort(key, kind="stable")
    repeats = key[order[1:]] == key[order[:-1]]
    rows = order[np.append(repeats, False) | np.insert(repeats, 0, False)]  # of all users and movies met twice
    rows = rows[np.lexsort((rows, rated["timestamp"].to_numpy()[rows], key[rows]))]
    earlier = rows[:-1][key[rows[:-1]] == key[rows[1:]]]
    kept = np.ones(rated.height, dtype=bool)
    kept[earlier] = False
    return rated.filter(pl.Series(kept))


def _codes(ids: pl.Series) -> tuple[Codes, Codes]:
    """Distinct ids in order of appearance, and each row's index into them."""
    distinct = ids.unique(maintain_order=True)
    codes = ids.replace_strict(distinct, pl.arange(0, len(distinct), eager=True), return_dtype=pl.Int64)
    return distinct.to_numpy().astype(np.int64), codes.to_numpy()


def _arms_are_users(kept: KeptRatings, genres: Floats, options: MovieLensOptions) -> ProfileDataset:
    """Which users for this movie, as in the paper? Arms are users' genre means, rounds movies' genre indicators."""
    means, counts = genre_means(kept.user, kept.movie, kept.rating, genres)
    rated = np.bincount(kept.movie, minlength=len(genres))
    usable = (genres.sum(1) > 0) & (rated >= (options.min_movie_ratings or 0))
    dealt = _dealt(usable, options.rounds, 1 if options.skip_rounds is None else options.skip_rounds)
    return profile_dataset("movielens", GENRES, (kept.users, means), (kept.movies[dealt], genres[dealt]), counts)


def _arms_are_movies(kept: KeptRatings, genres: Floats, options: MovieLensOptions) -> ProfileDataset:
    """Which movies for this user? arms_{m,g} = 1[g in m] · (mean rating of m) / 5, rounds are users' genre means."""
    means, _ = genre_means(kept.user, kept.movie, kept.rating, genres)
    rated = np.bincount(kept.movie, minlength=len(genres))
    quality = np.bincount(kept.movie, kept.rating, minlength=len(genres)) / rated / BEST_RATING
    enough = 20 if options.min_movie_ratings is None else options.min_movie_ratings
    offered = np.flatnonzero((genres.sum(1) > 0) & (rated >= enough))
    if offered.size == 0:
        raise DataError(f"expected movies with at least {enough} ratings; lower it", field="min_movie_ratings")
    dealt = _dealt(means.sum(1) > 0, options.rounds, options.skip_rounds or 0)
    arms, counts = ((genres * factor[:, None])[offered] for factor in (quality, rated))
    return profile_dataset("movielens", GENRES, (kept.movies[offered], arms), (kept.users[dealt], means[dealt]), counts)


def _dealt(usable: NDArray[np.bool_], rounds: int | None, skip: int) -> Codes:
    """Rows dealt as rounds: the usable ones from index `skip` on."""
    rows = skip + np.flatnonzero(usable[skip:])
    if rows.size == 0:
        raise DataError(f"expected rounds after the first {skip}, got none; lower it", field="skip_rounds")
    return rows[:rounds]
