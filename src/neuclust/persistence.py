"""Save and load: tensors as safetensors, everything else as a JSON manifest. Never pickle."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from neuclust.errors import StateError

FORMAT = 1
MANIFEST, TENSORS = "manifest.json", "state.safetensors"


class Saveable(Protocol):
    """What a policy must have to be saved: its name, its making and its state."""

    name: str
    config: Any  # a frozen dataclass
    dim: int
    slate_size: int
    seed: int

    def state_dict(self) -> dict[str, Tensor]: ...


def save_policy(self: Saveable, directory: Path) -> None:
    """Save configuration and learned state to a folder that `neuclust.presets.load_policy` reads back."""
    manifest = {
        "policy": self.name,
        "config": asdict(self.config),
        "dim": self.dim,
        "slate_size": self.slate_size,
        "seed": self.seed,
    }
    write_state(directory, manifest, self.state_dict())


def write_state(directory: Path, manifest: Mapping[str, Any], state: Mapping[str, Tensor]) -> None:
    """Write `manifest.json` and `state.safetensors` into a new or earlier save, whole or not at all."""
    from safetensors.torch import save_file

    directory = Path(directory)
    if directory.exists() and not (directory.is_dir() and {p.name for p in directory.iterdir()} <= {MANIFEST, TENSORS}):
        raise StateError(f"{directory}: expected a new folder or an earlier save, found other files; name another one")
    directory.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
    try:
        # clones, because one tensor may stand under two names (weights that are still the initial ones)
        save_file(
            {name: tensor.detach().cpu().clone().contiguous() for name, tensor in state.items()}, scratch / TENSORS
        )
        (scratch / MANIFEST).write_text(json.dumps({"format": FORMAT, **manifest}, indent=2) + "\n")
        if directory.exists():
            # two renames: a crash between them leaves the earlier save beside its new name, never a mixture
            retired = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}."))
            os.rename(directory, retired / "old")
            os.rename(scratch, directory)
            shutil.rmtree(retired)
        else:
            os.rename(scratch, directory)
        directory.chmod(0o755)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def read_state(directory: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The manifest and tensors of a save; anything else is refused with a sentence."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    directory = Path(directory)
    try:
        manifest = json.loads((directory / MANIFEST).read_text())
    except FileNotFoundError:
        raise StateError(f"{directory}: expected a saved policy ({MANIFEST} and {TENSORS}), found none") from None
    except (ValueError, OSError) as error:
        raise StateError(f"{directory / MANIFEST}: expected a JSON manifest, got {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else type(manifest).__name__
        raise StateError(f"{directory / MANIFEST}: expected format {FORMAT}, got {found!r}; save it again")
    try:
        return manifest, load_file(directory / TENSORS)
    except (SafetensorError, OSError) as error:
        raise StateError(f"{directory / TENSORS}: expected tensors, got a damaged file ({error})") from None
