"""Where a fold or tables begin: the newest state that can be read, or the first event."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from neuclust.errors import SaveError, StateError
from neuclust.serve.fold.blobs import ServedModel
from neuclust.serve.fold.fold import Fold
from neuclust.serve.fold.tables import Tables
from neuclust.serve.store.contract import TABLE_KINDS, Damaged, Head, Store

BATCH = 500  # events read at a time

Opened = TypeVar("Opened")


@dataclass(frozen=True)
class Recovered:
    """A fold to go on with, and a sentence for every state that could not be used."""

    fold: Fold
    damaged: tuple[str, ...] = ()


def recovered(store: Store, head: Head) -> Recovered:
    """The fold of the newest state that is whole, or of nothing; refused where events before it are gone."""
    damaged: list[str] = []
    fold = _newest(store, head, Fold.from_state, damaged)
    return Recovered(Fold.begin() if fold is None else fold, tuple(damaged))


def followed(store: Store, head: Head, tables: Tables | None = None) -> Tables:
    """Tables after the last event of theirs; without any, or where events are gone, those of the newest state go on."""
    if tables is None or tables.seq < head.base:
        tables = _newest(store, head, Tables.from_state, []) or Tables.begin()
    while rows := store.read(head.id, tables.seq, BATCH, TABLE_KINDS):
        for row in rows:
            tables.apply(row)
    return tables


def newest_model(store: Store, head: Head, held: int = 0) -> tuple[int, ServedModel] | None:
    """The pinned model, also where it is no longer listed, else the newest that can be read, with its version.

    `held` is the version of a model that is at hand, which is not read again and gives way to newer ones alone; None:
    there is nothing better.
    """
    if head.promoted is not None:
        pinned = None if head.promoted == held else _model(store, head, head.promoted)
        if pinned is not None or head.promoted == held:
            return None if pinned is None else (head.promoted, pinned)
    for each in store.versions(head.id):
        if each.version <= held:
            break
        model = _model(store, head, each.version) if each.model and each.version != head.promoted else None
        if model is not None:
            return each.version, model
    return None


def _model(store: Store, head: Head, version: int) -> ServedModel | None:
    """The model of a version; None where it is not kept, cannot be read, or is from before the first slate."""
    try:
        blob = store.model(head.id, version)
        return None if blob is None else ServedModel.from_bytes(blob)
    except (Damaged, SaveError):
        return None


def _newest(store: Store, head: Head, read: Callable[[bytes], Opened], damaged: list[str]) -> Opened | None:
    """What the newest whole state holds; None: begin with the first event."""
    for version in store.versions(head.id):
        if not version.state or version.seq < head.base:
            continue
        try:
            blob = store.state(head.id, version.version)
            if blob is not None:
                return read(blob)
        except (Damaged, SaveError) as error:
            damaged.append(f"state of version {version.version}: {error}")
    if head.base > 0:
        said = f"; {damaged[0]}" if damaged else ""
        raise StateError(
            f"{head.name}: expected a state of event {head.base} or later to go on from, got none that is whole{said}; "
            "restore the last backup"
        )
    return None
