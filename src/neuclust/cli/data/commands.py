"""`neuclust data`: fetch, prepare, inspect and generate problems; heavy imports stay inside the commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from neuclust.cli.command import add_commands, argument, flag, option
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

    rows, out = options.ratings, options.out
    with _writing(out, "ratings.csv", f"{rows:,} ratings", "movies.csv", rows) as progress:
        write(rows, out, options.seed, progress)


@dataclass(frozen=True, slots=True)
class GenerateYelp:
    out: Folder
    reviews: Annotated[int, option("Lines of review.json.", "N", min=1)] = 7_000_000
    text_length: Annotated[int, option("Letters of a review.", "N", min=1)] = 500
    seed: Seed = 0


def generate_yelp(options: GenerateYelp) -> None:
    """Write business.json and review.json in Yelp's layout."""
    from neuclust.data.generate import generate_yelp as write

    rows, out = options.reviews, options.out
    with _writing(out, "review.json", f"{rows:,} reviews", "business.json", rows) as progress:
        write(rows, out, options.seed, options.text_length, progress)


@contextmanager
def _writing(out: Path, file: str, amount: str, other: str, rows: int) -> Iterator[Callable[[int], None]]:
    """Yields what to call with the number of rows written; refuses a bad folder before, names the files after."""
    require_writable("--out", out)
    with bar(file, rows, unit="rows") as show, writing(out):
        yield lambda done: show(done, None)
    typer.echo(f"wrote {out / file} ({amount}) and {out / other}")


app = typer.Typer(help="Fetch, prepare, inspect and generate problems.", no_args_is_help=True)
prepare = typer.Typer(help="Turn published raw files into a problem.", no_args_is_help=True)
generate = typer.Typer(help="Write raw files of any size, for load tests.", no_args_is_help=True)
add_commands(app, fetch=fetch, inspect=inspect)
add_commands(prepare, movielens=movielens, yelp=yelp, replay=replay)
add_commands(generate, movielens=generate_movielens, yelp=generate_yelp)
app.add_typer(prepare, name="prepare")
app.add_typer(generate, name="generate")
