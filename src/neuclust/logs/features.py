"""Features of other formats as numbers: nested objects as named columns, columns by a dictionary or by hashing."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from neuclust.core import Round
from neuclust.errors import ConfigError, DataError

Floats = NDArray[np.float64]
MOST_COLUMNS = 4096  # of a dictionary; each is a number of every eligible arm in memory


def named_values(content: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Names and values of a JSON object, as Vowpal Wabbit reads them: objects are namespaces, texts and `true`
    indicators, entries that begin with _ are no features."""
    for key, value in content.items():
        name = f"{prefix}{key}"
        if key.startswith("_") and key != "_text":
            continue
        if isinstance(value, bool) or value is None:
            if value:
                yield name, 1.0
        elif isinstance(value, int | float):
            yield name, float(value)
        elif isinstance(value, str):
            words = value.split() if key == "_text" else [value]
            yield from ((f"{name}={word}", 1.0) for word in words)
        elif isinstance(value, Mapping):
            yield from named_values(value, f"{name}.")
        elif isinstance(value, list):
            yield from named_values({str(place): each for place, each in enumerate(value)}, f"{name}.")


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of named values: one per name, or `hashed` columns with signs by a hash of the name."""

    names: Mapping[str, int]
    hashed: int | None = None

    @classmethod
    def of(cls, names: Iterable[str], hashed: int | None) -> "Columns":
        """One column per name in alphabetical order, or hashed ones, whatever the names."""
        if hashed is not None:
            if hashed < 1:
                raise ConfigError(f"expected at least 1 column, got {hashed}", field="hashed")
            return cls({}, hashed)
        ordered = sorted(set(names))
        if len(ordered) > MOST_COLUMNS:
            said = f"expected at most {MOST_COLUMNS} different features, got {len(ordered)}"
            raise DataError(f"{said}; give a number of columns as hashed=")
        return cls({name: place for place, name in enumerate(ordered)})

    @property
    def width(self) -> int:
        return len(self.names) if self.hashed is None else self.hashed

    def row(self, values: Iterable[tuple[str, float]]) -> Floats:
        """(width,); values of one column add up."""
        found = np.zeros(self.width)
        for name, value in values:
            if self.hashed is None:
                found[self.names[name]] += value
            else:
                code = crc32(name.encode())
                found[(code >> 1) % self.hashed] += value if code & 1 else -value
        return found


def joined(arms: Floats, shared: Floats, crossed: bool) -> Floats:
    """[x, c] of every arm x (n, d_a) with what all share, c (d_s,), and where `crossed` their products x ⊗ c too."""
    parts = [arms, np.broadcast_to(shared, (len(arms), len(shared)))]
    if crossed:
        parts.append((arms[:, :, None] * shared).reshape(len(arms), -1))
    return np.concatenate(parts, axis=1)


def joined_width(arms: int, shared: int, crossed: bool) -> int:
    """The number of columns of `joined`."""
    return arms + shared + arms * shared * crossed


def shared_columns(round: Round) -> tuple[Floats, Floats | None]:
    """Columns of arms, (n, d), and what all arms of a round share, or None: the other way round from `joined`.

    Features that are profiles followed by columns with one value for all arms are split again; other features are
    columns of arms as they are. A query is shared.
    """
    profiles = round.profiles.numpy(force=True)
    if round.features is None:
        return profiles, None if round.query is None else round.query.numpy(force=True)
    features, width = round.features.numpy(force=True), profiles.shape[1]
    rest = features[:, width:]
    if rest.shape[1] and np.array_equal(features[:, :width], profiles) and bool((rest == rest[:1]).all()):
        return profiles, rest[0]
    return features, None
