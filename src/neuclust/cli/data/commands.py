"""`neuclust data`: fetch, prepare, inspect and generate problems; heavy imports stay inside the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuclust.cli.command import Command
from neuclust.cli.data import prepare, replay
from neuclust.cli.folders import require_writable
from neuclust.cli.progress import bar
from neuclust.errors import ConfigError, writing

app = typer.Typer(help="Fetch, prepare, inspect and generate problems.", no_args_is_help=True)
generate = typer.Typer(help="Write raw files of any size, for load tests.", no_args_is_help=True)
prepare.app.command(cls=Command)(replay.replay)
app.add_typer(prepare.app, name="prepare")
app.add_typer(generate, name="generate")

Folder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the files.")]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal files.")]


@app.command(cls=Command)
def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="movielens-25m, movielens-small or yelp.")],
    yes: Annotated[bool, typer.Option("--yes", help="Accept the licence without being asked.")] = False,
    cache: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: $XDG_CACHE_HOME/neuclust.")] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="A mirror of the same archive.")] = None,
) -> None:
    """Fetch a published archive into the cache; a broken download is taken up again."""
    from neuclust.data.fetch import cache_folder, find_source
    from neuclust.data.fetch import fetch as fetch_source

    source = find_source(name)
    typer.echo(f"{source.name}: {source.file}, about {source.size}, from {url or source.url}", err=True)
    typer.echo(f"Licence: {source.licence}", err=True)
    folder = cache or cache_folder()
    require_writable("--cache", folder)
    if not yes:
        _ask_consent()
    with bar(source.file, None) as show:
        place = fetch_source(source, folder, url, show)
    typer.echo(place)
    typer.echo(f"Next: neuclust data prepare movielens --zip {place} --out {source.name}.npz", err=True)


@app.command(cls=Command)
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE.npz", help="A prepared problem.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for inspect.json, inspect.txt and pictures.")
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The numbers as JSON; - is stdout, with nothing else on it."),
    ] = None,
    rounds: Annotated[int, typer.Option(metavar="T", min=1, help="Rounds to look at.")] = 1000,
    slate_size: Annotated[int, typer.Option(metavar="K", min=1, help="Arms of a slate.")] = 5,
    clusters: Annotated[int, typer.Option(metavar="M", min=1, help="Clusters to look at.")] = 22,
) -> None:
    """Say what kind of problem a prepared file is, in numbers, words and pictures."""
    from neuclust.cli.data.inspect import inspect_file

    inspect_file(file, out, json, rounds=rounds, slate_size=slate_size, clusters=clusters)


@generate.command("movielens", cls=Command)
def generate_movielens(
    out: Folder,
    ratings: Annotated[int, typer.Option(metavar="N", min=1, help="Rows of ratings.csv.")] = 25_000_000,
    seed: Seed = 0,
) -> None:
    """Write ratings.csv and movies.csv in MovieLens' layout."""
    from neuclust.data.generate import generate_movielens as write

    require_writable("--out", out)
    with bar("ratings.csv", ratings, unit="rows") as show, writing(out):
        write(ratings, out, seed, lambda done: show(done, None))
    typer.echo(f"wrote {out / 'ratings.csv'} ({ratings:,} ratings) and {out / 'movies.csv'}")


@generate.command("yelp", cls=Command)
def generate_yelp(
    out: Folder,
    reviews: Annotated[int, typer.Option(metavar="N", min=1, help="Lines of review.json.")] = 7_000_000,
    text_length: Annotated[int, typer.Option(metavar="N", min=1, help="Letters of a review.")] = 500,
    seed: Seed = 0,
) -> None:
    """Write business.json and review.json in Yelp's layout."""
    from neuclust.data.generate import generate_yelp as write

    require_writable("--out", out)
    with bar("review.json", reviews, unit="rows") as show, writing(out):
        write(reviews, out, seed, text_length, lambda done: show(done, None))
    typer.echo(f"wrote {out / 'review.json'} ({reviews:,} reviews) and {out / 'business.json'}")


def _ask_consent() -> None:
    import sys

    if not sys.stdin.isatty():
        raise ConfigError("expected consent to the licence; pass --yes to give it where nobody can be asked")
    typer.confirm("Fetch it under this licence?", abort=True, err=True)
