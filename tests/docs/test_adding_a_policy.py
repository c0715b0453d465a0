"""The worked example of docs/adding_a_policy.md, taken out of the page and run."""

import importlib.util
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from patience import HANG_SECONDS

from neuclust.core import Feedback, Policy
from neuclust.environments.synthetic import clusters
from neuclust.errors import ConfigError, DataError

PAGE = Path(__file__).parents[2] / "docs" / "adding_a_policy.md"


def files_of(page: str) -> dict[str, str]:
    """Code blocks that begin with `# file: NAME`, by that name."""
    blocks = re.findall(r"```python\n# file: (\S+)\n(.*?)```", page, flags=re.DOTALL)
    return dict(blocks)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's files as a reader would have written them."""
    folder = tmp_path_factory.mktemp("example")
    for name, text in files_of(PAGE.read_text(encoding="utf-8")).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def counts(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("counts", folder / "counts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["counts"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_script_prints_what_the_page_says(folder: Path) -> None:
    promised = re.search(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert promised is not None
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "play.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == promised.group(1)


def test_select_is_repeatable_and_learns_nothing(counts: ModuleType) -> None:
    problem = clusters(n_arms=40, n_clusters=4, arms_per_round=None, horizon=30)
    policy = counts.CountUCB(counts.CountConfig(), problem.dim, problem.slate_size)
    assert isinstance(policy, Policy)
    for t in range(1, 31):
        round = problem.round(t)
        before = policy.state_dict()
        slate = policy.select(round)
        after = policy.state_dict()
        assert all(torch.equal(before[name], after[name]) for name in before)
        assert policy.select(round).positions.tolist() == slate.positions.tolist()
        policy.update(round, slate, problem.play(round, slate))
    assert int(policy.state_dict()["plays"].sum()) == 30 * problem.slate_size


def test_unseen_rewards_are_not_learned(counts: ModuleType) -> None:
    problem = clusters(n_arms=40, n_clusters=4, arms_per_round=None, horizon=1)
    policy = counts.CountUCB(counts.CountConfig(), problem.dim, problem.slate_size)
    round = problem.round(1)
    slate = policy.select(round)
    rewards = torch.tensor([1.0, math.nan, 0.0, math.nan, math.nan], dtype=torch.float64)
    policy.update(round, slate, Feedback(rewards, torch.tensor(math.nan)))
    assert int(policy.state_dict()["plays"].sum()) == 2
    assert float(policy.state_dict()["sums"].sum()) == 1.0


def test_it_refuses_as_the_page_says(counts: ModuleType) -> None:
    problem = clusters(n_arms=40, n_clusters=4, arms_per_round=None, horizon=1)
    with pytest.raises(ConfigError, match="bonus: expected"):
        counts.CountConfig(bonus=-1.0)
    with pytest.raises(DataError, match="features"):
        counts.CountUCB(counts.CountConfig(), problem.dim + 1, problem.slate_size).select(problem.round(1))
