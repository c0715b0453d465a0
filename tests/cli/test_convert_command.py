"""`neuclust data convert`: logs into the formats of other libraries and back, as the user gives the command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import Command
from logged_runs import write_run

from neuclust import Recommender
from neuclust.logs import copy_log, open_log, read_obp, read_vw_ccb
from tools.obp_feedback import our_log


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_a_copy_holds_what_the_log_holds(ending: str, tmp_path: Path) -> None:
    """Fails when rounds, rules, designs, unseen rewards or details of a decision are lost on the way."""
    write_run(tmp_path / "a.jsonl", 12)
    ours = open_log(tmp_path / "a.jsonl")
    assert copy_log(ours, tmp_path / f"b{ending}") == 12
    copied = open_log(tmp_path / f"b{ending}")
    assert copied.runs == ours.runs
    for one, two in zip(ours.decisions(), copied.decisions(), strict=True):
        assert repr(two) == repr(one)
        assert two.round.contexts.tolist() == one.round.contexts.tolist()


def test_there_and_back_on_the_command_line(call: Command, tmp_path: Path) -> None:
    log, vw, obp, back = (tmp_path / name for name in ("a.jsonl", "a.json", "a.npz", "b.parquet"))
    our_log(log)
    assert call("data", "convert", log, vw, "--to", "vw").out == f"wrote {vw}: 60 decisions\n"
    assert call("data", "convert", log, obp, "--to", "obp").code == 0
    assert call("data", "convert", obp, back, "--format", "obp", "--to", "log").code == 0
    shown = [decision.round.arm_ids[decision.slate].tolist() for decision in open_log(log).decisions()]
    for read in (read_vw_ccb(vw), read_obp(obp), open_log(back)):
        assert [decision.round.arm_ids[decision.slate].tolist() for decision in read.decisions()] == shown
    assert call("evaluate", back, "--policy", "uniform", "--quiet").code == 0


def test_the_log_of_a_recommender_is_converted(call: Command, tmp_path: Path) -> None:
    """Fails when decisions of the front door, whose features are made of tables, cannot leave in other formats."""
    items = [{"sku": f"s{at}", "price": float(at), "kind": "ab"[at % 2]} for at in range(8)]
    shop = Recommender(items, "sku", slate_size=2, policy="linucb", exploration=0.5, log=tmp_path / "a.jsonl")
    for at in range(12):
        choice = shop.recommend(context={"hour": at})
        shop.feedback(choice.id, {choice.items[0]: at % 2})
    for name, to in (("a.json", "vw"), ("a.parquet", "log"), ("a.npz", "obp")):
        lossy = ["--lossy"] if to == "obp" else []
        answer = call("data", "convert", tmp_path / "a.jsonl", tmp_path / name, "--to", to, *lossy)
        assert answer.out == f"wrote {tmp_path / name}: 12 decisions\n", answer
    values = [decision.rewards.tolist() for decision in open_log(tmp_path / "a.parquet").decisions()]
    assert values == [[float(at % 2), 0.0] for at in range(12)]
    assert [each.rewards.tolist() for each in read_vw_ccb(tmp_path / "a.json").decisions()] == values


def test_what_cannot_be_converted_is_a_sentence(call: Command, tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    write_run(log, 6)
    before = log.read_bytes()
    cases = (
        ([log, tmp_path / "a.json", "--to", "vw"], 65, "give unseen="),
        ([log, tmp_path / "a.npz", "--to", "obp", "--unseen", "0"], 65, "lossy"),
        ([log, tmp_path / "a.txt", "--to", "obp"], 2, ".npz"),
        ([log, tmp_path / "a.txt", "--to", "log"], 2, ".jsonl or .parquet"),
        ([log, log, "--to", "vw"], 2, "another file than LOG"),
        ([log, tmp_path / "b.jsonl", "--to", "log", "--unseen", "0"], 2, "--unseen"),
        ([log, tmp_path / "none" / "a.json", "--to", "vw"], 2, "does not exist"),
        ([tmp_path / "none.jsonl", tmp_path / "a.json", "--to", "vw"], 65, "expected a log"),
        ([log, tmp_path / "a.json", "--to", "csv"], 2, "csv"),
    )
    for arguments, code, said in cases:
        answer = call("data", "convert", *arguments)
        assert (answer.code, said in answer.err) == (code, True), answer
    assert log.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
    assert call("data", "convert", log, tmp_path / "a.npz", "--to", "obp", "--unseen", "0", "--lossy").code == 0
    with np.load(tmp_path / "a.npz") as file:
        assert "action_context" not in file.files
