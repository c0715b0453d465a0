"""Statements of the learner's lease, progress, erasures and retention, over either kind of database."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neuclust.errors import StateError
from neuclust.serve.store.contract import Progress
from neuclust.serve.store.database import Database, Session
from neuclust.serve.store.leases import check_token, leased, released
from neuclust.serve.store.versions import MODEL, STATE, drop_blobs, exists

_ADVANCE = (
    "INSERT INTO progress (recommender, seq, lessons, time, told) VALUES (?, ?, ?, ?, ?) ON CONFLICT (recommender) "
    "DO UPDATE SET seq = excluded.seq, lessons = excluded.lessons, time = excluded.time, told = excluded.told"
)
_TELL = "INSERT INTO told (recommender, seq, content) VALUES (?, ?, ?) ON CONFLICT (recommender, seq) DO NOTHING"
_NEWEST_STATE = (
    "SELECT version, seq FROM versions WHERE recommender = ? AND state_hash IS NOT NULL ORDER BY version DESC LIMIT 1"
)
_OF_USER = "FROM events WHERE recommender = ? AND user_id = ? AND seq <= ?"
_ERASE = (
    "UPDATE events SET payload = NULL, salt = NULL, user_id = NULL, request = NULL, digest = NULL, about = NULL "
    "WHERE recommender = ? AND user_id = ? AND seq <= ?"
)


@dataclass(frozen=True)
class SqlLearning:
    """Fulfils `contract.Learning` but for the versions."""

    database: Database

    def lease(self, holder: str, seconds: float) -> int | None:
        return self.database.write(lambda session: leased(session, holder, seconds))

    def release(self, token: int) -> None:
        self.database.write(lambda session: released(session, token))

    def advance(self, id: int, token: int, progress: Progress, told: Mapping[int, bytes]) -> None:
        def work(session: Session) -> None:
            check_token(session, token)
            if exists(session, id):
                note = json.dumps(dict(progress.told), sort_keys=True)
                session.run(_ADVANCE, (id, progress.seq, progress.lessons, progress.time, note))
                session.many(_TELL, [(id, seq, content) for seq, content in told.items()])

        self.database.write(work)

    def progress(self, id: int) -> Progress | None:
        statement = "SELECT seq, lessons, time, told FROM progress WHERE recommender = ?"
        rows = self.database.read(lambda session: session.rows(statement, (id,)))
        return next((Progress(seq, lessons, time, json.loads(told)) for seq, lessons, time, told in rows), None)

    def told(self, id: int, after: int, most: int) -> dict[int, bytes]:
        statement = "SELECT seq, content FROM told WHERE recommender = ? AND seq > ? ORDER BY seq LIMIT ?"
        rows = self.database.read(lambda session: session.rows(statement, (id, after, most)))
        return dict(rows)

    def told_at(self, id: int, seqs: Sequence[int]) -> dict[int, bytes]:
        statement = "SELECT seq, content FROM told WHERE recommender = ? AND seq {among}"
        return dict(self.database.read(lambda session: session.rows(statement, (id, list(seqs))))) if seqs else {}

    def erase(self, id: int, token: int, user: str, until: int) -> int:
        count = self.database.write(lambda session: _erased(session, id, token, user, until))
        self.database.tidy()
        return count

    def retain(self, id: int, token: int, after: int) -> int:
        count = self.database.write(lambda session: _retained(session, id, token, after))
        self.database.tidy()
        return count


def _erased(session: Session, id: int, token: int, user: str, until: int) -> int:
    """The user's events without content, and the newest state as the base of replay."""
    check_token(session, token)
    if not _locked(session, id):
        return 0
    newest = session.rows(_NEWEST_STATE, (id,))
    if not newest or newest[0][1] < until:
        raise StateError(f"expected a state of event {until} or later to go on from, got none; publish one first")
    version, seq = newest[0]
    values = (id, user, until)
    session.run(f"DELETE FROM told WHERE recommender = ? AND seq IN (SELECT seq {_OF_USER})", (id, *values))
    count = session.run(_ERASE, values)
    _set_base(session, id, seq)
    _drop_before(session, id, version)
    return count


def _drop_before(session: Session, id: int, version: int) -> None:
    """Delete models and states that learned from what was erased; a pinned one among them is served no more."""
    rows = session.rows("SELECT version FROM versions WHERE recommender = ? AND version < ?", (id, version))
    earlier = [row[0] for row in rows]
    drop_blobs(session, id, MODEL, earlier)
    drop_blobs(session, id, STATE, earlier)
    session.run("UPDATE recommenders SET promoted = NULL WHERE id = ? AND promoted < ?", (id, version))


def _retained(session: Session, id: int, token: int, after: int) -> int:
    """The log without its events up to a place that has a state."""
    check_token(session, token)
    if not _locked(session, id):
        return 0
    statement = "SELECT 1 FROM versions WHERE recommender = ? AND seq = ? AND state_hash IS NOT NULL"
    if not session.rows(statement, (id, after)):
        raise StateError(f"expected a place with a state to go on from, got event {after}; publish one first")
    _set_base(session, id, after)
    session.run("UPDATE recommenders SET dropped = ? WHERE id = ? AND dropped < ?", (after, id, after))
    session.run("DELETE FROM told WHERE recommender = ? AND seq <= ?", (id, after))
    return session.run("DELETE FROM events WHERE recommender = ? AND seq <= ?", (id, after))


def _set_base(session: Session, id: int, seq: int) -> None:
    """The base never goes back: what is before it may be gone."""
    hashes = session.rows("SELECT hash FROM events WHERE recommender = ? AND seq = ?", (id, seq))
    if hashes:
        statement = "UPDATE recommenders SET base = ?, base_hash = ? WHERE id = ? AND base < ?"
        session.run(statement, (seq, hashes[0][0], id, seq))


def _locked(session: Session, id: int) -> bool:
    """Whether the recommender is there; no event is appended until the transaction ends."""
    return bool(session.rows("SELECT 1 FROM recommenders WHERE id = ? {lock}", (id,)))
