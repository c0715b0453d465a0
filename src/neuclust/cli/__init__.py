"""The `neuclust` command: errors made on purpose become one sentence and an exit code, others a traceback."""

import contextlib
import errno
import io
import os
import sys
from pathlib import Path
from typing import NoReturn

from neuclust.cli.interrupt import STOPPED
from neuclust.errors import DataError, NeuclustError, NotWritten, not_written, plain_warnings
from neuclust.extras import extra

STDOUT = Path("the standard output")


def main() -> None:
    """Run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± shows ?, and loses no table
    try:
        with extra("the command line"):
            from neuclust.cli.app import app
        with plain_warnings(lambda sentence: _say(f"warning: {sentence}")), extra("this command"):
            app(prog_name="neuclust")
    except NeuclustError as error:
        _say(f"neuclust: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("neuclust: stopped")
        sys.exit(STOPPED)
    except BrokenPipeError:
        _close_quietly()
        sys.exit(1)
    except SystemExit:
        _flush()
        raise
    except OSError as error:
        _refuse_place(error)


def _refuse_place(error: OSError) -> NoReturn:
    """A place that failed in the middle of the work, in one sentence; what names no place is a traceback."""
    _flush()
    if error.filename is None and error.errno != errno.ENOSPC:
        raise error
    place = STDOUT if error.filename is None else Path(os.fsdecode(error.filename))  # set by whatever wrote the file
    if error.filename is None or isinstance(error, NotWritten):
        _say(f"neuclust: {not_written(place, error)}")
    else:
        _say(f"neuclust: {place}: expected a place that can be used, got {error.strerror!r}; check the path")
    sys.exit(DataError.exit_code)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text}\n")


def _flush() -> None:
    """Meet a closed pipe or a full disk here and not in the interpreter's shutdown, which would complain."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _close_quietly()
    except OSError as error:
        _close_quietly()
        _say(f"neuclust: {not_written(STDOUT, error)}")
        sys.exit(DataError.exit_code)


def _close_quietly() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
