"""API keys: made once, kept as a hash, each with scopes and for one recommender or all."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from neuclust.errors import ConfigError, one_of
from neuclust.serve.api.problems import Refused
from neuclust.serve.store.contract import Key, StoreError

SCOPES = ("recommend", "feedback", "admin", "metrics")
PREFIX = "nk_"
FRESH = 5.0  # seconds after which keys are read again: a revoked key ends by then
LONGEST_NOTE = 200


class KeyStore(Protocol):
    """What reads keys."""

    def keys(self) -> list[Key]: ...


def new_key(scopes: Sequence[str], recommender: str | None, note: str = "") -> tuple[str, Key]:
    """A secret, which is shown once, and what is kept of it. 256 random bits need no slow hash."""
    for scope in scopes:
        if scope not in SCOPES:
            raise ConfigError(one_of(scope, SCOPES), field="scope")
    if not scopes:
        raise ConfigError(f"expected at least one of {', '.join(SCOPES)}, got none", field="scope")
    id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    kept = tuple(scope for scope in SCOPES if scope in scopes)
    text = f"{PREFIX}{id}_{secret}"
    return text, Key(id, digest_of(text), kept, recommender, time.time(), note[:LONGEST_NOTE])


def digest_of(text: str) -> bytes:
    """The SHA-256 of a key."""
    return hashlib.sha256(text.encode()).digest()


@dataclass
class Keys:
    """The keys of a store, read again every few seconds. Without any, everything is open (on loopback alone)."""

    store: KeyStore
    required: bool  # where the service can be reached from elsewhere
    clock: Callable[[], float] = time.monotonic
    _known: Mapping[str, Key] | None = None
    _read: float = 0.0

    def allow(self, header: str | None, scope: str, recommender: str | None) -> None:
        """Refuse a request without the right key: 401 where there is none, 403 where it may not do this."""
        known = self._keys()
        if not known and not self.required:
            return
        key = self._found(header, known)
        if scope not in key.scopes and "admin" not in key.scopes:
            raise Refused(403, f"expected a key with the scope {scope}, got one with {', '.join(key.scopes)}")
        if key.recommender is not None and key.recommender != recommender:
            raise Refused(403, "expected a key for this recommender or for all, got one for another")

    def _found(self, header: str | None, known: Mapping[str, Key]) -> Key:
        kind, _, text = (header or "").partition(" ")
        if kind.lower() != "bearer" or not text.startswith(PREFIX):
            raise Refused(401, "expected a header 'Authorization: Bearer nk_…', got none; make a key first")
        key = known.get(text[len(PREFIX) :].partition("_")[0])
        if key is None or not hmac.compare_digest(key.digest, digest_of(text)):
            raise Refused(401, "expected a key that is known, got another one; was it revoked?")
        return key

    def _keys(self) -> Mapping[str, Key]:
        now = self.clock()
        if self._known is None or now - self._read > FRESH:
            self._known, self._read = self._fresh(), now
        return self._known

    def _fresh(self) -> Mapping[str, Key]:
        try:
            found = self.store.keys()
        except StoreError:
            if self._known is None:
                raise
            return self._known  # the database is away: those that were known stay
        return {key.id: key for key in found}
