"""Every setting of every policy with what it takes, its value and its meaning: the source of lists and pages."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from neuclust.configuration import kind_of, range_of
from neuclust.presets.meanings import MEANINGS
from neuclust.registry import policy_config, split_name


@dataclass(frozen=True, slots=True)
class Setting:
    """One entry of a configuration."""

    name: str  # dotted: arms.network.width
    type: str  # a whole number, one of id, random, …
    default: str  # the preset's value, as overrides are written
    range: str  # of at least 1; empty where the type says it all
    meaning: str

    @property
    def takes(self) -> str:
        """Type and range in one."""
        number = next((word for word in ("a whole number", "a finite number") if word in self.type), "")
        return self.type.replace(number, f"{number} {self.range}") if number and self.range else self.type


def settings(policy: str) -> tuple[Setting, ...]:
    """The settings of `NAME` or `NAME:PRESET` in the order of its configuration; the values are the preset's."""
    name, preset = split_name(policy)
    return tuple(_settings(policy_config(name, preset or "default"), ""))


def groups(policy: str) -> dict[str, str]:
    """The groups that the settings of `NAME` or `NAME:PRESET` come in, by dotted name, with their meaning."""
    name, preset = split_name(policy)
    return dict(_groups(policy_config(name, preset or "default"), ""))


def _settings(config: Any, prefix: str) -> Iterator[Setting]:
    kind = type(config)
    for entry in fields(config):
        value, name = getattr(config, entry.name), f"{prefix}{entry.name}"
        if is_dataclass(value):
            yield from _settings(value, f"{name}.")
        else:
            yield Setting(
                name, kind_of(kind, entry.name), _written(value), range_of(kind, entry.name), _meaning(kind, entry)
            )


def _groups(config: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in fields(config):
        value, name = getattr(config, entry.name), f"{prefix}{entry.name}"
        if is_dataclass(value):
            yield name, _meaning(type(config), entry)
            yield from _groups(value, f"{name}.")


def _meaning(kind: type, entry: Any) -> str:
    """What the class says of its field, or what the presets' table says of our own classes."""
    own = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return str(entry.metadata.get("meaning") or (MEANINGS.get(kind.__name__, {}).get(entry.name, "") if own else ""))


def _written(value: object) -> str:
    """A value as an override takes it."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return str(value)
