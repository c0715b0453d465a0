"""An experiment file: environments × policies × grids × seeds, read from TOML and checked line by line."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from neuclust.configuration import flat, resolve
from neuclust.environments.catalogue import takes_data
from neuclust.environments.rewards import parse_reward
from neuclust.errors import ConfigError, NeuclustError, one_of
from neuclust.experiment.contestants import Contestant
from neuclust.experiment.problem import DEFAULT_ENV, OpenProblem, Problem, open_problem
from neuclust.registry import policy_config

TOP = ("name", "rounds", "slate_size", "seeds", "environment", "policy")
ENVIRONMENT = ("env", "data", "slate_size", "rounds", "slate_reward", "arms_per_round", "start_ratings")
POLICY = ("policy", "preset", "clusters", "settings", "grid")
_NAME = re.compile(r"\w[\w.-]*")
_HEADER = re.compile(r"\s*\[\[?\s*([\w.\"'-]+)\s*\]")


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """Contestants × seeds × problems; `rounds` is the number played on each problem."""

    name: str
    problems: tuple[Problem, ...]
    rounds: tuple[int, ...]
    contestants: tuple[Contestant, ...]
    seeds: tuple[int, ...]
    rewards: tuple[str, ...] = ()  # the source of each problem's rewards, where the files were opened


@dataclass(frozen=True, slots=True)
class _Table:
    """The index-th table of a name in the file (the top without a name), and its lines, which `tomllib` drops."""

    file: Path
    lines: Sequence[str]
    name: str | None
    index: int
    values: Mapping[str, Any]

    def refuse(self, text: str, *keys: str) -> NoReturn:
        raise ConfigError(f"{self.file}:{self.line(keys)}: {text}")

    def line(self, keys: Sequence[str] = ()) -> int:
        """The line (from 1) of the innermost of `keys` that is found in the table, else of its header."""
        found, end = self._span()
        for key in keys:
            found = self._entry(found, end, key) or self._entry(found, end, key.rsplit(".", 1)[-1]) or found
        return found + 1

    def _span(self) -> tuple[int, int]:
        """First line and end of the table, sub-tables included."""
        headers = [(n, match[1]) for n, line in enumerate(self.lines) if (match := _HEADER.match(line))]
        if self.name is None:
            return 0, headers[0][0] if headers else len(self.lines)
        starts = [n for n, name in headers if name == self.name]
        if self.index >= len(starts):
            return 0, len(self.lines)
        start = starts[self.index]
        return start, next(
            (n for n, name in headers if n > start and not name.startswith(f"{self.name}.")), len(self.lines)
        )

    def _entry(self, start: int, end: int, key: str) -> int | None:
        """The first line that gives `key` a value, bare, quoted or dotted, or opens a sub-table of that name."""
        name = re.escape(key)
        entry = re.compile(rf"(?<![\w-])[\"']?{name}[\"']?\s*[=.]|\.{name}\s*\]")
        return next((n for n in range(start, end) if entry.search(self.lines[n].split("#", 1)[0])), None)

    def check_keys(self, known: Sequence[str]) -> None:
        for key in self.values:
            if key not in known:
                self.refuse(one_of(key, known), key)

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.values.get(key, default)
        if value is not None and not isinstance(value, str):
            self.refuse(f"{key}: expected text in quotes, got {value!r}", key)
        return value

    def whole(self, key: str, default: int | None = None) -> int | None:
        value = self.values.get(key, default)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            self.refuse(f"{key}: expected a whole number of at least 1, got {value!r}", key)
        return value

    def tables(self, key: str) -> list[_Table]:
        found = self.values.get(key, [])
        if not isinstance(found, list) or not found or not all(isinstance(entry, dict) for entry in found):
            self.refuse(f"expected at least one [[{key}]], got {'none' if not found else repr(found)}", key)
        return [_Table(self.file, self.lines, key, index, entry) for index, entry in enumerate(found)]


def read_spec(file: Path) -> SweepSpec:
    """The sweep a file describes; nothing of it is run, but every part is opened and tried."""
    top = _open(file)
    top.check_keys(TOP)
    name = top.text("name", file.stem) or ""
    if not _NAME.fullmatch(name):
        top.refuse(f"name: expected letters, digits, dots and dashes, got {name!r}", "name")
    seeds = _seeds(top)
    environments, policies = top.tables("environment"), top.tables("policy")
    problems = tuple(_problem(top, table) for table in environments)
    fields = [(table, contestant) for table in policies for contestant in _contestants(table)]
    _refuse_twins(environments, problems)
    _refuse_twins([table for table, _ in fields], [contestant for _, contestant in fields])
    tried = [_try(table, problem, fields, seeds[0]) for table, problem in zip(environments, problems, strict=True)]
    rounds, rewards = tuple(opened.rounds for opened in tried), tuple(opened.rewards for opened in tried)
    return SweepSpec(name, problems, rounds, tuple(contestant for _, contestant in fields), seeds, rewards)


def _open(file: Path) -> _Table:
    try:
        text = file.read_text(encoding="utf-8")
        return _Table(file, text.splitlines(), None, 0, tomllib.loads(text))
    except OSError as error:
        raise ConfigError(f"{file}: expected an experiment file, could not read it ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: expected text in UTF-8, got other bytes ({error.reason})") from None
    except tomllib.TOMLDecodeError as error:
        what = re.sub(r" \(at .*\)$", "", str(error))
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else max(1, len(text.splitlines()))
        raise ConfigError(f"{file}:{line}: expected TOML, got a mistake in it: {what}") from None


def _seeds(top: _Table) -> tuple[int, ...]:
    given, first = top.values.get("seeds", 1), 0
    if isinstance(given, dict) and set(given) == {"first", "count"}:
        given, first = given["count"], given["first"]
    if _is_seed(given) and given > 0 and _is_seed(first):
        return tuple(range(first, first + given))
    if isinstance(given, list) and given and all(map(_is_seed, given)) and len(set(given)) == len(given):
        return tuple(given)
    wanted = "a number, a list of different seeds or {first = 0, count = 10}"
    return top.refuse(f"seeds: expected {wanted}, got {top.values['seeds']!r}", "seeds")


def _is_seed(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _problem(top: _Table, table: _Table) -> Problem:
    table.check_keys(ENVIRONMENT)
    env, data = table.text("env"), table.text("data")
    if (env is None) == (data is None) and not takes_data(env or ""):
        table.refuse(f"expected either env or data, got {'both' if env else 'neither'}", "data" if env else "")
    path = None if data is None else (table.file.parent / data).absolute()
    slate_size = table.whole("slate_size", top.whole("slate_size", 5)) or 5
    reward = table.text("slate_reward")
    if reward is not None:
        try:
            parse_reward(reward, slate_size)
        except ConfigError as error:
            table.refuse(error.message, "slate_reward")
    rounds = table.whole("rounds", top.whole("rounds"))
    options = {name: table.whole(name) for name in ("arms_per_round", "start_ratings")}
    return Problem(DEFAULT_ENV if env is None else env, path, slate_size, rounds, reward, **options)


def _contestants(table: _Table) -> Iterator[Contestant]:
    """One for every combination of the grid."""
    table.check_keys(POLICY)
    policy, preset, clusters = table.text("policy"), table.text("preset", "default"), table.whole("clusters")
    if policy is None:
        table.refuse("expected policy = NAME, got none")
    plain = Contestant(policy, preset or "", clusters)
    _settle(table, Contestant(policy), "policy")
    _settle(table, plain, "policy" if preset == "default" else "preset")
    settings = {key: _as_text(table, value, "settings", key) for key, value in _flat(table, "settings").items()}
    axes = {key: _axis(table, key, values) for key, values in _flat(table, "grid").items()}
    _refuse_overlap(table, plain, settings, axes)
    singly = [("settings", key, value) for key, value in settings.items()]
    singly += [("grid", key, value) for key, values in axes.items() for value in values]
    for part, key, value in singly:
        _settle(table, Contestant(policy, plain.preset, clusters, {key: value}), part, key)
    for values in itertools.product(*axes.values()):
        chosen = Contestant(policy, plain.preset, clusters, settings | dict(zip(axes, values, strict=True)))
        _settle(table, chosen, "grid" if axes else "settings")
        yield chosen


def _settle(table: _Table, contestant: Contestant, *keys: str) -> None:
    """Refuse, with its line, what makes no configuration."""
    try:
        policy_config(contestant.policy, contestant.preset, contestant.clusters, contestant.settings)
    except ConfigError as error:
        table.refuse(f"{keys[-1]}: {error.message}", *keys)


def _flat(table: _Table, key: str) -> dict[str, Any]:
    """Entries with dotted names, whether the dots stood in quotes or made tables."""
    value = table.values.get(key, {})
    if not isinstance(value, dict):
        table.refuse(f"{key}: expected {{name = value, ...}}, got {value!r}", key)
    return flat(value)


def _as_text(table: _Table, value: object, *keys: str) -> str:
    """A setting as the command line would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        table.refuse(f"{keys[-1]}: expected a number, text, true or false, got {value!r}", *keys)
    return str(value)


def _axis(table: _Table, key: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not values:
        table.refuse(f"{key}: expected a list of values, got {values!r}", "grid", key)
    texts = tuple(_as_text(table, value, "grid", key) for value in values)
    if len(set(texts)) < len(texts):
        table.refuse(f"{key}: expected each value once, got {values!r}", "grid", key)
    return texts


def _refuse_overlap(table: _Table, plain: Contestant, settings: Mapping[str, str], axes: Mapping[str, object]) -> None:
    """One entry set twice would make runs whose label says one thing and whose configuration another."""
    config = policy_config(plain.policy, plain.preset, plain.clusters)
    seen = {"clustering.count": "clusters"} if plain.clusters is not None else {}
    for part, names in (("settings", settings), ("grid", axes)):
        for name in names:
            try:
                full = resolve(config, name)
            except ConfigError as error:
                table.refuse(f"{name}: {error.message}", part, name)
            if full in seen:
                table.refuse(f"expected each setting once, got {full} as {seen[full]} and {name}", part, name)
            seen[full] = name


def _refuse_twins(tables: Sequence[_Table], entries: Sequence[object]) -> None:
    for index, (table, entry) in enumerate(zip(tables, entries, strict=True)):
        if entry in entries[:index]:
            earlier = tables[entries.index(entry)].line()
            table.refuse(f"expected each {table.name} once, got the one of line {earlier} again")


def _try(table: _Table, problem: Problem, fields: Sequence[tuple[_Table, Contestant]], seed: int) -> OpenProblem:
    """Open the problem and build every contestant on it."""
    try:
        opened = open_problem(problem)
        environment = opened.environment(seed)
    except NeuclustError as error:
        table.refuse(error.message, "data" if problem.data else "env")
    for owner, contestant in fields:
        try:
            contestant.check(environment)
            contestant.build(environment, seed)
        except NeuclustError as error:
            owner.refuse(f"on {problem.name}: {error.message}")
    return opened
