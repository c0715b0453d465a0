"""Functions of items, read from their rows once and kept while items come and go."""

from typing import Protocol, Self

from neuclust.kernels.scoring.function_table import FunctionTable
from neuclust.recommender.items.rows import Codes, Matrix, Rows


class ReadsItems(Protocol):
    """What reads functions of encoded rows (n, d) -> (n, p)."""

    def item_functions(self, item_rows: Matrix) -> Matrix: ...

    def reads_alike(self, other: Self) -> bool:
        """Whether items have the same functions by both."""
        ...


class ItemFunctions:
    """Functions of all items by code, of the latest reader."""

    def __init__(self) -> None:
        self._known: tuple[ReadsItems, FunctionTable] | None = None

    def of(self, reader: ReadsItems, rows: Rows) -> FunctionTable:
        """The functions of all rows; read where there are none of this reader."""
        known = self._known
        if known is not None and known[0] is not reader and reader.reads_alike(known[0]):
            known = self._known = reader, known[1]  # every model that is published brings a reader of its own
        if known is None or known[0] is not reader:
            known = self._known = reader, FunctionTable.of(reader.item_functions(rows.buffer[: len(rows)]))
        return known[1]

    def put(self, codes: Codes, rows: Matrix) -> None:
        """Read the rows (m, d) of these items again; all of them next time where the table cannot take them in."""
        if self._known is not None and not self._known[1].put(codes, self._known[0].item_functions(rows)):
            self._known = None
