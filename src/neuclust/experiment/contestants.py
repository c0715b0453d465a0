"""Policies that are compared on a problem: name, preset and settings, parsed from text."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuclust.core import Policy
from neuclust.environments.problem import HasArms
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError
from neuclust.policies.exploring import Exploring
from neuclust.registry import build_policy, policy_config, split_name
from neuclust.slates.clustering import ClusteringConfig
from neuclust.slates.propensities import Exploration


@dataclass(frozen=True, slots=True)
class Contestant:
    """A policy by name, with the preset and settings it plays with; `explore` of its slots are drawn (`Exploring`)."""

    policy: str
    preset: str = "default"
    clusters: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    explore: float = 0.0

    @property
    def told(self) -> dict[str, str]:
        """What records say of how it was made."""
        return {**self.settings, **({"explore": f"{self.explore:g}"} if self.explore else {})}

    @property
    def title(self) -> str:
        return self.policy if self.preset == "default" else f"{self.policy}:{self.preset}"

    @property
    def clustering(self) -> ClusteringConfig | None:
        """How its arms are grouped, for policies that group them."""
        config = policy_config(self.policy, self.preset, self.clusters, self.settings)
        found: ClusteringConfig | None = getattr(config, "clustering", None)
        return found

    def check(self, environment: SlateEnvironment) -> None:
        """Refuse what cannot work on this problem, without building anything."""
        clustering = self.clustering
        arms = len(environment.arm_ids) if isinstance(environment, HasArms) else math.inf
        if clustering is not None and clustering.method != "hdbscan" and clustering.count > arms:
            got = f"{clustering.count} clusters for {arms} arms; ask for fewer"
            raise ConfigError(f"{self.title}: expected at most as many clusters as arms, got {got}", field="clusters")

    def build(self, environment: SlateEnvironment, seed: int) -> Policy:
        own: dict[str, Any] = {"preset": self.preset, "clusters": self.clusters, "overrides": self.settings}
        policy = build_policy(self.policy, environment=environment, seed=seed, **own)
        return Exploring(policy, Exploration(self.explore), seed) if self.explore else policy


def parse_contestants(
    names: Sequence[str], *, preset: str = "default", clusters: int | None = None, settings: Sequence[str] = ()
) -> tuple[Contestant, ...]:
    """Contestants from `NAME` or `NAME:PRESET`; settings are `key=value`, or `NAME.key=value` for one policy."""
    pairs = [_split_setting(text) for text in settings]
    split = [split_name(name) for name in names]
    policies = [policy for policy, _ in split]
    contestants = [
        Contestant(policy, own_preset or preset, clusters, _settings_of(policy, pairs, policies))
        for policy, own_preset in split
    ]
    titles = [contestant.title for contestant in contestants]
    twice = sorted({title for title in titles if titles.count(title) > 1})
    if twice:
        raise ConfigError(f"expected each policy and preset once, got {twice[0]} twice; name it once", field="policy")
    return tuple(contestants)


def _split_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"expected key=value, got {text!r}; write for example gamma=0.5", field="settings")
    return key.strip(), value.strip()


def _settings_of(policy: str, pairs: Sequence[tuple[str, str]], policies: Sequence[str]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for key, value in pairs:
        owner = next((each for each in policies if key.startswith(f"{each}.")), None)
        if owner not in (None, policy):
            continue
        name = key if owner is None else key.removeprefix(f"{owner}.")
        if name in chosen:
            raise ConfigError(f"expected each key once, got {name} twice for {policy}; keep one", field="settings")
        chosen[name] = value
    return chosen
