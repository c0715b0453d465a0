"""The Python example of docs/sweeps.md, taken out of the page and run as a script."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from command_line import clean_environment
from patience import HANG_SECONDS

PAGE = Path(__file__).parents[2] / "docs" / "sweeps.md"


def test_the_example_plays_every_policy_with_every_seed(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(example)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=clean_environment(), timeout=HANG_SECONDS
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert sorted(row[:2] for row in rows) == [[name, str(n)] for name in ("linucb", "uniform") for n in range(3)]
    assert all(float(regret) > 0 for _, _, regret in rows)
