"""What a recommender is called in one line, policies by the names that people give them, settings by their options."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from neuclust.errors import ConfigError, suggestion
from neuclust.presets.catalogue import PolicySpec
from neuclust.registry import policies, policy_spec

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender

NO_ADVICE: Mapping[str, str] = MappingProxyType({})
_INTERNAL = re.compile(r"[A-Z]\w*Config\.(\w+): ")
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


@contextmanager
def by_option(group: str = "", advice: Mapping[str, str] = NO_ADVICE) -> Iterator[None]:
    """Inside, a refusal of an entry of an internal record names the option, `group: entry`, and what to do."""
    try:
        yield
    except ConfigError as error:
        found = _INTERNAL.match(str(error))
        if found is None:
            raise
        said, entry = str(error)[found.end() :], found[1]
        raise ConfigError(said + advice.get(entry, ""), field=f"{group}: {entry}" if group else entry) from None


def _tracks(spec: PolicySpec) -> bool:
    """Whether a policy learns profiles of its own, which those of a recommender's features cannot be."""
    return getattr(spec.presets["default"], "tracker", None) is not None


def known_policy(name: str) -> PolicySpec:
    """The policy of a name; where no policy has it, those that learn from feedback are offered."""
    try:
        return policy_spec(name)
    except ConfigError:
        known = policies()
        if name in known or ":" in name:  # it is there and cannot be used, or is looked up by its module
            raise
    meant = MEANT.get(name.casefold().replace("_", "-").replace(" ", "-"))
    learners = [each for each, spec in known.items() if not spec.knows_truth and not _tracks(spec)]
    near = f"did you mean {meant}?" if meant in known else suggestion(name, learners)
    raise ConfigError(f"no policy {name!r:.100}; {near}", field="policy")
