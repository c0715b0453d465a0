"""The comparison with other libraries at a tiny size; peers play where they are installed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import peers, players
from benchmarks.fresh_arms import FreshArms
from benchmarks.tables import markdown, short
from neuclust.core import Feedback, Slate
from neuclust.randomness import stream


def test_arms_are_new_in_every_round_and_the_same_when_dealt_again() -> None:
    problem = FreshArms()
    first, second = problem.round(1, 30), problem.round(2, 30)
    known = set(problem.arm_ids.tolist())
    assert not set(first.arm_ids.tolist()) & (set(second.arm_ids.tolist()) | known)
    assert not torch.equal(first.profiles, second.profiles)
    assert torch.equal(first.profiles, problem.round(1, 30).profiles)
    assert torch.allclose(first.profiles.norm(dim=1), torch.ones(30, dtype=torch.float64))


def test_the_best_slate_has_no_regret_and_others_have() -> None:
    problem = FreshArms()
    round = problem.round(3, 50)
    order = torch.argsort(problem.means(round), descending=True)
    assert problem.regret(round, order[:5]) == pytest.approx(0.0)
    assert problem.regret(round, order[-5:]) > 0.1


def test_coins_belong_to_arms() -> None:
    problem, nothing = FreshArms(), torch.zeros(5, dtype=torch.float64)
    round, positions = problem.round(4, 40), torch.tensor([3, 17, 8, 0, 39])
    there = problem.play(round, Slate(positions, nothing, nothing))
    back = problem.play(round, Slate(positions.flip(0), nothing, nothing))
    assert torch.equal(there.arm_rewards, back.arm_rewards.flip(0))


@pytest.mark.parametrize("contender", players.contenders(), ids=lambda contender: contender.name)
def test_every_player_selects_k_arms_and_learns(contender: players.Contender) -> None:
    if contender.package:
        pytest.importorskip(contender.package)
    problem = FreshArms()
    player = contender.make(problem)
    for t in (1, 2, 3):
        round = problem.round(t, 60)
        prepared = player.prepare(round)
        positions = player.select(prepared)
        assert len(set(positions.tolist())) == problem.slate_size
        assert all(0 <= arm < 60 for arm in positions)
        rewards = torch.ones(problem.slate_size, dtype=torch.float64)
        player.update(prepared, positions, Feedback(rewards, rewards.mean()))


def test_the_largest_come_best_first() -> None:
    values = stream(0, "test values").random(50)
    assert players.largest(values, 8).tolist() == np.argsort(-values)[:8].tolist()


def test_absent_peers_are_named_and_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    def absent(problem: FreshArms) -> players.Player:
        raise ImportError("no such library")

    contender = players.Contender("somebody", "", "a-package-nobody-has", absent)
    assert peers._made(contender, FreshArms()) is None
    assert "a-package-nobody-has is not installed; pip install 'neuclust[bench]'" in capsys.readouterr().out


def test_a_run_prints_ratios_and_writes_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep" / "peers.json"
    words = ["--arms", "40", "60", "--learn", "4", "--repeats", "2", "--only", "neuclust", "linucb"]
    peers.main([*words, "--json", str(file)])
    record = json.loads(file.read_text(encoding="utf-8"))
    assert [(row["name"], row["arms"], len(row["select"])) for row in record["rounds"]] == [
        ("neuclust", 40, 2), ("linucb", 40, 2), ("neuclust", 60, 2), ("linucb", 60, 2),
    ]  # fmt: skip
    assert set(record["regret"]) == {"neuclust", "linucb"}
    ours = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| neuclust"))
    assert ours.split("|")[4].strip() == "1"


def test_who_is_slow_keeps_the_first_round() -> None:
    problem = FreshArms()
    linucb = next(contender for contender in players.contenders() if contender.name == "linucb").make(problem)
    (row,) = peers.timed(problem, {"linucb": linucb}, 30, learned=0, repeats=3, patience=0.0)
    assert len(row.select) == len(row.update) == 1


def test_tables_read_as_text() -> None:
    assert markdown(["name", "ms"], [["a", "1"], ["long one", "1,000"]]).splitlines() == [
        "| name     |    ms |",
        "| -------- | ----: |",
        "| a        |     1 |",
        "| long one | 1,000 |",
    ]
    values = (0.01234, 5.678, 99.4, 100.4, 12345.6)
    assert [short(value) for value in values] == ["0.0123", "5.68", "99.4", "100", "12,346"]
