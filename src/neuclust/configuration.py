"""Frozen configuration records: change one entry by its dotted name, or rebuild one from JSON."""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from neuclust.errors import ConfigError, close_names, one_of

Config = TypeVar("Config")


@functools.cache
def _choices(kind: Hashable) -> dict[str, tuple[Any, ...]]:
    """Entries of a kind of record that take one of a few words."""
    hints = get_type_hints(kind)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def check_choices(config: object) -> None:
    """Refuse a word that is none of an entry's choices; a record calls this when it is made."""
    for name, words in _choices(cast("Hashable", type(config))).items():
        value = getattr(config, name)
        if value not in words:
            raise ConfigError(f"{type(config).__name__}.{name}: {one_of(value, words)}")


def keys(config: object) -> list[str]:
    """Dotted names of all entries, e.g. `arms.network.width`."""
    return list(entries(config))


def entries(config: object) -> dict[str, Any]:
    """All entries by their dotted names."""
    found: dict[str, Any] = {}
    for entry in fields(config):  # type: ignore[arg-type]
        value = getattr(config, entry.name)
        if is_dataclass(value):
            found |= {f"{entry.name}.{key}": inner for key, inner in entries(value).items()}
        else:
            found[entry.name] = value
    return found


MOST_LISTED = 12  # names in one sentence


def resolve(config: object, name: str, owner: str = "") -> str:
    """The full dotted name meant by `name`: itself, or the only entry that ends in it; `owner` is whose it is."""
    known = keys(config)
    if name in known:
        return name
    ending = [key for key in known if key.endswith(f".{name}")]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise ConfigError(f"--set {name}: expected one setting, but it could be {', '.join(ending)}; write it out")
    members = [key for key in known if key.startswith(f"{name}.") or f".{name}." in key]
    if members:
        few = ", ".join(members[:MOST_LISTED]) + (", ..." if len(members) > MOST_LISTED else "")
        raise ConfigError(f"--set {name}: expected one setting, got a group of them; set one of its members: {few}")
    raise ConfigError(f"--set {name}: no such setting; {_close_settings(name, known) or _listed(known, owner)}")


def _close_settings(name: str, known: Sequence[str]) -> str:
    """Settings whose whole name, or the part after its last dot, is close."""
    last: dict[str, list[str]] = {}
    for key in known:
        last.setdefault(key.rsplit(".", 1)[-1], []).append(key)
    close = [key for each in close_names(name, [*known, *last]) for key in last.get(each, [each])]
    return f"did you mean {', '.join(dict.fromkeys(close))}?" if close else ""


def _listed(known: Sequence[str], owner: str) -> str:
    """All of them, or how to see them where they are too many for a sentence."""
    if len(known) <= MOST_LISTED or not owner:
        return f"known: {', '.join(known)}"
    return f"`neuclust policies {owner}` lists the {len(known)} settings of {owner}"


def with_setting(config: Config, name: str, text: str, owner: str = "") -> Config:
    """A copy with one entry replaced; the text is read as the entry's type says, `owner` is whose it is."""
    changed: Config = _replaced(config, resolve(config, name, owner), text, name)
    return changed


def _replaced(config: Any, path: str, text: str, name: str) -> Any:
    head, _, rest = path.partition(".")
    if rest:
        value = _replaced(getattr(config, head), rest, text, name)
    else:
        value = _parse(text, get_type_hints(type(config))[head], name)
    return replace(config, **{head: value})


def _parse(text: str, kind: Any, name: str) -> Any:
    options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    if type(None) in options and text.lower() in ("none", "auto"):
        return None
    for option in options:
        if get_origin(option) is Literal:
            if text in get_args(option):
                return text
            raise ConfigError(f"--set {name}: {one_of(text, map(str, get_args(option)))}")
        if option is bool:
            if text.lower() in ("true", "yes", "1", "false", "no", "0"):
                return text.lower() in ("true", "yes", "1")
            raise ConfigError(f"--set {name}: expected true or false, got {text!r}")
        if option in (int, float):
            try:
                return option(text)
            except ValueError:
                kind_name = "a whole number" if option is int else "a number"
                raise ConfigError(f"--set {name}: expected {kind_name}, got {text!r}") from None
        if option is str:
            return text
        if get_origin(option) is tuple and get_args(option)[:1] == (int,):
            return _whole_numbers(text, name)
    raise ConfigError(f"--set {name}: this entry is a group of settings; set one of its members")


def _whole_numbers(text: str, name: str) -> tuple[int, ...]:
    """`3,17,4` as numbers; nothing, or none, is no number at all."""
    words = [] if text.lower() in ("", "none") else text.split(",")
    try:
        return tuple(int(word) for word in words)
    except ValueError:
        raise ConfigError(f"--set {name}: expected whole numbers with commas between, got {text!r}") from None


def from_mapping(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """A record from nested JSON values, as `dataclasses.asdict` wrote them."""
    hints = get_type_hints(kind)
    unknown = set(values) - set(hints)
    if unknown:
        raise ConfigError(f"{kind.__name__}: unknown entries {', '.join(sorted(unknown))}; saved by a newer version?")
    return kind(**{name: _rebuilt(hints[name], value) for name, value in values.items()})


def _rebuilt(hint: Any, value: Any) -> Any:
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    record = next((option for option in options if is_dataclass(option)), None)
    return from_mapping(record, value) if record is not None and isinstance(value, Mapping) else value  # type: ignore[arg-type]
