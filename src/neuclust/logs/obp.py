"""Feedback dictionaries of the Open Bandit Pipeline: slates (with `slate_id`) and plain bandit feedback.

Every arm of the dictionary is eligible in every round. The design is unknown, a slate pays the sum of its slots.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError, brief
from neuclust.logs.events import RunStart, arm_event, start_event
from neuclust.logs.features import MOST_COLUMNS, joined, joined_width
from neuclust.logs.files import Row
from neuclust.logs.reader import Log, OnBad, checked_log

RUN = "obp"
NAME = Path("feedback")  # of a dictionary in messages
Floats = NDArray[np.float64]


def read_obp(
    feedback: Mapping[str, Any] | str | Path,
    *,
    crossed: bool = False,
    skip_bad: int = 0,
    on_bad: OnBad | None = None,
) -> Log:
    """A feedback dictionary, or an .npz file of one, as a log.

    Slates: propensities are `pscore_cascade`, the chance of the slots up to this one, divided by that of the slots
    before. Without `slate_id` every row is a slate of one arm with `pscore`. Arms are described by `action_context`,
    else by indicators, followed by the `context` of the round; `crossed` adds the products of both. Positions of plain
    feedback are no features.
    """
    path, table = _opened(feedback)
    rows = _Rows(path, table, crossed)
    return checked_log(path, partial(_events, rows), "row", skip_bad=skip_bad, on_bad=on_bad)


def _opened(feedback: Mapping[str, Any] | str | Path) -> tuple[Path, Mapping[str, Any]]:
    if isinstance(feedback, Mapping):
        return NAME, feedback
    path = Path(feedback)
    try:
        with np.load(path, allow_pickle=False) as file:
            return path, {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError) as error:
        said = f"{path}: expected an .npz file of arrays without pickles, could not read it ({error!s:.100})"
        raise DataError(f"{said}; write it by numpy.savez") from None


class _Rows:
    """The arrays of a feedback dictionary, checked, as slates of rows in slot order."""

    def __init__(self, path: Path, table: Mapping[str, Any], crossed: bool) -> None:
        self.path, self.table, self.crossed = path, table, crossed
        self.action = np.zeros(0, np.int64)
        given = self._column("action")
        self.action = given.astype(np.int64)
        if not bool((self.action == given).all()):
            raise DataError(f"{path}: expected whole numbers as action, got others; number the actions")
        self.reward = self._column("reward")
        self.slates, self.chances = self._slates()
        self.arms = self._arms()
        self.ids = self._ids()
        context = table.get("context")
        self.context = None if context is None else self._matrix(context, "context", len(self.slates))

    def _column(self, name: str, needed: str = "") -> Floats:
        value = self.table.get(name)
        if value is None:
            said = f"expected the entry {name}{needed}, got {brief(sorted(self.table))}"
            raise DataError(f"{self.path}: {said}; is it a feedback dictionary of obp?")
        found = np.asarray(value)
        length = len(found) if name == "action" and found.ndim else len(self.action)
        if found.shape != (length,) or found.dtype.kind not in "biuf":
            said = f"expected one number per row as {name}, got shape {found.shape} of {found.dtype}"
            raise DataError(f"{self.path}: {said}; give a column")
        return found.astype(np.float64)

    def _slates(self) -> tuple[list[NDArray[np.int64]], Floats]:
        """Rows of each slate in slot order, and the chance of each row given the slots before it."""
        n = len(self.action)
        if self.table.get("slate_id") is None:
            return [np.array([row]) for row in range(n)], self._column("pscore")
        why = ", from which the chance of a slot given those before it is computed"
        cumulative = self._column("pscore_cascade", why)
        slate, position = self._column("slate_id"), self._column("position")
        order = np.lexsort((position, slate))
        groups = np.split(order, np.flatnonzero(np.diff(slate[order])) + 1)
        chances = cumulative.copy()
        for rows in groups:
            with np.errstate(divide="ignore", invalid="ignore"):
                chances[rows[1:]] = cumulative[rows[1:]] / cumulative[rows[:-1]]
        return groups, np.where((chances > 1) & (chances < 1 + 1e-9), 1.0, chances)  # rounding of the products

    def _arms(self) -> Floats:
        given = self.table.get("action_context")
        counts = [self.table.get(name) for name in ("n_unique_action", "n_actions")]
        known = next((int(count) for count in counts if count is not None), 0)
        if given is not None and np.ndim(given) == 2:
            return self._matrix(given, "action_context", max(known, len(np.asarray(given))))
        count = max(known, int(self.action.max(initial=0)) + 1)
        if count > MOST_COLUMNS:
            said = f"expected action_context for more than {MOST_COLUMNS} actions, got none for {count}"
            raise DataError(f"{self.path}: {said}; give features of the actions")
        return np.eye(count)

    def _ids(self) -> list[int]:
        """The arms' own numbers, where `write_obp` left them."""
        given = self.table.get("action_ids")
        found = np.arange(len(self.arms)) if given is None else np.asarray(given)
        if found.shape != (len(self.arms),) or found.dtype.kind not in "iu" or len(np.unique(found)) < len(found):
            said = f"expected {len(self.arms)} distinct whole numbers as action_ids, got {brief(found.tolist())}"
            raise DataError(f"{self.path}: {said}; leave them out where actions have no others")
        ids: list[int] = found.tolist()
        return ids

    def _matrix(self, value: Any, name: str, length: int) -> Floats:
        found = np.asarray(value, dtype=np.float64)
        if found.ndim != 2 or len(found) != length:
            raise DataError(
                f"{self.path}: expected {length} rows of {name}, got shape {found.shape}; give one for each"
            )
        return found

    def named(self, action: int) -> int:
        """The arm of an action; one that is not there keeps its number, and is refused by it."""
        return self.ids[action] if 0 <= action < len(self.ids) else action

    @property
    def start(self) -> RunStart:
        longest = max((len(rows) for rows in self.slates), default=1)
        shared = 0 if self.context is None else self.context.shape[1]
        dim = joined_width(self.arms.shape[1], shared, self.crossed)
        return RunStart(RUN, "", longest, dim, learning=False, reward="sum")


def _events(rows: _Rows) -> Iterator[Row]:
    """The start, all arms, then one decision per slate, counted by its first row."""
    yield Row(1, start_event(rows.start))
    for arm, profile in zip(rows.ids, rows.arms.tolist(), strict=True):
        yield Row(1, arm_event(RUN, arm, profile))
    for number, slate in enumerate(rows.slates, 1):
        features = None
        if rows.context is not None:
            features = joined(rows.arms, rows.context[number - 1], rows.crossed).ravel().tolist()
        rewards = [None if np.isnan(one) else one for one in rows.reward[slate].tolist()]
        event = {
            "event": "decision", "run": RUN, "id": str(number), "t": number, "features": features, "k": len(slate),
            "slate": [rows.named(action) for action in rows.action[slate].tolist()],
            "propensities": rows.chances[slate].tolist(),
            "design": {"kind": "unknown"}, "rewards": rewards,
            "slate_reward": None if None in rewards else sum(one for one in rewards if one is not None),
        }  # fmt: skip
        yield Row(int(slate[0]) + 1, event)
