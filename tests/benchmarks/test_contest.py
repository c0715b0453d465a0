"""The contest keeps one line per run, goes on where it was stopped, and leaves out what fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.contest import contestant, main
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.sinks import read_lines

KEYS = {"problem", "policy", "seed", "rounds", "regret", "seconds", "restarts"}


def test_a_contest_plays_what_the_file_does_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs.jsonl"
    order = [
        "--out",
        str(out),
        "--problem",
        "bump",
        "--workers",
        "1",
        "--rounds",
        "104",
        "--policy",
        "linucb@alpha=0.3",
    ]
    main([*order, "--seeds", "7:8"])
    (row,) = once = read_lines(out)
    assert row.keys() == KEYS
    assert (row["problem"], row["policy"], row["seed"], row["rounds"]) == ("bump", "linucb@alpha=0.3", 7, 104)
    assert list(row["regret"]) == ["100", "104"]
    main([*order, "--policy", "linucb@alpha=x", "--policy", "uniform", "--seeds", "7:8"])
    assert [row["policy"] for row in read_lines(out)] == ["linucb@alpha=0.3", "uniform"]
    assert read_lines(out)[:1] == once
    assert "bump linucb@alpha=x seed 7: ConfigError" in capsys.readouterr().err
    main([*order, "--seeds", "7:9", "--limit", "0"])
    assert "stopped after 0 of 1 runs" in capsys.readouterr().err


def test_the_device_engine_plays_the_same_run_and_tells_no_seconds(tmp_path: Path) -> None:
    order = ["--problem", "bump", "--workers", "1", "--rounds", "104", "--policy", "cn-ucb", "--seeds", "7:8"]
    plain, device = tmp_path / "plain.jsonl", tmp_path / "device.jsonl"
    main([*order, "--out", str(plain)])
    main([*order, "--out", str(device), "--device", "cpu"])
    (expected,), (row,) = read_lines(plain), read_lines(device)
    assert expected["regret"].keys() == row["regret"].keys()
    assert list(row["regret"].values()) == pytest.approx(list(expected["regret"].values()), abs=1e-3)
    assert row == expected | {"regret": row["regret"], "seconds": None}


def test_policies_are_named_with_preset_and_settings() -> None:
    assert contestant("cn-ucb:paper@gamma=0.5;arms.network.width=8") == Contestant(
        "cn-ucb", "paper", None, {"gamma": "0.5", "arms.network.width": "8"}
    )
    assert contestant("auto") == Contestant("auto")
