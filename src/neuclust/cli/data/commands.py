"""`neuclust data`: fetch, prepare, inspect and generate problems; heavy imports stay inside the commands."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from neuclust.cli.command import add_command, argument, flag, option
from neuclust.cli.data.inspect import inspect
from neuclust.cli.data.movielens import movielens, replay
from neuclust.cli.data.yelp import yelp
from neuclust.cli.folders import require_writable
from neuclust.cli.progress import bar
from neuclust.errors import ConfigError, writing

Folder = Annotated[Path, option("Folder for the files.", "DIR")]
Seed = Annotated[int, option("Equal seeds give equal files.")]


@dataclass(frozen=True, slots=True)
class FetchOptions:
    name: Annotated[str, argument("movielens-25m, movielens-small or yelp.", "NAME")]
    yes: Annotated[bool, flag("Accept the licence without being asked.", "--yes")] = False
    cache: Annotated[Path | None, option("Default: $XDG_CACHE_HOME/neuclust.", "DIR")] = None
    url: Annotated[str | None, option("A mirror of the same archive.", "URL")] = None


def fetch(options: FetchOptions) -> None:
    """Fetch a published archive into the cache; a broken download is taken up again."""
    from neuclust.data.fetch import cache_folder, find_source
    from neuclust.data.fetch import fetch as fetch_source

    source = find_source(options.name)
    typer.echo(f"{source.name}: {source.file}, about {source.size}, from {options.url or source.url}", err=True)
    typer.echo(f"Licence: {source.licence}", err=True)
    folder = options.cache or cache_folder()
    require_writable("--cache", folder)
    if not options.yes:
        _ask_consent()
    with bar(source.file, None) as show:
        place = fetch_source(source, folder, options.url, show)
    typer.echo(place)
    typer.echo(f"Next: neuclust data prepare movielens --zip {place} --out {source.name}.npz", err=True)


def _ask_consent() -> None:
    if not sys.stdin.isatty():
        raise ConfigError("expected consent to the licence; pass --yes to give it without a terminal")
    typer.confirm("Fetch it under this licence?", abort=True, err=True)


@dataclass(frozen=True, slots=True)
class GenerateMovieLens:
    out: Folder
    ratings: Annotated[int, option("Rows of ratings.csv.", "N", min=1)] = 25_000_000
    seed: Seed = 0


def generate_movielens(options: GenerateMovieLens) -> None:
    """Write ratings.csv and movies.csv in MovieLens' layout."""
    from neuclust.data.generate import generate_movielens as write

    out, ratings = options.out, options.ratings
    require_writable("--out", out)
    with bar("ratings.csv", ratings, unit="rows") as show, writing(out):
        write(ratings, out, options.seed, lambda done: show(done, None))
    typer.echo(f"wrote {out / 'ratings.csv'} ({ratings:,} ratings) and {out / 'movies.csv'}")


@dataclass(frozen=True, slots=True)
class GenerateYelp:
    out: Folder
    reviews: Annotated[int, option("Lines of review.json.", "N", min=1)] = 7_000_000
    text_length: Annotated[int, option("Letters of a review.", "N", min=1)] = 500
    seed: Seed = 0


def generate_yelp(options: GenerateYelp) -> None:
    """Write business.json and review.json in Yelp's layout."""
    from neuclust.data.generate import generate_yelp as write

    out, reviews = options.out, options.reviews
    require_writable("--out", out)
    with bar("review.json", reviews, unit="rows") as show, writing(out):
        write(reviews, out, options.seed, options.text_length, lambda done: show(done, None))
    typer.echo(f"wrote {out / 'review.json'} ({reviews:,} reviews) and {out / 'business.json'}")


app = typer.Typer(help="Fetch, prepare, inspect and generate problems.", no_args_is_help=True)
prepare = typer.Typer(help="Turn published raw files into a problem.", no_args_is_help=True)
generate = typer.Typer(help="Write raw files of any size, for load tests.", no_args_is_help=True)
add_command(app, "fetch", fetch)
add_command(app, "inspect", inspect)
app.add_typer(prepare, name="prepare")
app.add_typer(generate, name="generate")
add_command(prepare, "movielens", movielens)
add_command(prepare, "yelp", yelp)
add_command(prepare, "replay", replay)
add_command(generate, "movielens", generate_movielens)
add_command(generate, "yelp", generate_yelp)
