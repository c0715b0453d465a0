"""The store over either kind of database."""

from dataclasses import dataclass

from neuclust.serve.store.keys import SqlKeys
from neuclust.serve.store.learning import SqlLearning
from neuclust.serve.store.log import SqlLog
from neuclust.serve.store.recommenders import SqlRecommenders
from neuclust.serve.store.versions import SqlVersions


@dataclass(frozen=True)
class SqlStore(SqlRecommenders, SqlLog, SqlVersions, SqlLearning, SqlKeys):
    """Fulfils `contract.Store` by the statements of its parts."""

    @property
    def address(self) -> str:
        return self.database.address

    @property
    def shared(self) -> bool:
        return self.database.shared

    def close(self) -> None:
        self.database.close()

    def settle(self) -> None:
        self.database.settle()

    def check(self) -> None:
        self.database.write(lambda session: session.run("UPDATE meta SET value = value + 1 WHERE name = 'checks'"))
