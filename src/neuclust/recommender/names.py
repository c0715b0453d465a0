"""What a recommender is called in one line, and policies by the names that people give them."""

from typing import TYPE_CHECKING

from neuclust.errors import ConfigError, suggestion
from neuclust.registry import policies

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender

MEANT = {
    "random": "uniform", "thompson": "lin-ts", "thompson-sampling": "lin-ts", "ts": "lin-ts", "ucb": "linucb",
    "greedy": "epsilon-greedy", "e-greedy": "epsilon-greedy", "eps-greedy": "epsilon-greedy",
    "popularity": "popular", "most-popular": "popular", "default": "auto",
}  # fmt: skip


def in_one_line(shop: "Recommender") -> str:
    """The policy, how much is known, and how much was learned."""
    counts, stock = shop.decisions.counts, shop.stock
    known = f"{len(stock.catalogue):,} items, {len(stock.users):,} users"
    return (
        f"<Recommender {shop.settings.policy.name}: {known}, {counts.learned:,} slates learned, {counts.open:,} open>"
    )


def check_policy(name: str) -> None:
    """Refuse a name that no policy has; those that learn from feedback are offered in its place."""
    known = policies()
    if name in known or ":" in name:  # package.module:Class is looked up where it is
        return
    meant = MEANT.get(name.casefold().replace("_", "-").replace(" ", "-"))
    learners = [each for each, spec in known.items() if not spec.knows_truth]
    near = f"did you mean {meant}?" if meant in known else suggestion(name, learners)
    raise ConfigError(f"no policy {name!r:.100}; {near}", field="policy")
