"""Tries an environment: what its extra is for works, and what it lacks is said in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import CompletedProcess

from tools.installed.environment import Clean, pinned
from tools.installed.trials import LACKING, NAMES, OF, TRIALS

USAGE = 2  # the exit code of every configuration error
EVERY_NAME = """
import json, neuclust
from neuclust.extras import MissingExtra
missing = []
for name in neuclust.__all__:
    try:
        getattr(neuclust, name)
    except MissingExtra as error:
        missing.append(str(error))
print(json.dumps(missing))
"""


def try_out(environment: Clean, extra: str, folder: Path) -> list[str]:
    """What went otherwise than it must, a sentence each; `extra` is `core` for none."""
    wrong = _torch(environment)
    for name in OF[extra]:
        program, wanted = TRIALS[name]
        file = folder / f"trial_{name}.py"
        file.write_text(program, encoding="utf-8")
        done = environment.run(file.name, cwd=folder)
        if done.returncode != 0 or done.stdout != wanted:
            wrong.append(f"{extra}: the trial of {name}: {_told(done)}")
    wrong += _lacking(environment, extra, folder)
    return wrong + (_names(environment, folder) if extra == "core" else [])


def _torch(environment: Clean) -> list[str]:
    """The version of constraints.txt, whichever build of it."""
    got, wanted = environment.size.packages["torch"].partition("+")[0], pinned("torch")
    return [] if got == wanted else [f"expected torch {wanted}, got {got}"]


def _lacking(environment: Clean, extra: str, folder: Path) -> list[str]:
    wrong = []
    for words, package, brought_by in LACKING.get(extra, ()):
        done = environment.command(*words, cwd=folder)
        sentence = rf"neuclust: .+ needs {package}, which is not installed; pip install 'neuclust\[{brought_by}\]'\n"
        if (done.returncode, done.stdout) != (USAGE, "") or not re.fullmatch(sentence, done.stderr):
            wrong.append(f"{extra}: neuclust {' '.join(words)}: expected /{sentence}/, got {_told(done)}")
    return wrong


def _names(environment: Clean, folder: Path) -> list[str]:
    """Public names work in a light installation; modules that need an extra name it as the last line."""
    done = environment.run("-c", EVERY_NAME, cwd=folder)
    wrong = [] if done.returncode == 0 and not json.loads(done.stdout) else [f"names of neuclust: {_told(done)}"]
    (folder / "items.parquet").write_bytes(b"PAR1")
    for program, (package, extra) in NAMES.items():
        done = environment.run("-c", program, cwd=folder)
        last = done.stderr.strip().rpartition("\n")[2]
        said = f"needs {package}, which is not installed; pip install 'neuclust[{extra}]'"
        if done.returncode == 0 or "MissingExtra: " not in last or not last.endswith(said):
            wrong.append(f"{program}: expected an end with {said!r}, got {_told(done)}")
    return wrong


def _told(done: CompletedProcess[str]) -> str:
    return f"code {done.returncode}, {done.stdout[-500:]!r}, {done.stderr[-1500:]!r}"
