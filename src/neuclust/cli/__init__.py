"""The `neuclust` command: errors made on purpose become one sentence and an exit code, others a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import sys

from neuclust.errors import NeuclustError

STOPPED = 130  # 128 + SIGINT, as a shell reports it


def main() -> None:
    """Run the command line and leave with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± shows ?, and loses no table
    try:
        from neuclust.cli.app import app

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


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text}\n")


def _flush() -> None:
    """Meet a closed pipe here and not in the interpreter's shutdown, which would complain."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _close_quietly()


def _close_quietly() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
