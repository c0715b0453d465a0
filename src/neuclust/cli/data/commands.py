"""`neuclust data`: fetch, prepare, inspect and generate problems; heavy imports stay inside the commands."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from json import dumps
from pathlib import Path

import typer

from neuclust.cli.command import add_commands, advice, argument, flag, option
from neuclust.cli.data.convert import convert
from neuclust.cli.data.kuairand import kuairand
from neuclust.cli.data.movielens import movielens, replay
from neuclust.cli.data.open_bandit import obd
from neuclust.cli.data.prepare import bar
from neuclust.cli.data.yelp import yelp
from neuclust.cli.options import deliver, json_option
from neuclust.cli.outputs import Outputs, require_writable
from neuclust.errors import ConfigError, writing
from neuclust.files import write_text

NEXT = {"movielens": "movielens --zip {} --out {}.npz", "kuairand": "kuairand {} --out {}.parquet"}
PREPARE_YELP = "`neuclust data prepare yelp --tar yelp_dataset.tar --out yelp.npz`"


@dataclass(frozen=True, slots=True)
class FetchOptions:
    name: str = argument(..., "movielens-25m, movielens-small, kuairand, kuairand-1k, kuairand-27k or yelp.", "NAME")
    yes: bool = flag("Accept the licence without being asked.")
    cache: Path | None = option(None, "Default: $XDG_CACHE_HOME/neuclust.", "DIR")
    url: str | None = option(None, "A mirror of the same archive.", "URL")


def fetch(options: FetchOptions) -> None:
    """Fetch a published archive into the cache; a broken download is taken up again."""
    from neuclust.data.fetch import cache_folder
    from neuclust.data.fetch import fetch as fetch_source
    from neuclust.data.sources import find_source

    with advice(PREPARE_YELP) if options.name == "yelp" else nullcontext():
        source = find_source(options.name)
    typer.echo(f"{source.name}: {source.file}, about {source.size}, from {options.url or source.url}", err=True)
    typer.echo(f"Licence: {source.licence}", err=True)
    folder = options.cache or cache_folder()
    require_writable("--cache", folder)
    if not options.yes:
        if not sys.stdin.isatty():
            raise ConfigError("expected consent to the licence; pass --yes to give it without a terminal")
        typer.confirm("Fetch it under this licence?", abort=True, err=True)
    with bar(source.file, None) as show:
        place = fetch_source(source, folder, options.url, show)
    typer.echo(place)
    typer.echo(f"Next: neuclust data prepare {NEXT[source.problem].format(place, source.name)}", err=True)


@dataclass(frozen=True, slots=True)
class InspectOptions:
    file: Path = argument(..., "A prepared problem.", "FILE.npz")
    out: Path | None = option(None, "Folder for inspect.json, inspect.txt and pictures.", "DIR")
    json: str | None = json_option("The numbers")
    rounds: int = option(1000, "Rounds to look at.", "T", min=1)
    slate_size: int = option(5, "Arms of a slate.", "K", min=1)
    clusters: int = option(22, "Clusters to look at.", "M", min=1)


def inspect(options: InspectOptions) -> None:
    """Say what kind of problem a prepared file is, in numbers, words and pictures."""
    from neuclust.analysis.inspection import inspect as inspect_dataset
    from neuclust.analysis.inspection import record, sentences
    from neuclust.data.dataset import load_dataset

    dataset, out = load_dataset(options.file), options.out
    Outputs(out=out, json=options.json).check()
    with bar("rounds", min(options.rounds, len(dataset.rounds)), unit="rounds") as show:
        sizes = {"rounds": options.rounds, "slate_size": options.slate_size, "clusters": options.clusters}
        found = inspect_dataset(dataset, **sizes, progress=lambda done: show(done, None))
    numbers = dumps(record(found), indent=2) + "\n"
    words = "".join(f"{sentence}\n" for sentence in sentences(found))
    if out is not None:
        from neuclust.report.drawing import save_figures
        from neuclust.report.inspection import figures

        write_text(out / "inspect.json", numbers)
        write_text(out / "inspect.txt", words)
        save_figures(figures(found), out)
    deliver(options.json, numbers, lambda: typer.echo(words, nl=False))


@dataclass(frozen=True, slots=True)
class GenerateMovieLens:
    out: Path = option(..., "Folder for the files.", "DIR")
    ratings: int = option(25_000_000, "Rows of ratings.csv.", "N", min=1)
    seed: int = option(0, "Equal seeds give equal files.")


def generate_movielens(options: GenerateMovieLens) -> None:
    """Write ratings.csv and movies.csv in MovieLens' layout."""
    from neuclust.data.generate import generate_movielens as write

    rows, out = options.ratings, options.out
    with _writing(out, "ratings.csv", f"{rows:,} ratings", "movies.csv", rows) as progress:
        write(rows, out, options.seed, progress)


@dataclass(frozen=True, slots=True)
class GenerateYelp:
    out: Path = option(..., "Folder for the files.", "DIR")
    reviews: int = option(7_000_000, "Lines of review.json.", "N", min=1)
    text_length: int = option(500, "Letters of a review.", "N", min=1)
    seed: int = option(0, "Equal seeds give equal files.")


def generate_yelp(options: GenerateYelp) -> None:
    """Write business.json and review.json in Yelp's layout."""
    from neuclust.data.generate import generate_yelp as write

    rows, out = options.reviews, options.out
    with _writing(out, "review.json", f"{rows:,} reviews", "business.json", rows) as progress:
        write(rows, out, options.seed, options.text_length, progress)


@dataclass(frozen=True, slots=True)
class GenerateKuaiRand:
    out: Path = option(..., "Folder for the files.", "DIR")
    rows: int = option(100_000, "Rows of the random log.", "N", min=1)
    users: int = option(1_000, "Users.", "N", min=1)
    videos: int = option(200, "Videos.", "N", min=1)
    seed: int = option(0, "Equal seeds give equal files.", min=0)


def generate_kuairand(options: GenerateKuaiRand) -> None:
    """Write a folder in KuaiRand's layout, and truth.json with the chance of every click."""
    from neuclust.data.logged.kuairand_generate import KuaiRandSize
    from neuclust.data.logged.kuairand_generate import generate_kuairand as write

    out, size = options.out, KuaiRandSize(options.rows, options.users, options.videos)
    log = "log_random_4_22_to_5_08_pure.csv"
    with _writing(out, log, f"{size.rows:,} rows", "truth.json", size.rows) as progress:
        write(size, out, options.seed, progress)


@contextmanager
def _writing(out: Path, file: str, amount: str, other: str, rows: int) -> Iterator[Callable[[int], None]]:
    """Yields what to call with the number of rows written; refuses a bad folder before, names the files after."""
    require_writable("--out", out)
    with bar(file, rows, unit="rows") as show, writing(out):
        yield lambda done: show(done, None)
    typer.echo(f"wrote {out / file} ({amount}) and {out / other}")


app = typer.Typer(help="Fetch, prepare, inspect and generate problems.", no_args_is_help=True)
prepare = typer.Typer(help="Turn published raw files into a problem or a log.", no_args_is_help=True)
generate = typer.Typer(help="Write raw files of any size, for load tests and checks.", no_args_is_help=True)
add_commands(app, fetch=fetch, inspect=inspect, convert=convert)
add_commands(prepare, movielens=movielens, yelp=yelp, replay=replay, kuairand=kuairand, obd=obd)
add_commands(generate, movielens=generate_movielens, yelp=generate_yelp, kuairand=generate_kuairand)
app.add_typer(prepare, name="prepare")
app.add_typer(generate, name="generate")
