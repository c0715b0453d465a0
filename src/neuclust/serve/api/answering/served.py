"""One recommender in an API process: its tables as the log has them, its model, and what serves in its place."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from neuclust.errors import SaveError
from neuclust.recommender.items.stock import Stock
from neuclust.recommender.learner import Learner
from neuclust.recommender.options import Settings
from neuclust.recommender.schema import Schema
from neuclust.serve.api.answering.baselines import popular_learner, random_learner
from neuclust.serve.api.answering.choosing import Situation
from neuclust.serve.configuration import Configuration
from neuclust.serve.fold.blobs import ServedModel, model_of, read_state
from neuclust.serve.fold.tables import Tables
from neuclust.serve.store.contract import ERASURE, TABLE_KINDS, Damaged, Head, Store, StoreError

LOG = logging.getLogger("neuclust.serve")
AT_ONCE = 64  # table events read together
STATES = 1_000  # versions among which a state is looked for
MOST_REFUSED = 100


@dataclass
class Served:
    """Owned by the desk's thread; other threads read `id`, `settings`, `configuration` and counts."""

    name: str
    head: Head
    tables: Tables
    model: ServedModel | None = None
    version: int = 0
    stale: str = ""  # why the model is too old; empty: it is not
    popular: Mapping[str, float] = field(default_factory=dict)  # value per show, by item
    refused: dict[int, str] = field(default_factory=dict)  # the last table events that had no effect, and why

    @property
    def id(self) -> int:
        return self.head.id

    @property
    def configuration(self) -> Configuration:
        return self.tables.configuration

    @property
    def settings(self) -> Settings:
        return self.tables.stock.settings

    @property
    def span(self) -> tuple[float, float]:
        """The range of an item's reward."""
        return self.settings.feedback.span

    @property
    def stock(self) -> Stock:
        return self.tables.stock

    @property
    def schema(self) -> Schema | None:
        return self.tables.schema

    @classmethod
    def started(cls, store: Store, head: Head) -> "Served":
        """The tables of the newest state that can be read and the policy in it, or none: the log tells the rest."""
        for version in store.versions(head.id, STATES):
            if version.state and version.seq <= head.seq:
                try:
                    blob = store.state(head.id, version.version)
                    if blob is not None:
                        state = read_state(blob)
                        return cls(head.name, head, Tables.of_state(state), model_of(state), version.version)
                except (Damaged, SaveError) as error:
                    LOG.warning("%s: the state of version %d: %s", head.name, version.version, error)
        if head.base:
            wanted = f"expected a state at event {head.base} or later, since events before it are no longer kept"
            raise StoreError(f"{head.name}: {wanted}, got none that can be read; restore a backup")
        return cls(head.name, head, Tables.begin())

    def follow(self, store: Store, head: Head) -> None:
        """Take in the tables up to the head of the log."""
        while self.tables.seq < head.tables:
            rows = store.read(head.id, self.tables.seq, AT_ONCE, TABLE_KINDS, head.tables)
            if not rows:
                break
            if any(row.kind == ERASURE and row.payload is None for row in rows):
                self.tables = Served.started(store, head).tables  # who was erased is not told any more
                rows = [row for row in rows if row.seq > self.tables.seq]
            for row in rows:
                refusal = self.tables.apply(row)
                if refusal is not None:
                    self._note(row.seq, refusal)
        self.head = head
        frozen = self.tables.frozen
        if self.model is None and frozen is not None:
            self.model = ServedModel(self.tables.seq, 0, 1, frozen.settings, frozen.schema, frozen.learner)

    def _note(self, seq: int, refusal: str) -> None:
        self.refused[seq] = refusal
        while len(self.refused) > MOST_REFUSED:
            del self.refused[next(iter(self.refused))]

    def take(self, model: ServedModel, version: int) -> None:
        """Serve a model that was published."""
        self.model, self.version = model, version
        self.tables.use(model.schema)

    def situation(self, now: float | None = None) -> Situation:
        """What the next requests share."""
        kept, exploration = self.configuration, self.settings.policy.exploration
        return Situation(
            now=time.time() if now is None else now, t=1 if self.model is None else self.model.t,
            lessons=0 if self.model is None else self.model.lessons, version=self.version,
            policy=self.settings.policy.name, slate_size=self.settings.slate_size,
            window=self.settings.feedback.window, exploration=None if exploration is None else exploration.share,
            mode=kept.mode, holdout=kept.holdout.share, salt=f"{self.name} {self.settings.policy.seed}",
            baseline=kept.holdout.baseline, fallback=kept.fallback, stale=bool(self.stale),
        )  # fmt: skip

    def learners(self) -> "Learners":
        """Who may be asked."""
        return Learners(self)


class Learners(dict[str, Learner]):
    """The policy, and the baselines, made where they are asked for."""

    def __init__(self, served: Served) -> None:
        super().__init__()
        self._served = served

    def __missing__(self, name: str) -> Learner:
        served = self._served
        assert served.model is not None
        assert served.schema is not None
        if name == "policy":
            found = served.model.learner
        elif name == "random":
            found = random_learner(served.schema, served.settings.slate_size, served.settings.policy.seed)
        else:
            codes = served.stock.catalogue.rows.codes
            found = popular_learner({codes[item]: value for item, value in served.popular.items() if item in codes})
        self[name] = found
        return found
