"""Statements of the API keys, over either kind of database."""

import json
from dataclasses import dataclass

from neuclust.serve.store.contract import Exists, Key
from neuclust.serve.store.database import Database, Session, check_text

_INSERT = (
    "INSERT INTO api_keys (id, digest, scopes, recommender, created, note) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (id) DO NOTHING"
)


@dataclass(frozen=True)
class SqlKeys:
    """Fulfils `contract.Keys`."""

    database: Database

    def add_key(self, key: Key) -> None:
        for field in ("id", "recommender", "note"):
            check_text(getattr(key, field), field)

        def work(session: Session) -> None:
            scopes = json.dumps(list(key.scopes))
            if not session.run(_INSERT, (key.id, key.digest, scopes, key.recommender, key.created, key.note)):
                raise Exists(f"expected a new key, got {key.id!r:.100}, which is there already; make another")

        self.database.write(work)

    def keys(self) -> list[Key]:
        statement = "SELECT id, digest, scopes, recommender, created, note FROM api_keys ORDER BY created, id"
        rows = self.database.read(lambda session: session.rows(statement))
        return [Key(row[0], row[1], tuple(json.loads(row[2])), *row[3:]) for row in rows]

    def revoke_key(self, id: str) -> bool:
        return self.database.write(lambda session: session.run("DELETE FROM api_keys WHERE id = ?", (id,)) > 0)
