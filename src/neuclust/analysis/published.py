"""Numbers the paper prints, and what the authors' own scripts gave; a number we have not seen printed is absent.

Regret is the clipped one, after 1000 rounds with slates of 5; seconds are those of a GTX 1080 Ti. On MovieLens 1352 s
are K-LinUCB's, since they are 133 µs for each of 10,168 arms in each of 1000 rounds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

NAMES: Mapping[str, str] = {
    "neuclust": "NeUClust",
    "neuclust-online": "NeUClust online",
    "cn-ucb": "CN-UCB",
    "linucb-disjoint": "K-LinUCB",
    "neural-mab": "Neural-MAB",
    "cc-mab": "CC-MAB",
}
ROUNDS, SLATE_SIZE = 1000, 5


@dataclass(frozen=True, slots=True)
class Published:
    """One row of the paper's Table 1; None where we have no printed number at hand."""

    regret: float | None = None
    seconds: float | None = None


PUBLISHED: Mapping[str, Mapping[str, Published]] = {
    "movielens": {
        "neuclust": Published(152, 486),
        "cn-ucb": Published(168),
        "linucb-disjoint": Published(207, 1352),
        "neural-mab": Published(227),
        "cc-mab": Published(403),
    },
    "yelp": {"neuclust": Published(157, 1976), "linucb-disjoint": Published(None, 81_293)},
}

# What stands in the table and cannot be given to a row.
UNPLACED: Mapping[str, str] = {
    "movielens": "The paper also prints 332 s, 141 s and 187 s for CN-UCB, Neural-MAB and CC-MAB; which is whose is "
    "not in our notes.",
    "yelp": "The paper prints regret and seconds of every method on Yelp; our notes hold NeUClust's two numbers and "
    "the seconds of K-LinUCB.",
}

# Where the appendix sees the elbow of k-means, in numbers of clusters; 22 and 20 were then chosen by regret.
ELBOWS: Mapping[str, tuple[int, int]] = {"movielens": (10, 20), "yelp": (15, 30)}

# The authors' scripts, unmodified, on the MovieLens data: clipped regret after 700 rounds, one number per run.
SCRIPTS_AT = 700
SCRIPTS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "movielens": {"neuclust": (107, 149, 142, 131, 98), "cn-ucb": (104, 103, 111, 97)},
    "yelp": {},
}


def published(study: str, policy: str) -> Published:
    """What the paper prints for a policy on a data set."""
    return PUBLISHED[study].get(policy, Published())


def comparable(rounds: int, slate_size: int) -> bool:
    """Whether sums over these rounds can stand beside the printed ones."""
    return (rounds, slate_size) == (ROUNDS, SLATE_SIZE)
