"""`neuclust data prepare replay`: real ratings as recorded rounds."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from neuclust.cli.data.prepare import (
    FILTERS,
    SHAPE,
    After,
    Archive,
    Before,
    Encoding,
    MinRatings,
    Movies,
    Out,
    Ratings,
    Rounds,
    SkipBad,
    check_out,
    echo_ratings,
    echo_written,
    movielens_files,
)
from neuclust.cli.progress import bar
from neuclust.errors import writing


class Split(enum.StrEnum):
    """How a user's ratings are divided between the profile and the replay."""

    RANDOM = "random"
    TIME = "time"


def replay(
    out: Out,
    ratings: Ratings = None,
    movies: Movies = None,
    archive: Archive = None,
    encoding: Encoding = "auto",
    split: Annotated[
        Split,
        typer.Option(
            help="Profiles from a random half of a user's ratings, or the earlier one.", rich_help_panel=SHAPE
        ),
    ] = Split.RANDOM,
    shrink: Annotated[
        float,
        typer.Option(
            metavar="C", min=0, help="Ratings at the user's mean that every entry starts with.", rich_help_panel=SHAPE
        ),
    ] = 5.0,
    threshold: Annotated[
        float, typer.Option(metavar="STARS", help="Ratings from here on are a success.", rich_help_panel=SHAPE)
    ] = 4.0,
    rounds: Rounds = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Deals the random half and the order of rounds.", rich_help_panel=SHAPE)
    ] = 0,
    after: After = "1970-01-01",
    before: Before = None,
    min_ratings: MinRatings = 20,
    min_arms: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Movies that at least N users rated in the replay half.", rich_help_panel=FILTERS
        ),
    ] = 20,
    skip_bad: SkipBad = 0,
) -> None:
    """Real MovieLens ratings to play back: the users who rated a movie are its arms, liking it is the reward."""
    from neuclust.data.movielens import MovieLensOptions
    from neuclust.data.raw import seconds_since_1970
    from neuclust.data.replay import ReplayOptions, prepare_replay

    check_out(out)
    reading = MovieLensOptions(
        after=seconds_since_1970(after),
        before=None if before is None else seconds_since_1970(before),
        min_ratings=min_ratings,
        rounds=rounds,
        skip_bad=skip_bad,
        encoding=encoding,
    )
    options = ReplayOptions(reading, split.value, shrink, threshold, min_arms, seed)
    rating_file, movie_file = movielens_files(ratings, movies, archive)
    with bar(rating_file.label, rating_file.size) as show:
        dataset, report = prepare_replay(rating_file, movie_file, options, lambda done: show(done, None))
    with writing(out):
        dataset.save(out)
    echo_ratings(report.reading)
    fewest, median, most = report.arms_a_round
    typer.echo(
        f"{report.profile_ratings:,} ratings are behind the profiles; {report.replayed_ratings:,} others are played "
        f"back, {report.liked:.1%} of them liked, by {fewest:,} to {most:,} users a round (median {median:,.0f})"
    )
    echo_written(out, dataset, "users", "movies")
