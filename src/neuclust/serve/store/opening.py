"""Opens a store by its address."""

from pathlib import Path

from neuclust.extras import require
from neuclust.serve.store.addresses import read_address
from neuclust.serve.store.database import Database
from neuclust.serve.store.sql import SqlStore

POSTGRES = "a store on PostgreSQL"


def open_store(address: str, make: bool = True) -> SqlStore:
    """The store at `sqlite:FILE` or `postgresql://…`; an older one is migrated, and one that is not there is made, or
    refused without `make`."""
    return SqlStore(open_database(address, make))


def open_database(address: str, make: bool = True) -> Database:
    """The database at an address, with the tables of the present version."""
    place = read_address(address)
    if isinstance(place, Path):
        require("apsw", "a store on SQLite")
        from neuclust.serve.store.sqlite import SqliteDatabase

        return SqliteDatabase(place, make)
    require("psycopg", POSTGRES)
    require("psycopg_pool", POSTGRES)
    from neuclust.serve.store.postgres import PostgresDatabase

    return PostgresDatabase(place, make)
