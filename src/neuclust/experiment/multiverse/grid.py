"""Readings of the paper as a grid in a TOML file: options with settings, a preferred one of each, blocks of cells."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuclust.errors import ConfigError, one_of
from neuclust.experiment.contestants import Contestant
from neuclust.registry import policy_config

NEUCLUST, CN_UCB, WITHOUT_F = ROLES = ("neuclust", "cn-ucb", "without-f")
ENGINES = ("device", "processes")
_TOP = ("name", "preset", "rounds", "slate_size", "seeds", "reading", "block")
_READING, _OPTION, _BLOCK = (
    ("question", "preferred", "why", "options"),
    ("words", "settings"),
    ("words", "engine", "cross"),
)


@dataclass(frozen=True, slots=True)
class Option:
    """One answer to a reading's question, and the settings that compute it."""

    name: str
    words: str
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """A question that the paper leaves open; `why` is the argument, from its text, for the preferred option."""

    name: str
    question: str
    preferred: str
    why: str
    options: Mapping[str, Option]

    @property
    def of_slate_net(self) -> bool:
        """Whether it is about F alone: without F its answer changes nothing."""
        return all(key.startswith("slate.") for option in self.options.values() for key in option.settings)


@dataclass(frozen=True, slots=True)
class Cell:
    """One option of every reading; `engine` is `processes` where the device engine does not play it."""

    options: tuple[str, ...]  # in the order of the readings
    engine: str


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells in the order in which they are played; contestants of all cells change the same preset."""

    name: str
    preset: str
    rounds: int
    slate_size: int
    seeds: tuple[int, ...]
    readings: tuple[Reading, ...]
    cells: tuple[Cell, ...]

    @property
    def preferred(self) -> tuple[str, ...]:
        """The preferred option of every reading."""
        return tuple(reading.preferred for reading in self.readings)

    def title(self, cell: Cell) -> str:
        """What the cell answers otherwise than the preferred one: `scale=fifth, steps=last`."""
        pairs = zip(self.readings, cell.options, strict=True)
        return ", ".join(f"{r.name}={option}" for r, option in pairs if option != r.preferred) or "preferred"

    def contestant(self, cell: Cell, role: str) -> Contestant:
        """Who plays a role in a cell. CN-UCB has an arm network alone; NeUClust without F keeps the preferred F, with
        weight 0, so that cells which differ in what it cannot notice share its runs."""
        settings: dict[str, str] = {}
        for reading, chosen in zip(self.readings, cell.options, strict=True):
            option = reading.preferred if role == WITHOUT_F and reading.of_slate_net else chosen
            settings |= reading.options[option].settings
        if role == CN_UCB:
            return Contestant(
                "cn-ucb", self.preset, settings={k: v for k, v in settings.items() if k.startswith("arms.")}
            )
        return Contestant(
            "neuclust", self.preset, settings=settings | ({"slate.weight": "0"} if role == WITHOUT_F else {})
        )

    def contestants(self, cells: Sequence[Cell]) -> list[Contestant]:
        """Everybody who plays in these cells, once, in the order of the cells."""
        found: list[Contestant] = []  # not hashable
        for cell in cells:
            for role in ROLES:
                one = self.contestant(cell, role)
                if one not in found:
                    found.append(one)
        return found


def read_grid(file: Path) -> Grid:
    """The grid a file declares; every setting of it is tried."""
    try:
        top = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: expected a grid of readings, could not read it ({error.strerror})") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file}: expected TOML, got a mistake in it: {error}") from None
    try:
        return _grid(top, file.stem)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None


def _grid(top: Mapping[str, Any], stem: str) -> Grid:
    _check_keys(top, _TOP, "the file")
    readings = tuple(_reading(name, table) for name, table in _tables(top, "reading").items())
    blocks = top.get("block", [])
    if not isinstance(blocks, list) or not blocks:
        raise ConfigError(f"expected at least one [[block]], got {blocks!r}")
    cells: dict[tuple[str, ...], Cell] = {}
    for number, block in enumerate(blocks, start=1):
        for cell in _cells(block, readings, f"block {number}"):
            cells.setdefault(cell.options, cell)
    preset, numbers = str(top.get("preset", "paper")), {name: _whole(top, name) for name in ("rounds", "slate_size")}
    grid = Grid(
        str(top.get("name", stem)), preset, **numbers, seeds=_seeds(top), readings=readings, cells=tuple(cells.values())
    )
    for one in grid.contestants(grid.cells):
        policy_config(one.policy, one.preset, one.clusters, one.settings)
    return grid


def _reading(name: str, table: Mapping[str, Any]) -> Reading:
    _check_keys(table, _READING, f"reading {name}")
    options = {
        key: _option(key, given, f"reading {name}, option {key}") for key, given in _tables(table, "options").items()
    }
    words = {key: str(table.get(key, "")) for key in ("question", "preferred", "why")}
    if words["preferred"] not in options:
        raise ConfigError(f"reading {name}: preferred: {one_of(words['preferred'], options)}")
    if not words["question"] or not words["why"]:
        raise ConfigError(
            f"reading {name}: expected a question and an argument (why) for the preferred option, got none"
        )
    return Reading(name, options=options, **words)


def _option(name: str, table: Mapping[str, Any], where: str) -> Option:
    _check_keys(table, _OPTION, where)
    settings = {key: _text(value, f"{where}, {key}") for key, value in _tables(table, "settings").items()}
    return Option(name, str(table.get("words", "")), settings)


def _cells(block: Any, readings: Sequence[Reading], where: str) -> Iterator[Cell]:
    """The cross of a block's options, the last reading fastest; readings it does not name keep the preferred one."""
    _check_keys(block, _BLOCK, where)
    engine, cross = block.get("engine", "device"), _tables(block, "cross")
    if engine not in ENGINES:
        raise ConfigError(f"{where}: engine: {one_of(engine, ENGINES)}")
    _check_keys(cross, [reading.name for reading in readings], where)
    axes = []
    for reading in readings:
        chosen = cross.get(reading.name, [reading.preferred])
        if not isinstance(chosen, list) or not chosen:
            raise ConfigError(f"{where}: {reading.name}: expected a list of options, got {chosen!r}")
        for option in chosen:
            if option not in reading.options:
                raise ConfigError(f"{where}: {reading.name}: {one_of(option, reading.options)}")
        axes.append(chosen)
    yield from (Cell(options, engine) for options in itertools.product(*axes))


def _tables(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = table.get(key)
    if not isinstance(found, dict) or not found:
        raise ConfigError(f"expected a table {key}, got {found!r}")
    return found


def _check_keys(table: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: expected a table, got {table!r}")
    for key in table:
        if key not in known:
            raise ConfigError(f"{where}: {one_of(key, known)}")


def _whole(top: Mapping[str, Any], key: str) -> int:
    value: Any = top.get(key)
    if not _is_whole(value) or value < 1:
        raise ConfigError(f"{key}: expected a whole number of at least 1, got {value!r}")
    return int(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _seeds(top: Mapping[str, Any]) -> tuple[int, ...]:
    given = top.get("seeds")
    pair = isinstance(given, dict) and set(given) == {"first", "count"} and all(map(_is_whole, given.values()))
    if isinstance(given, dict) and pair and given["count"] >= 1:
        return tuple(range(given["first"], given["first"] + given["count"]))
    raise ConfigError(f"seeds: expected {{ first = 0, count = 20 }}, got {given!r}")


def _text(value: object, where: str) -> str:
    """A setting as the command line would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise ConfigError(f"{where}: expected a number, text, true or false, got {value!r}")
    return str(value)
