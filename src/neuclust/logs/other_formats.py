"""What formats of other libraries need of a decision, or a sentence that says which is missing."""

import numpy as np
from numpy.typing import NDArray

from neuclust.errors import DataError
from neuclust.logs.decisions import LoggedDecision

Floats = NDArray[np.float64]


def chances_of(decision: LoggedDecision, format: str) -> Floats:
    """The propensities of a decision, (k,)."""
    if decision.propensities is None:
        said = f"expected propensities, which {format} needs, got none; write decisions that have them"
        raise DataError(f"{_named(decision)}: {said}")
    return decision.propensities


def rewards_of(decision: LoggedDecision, unseen: float | None, format: str) -> Floats:
    """The rewards of all slots, (k,), with `unseen` for those that were not observed."""
    missing = np.isnan(decision.rewards)
    if unseen is None and bool(missing.any()):
        said = f"expected rewards of all slots, which {format} needs, got some unseen; give unseen="
        raise DataError(f"{_named(decision)}: {said}")
    return np.where(missing, np.nan if unseen is None else unseen, decision.rewards)


def _named(decision: LoggedDecision) -> str:
    return f"decision {decision.id!r} of run {decision.run!r}"
