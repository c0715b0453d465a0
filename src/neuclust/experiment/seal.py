"""A checksum inside a Parquet file, so that damage is found before anything tries to read the tables in it.

    PAR1 | pages | neuclust-sha256:<64 hexadecimal digits> | footer | length of the footer | PAR1

Readers of Parquet find the footer from the end and the pages by offsets in it, and skip what is between. The sum runs
over all other bytes, and over the file's belongings.
"""

import hashlib
from collections.abc import Iterable

_MAGIC = b"PAR1"
_TAIL = 4 + len(_MAGIC)  # length of the footer, magic
_MARK = b"neuclust-sha256:"
_LETTERS = 64


def sealed(parquet: bytes, belongings: Iterable[bytes]) -> bytes:
    """The file with its checksum inside; `belongings` are summed up with it, in their order."""
    pages, footer = _halves(parquet)
    return pages + _MARK + _sum(pages, footer, belongings) + footer


def is_intact(parquet: bytes, belongings: Iterable[bytes]) -> bool | None:
    """Whether file and belongings are those that were sealed, None without a seal; ValueError if it is no Parquet."""
    before, footer = _halves(parquet)
    place = len(before) - len(_MARK) - _LETTERS
    if place < 0 or not before[place:].startswith(_MARK):
        return None
    return before[place + len(_MARK) :] == _sum(before[:place], footer, belongings)


def _halves(parquet: bytes) -> tuple[bytes, bytes]:
    """Everything before the footer, and the footer with its length and magic."""
    if not parquet:
        raise ValueError("got an empty file")
    framed = len(parquet) >= _TAIL + len(_MAGIC) and parquet.startswith(_MAGIC) and parquet.endswith(_MAGIC)
    start = len(parquet) - _TAIL - int.from_bytes(parquet[-_TAIL : -len(_MAGIC)], "little")
    if not framed or start < len(_MAGIC):
        raise ValueError("got a file cut short or no Parquet file")
    return parquet[:start], parquet[start:]


def _sum(pages: bytes, footer: bytes, belongings: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for part in (pages, footer, *belongings):
        digest.update(len(part).to_bytes(8, "little"))  # or bytes could move from one part to the next unnoticed
        digest.update(part)
    return digest.hexdigest().encode()
