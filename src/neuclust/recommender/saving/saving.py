"""Save and load of a recommender: one folder as `persistence.write_state` leaves it, whole or not at all.

The manifest holds the settings, the making of the policy and counts; tensors under `policy.`, `schema.`, `items.`,
`users.`, `decisions.` and `rows.` the numbers, and under `text.` JSON that may be long, as UTF-8 bytes. Functions (a
reward, a clock, transformers) cannot be saved and are given again.
"""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.errors import ConfigError, SaveError
from neuclust.models.state import nested
from neuclust.persistence import Saveable, policy_manifest, write_state
from neuclust.recommender.learner import Learner
from neuclust.recommender.saving.packing import packed
from neuclust.recommender.saving.payloads import payload_arrays
from neuclust.recommender.saving.saved_settings import settings_to_json
from neuclust.recommender.tables.columns import Transformer
from neuclust.recommender.tables.features import PARTS

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender

Arrays = dict[str, NDArray[Any]]
VERSION = 1  # of what a save of a recommender holds
SYSTEM_CLOCK, OWN_CLOCK = "system", "own"


def save_recommender(self: "Recommender", directory: str | Path) -> None:
    """Save everything to a folder that `Recommender.load` reads back; an earlier save there is replaced at once.

    Functions (`clock`, `reward`, transformers) are not saved; `load` asks for those that were there.
    """
    write_state(save_folder(directory), *state_of(self))


def recommender_to_bytes(self: "Recommender") -> bytes:
    """What `save` writes, in one piece for `Recommender.from_bytes`; the same state gives the same bytes."""
    return packed(*state_of(self))


def state_of(shop: "Recommender") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The manifest and the tensors."""
    items, item_arrays = shop.stock.catalogue.to_state()
    users, user_arrays = shop.stock.users.to_state()
    decisions, decision_arrays = shop.decisions.to_state()
    rows = payload_arrays([decision.payload for decision in shop.decisions.open_decisions()])
    schema, design = (None, {}) if shop.schema is None else shop.schema.to_state()
    texts = {
        "features": shop.settings.features.to_json(), "schema": schema, "answers": shop.answers.to_json(),
        "unlearned": {table: sorted(names) for table, names in shop.stock.unlearned.items()},
    }  # fmt: skip
    groups: dict[str, Arrays] = {
        "items": item_arrays, "users": user_arrays, "decisions": decision_arrays, "rows": rows, "schema": design,
        "text": {name: text_bytes(content) for name, content in texts.items()},
    }  # fmt: skip
    manifest = {
        "recommender": VERSION, "settings": settings_to_json(shop.settings), "last": shop.ids.last,
        "clock": SYSTEM_CLOCK if shop.clock is time.time else OWN_CLOCK, "policy": None,
        "schema": None if shop.schema is None else shop.schema.version, "items": items, "users": users,
        "decisions": decisions,
    }  # fmt: skip
    state = {f"{group}.{name}": tensor_of(array) for group, arrays in groups.items() for name, array in arrays.items()}
    if shop.learner is not None:
        manifest["policy"] = making_of(shop.learner)
        state |= nested("policy", shop.learner.policy.state_dict())
    return manifest, state


def making_of(learner: Learner) -> dict[str, Any]:
    """From what the policy of a learner is built again."""
    try:
        return policy_manifest(cast("Saveable", learner.policy))
    except (AttributeError, TypeError) as error:
        wanted = "expected a policy with name, config, dim, slate_size and seed, as docs/adding_a_policy.md has it"
        raise SaveError(f"saving: {wanted}, got {type(learner.policy).__name__:.100} ({error!s:.100})") from None


def text_bytes(content: Any) -> NDArray[np.uint8]:
    """JSON as bytes: the manifest has a bound, and levels, labels and answers may be many."""
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise SaveError(f"saving: expected finite numbers, got others ({error!s:.100}); load an earlier save") from None
    return np.frombuffer(text.encode(), dtype=np.uint8)


def tensor_of(array: NDArray[Any]) -> Tensor:
    """An array as a tensor."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def save_folder(directory: str | Path) -> Path:
    """The folder of a save."""
    if not isinstance(directory, str | Path) or not str(directory):
        raise ConfigError(f"expected the path of a folder, got {directory!r:.100}", field="directory")
    return Path(directory)


def fitted_transformers(self: "Recommender") -> dict[str, Any]:
    """The scikit-learn transformers by column, fitted: what `load` asks for, to be kept beside the save.

    A column that items and users both have is named `items.COLUMN` and `users.COLUMN`; a whole table is the column *.
    """
    if self.schema is None:
        parts = {part: dict(getattr(self.settings.features, part)) for part in PARTS}
        named = [(part, name, kind) for part, kinds in parts.items() for name, kind in kinds.items()]
    else:
        sides = {"items": self.schema.items, "users": self.schema.user}
        named = [(side, each.name, each.kind) for side, of in sides.items() for each in of.encoders]
    made = [(side, name, kind.transformer) for side, name, kind in named if isinstance(kind, Transformer)]
    names = [name for _, name, _ in made]
    return {name if names.count(name) == 1 else f"{side}.{name}": each for side, name, each in made}
