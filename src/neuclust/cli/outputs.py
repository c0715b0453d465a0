"""Places given on the command line: checked before a run, written whole after every finished run, drawn at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuclust.errors import ConfigError, not_written
from neuclust.files import write_text

if TYPE_CHECKING:
    from neuclust.experiment.records import RunRecord
    from neuclust.logs import LogWriter

RUNS, PREVIOUS = "runs.json", "runs.previous.json"
STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The folder, JSON file (`-` = stdout), picture, policy folder and log of decisions a command asked for."""

    out: Path | None = None
    json: str | None = None
    plot: Path | None = None
    save: Path | None = None
    log: Path | None = None

    @property
    def json_to_stdout(self) -> bool:
        return self.json == STDOUT

    def files(self, name: str = RUNS) -> tuple[Path, ...]:
        """Every file that holds the document: `name` in the folder, and the JSON file."""
        folder_file = None if self.out is None else self.out / name
        return tuple(file for file in (folder_file, self._json_file) if file is not None)

    @property
    def _json_file(self) -> Path | None:
        return None if self.json is None or self.json_to_stdout else Path(self.json)

    def check(self) -> None:
        """Refuse, before anything runs, what could not be written after it; makes the `--out` folder."""
        if self.plot is not None and self.plot.suffix.lower() not in (".png", ".svg"):
            raise ConfigError(f"--plot: expected a file named .png or .svg, got {self.plot}; rename it")
        for option, file in (("--json", self._json_file), ("--plot", self.plot), ("--log", self.log)):
            if file is not None:
                require_file(option, file)
        if self.save is not None:
            from neuclust.persistence import foreign_files

            require_writable("--save", self.save.absolute().parent)
            if self.save.exists():
                if not self.save.is_dir() or foreign_files(self.save):
                    raise ConfigError(f"--save: expected a new folder or an earlier save, got {self.save}; name one")
                require_writable("--save", self.save)
        if self.out is not None:
            require_writable("--out", self.out, make=True)

    @contextmanager
    def logging(self, runs: Iterable[str]) -> Iterator[LogWriter | None]:
        """A writer of the log for runs of these names, refused where it holds one of them; whole at the end."""
        if self.log is None:
            yield None
            return
        from neuclust.logs import LogWriter

        with LogWriter(self.log) as writer:
            for name in writer.runs.intersection(runs):
                said = f"expected a log without the run {name}, got {self.log}, which holds one"
                raise ConfigError(f"{said}; name another file or remove it", field="log")
            yield writer

    def set_aside(self) -> Path | None:
        """Rename the records of an earlier command in the folder; where they are now, if there are any."""
        if self.out is None or not (self.out / RUNS).exists():
            return None
        return (self.out / RUNS).replace(self.out / PREVIOUS)

    def draw(self, records: Sequence[RunRecord]) -> None:
        """Tables and pictures of what is there."""
        if self.plot is None and self.out is None:
            return
        from neuclust.analysis.summary import summaries
        from neuclust.report.drawing import save_figure, save_figures
        from neuclust.report.figures import clipped_figure, regret_figure, reward_figure
        from neuclust.report.results import csv_table, text_table

        if self.plot is not None:
            save_figure(regret_figure(records), self.plot)
        if self.out is not None:
            write_text(self.out / "table.txt", text_table(records))
            write_text(self.out / "table.csv", csv_table(summaries(records)))
            drawn = {"regret": regret_figure, "reward": reward_figure, "clipped": clipped_figure}
            save_figures({name: figure(records) for name, figure in drawn.items()}, self.out)


def require_writable(option: str, folder: Path, make: bool = False) -> None:
    """The folder, or the nearest one above it that exists, must take new files; it is only created with `make`."""
    with _refused(option, folder, "folder"):
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        nearest = folder.absolute()
        while not nearest.exists():
            nearest = nearest.parent
        with tempfile.TemporaryFile(dir=nearest):  # asking for permissions would not see a full disk
            pass


def require_file(option: str, file: Path, make: bool = False) -> None:
    """The file must not be a folder, and its folder must take new files and exist, unless `make` creates it later."""
    with _refused(option, file, "place"):
        if file.is_dir():
            raise ConfigError(f"{option}: expected a file, got the folder {file}; name a file in it")
        if file.exists() and not file.is_file():  # a device or a pipe would be replaced by a file
            raise ConfigError(f"{option}: expected a file, got {file}, which is none; name a file, or - where it works")
        if not make:
            with tempfile.TemporaryFile(dir=file.parent):
                return
    require_writable(option, file.parent)


@contextmanager
def _refused(option: str, place: Path, kind: str) -> Iterator[None]:
    """An error of the system as one sentence with the option that named the place."""
    try:
        yield
    except OSError as error:
        raise ConfigError(not_written(place, error, option, kind)) from None


def say_bad(sentence: str) -> None:
    """One damaged record, on stderr: what can be read is still read."""
    typer.echo(f"neuclust: {sentence}", err=True)
