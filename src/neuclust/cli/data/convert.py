"""`neuclust data convert`: a log in the format of another library, and back."""

import enum
from dataclasses import dataclass
from pathlib import Path

import typer

from neuclust.cli.command import advice, argument, flag, limit_threads, option
from neuclust.cli.outputs import require_file, say_bad
from neuclust.errors import ConfigError


class Format(enum.StrEnum):
    """What is written."""

    VW = "vw"
    OBP = "obp"
    LOG = "log"


class Read(enum.StrEnum):
    """What is read, where it is not ours."""

    VW = "vw"
    OBP = "obp"


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    log: Path = argument(..., "A log: of a Recommender (log=), of `neuclust run --log`, or one of --format.", "LOG")
    out: Path = argument(..., "The file to write: .npz for obp, .jsonl or .parquet for log.", "OUT")
    to: Format = option(..., "vw (CCB dsjson), obp (.npz) or log, our own.")
    format: Read | None = option(None, "What LOG is: vw (CCB dsjson) or obp (.npz). Default: ours.")
    unseen: float | None = option(None, "The reward to write where none was observed. Default: refuse.", "VALUE")
    lossy: bool = flag("obp: leave out features and eligibility where it has no place for them.")
    skip_bad: int = option(0, "Go on after so many bad lines, which are named.", "N", min=0)


def convert(options: ConvertOptions) -> None:
    """Write a log in the format of Vowpal Wabbit or of the Open Bandit Pipeline, or one of theirs in ours."""
    limit_threads()
    from neuclust.evaluation.sources import open_source
    from neuclust.logs import DecisionLog, copy_log, write_obp, write_vw_ccb

    out, to = options.out, options.to
    require_file("OUT", out)
    if out.exists() and options.log.exists() and out.samefile(options.log):
        raise ConfigError(f"OUT: expected another file than LOG, got {out} twice; name another")
    if to is Format.LOG and options.unseen is not None:
        raise ConfigError("expected none for our own logs, which keep what was not observed", field="unseen")
    log = open_source(options.log, options.format and options.format.value, options.skip_bad, say_bad).log
    assert isinstance(log, DecisionLog)  # as all are but tables, which are no --format here
    with advice("see `neuclust data convert --help`"):
        if to is Format.VW:
            written = write_vw_ccb(log, out, unseen=options.unseen)
        elif to is Format.OBP:
            written = write_obp(log, out, unseen=options.unseen, lossy=options.lossy)
        else:
            written = copy_log(log, out)
    typer.echo(f"wrote {out}: {written:,} decision{'s' * (written != 1)}")
