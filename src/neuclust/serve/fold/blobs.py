"""What versions keep: the model that is served, and the state a fold goes on from, each as one piece of bytes.

Both are a manifest and tensors, compressed, behind a mark and their SHA-256; the same content gives the same bytes.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from neuclust.errors import NeuclustError, SaveError
from neuclust.models.state import nested, under
from neuclust.recommender.learner import Learner
from neuclust.recommender.options import Settings
from neuclust.recommender.recommender import Recommender
from neuclust.recommender.saving.loading import Given, arrays_of, content_of, restored
from neuclust.recommender.saving.packing import packed, unpacked
from neuclust.recommender.saving.saved_settings import settings_of_save, settings_to_json
from neuclust.recommender.saving.saving import making_of, state_of, tensor_of, text_bytes
from neuclust.recommender.schema import Schema
from neuclust.registry import restore_policy
from neuclust.serve.configuration import Configuration
from neuclust.serve.fold.level_owners import LevelOwners
from neuclust.serve.fold.popularity import Popularity
from neuclust.serve.statistics.statistics import Statistics

MODEL, STATE = "model", "state"
FORMAT = 1  # of both
HASH = 64  # hexadecimal digits


class Clock:
    """The time of the event that is applied."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


# --- what is served -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServedModel:
    """What choosing needs beside the tables: the schema, and the policy as it was after event `seq`."""

    seq: int
    lessons: int  # that the policy had learned
    t: int  # of every round: schedules stand still until the next version
    settings: Settings
    schema: Schema
    learner: Learner

    @classmethod
    def from_bytes(cls, blob: bytes) -> "ServedModel | None":
        """The model of a version; None where its schema was not fixed yet."""
        manifest, tensors = _unpacked(blob, MODEL)
        with _one_sentence(MODEL):
            if manifest["policy"] is None:
                return None
            settings = settings_of_save(manifest["settings"], content_of(tensors, "features"), None, {})
            policy = restore_policy(manifest["policy"], under("policy", tensors), {})
            return cls(
                seq=int(manifest["seq"]), lessons=int(manifest["lessons"]), t=int(manifest["t"]), settings=settings,
                schema=Schema.from_state(content_of(tensors, "schema"), arrays_of(tensors, "schema"), None),
                learner=Learner(settings.policy, policy),
            )  # fmt: skip


def model_bytes(shop: Recommender, seq: int) -> bytes:
    """What `ServedModel.from_bytes` reads, of the recommender after event `seq`."""
    counts: dict[str, Any] = {"seq": seq, "lessons": shop.decisions.counts.lessons, "t": shop.ids.last + 1}
    manifest = {MODEL: FORMAT, **counts, "settings": settings_to_json(shop.settings), "policy": None}
    if shop.schema is None or shop.learner is None:
        return packed(manifest, {})
    schema, design = shop.schema.to_state()
    texts = {"features": shop.settings.features.to_json(), "schema": schema}
    tensors = {f"text.{name}": tensor_of(text_bytes(content)) for name, content in texts.items()}
    tensors |= nested("schema", {name: tensor_of(array) for name, array in design.items()})
    tensors |= nested("policy", shop.learner.selecting_state())
    return packed({**manifest, "policy": making_of(shop.learner)}, tensors)


# --- what a fold goes on from ---------------------------------------------------------------------------------


@dataclass
class State:
    """Everything a fold knows after event `seq`, whose time and hash it keeps."""

    configuration: Configuration
    shop: Recommender
    clock: Clock
    seq: int = 0
    hash: bytes = bytes(HASH // 2)
    owners: dict[str, str] = field(default_factory=dict)  # users of decisions; some may be closed
    levels: LevelOwners = field(default_factory=LevelOwners)
    popularity: Popularity = field(default_factory=Popularity)
    statistics: Statistics = field(default_factory=Statistics)


def write_state(state: State) -> bytes:
    """A state as bytes."""
    shop, tensors = state_of(state.shop)
    opened = [decision.id for decision in state.shop.decisions.open_decisions()]
    owners = [[id, state.owners[id]] for id in opened if id in state.owners]
    texts = {
        "owners": owners, "levels": state.levels.to_json(), "statistics": state.statistics.to_json(),
        "configuration": state.configuration.to_json(),
    }  # fmt: skip
    own = {f"text.{name}": tensor_of(text_bytes(content)) for name, content in texts.items()}
    own |= {f"popularity.{name}": tensor_of(array) for name, array in state.popularity.arrays().items()}
    manifest = {STATE: FORMAT, "seq": state.seq, "time": state.clock.now, "hash": state.hash.hex(), "shop": shop}
    return packed(manifest, {**nested("shop", tensors), **nested("fold", own)})


def read_state(blob: bytes) -> State:
    """What `write_state` wrote; anything else is a `SaveError`."""
    manifest, tensors = _unpacked(blob, STATE)
    with _one_sentence(STATE):
        clock, own = Clock(float(manifest["time"])), under("fold", tensors)
        shop = restored(
            Recommender, {**manifest["shop"], "format": manifest["format"]}, under("shop", tensors), Given(clock), STATE
        )
        return State(
            configuration=Configuration.from_json(content_of(own, "configuration")), shop=shop, clock=clock,
            seq=int(manifest["seq"]), hash=bytes.fromhex(manifest["hash"]),
            owners={str(id): str(user) for id, user in content_of(own, "owners")},
            levels=LevelOwners.from_json(content_of(own, "levels")),
            popularity=Popularity.from_arrays(arrays_of(own, "popularity")),
            statistics=Statistics.from_json(content_of(own, "statistics")),
        )  # fmt: skip


def model_of(state: State) -> ServedModel | None:
    """The model as it was in a state, which serves where no published one can be read; None before the schema."""
    shop = state.shop
    if shop.schema is None or shop.learner is None:
        return None
    lessons, t = shop.decisions.counts.lessons, shop.ids.last + 1
    return ServedModel(state.seq, lessons, t, shop.settings, shop.schema, shop.learner)


# --- reading --------------------------------------------------------------------------------------------------


def _unpacked(blob: bytes, kind: str) -> tuple[dict[str, Any], Mapping[str, Tensor]]:
    manifest, tensors = unpacked(blob, kind)
    if manifest.get(kind) != FORMAT:
        got = f"got format {manifest.get(kind)!r:.50}; was it written by a newer version?"
        raise SaveError(f"{kind}: expected a {kind} of format {FORMAT}, {got}")
    return manifest, tensors


@contextmanager
def _one_sentence(kind: str) -> Iterator[None]:
    """Whatever foreign content makes the code inside raise, as one `SaveError`."""
    try:
        yield
    except SaveError:
        raise
    except (NeuclustError, ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError,
            ValueError) as error:  # fmt: skip
        said = " ".join(str(error).split()) or repr(error)
        raise SaveError(f"{kind}: expected one that was written here, got {said:.300}") from error
