"""Addresses that people write, and databases that are not ours, not whole or not of this version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import apsw
import psycopg
import pytest
from postgres import postgres_address
from stores import KINDS_OF_STORES, decision, new_address

from neuclust.errors import ConfigError
from neuclust.serve.store.addresses import PostgresAddress, read_address
from neuclust.serve.store.contract import Damaged, StoreError
from neuclust.serve.store.migrations import PRESENT, STEPS
from neuclust.serve.store.opening import open_store

EARLIER = Path(__file__).parent


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("shop.db", "did you mean sqlite:shop.db"),
        ("sqlit:shop.db", "did you mean sqlite:"),
        ("postgress://a:hidden@b/c", "did you mean postgres"),
        ("mysql://a:hidden@b/c", "expected sqlite:FILE or postgresql://"),
        ("", "expected sqlite:FILE"),
        ("sqlite:", "name of a file"),
        ("sqlite::memory:", "name of a file"),
        ("sqlite:/", "name of a file"),
        ("sqlite:/nowhere-at-all/shop.db", "make the folder"),
        ("postgresql:shop", "expected sqlite:FILE or postgresql://"),
        ("postgresql://a:hid@den@b/c", "%40"),
        ("postgresql://a:hid/den@b/c", "%2F"),
        ("postgresql://a:hid#den@b/c", "%23"),
        ("postgresql://a:hid?den@b/c", "%3F"),
    ],
)
def test_a_misspelt_address_is_refused_kindly(address: str, words: str) -> None:
    """Fails when an address that cannot work is not refused with advice, or tells its password."""
    with pytest.raises(ConfigError) as refused:
        open_store(address)
    assert words in str(refused.value)
    assert "hid" not in str(refused.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """Fails when the name of a folder is taken for a database."""
    with pytest.raises(ConfigError, match="folder"):
        open_store(f"sqlite:{tmp_path}")


def test_a_database_is_made_only_where_it_may_be(store_address: str) -> None:
    """Fails when a database of a mistyped name is made where it is only to be read, or a whole one is refused."""
    for _ in range(2):  # the first refusal left nothing that the second would take for a database
        with pytest.raises(ConfigError, match=r"expected a database that is there, got .*check the path"):
            open_store(store_address, make=False)
    open_store(store_address).close()
    open_store(store_address, make=False).close()


def test_an_address_is_shown_without_its_password() -> None:
    """Fails when a password in any place of an address can be seen."""
    place = read_address("postgresql://ann:se%40cret@one:1,two:2/shop?sslmode=require&password=other&sslpassword=third")
    assert isinstance(place, PostgresAddress)
    assert place.shown == "postgresql://ann@one:1,two:2/shop?sslmode=require"
    assert place.without_secrets("se@cret se%40cret other third") == "*** *** *** ***"


def test_a_server_that_refuses_or_is_not_there(tmp_path: Path) -> None:
    """Fails when a wrong password or a closed port does not end in one sentence without the password."""
    wrong = re.sub(r":[^:@]+@", ":wrong-word@", postgres_address())
    for address, words in ((wrong, "authentication failed"), ("postgresql://a:wrong-word@127.0.0.1:1/b", "refused")):
        with pytest.raises(StoreError, match=words) as refused:
            open_store(address)
        assert "wrong-word" not in str(refused.value)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("package", ["apsw", "psycopg", "psycopg_pool"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fails when a missing package ends in an ImportError and not in the command that installs it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else True)
    address = f"sqlite:{tmp_path / 'a.db'}" if package == "apsw" else "postgresql://a@127.0.0.1:1/b"
    with pytest.raises(ConfigError, match=r"pip install 'neuclust\[serve\]'"):
        open_store(address)


def test_a_store_needs_no_torch() -> None:
    """Fails when a writer of the log would load torch, numpy or other rooms of the package."""
    code = (
        "import sys, neuclust.serve.store.copying, neuclust.serve.store.sqlite, neuclust.serve.store.postgres\n"
        "own = {'neuclust', 'neuclust.errors', 'neuclust.extras', 'neuclust.serve'}\n"
        "print([name for name in sys.modules if name in ('torch', 'numpy', 'polars') or name.startswith('neuclust') "
        "and name not in own and not name.startswith('neuclust.serve.store')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_foreign_database_is_left_alone(tmp_path: Path) -> None:
    """Fails when a database of another program is changed, or taken for one of neuclust."""
    file = tmp_path / "theirs.db"
    connection = apsw.Connection(str(file))
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(StoreError, match="database of neuclust"):
        open_store(f"sqlite:{file}")
    assert file.read_bytes() == before
    (tmp_path / "text.db").write_text("no database at all, but long enough to be asked for a header " * 100)
    with pytest.raises((Damaged, StoreError)):
        open_store(f"sqlite:{tmp_path / 'text.db'}")
    address = postgres_address()
    with psycopg.connect(address) as server:
        server.execute("CREATE TABLE theirs (a int)")
    with pytest.raises(StoreError, match="theirs"):
        open_store(address)


def test_a_database_of_a_newer_version_is_refused(store_address: str) -> None:
    """Fails when a database that a newer neuclust wrote is opened."""
    open_store(store_address).close()
    run_sql(store_address, f"UPDATE meta SET value = {PRESENT + 1} WHERE name = 'schema'")
    with pytest.raises(StoreError, match=f"got version {PRESENT + 1}, which a newer neuclust wrote"):
        open_store(store_address)


@pytest.mark.parametrize("kind", KINDS_OF_STORES)
@pytest.mark.parametrize("number", STEPS)
def test_a_database_of_every_version_is_opened(kind: str, number: int, tmp_path: Path) -> None:
    """Fails when a database that an earlier version wrote loses something, or cannot be written any more."""
    address = new_address(kind, tmp_path)
    run_sql(address, (EARLIER / f"version_{number}_{kind}.sql").read_text(encoding="utf-8"))
    store = open_store(address)
    (head,) = store.heads()
    assert (head.name, head.seq, head.frozen) == ("shop", 5, 3)
    rows = store.read(head.id, 0, 100)
    assert [row.kind for row in rows] == ["config", "items", "freeze", "decision", "feedback"]
    assert rows[3].payload is None
    assert rows[4].payload == b'{"decision":"d1","items":{"a":1}}'
    assert store.find(head.id, "feedback", ["f1"])["f1"] == rows[4]
    assert store.find_about(head.id, "d1", 10) == [rows[4]]
    assert (store.model(head.id, 1), store.state(head.id, 1)) == (b"model of one", b"state of one")
    assert store.told(head.id, 0, 10) == {5: b'{"status":"learned"}'}
    keys = store.keys()
    assert [key.scopes for key in keys] == [("admin", "metrics")]
    assert store.append({head.id: [decision(2)]})[head.id][0].seq == 6
    assert store.lease("next", 1) == 2
    store.close()


def run_sql(address: str, text: str) -> None:
    """Statements past the store."""
    if address.startswith("sqlite:"):
        open_store(f"{address}-registers-the-checksums").close()
        connection = apsw.Connection(address.removeprefix("sqlite:"), vfs="cksmvfs")
        connection.reserve_bytes("main", 8)
        list(connection.execute(text))
        connection.close()
        return
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(text.encode())
