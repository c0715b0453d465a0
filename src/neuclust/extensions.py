"""Policies and environments by name: shipped, registered in this process, or entry points of installed packages.

Entry points are read once, for an unknown name or a list of all; `package.module:attribute` is imported.
"""

import hashlib
import importlib
import re
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from neuclust.errors import ConfigError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Registration:
    """A policy or environment from outside the package, as data that travels to worker processes."""

    kind: str  # policy or environment
    name: str
    target: str  # package.module:attribute
    options: Mapping[str, Any] = field(default_factory=dict)  # JSON values: summary, presets, ...


class Spec(Protocol):
    """An entry of a registry."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> Any:
        """The class or function behind the name."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What it was registered with besides, as JSON values."""


S = TypeVar("S", bound=Spec)


class Registry(Generic[S]):
    """The specs of one kind by name; `spec_of` makes one from a name and a class or function, or refuses it."""

    def __init__(self, kind: str, group: str, built_in: Mapping[str, S], spec_of: Callable[[str, Any], S]) -> None:
        self.kind, self.group, self.built_in, self._spec_of = kind, group, built_in, spec_of
        self.registered: dict[str, S] = {}
        self._read = False  # whether the entry points of the group were

    def register(self, spec: S) -> None:
        """Add a spec; the same class or function may be registered again."""
        if not NAME.fullmatch(spec.name):
            raise ConfigError(f"expected letters, digits, dashes and underscores, got {spec.name!r}", field="name")
        taken = self.built_in.get(spec.name) or self.registered.get(spec.name)
        if taken is not None and place_of(taken.source) != place_of(spec.source):
            raise ConfigError(f"{spec.name!r} names {place_of(taken.source)} already; choose another", field="name")
        self.registered[spec.name] = spec

    def find(self, name: str) -> S | None:
        """The spec of a name or of `package.module:attribute`."""
        if ":" in name:
            source = imported(name)
            known = next((spec for spec in self.registered.values() if spec.source is source), None)
            return self._spec_of(name, source) if known is None else known
        if name not in self.built_in and name not in self.registered:
            self._read_entry_points()
        return self.built_in.get(name) or self.registered.get(name)

    def everything(self) -> dict[str, S]:
        """All specs by name, what the package ships first."""
        self._read_entry_points()
        return {**self.built_in, **self.registered}

    def outside(self, name: str) -> S | None:
        """The spec of a name that the package does not ship; None where it is shipped, unknown or not importable."""
        try:
            return None if name in self.built_in else self.find(name)
        except ConfigError:
            return None

    def registrations(self, names: Collection[str] | None) -> list[Registration]:
        """What was registered in this process (or those names of it), as data for other processes."""
        return [
            Registration(self.kind, name, portable_place(spec.source), spec.options)
            for name, spec in self.registered.items()
            if names is None or name in names
        ]

    def _read_entry_points(self) -> None:
        if self._read:
            return
        self._read = True
        for point in entry_points(group=self.group):
            try:
                source = point.load()
                if point.name not in self.registered:  # unless the module registered it when it was imported
                    self.register(self._spec_of(point.name, source))
            except Exception as error:  # whatever a foreign package raises must not stop a run of others
                package = point.dist.name if point.dist is not None else point.value
                reason = f"{point.name} ({point.value}) cannot be used: {error or repr(error)}"
                warnings.warn(f"package {package}: {reason}", stacklevel=2)


def place_of(source: Any) -> str:
    """`package.module:attribute` of a class or function."""
    return f"{source.__module__}:{source.__qualname__}"


def imported(target: str) -> Any:
    """The attribute of a module that `package.module:attribute` names."""
    module, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, ValueError) as error:
        advice = "install its package, or put its folder on PYTHONPATH"
        raise ConfigError(f"{target}: expected a module that can be imported, got {error}; {advice}") from error
    except AttributeError as error:
        raise ConfigError(f"{target}: expected package.module:attribute, but {error}") from None
    return found


def portable_place(source: Any) -> str:
    """The place of a class or function that other processes can import it from, or an error."""
    place = place_of(source)
    if source.__module__ == "__main__" or "<" in place:
        wanted = "a class or function at the top of an importable module, where worker processes find it"
        raise ConfigError(f"{place}: expected {wanted}; move it there, or run with the inline engine")
    return place


def file_hash_of(source: Any) -> str:
    """SHA-256 of the module file that holds a class or function; of its name where there is no file."""
    file = getattr(sys.modules.get(source.__module__), "__file__", None)
    content = Path(file).read_bytes() if file is not None and Path(file).is_file() else place_of(source).encode()
    return hashlib.sha256(content).hexdigest()


def first_sentence(source: Any) -> str:
    """The first line of a docstring, without its full stop."""
    lines = (source.__doc__ or "").strip().splitlines()
    return lines[0].rstrip(".") if lines else ""
