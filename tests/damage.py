"""Ways to damage a saved policy: its files as they lie there, or what is in them with nothing left to notice it by."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load, save, save_file
from torch import Tensor

from neuclust.persistence import MANIFEST, TENSORS, write_state

Rng = np.random.Generator
State = dict[str, Tensor]
Manifest = dict[str, Any]


def write_unchecked(directory: Path, manifest: Manifest, state: State) -> None:
    """A save as the first format wrote it: two files, no checksum."""
    directory.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.clone().contiguous() for name, tensor in state.items()}, directory / TENSORS)
    (directory / MANIFEST).write_text(json.dumps({**manifest, "format": 1}, indent=2) + "\n")


def write_sealed(directory: Path, manifest: Manifest, state: State) -> None:
    """A save whose checksums fit, whatever is in it."""
    write_state(directory, {name: value for name, value in manifest.items() if name != "format"}, state)


# --- files ----------------------------------------------------------------------------------------------------


def _either(folder: Path, rng: Rng) -> Path:
    return folder / (TENSORS if rng.random() < 0.5 else MANIFEST)


def flip_bits(folder: Path, rng: Rng, _: Path) -> None:
    path = _either(folder, rng)
    content = bytearray(path.read_bytes())
    for _flip in range(int(rng.integers(1, 4))):
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(content))


def flip_early_bit(folder: Path, rng: Rng, _: Path) -> None:
    """In the header: lengths, names, shapes and offsets."""
    content = bytearray((folder / TENSORS).read_bytes())
    content[int(rng.integers(min(len(content), 400)))] ^= 1 << int(rng.integers(8))
    (folder / TENSORS).write_bytes(bytes(content))


def truncate(folder: Path, rng: Rng, _: Path) -> None:
    path = _either(folder, rng)
    os.truncate(path, int(rng.integers(path.stat().st_size)))


def lengthen(folder: Path, rng: Rng, _: Path) -> None:
    path = _either(folder, rng)
    path.write_bytes(path.read_bytes() + rng.bytes(int(rng.integers(1, 50))))


def blank(folder: Path, rng: Rng, _: Path) -> None:
    """A block of zeros, as a file system leaves that lost one."""
    path = _either(folder, rng)
    content = bytearray(path.read_bytes())
    start, size = int(rng.integers(len(content))), int(rng.integers(1, 4096))
    content[start : start + size] = bytes(len(content[start : start + size]))
    path.write_bytes(bytes(content))


def scramble(folder: Path, rng: Rng, _: Path) -> None:
    path = _either(folder, rng)
    content = bytearray(path.read_bytes())
    start = int(rng.integers(len(content)))
    content[start : start + 64] = rng.bytes(len(content[start : start + 64]))
    path.write_bytes(bytes(content))


def empty(folder: Path, rng: Rng, _: Path) -> None:
    _either(folder, rng).write_bytes(b"")


def remove(folder: Path, rng: Rng, _: Path) -> None:
    _either(folder, rng).unlink()


def swap_with_other(folder: Path, rng: Rng, other: Path) -> None:
    """One file of another save of the same policy."""
    path = _either(folder, rng)
    shutil.copy(other / path.name, path)


def swap_with_unchecked(folder: Path, rng: Rng, other: Path) -> None:
    """One file of another save of the same policy, in the first format."""
    manifest = json.loads((other / MANIFEST).read_text())
    del manifest["checksum"]
    old = folder.parent / f"{folder.name}-old"
    write_unchecked(old, manifest, load((other / TENSORS).read_bytes()))
    path = _either(folder, rng)
    shutil.copy(old / path.name, path)
    shutil.rmtree(old)


def swap_each_other(folder: Path, _: Rng, __: Path) -> None:
    manifest, tensors = (folder / MANIFEST).read_bytes(), (folder / TENSORS).read_bytes()
    (folder / MANIFEST).write_bytes(tensors)
    (folder / TENSORS).write_bytes(manifest)


def long_header(folder: Path, rng: Rng, _: Path) -> None:
    content = bytearray((folder / TENSORS).read_bytes())
    length = int(rng.choice([2**63 - 1, 2**40, 2**31, 100_000_001, len(content), 0, 1]))
    content[:8] = length.to_bytes(8, "little")
    (folder / TENSORS).write_bytes(bytes(content))


def edit_manifest(folder: Path, rng: Rng, _: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    spoil_manifest(manifest, rng)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2))


def edit_tensors(folder: Path, rng: Rng, _: Path) -> None:
    state = load((folder / TENSORS).read_bytes())
    spoil_state(state, rng)
    (folder / TENSORS).write_bytes(
        save({n: t.clone().contiguous() for n, t in state.items()}, metadata={"neuclust": "2"})
    )


def call_it_old(folder: Path, rng: Rng, _: Path) -> None:
    """The first format by name, with or without the checksums it never had, and an edit that they would have told."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["format"] = 1
    manifest["seed"] += 1
    if rng.random() < 0.5:
        del manifest["checksum"]
    (folder / MANIFEST).write_text(json.dumps(manifest))


def no_file(folder: Path, rng: Rng, other: Path) -> None:
    """Something that is no plain file, or one of elsewhere."""
    path = _either(folder, rng)
    path.unlink()
    kind = int(rng.integers(6))
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    else:
        targets = (path, folder / "nowhere", Path("/dev/zero"), other / path.name)
        path.symlink_to(targets[kind - 2])


def linked(folder: Path, rng: Rng, _: Path) -> None:
    """A link to the same file elsewhere: no damage at all."""
    path = _either(folder, rng)
    kept = folder.parent / f"{folder.name}-{path.name}"
    path.rename(kept)
    path.symlink_to(kept)


def respace(folder: Path, _: Rng, __: Path) -> None:
    """Other spaces and another order in the manifest: no damage either."""
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(dict(reversed(manifest.items())), indent=7))


FILE_DAMAGES: list[Callable[[Path, Rng, Path], None]] = [
    flip_bits, flip_bits, flip_early_bit, truncate, lengthen, blank, scramble, empty, remove, swap_with_other,
    swap_with_unchecked, swap_each_other, long_header, edit_manifest, edit_manifest, edit_tensors, edit_tensors,
    call_it_old, no_file, linked, respace,
]  # fmt: skip


# --- content --------------------------------------------------------------------------------------------------

ODD: list[Any] = [-1, 0, 1, 2, 7, 1e300, 1e-300, -0.5, 2**31, 2**40, 2**63, 2**70, 10**30, 10**400, True, None, "",
                  "x", "nan", [], {}, [1], {"a": 1}]  # fmt: skip


def spoil_manifest(manifest: Manifest, rng: Rng) -> None:
    """One entry anywhere in the manifest changed, taken away, added or renamed."""
    groups = _groups(manifest)
    group = groups[int(rng.integers(len(groups)))] if rng.random() < 0.6 else manifest
    if not group:
        group["surplus"] = 1
        return
    name = list(group)[int(rng.integers(len(group)))]
    kind = rng.random()
    if kind < 0.08:
        del group[name]
    elif kind < 0.14:
        group[f"{name}x"] = group[name]
    elif kind < 0.2:
        group[f"{name}x"] = group.pop(name)
    elif kind < 0.24:
        group[name] = _nest(int(rng.choice([3, 500, 5000])))
    elif kind < 0.45 and isinstance(group[name], int | float) and not isinstance(group[name], bool):
        factor = float(rng.choice([-1, 2, 1000, 1e-6]))
        group[name] = type(group[name])(group[name] * factor + (group[name] == 0))
    else:
        group[name] = ODD[int(rng.integers(len(ODD)))]


def _groups(values: Manifest) -> list[Manifest]:
    return [values, *(inner for value in values.values() if isinstance(value, dict) for inner in _groups(value))]


def _nest(depth: int) -> Any:
    nested: Any = 1
    for _ in range(min(depth, 900)):  # what json can still write
        nested = [nested]
    return nested


def spoil_state(state: State, rng: Rng) -> None:
    """One tensor renamed, removed, copied, of another kind or shape, or with other numbers in it."""
    name = sorted(state)[int(rng.integers(len(state)))]
    tensor, kind = state[name], int(rng.integers(15))
    if kind == 0:
        state[f"{name}x"] = state.pop(name)
    elif kind == 1:
        del state[name]
    elif kind == 2:
        state["surplus"] = torch.zeros(3)
    elif kind == 3:
        kinds = (torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.float64)
        state[name] = tensor.to(kinds[int(rng.integers(len(kinds)))])
    elif kind == 4:
        state[name] = tensor.reshape(-1)[:-1] if tensor.ndim else tensor.repeat(2)
    elif kind == 5:
        state[name] = tensor.unsqueeze(int(rng.integers(tensor.ndim + 1)))
    elif kind == 6:
        state[name] = torch.cat([tensor, tensor]) if tensor.ndim else tensor.reshape(1)
    elif kind == 7:
        state[name] = tensor[: len(tensor) // 2] if tensor.ndim else tensor.new_zeros(0)
    elif kind == 8:
        state[name] = torch.zeros(0, int(rng.choice([2**20, 2**33])), dtype=tensor.dtype)
    elif kind == 9:
        other = sorted(state)[int(rng.integers(len(state)))]
        state[name], state[other] = state[other], tensor
    elif tensor.numel():
        state[name] = _renumbered(tensor, kind, rng)


def _renumbered(tensor: Tensor, kind: int, rng: Rng) -> Tensor:
    """One entry, or all, replaced."""
    changed = tensor.clone()
    flat = changed.view(-1)
    place = int(rng.integers(len(flat)))
    if not changed.is_floating_point():
        flat[place] = int(rng.choice([-1, -(2**62), 2**62, 10**6])) if changed.dtype == torch.int64 else 1
    elif kind < 13:
        flat[place] = float(rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300]))
    elif kind == 13:
        flat *= float(rng.choice([-1.0, 0.0, 1e150, np.nan]))
    else:
        flat[place] += 1.0
    return changed


def spoil_header(path: Path, rng: Rng) -> None:
    """A number or a word of the tensors' header changed, its length put right again."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    names = [name for name in header if name != "__metadata__"]
    entry = header[names[int(rng.integers(len(names)))]]
    kind = int(rng.integers(4))
    if kind == 0:
        entry["dtype"] = str(rng.choice(["F32", "F64", "I64", "BOOL", "U8", "F8_E4M3", "BF16", "X"]))
    elif kind == 1:
        entry["shape"] = [int(rng.choice([0, 1, 2**20, 2**40, 2**62])) for _ in range(int(rng.integers(1, 4)))]
    elif kind == 2:
        entry["data_offsets"] = [int(rng.choice([0, 8, 2**40])), int(rng.choice([0, 8, 2**40, len(content)]))]
    else:
        entry["shape"] = "x"
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
