"""`neuclust clusters` tells clusters from a cloud, in words, JSON and a picture."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Command
from datasets import dataset_of

from neuclust.randomness import stream


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 arms in four balls."""
    rng = stream(0, "cli blobs")
    arms = np.repeat(5 * rng.random((4, 6)), 30, 0) + 0.2 * rng.random((120, 6))
    path = tmp_path_factory.mktemp("blobs") / "blobs.npz"
    dataset_of("blobs", arms, np.ones((2, 6))).save(path)
    return path


def test_balls_are_counted_in_a_table_json_and_a_picture(call: Command, blobs: Path, tmp_path: Path) -> None:
    picture, numbers = tmp_path / "choice.png", tmp_path / "choice.json"
    answer = call("clusters", "--data", blobs, "--most", "8", "--plot", picture, "--json", numbers)
    assert answer.code == 0
    assert "blobs: 4 clusters by stability" in answer.out
    assert [int(line.split()[0]) for line in answer.out.splitlines()[1:9]] == list(range(1, 9))
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(numbers.read_text())
    assert found["count"] == 4
    assert found["clustered"] is True
    assert len(found["rows"]) == 8


def test_a_cloud_has_none_and_json_may_stand_alone(call: Command, problem: Path) -> None:
    answer = call("clusters", "--data", problem, "--most", "6", "--json", "-")
    assert json.loads(answer.out)["count"] == 1
    assert "form no clusters" in json.loads(answer.out)["sentence"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "one of them"),
        (("--env", "bump", "--data", "x.npz"), "one of them"),
        (("--env", "bump", "--choose", "elbows"), "silhouette, elbow"),
        (("--env", "bump", "--plot", "x.pdf"), ".png or .svg"),
    ],
)
def test_what_cannot_be_asked_is_refused(call: Command, arguments: tuple[str, ...], said: str) -> None:
    answer = call("clusters", *arguments)
    assert answer.code == 2
    assert said in answer.err
