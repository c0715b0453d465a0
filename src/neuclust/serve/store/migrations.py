"""How the tables came to be: numbered steps that bring a database of any earlier version to the present one.

A step is never changed once it was released; tests open a database of every version.
"""

from collections.abc import Mapping

from neuclust.serve.store.contract import StoreError
from neuclust.serve.store.database import Session

# `{integer}`, `{real}`, `{bytes}`, `{strict}` and `{large}` (blobs come compressed) are words of the two kinds
FIRST = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value {integer} NOT NULL){strict}",
    "INSERT INTO meta (name, value) VALUES ('schema', 0), ('recommenders', 0), ('checks', 0)",
    "CREATE TABLE recommenders (id {integer} PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq {integer} NOT NULL, "
    "time {real} NOT NULL, hash {bytes} NOT NULL, tables {integer} NOT NULL, frozen {integer} NOT NULL, "
    "promoted {integer}, base {integer} NOT NULL, base_hash {bytes} NOT NULL, created {real} NOT NULL, "
    "dropped {integer} NOT NULL){strict}",
    "CREATE TABLE events (recommender {integer} NOT NULL REFERENCES recommenders (id) ON DELETE CASCADE, "
    "seq {integer} NOT NULL, kind TEXT NOT NULL, time {real} NOT NULL, payload {bytes}, key TEXT, request TEXT, "
    "digest {bytes}, user_id TEXT, hash {bytes} NOT NULL, content {bytes} NOT NULL, before {bytes} NOT NULL, "
    "salt {bytes}, PRIMARY KEY (recommender, seq)){strict}",
    "CREATE INDEX events_of_a_kind ON events (recommender, kind, seq)",
    # as one text: a planner without statistics would look for many keys among all events of the kind instead
    "CREATE UNIQUE INDEX events_by_key ON events ((CAST(recommender AS TEXT) || ' ' || kind || ' ' || key))",
    "CREATE UNIQUE INDEX events_by_request ON events ((CAST(recommender AS TEXT) || ' ' || request))",
    "CREATE INDEX events_of_a_user ON events (recommender, user_id) WHERE user_id IS NOT NULL",
    "CREATE TABLE versions (recommender {integer} NOT NULL REFERENCES recommenders (id) ON DELETE CASCADE, "
    "version {integer} NOT NULL, seq {integer} NOT NULL, time {real} NOT NULL, lessons {integer} NOT NULL, "
    "environment TEXT NOT NULL, model_hash {bytes}, state_hash {bytes}, PRIMARY KEY (recommender, version)){strict}",
    # no reference to a version: it is written after its parts
    "CREATE TABLE parts (recommender {integer} NOT NULL REFERENCES recommenders (id) ON DELETE CASCADE, "
    "version {integer} NOT NULL, blob TEXT NOT NULL, part {integer} NOT NULL, content {bytes} NOT NULL, "
    "PRIMARY KEY (recommender, version, blob, part)){strict}",
    "{large}",
    "CREATE TABLE progress (recommender {integer} PRIMARY KEY REFERENCES recommenders (id) ON DELETE CASCADE, "
    "seq {integer} NOT NULL, lessons {integer} NOT NULL, time {real} NOT NULL, told TEXT NOT NULL){strict}",
    "CREATE TABLE told (recommender {integer} NOT NULL REFERENCES recommenders (id) ON DELETE CASCADE, "
    "seq {integer} NOT NULL, content {bytes} NOT NULL, PRIMARY KEY (recommender, seq)){strict}",
    "CREATE TABLE lease (one {integer} PRIMARY KEY CHECK (one = 1), token {integer} NOT NULL, holder TEXT, "
    "until {real} NOT NULL){strict}",
    "INSERT INTO lease (one, token, until) VALUES (1, 0, 0)",
    "CREATE TABLE api_keys (id TEXT PRIMARY KEY, digest {bytes} NOT NULL, scopes TEXT NOT NULL, recommender TEXT, "
    "created {real} NOT NULL, note TEXT NOT NULL){strict}",
)

# feedback is found by its decision, which its payload names; `{said}` is the word of each kind that reads it there
SECOND = (
    "ALTER TABLE events ADD COLUMN about TEXT",
    "UPDATE events SET about = {said} WHERE kind = 'feedback' AND payload IS NOT NULL",
    "CREATE INDEX events_about_another ON events (recommender, about, seq) WHERE about IS NOT NULL",
)

STEPS: Mapping[int, tuple[str, ...]] = {1: FIRST, 2: SECOND}
PRESENT = max(STEPS)


def migrate(session: Session, tables: set[str]) -> None:
    """Bring a database with these tables to the present version, inside a transaction."""
    found = version(session, tables)
    if found > PRESENT:
        raise StoreError(
            f"expected a database of version {PRESENT} or earlier, got version {found}, which a newer neuclust wrote; "
            "install that one"
        )
    for number in range(found + 1, PRESENT + 1):
        for statement in STEPS[number]:
            session.run(statement)
    if found < PRESENT:
        session.run("UPDATE meta SET value = ? WHERE name = 'schema'", (PRESENT,))


def version(session: Session, tables: set[str]) -> int:
    """The version of a database; 0 where it is empty."""
    if not tables:
        return 0
    if "meta" in tables and "events" in tables:
        found = session.rows("SELECT value FROM meta WHERE name = 'schema'")
        if found:
            return int(found[0][0])
    raise StoreError(
        f"expected an empty database or one of neuclust, got one with {', '.join(sorted(tables)[:3])}; name another one"
    )
