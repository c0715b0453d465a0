"""The database of the service as commands name it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from neuclust.cli.command import option
from neuclust.extras import extra

if TYPE_CHECKING:
    from neuclust.serve.store.contract import Store

DEFAULT, VARIABLE = "sqlite:neuclust.db", "NEUCLUST_DB"
DB_HELP = f"sqlite:FILE or postgresql://…; also ${VARIABLE}, where a password stays hidden. Default: {DEFAULT}."
installed = partial(extra, "the service")  # around its imports
db_option = partial(option, None, DB_HELP, "ADDRESS")


def address_of(given: str | None) -> str:
    """The address that was given, of the environment, or the default."""
    return given or os.environ.get(VARIABLE) or DEFAULT


@contextmanager
def opened(db: str | None, make: bool = False) -> "Iterator[Store]":
    """The store of an address, closed afterwards; one that is not there is refused unless it is to be made."""
    with installed():
        from neuclust.serve.store.opening import open_store

    store = open_store(address_of(db), make)
    try:
        yield store
    finally:
        store.close()
