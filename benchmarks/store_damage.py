"""Is a damaged snapshot, or a damaged SQLite file, ever read as if it were whole?

    python -m benchmarks.store_damage [--trials 1000] [--seed 0] [--json FILE]

A store with two recommenders is written and closed. Each trial damages a copy: bits flipped, blocks zeroed or
scrambled, the end cut off; of the file itself, or of a model or a state inside it (the row changed by SQL, so that no
checksum of SQLite tells it). Then everything is read. Damage is found (`Damaged` or `StoreError`, one sentence) or
harmless (what is read equals what was written); the exit code is 1 where it is neither.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from neuclust.serve.store.contract import DECISION, FEEDBACK, Damaged, Event, Key, Progress, Store, StoreError, Version
from neuclust.serve.store.opening import open_store

Damage = Callable[[bytearray, random.Random], None]
PAGE = 4096
EVENTS, BLOB = 300, 300_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, print and keep what became of the trials."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000, help="of the file, and as many of blobs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    counts = {kind: dict(trials(kind, options.trials, options.seed)) for kind in ("file", "blobs")}
    print(json.dumps(counts, indent=1))
    if options.json is not None:
        words = f"--trials {options.trials} --seed {options.seed} --json {options.json}"
        record = {"command": f"python -m benchmarks.store_damage {words}", **counts}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 1 if any("wrong" in count for count in counts.values()) else 0


def trials(kind: str, number: int, seed: int) -> Counter[str]:
    """How many of the damages were found, harmless or wrong."""
    draw = random.Random(f"{seed} {kind}")
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.db"
        store = open_store(f"sqlite:{whole}")
        fill(store)
        expected = everything(store)
        store.close()
        for trial in range(number):
            copy = Path(folder) / f"{trial}.db"
            shutil.copy(whole, copy)
            (damage_file if kind == "file" else damage_blob)(copy, draw)
            counts[outcome(copy, expected)] += 1
            for ending in ("", "-wal", "-shm"):
                Path(f"{copy}{ending}").unlink(missing_ok=True)
    return counts


def outcome(file: Path, expected: list[object]) -> str:
    """What a reader of a damaged file gets."""
    try:
        store = open_store(f"sqlite:{file}")
    except (Damaged, StoreError):
        return "found"
    try:
        return "harmless" if everything(store) == expected else "wrong"
    except (Damaged, StoreError):
        return "found"
    finally:
        store.close()


def fill(store: Store) -> None:
    """Something in every table."""
    draw = random.Random(0)
    token = store.lease("learner", 600)
    assert token is not None
    for name in ("one", "two"):
        id = store.create(name, b'{"slate_size":3}').id
        for start in range(0, EVENTS, 50):
            store.append({id: [_event(number, draw) for number in range(start, start + 50)]})
        for number in (1, 2):
            version = Version(number, 10 * number, float(number), number, state=True, model=True)
            store.publish(id, token, version, draw.randbytes(BLOB), draw.randbytes(BLOB))
        store.advance(id, token, Progress(20, 2, 2.0, {"loss": 0.5}), {seq: draw.randbytes(50) for seq in range(2, 20)})
        store.add_key(Key(name, draw.randbytes(32), ("admin", "metrics"), name, 1.0, "a note"))
    store.retain(id, token, 10)
    store.erase(id, token, "u7", 20)


def _event(number: int, draw: random.Random) -> Event:
    kind = DECISION if number % 2 else FEEDBACK
    payload = draw.randbytes(draw.randint(10, 900))
    return Event(kind, payload, f"k{number}", f"r{number}", draw.randbytes(32), f"u{number % 20}")


def everything(store: Store) -> list[object]:
    """All that can be read from a store, in every way."""
    found: list[object] = [store.heads(), store.keys()]
    for head in store.heads():
        id = head.id
        rows = store.read(id, 0, 10_000)
        found += [store.head(head.name), rows, store.progress(id), store.told(id, 0, 1000)]
        for kind in (DECISION, FEEDBACK):
            keys = [f"k{number}" for number in range(EVENTS)]
            found += [store.find(id, kind, keys), store.latest(id, kind, EVENTS), store.read(id, 0, EVENTS, [kind])]
        found += [store.find_request(id, f"r{number}") for number in range(0, EVENTS, 10)]
        for each in store.versions(id):
            found += [each, store.model(id, each.version), store.state(id, each.version)]
    return found


# --- damage ---------------------------------------------------------------------------------------------------


def damage_file(file: Path, draw: random.Random) -> None:
    """The file as it lies there."""
    content = bytearray(file.read_bytes())
    draw.choice(DAMAGES)(content, draw)
    file.write_bytes(content)


def damage_blob(file: Path, draw: random.Random) -> None:
    """A part of a model or a state, by SQL: the pages get right checksums."""
    connection = apsw.Connection(str(file), vfs="cksmvfs")
    rows = list(connection.execute("SELECT rowid, content FROM parts"))
    place, content = draw.choice(rows)
    changed = bytearray(content)
    draw.choice(DAMAGES)(changed, draw)
    if draw.random() < 0.1:
        connection.execute("DELETE FROM parts WHERE rowid = ?", (place,))
    elif draw.random() < 0.1:
        connection.execute("UPDATE parts SET content = ? WHERE rowid = ?", (draw.choice(rows)[1], place))
    else:
        connection.execute("UPDATE parts SET content = ? WHERE rowid = ?", (bytes(changed), place))
    connection.close()


def flip(content: bytearray, draw: random.Random) -> None:
    for _ in range(draw.randint(1, 4)):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)


def flip_early(content: bytearray, draw: random.Random) -> None:
    """In the header and the list of tables."""
    content[draw.randrange(min(len(content), PAGE))] ^= 1 << draw.randrange(8)


def zero(content: bytearray, draw: random.Random) -> None:
    """A block of zeros, as a file system leaves that lost one."""
    start = draw.randrange(len(content)) // 512 * 512
    content[start : start + PAGE] = bytes(len(content[start : start + PAGE]))


def scramble(content: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(content))
    content[start : start + 64] = draw.randbytes(len(content[start : start + 64]))


def cut(content: bytearray, draw: random.Random) -> None:
    del content[draw.randrange(len(content)) :]


def cut_page(content: bytearray, draw: random.Random) -> None:
    """At the end of a page, where no length tells it."""
    del content[draw.randrange(len(content)) // PAGE * PAGE :]


DAMAGES: tuple[Damage, ...] = (flip, flip, flip_early, zero, scramble, cut, cut_page)

if __name__ == "__main__":
    sys.exit(main())
