"""The real Vowpal Wabbit learns what we write, and what it decides is read by us."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from command_line import clean_environment
from logged_runs import rounds, write_run
from patience import HANG_SECONDS

from neuclust import evaluate_log
from neuclust.core import Feedback, Round, Slate
from neuclust.logs import LogWriter, RunStart, open_log, read_vw_ccb, write_vw_ccb
from neuclust.policies.exploring import Exploring
from neuclust.randomness import stream
from neuclust.registry import build_policy
from neuclust.slates.propensities import Exploration

if find_spec("vowpalwabbit") is None:
    pytest.skip("the door to Vowpal Wabbit is checked against it", allow_module_level=True)

ARMS, DIM, SLOTS = 8, 3, 2
LEARN = "--ccb_explore_adf --dsjson --cb_type ips -q AS --quiet"
# trains on a file, then predicts every line of another: a process of its own, which a crash of the library ends alone
SCRIPT = """
import json, sys, vowpalwabbit
model = vowpalwabbit.Workspace(sys.argv[1] + " -d " + sys.argv[2])
print(json.dumps(model.get_weighted_examples()))
for line in open(sys.argv[3]):
    examples = model.parse(line.strip())
    print(json.dumps(model.predict(examples)))
    model.finish_example(examples)
model.finish()
"""
Slots = list[list[tuple[int, float]]]  # of each slot all actions left with their chances, the one it takes first


def vowpal(train: Path, asked: Path, options: str = LEARN) -> tuple[float, list[Slots]]:
    """How many decisions it learned of a file, and what it decides for those of another."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, options, str(train), str(asked)],
        capture_output=True, text=True, env=clean_environment(), timeout=HANG_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    learned, *decided = (json.loads(line) for line in done.stdout.splitlines())
    return float(learned), decided


def dealt(t: int) -> Round:
    """Eight arms of three numbers and what they share, ±1: an arm pays where its first number has that sign."""
    rng = stream(t, "vowpal rounds")
    arms, query = rng.normal(size=(ARMS, DIM)), np.sign(rng.normal(size=1))
    features = np.concatenate([arms, np.broadcast_to(query, (ARMS, 1))], axis=1)
    return Round(t, torch.arange(ARMS), torch.from_numpy(arms), None, SLOTS, torch.from_numpy(features))


def paid(round: Round, positions: Any) -> torch.Tensor:
    contexts = round.contexts[positions]
    return (contexts[:, 0] * contexts[:, -1] > 0.3).double()


def written(path: Path, first: int, count: int) -> Path:
    """Decisions with exploration, as CCB dsjson."""
    policy = Exploring(build_policy("linucb", dim=DIM + 1, slate_size=SLOTS), Exploration(share=0.8, pool=ARMS), seed=1)
    with LogWriter(path.with_suffix(".jsonl")) as log:
        log.start(RunStart("ours", "linucb", SLOTS, DIM + 1, learning=False, reward="sum"))
        for t in range(first, first + count):
            round = dealt(t)
            slate = policy.select(round)
            clicks = paid(round, slate.positions)
            log.decided(round, slate, Feedback(clicks, clicks.sum()), time=1.7e9 + t)
    assert write_vw_ccb(open_log(path.with_suffix(".jsonl")), path) == count
    return path


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("vowpal") / "a.json", 1, 800)


def test_vowpal_wabbit_learns_what_we_write(logged: Path, tmp_path: Path) -> None:
    """Fails when actions, chances, costs or features of the file are not those of the log: then it learns nothing."""
    learned, decided = vowpal(logged, written(tmp_path / "b.json", 1001, 100), f"{LEARN} --epsilon 0")
    assert learned == 800
    slates = [(dealt(1001 + place), [slot[0][0] for slot in slots]) for place, slots in enumerate(decided)]
    assert all(len(set(slate)) == SLOTS for _, slate in slates)
    earned = np.mean([paid(round, slate).sum() for round, slate in slates])
    evenly = np.mean([paid(round, list(range(ARMS))).mean() * SLOTS for round, _ in slates])
    assert earned > 1.7 * evenly


def test_columns_that_all_arms_share_are_written_once_and_come_back(logged: Path) -> None:
    """Fails when features are repeated in every action, or change on the way to Vowpal Wabbit's form and back."""
    first = json.loads(logged.read_text().splitlines()[0])
    assert list(first["c"]["Shared"]) == ["x0000"]
    assert list(first["c"]["_multi"][0]["Action"]) == ["x0000", "x0001", "x0002"]
    one = next(read_vw_ccb(logged).decisions())
    assert one.round.contexts.tolist() == dealt(1).contexts.tolist()
    assert one.time == 1.7e9 + 1


def test_what_vowpal_wabbit_decides_is_read_and_judged(logged: Path, tmp_path: Path) -> None:
    """Fails when a log whose slates and chances are Vowpal Wabbit's own is not read as it was drawn."""
    asked = written(tmp_path / "b.json", 2001, 100)
    _, decided = vowpal(logged, asked, f"{LEARN} --epsilon 0.4")
    lines, values = [], []
    for place, (line, slots) in enumerate(zip(asked.read_text().splitlines(), decided, strict=True)):
        clicks = paid(dealt(2001 + place), [slot[0][0] for slot in slots]).tolist()
        outcomes = [
            {"_label_cost": -click, "_a": [action for action, _ in slot], "_p": [chance for _, chance in slot]}
            for click, slot in zip(clicks, slots, strict=True)
        ]
        lines.append(
            json.dumps(json.loads(line) | {"_outcomes": outcomes, "Timestamp": "2024-02-05T10:00:00.5000000Z"})
        )
        values.append(sum(clicks))
    (tmp_path / "vw.json").write_text("\n".join(lines) + "\n")
    for decision, slots in zip(read_vw_ccb(tmp_path / "vw.json").decisions(), decided, strict=True):
        assert decision.slate.tolist() == [slot[0][0] for slot in slots]
        assert np.asarray(decision.propensities).tolist() == [slot[0][1] for slot in slots]
        assert (decision.round.arm_ids.tolist(), decision.time) == (list(range(ARMS)), 1707127200.5)
    found = evaluate_log(tmp_path / "vw.json", ["popular"], format="vw")
    assert found.logged.decisions == 100
    assert found.logged.value == pytest.approx(np.mean(values[50:]))


def test_rules_leave_the_actions_that_were_possible(tmp_path: Path) -> None:
    """Fails when an arm that was excluded is offered to Vowpal Wabbit, or positions move against the actions."""
    write_run(tmp_path / "a.jsonl", 5)
    write_vw_ccb(open_log(tmp_path / "a.jsonl"), tmp_path / "vw.json", unseen=0.0)
    ruled, ours = rounds(5)[4], list(open_log(tmp_path / "a.jsonl").decisions())[4]
    assert ruled.rules is not None
    line = json.loads((tmp_path / "vw.json").read_text().splitlines()[4])
    tags = [int(action["_tag"]) for action in line["c"]["_multi"]]
    assert set(tags) == set(ruled.arm_ids.tolist()) - set(ruled.rules.excluded.tolist())
    taken = [tags[outcome["_a"][0]] for outcome in line["_outcomes"]]
    assert taken == ours.round.arm_ids[ours.slate].tolist()


def test_a_slate_of_one_is_a_ccb_decision_too(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "a.jsonl") as log:
        log.start(RunStart("one", "", 1, 2))
        round = Round(1, torch.arange(2), torch.eye(2), None, 1)
        nothing = torch.zeros(1)
        slate = Slate(torch.tensor([1]), nothing, nothing, torch.tensor([0.5]))
        log.decided(round, slate, Feedback(torch.ones(1), torch.tensor(1.0)))
    assert write_vw_ccb(open_log(tmp_path / "a.jsonl"), tmp_path / "a.json") == 1
    learned, (slots,) = vowpal(tmp_path / "a.json", tmp_path / "a.json", "--ccb_explore_adf --dsjson --quiet")
    assert learned == 1
    assert [len(slot) for slot in slots] == [2]
