"""The chain of hashes over a log: what was written can be told from what was changed, also after an erasure.

payload hash  p = SHA-256(salt ‖ payload ‖ user ‖ request ‖ digest), each part behind its length
chained hash  h_n = SHA-256(h_{n−1} ‖ n ‖ kind ‖ time ‖ key ‖ p)

An erasure deletes salt and content and leaves p, from which nothing can be guessed without the salt.
"""

import hashlib
import struct

SALT = 16  # bytes
START = bytes(32)  # h_0


def payload_hash(salt: bytes, payload: bytes, user: str | None, request: str | None, digest: bytes | None) -> bytes:
    """p of an event, (32,)."""
    return hashlib.sha256(_joined(salt, payload, _bytes(user), _bytes(request), digest)).digest()


def chained(before: bytes, seq: int, kind: str, time: float, key: str | None, payload: bytes) -> bytes:
    """h_n from h_{n−1} and the payload hash, (32,)."""
    head = _joined(kind.encode(), struct.pack("<d", time), _bytes(key), payload)
    return hashlib.sha256(before + struct.pack("<q", seq) + head).digest()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="surrogatepass")


def _joined(*parts: bytes | None) -> bytes:
    """Parts behind their lengths; none is told from an empty one."""
    return b"".join(struct.pack("<q", -1) if part is None else struct.pack("<q", len(part)) + part for part in parts)
