"""How the slate of a choice was drawn, told in item ids."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from neuclust.core import Design, Round, Slate
from neuclust.errors import DataError
from neuclust.recommender.tables.values import Id
from neuclust.slates.rules import option_counts

KINDS: tuple[str, ...] = get_args(get_type_hints(Design)["kind"])
UNKNOWN = "unknown"
PARTS = {"sequential": ("base", "share", "pool", "anywhere"), "one-coin": ("base", "share")}  # others need no more


@dataclass(frozen=True, slots=True)
class Drawn:
    """`core.Design` with item ids in the place of positions, and `sizes`: |A(S)| before each slot, (k,)."""

    kind: str
    base: tuple[Id, ...] = ()
    share: float = 0.0
    pool: tuple[Id, ...] = ()
    anywhere: float = 1.0
    sizes: tuple[int, ...] = ()

    @classmethod
    def of(cls, slate: Slate, item: Callable[[int], Id], sizes: tuple[int, ...]) -> "Drawn":
        """The design of a slate; `item` gives the id at a position."""
        design = slate.drawn_by
        if design.kind not in PARTS:
            return cls(design.kind, sizes=sizes)
        base, pool = (tuple(map(item, positions)) for positions in (design.base, design.pool))
        return cls(design.kind, base, design.share, pool, design.anywhere, sizes)

    def to_json(self) -> dict[str, Any]:
        """The kind and what that kind needs; `sizes` are told beside it."""
        return {"kind": self.kind} | {name: getattr(self, name) for name in PARTS.get(self.kind, ())}

    @classmethod
    def from_json(cls, saved: Any, sizes: Any = None) -> "Drawn":
        """What `to_json` wrote, with `sizes` among it or beside it.

        A design without its base slate, as earlier versions logged it, is unknown.
        """
        try:
            kind = saved["kind"]
            counts = tuple(_whole(size) for size in (saved.get("sizes", ()) if sizes is None else sizes))
            if kind not in KINDS:
                raise ValueError(f"the kind {kind!r:.100}")
            if kind in PARTS and not isinstance(saved.get("base"), list | tuple):
                return cls(UNKNOWN, sizes=counts)
            return cls(kind, **_parts(saved, PARTS.get(kind, ())), sizes=counts)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"design: expected its kind, base slate, share and pool, got {error!s:.200}") from None


def _parts(saved: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        if name in ("base", "pool"):
            found[name] = tuple(_id(item) for item in saved[name])
        elif not 0 <= (value := float(saved[name])) <= 1:
            raise ValueError(f"{name} {value:g}, which is no chance")
        else:
            found[name] = value
    return found


def _id(value: Any) -> Id:
    if type(value) not in (str, int):
        raise TypeError(f"{value!r:.100} in the place of an item id")
    id: Id = value
    return id


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.50} in the place of a whole number")
    return value


def slot_sizes(round: Round | None, offered: int, positions: Sequence[int]) -> tuple[int, ...]:
    """|A(S)| before each slot, (k,); `round` None: no rules over `offered` arms. Empty where the slate breaks rules."""
    if round is None:
        return tuple(range(offered, offered - len(positions), -1))
    try:
        return option_counts(round, positions)
    except DataError:  # a policy from outside that does not keep them
        return ()
