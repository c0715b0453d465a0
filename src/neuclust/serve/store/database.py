"""What the two kinds of database offer to the statements of the store.

Statements are written once: `?` stands for a value, and words in braces for what the kinds say differently. `{now}` is
the database's clock, `{lock}` and `{share}` end a SELECT of rows that others may not change until the transaction ends,
and `{among}` compares with a list.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from neuclust.errors import ConfigError, DataError, brief

Result = TypeVar("Result")
Values = Sequence[Any]


class Session(Protocol):
    """A transaction that is open."""

    def rows(self, statement: str, values: Values = ()) -> list[tuple[Any, ...]]: ...

    def stream(self, statement: str, values: Values = (), at_once: int = 1000) -> Iterable[tuple[Any, ...]]:
        """Rows as they are read, `at_once` of them in memory."""

    def run(self, statement: str, values: Values = ()) -> int:
        """How many rows it changed."""

    def many(self, statement: str, values: Iterable[Values]) -> None:
        """A statement for each of the values."""

    def insert(self, table: str, rows: Iterable[Values]) -> None:
        """Rows with a value for each column of `tables.TABLES`, in one go."""


Work = Callable[[Session], Result]


class Database(Protocol):
    """A place for transactions, from any thread; `StoreError` where it cannot be reached, written or read."""

    @property
    def address(self) -> str: ...

    @property
    def shared(self) -> bool: ...

    def write(self, work: Work[Result]) -> Result:
        """One transaction, durable when this returns; `work` may be called again where nothing was committed."""

    def read(self, work: Work[Result]) -> Result:
        """One transaction that sees the database as it was at one moment."""

    def settle(self) -> None:
        """Do the upkeep that would else fall into the time of a commit."""

    def tidy(self) -> None:
        """Remove deleted content from the files as far as the database can."""

    def close(self) -> None: ...


def absent(address: str, lacks: str = "") -> ConfigError:
    """The refusal of a database that is not there, where it is only to be read."""
    return ConfigError(f"expected a database that is there, got {address}{lacks}; check the path", field="db")


def check_text(text: str | None, field: str) -> None:
    """Refuse text that a database cannot hold: NUL characters and unpaired surrogates."""
    if text is not None and ("\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text)):
        raise DataError(
            f"expected text without NUL characters and unpaired surrogates, got {brief(text)}; send another text",
            field=field,
        )
