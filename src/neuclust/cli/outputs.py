"""Where results go: checked before a run, written whole after every finished run, drawn at the end."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neuclust.cli.folders import require_file, require_writable
from neuclust.errors import ConfigError
from neuclust.experiment.records import RunRecord
from neuclust.files import write_text

RUNS, PREVIOUS = "runs.json", "runs.previous.json"
STDOUT = "-"


@dataclass(frozen=True, slots=True)
class Outputs:
    """The folder, JSON file (`-` = stdout), picture and policy folder a command asked for."""

    out: Path | None = None
    json: str | None = None
    plot: Path | None = None
    save: Path | None = None

    @property
    def json_to_stdout(self) -> bool:
        return self.json == STDOUT

    @property
    def json_file(self) -> Path | None:
        return None if self.json is None or self.json_to_stdout else Path(self.json)

    @property
    def run_files(self) -> tuple[Path, ...]:
        """Every file that holds the records."""
        folder_file = None if self.out is None else self.out / RUNS
        return tuple(file for file in (folder_file, self.json_file) if file is not None)


def check_outputs(outputs: Outputs) -> None:
    """Refuse, before anything runs, what could not be written after it; makes the `--out` folder."""
    if outputs.plot is not None and outputs.plot.suffix.lower() not in (".png", ".svg"):
        raise ConfigError(f"--plot: expected a file named .png or .svg, got {outputs.plot}; rename it")
    for option, file in (("--json", outputs.json_file), ("--plot", outputs.plot)):
        if file is not None:
            require_file(option, file)
    if outputs.save is not None:
        _check_save(outputs.save)
    if outputs.out is not None:
        require_writable("--out", outputs.out, make=True)


def _check_save(folder: Path) -> None:
    from neuclust.persistence import foreign_files

    require_writable("--save", folder.absolute().parent)
    if folder.exists():
        if not folder.is_dir() or foreign_files(folder):
            raise ConfigError(f"--save: expected a new folder or an earlier save, got {folder}; name another one")
        require_writable("--save", folder)


def set_aside(folder: Path | None) -> Path | None:
    """Rename the records of an earlier command in the folder; where they are now, if there are any."""
    if folder is None or not (folder / RUNS).exists():
        return None
    os.replace(folder / RUNS, folder / PREVIOUS)
    return folder / PREVIOUS


def draw(outputs: Outputs, records: Sequence[RunRecord]) -> None:
    """Tables and pictures of what is there."""
    if outputs.plot is None and outputs.out is None:
        return
    from neuclust.analysis.summary import summaries
    from neuclust.report.drawing import save_figure
    from neuclust.report.figures import clipped_figure, regret_figure, reward_figure
    from neuclust.report.results import csv_table, text_table

    if outputs.plot is not None:
        save_figure(regret_figure(records), outputs.plot)
    if outputs.out is None:
        return
    write_text(outputs.out / "table.txt", text_table(records))
    write_text(outputs.out / "table.csv", csv_table(summaries(records)))
    for name, figure_of in (("regret", regret_figure), ("reward", reward_figure), ("clipped", clipped_figure)):
        figure = figure_of(records)
        for ending in ("png", "svg"):
            save_figure(figure, outputs.out / f"{name}.{ending}")
