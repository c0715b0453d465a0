"""`neuclust data prepare`: raw files in, one `.npz` out, and a sentence on what became of the rows."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuclust.cli.command import Command
from neuclust.cli.folders import require_parent
from neuclust.cli.progress import bar
from neuclust.errors import ConfigError, writing

if TYPE_CHECKING:
    from neuclust.data.dataset import ProfileDataset
    from neuclust.data.movielens import MovieLensReport
    from neuclust.data.raw import RawFile

app = typer.Typer(help="Turn published raw files into a problem.", no_args_is_help=True)

RAW, FILTERS, SHAPE = "Raw files", "Filters", "The problem"
RATING_NAMES, MOVIE_NAMES = ("ratings.csv", "ratings.dat"), ("movies.csv", "movies.dat")
BUSINESS_NAMES = ("yelp_academic_dataset_business.json", "business.json")
REVIEW_NAMES = ("yelp_academic_dataset_review.json", "review.json")


class Arms(enum.StrEnum):
    """What is chosen: the paper's users for a movie, or movies for a user."""

    USERS = "users"
    MOVIES = "movies"


class UserVector(enum.StrEnum):
    """How a Yelp user's tastes are computed."""

    FIXED = "fixed"
    AUTHORS = "authors"


Out = Annotated[Path, typer.Option("--out", metavar="FILE.npz", help="The prepared problem.")]
Ratings = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="ratings.csv, .csv.gz or .dat, or the .zip as published.", rich_help_panel=RAW),
]
Movies = Annotated[Path | None, typer.Option(metavar="FILE", help="movies.csv, .csv.gz or .dat.", rich_help_panel=RAW)]
Archive = Annotated[
    Path | None,
    typer.Option("--zip", metavar="FILE.zip", help="Both, in the .zip as published.", rich_help_panel=RAW),
]
Encoding = Annotated[str, typer.Option(help="auto: utf-8 for .csv, latin-1 for .dat.", rich_help_panel=RAW)]
Rounds = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="At most N rounds. Default: all.", rich_help_panel=SHAPE)
]
MinRatings = Annotated[
    int, typer.Option(metavar="N", min=0, help="Users with at least N ratings left.", rich_help_panel=FILTERS)
]
After = Annotated[str, typer.Option(metavar="DATE", help="Only what is dated strictly after.", rich_help_panel=FILTERS)]
Before = Annotated[
    str | None, typer.Option(metavar="DATE", help="Only what is dated strictly before.", rich_help_panel=FILTERS)
]
SkipBad = Annotated[
    int,
    typer.Option(metavar="N", min=0, help="Go on past up to N bad rows, and count them.", rich_help_panel=FILTERS),
]


@app.command(cls=Command)
def movielens(
    out: Out,
    ratings: Ratings = None,
    movies: Movies = None,
    archive: Archive = None,
    encoding: Encoding = "auto",
    arms: Annotated[
        Arms,
        typer.Option(help="users for a movie (the paper), or movies for a user.", rich_help_panel=SHAPE),
    ] = Arms.USERS,
    rounds: Rounds = None,
    skip_rounds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Leave the first N of the list out. Default: 1 with users (the paper), 0 with movies.",
            rich_help_panel=SHAPE,
        ),
    ] = None,
    after: After = "2015-01-01",
    before: Before = None,
    min_ratings: MinRatings = 200,
    min_movie_ratings: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Movies with at least N ratings left. Default: 1 as rounds, 20 as arms.",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    skip_bad: SkipBad = 0,
) -> None:
    """MovieLens 1M, 10M, 20M, 25M, 32M, latest or latest-small."""
    from neuclust.data.movielens import MovieLensOptions, prepare_movielens
    from neuclust.data.raw import seconds_since_1970

    check_out(out)
    options = MovieLensOptions(
        arms=arms.value,
        after=seconds_since_1970(after),
        before=None if before is None else seconds_since_1970(before),
        min_ratings=min_ratings,
        min_movie_ratings=min_movie_ratings,
        rounds=rounds,
        skip_rounds=skip_rounds,
        skip_bad=skip_bad,
        encoding=encoding,
    )
    rating_file, movie_file = movielens_files(ratings, movies, archive)
    with bar(rating_file.label, rating_file.size) as show:
        dataset, report = prepare_movielens(rating_file, movie_file, options, lambda done: show(done, None))
    with writing(out):
        dataset.save(out)
    echo_ratings(report)
    echo_written(out, dataset, "users" if arms is Arms.USERS else "movies", "movies" if arms is Arms.USERS else "users")


@app.command(cls=Command)
def yelp(
    out: Out,
    business: Annotated[
        Path | None, typer.Option(metavar="FILE", help="business.json, also .gz.", rich_help_panel=RAW)
    ] = None,
    review: Annotated[
        Path | None, typer.Option(metavar="FILE", help="review.json, also .gz.", rich_help_panel=RAW)
    ] = None,
    tar: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Both, in the .tar or .tgz as published.", rich_help_panel=RAW),
    ] = None,
    user_vector: Annotated[
        UserVector,
        typer.Option(
            help="fixed: mean stars a term; authors: with the bug of their code (docs/data.md).",
            rich_help_panel=SHAPE,
        ),
    ] = UserVector.FIXED,
    rounds: Annotated[
        int,
        typer.Option(
            "--rounds", "--max-users", metavar="N", min=0, help="At most N users; 0: all.", rich_help_panel=SHAPE
        ),
    ] = 1000,
    skip_rounds: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Leave the first N users out (the authors do 1).", rich_help_panel=SHAPE),
    ] = 1,
    min_term_weight: Annotated[
        float,
        typer.Option(
            metavar="W", help="Keep terms whose tf-idf, summed over restaurants, reaches W.", rich_help_panel=SHAPE
        ),
    ] = 50.0,
    city: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only restaurants there; may be repeated.", rich_help_panel=FILTERS),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Only what is dated strictly after.", rich_help_panel=FILTERS),
    ] = None,
    before: Before = None,
    skip_bad: SkipBad = 0,
) -> None:
    """The Yelp Open Dataset: restaurants are arms, users are rounds."""
    from neuclust.data.raw import seconds_since_1970
    from neuclust.data.yelp import YelpOptions, prepare_yelp

    check_out(out)
    options = YelpOptions(
        user_vector=user_vector.value,
        cities=tuple(city or ()),
        after=None if after is None else seconds_since_1970(after),
        before=None if before is None else seconds_since_1970(before),
        min_term_weight=min_term_weight,
        rounds=rounds or None,
        skip_rounds=skip_rounds,
        skip_bad=skip_bad,
    )
    business_file, review_file = _yelp_files(business, review, tar)
    with bar(review_file.label, review_file.size) as show:
        dataset, report = prepare_yelp(business_file, review_file, options, lambda done: show(done, None))
    with writing(out):
        dataset.save(out)
    typer.echo(
        f"read {report.businesses:,} businesses ({report.restaurants:,} restaurants kept) and "
        f"{report.reviews_read:,} reviews ({report.reviews_kept:,} by the {report.users:,} users dealt)"
    )
    echo_bad(report.bad_rows, report.bad_examples)
    echo_written(out, dataset, "restaurants", "users")


def movielens_files(ratings: Path | None, movies: Path | None, archive: Path | None) -> tuple[RawFile, RawFile]:
    import zipfile

    from neuclust.data.raw import RawFile, zip_member

    if archive is not None and (ratings is not None or movies is not None):
        raise ConfigError("expected --zip or --ratings with --movies, got both")
    if archive is None and ratings is not None and movies is None and zipfile.is_zipfile(ratings):
        archive = ratings
    if archive is not None:
        return zip_member(archive, RATING_NAMES), zip_member(archive, MOVIE_NAMES)
    if ratings is None or movies is None:
        raise ConfigError("expected --ratings FILE and --movies FILE, or --zip FILE with both inside")
    return RawFile(ratings), RawFile(movies)


def _yelp_files(business: Path | None, review: Path | None, tar: Path | None) -> tuple[RawFile, RawFile]:
    from neuclust.data.raw import RawFile, tar_member

    if tar is not None and (business is not None or review is not None):
        raise ConfigError("expected --tar or --business with --review, got both")
    if tar is not None:
        return tar_member(tar, BUSINESS_NAMES), tar_member(tar, REVIEW_NAMES)
    if business is None or review is None:
        raise ConfigError("expected --business FILE and --review FILE, or --tar FILE with both inside")
    return RawFile(business), RawFile(review)


def check_out(out: Path) -> None:
    """Refuse what cannot be written, before anything is read."""
    if out.suffix != ".npz":
        raise ConfigError(f"--out: expected a file named .npz, got {out}; raw files are never overwritten")
    require_parent("--out", out)


def echo_ratings(report: MovieLensReport) -> None:
    """What became of the rows of a ratings file."""
    typer.echo(
        f"read {report.ratings_read:,} ratings: {report.outside_dates:,} outside the dates, "
        f"{report.duplicates:,} replaced by a later one of the same user and movie, {report.ratings_kept:,} kept"
    )
    echo_bad(report.bad_rows, report.bad_examples)
    if report.off_grid:
        typer.echo(f"{report.off_grid:,} of the ratings kept are no whole number of half stars; they count as they are")
    if report.movies_without_listed_genre:
        typer.echo(f"{report.movies_without_listed_genre:,} movies have no genre of the list and are not used")
    if report.foreign_genres:
        named = ", ".join(f"{name} ({n})" for name, n in list(report.foreign_genres.items())[:8])
        typer.echo(f"genres outside the list, ignored: {named}")


def echo_bad(count: int, examples: tuple[str, ...]) -> None:
    if count:
        typer.echo(f"skipped {count:,} bad rows, such as:")
        for example in examples:
            typer.echo(f"  {example}")


def echo_written(out: Path, dataset: ProfileDataset, arms: str, rounds: str) -> None:
    typer.echo(
        f"wrote {out}: {len(dataset.arms):,} arms ({arms}), {len(dataset.rounds):,} rounds ({rounds}), "
        f"{len(dataset.features)} features"
    )
