"""Opens a store by its address."""

from importlib.util import find_spec
from pathlib import Path

from neuclust.errors import ConfigError
from neuclust.serve.store.addresses import read_address
from neuclust.serve.store.database import Database
from neuclust.serve.store.sql import SqlStore


def open_store(address: str) -> SqlStore:
    """The store at `sqlite:FILE` or `postgresql://…`; an empty database is made ready, an older one is migrated."""
    return SqlStore(open_database(address))


def open_database(address: str) -> Database:
    """The database at an address, with the tables of the present version."""
    place = read_address(address)
    if isinstance(place, Path):
        _require("apsw", "sqlite")
        from neuclust.serve.store.sqlite import SqliteDatabase

        return SqliteDatabase(place)
    _require("psycopg", "postgresql")
    _require("psycopg_pool", "postgresql")
    from neuclust.serve.store.postgres import PostgresDatabase

    return PostgresDatabase(place)


def _require(package: str, kind: str) -> None:
    if find_spec(package) is None:
        raise ConfigError(
            f"expected the package {package} for addresses that begin with {kind}:, got an environment without it; "
            "install it: pip install 'neuclust[serve]'"
        )
