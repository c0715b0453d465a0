"""Frozen configuration records: change one entry by its dotted name, or rebuild one from JSON."""

from __future__ import annotations

import difflib
import functools
import types
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from neuclust.errors import ConfigError

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
            close = difflib.get_close_matches(str(value), words, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(
                f"{type(config).__name__}.{name}: expected one of {', '.join(words)}, got {value!r}{hint}"
            )


def keys(config: object) -> list[str]:
    """Dotted names of all entries, e.g. `arms.network.width`."""
    found = []
    for entry in fields(config):  # type: ignore[arg-type]
        value = getattr(config, entry.name)
        found += [f"{entry.name}.{key}" for key in keys(value)] if is_dataclass(value) else [entry.name]
    return found


def resolve(config: object, name: str) -> str:
    """The full dotted name meant by `name`: itself, or the only entry that ends in it."""
    known = keys(config)
    if name in known:
        return name
    ending = [key for key in known if key.endswith(f".{name}")]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise ConfigError(f"--set {name}: expected one setting, but it could be {', '.join(ending)}; write it out")
    last = {key.rsplit(".", 1)[-1]: key for key in known}
    close = list(dict.fromkeys(last.get(c, c) for c in difflib.get_close_matches(name, [*known, *last], n=3)))
    hint = f"did you mean {', '.join(close)}?" if close else f"known: {', '.join(known)}"
    raise ConfigError(f"--set {name}: no such setting; {hint}")


def with_setting(config: Config, name: str, text: str) -> Config:
    """A copy with one entry replaced; the text is read as the entry's type says."""
    changed: Config = _replaced(config, resolve(config, name), text, name)
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
            raise ConfigError(f"--set {name}: expected one of {', '.join(map(str, get_args(option)))}, got {text!r}")
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
