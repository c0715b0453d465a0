"""The example of docs/data.md does what the page says: features of either sign, played back and never simulated."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from patience import HANG_SECONDS

import neuclust
from neuclust.errors import DataError

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_example_of_own_features_makes_a_file_that_is_played_back(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "make.py").write_text(code)
    made = subprocess.run(
        [sys.executable, "make.py"], cwd=tmp_path, capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert made.returncode == 0, made.stderr
    dataset = neuclust.load_dataset(str(tmp_path / "mine.npz"))
    environment = neuclust.profile_environment(dataset, slate_size=3)
    assert (dataset.arms < 0).any()
    assert environment.round(1).arm_ids.tolist() == list(range(10))
    with pytest.raises(DataError, match="expected non-negative features for the paper's simulated reward"):
        neuclust.profile_environment(replace(dataset, offers=None), slate_size=3)
