"""`neuclust replay`: what it says, and its exit code where the log and the models do not agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from simulated_service import stored, visits

from neuclust.cli.commands.replay import ReplayOptions
from neuclust.cli.replay_session import replayed
from neuclust.errors import DataError
from neuclust.serve.events import erasure_event
from neuclust.serve.fold.replay import replay
from neuclust.serve.learner.lease import Lease
from neuclust.serve.learner.loop import Loop
from neuclust.serve.learner.publishing import Pace
from neuclust.serve.store.contract import Version
from neuclust.serve.store.opening import open_store
from neuclust.serve.store.sql import SqlStore


@pytest.fixture
def address(tmp_path: Path) -> str:
    """A database with a log that was learned."""
    found = f"sqlite:{tmp_path / 'service.db'}"
    store = open_store(found)
    visits(stored(store), 8)
    loop = Loop(store, Lease(store))
    while loop.turn() == 0.0:
        pass
    loop.finish()
    store.close()
    return found


def test_a_log_that_agrees_is_told_so(address: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Fails when a whole log gives another exit code than 0, or the JSON lacks what was compared."""
    assert replayed(ReplayOptions(address, verify=True, json=str(tmp_path / "out.json"))) == 0
    assert "are the same, byte for byte" in capsys.readouterr().out
    (told,) = json.loads((tmp_path / "out.json").read_text())
    assert told["same"]
    assert told["compared"] >= 2
    with pytest.raises(DataError, match="did you mean shop"):
        replayed(ReplayOptions(address, recommender="shopp"))


def test_a_store_without_recommenders_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fails when nothing was replayed, and the command ends as if all had been whole."""
    empty = f"sqlite:{tmp_path / 'empty.db'}"
    open_store(empty).close()
    assert replayed(ReplayOptions(empty, verify=True)) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "there are no recommenders, nothing was replayed" in said.err


def test_a_replay_after_an_erasure_says_where_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when fewer events than the log has are replayed without a word, or a base is not found that is older than
    the versions that are listed."""
    store = open_store(f"sqlite:{tmp_path / 'service.db'}")
    service, loop = stored(store), Loop(store, Lease(store), Pace(publish=0.0, share=0.0))
    visits(service, 8)
    (row,) = service.write([erasure_event("e1", "u1")])
    for seed in range(1, 4):
        visits(service, 4, seed=seed)
        while loop.turn() == 0.0:
            pass
    loop.finish()
    (head,) = store.heads()
    listed = SqlStore.versions
    monkeypatch.setattr(SqlStore, "versions", lambda store, id, most=1: listed(store, id, most))
    store.close()
    assert replayed(ReplayOptions(f"sqlite:{tmp_path / 'service.db'}", verify=True)) == 0
    said = f"shop: {head.seq - row.seq:,} events since the erasure (base at event {row.seq:,}), "
    assert capsys.readouterr().out.startswith(said)


def test_a_replay_has_one_thread_as_the_learner_has(address: str) -> None:
    """Fails when sums are added in another order than the learner added them, which gives other last digits."""
    before, seen = torch.get_num_threads(), set[int]()
    torch.set_num_threads(2)
    try:
        (result,) = replay(open_store(address), progress=lambda *_: seen.add(torch.get_num_threads()))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == {1}
    assert result.same
    assert "threads" not in result.environment


def test_another_model_and_another_environment_are_told(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Fails when a model that does not follow from the log is taken for the same, or the reason is not looked for."""
    store = open_store(address)
    (head,) = store.heads()
    newest, token = store.versions(head.id)[0], store.lease("test", 60)
    assert token is not None
    blob = store.model(head.id, newest.version)
    assert blob is not None
    environment = {**newest.environment, "torch": "0.1"}
    version = Version(newest.version + 1, newest.seq, newest.time, newest.lessons, False, True, environment)
    store.publish(head.id, token, version, blob[:-1] + b"?", None)
    (result,) = replay(store)
    assert (result.different, result.same) == (1, False)
    assert result.environment["torch"][0] == "0.1"
    store.close()
    assert replayed(ReplayOptions(address, verify=True)) == 1
    said = capsys.readouterr().out
    assert f"the model of version {version.version}" in said
    assert "torch was 0.1, is" in said


def test_a_changed_event_is_found(address: str) -> None:
    """Fails when the content of an event can be changed without anybody noticing."""
    store = open_store(address)
    (head,) = store.heads()
    change = "UPDATE events SET payload = ? WHERE recommender = ? AND seq = 15"
    store.database.write(lambda session: session.run(change, (b"{}", head.id)))
    (result,) = replay(store)
    assert not result.same
    assert result.problem is not None
    store.close()
