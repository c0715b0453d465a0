"""The chain of hashes over a log: what was written can be told from what was changed, also after an erasure.

payload hash  p = SHA-256(salt ‖ payload ‖ user ‖ request ‖ digest), each part behind its length
chained hash  h_n = SHA-256(h_{n−1} ‖ n ‖ kind ‖ time ‖ key ‖ p)

An erasure deletes salt and content and leaves p, from which nothing can be guessed without the salt.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator

from neuclust.serve.store.contract import Damaged, Row

SALT = 16  # bytes
START = bytes(32)  # h_0


def payload_hash(salt: bytes, payload: bytes, user: str | None, request: str | None, digest: bytes | None) -> bytes:
    """p of an event, (32,)."""
    return hashlib.sha256(_joined(salt, payload, _bytes(user), _bytes(request), digest)).digest()


def chained(before: bytes, seq: int, kind: str, time: float, key: str | None, payload: bytes) -> bytes:
    """h_n from h_{n−1} and the payload hash, (32,)."""
    head = _joined(kind.encode(), struct.pack("<d", time), _bytes(key), payload)
    return hashlib.sha256(before + struct.pack("<q", seq) + head).digest()


def is_whole(row: Row, salt: bytes | None) -> bool:
    """Whether a row has the hashes it was written with; an erased one has neither content nor salt."""
    try:
        if row.payload is None:
            kept = (salt, row.user, row.request, row.digest) == (None,) * 4
        else:
            kept = payload_hash(salt or b"", row.payload, row.user, row.request, row.digest) == row.content
        return kept and chained(row.before, row.seq, row.kind, row.time, row.key, row.content) == row.hash
    except (TypeError, ValueError, AttributeError, struct.error):  # values of other types than were written
        return False


def verify_chain(rows: Iterable[Row], before: bytes, seq: int | None = None) -> Iterator[Row]:
    """The rows as they come, each after it was seen to follow the one before it (`Damaged` where it does not).

    `before` is the hash of the row before the first one, and `seq` its place where that is known.
    """
    for row in rows:
        expected = row.seq if seq is None else seq + 1
        if row.seq != expected or row.before != before:
            raise Damaged(
                f"expected event {expected} of the log to follow the one before it, got event {row.seq} with another "
                "hash; restore the last backup"
            )
        if chained(before, row.seq, row.kind, row.time, row.key, row.content) != row.hash:
            raise Damaged(f"expected event {row.seq} of the log with its hash, got another; restore the last backup")
        yield row
        before, seq = row.hash, row.seq


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="surrogatepass")


def _joined(*parts: bytes | None) -> bytes:
    """Parts behind their lengths; none is told from an empty one."""
    return b"".join(struct.pack("<q", -1) if part is None else struct.pack("<q", len(part)) + part for part in parts)
