"""What learning made of each message of a decision: the word of the fold, not of the route that took it."""

from collections.abc import Mapping, Sequence
from typing import Any

from neuclust.serve.api.bodies import moment
from neuclust.serve.events import DETAILS, decode
from neuclust.serve.store.contract import Head, Progress, Row, Store

LEARNED, WAITING, LATE, REFUSED, DUPLICATE, UNKNOWN = "learned", "waiting", "late", "refused", "duplicate", "unknown"
OPEN = "open"  # the fold's word for a partial message that it took
Fate = tuple[str, str | None]
LATER = "the decision's window had ended, and it was learned without this; give a longer `window`"
AGAIN = "the decision had heard the same before"
NOT_YET = "the learner has not come to it yet"
MORE = "more may come until the decision's window ends, when it is learned"
GONE = "what became of it is no longer kept"


def messages_of(store: Store, head: Head, rows: Sequence[Row], expires_at: float) -> list[dict[str, Any]]:
    """The messages as they were sent, oldest first, each with its `status`, and why where it did not count."""
    progress = store.progress(head.id)
    told = {seq: decode(content) for seq, content in store.told_at(head.id, [row.seq for row in rows]).items()}
    ended = _ended(head, progress, expires_at)
    found: list[dict[str, Any]] = []
    for row in reversed(rows):
        status, reason = _fate(row, told.get(row.seq), progress, ended)
        ended = ended or status == LEARNED  # a message that closes a decision has those before it learned, too
        if row.payload is not None:
            found.append({**_message(row), "status": status, "reason": reason})
    return found[::-1]


def _fate(row: Row, told: Mapping[str, Any] | None, progress: Progress | None, ended: bool) -> Fate:
    if progress is None or row.seq > progress.seq:
        return WAITING, NOT_YET
    if told is None:
        return UNKNOWN, GONE
    status = told["status"]
    if status == REFUSED:
        return REFUSED, told.get("problem")
    if status == OPEN:
        return (LEARNED, None) if ended or told.get("lessons") else (WAITING, MORE)
    return str(status), {LATE: LATER, DUPLICATE: AGAIN}.get(status)


def _ended(head: Head, progress: Progress | None, expires_at: float) -> bool:
    """Whether the learner has seen the end of a decision's window."""
    return progress is not None and progress.seq >= head.seq and head.time >= expires_at


def _message(row: Row) -> dict[str, Any]:
    """A feedback of the log as it was sent, with its time."""
    said = decode(row.payload)
    details = {name: said.get(name) for name in DETAILS}
    return {"feedback_id": row.key, "items": said["items"], **details, "time": moment(row.time), "seq": row.seq}
