"""`neuclust run --device`: all runs at once, the same results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command


def test_all_at_once_gives_the_results_of_one_by_one(command: Command, problem: Path) -> None:
    players = ("--policy", "neuclust", "--policy", "cn-ucb", "--clusters", 2, "--seeds", 2)
    words = ("run", "--data", problem, *players, "--rounds", 12, "--json", "-")
    apart, together = command(*words), command(*words, "--device", "cpu")
    assert (apart.code, together.code) == (0, 0)
    pairs = list(zip(json.loads(apart.out)["runs"], json.loads(together.out)["runs"], strict=True))
    assert len(pairs) == 4
    for alone, batched in pairs:
        assert batched.keys() == alone.keys()
        for name in ("policy", "preset", "seed", "rounds", "chosen_clusters", "successes", "env", "clusters"):
            assert batched[name] == alone[name]
        assert batched["expected_regret"] == pytest.approx(alone["expected_regret"])


def test_refusals(command: Command, problem: Path, tmp_path: Path) -> None:
    words = ("run", "--data", problem, "--rounds", 5)
    for more, sentence in (
        (("--policy", "linucb", "--device", "cpu"), "expected NeUClust or CN-UCB"),
        (("--device", "abacus"), "expected cpu or cuda"),
        (("--device", "cpu", "--save", tmp_path / "kept"), "expected runs one by one"),
    ):
        answer = command(*words, *more)
        assert answer.code != 0
        assert sentence in answer.err


def test_a_sweep_plays_batches_and_refuses_other_policies(call: Command, problem: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "batches.toml", tmp_path / "out"
    head = f'rounds = 6\nseeds = 2\n[[environment]]\ndata = "{problem}"\n'
    file.write_text(f'{head}[[policy]]\npolicy = "cn-ucb"\n[[policy]]\npolicy = "neuclust"\nclusters = 2\n')
    assert call("sweep", file, "--out", out, "--engine", "device", "--quiet").code == 0
    assert "0 to do" in call("sweep", file, "--out", out, "--engine", "inline").err
    file.write_text(f'{head}[[policy]]\npolicy = "linucb"\n')
    refused = call("sweep", file, "--out", tmp_path / "other", "--engine", "device")
    assert (refused.code, "expected NeUClust or CN-UCB" in refused.err) == (2, True)
