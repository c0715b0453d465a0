"""What a column is: the kinds that can be declared, and how the kind of an undeclared column is inferred."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any

from neuclust.configuration import checked
from neuclust.errors import ConfigError, NeuclustError, StateError, brief, one_of
from neuclust.recommender.tables.texts import is_number
from neuclust.recommender.tables.values import LARGEST, Value, text_of

ROUNDING = 1e-9
WHOLE = "*"  # in the place of a column's name: all columns of a table that are not named
LEVELS = 32  # levels of a category or of tags that get a column each
MOST_LEVELS = 1_000
MOST_ENTRIES = 4_096  # of a vector
SEPARATORS, LONGEST_TAG = ("|", ";"), 60  # what tags in one text are told by; a comma is part of many texts
UNIQUE = 32  # distinct strings beyond which a column of mostly unique ones is not learned from
LONGEST_TEXT = 10_000  # characters of a level or tag
MOSTLY = 0.9  # share of numbers from which on the other texts of a column are probably mistakes
STATE_NUMBER = "make it empty or state Number()"
MOST_UNREADABLE = 8  # distinct texts in a column of dates that count as missing


@dataclass(frozen=True)
@checked(low=(-LARGEST, LARGEST), high=(-LARGEST, LARGEST))
class Number:
    """A number; with both ends of a range it is scaled by them, else by the mean and deviation of what was seen."""

    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ConfigError(f"Number: expected both low and high or neither, got {self.low} and {self.high}")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ConfigError(f"Number: expected low below high, got {self.low} and {self.high}")


@dataclass(frozen=True)
class Boolean:
    """True or false (0 and 1 count as these)."""


@dataclass(frozen=True)
class Category:
    """One of several levels, compared by their text; the most frequent `levels`, or those listed, get a column each."""

    levels: int | Sequence[str] = LEVELS

    def __post_init__(self) -> None:
        _check_levels(self)


@dataclass(frozen=True)
class Date:
    """A date or datetime, or ISO text of one; the texts in `missing` count as missing."""

    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.missing, str) or not all(isinstance(text, str) for text in self.missing):
            raise ConfigError(f"Date.missing: expected a tuple of texts, got {brief(self.missing)}")
        object.__setattr__(self, "missing", tuple(self.missing))


@dataclass(frozen=True)
class Tags:
    """A list of tags, or text that `separator` splits into them; `levels` as in a category."""

    levels: int | Sequence[str] = LEVELS
    separator: str | None = None

    def __post_init__(self) -> None:
        _check_levels(self)
        _check_separator(self)


@dataclass(frozen=True)
@checked(dim=(1, MOST_ENTRIES))
class Vector:
    """A list of `dim` numbers (None: as many as the first has), or text that `separator` splits into them."""

    dim: int | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        _check_separator(self)


@dataclass(frozen=True)
class Ignore:
    """A column that is kept and not learned from."""


@dataclass(frozen=True)
class Transformer:
    """A scikit-learn transformer that makes columns of numbers of one column, or of a whole table.

    A copy of it is fitted on the column; `fitted`: it is used as it is.
    """

    transformer: Any
    fitted: bool = False

    def __post_init__(self) -> None:
        if not is_transformer(self.transformer):
            wanted = "expected an object with fit and transform, such as StandardScaler()"
            raise ConfigError(f"Transformer: {wanted}, got {_called(self.transformer)}")


Kind = Number | Boolean | Category | Date | Tags | Vector | Ignore | Transformer
KINDS: dict[str, type[Any]] = {
    "number": Number, "boolean": Boolean, "category": Category, "date": Date, "tags": Tags, "vector": Vector,
    "ignore": Ignore, "transformer": Transformer,
}  # fmt: skip
WORDS = tuple(word for word in KINDS if word != "transformer")


def _check_levels(kind: Category | Tags) -> None:
    """A number of levels, or the levels themselves as distinct texts."""
    levels, name = kind.levels, type(kind).__name__
    if isinstance(levels, int) and not isinstance(levels, bool) and 1 <= levels <= MOST_LEVELS:
        return
    texts = tuple(levels) if isinstance(levels, list | tuple) else ()
    if not all(isinstance(text, str) and len(text) <= LONGEST_TEXT for text in texts) or len(set(texts)) < len(texts):
        raise ConfigError(f"{name}.levels: expected distinct texts, got {brief(levels)}")
    if not 1 <= len(texts) <= MOST_LEVELS:
        raise ConfigError(
            f"{name}.levels: expected 1 to {MOST_LEVELS}, or as many texts in a list, got {brief(levels)}"
        )
    object.__setattr__(kind, "levels", texts)


def _check_separator(kind: Tags | Vector) -> None:
    if kind.separator is not None and not (isinstance(kind.separator, str) and 0 < len(kind.separator) <= 10):
        name = type(kind).__name__
        raise ConfigError(f"{name}.separator: expected 1 to 10 characters, got {brief(kind.separator)}")


def is_transformer(value: object) -> bool:
    """Whether it fits and transforms, and is no class of such."""
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in ("fit", "transform"))


def kind_of(declared: Any, column: str, levels: int = LEVELS) -> Kind:
    """The kind that a word, a kind or a transformer stands for; words take `levels` from the features."""
    if isinstance(declared, Kind):
        return declared
    if isinstance(declared, str):
        if declared not in WORDS:
            raise ConfigError(one_of(declared[:100], WORDS), field=f"features, column {column!r:.100}")
        made: Kind = KINDS[declared](**({"levels": levels} if declared in ("category", "tags") else {}))
        return made
    if is_transformer(declared):
        return Transformer(declared)
    wanted = f"expected one of {', '.join(WORDS)}, a kind such as Number(low=0, high=1) or a scikit-learn transformer"
    raise ConfigError(f"{wanted}, got {_called(declared)}", field=f"features, column {column!r:.100}")


def _called(value: object) -> str:
    return f"the class {value.__name__:.100}; make one of it" if isinstance(value, type) else brief(value)


def word_of(kind: Kind) -> str:
    """The word for a kind."""
    return next(word for word, made in KINDS.items() if type(kind) is made)


def kind_to_json(kind: Kind) -> dict[str, Any]:
    """A kind as JSON; of a transformer only the name of its class."""
    if isinstance(kind, Transformer):
        named = {"kind": "transformer", "class": type(kind.transformer).__name__}
        return named | ({"fitted": True} if kind.fitted else {})
    entries = {entry.name: getattr(kind, entry.name) for entry in fields(kind)}
    return {"kind": word_of(kind)} | {name: list(e) if isinstance(e, tuple) else e for name, e in entries.items()}


def kind_from_json(saved: Any) -> Kind:
    """What `kind_to_json` wrote; transformers are given again to the encoder instead."""
    try:
        entries = dict(saved)
        made: Kind = {word: KINDS[word] for word in WORDS}[entries.pop("kind")](**entries)
    except (KeyError, TypeError, ValueError, NeuclustError):
        raise StateError(
            f"saved features: expected the kind of a column, got {saved!r:.100}; was it saved so?"
        ) from None
    return made


# --- inferred kinds -------------------------------------------------------------------------------------------


def infer(values: Sequence[Value], ids: bool = False, levels: int = LEVELS) -> tuple[Kind, str]:
    """The kind of a column by its values, and why; `ids`: the column names the rows and is not learned from.

    One value alone tells its type only, as in the first request that brings a context column.
    """
    if ids:
        return Ignore(), "identifier"
    present = [value for value in values if value is not None]
    if not present:
        return Ignore(), "all missing"
    if len(values) > 1 and len(present) == len(values) and len(set(present)) == 1:
        return Ignore(), "one constant value"
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return Boolean(), "true and false"
    if kinds <= {bool, int, float}:
        return Number(), "numbers"
    if kinds <= {date, datetime}:
        return Date(), "dates"
    if tuple in kinds:
        return _infer_lists(present, kinds, levels)
    kind, why = _infer_texts(present, kinds, levels)
    mistaken = _mistaken(values, present) if isinstance(kind, Ignore | Category) else ""
    return kind, mistaken if isinstance(kind, Ignore) and mistaken else "; ".join(filter(None, (why, mistaken)))


def _mistaken(values: Sequence[Value], present: Sequence[Any]) -> str:
    """Where nearly all values are numbers: how many, and the first that is none."""
    most, others = (1 - MOSTLY) * len(present) + ROUNDING, 0
    first: tuple[int, Value] | None = None
    for row, value in enumerate(values):
        if value is None or isinstance(value, int | float) or (isinstance(value, str) and is_number(value)):
            continue
        others, first = others + 1, first or (row, value)
        if others > most:
            return ""
    if first is None:
        return ""
    counts = f"{len(present) - others:,} of {len(present):,} are numbers"
    return f"{counts}, row {first[0]} holds {text_of(first[1])!r:.30}: {STATE_NUMBER}"


def _infer_lists(present: Sequence[Any], kinds: set[type], levels: int) -> tuple[Kind, str]:
    if kinds != {tuple}:
        return Ignore(), "lists and single values mixed"
    entries = {type(entry) for value in present for entry in value[:1]}  # a list is of one type throughout
    lengths = {len(value) for value in present}
    if not entries:
        return Ignore(), "empty lists"
    if entries == {float} and len(lengths) == 1:
        (dim,) = lengths
        return (
            (Vector(dim), f"{dim} numbers each") if dim <= MOST_ENTRIES else (Ignore(), f"over {MOST_ENTRIES} numbers")
        )
    if any(len(entry) > LONGEST_TEXT for value in present for entry in value if isinstance(entry, str)):
        return Ignore(), f"texts over {LONGEST_TEXT:,} characters"
    return Tags(levels), "lists of tags" if entries == {str} else "lists of numbers, of several lengths"


def _infer_texts(present: Sequence[Any], kinds: set[type], levels: int) -> tuple[Kind, str]:
    dated = _infer_dates(present) if kinds <= {str, date, datetime} else None
    if dated is not None:
        return dated
    texts = [text_of(value) for value in present]
    if max(map(len, texts)) > LONGEST_TEXT:
        return Ignore(), f"texts over {LONGEST_TEXT:,} characters"
    separated = _infer_separated(texts, levels) if kinds == {str} else None
    if separated is not None:
        return separated
    counts = Counter(texts)
    once = sum(times == 1 for times in counts.values())
    if len(counts) > UNIQUE and 2 * once > len(texts):
        return Ignore(), "unique strings"
    mixed = "" if kinds == {str} else ", numbers and text mixed" if str in kinds else ", several types mixed"
    return Category(levels), f"{len(counts)} distinct value{'s' if len(counts) > 1 else ''}{mixed}"


def _infer_separated(texts: Sequence[str], levels: int) -> tuple[Kind, str] | None:
    """Tags where most texts are lists such as red|wool, and their parts are fewer than the texts: they come again."""
    for separator in SEPARATORS:
        if 2 * sum(separator in text for text in texts) <= len(texts):
            continue
        parts = {part.strip() for text in texts for part in text.split(separator)}
        if len(parts) < len(set(texts)) and max(map(len, parts)) <= LONGEST_TAG:
            return Tags(levels, separator), f"texts separated by {separator}"
    return None


def _infer_dates(present: Sequence[Any]) -> tuple[Kind, str] | None:
    """A date where over half of the values are dates or ISO text of one, and few other texts stand between them."""
    unreadable = [value for value in present if isinstance(value, str) and day_of(value) is None]
    if 2 * len(unreadable) >= len(present):
        return None
    others = sorted(set(unreadable))
    if len(others) > MOST_UNREADABLE or any(len(text) > LONGEST_TEXT for text in others):
        return None
    shown = ", ".join(f"{text!r:.30}" for text in others)
    return Date(tuple(others)), f"dates; {shown} missing" if others else "dates"


def day_of(text: str) -> date | datetime | None:
    """The date or datetime that ISO text such as 2024-05-31 or 2024-05-31T12:00Z is of; None where it is none."""
    if not 10 <= len(text) <= 40 or text[4] != "-":  # the standard also has 20240531, which is rather a number
        return None
    try:
        return date.fromisoformat(text) if len(text) == 10 else datetime.fromisoformat(text)
    except ValueError:
        return None
