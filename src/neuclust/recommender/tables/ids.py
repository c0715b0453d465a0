"""What an id of an item or a user is: its decimal text. 17 and "17" are one id, "007" and 7 are two.

Tables, requests and feedback may write an id either way, since whether a CSV file's ids are text depends on all of its
rows. Answers give it as it was first given.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from neuclust.recommender.tables.values import LARGEST, Id

T = TypeVar("T")

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,50}")  # the text of a whole number, without the zeros of 007


def other_form(id: Id) -> Id | None:
    """The same id written the other way: "17" for 17, 17 for "17"; None where there is none."""
    if isinstance(id, str):
        return int(id) if _WHOLE.fullmatch(id) else None
    return str(int(id)) if abs(id) <= LARGEST else None


def find(known: Mapping[Id, T], id: Id) -> T | None:
    """What is known of an id, however it is written; None: nothing.

    Its own form comes first: saves and logs of earlier versions may hold both forms as two items.
    """
    found = known.get(id)
    if found is None and (other := other_form(id)) is not None:
        found = known.get(other)
    return found


def distinct(ids: Iterable[Id]) -> set[str]:
    """The different ids, as texts."""
    return {id if isinstance(id, str) else str(id) for id in ids}
