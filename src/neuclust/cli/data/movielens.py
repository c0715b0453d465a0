"""`neuclust data prepare movielens` and `replay`: MovieLens ratings as profiles, and as recorded rounds."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuclust.cli.command import option
from neuclust.cli.data import prepare
from neuclust.errors import ConfigError

if TYPE_CHECKING:
    from neuclust.data.movielens import MovieLensOptions, MovieLensReport
    from neuclust.data.raw import RawFile

RATING_NAMES, MOVIE_NAMES = ("ratings.csv", "ratings.dat"), ("movies.csv", "movies.dat")


class Arms(enum.StrEnum):
    """What is chosen: the paper's users for a movie, or movies for a user."""

    USERS = "users"
    MOVIES = "movies"


class Split(enum.StrEnum):
    """How a user's ratings are divided between the profile and the replay."""

    RANDOM = "random"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class RatingFiles:
    """Ratings and movies, as two files or as the published archive."""

    ratings: Path | None = option(
        None, "ratings.csv, .csv.gz or .dat, or the .zip as published.", "FILE", heading=prepare.RAW
    )
    movies: Path | None = option(None, "movies.csv, .csv.gz or .dat.", "FILE")
    archive: Path | None = option(None, "Both, in the .zip as published.", "FILE.zip", "--zip")
    encoding: str = option("auto", "auto: utf-8 for .csv, latin-1 for .dat.")

    def opened(self) -> tuple[RawFile, RawFile]:
        """The ratings and the movies."""
        import zipfile

        from neuclust.data.raw import RawFile, zip_member

        archive = self.archive
        if archive is not None and (self.ratings is not None or self.movies is not None):
            raise ConfigError("expected --zip or --ratings with --movies, got both")
        if archive is None and self.ratings is not None and self.movies is None and zipfile.is_zipfile(self.ratings):
            archive = self.ratings
        if archive is not None:
            return zip_member(archive, RATING_NAMES), zip_member(archive, MOVIE_NAMES)
        if self.ratings is None or self.movies is None:
            raise ConfigError("expected --ratings FILE and --movies FILE, or --zip FILE with both inside")
        return RawFile(self.ratings), RawFile(self.movies)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovieLensCommand:
    out: Path = prepare.out_option()
    files: RatingFiles
    arms: Arms = option(Arms.USERS, "users for a movie (the paper), or movies for a user.", heading=prepare.SHAPE)
    rounds: int | None = prepare.rounds_option()
    skip_rounds: int | None = option(
        None, "Leave the first N of the list out. Default: 1 with users (the paper), 0 with movies.", "N", min=0
    )
    after: str = option("2015-01-01", prepare.AFTER, "DATE", heading=prepare.FILTERS)
    before: str | None = prepare.before_option()
    min_ratings: int = option(200, "Users with at least N ratings left.", "N", min=0)
    min_movie_ratings: int | None = option(
        None, "Movies with at least N ratings left. Default: 1 as rounds, 20 as arms.", "N", min=0
    )
    skip_bad: int = prepare.skip_option()


def movielens(options: MovieLensCommand) -> None:
    """MovieLens 1M, 10M, 20M, 25M, 32M, latest or latest-small."""
    from neuclust.data.movielens import prepare_movielens

    prepare.check_out(options.out)
    arms, least, skip = options.arms, options.min_movie_ratings, options.skip_rounds
    chosen = replace(_reading(options), arms=arms.value, min_movie_ratings=least, skip_rounds=skip)
    ratings, movies = options.files.opened()
    dataset, report = prepare.write_prepared(
        options.out, ratings, lambda progress: prepare_movielens(ratings, movies, chosen, progress)
    )
    _echo_ratings(report)
    prepare.echo_written(options.out, dataset, arms, Arms.MOVIES if arms is Arms.USERS else Arms.USERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCommand:
    out: Path = prepare.out_option()
    files: RatingFiles
    split: Split = option(
        Split.RANDOM, "Profiles from a random half of a user's ratings, or the earlier one.", heading=prepare.SHAPE
    )
    shrink: float = option(5.0, "Ratings at the user's mean that every entry starts with.", "C", min=0)
    threshold: float = option(4.0, "Ratings from here on are a success.", "STARS")
    rounds: int | None = prepare.rounds_option()
    seed: int = option(0, "Deals the random half and the order of rounds.", min=0)
    after: str = option("1970-01-01", prepare.AFTER, "DATE", heading=prepare.FILTERS)
    before: str | None = prepare.before_option()
    min_ratings: int = option(20, "Users with at least N ratings left.", "N", min=0)
    min_arms: int = option(20, "Movies that at least N users rated in the replay half.", "N", min=1)
    skip_bad: int = prepare.skip_option()


def replay(options: ReplayCommand) -> None:
    """Real MovieLens ratings to play back: the users who rated a movie are its arms, liking it is the reward."""
    from neuclust.data.replay import ReplayOptions, prepare_replay

    prepare.check_out(options.out)
    chosen = ReplayOptions(
        _reading(options), options.split.value, options.shrink, options.threshold, options.min_arms, options.seed
    )
    ratings, movies = options.files.opened()
    dataset, report = prepare.write_prepared(
        options.out, ratings, lambda progress: prepare_replay(ratings, movies, chosen, progress)
    )
    _echo_ratings(report.reading)
    fewest, median, most = report.arms_per_round
    typer.echo(
        f"{report.profile_ratings:,} ratings are behind the profiles; {report.replayed_ratings:,} others are played "
        f"back, {report.liked:.1%} of them liked, by {fewest:,} to {most:,} users per round (median {median:,.0f})"
    )
    prepare.echo_written(options.out, dataset, "users", "movies")


def _reading(options: MovieLensCommand | ReplayCommand) -> MovieLensOptions:
    """Which rows are read and kept, as both commands say it."""
    from neuclust.data.movielens import MovieLensOptions
    from neuclust.data.raw import seconds_since_1970

    return MovieLensOptions(
        after=seconds_since_1970(options.after),
        before=None if options.before is None else seconds_since_1970(options.before),
        min_ratings=options.min_ratings,
        rounds=options.rounds,
        skip_bad=options.skip_bad,
        encoding=options.files.encoding,
    )


def _echo_ratings(report: MovieLensReport) -> None:
    """What became of the rows of a ratings file."""
    typer.echo(
        f"read {report.ratings_read:,} ratings: {report.outside_dates:,} outside the dates, "
        f"{report.duplicates:,} replaced by a later one of the same user and movie, {report.ratings_kept:,} kept"
    )
    prepare.echo_bad(report.bad_rows, report.bad_examples)
    if report.off_grid:
        typer.echo(f"{report.off_grid:,} of the ratings kept are no whole number of half stars; they count as they are")
    if report.movies_without_listed_genre:
        typer.echo(f"{report.movies_without_listed_genre:,} movies have no genre of the list and are not used")
    if report.foreign_genres:
        named = ", ".join(f"{name} ({n})" for name, n in list(report.foreign_genres.items())[:8])
        typer.echo(f"genres outside the list, ignored: {named}")
