"""Tries an environment: what its extra is for works, and what it lacks is said in one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from subprocess import CompletedProcess

from neuclust.extras import EXTRA_OF
from tools.installed.environment import Clean, pinned
from tools.installed.trials import LACKING, NAMES, OF, SMALL, TRIALS

USAGE = 2  # the exit code of every configuration error
SENTENCE = re.compile(r"neuclust: .+ needs (\w+), which is not installed; pip install 'neuclust\[(\w+)\]'\n")
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
    (folder / "small.toml").write_text(SMALL, encoding="utf-8")
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
    """A usage error in one sentence, which names a package and the extra that brings it."""
    wrong = []
    for line, wanted in LACKING.get(extra, ()):
        done = environment.command(*line.split(), cwd=folder)
        found = SENTENCE.fullmatch(done.stderr)
        named = found is not None and found[2] == wanted == EXTRA_OF.get(found[1])
        if (done.returncode, done.stdout) != (USAGE, "") or not named:
            wrong.append(f"{extra}: neuclust {line}: expected one sentence that names {wanted}, got {_told(done)}")
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
