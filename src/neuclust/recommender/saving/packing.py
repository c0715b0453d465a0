"""A manifest and tensors in one piece of bytes: a mark, the SHA-256 of what follows, and both compressed.

Manifest and tensors are those of a folder's save. The same content gives the same bytes.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from neuclust.errors import SaveError
from neuclust.persistence import FORMAT, plain_number, tensor_bytes

MARK = b"neuclust\x01"
DIGEST = 32  # bytes of a SHA-256
LEVEL = 1  # of the compression: the fastest
LENGTH = struct.Struct("<q")  # of the manifest, before it


def packed(manifest: Mapping[str, Any], state: Mapping[str, Tensor]) -> bytes:
    """Both as one piece."""
    content = {**manifest, "format": FORMAT}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False, default=plain_number).encode()
    body = zlib.compress(b"".join((LENGTH.pack(len(text)), text, tensor_bytes(state))), LEVEL)
    return b"".join((MARK, hashlib.sha256(body).digest(), body))


def unpacked(content: object, what: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What `packed` wrote; anything else is refused with a sentence that begins with `what`."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    body = _checked(content, what)
    try:
        whole = zlib.decompress(body)
        (length,) = LENGTH.unpack_from(whole)
        end = LENGTH.size + length
        manifest = json.loads(whole[LENGTH.size : end])
        return dict(manifest), load(whole[end:])
    except (SafetensorError, zlib.error, struct.error, LookupError, MemoryError, RecursionError, RuntimeError,
            TypeError, ValueError) as error:  # fmt: skip
        got = f"got others ({' '.join(str(error).split()):.200}); take another copy"
        raise SaveError(f"{what}: expected a manifest and tensors, {got}") from None


def _checked(content: object, what: str) -> bytes:
    """What is behind the mark and the hash."""
    if not isinstance(content, bytes) or not content.startswith(MARK):
        got = content[: len(MARK)] if isinstance(content, bytes) else type(content).__name__
        raise SaveError(f"{what}: expected bytes that begin with {MARK!r}, got {got!r:.100}; take another copy")
    start = len(MARK) + DIGEST
    if hashlib.sha256(content[start:]).digest() != content[len(MARK) : start]:
        raise SaveError(f"{what}: expected bytes as they were written, got others: it is damaged; take another copy")
    return content[start:]
