"""The right to learn: one holder at a time, with a token that grows, checked in the transaction of every write."""

from neuclust.serve.store.contract import Fenced
from neuclust.serve.store.database import Session

_LEASE = "SELECT token, holder, until, {now} FROM lease WHERE one = 1 {lock}"
_SET = "UPDATE lease SET token = ?, holder = ?, until = ? WHERE one = 1"


def leased(session: Session, holder: str, seconds: float) -> int | None:
    """Renew the holder's lease, or take one that is free or has ended; None where somebody else has it."""
    token, owner, until, now = session.rows(_LEASE)[0]
    if owner != holder and owner is not None and until > now:
        return None
    newest: int = token if owner == holder else token + 1
    session.run(_SET, (newest, holder, now + seconds))
    return newest


def released(session: Session, token: int) -> None:
    """Give the lease back; nothing happens where another has it."""
    session.run("UPDATE lease SET holder = NULL, until = 0 WHERE one = 1 AND token = ?", (token,))


def check_token(session: Session, token: int) -> None:
    """Refuse a write of a learner whose lease another has; the lease cannot change before the transaction ends."""
    newest = session.rows("SELECT token FROM lease WHERE one = 1 {share}")[0][0]
    if token != newest:
        raise Fenced(f"expected the newest lease, {newest}, got {token}: another learner took over; stop this one")
