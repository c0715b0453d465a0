"""What a log holds, in one pass: how many decisions, of which designs, with which rewards."""

from collections import Counter
from dataclasses import dataclass, field

from neuclust.errors import DataError
from neuclust.evaluation.scoring import Log


@dataclass(slots=True)
class Survey:
    """Counts over the decisions of a log; slates are as long as `slate_size`, contexts have `dim` features."""

    decisions: int = 0
    slate_size: int = 0
    dim: int = 0
    designs: Counter[str] = field(default_factory=Counter)
    runs: dict[str, None] = field(default_factory=dict)  # in the order in which they came
    versions: set[str] = field(default_factory=set)

    @property
    def known(self) -> bool:
        """Whether every design is known, so that slot marginals can be computed."""
        return "unknown" not in self.designs


MOST_VERSIONS = 2  # more are not counted: two tell that the policy learned


def survey(log: Log) -> Survey:
    """Go through the log once."""
    found = Survey()
    for decision in log.decisions():
        contexts = decision.round.contexts
        if found.decisions and contexts.shape[1] != found.dim:
            got = f"got {contexts.shape[1]} after {found.dim}; evaluate the runs one by one"
            raise DataError(f"decision {decision.id}: expected as many features as before, {got}")
        found.decisions += 1
        found.slate_size = max(found.slate_size, len(decision.slate), decision.round.slate_size)
        found.dim = contexts.shape[1]
        found.designs[decision.design.kind] += 1
        found.runs[decision.run] = None
        if decision.version is not None and len(found.versions) < MOST_VERSIONS:
            found.versions.add(decision.version)
    if found.decisions < 2:
        raise DataError(f"log: expected at least 2 decisions to judge policies by, got {found.decisions}")
    return found
