"""The right to learn, renewed in the background, so that a long lesson does not lose it."""

import contextlib
import os
import secrets
import threading

from neuclust.serve.store.contract import Store, StoreError

SECONDS = 6.0  # after which a learner that was killed is replaced


class Lease:
    """Takes the lease of a store and keeps it until it is released; `token` is None while somebody else has it."""

    def __init__(self, store: Store, seconds: float = SECONDS) -> None:
        self._store, self._seconds = store, seconds
        self.holder = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._token: int | None = None
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def token(self) -> int | None:
        """The fencing token to write with."""
        return self._token

    def taken(self) -> int | None:
        """Take the lease where it is free, and begin to renew it."""
        if self._token is None:
            self._token = self._store.lease(self.holder, self._seconds)
        if self._token is not None and self._thread is None:
            self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
            self._thread.start()
        return self._token

    def lost(self) -> None:
        """Another learner has it."""
        self._token = None

    def release(self) -> None:
        """Give it back, so that another learner need not wait."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(self._seconds)
        token, self._token = self._token, None
        if token is not None:
            with contextlib.suppress(StoreError):
                self._store.release(token)

    def _renew(self) -> None:
        while not self._end.wait(self._seconds / 4):
            if self._token is None:
                continue
            with contextlib.suppress(StoreError):  # the next write will tell
                token = self._store.lease(self.holder, self._seconds)
                self._token = token if token == self._token else None
