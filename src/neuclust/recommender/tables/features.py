"""What a user says about columns: their kinds, how user and item columns are crossed, and how wide it may get."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from neuclust.errors import ConfigError, NeuclustError, StateError, brief
from neuclust.recommender.encoders.encoder import saved_entry
from neuclust.recommender.tables.columns import (
    LEVELS,
    MOST_LEVELS,
    WHOLE,
    Kind,
    Transformer,
    is_transformer,
    kind_from_json,
    kind_of,
    kind_to_json,
)
from neuclust.recommender.tables.values import LONGEST_ID

WIDTH, LEAST_WIDE, MOST_WIDE = 128, 2, 100_000
TABLES = ("items", "users", "context")
PARTS = ("columns", *TABLES)

Declared = Mapping[str, Any] | Any  # name -> a kind, a word for one, or a transformer; a transformer of a table; None
Names = Sequence[Sequence[str]] | None


@dataclass(frozen=True)
class Features:
    """Kinds of columns by name, crosses and matches of columns, and the bound on the number of features.

    A kind is `Number(low=0, high=100)` and the like, a word ("number", "boolean", "category", "date", "tags",
    "vector", "ignore") or a scikit-learn transformer; what is not named is inferred. `columns` holds for every table
    that has the name, `items`, `users` and `context` for one; a transformer in the place of `items` or `users`, or
    under the name "*" in them, reads all columns of the table that are not named. `cross`: outer products of two or
    more columns, named "price", or "items.price", "users.age", "context.hour" where two tables have the name.
    `match`: pairs of a user column and an item column, multiplied level by level (the paper's ⊙). None: the default;
    an empty list: none.
    """

    columns: Declared = None
    _: KW_ONLY
    items: Declared = None
    users: Declared = None
    context: Declared = None
    cross: Names = None
    match: Names = None
    width: int = WIDTH
    levels: int = LEVELS

    def __post_init__(self) -> None:
        for name, low, high in (("width", LEAST_WIDE, MOST_WIDE), ("levels", 1, MOST_LEVELS)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise ConfigError(f"expected a whole number from {low} to {high:,}, got {brief(value)}", field=name)
        for part in PARTS:
            object.__setattr__(self, part, _kinds(getattr(self, part), part, self.levels))
        object.__setattr__(self, "cross", _tuples(self.cross, "cross"))
        object.__setattr__(self, "match", _tuples(self.match, "match"))

    def declared(self, table: str, names: Iterable[str] | None = None) -> dict[str, Kind]:
        """Kinds declared for a table's columns ("items", "users" or "context"); those of `columns` where it has them.

        `names` are the table's columns; None: only what is declared for this table alone.
        """
        if table not in TABLES:
            raise ConfigError(f"expected one of {', '.join(TABLES)}, got {table!r:.100}", field="table")
        here = set(names or ())
        shared: dict[str, Kind] = {name: kind for name, kind in dict(self.columns or {}).items() if name in here}
        own: dict[str, Kind] = getattr(self, table)
        return shared | own

    def to_json(self) -> dict[str, Any]:
        """As JSON; of transformers the names of their classes."""
        kinds = {part: {name: kind_to_json(kind) for name, kind in getattr(self, part).items()} for part in PARTS}
        return kinds | {
            "cross": _listed(self.cross), "match": _listed(self.match), "width": self.width, "levels": self.levels,
        }  # fmt: skip

    @classmethod
    def from_json(cls, saved: Any, transformers: Mapping[str, Any] | None = None) -> "Features":
        """What `to_json` wrote; `transformers` by column in the place of those that were there."""
        tables = {part: TABLES if part == "columns" else (part,) for part in PARTS}
        given = {part: transformers_of(transformers, *names) for part, names in tables.items()}
        kinds = {part: _saved_kinds(saved_entry(saved, part, dict), given[part]) for part in PARTS}
        width, levels = saved_entry(saved, "width", int), saved_entry(saved, "levels", int)
        try:
            return cls(**kinds, cross=saved["cross"], match=saved["match"], width=width, levels=levels)
        except (KeyError, TypeError, NeuclustError) as error:
            raise StateError(f"saved features: expected settings that work; {error!s:.300}") from None


def transformers_of(given: Mapping[str, Any] | None, *tables: str) -> dict[str, Any]:
    """Transformers by the columns of tables, from those named `COLUMN` or `TABLE.COLUMN`."""
    found = dict(given or {})
    for table in tables:
        start = f"{table}."
        found |= {name[len(start) :]: each for name, each in (given or {}).items() if name.startswith(start)}
    return found


def _listed(crosses: Names) -> list[list[str]] | None:
    return None if crosses is None else [list(names) for names in crosses]


def _kinds(declared: Any, part: str, levels: int) -> dict[str, Kind]:
    if declared is None:
        return {}
    if isinstance(declared, Transformer) or is_transformer(declared):
        declared = {WHOLE: declared}
    if not isinstance(declared, Mapping):
        wanted = "expected a dictionary of column names and kinds"
        raise ConfigError(f"{wanted}, got {brief(declared)}; write {{'price': 'number'}}", field=part)
    for name in declared:
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_ID:
            raise ConfigError(f"expected names of columns, got {brief(name)}", field=part)
    kinds = {name: kind_of(kind, name, levels) for name, kind in declared.items()}
    if WHOLE in kinds and (part not in ("items", "users") or not isinstance(kinds[WHOLE], Transformer)):
        wanted = f"expected a transformer for all columns ({WHOLE}) of items or of users"
        raise ConfigError(f"{wanted}, got {brief(declared[WHOLE])} for {part}; name columns", field=part)
    return kinds


def _tuples(crosses: Any, field: str) -> tuple[tuple[str, ...], ...] | None:
    if crosses is None:
        return None
    wanted = "a list of pairs of column names" if field == "match" else "a list of tuples of two or more column names"
    if isinstance(crosses, str) or not isinstance(crosses, Sequence):
        raise ConfigError(f"expected {wanted}, got {brief(crosses)}; write [('segment', 'price')]", field=field)
    for names in crosses:
        one = isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names)
        if one or len(names) < 2 or (field == "match" and len(names) > 2) or len(set(names)) < len(names):
            raise ConfigError(f"expected {wanted}, got {brief(names)}; write [('segment', 'price')]", field=field)
    return tuple(tuple(names) for names in crosses)


def _saved_kinds(saved: Mapping[str, Any], transformers: Mapping[str, Any]) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for name, described in saved.items():
        if saved_entry(described, "kind", str) != "transformer":
            kinds[name] = kind_from_json(described)
        elif name in transformers:
            kinds[name] = Transformer(transformers[name], described.get("fitted") is True)
        else:
            wanted = f"expected the {saved_entry(described, 'class', str):.100} of column {name!r:.100}"
            raise StateError(
                f"{wanted}, which is not saved, got none; give it again, transformers={{{name!r:.100}: …}}"
            )
    return kinds
