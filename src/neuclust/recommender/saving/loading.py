"""Load of a recommender as `saving` wrote it; whatever a foreign or damaged save holds is refused in one sentence."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import LARGEST
from neuclust.errors import ConfigError, NeuclustError, SaveError, StateError
from neuclust.models.state import under
from neuclust.persistence import FORMAT, read_state
from neuclust.recommender.answers import Answers, DecisionIds
from neuclust.recommender.choices import Shown
from neuclust.recommender.feedback.decisions import Decisions
from neuclust.recommender.feedback.rewards import SlateValue, slate_value
from neuclust.recommender.feedback.rings import present, whole_of
from neuclust.recommender.items.catalogue import Catalogue, Users
from neuclust.recommender.items.stock import MOST_UNLEARNED, Stock
from neuclust.recommender.learner import Learner
from neuclust.recommender.log.events import EventLog
from neuclust.recommender.options import Settings
from neuclust.recommender.saving.packing import unpacked
from neuclust.recommender.saving.payloads import payloads_of
from neuclust.recommender.saving.saved_settings import settings_of_save
from neuclust.recommender.saving.saving import OWN_CLOCK, SYSTEM_CLOCK, VERSION, save_folder
from neuclust.recommender.schema import Schema
from neuclust.registry import policy_spec, restore_policy, split_name

if TYPE_CHECKING:
    from neuclust.recommender.recommender import Recommender

Arrays = dict[str, NDArray[Any]]
ENTRIES = {"recommender", "settings", "clock", "last", "policy", "schema", "items", "users", "decisions"}
TABLES = ("items", "users", "context")
LONGEST = 700  # characters of a sentence
CHECKED = 1_000  # open decisions whose features are computed at a time


@dataclass(frozen=True)
class Given:
    """What no save can hold."""

    clock: Callable[[], float] | None = None
    reward: SlateValue | None = None
    transformers: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, Any] = field(default_factory=dict)  # of the policy


def load_recommender(
    cls: "type[Recommender]", /, directory: str | Path, *, clock: Callable[[], float] | None = None,
    reward: Callable[[list[float]], float] | str | None = None, transformers: Mapping[str, Any] | None = None,
    log: str | Path | None = None, **parts: Any,
) -> "Recommender":  # fmt: skip
    """A recommender as `save` left it: it answers and learns as the one that went on, under new decision ids.

    `clock`, `reward` and `transformers` (`Recommender.transformers` by column) are given again where they were
    functions; `log` continues or begins a log; `parts` are what the policy cannot save (`clusterer=`). A policy from
    outside is registered before.
    """
    given = _given(clock, reward, transformers, parts)
    folder = save_folder(directory)
    manifest, state = read_state(folder, "recommender")
    shop = restored(cls, manifest, state, given, str(folder))
    shop.log = EventLog.opened(log)
    shop.log.started(shop)
    return shop


def recommender_from_bytes(
    cls: "type[Recommender]", /, saved: bytes, *, clock: Callable[[], float] | None = None,
    reward: Callable[[list[float]], float] | str | None = None, transformers: Mapping[str, Any] | None = None,
    **parts: Any,
) -> "Recommender":  # fmt: skip
    """A recommender as `to_bytes` wrote it; functions are given again as for `load`. It has no log."""
    manifest, state = unpacked(saved, "recommender")
    return restored(cls, manifest, state, _given(clock, reward, transformers, parts), "recommender")


def restored(
    cls: "type[Recommender]", manifest: Mapping[str, Any], state: Mapping[str, Tensor], given: Given, where: str
) -> "Recommender":
    """The recommender of a manifest and tensors; `where` begins the sentence of a refusal."""
    with _one_sentence(where):
        return _assembled(cls, _loaded(manifest, state, given), given)


def _given(clock: Any, reward: Any, transformers: Any, parts: Mapping[str, Any]) -> Given:
    if clock is not None and not callable(clock):
        raise ConfigError(f"expected a function that gives seconds, got {clock!r:.100}", field="clock")
    if transformers is not None and not isinstance(transformers, Mapping):
        wanted = "expected a dictionary of columns and fitted transformers"
        raise ConfigError(f"{wanted}, got {transformers!r:.100}", field="transformers")
    return Given(clock, None if reward is None else slate_value(reward), dict(transformers or {}), parts)


@contextmanager
def _one_sentence(where: str) -> Iterator[None]:
    """Whatever a foreign or damaged save makes the code inside raise, as a `SaveError` that names the place."""
    try:
        yield
    except NeuclustError as error:
        raise SaveError(f"{where}: {_line(error)}") from error
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, RuntimeError, TypeError,
            ValueError) as error:  # fmt: skip
        raise SaveError(f"{where}: expected a complete save of a recommender, got {_line(error)}") from error


def _line(error: Exception) -> str:
    """What an error says, on one line of moderate length."""
    said = " ".join(str(error).split()) or repr(error)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} …"


@dataclass(frozen=True)
class _Loaded:
    """All parts of a recommender."""

    settings: Settings
    stock: Stock
    schema: Schema | None
    learner: Learner | None
    decisions: Decisions
    answers: Answers
    last: int


def _loaded(manifest: Mapping[str, Any], state: Mapping[str, Tensor], given: Given) -> _Loaded:
    """All parts, each checked, and whether they fit each other."""
    _check_manifest(manifest, state, given)
    settings = settings_of_save(manifest["settings"], content_of(state, "features"), given.reward, given.transformers)
    stock = _stock(settings, manifest, state)
    schema = None
    if manifest["schema"] is not None:
        schema = Schema.from_state(content_of(state, "schema"), arrays_of(state, "schema"), given.transformers)
    learner = None
    if manifest["policy"] is not None:
        policy = restore_policy(manifest["policy"], under("policy", state), given.parts)
        learner = Learner(settings.policy, policy)
    payloads = payloads_of(arrays_of(state, "rows"))
    decisions = Decisions.from_state(manifest["decisions"], arrays_of(state, "decisions"), payloads, settings.reward)
    answers = Answers.from_json(content_of(state, "answers"), settings.feedback.remember)
    loaded = _Loaded(settings, stock, schema, learner, decisions, answers, whole_of(manifest["last"], "last decision"))
    _check_agreement(loaded, manifest)
    return loaded


def _assembled(cls: "type[Recommender]", loaded: _Loaded, given: Given) -> "Recommender":
    settings = loaded.settings
    clock = time.time if given.clock is None else given.clock
    shop = cls([], settings.item_id, slate_size=settings.slate_size, remember=1, policy="uniform", clock=clock)
    shop.settings, shop.stock, shop.schema, shop.learner = settings, loaded.stock, loaded.schema, loaded.learner
    shop.decisions, shop.answers, shop.ids = loaded.decisions, loaded.answers, DecisionIds(loaded.last)
    return shop


def _check_manifest(manifest: Mapping[str, Any], state: Mapping[str, Tensor], given: Given) -> None:
    if "policy" in manifest and "recommender" not in manifest:
        raise StateError("expected a saved recommender, got a saved policy; read it with neuclust.load")
    if manifest.get("format") != FORMAT or set(manifest) != ENTRIES | {"format"}:
        wrong = ", ".join(sorted(set(manifest) ^ (ENTRIES | {"format"})))
        raise StateError(f"expected a saved recommender, got unknown or missing entries ({wrong or 'format':.200})")
    if type(manifest["recommender"]) is not int or manifest["recommender"] != VERSION:
        got = f"got {manifest['recommender']!r:.100}; was it saved by a newer version?"
        raise StateError(f"expected version {VERSION} of a saved recommender, {got}")
    if manifest["clock"] not in (SYSTEM_CLOCK, OWN_CLOCK):
        raise StateError(f"clock: expected {SYSTEM_CLOCK} or {OWN_CLOCK}, got {manifest['clock']!r:.100}")
    if manifest["clock"] == OWN_CLOCK and given.clock is None:
        raise StateError(
            "clock: expected the function that was used before the save, got none; give it again (clock=…)"
        )
    groups = {"policy", "schema", "items", "users", "decisions", "rows", "text"}
    strange = [name for name in state if name.partition(".")[0] not in groups]
    if strange:
        raise StateError(f"expected the tensors of a recommender, got {strange[0]!r:.100}; is the save damaged?")


def _stock(settings: Settings, manifest: Mapping[str, Any], state: Mapping[str, Tensor]) -> Stock:
    catalogue = Catalogue.from_state(manifest["items"], arrays_of(state, "items"))
    users = Users.from_state(manifest["users"], arrays_of(state, "users"))
    saved = content_of(state, "unlearned")
    if not isinstance(saved, dict) or set(saved) != set(TABLES):
        raise StateError(f"expected columns that are not learned by table, got {saved!r:.100}; is the save damaged?")
    for names in saved.values():
        if not isinstance(names, list) or len(names) > MOST_UNLEARNED or not all(isinstance(n, str) for n in names):
            raise StateError(f"expected names of columns that are not learned, got {names!r:.100}; is it damaged?")
    return Stock(settings, catalogue, users, {table: set(saved[table]) for table in TABLES})


def _check_agreement(loaded: _Loaded, manifest: Mapping[str, Any]) -> None:
    """Refuse parts that are of different saves."""
    settings, decisions, schema = loaded.settings, loaded.decisions, loaded.schema
    if (decisions.config, decisions.slate_size) != (settings.feedback, settings.slate_size):
        raise StateError("expected decisions of the same settings, got those of others; is the save damaged?")
    numbers = [decision.number for decision in decisions.open_decisions()]
    if max(numbers, default=0) > loaded.last:
        raise StateError(f"expected decisions up to number {loaded.last}, got {max(numbers)}; is the save damaged?")
    if (schema is None) != (loaded.learner is None):
        raise StateError("expected a schema and a policy or neither, got one of them; is the save damaged?")
    for decision in decisions.open_decisions():
        if len(decision.payload.codes) != len(decision.items) or decision.payload.version != decision.revision:
            raise StateError(f"decision {decision.id!r:.100}: expected its own rows, got others; is the save damaged?")
    if schema is not None:
        _check_frozen(loaded, schema, manifest)


def _check_frozen(loaded: _Loaded, schema: Schema, manifest: Mapping[str, Any]) -> None:
    settings, design, making = loaded.settings, schema.design, manifest["policy"]
    dims = (loaded.stock.catalogue.dim, schema.items.width, design.items.dim)
    if len(set(dims)) > 1 or schema.user.width != design.user.dim or schema.version != manifest["schema"]:
        raise StateError(f"expected items and users of one schema, got widths {dims}; is the save damaged?")
    name = policy_spec(split_name(settings.policy.name)[0]).saved_as
    wanted = (name, design.width, settings.slate_size, settings.policy.seed)
    got = (making["policy"], making["dim"], making["slate_size"], making["seed"])
    if wanted != got:
        raise StateError(f"expected the policy {wanted}, got {got!r:.200}; is the save damaged?")
    ids = loaded.stock.catalogue.rows.ids
    shown_rows: list[Shown] = []
    for decision in loaded.decisions.open_decisions():
        shown = decision.payload
        if not len(shown.codes) or shown.version != schema.version:
            continue
        shown_rows.append(shown)
        if (shown.items.shape[1], len(shown.user)) != (schema.items.width, schema.user.width):
            raise StateError(f"decision {decision.id!r:.100}: expected rows of the schema, got other widths; damaged?")
        if tuple(ids[code] if 0 <= code < len(ids) else None for code in shown.codes.tolist()) != decision.items:
            raise StateError(f"decision {decision.id!r:.100}: expected codes of its items, got others; damaged?")
    _check_features(shown_rows, schema)


def _check_features(rows: Sequence[Shown], schema: Schema) -> None:
    """Refuse rows whose features no policy could learn from."""
    for start in range(0, len(rows), CHECKED):
        part = rows[start : start + CHECKED]
        owner = np.repeat(np.arange(len(part)), [len(each.codes) for each in part])
        items, users = np.concatenate([each.items for each in part]), np.array([each.user for each in part])
        features = schema.design.rows_many(items, users, owner)
        if not bool((np.abs(features) <= LARGEST).all()):
            raise StateError(f"open decisions: expected features of at most {LARGEST:g}, got others; is it damaged?")


def arrays_of(state: Mapping[str, Tensor], group: str) -> Arrays:
    """The arrays of a group of tensors."""
    return {name: tensor.numpy() for name, tensor in under(group, state).items()}


def content_of(state: Mapping[str, Tensor], name: str) -> Any:
    """JSON of a text."""
    text = present(arrays_of(state, "text"), name, "texts")
    if text.dtype != np.uint8 or text.ndim != 1:
        raise StateError(f"{name}: expected a text in bytes, got {text.dtype} of shape {text.shape}; is it damaged?")
    try:
        return json.loads(text.tobytes().decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise StateError(f"{name}: expected JSON, got {error!s:.100}; is the save damaged?") from None


def _no_number(text: str) -> float:
    raise ValueError(f"{text}, which is no JSON number")
