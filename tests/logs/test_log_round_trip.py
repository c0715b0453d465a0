"""What is written is read back: rounds, designs, rewards, late feedback, in lines and in Parquet."""

from __future__ import annotations

import json
import math
from itertools import islice
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest
import torch
from logged_runs import DIM, K, explorer, feedback_of, profiles, rounds, write_run

from neuclust.core import Round, Slate
from neuclust.errors import ConfigError, DataError, LogWarning
from neuclust.logs import DecisionLog, LoggedDecision, LogWriter, RunStart, json_schema, open_log
from neuclust.registry import build_policy
from neuclust.slates.propensities import Exploration, probability
from neuclust.slates.rules import option_counts

SUFFIXES = pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
START = RunStart("first", "uniform", K, DIM, learning=False)


def same_tensor(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    return (one is None) == (other is None) and (one is None or other is None or torch.equal(one, other))


def assert_same_round(read: Round, written: Round) -> None:
    for name in ("arm_ids", "profiles", "query", "features"):
        assert same_tensor(getattr(read, name), getattr(written, name)), name
    assert (read.t, read.slate_size) == (written.t, written.slate_size)
    assert (read.rules is None) == (written.rules is None)
    if read.rules is not None and written.rules is not None:
        assert torch.equal(read.rules.required, written.rules.required)
        assert torch.equal(read.rules.excluded, written.rules.excluded)
        for one, other in zip(read.rules.caps, written.rules.caps, strict=True):
            assert (one.most, one.groups.tolist()) == (other.most, other.groups.tolist())


@SUFFIXES
def test_rounds_and_slates_come_back_bit_for_bit(tmp_path: Path, suffix: str) -> None:
    """Fails when an entry of a round, a slate, its design or its feedback is lost or changed on the way."""
    path = tmp_path / f"a{suffix}"
    played = write_run(path)
    log = open_log(path)
    assert isinstance(log, DecisionLog)
    assert (log.slate_size, log.dim, log.reward, log.skipped, log.path) == (K, DIM, "mean", 0, path)
    assert log.runs["first"].reward_values == (0, 1 / 3, 2 / 3, 1)
    read = list(log.decisions())
    assert len(read) == len(played) == 20
    for decision, (round, slate) in zip(read, played, strict=True):
        assert_same_round(decision.round, round)
        assert slate.propensities is not None
        assert decision.propensities is not None
        assert decision.slate.tolist() == slate.positions.tolist()
        assert decision.propensities.tolist() == slate.propensities.tolist()
        assert decision.design == slate.design
        assert decision.sizes == option_counts(round, slate.positions.tolist())
        paid = feedback_of(round.t)
        np.testing.assert_array_equal(decision.rewards, paid.arm_rewards.numpy())
        assert decision.slate_reward == float(paid.slate_reward)
        assert (decision.run, decision.id, decision.time) == ("first", str(round.t), 0.5 * round.t)
        assert (decision.user, decision.version, decision.shown) == (f"u{round.t % 4}", str(round.t), None)


def test_the_design_of_the_log_gives_the_logged_propensities(tmp_path: Path) -> None:
    """Fails when base slate or pool of a read design are other arms than those the slate was drawn around."""
    path = tmp_path / "a.jsonl"
    write_run(path)
    for decision in open_log(path).decisions():
        design = decision.design
        exploration = Exploration(design.share, max(1, len(design.pool)), design.anywhere)
        base, pool = torch.tensor(design.base), torch.tensor(design.pool)
        again = probability(torch.from_numpy(decision.slate), base, pool, decision.round, exploration)
        np.testing.assert_array_equal(again.numpy(), decision.propensities)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("uniform", "uniform"), ("epsilon-greedy", "one-coin"), ("linucb", "deterministic"), ("lin-ts", "unknown")],
)
def test_every_policy_tells_its_design(tmp_path: Path, name: str, kind: str) -> None:
    """Fails when a policy's slates are logged with another design than the one they are drawn by."""
    path = tmp_path / "a.jsonl"
    plain = [round for round in rounds(12) if round.rules is None]
    policy = build_policy(name, dim=DIM, slate_size=K)
    with LogWriter(path) as log:
        log.start(RunStart("one", name, K, DIM))
        for round in plain:
            slate = policy.select(round)
            log.decided(round, slate)
            policy.update(round, slate, feedback_of(round.t))
    read = list(open_log(path).decisions())
    assert {decision.design.kind for decision in read} == {kind}
    assert all(len(decision.design.base) == K for decision in read if kind in ("one-coin", "deterministic"))
    assert all(math.isnan(decision.slate_reward) and np.isnan(decision.rewards).all() for decision in read)


@SUFFIXES
def test_decisions_can_be_gone_through_again(tmp_path: Path, suffix: str) -> None:
    """Fails when a second pass, or one begun beside an unfinished first, sees other decisions."""
    path = tmp_path / f"a{suffix}"
    write_run(path)
    log = open_log(path)
    started = log.decisions()
    next(started)
    ids = [decision.id for decision in log.decisions()]
    assert ids == [str(t) for t in range(1, 21)]
    assert [decision.id for decision in started] == ids[1:]


@SUFFIXES
def test_late_feedback_joins_its_decision(tmp_path: Path, suffix: str) -> None:
    """Fails when late values are lost, come to the wrong slot, or an earlier value beats a later one."""
    path = tmp_path / f"a{suffix}"
    (round, *_), policy = rounds(1), explorer()
    slate = policy.select(round)
    arms = round.arm_ids[slate.positions].tolist()
    with LogWriter(path) as log:
        log.start(START)
        first, second = log.decided(round, slate), log.decided(round, slate, feedback_of(1), id="mine")
        third = log.decided(round, slate, shown=[True, True, False])
        log.heard(first, {arms[2]: 0.25, arms[0]: 1.0}, time=9.0, partial=True)
        log.heard(first, {arms[0]: 0.0}, slate_reward=0.5, shown=[True, False, True])
        log.heard(second, {arms[1]: 7.0})
    read = {decision.id: decision for decision in open_log(path).decisions()}
    assert list(read) == ["1", "mine", "3"]
    np.testing.assert_array_equal(read[first].rewards, [0.0, math.nan, 0.25])
    assert read[first].slate_reward == 0.5
    assert [list(each.shown) if each.shown is not None else None for each in read.values()] == [
        [True, False, True], None, [True, True, False],
    ]  # fmt: skip
    np.testing.assert_array_equal(read["mine"].rewards, [1.0, 7.0, 0.0])
    assert np.isnan(read[third].rewards).all()


@SUFFIXES
def test_a_changed_profile_holds_from_its_line_on(tmp_path: Path, suffix: str) -> None:
    """Fails when an arm's later profile reaches earlier rounds, or a change made in place is missed."""
    path, table = tmp_path / f"a{suffix}", profiles()
    before = table.clone()
    policy = build_policy("uniform", dim=DIM, slate_size=K)
    ids = torch.arange(len(table))
    with LogWriter(path) as log:
        log.start(START)
        for t in (1, 2, 3):
            round = Round(t, ids, table, None, K)
            log.decided(round, policy.select(round))
            if t == 2:
                table[4] += 1.0
    read = [decision.round.profiles for decision in open_log(path).decisions()]
    assert torch.equal(read[0], before)
    assert torch.equal(read[1], before)
    assert torch.equal(read[2], table)
    assert read[2][4, 0] == before[4, 0] + 1


def test_the_catalogue_is_written_once(tmp_path: Path) -> None:
    """Fails when profiles are written again for rounds that offer the same arms, as equal or as other tensors."""
    path = tmp_path / "a.jsonl"
    write_run(path, 20)
    kinds = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert (kinds.count("arm"), kinds.count("decision")) == (9, 20)
    whole = [json.loads(line) for line in path.read_text().splitlines()][-1]
    assert whole["eligible"] is None or len(whole["eligible"]) == 6


def test_every_line_keeps_to_the_schema(tmp_path: Path) -> None:
    """Fails when the writer and the published JSON Schema disagree, or the schema accepts anything."""
    path = tmp_path / "a.jsonl"
    write_run(path)
    with LogWriter(path) as log:
        log.start(RunStart("second", "uniform", K, DIM))
        (round,) = rounds(1)
        id = log.decided(round, explorer().select(round), user=12)
        log.heard(id, {int(round.arm_ids[0]): 1.0})
    schema = jsonschema.Draft202012Validator(json_schema())
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert {event["event"] for event in events} == {"start", "arm", "decision", "feedback"}
    for event in events:
        schema.validate(event)
    decision = next(event for event in events if event["event"] == "decision")
    for wrong in ({"propensities": [0.0] * 3}, {"slate": ["a"]}, {"design": {"kind": "dice"}}, {"event": "party"}):
        assert not schema.is_valid(decision | wrong)


def test_features_are_enough_where_there_is_no_catalogue(tmp_path: Path) -> None:
    """Fails when a decision that carries its features needs arm events besides."""
    path = tmp_path / "a.jsonl"
    start = {"event": "start", "format": 2, "run": "r", "policy": "", "slate_size": 1, "dim": 2, "learning": False}
    row = {"event": "decision", "run": "r", "id": "x", "t": 1, "eligible": [5, 6], "features": [1, 2, 3, 4], "k": 1,
           "slate": [6], "rewards": [1]}  # fmt: skip
    path.write_text(f"{json.dumps(start)}\n{json.dumps(row)}\n")
    (decision,) = open_log(path).decisions()
    assert decision.round.contexts.tolist() == [[1, 2], [3, 4]]
    assert decision.slate.tolist() == [1]
    assert (decision.design.kind, decision.propensities, decision.sizes) == ("unknown", None, (2,))


def test_runs_of_one_file_are_told_apart(tmp_path: Path) -> None:
    """Fails when a file is not continued, when runs mix their catalogues, or when a run is begun twice."""
    path = tmp_path / "a.jsonl"
    write_run(path, 3)
    (round,) = rounds(1)
    other = Round(1, round.arm_ids, round.profiles + 1, None, K)
    with LogWriter(path) as log:
        assert log.runs == {"first"}
        with pytest.raises(ConfigError, match="expected a run that is not in"):
            log.start(START)
        log.start(RunStart("second", "uniform", K, DIM))
        log.decided(other, Slate(torch.arange(K), torch.zeros(K), torch.zeros(K)))
    read = list(open_log(path).decisions())
    assert [f"{decision.run} {decision.id}" for decision in read] == ["first 1", "first 2", "first 3", "second 1"]
    assert torch.equal(read[0].round.profiles, round.profiles)
    assert torch.equal(read[-1].round.profiles, other.profiles)


def test_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    """Fails when a wrong name, another file, an existing Parquet file or a missing start is taken."""
    other, table = tmp_path / "notes.jsonl", tmp_path / "a.parquet"
    other.write_text('{"title": "mine"}\n')
    write_run(table, 2)
    for path, said in (
        (tmp_path / "a.csv", "expected a file named .jsonl or .parquet"),
        (other, "expected a log of this format or a new file"),
        (table, "expected a new file"),
        (tmp_path / "none" / "a.jsonl", "does not exist"),
    ):
        with pytest.raises(ConfigError, match=said):
            LogWriter(path)
    (round,) = rounds(1)
    log = LogWriter(tmp_path / "b.jsonl")
    with pytest.raises(ConfigError, match="expected a run that was begun"):
        log.decided(round, explorer().select(round))
    log.close()
    with pytest.raises(ConfigError, match="was closed"):
        log.start(START)


def test_what_no_log_can_hold_is_refused_whole(tmp_path: Path) -> None:
    """Fails when a refused decision leaves half of itself behind, or its arms are missing from the next one."""
    path = tmp_path / "a.jsonl"
    (round,), policy = rounds(1), explorer()
    slate = policy.select(round)
    wrong = Round(1, round.arm_ids, round.profiles, torch.full((DIM,), math.inf), K)
    with LogWriter(path) as log:
        log.start(START)
        with pytest.raises(DataError, match="expected finite numbers and plain texts"):
            log.decided(wrong, slate)
        log.decided(round, slate)
    (decision,) = open_log(path).decisions()
    assert_same_round(decision.round, round)


def test_columns_of_another_writer_may_be_empty(tmp_path: Path) -> None:
    """Fails when a Parquet file without a design, or with columns that are missing, is not read as unknown."""
    path = tmp_path / "a.parquet"
    write_run(path, 5)
    frame = pl.read_parquet(path)
    nothing = pl.lit(None, dtype=frame.schema["design"]).alias("design")
    frame.with_columns(nothing).drop("user", "propensities", "version", "shown").write_parquet(path)
    read = list(open_log(path).decisions())
    assert [(each.design.kind, each.propensities, each.user) for each in read] == 5 * [("unknown", None, None)]


def test_a_killed_parquet_writer_leaves_lines_that_are_a_log(tmp_path: Path) -> None:
    """Fails when rows of a Parquet log exist nowhere before it is closed, or a half-made file takes its name."""
    path = tmp_path / "a.parquet"
    log = LogWriter(path)
    log.start(START)
    (round,) = rounds(1)
    log.decided(round, explorer().select(round))
    assert not path.exists()
    spool = tmp_path / "a.parquet.jsonl"
    assert len(list(open_log(spool).decisions())) == 1
    log.close()
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def test_a_cut_off_line_is_passed_over_and_repaired(tmp_path: Path) -> None:
    """Fails when a kill in the middle of a line makes a log unreadable, is not warned of, or ruins the next run."""
    path = tmp_path / "a.jsonl"
    write_run(path, 5)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.warns(LogWarning, match="line 15: the last line was not finished"):
        log = open_log(path)
    assert (len(list(log.decisions())), log.skipped) == (4, 0)
    with pytest.warns(LogWarning, match="bytes are cut off"), LogWriter(path) as writer:
        writer.start(RunStart("second", "uniform", K, DIM))
    assert set(open_log(path).runs) == {"first", "second"}


def test_a_log_that_grows_is_read_as_it_was(tmp_path: Path) -> None:
    """Fails when rows that were not there when the log was opened come without having been checked."""
    path = tmp_path / "a.jsonl"
    write_run(path, 4)
    log = open_log(path)
    with path.open("a") as file:
        file.write('{"event": "decision"}\n')
    found: list[LoggedDecision] = list(islice(log.decisions(), 10))
    assert len(found) == 4
