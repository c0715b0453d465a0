"""Statements of the versions and their blobs, over either kind of database."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from neuclust.errors import StateError
from neuclust.serve.store.contract import Damaged, Version
from neuclust.serve.store.database import Database, Session, Values
from neuclust.serve.store.leases import check_token

PART = 256 * 1024  # bytes of a blob in one row
TOGETHER = 4  # parts in one transaction: other writers wait for a mebibyte at most
MODEL, STATE = "model", "state"
_LEFTOVERS = (
    "DELETE FROM parts WHERE recommender = ? AND NOT EXISTS (SELECT 1 FROM versions "
    "WHERE versions.recommender = parts.recommender AND versions.version = parts.version)"
)


@dataclass(frozen=True)
class SqlVersions:
    """Fulfils the part of `contract.Learning` that is about versions."""

    database: Database

    def publish(self, id: int, token: int, version: Version, model: bytes, state: bytes | None) -> None:
        blobs = {MODEL: model} if state is None else {MODEL: model, STATE: state}
        parts = [values for blob, content in blobs.items() for values in split_blob(id, version.version, blob, content)]
        groups = [parts[start : start + TOGETHER] for start in range(0, len(parts), TOGETHER)] or [[]]
        self.database.write(lambda session: _begin(session, id, token, version.version))
        for group in groups[:-1]:
            self.database.write(partial(_write_parts, id=id, token=token, parts=group))
        hashes = {blob: hashlib.sha256(content).digest() for blob, content in blobs.items()}
        self.database.write(lambda session: _finish(session, id, token, groups[-1], _listed(id, version, hashes)))

    def versions(self, id: int, most: int = 1_000) -> list[Version]:
        statement = (
            "SELECT version, seq, time, lessons, state_hash, model_hash, environment FROM versions "
            "WHERE recommender = ? ORDER BY version DESC LIMIT ?"
        )
        rows = self.database.read(lambda session: session.rows(statement, (id, most)))
        return [
            Version(number, seq, time, lessons, state is not None, model is not None, json.loads(environment))
            for number, seq, time, lessons, state, model, environment in rows
        ]

    def model(self, id: int, version: int) -> bytes | None:
        return self.database.read(lambda session: read_blob(session, id, version, MODEL))

    def state(self, id: int, version: int) -> bytes | None:
        return self.database.read(lambda session: read_blob(session, id, version, STATE))

    def prune(self, id: int, token: int, models: Sequence[int], states: Sequence[int]) -> None:
        def work(session: Session) -> None:
            check_token(session, token)
            drop_blobs(session, id, MODEL, models)
            drop_blobs(session, id, STATE, states)

        self.database.write(work)


def drop_blobs(session: Session, id: int, blob: str, versions: Sequence[int]) -> None:
    """Delete the models or the states of these versions; the versions stay listed."""
    if versions:
        values = (id, list(versions))
        session.run(f"UPDATE versions SET {blob}_hash = NULL WHERE recommender = ? AND version {{among}}", values)
        session.run("DELETE FROM parts WHERE recommender = ? AND blob = ? AND version {among}", (id, blob, values[1]))


def read_blob(session: Session, id: int, version: int, blob: str) -> bytes | None:
    """A blob as it was written; None where it is not kept."""
    found = session.rows(f"SELECT {blob}_hash FROM versions WHERE recommender = ? AND version = ?", (id, version))
    if not found or found[0][0] is None:
        return None
    statement = "SELECT content FROM parts WHERE recommender = ? AND version = ? AND blob = ? ORDER BY part"
    content = b"".join(part for (part,) in session.rows(statement, (id, version, blob)))
    if hashlib.sha256(content).digest() != found[0][0]:
        raise Damaged(
            f"expected the {blob} of version {version} as it was written, got another content; use an earlier version"
        )
    return content


def split_blob(id: int, version: int, blob: str, content: bytes) -> Iterator[Values]:
    """The rows of a blob's parts."""
    for part, start in enumerate(range(0, len(content), PART)):
        yield id, version, blob, part, content[start : start + PART]


def exists(session: Session, id: int) -> bool:
    """Whether the recommender is still there, and stays until the transaction ends."""
    return bool(session.rows("SELECT 1 FROM recommenders WHERE id = ? {share}", (id,)))


# --- publishing -----------------------------------------------------------------------------------------------


def _begin(session: Session, id: int, token: int, version: int) -> None:
    """Delete what a killed learner left: parts whose version was never listed."""
    check_token(session, token)
    if session.rows("SELECT 1 FROM versions WHERE recommender = ? AND version = ?", (id, version)):
        raise StateError(f"expected a new version, got {version}, which is there already; count on from the newest")
    session.run(_LEFTOVERS, (id,))


def _write_parts(session: Session, id: int, token: int, parts: Sequence[Values]) -> bool:
    """Whether they were written: nothing is, where the recommender was deleted."""
    check_token(session, token)
    if not exists(session, id):
        return False
    session.insert("parts", parts)
    return True


def _finish(session: Session, id: int, token: int, parts: Sequence[Values], listed: Values) -> None:
    """The last parts and the version itself, in one transaction."""
    if _write_parts(session, id, token, parts):
        session.insert("versions", [listed])


def _listed(id: int, version: Version, hashes: Mapping[str, bytes]) -> Values:
    environment: dict[str, Any] = dict(version.environment)
    return (
        id, version.version, version.seq, version.time, version.lessons, json.dumps(environment, sort_keys=True),
        hashes[MODEL], hashes.get(STATE),
    )  # fmt: skip
