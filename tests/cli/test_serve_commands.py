"""`neuclust serve`, `keys`, `backup` and `restore` at the command line: what they print, refuse and leave behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Command

from neuclust.serve.api.auth import digest_of
from neuclust.serve.store.contract import Event
from neuclust.serve.store.opening import open_store


def test_a_key_is_made_listed_and_revoked(call: Command, tmp_path: Path) -> None:
    """Fails when a secret is kept, shown twice, or a revoked key stays."""
    db = f"sqlite:{tmp_path / 'shop.db'}"
    made = call("keys", "add", "--scope", "feedback", "--scope", "recommend", "--recommender", "shop", "--db", db)
    assert made.code == 0, made.err
    secret = made.out.strip()
    assert secret.startswith("nk_")
    assert "recommend, feedback" in made.err
    assert secret not in made.err
    store = open_store(db)
    (key,) = store.keys()
    store.close()
    assert (key.digest, key.scopes, key.recommender) == (digest_of(secret), ("recommend", "feedback"), "shop")
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    listed = call("keys", "list", "--db", db)
    assert listed.out.split("\t")[:3] == [key.id, "recommend,feedback", "shop"]
    assert secret not in listed.out
    assert call("keys", "revoke", key.id, "--db", db).code == 0
    again = call("keys", "revoke", key.id, "--db", db)
    assert (again.code, again.out) == (2, "")
    assert again.err.startswith("neuclust: expected the id of a key")
    assert call("keys", "list", "--db", db).out == ""


def test_the_database_may_stand_in_the_environment(
    call: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when an address with a password must stand on the command line, where others see it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEUCLUST_DB", "sqlite:elsewhere.db")
    assert call("keys", "add", "--scope", "admin").code == 0
    assert (tmp_path / "elsewhere.db").exists()
    monkeypatch.delenv("NEUCLUST_DB")
    assert call("keys", "add", "--scope", "admin").code == 0
    assert (tmp_path / "neuclust.db").exists()


@pytest.mark.parametrize(
    "words",
    [["backup", "sqlite:typo.db", "out.db"], ["replay", "sqlite:typo.db", "--verify"],
     ["keys", "list", "--db", "sqlite:typo.db"], ["keys", "revoke", "ab", "--db", "sqlite:typo.db"]],
    ids=["backup", "replay", "list", "revoke"],
)  # fmt: skip
def test_a_mistyped_database_is_not_made(
    call: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    """Fails when a command that only reads a database makes one of a mistyped name, and succeeds."""
    monkeypatch.chdir(tmp_path)
    answer = call(*words)
    assert answer.code == 2
    assert "expected a database that is there, got sqlite:typo.db; check the path" in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "option"),
    [(["--db", "mysql://x"], "--db"), (["--host", "0.0.0.0"], "--host"), (["--role", "api"], "--role"),
     (["--port", "70000"], "--port"), (["--longest-wait", "0"], "--longest-wait"), (["--role", "boss"], "--role")],
)  # fmt: skip
def test_serve_refuses_what_cannot_work(
    call: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], option: str
) -> None:
    """Fails when a service starts where it cannot be safe, or the refusal does not name the option."""
    monkeypatch.chdir(tmp_path)
    answer = call("serve", *words)
    assert answer.code == 2
    assert option in answer.err
    assert "Traceback" not in answer.err


def test_a_backup_is_restored(call: Command, tmp_path: Path) -> None:
    """Fails when a backup lacks events or keys, or replaces something."""
    db, file = f"sqlite:{tmp_path / 'shop.db'}", tmp_path / "backup.db"
    store = open_store(db)
    head = store.create("shop", b'{"slate_size":3}')
    store.append({head.id: [Event("items", b'{"rows":[]}')] * 3})
    store.close()
    assert call("backup", db, file).code == 0
    again = call("backup", db, file)
    assert again.code == 2
    assert "expected a new file" in again.err
    target = f"sqlite:{tmp_path / 'other.db'}"
    assert call("restore", file, target).code == 0
    store = open_store(target)
    found = store.head("shop")
    store.close()
    assert found is not None
    assert found.seq == 4
    assert call("restore", file, target).code != 0  # it is not empty any more
    missing = call("restore", tmp_path / "nothing.db", target)
    assert missing.code == 2
    assert "which is no file" in missing.err
