"""Logs of other systems: Vowpal Wabbit's CCB decisions, feedback of the Open Bandit Pipeline."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logged_runs import DIM, K, explorer, feedback_of, profiles, write_run

from neuclust.core import Round
from neuclust.errors import DataError
from neuclust.logs import DecisionLog, LogWriter, RunStart, open_log, read_obp, read_vw_ccb, write_vw_ccb

TOPICS = ("ski", "herbs", "games", "city")


def vw_line(**changes: Any) -> dict[str, Any]:
    """Two slots of four actions: action 1, then action 3 of those left."""
    return {
        "Timestamp": "2019-09-10T14:43:37.2010000Z", "Version": "1", "EventId": "first",
        "c": {
            "User": {"major": "law", "age": 0.5, "new": True, "old": False},
            "_multi": [{"Topic": {"name": topic}, "price": 2.0 * place} for place, topic in enumerate(TOPICS)],
            "_slots": [{"_id": "a"}, {"_id": "b"}],
        },
        "_outcomes": [
            {"_label_cost": -1.0, "_id": "a", "_a": [1, 3, 0, 2], "_p": [0.7, 0.1, 0.1, 0.1]},
            {"_label_cost": 0.0, "_id": "b", "_a": [3, 0, 2], "_p": [0.25, 0.5, 0.25]},
        ],
        "VWState": {"m": "model-7"},
        **changes,
    }  # fmt: skip


def written(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_ccb_decision_is_read(tmp_path: Path) -> None:
    """Fails when chosen actions, chances, rewards or features of a CCB line come out wrong."""
    log = read_vw_ccb(written(tmp_path / "a.json", vw_line(), vw_line(EventId="second")))
    assert isinstance(log, DecisionLog)
    one, two = log.decisions()
    assert (one.id, two.id, one.version, log.slate_size, log.reward) == ("first", "second", "model-7", 2, "sum")
    assert one.time == pytest.approx(1568126617.201)
    assert one.slate.tolist() == [1, 3]
    assert one.propensities is not None
    assert one.propensities.tolist() == [0.7, 0.25]
    assert (one.design.kind, one.sizes) == ("unknown", (4, 3))
    assert one.rewards.tolist() == [1.0, 0.0]
    assert math.copysign(1.0, one.rewards[1]) == 1.0
    assert one.slate_reward == 1.0
    # columns: Topic.name=city, games, herbs, ski, price, then User.age, User.major=law, User.new
    assert one.round.contexts.tolist() == [
        [0, 0, 0, 1, 0, 0.5, 1, 1], [0, 0, 1, 0, 2, 0.5, 1, 1], [0, 1, 0, 0, 4, 0.5, 1, 1], [1, 0, 0, 0, 6, 0.5, 1, 1],
    ]  # fmt: skip
    assert one.round.profiles.shape == (4, 5)
    assert one.round.arm_ids.tolist() == two.round.arm_ids.tolist() == [0, 1, 2, 3]


def test_columns_may_be_hashed_and_crossed(tmp_path: Path) -> None:
    """Fails when hashing depends on anything but the names, or products are not those of arms and context."""
    path = written(tmp_path / "a.json", vw_line())
    (hashed,), (again,) = (list(read_vw_ccb(path, hashed=16).decisions()) for _ in range(2))
    assert hashed.round.contexts.shape == (4, 32)
    assert hashed.round.contexts.tolist() == again.round.contexts.tolist()
    assert len({tuple(row) for row in hashed.round.profiles.tolist()}) == 4
    (crossed,) = read_vw_ccb(path, crossed=True).decisions()
    row = crossed.round.contexts[2].numpy()
    np.testing.assert_array_equal(row[8:], np.outer(row[:5], row[5:8]).ravel())


def test_equal_actions_of_a_line_are_two_arms(tmp_path: Path) -> None:
    """Fails when actions that cannot be told apart by features make a line unreadable, or arms change their numbers."""
    first, second = vw_line(), vw_line(EventId="second")
    first["c"]["_multi"][2] = first["c"]["_multi"][1]
    read = list(read_vw_ccb(written(tmp_path / "a.json", first, second)).decisions())
    assert [each.round.arm_ids.tolist() for each in read] == [[0, 1, 2, 3], [0, 1, 4, 3]]


def test_a_decision_that_was_not_shown_has_no_rewards(tmp_path: Path) -> None:
    """Fails when a deferred decision counts as one without clicks, or a missing cost as 0."""
    bare = vw_line(EventId="second")
    del bare["_outcomes"][1]["_label_cost"]
    one, two = read_vw_ccb(written(tmp_path / "a.json", vw_line(_skipLearn=True), bare)).decisions()
    assert np.isnan(one.rewards).all()
    assert one.shown is not None
    assert not one.shown.any()
    np.testing.assert_array_equal(two.rewards, [1.0, math.nan])
    assert math.isnan(two.slate_reward)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"_outcomes": None}, "expected one outcome per slot as _outcomes, got None"),
        ({"c": {}}, "expected actions as c._multi"),
        ({"_outcomes": [{"_a": [7], "_p": [0.5]}]}, "expected an action from 0 to 3 as _a, got 7"),
        ({"_outcomes": [{"_a": [1], "_p": [0.0]}]}, "expected propensities above 0 and at most 1, got 0.0"),
        ({"_outcomes": [{"_a": [1]}]}, "expected propensities above 0 and at most 1, got None"),
        ({"_outcomes": 2 * [{"_a": 1, "_p": 0.5}]}, "expected every arm of slate once, got 1 twice"),
        ({"_outcomes": [{"_a": 1, "_p": 0.5, "_label_cost": "x"}]}, "expected a number as _label_cost"),
        ({"_outcomes": [{"_a": 1, "_p": 0.5, "_inc": [1]}]}, "got _inc"),
        ({"pdrop": 0.5}, "expected a log without dropped lines, got pdrop = 0.5"),
        ({"EventId": "first"}, "expected every decision id of a run once"),
        ({"Timestamp": "noon"}, "as Timestamp, got 'noon'"),
    ],
)
def test_a_bad_ccb_line_is_named_or_passed_over(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    """Fails when a line that is no whole decision is read, or passed over without leave, or takes others with it."""
    bad = vw_line(**({"EventId": "second"} | changes))
    path = written(tmp_path / "a.json", vw_line(), bad, vw_line(EventId="third"))
    with pytest.raises(DataError) as refused:
        read_vw_ccb(path)
    assert str(refused.value).startswith(f"{path}, line 2: ")
    assert said in str(refused.value)
    log = read_vw_ccb(path, skip_bad=1)
    assert [each.id for each in log.decisions()] == ["first", "third"]


def test_a_log_written_for_vw_comes_back(tmp_path: Path) -> None:
    """Fails when slate, chances, rewards or features change on the way to CCB and back."""
    path, table, policy = tmp_path / "a.jsonl", profiles(), explorer()
    with LogWriter(path) as log:
        log.start(RunStart("mine", "linucb", K, DIM))
        for t in (1, 2, 4):
            round = Round(t, np.arange(len(table)) * 3 + 5, table, None, K)  # type: ignore[arg-type]
            log.decided(round, policy.select(round), feedback_of(t))
    ours = open_log(path)
    assert write_vw_ccb(ours, tmp_path / "vw.json") == 3
    for one, two in zip(ours.decisions(), read_vw_ccb(tmp_path / "vw.json").decisions(), strict=True):
        assert two.id == f"mine/{one.id}"
        assert two.round.arm_ids.tolist() == one.round.arm_ids.tolist()
        assert two.round.contexts.tolist() == one.round.contexts.tolist()
        assert (two.slate.tolist(), two.rewards.tolist()) == (one.slate.tolist(), one.rewards.tolist())
        np.testing.assert_array_equal(two.propensities, one.propensities)


def test_what_ccb_cannot_hold_is_refused(tmp_path: Path) -> None:
    """Fails when unseen rewards silently become 0, or a refused file is left half written."""
    path, out = tmp_path / "a.jsonl", tmp_path / "vw.json"
    write_run(path, 4)
    with pytest.raises(DataError, match="decision '3' of run 'first': expected rewards of all slots"):
        write_vw_ccb(open_log(path), out)
    assert not out.exists()
    assert write_vw_ccb(open_log(path), out, unseen=0.0) == 4


# --- the Open Bandit Pipeline ---------------------------------------------------------------------------------------


def slates() -> dict[str, Any]:
    """Two slates of two positions among three actions, in mixed order of rows."""
    return {
        "n_rounds": 2, "n_unique_action": 3,
        "slate_id": np.array([0, 1, 0, 1]), "position": np.array([1, 0, 0, 1]), "action": np.array([2, 1, 0, 0]),
        "reward": np.array([1.0, 0.5, 0.0, 0.25]), "pscore_cascade": np.array([0.12, 0.5, 0.3, 0.5]),
        "pscore": np.array([0.12, 0.5, 0.12, 0.5]), "context": np.array([[1.0, 2.0], [3.0, 4.0]]),
        "action_context": np.array([[1.0], [2.0], [3.0]]),
    }  # fmt: skip


def test_slates_of_obp_are_read(tmp_path: Path) -> None:
    """Fails when rows meet the wrong slate or slot, or chances are not those given the slots before."""
    np.savez(tmp_path / "a.npz", **slates())
    for log in (read_obp(slates()), read_obp(tmp_path / "a.npz")):
        one, two = log.decisions()
        assert (one.slate.tolist(), two.slate.tolist()) == ([0, 2], [1, 0])
        assert one.propensities is not None
        assert two.propensities is not None
        assert one.propensities.tolist() == pytest.approx([0.3, 0.4])
        assert two.propensities.tolist() == pytest.approx([0.5, 1.0])
        assert (one.rewards.tolist(), one.slate_reward, two.slate_reward) == ([0.0, 1.0], 1.0, 0.75)
        assert two.round.contexts.tolist() == [[1, 3, 4], [2, 3, 4], [3, 3, 4]]
        assert not log.runs["obp"].learning


def test_plain_feedback_of_obp_is_slates_of_one() -> None:
    """Fails when plain bandit feedback needs what only slates have."""
    plain = {"n_rounds": 3, "n_actions": 4, "action": [3, 0, 1], "reward": [1, 0, 1], "pscore": [0.5, 0.25, 0.125]}
    log = read_obp(plain)
    read = list(log.decisions())
    assert (log.slate_size, log.dim) == (1, 4)
    assert [each.slate.tolist() for each in read] == [[3], [0], [1]]
    assert [each.propensities.tolist() for each in read if each.propensities is not None] == [[0.5], [0.25], [0.125]]
    assert read[0].round.contexts.tolist() == np.eye(4).tolist()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pscore_cascade": None}, "expected the entry pscore_cascade, from which the chance of a slot"),
        ({"reward": np.zeros(3)}, "expected one number per row as reward, got shape (3,)"),
        ({"action": np.array([0.5, 1, 0, 0])}, "expected whole numbers as action"),
        ({"context": np.zeros((3, 2))}, "expected 2 rows of context, got shape (3, 2)"),
        ({"action": np.array([2, 0, 0, 0])}, "row 2: expected every arm of slate once, got 0 twice"),
        ({"action": np.array([2, 1, 7, 0])}, "row 3: expected eligible arms as slate, got 7"),
        ({"pscore_cascade": np.array([0.4, 0.5, 0.3, 0.5])}, "row 3: expected propensities above 0 and at most 1"),
    ],
)
def test_bad_feedback_of_obp_is_named(changes: dict[str, Any], said: str) -> None:
    """Fails when a dictionary that is incomplete or contradicts itself is read."""
    with pytest.raises(DataError) as refused:
        read_obp(slates() | changes)
    assert str(refused.value).startswith("feedback")
    assert said in str(refused.value)


def test_files_with_pickles_are_refused(tmp_path: Path) -> None:
    """Fails when reading a file could run code from it."""
    np.savez(tmp_path / "a.npz", action=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="without pickles"):
        read_obp(tmp_path / "a.npz")
