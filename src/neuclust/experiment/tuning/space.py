"""What may be tuned: settings with the values or the range to try, from text or the paper's grid."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from neuclust.configuration import resolve, with_setting
from neuclust.errors import ConfigError
from neuclust.registry import policy_config

Settings = dict[str, str]


@dataclass(frozen=True, slots=True)
class Values:
    """A setting and the values to try."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A setting and the range to draw from, evenly or evenly in its logarithm."""

    key: str
    low: float
    high: float
    log: bool = False
    whole: bool = False


Space = tuple[Values | Range, ...]

# The appendix prints the ranges of its grids, η from 0.001 to 0.1, γ from 0.1 to 1 and α from 0.01 to 1, not the
# values inside them: those, and the numbers of clusters, are ours.
_STEPS, _GAMMAS, _ALPHAS = ("1e-3", "1e-2", "1e-1"), ("0.1", "0.3", "1"), ("0.01", "0.1", "1")
_CLUSTERS = ("5", "10", "15", "20", "22", "25", "30", "40")
_ARMS = (Values("arms.training.step", _STEPS), Values("arms.schedule.gamma", _GAMMAS))
_NEUCLUST = (*_ARMS, Values("slate.training.step", _STEPS), Values("clustering.count", _CLUSTERS))
_LINEAR = (Values("alpha", _ALPHAS),)

PAPER_GRIDS: Mapping[str, Space] = {
    "neuclust": _NEUCLUST,
    "neuclust-online": _NEUCLUST,
    "cn-ucb": _ARMS,
    "linucb": _LINEAR,
    "linucb-disjoint": _LINEAR,
}


def parse_space(policy: str, preset: str, params: Sequence[str], grid: str | None = None) -> Space:
    """The space of `KEY=V1,V2` or `KEY=LOW:HIGH[:log]` texts and the grid `paper`; a text replaces the grid's entry.

    Without either it is the paper's grid, where that knows the policy.
    """
    config = policy_config(policy, preset)
    own = [_parse_param(config, text) for text in params]
    names = [entry.key for entry in own]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"expected each setting once, got {twice[0]} twice; join their values", field="settings")
    gridded = () if grid is None and params else _grid(policy, grid)
    return (*(entry for entry in gridded if entry.key not in names), *own)


def _grid(policy: str, grid: str | None) -> Space:
    if grid not in (None, "paper"):
        raise ConfigError(f"expected paper, got {grid!r}; name settings for your own values", field="grid")
    if policy not in PAPER_GRIDS:
        known = ", ".join(PAPER_GRIDS)
        if grid is not None:
            raise ConfigError(f"expected one of {known}, got {policy}; name settings instead", field="grid")
        text = f"expected something to tune, got none, and the paper's grid knows {known} but not {policy}"
        raise ConfigError(f"{text}; add KEY=V1,V2", field="settings")
    return PAPER_GRIDS[policy]


def _parse_param(config: Any, text: str) -> Values | Range:
    name, equals, wanted = (part.strip() for part in text.partition("="))
    if not equals or not name or not wanted:
        wanted = "key=v1,v2,... (as gamma=0.1,1,10) or key=low:high[:log]"
        raise ConfigError(f"expected {wanted}, got {text!r}", field="settings")
    key = "clustering.count" if name == "clusters" and hasattr(config, "clustering") else resolve(config, name)
    if ":" in wanted:
        return _parse_range(config, key, wanted, text)
    values = tuple(dict.fromkeys(value.strip() for value in wanted.split(",")))
    for value in values:
        with_setting(config, key, value)
    return Values(key, values)


def _parse_range(config: Any, key: str, wanted: str, text: str) -> Range:
    parts = wanted.split(":")
    try:
        low, high = float(parts[0]), float(parts[1])
    except ValueError:
        raise ConfigError(f"expected numbers in key=low:high[:log], got {text!r}", field="settings") from None
    log = parts[2:] == ["log"]
    if parts[2:] and not log:
        raise ConfigError(f"expected key=low:high or key=low:high:log, got {text!r}", field="settings")
    if not (math.isfinite(low) and math.isfinite(high) and low < high) or (log and low <= 0):
        positive = ", both above 0 for log" if log else ""
        raise ConfigError(f"expected low < high{positive}, got {text!r}", field="settings")
    found = Range(key, low, high, log, _is_whole(config, key))
    for end in (low, high):
        with_setting(config, key, setting_text(found, end))
    return found


def _is_whole(config: Any, key: str) -> bool:
    *path, last = key.split(".")
    for name in path:
        config = getattr(config, name)
    hint = get_type_hints(type(config))[last]
    options = get_args(hint) or (hint,)
    return int in options and float not in options


def setting_text(entry: Range, value: float) -> str:
    """A drawn number as a setting's text, with four significant digits."""
    return str(round(value)) if entry.whole else f"{value:.4g}"


def grid_size(space: Space) -> int | None:
    """How many settings there are; None where a range makes them countless."""
    counts = [len(entry.values) for entry in space if isinstance(entry, Values)]
    return math.prod(counts) if len(counts) == len(space) else None


def grid_settings(space: Space) -> Iterator[Settings]:
    """Every combination of values, the last entry fastest; nothing where there is a range."""
    if grid_size(space) is not None:
        values = [entry.values for entry in space if isinstance(entry, Values)]
        for chosen in itertools.product(*values):
            yield {entry.key: value for entry, value in zip(space, chosen, strict=True)}
