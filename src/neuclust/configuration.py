"""Frozen configuration records: checked entries, changes by dotted name, and the way back from JSON.

`RENAMED: ClassVar[Mapping[str, str]]` of a record maps earlier dotted names of settings or groups to present ones;
`with_setting` and `from_mapping` accept the earlier names, with a `RenamedWarning` once per process. `RETIRED` has the
names of settings that are gone: saves may still hold them, and they are read past.
"""

import functools
import math
import types
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from neuclust.errors import ConfigError, RenamedWarning, brief, close_names, one_of

Config = TypeVar("Config")
Range = tuple[float, float]  # both ends belong to it

MOST_WHOLE = 2**53  # up to which floats are exact: no count or size is larger

POSITIVE: Range = (math.ulp(0.0), math.inf)  # from the smallest float above 0
NON_NEGATIVE: Range = (0, math.inf)
AT_LEAST_ONE: Range = (1, math.inf)
BELOW_ONE = math.nextafter(1.0, 0.0)


@functools.cache
def _kinds(kind: Hashable) -> dict[str, tuple[Any, ...]]:
    """What each entry of a kind of record may be."""
    hints = get_type_hints(kind)
    return {entry.name: _options(hints[entry.name]) for entry in fields(cast("Any", kind))}


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def check_entries(config: object) -> None:
    """Refuse entries that are not of their annotated type, or none of its literals; NaN and infinity are no numbers."""
    for name in _kinds(cast("Hashable", type(config))):
        _check_entry(type(config), name, getattr(config, name))


def check_ranges(config: object, **ranges: Range) -> None:
    """Refuse what `check_entries` refuses, and numbers outside their range, low <= value <= high; None is no number."""
    check_entries(config)
    for name, (low, high) in ranges.items():
        value = getattr(config, name)
        if value is not None and not low <= value <= high:
            raise ConfigError(f"{type(config).__name__}.{name}: expected a number {_spoken(low, high)}, got {value}")


def checked(**ranges: Range) -> Callable[[type[Config]], type[Config]]:
    """Decorate a class of records, below `dataclass`: `check_ranges` of what is made, then its own `__post_init__`."""

    def decorated(kind: Any) -> Any:
        further = getattr(kind, "__post_init__", None)

        def check(self: Any) -> None:
            check_ranges(self, **ranges)
            if further is not None:
                further(self)

        kind.__post_init__, kind.RANGES = check, ranges
        return kind

    return decorated


def range_of(kind: type, name: str) -> str:
    """The range of numbers that an entry may have, in words; empty where it has none."""
    ranges: Mapping[str, Range] = getattr(kind, "RANGES", {})
    return _spoken(*ranges[name]) if name in ranges else ""


def kind_of(kind: type, name: str) -> str:
    """What an entry may be, in words: `a whole number or none`, `one of id, random`."""
    return " or ".join(_called(option) for option in _kinds(cast("Hashable", kind))[name])


def _spoken(low: float, high: float) -> str:
    start = f"of at least {_digits(low)}" if high == math.inf else f"from {_digits(low)}"
    if low == math.nextafter(round(low), math.inf):
        start = f"above {round(low)}"
    end = "" if high == math.inf else " to below 1" if high == BELOW_ONE else f" to {_digits(high)}"
    return start + end


def _digits(value: float) -> str:
    """All digits of a whole number, else the shortest form."""
    return str(int(value)) if value == round(value) else f"{value:g}"


def _check_entry(kind: type, name: str, value: object) -> None:
    options = _kinds(cast("Hashable", kind))[name]
    if any(_fits(value, option) for option in options):
        return
    words = [word for option in options if get_origin(option) is Literal for word in get_args(option)]
    called = f"expected {' or '.join(_called(option) for option in options)}, got {brief(value)}"
    raise ConfigError(f"{kind.__name__}.{name}: {one_of(value, words) if words else called}")


def _fits(value: object, option: Any) -> bool:
    """Whether a value is of one of an entry's kinds."""
    if option is type(None):
        return value is None
    if get_origin(option) is Literal:
        return isinstance(value, str) and value in get_args(option)
    if option is bool or isinstance(value, bool):
        return option is bool and isinstance(value, bool)
    if option is int:
        return isinstance(value, Integral) and abs(int(value)) <= MOST_WHOLE
    if option is float:
        return isinstance(value, Real) and _is_finite(value)
    if get_origin(option) is tuple:
        return isinstance(value, list | tuple) and all(isinstance(one, Integral) for one in value)
    return isinstance(value, option)


def _is_finite(value: Real) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _called(option: Any) -> str:
    if get_origin(option) is Literal:
        return f"one of {', '.join(map(str, get_args(option)))}"
    names = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a word", type(None): "none"}
    return names.get(option, "whole numbers" if get_origin(option) is tuple else "a group of settings")


def keys(config: Any) -> list[str]:
    """Dotted names of all entries, e.g. `arms.network.width`."""
    return list(entries(config))


def entries(config: Any) -> dict[str, Any]:
    """All entries by their dotted names."""
    found: dict[str, Any] = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            found |= {f"{entry.name}.{key}": inner for key, inner in entries(value).items()}
        else:
            found[entry.name] = value
    return found


MOST_LISTED = 12  # names in one sentence


def resolve(config: object, name: str, owner: str = "") -> str:
    """The full dotted name of `name`: itself, the only entry ending in it, or its present name; `owner`: a policy."""
    known = keys(config)
    if name in known:
        return name
    ending = [key for key in known if key.endswith(f".{name}")]
    if len(ending) == 1:
        return ending[0]
    if ending:
        raise _refused(name, f"expected one setting, but it could be {', '.join(ending)}; write it out")
    earlier = {old: new for old, new in _earlier_names(config).items() if f".{old}".endswith(f".{name}")}
    if len(set(earlier.values())) == 1:
        old, new = next(iter(earlier.items()))
        _warn_renamed(old, new)
        return new
    members = [key for key in known if key.startswith(f"{name}.") or f".{name}." in key]
    if members:
        raise _refused(name, f"expected one setting, got a group of them; set one of its members: {_few(members)}")
    listed = f"known: {', '.join(known)}"
    if len(known) > MOST_LISTED and owner:
        listed = f"{owner} has {len(known)} settings: {_few(known)}"
    raise _refused(name, f"no such setting; {_close_settings(name, known) or listed}")


def _refused(name: str, message: str) -> ConfigError:
    return ConfigError(message, field=name, group="settings")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_LISTED]) + (", ..." if len(names) > MOST_LISTED else "")


def _earlier_names(config: Any) -> dict[str, str]:
    """Full earlier names of settings, and of members of renamed groups, with the full names they have now."""
    found: dict[str, str] = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if is_dataclass(value):
            found |= {f"{entry.name}.{old}": f"{entry.name}.{new}" for old, new in _earlier_names(value).items()}
    present = {key: key for key in keys(config)} | found
    for old, new in _renamed(type(config)).items():
        inside = [key for key in present if key == new or key.startswith(f"{new}.")]
        found |= {old + key[len(new) :]: present[key] for key in inside}
    return found


def _renamed(kind: type) -> Mapping[str, str]:
    return cast("Mapping[str, str]", getattr(kind, "RENAMED", {}))


@functools.cache  # once per process
def _warn_renamed(old: str, new: str) -> None:
    text = f"the setting {old} is now called {new}; the earlier name is accepted until 0.3"
    warnings.warn(text, RenamedWarning, stacklevel=3)


def _close_settings(name: str, known: Sequence[str]) -> str:
    """Settings whose whole name, or the part after its last dot, is close."""
    last: dict[str, list[str]] = {}
    for key in known:
        last.setdefault(key.rsplit(".", 1)[-1], []).append(key)
    close = [key for each in close_names(name, [*known, *last]) for key in last.get(each, [each])]
    return f"did you mean {', '.join(dict.fromkeys(close))}?" if close else ""


def with_setting(config: Config, name: str, text: str, owner: str = "") -> Config:
    """A copy with one entry replaced; the text is read as the entry's type says, `owner` is whose it is."""
    changed: Config = _replaced(config, resolve(config, name, owner), text, name)
    return changed


def _replaced(config: Any, path: str, text: str, name: str) -> Any:
    head, _, rest = path.partition(".")
    if rest:
        value = _replaced(getattr(config, head), rest, text, name)
    else:
        value = _parse(text, _kinds(cast("Hashable", type(config)))[head], name)
    return replace(config, **{head: value})


def _parse(text: str, options: tuple[Any, ...], name: str) -> Any:
    if type(None) in options and text.lower() in ("none", "auto"):
        return None
    for option in options:
        if get_origin(option) is Literal:
            if text in get_args(option):
                return text
            raise _refused(name, one_of(text, map(str, get_args(option))))
        if option is bool:
            if text.lower() in ("true", "yes", "1", "false", "no", "0"):
                return text.lower() in ("true", "yes", "1")
            raise _refused(name, f"expected true or false, got {brief(text)}")
        if option in (int, float):
            return _read(option, text, name, "a whole number" if option is int else "a number")
        if option is str:
            return text
        if get_origin(option) is tuple and get_args(option)[:1] == (int,):
            return _read(_whole_numbers, text, name, "whole numbers with commas between")
    raise _refused(name, "this entry is a group of settings; set one of its members")


def _whole_numbers(text: str) -> tuple[int, ...]:
    return () if text.lower() in ("", "none") else tuple(map(int, text.split(",")))


def _read(number: Callable[[str], Any], text: str, name: str, expected: str) -> Any:
    try:
        return number(text)
    except ValueError:
        raise _refused(name, f"expected {expected}, got {brief(text)}") from None


def from_mapping(kind: type[Config], values: Mapping[str, Any]) -> Config:
    """A record from nested JSON values, as `dataclasses.asdict` wrote them."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{kind.__name__}: expected a group of settings, got {brief(values)}; was it saved so?")
    values, known = _with_present_names(kind, values), _kinds(cast("Hashable", kind))
    unknown = set(values) - set(known)
    if unknown:
        raise ConfigError(f"{kind.__name__}: unknown entries {', '.join(sorted(unknown))}; saved by another version?")
    found: dict[str, Any] = {}
    for name, value in values.items():
        record: Any = next((option for option in known[name] if is_dataclass(option)), None)
        found[name] = from_mapping(record, value) if record is not None and isinstance(value, Mapping) else value
    for name, value in found.items():  # also for records that do not check themselves
        _check_entry(kind, name, value)
    return kind(**found)


def _with_present_names(kind: type, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values with entries that were renamed under the names they have now, and without those that are gone."""
    values = {name: value for name, value in values.items() if name not in getattr(kind, "RETIRED", ())}
    for old, new in _renamed(kind).items():
        entries = flat(values)
        moved = {key: new + key[len(old) :] for key in entries if f"{key}.".startswith(f"{old}.")}
        if moved:
            _warn_renamed(old, new)
            values = _nested({moved.get(key, key): value for key, value in entries.items()})
    return values


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """`{"a": {"b": 1}}` as `{"a.b": 1}`."""
    groups = {name: flat(value) if isinstance(value, Mapping) else {"": value} for name, value in values.items()}
    return {f"{name}.{key}".rstrip("."): value for name, group in groups.items() for key, value in group.items()}


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        group = values
        for step in path:
            group = group.setdefault(step, {})
        group[last] = value
    return values
