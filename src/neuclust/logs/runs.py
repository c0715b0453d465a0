"""What every log has, ours or another system's: runs, and decisions that can be gone through again and again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from neuclust.errors import DataError
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.events import RunStart


@runtime_checkable
class DecisionLog(Protocol):
    """A log as evaluation reads it."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def runs(self) -> Mapping[str, RunStart]:
        """What each run of the log said at its start, by name."""

    @property
    def skipped(self) -> int:
        """How many bad lines were passed over."""

    @property
    def slate_size(self) -> int:
        """The longest slate of any run."""

    @property
    def dim(self) -> int:
        """The number of features models read, refused where runs differ."""

    @property
    def reward(self) -> str | None:
        """The name of the slate reward; None where it is not known or runs differ."""

    def decisions(self) -> Iterator[LoggedDecision]:
        """Every decision with its feedback, one at a time; may be asked for again."""


class Runs:
    """What all runs of a log say together."""

    __slots__ = ()

    runs: Mapping[str, RunStart]

    @property
    def slate_size(self) -> int:
        """The longest slate of any run."""
        return max(start.slate_size for start in self.runs.values())

    @property
    def dim(self) -> int:
        """The number of features models read, refused where runs differ."""
        found = sorted({start.dim for start in self.runs.values()})
        if len(found) > 1:
            raise DataError(f"log: expected runs with one number of features, got {found}; take runs of one problem")
        return found[0]

    @property
    def reward(self) -> str | None:
        """The name of the slate reward; None where it is not known or runs differ."""
        found = {start.reward for start in self.runs.values()}
        return found.pop() if len(found) == 1 else None
