"""Bad rows of a log: each is named by file and line in one sentence, or passed over and counted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from logged_runs import Event, changed, line_of, write_run

from neuclust.errors import DataError
from neuclust.logs import open_log
from neuclust.logs.files import Row
from neuclust.logs.reader import checked_log

Change = Callable[[Event], None]


def put(**entries: Any) -> Change:
    return lambda event: event.update(entries)


def design(**entries: Any) -> Change:
    return lambda event: event["design"].update(entries)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """10 decisions of 9 arms; the fifth and the tenth have rules."""
    path = tmp_path / "a.jsonl"
    write_run(path, 10)
    return path


DECISIONS = {
    "zero": (put(propensities=[0.5, 0.0, 0.5]), "propensities above 0 and at most 1, got 0.0"),
    "above one": (put(propensities=[0.5, 1.5, 0.5]), "propensities above 0 and at most 1, got 1.5"),
    "nan": (put(propensities=[0.5, float("nan"), 0.5]), "propensities above 0 and at most 1, got nan"),
    "no number": (put(propensities=[0.5, None, 0.5]), "propensities above 0 and at most 1, got None"),
    "missing": (put(propensities=None), "expected propensities, since the design is sequential, got none"),
    "too few": (put(propensities=[0.5, 0.5]), "expected 3 entries of propensities, got 2"),
    "too long": (put(eligible=[10, 17], slate=[10, 17, 24]), "a slate of at most its 2 eligible arms, got 3"),
    "foreign": (put(slate=[10, 17, 99]), "expected eligible arms as slate, got 99"),
    "twice": (put(slate=[10, 17, 10]), "every arm of slate once, got 10 twice"),
    "not k": (put(k=2), "expected a slate of k = 2 arms, got 3"),
    "beyond K": (put(k=4, slate=[10, 17, 24, 31], propensities=[0.5] * 4), "k of at most 3"),
    "rewards": (put(rewards=[1.0]), "expected 3 entries of rewards, got 1"),
    "infinite": (put(rewards=[1.0, 1e300, 0.0]), "expected finite numbers as rewards, got 1e+300"),
    "text": (put(slate_reward="1"), "expected a finite number as slate_reward, got '1'"),
    "shown": (put(shown=[1, 0, 1]), "expected true or false for every slot as shown"),
    "kind": (design(kind="dice"), "design: expected one of deterministic, sequential"),
    "base": (design(base=[99]), "expected eligible arms as design.base, got 99"),
    "share": (design(share=1.1), "a number from 0 to 1 as design.share, got 1.1"),
    "sizes": (design(sizes=[9, 9, 9]), "expected design.sizes [9, 8, 7] by eligible arms and rules"),
    "certain": (design(kind="deterministic"), "expected propensities of 1 of a deterministic design"),
    "one coin": (design(kind="one-coin", base=[]), "the slate that one coin is thrown for as design.base"),
    "query": (put(query=[1.0]), "expected 4 entries of query, got 1"),
    "features": (put(features=[1.0] * 7), "expected 36 entries of features, got 7"),
    "no features": (put(eligible=[10, 17, 24, 99], slate=[10, 17, 99], design=None), "profile of every eligible arm"),
    "id": (put(id=""), "expected a text as id"),
    "t": (put(t=0), "a whole number of at least 1 as t"),
    "event": (put(event="decided"), "event: expected one of start, arm, decision, feedback, got 'decided'"),
    "run": (put(run="other"), "an event of a run that was started, got run 'other'"),
    "user": (put(user=[1]), "a text, a whole number or null as user"),
    "caps": (put(caps=[{"groups": ["a"] * 9, "most": 1}]), "groups: expected numbers"),
    "groups": (put(caps=[{"groups": [1], "most": 1}]), "expected 9 entries of groups, got 1"),
    "rules": (put(excluded=[10, 17, 24, 31, 38, 45, 52, 59, 66]), "a slate that its rules allow"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "said"), DECISIONS.values(), ids=DECISIONS.keys())
def test_a_bad_decision_is_named(path: Path, change: Change, said: str) -> None:
    """Fails when a bad entry is read as if it were good, or the message lacks file, line or what to do."""
    number = line_of(path, "decision", 1)
    changed(path, number, lambda event: event["design"].pop("sizes"))
    changed(path, number, change)
    with pytest.raises(DataError) as refused:
        open_log(path)
    sentence = str(refused.value)
    assert sentence.startswith(f"{path}, line {number}: ")
    assert said in sentence
    assert "\n" not in sentence
    assert ";" in sentence or said.startswith("groups")
    assert refused.value.exit_code == 65


STARTS = {
    "format": (put(format=3), "expected format 2, got 3"),
    "learning": (put(learning=None), "expected true or false as learning"),
    "size": (put(slate_size=0), "a whole number of at least 1 as slate_size"),
    "values": (put(reward_values=[0, 1]), "expected 4 entries of reward_values, got 2"),
    "run": (put(run=5), "expected a text as run, got 5"),
}


@pytest.mark.parametrize(("change", "said"), STARTS.values(), ids=STARTS.keys())
def test_a_bad_start_is_named(path: Path, change: Change, said: str) -> None:
    """Fails when a log of another format, or one whose start lacks what its rows need, is read."""
    changed(path, 1, change)
    with pytest.raises(DataError, match="line 1: ") as refused:
        open_log(path)
    assert said in str(refused.value)


def appended(path: Path, *events: Event) -> int:
    """Add events; the number of the last line."""
    with path.open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)
    return len(path.read_text().splitlines())


def feedback(**entries: Any) -> Event:
    return {"event": "feedback", "run": "first", "decision": "3", "arms": [], "values": [], **entries}


def test_feedback_that_fits_no_decision_is_named(path: Path) -> None:
    """Fails when rewards without a decision, or of arms that were not in its slate, are silently dropped."""
    text = path.read_text()
    for event, said in (
        (feedback(decision="77"), "feedback for an earlier decision of its run, got decision '77'"),
        (feedback(arms=[99], values=[1.0]), "values of arms of the slate of decision '3', got arm 99"),
        (feedback(arms=[10], values=[]), "expected 1 entries of values, got 0"),
        (feedback(shown=[True]), "expected 3 entries of shown, one per slot, got 1"),
        (feedback(run="second"), "an event of a run that was started, got run 'second'"),
    ):
        path.write_text(text)
        number = appended(path, event)
        with pytest.raises(DataError, match=f"line {number}: expected ") as refused:
            open_log(path)
        assert said in str(refused.value)
    path.write_text(text)
    appended(path, feedback(slate_reward=4.0))
    assert [each.slate_reward for each in open_log(path).decisions()][2] == 4.0


def test_feedback_before_its_decision_is_named(path: Path) -> None:
    """Fails when feedback is taken for a decision that was made only after it."""
    lines = path.read_text().splitlines(keepends=True)
    last = lines.pop()
    path.write_text("".join([*lines, json.dumps(feedback(decision="10")) + "\n", last]))
    with pytest.raises(DataError, match=f"line {len(lines) + 1}: expected feedback for an earlier decision"):
        open_log(path)


def test_an_id_that_comes_twice_is_named(path: Path) -> None:
    """Fails when two decisions of a run may share an id, or equal ids of two runs are refused."""
    number = line_of(path, "decision", 6)
    changed(path, number, put(id="2"))
    with pytest.raises(DataError, match=f"line {number}: expected every decision id of a run once, got '2' again"):
        open_log(path)
    log = open_log(path, skip_bad=1)
    assert [each.id for each in log.decisions()] == ["1", "2", "3", "4", "5", "6", "8", "9", "10"]


def test_lines_that_are_no_events_are_named(path: Path) -> None:
    """Fails when a broken line in the middle of a log is passed over."""
    text = path.read_text()
    for line, said in (
        ("{broken", "a JSON object, got b'{broken"),
        ("[1]", "a JSON object, got [1]"),
    ):
        path.write_text(text.replace("\n", f"\n{line}\n", 1))
        with pytest.raises(DataError) as refused:
            open_log(path)
        assert f"line 2: expected {said}" in str(refused.value)


def test_bad_rows_are_passed_over_up_to_a_number(path: Path) -> None:
    """Fails when more bad rows than allowed are skipped, or one is skipped without being told and counted."""
    for place in (1, 4):
        changed(path, line_of(path, "decision", place), put(propensities=[2.0] * 3))
    appended(path, feedback(decision="77"))
    told: list[str] = []
    log = open_log(path, skip_bad=3, on_bad=told.append)
    assert (log.skipped, len(told)) == (3, 3)
    assert [each.id for each in log.decisions()] == ["1", "3", "4", "6", "7", "8", "9", "10"]
    with pytest.raises(DataError, match="got decision '77'"):
        open_log(path, skip_bad=2)


def test_a_bad_row_of_a_parquet_file_is_named(tmp_path: Path) -> None:
    """Fails when rows of Parquet files are not checked as lines are, or files that are none are not refused."""
    path = tmp_path / "a.parquet"
    write_run(path, 5)
    frame = pl.read_parquet(path)
    wrong = pl.when(pl.col("id") == "4").then(pl.lit([0.0, 1.0, 1.0])).otherwise(pl.col("propensities"))
    frame.with_columns(wrong.alias("propensities")).write_parquet(path)
    with pytest.raises(DataError, match="row 14: expected propensities above 0"):
        open_log(path)
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match="expected a Parquet file of events"):
        open_log(path)


def test_files_that_are_no_logs_are_refused(tmp_path: Path) -> None:
    """Fails when a missing, an empty or another file is taken for a log without decisions."""
    empty = tmp_path / "a.jsonl"
    empty.write_text("")
    with pytest.raises(DataError, match="expected a log that begins with a start event"):
        open_log(empty)
    with pytest.raises(DataError, match="found no such file"):
        open_log(tmp_path / "b.jsonl")


HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**70, 1.5, float("nan"), float("inf"), 1e200, "", "x", "first", [], [None], [1], [[1]],
    ["a"], [True] * 3, [1e200] * 3, [2**70] * 3, [0.5] * 3, [10, 17, 24], {}, {"kind": []},
    {"kind": "uniform", "base": 5},
    {"kind": "sequential", "pool": [[1]], "sizes": {}}, [{"groups": [1] * 9, "most": 1}], [{"most": "a"}],
)  # fmt: skip


def test_no_value_of_any_entry_breaks_the_reader(path: Path) -> None:
    """Fails when a hostile entry raises anything but the sentence of a `DataError`, now or while decisions are read."""
    appended(path, feedback(arms=[], values=[], slate_reward=1.0))
    rows = [Row(number, json.loads(line)) for number, line in enumerate(path.read_text().splitlines(), 1)]
    places = [0, 1, 11, 14, len(rows) - 1]  # a start, an arm, a decision, one with rules, feedback
    refused = read = 0
    for place in places:
        event = rows[place].event
        assert event is not None
        for key, value in itertools.product(event, HOSTILE):
            changed_rows = [*rows[:place], Row(place + 1, event | {key: value}), *rows[place + 1 :]]
            try:
                log = checked_log(path, lambda found=changed_rows: found, "line")  # type: ignore[misc]
                read += bool(list(log.decisions()))
            except DataError:
                refused += 1
    assert refused > 300
    assert read > 50
