"""Save and load: `state.safetensors`, and `manifest.json` with everything else and the checksums of both.

Renaming the new manifest into place replaces an earlier save at once (docs/decisions/0014-saved-states.md).
"""

import contextlib
import hashlib
import json
import os
import stat
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from neuclust.errors import SaveError, not_written
from neuclust.files import locked, sync, sync_folder

FORMAT = 2
UNCHECKED = 1  # the earlier format, without checksums: still read
MANIFEST, TENSORS = "manifest.json", "state.safetensors"
NEXT_MANIFEST, NEXT_TENSORS = ".manifest.json.next", ".state.safetensors.next"  # a save that is being written
CHECKSUM = "checksum"  # manifest entry: sha256 of the tensors' file and of the manifest itself
MARK = {"neuclust": str(FORMAT)}  # inside the tensors' file: a manifest without checksums does not belong to it
MOST_MANIFEST = 1 << 24  # bytes; real ones have some thousands


class Saveable(Protocol):
    """What a policy must have to be saved: its name, its making and its state."""

    name: str
    config: Any  # a frozen dataclass
    dim: int
    slate_size: int
    seed: int

    def state_dict(self) -> dict[str, Tensor]: ...


def save_policy(self: Saveable, directory: Path) -> None:
    """Save configuration and learned state to a folder that `neuclust.registry.load_policy` reads back."""
    if not -(2**63) <= self.seed < 2**63:
        raise SaveError(f"{directory}: expected a seed below 2**63 in size, got {self.seed}; begin with a smaller one")
    write_state(directory, policy_manifest(self), self.state_dict())


def policy_manifest(policy: Saveable) -> dict[str, Any]:
    """The making of a policy, from which `neuclust.registry.restore_policy` builds it again."""
    sizes = {"dim": policy.dim, "slate_size": policy.slate_size, "seed": policy.seed}
    return {"policy": policy.name, "config": asdict(policy.config), **sizes}


# --- writing --------------------------------------------------------------------------------------------------


def write_state(directory: Path, manifest: Mapping[str, Any], state: Mapping[str, Tensor]) -> None:
    """Write a manifest and tensors into a new folder or over an earlier save, whole or not at all."""
    directory = Path(directory)
    tensors = tensor_bytes(state)
    text = _sealed(manifest, tensors)
    try:
        _check_target(directory)
        made = _made(directory)
        try:
            with locked(directory, exclusive=True):
                _check_target(directory)
                _replace(directory, text, tensors)
        except BaseException:
            if made:
                with contextlib.suppress(OSError):
                    directory.rmdir()  # refused where anything is in it
            raise
    except OSError as error:
        raise SaveError(not_written(directory, error, kind="save")) from None


def foreign_files(directory: Path) -> list[str]:
    """Names in a folder that no save has: it must not be written over."""
    own = {MANIFEST, TENSORS, NEXT_MANIFEST, NEXT_TENSORS}
    return sorted(name for name in os.listdir(directory) if name not in own)


def tensor_bytes(state: Mapping[str, Tensor]) -> bytes:
    """Tensors as the bytes of a safetensors file; the same tensors give the same bytes."""
    from safetensors.torch import save

    # clones, because one tensor may stand under two names (weights that are still the initial ones)
    return save({name: tensor.detach().cpu().clone().contiguous() for name, tensor in state.items()}, metadata=MARK)


def _sealed(manifest: Mapping[str, Any], tensors: bytes) -> bytes:
    """The manifest's text with the checksums of the tensors and of itself."""
    content = {**manifest, "format": FORMAT, CHECKSUM: {"tensors": _digest(tensors)}}
    content[CHECKSUM]["manifest"] = _digest(_canonical(content))
    text = (json.dumps({"format": FORMAT, **content}, indent=2, default=plain_number) + "\n").encode()
    if len(text) > MOST_MANIFEST:  # nobody could read it back
        raise SaveError(
            f"saving: expected settings of at most {MOST_MANIFEST:,} bytes, got {len(text):,}; shorten them"
        )
    return text


def _canonical(manifest: Mapping[str, Any]) -> bytes:
    """The same bytes for the same content, whatever the order and the spaces; without the manifest's own checksum."""
    checksum = {name: value for name, value in manifest[CHECKSUM].items() if name != "manifest"}
    content = {**manifest, CHECKSUM: checksum}
    return json.dumps(content, sort_keys=True, separators=(",", ":"), default=plain_number).encode()


def plain_number(value: object) -> int | float:
    """Numbers of other libraries as Python's: a seed drawn by NumPy, a setting from an array."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise SaveError(f"saving: expected settings of numbers, words and flags, got {value!r:.100}; use one of those")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _check_target(directory: Path) -> None:
    if os.path.lexists(directory) and not (directory.is_dir() and not foreign_files(directory)):
        raise SaveError(f"{directory}: expected a new folder or an earlier save, found other files; name another one")


def _made(directory: Path) -> bool:
    """Make the folder and its parents; whether it is new."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir()
    except FileExistsError:
        return False
    sync_folder(directory.parent)
    return True


def _replace(directory: Path, text: bytes, tensors: bytes) -> None:
    """The steps of a save, under the lock; a kill between any two leaves the earlier save or this one, whole.

    Before the manifest is renamed into place the earlier manifest and tensors stand as they did. From then on the new
    manifest's checksum leads to the new tensors, under their scratch name until they have taken the final one.
    """
    _finish(directory)
    try:
        _write(directory / NEXT_TENSORS, tensors)
        _write(directory / NEXT_MANIFEST, text)
        sync_folder(directory)
        os.replace(directory / NEXT_MANIFEST, directory / MANIFEST)
    except BaseException:
        with contextlib.suppress(OSError):
            _finish(directory)  # an interrupt may come when the manifest is in place already
        raise
    sync_folder(directory)  # first: no power cut may bring the earlier manifest back without its tensors
    with contextlib.suppress(OSError):  # saved already: readers know the scratch name, and the next save ends this
        os.replace(directory / NEXT_TENSORS, directory / TENSORS)
        sync_folder(directory)


def _finish(directory: Path) -> None:
    """Under the lock, end what a killed save left: tensors the manifest asks for take their place, the rest goes."""
    if (directory / NEXT_TENSORS).exists() and _wanted(directory) == _digest_of(directory / NEXT_TENSORS):
        os.replace(directory / NEXT_TENSORS, directory / TENSORS)
        sync_folder(directory)  # before the scratch name is used again
    for name in (NEXT_MANIFEST, NEXT_TENSORS):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(directory / name)


def _wanted(directory: Path) -> str | None:
    """The checksum of the tensors that the manifest in place asks for; None where it has none."""
    try:
        checksum = _parsed(directory, _content(directory / MANIFEST, MOST_MANIFEST)).get(CHECKSUM)
    except (SaveError, OSError):
        return None
    return checksum.get("tensors") if isinstance(checksum, dict) else None


def _digest_of(path: Path) -> str | None:
    try:
        return _digest(_content(path))
    except (SaveError, OSError):
        return None


def _write(path: Path, content: bytes) -> None:
    """A new file with this content, on the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        sync(descriptor)
    finally:
        os.close(descriptor)


# --- reading --------------------------------------------------------------------------------------------------


def read_state(directory: Path, kind: str = "policy") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The manifest and tensors of a save as they were written; anything else is refused with a sentence.

    `kind` is what the sentence expects to be saved there.
    """
    directory = Path(directory)
    try:
        with locked(directory, exclusive=False):
            manifest = _parsed(directory, _content(directory / MANIFEST, MOST_MANIFEST))
            tensors = _tensors(directory, manifest)
    except (FileNotFoundError, NotADirectoryError):
        wanted = f"a saved {kind} ({MANIFEST} and {TENSORS})"
        raise SaveError(f"{directory}: expected {wanted}, found none; check the path") from None
    except OSError as error:
        raise SaveError(f"{directory}: expected a save that can be read, got {error.strerror!r}; check it") from None
    state = _unpacked(directory, tensors, marked=manifest["format"] == FORMAT)
    if manifest["format"] == UNCHECKED:
        text = f"{directory}: this save of an earlier version has no checksum; saving the {kind} again adds one"
        warnings.warn(text, stacklevel=3)
    return {name: value for name, value in manifest.items() if name != CHECKSUM}, state


def _parsed(directory: Path, content: bytes) -> dict[str, Any]:
    """The manifest, as it was written."""
    path = directory / MANIFEST
    try:
        manifest = json.loads(content.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise SaveError(f"{path}: expected a JSON manifest, got {error}; take another copy of the save") from None
    found = manifest.get("format") if isinstance(manifest, dict) else type(manifest).__name__
    if type(found) is not int or found not in (UNCHECKED, FORMAT):  # True == 1.0 == 1
        raise SaveError(f"{path}: expected format {FORMAT} or {UNCHECKED}, got {_short(found)}; save it again")
    if found == UNCHECKED:
        if CHECKSUM in manifest:
            raise _damaged(path, "a checksum where its format has none")
        return dict(manifest)
    checksum = manifest.get(CHECKSUM)
    if not isinstance(checksum, dict) or set(checksum) != {"manifest", "tensors"}:
        raise _damaged(path, "no checksums")
    if checksum["manifest"] != _digest(_canonical(manifest)):
        raise _damaged(path, "other content than was saved")
    return dict(manifest)


def _no_number(text: str) -> float:
    raise ValueError(f"{text}, which is no JSON number")


def _tensors(directory: Path, manifest: Mapping[str, Any]) -> bytes:
    """The bytes of the tensors that belong to the manifest; after a kill they may still have their scratch name."""
    try:
        content = _content(directory / TENSORS)
    except FileNotFoundError:
        content = None
    wanted = manifest[CHECKSUM]["tensors"] if manifest["format"] == FORMAT else None
    if content is not None and (manifest["format"] == UNCHECKED or _digest(content) == wanted):
        return content
    with contextlib.suppress(FileNotFoundError):
        scratch = _content(directory / NEXT_TENSORS)
        if _digest(scratch) == wanted:
            return scratch
    if content is None:
        raise SaveError(f"{directory / TENSORS}: expected tensors, found none; take another copy of the save")
    raise _damaged(directory / TENSORS, "other tensors than were saved")


def _unpacked(directory: Path, content: bytes, marked: bool) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = directory / TENSORS
    try:
        state = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    except (SafetensorError, LookupError, OverflowError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        raise _damaged(path, f"a damaged file ({_short(error)})") from None
    if (header.get("__metadata__") == MARK) != marked:
        raise _damaged(path, "tensors that belong to another manifest")
    return state


def _damaged(path: Path, found: str) -> SaveError:
    return SaveError(f"{path}: expected a save as it was written, got {found}: it is damaged; take another copy of it")


def _short(found: object) -> str:
    text = " ".join(str(found).split())
    return text if len(text) <= 200 else f"{text[:200]} …"


def _content(path: Path, most: int | None = None) -> bytes:
    """All of a plain file; a pipe or a device is refused, it might never end."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:
        kind = os.fstat(descriptor)
        if not stat.S_ISREG(kind.st_mode):
            raise SaveError(f"{path}: expected a plain file, got something else; take another copy of the save")
        if most is not None and kind.st_size > most:
            raise SaveError(f"{path}: expected at most {most:,} bytes, got {kind.st_size:,}; is it a save's file?")
        return file.read()
