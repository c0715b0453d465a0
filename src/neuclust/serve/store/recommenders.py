"""Statements of the recommenders, over either kind of database."""

from dataclasses import dataclass

from neuclust.serve.store.chain import START
from neuclust.serve.store.contract import CONFIG, Event, Exists, Head
from neuclust.serve.store.database import Database, Session, check_text
from neuclust.serve.store.rows import Tail, Taken, placed
from neuclust.serve.store.tables import HEAD


@dataclass(frozen=True)
class SqlRecommenders:
    """Fulfils `contract.Recommenders`."""

    database: Database

    def create(self, name: str, config: bytes) -> Head:
        check_text(name, "name")
        return self.database.write(lambda session: _created(session, name, config))

    def head(self, name: str) -> Head | None:
        found = self._heads("WHERE name = ?", name)
        return found[0] if found else None

    def heads(self) -> list[Head]:
        return self._heads("ORDER BY id")

    def delete(self, name: str) -> bool:
        """Foreign keys delete what it has."""
        return self.database.write(lambda session: session.run("DELETE FROM recommenders WHERE name = ?", (name,)) > 0)

    def promote(self, id: int, version: int | None) -> None:
        statement = "UPDATE recommenders SET promoted = ? WHERE id = ?"
        self.database.write(lambda session: session.run(statement, (version, id)))

    def _heads(self, which: str, *values: str) -> list[Head]:
        statement = f"SELECT {HEAD} FROM recommenders {which}"
        return [Head(*row) for row in self.database.read(lambda session: session.rows(statement, values))]


def _created(session: Session, name: str, config: bytes) -> Head:
    """The counter's row is locked by its update, so that two creations of one name wait for each other."""
    session.run("UPDATE meta SET value = value + 1 WHERE name = 'recommenders'")
    id, now = session.rows("SELECT value, {now} FROM meta WHERE name = 'recommenders'")[0]
    if session.rows("SELECT 1 FROM recommenders WHERE name = ?", (name,)):
        raise Exists(f"expected a new name, got {name!r:.100}, which is taken; choose another, or change that one")
    first = placed(id, Tail(0, now, START, 0, 0), [Event(CONFIG, config)], Taken({}, {}), now)
    tail = first.tail
    head = Head(id, name, tail.seq, tail.time, tail.hash, tail.tables, tail.frozen, None, 0, START, now)
    values = (
        id, name, tail.seq, tail.time, tail.hash, tail.tables, tail.frozen, None, 0, START, now, 0,
    )  # fmt: skip
    session.insert("recommenders", [values])
    session.insert("events", first.values)
    return head
