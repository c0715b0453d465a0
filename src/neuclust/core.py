"""The vocabulary: Round, Slate (the paper's super arm), Feedback, Policy, Environment.

Tensors, arrays, lists and numbers of any real type are cast to float64 and int64 tensors when a record is made.
"""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, Self, runtime_checkable

import torch
from torch import Tensor

from neuclust.casting import count, flags, real, whole
from neuclust.errors import DataError

SPREAD = 8  # ids per arm up to which they are counted instead of sorted
LARGE_TABLE = 1 << 18  # numbers of profiles from which checking them again takes longer than a small selection
_CHECKED: dict[str, tuple[weakref.ref[Tensor], int]] = {}  # the last such table found in order, and its version
LARGEST = 1e50  # of a feature or a reward: products of two of them, squared, stay finite

DesignKind = Literal["deterministic", "sequential", "one-coin", "uniform", "unknown"]

_set = object.__setattr__  # the one way to cast the fields of a frozen dataclass


def _no_arms() -> Tensor:
    return torch.zeros(0, dtype=torch.int64)


@dataclass(frozen=True, slots=True)
class Cap:
    """At most `most` arms of each group in a slate; `groups` (n,) int64, one number per offered arm."""

    groups: Tensor
    most: int

    def __post_init__(self) -> None:
        _set(self, "groups", whole(self.groups, "groups of a cap"))
        _set(self, "most", count(self.most, "most of a cap"))
        if self.groups.ndim != 1 or self.most < 1:
            got = f"got {self.most} arms of groups {tuple(self.groups.shape)}"
            raise DataError(f"cap: expected at least 1 arm per group and one group for every arm, {got}")


@dataclass(frozen=True, slots=True)
class Rules:
    """What every slate of a round keeps to: arm ids that must be in it, in any slot, ids that must not, and caps."""

    required: Tensor = field(default_factory=_no_arms)  # (r,) int64 arm ids
    excluded: Tensor = field(default_factory=_no_arms)  # (e,) int64 arm ids
    caps: tuple[Cap, ...] = ()

    def __post_init__(self) -> None:
        for name in ("required", "excluded"):
            ids = whole(getattr(self, name), f"rules: {name} arms")
            if ids.ndim != 1 or len(torch.unique(ids)) != len(ids):
                raise DataError(f"rules: expected {name} arm ids, every one once, got {ids.tolist()}")
            _set(self, name, ids)
        _set(self, "caps", tuple(self.caps))


@dataclass(frozen=True, slots=True)
class Round:
    """What an agent sees before it chooses: n arms with profiles (n, d), and what is asked for, (d,)."""

    t: int  # 1, 2, ...
    arm_ids: Tensor  # (n,) int64: the arms offered this round
    profiles: Tensor  # (n, d) what is known of each arm; what is clustered
    query: Tensor | None  # (d,) what the round asks for: a movie's genres, a user's tastes
    slate_size: int  # k, at most the policy's K
    features: Tensor | None = None  # (n, d_c) what models read, where it is not profiles * query
    rules: Rules | None = None  # kept by every policy, through `slates.rules`
    draw: int | None = None  # the key of randomness, 0 to 2**64 - 1; None: t, which alone drives schedules

    def __post_init__(self) -> None:
        _set(self, "t", count(self.t, "t"))
        at = f"round {self.t}: "
        _set(self, "profiles", real(self.profiles, at + "profiles"))
        device = self.profiles.device
        _set(self, "arm_ids", whole(self.arm_ids, at + "arm ids", device))
        if self.query is not None:
            _set(self, "query", real(self.query, at + "query", device))
        _set(self, "slate_size", count(self.slate_size, at + "slate_size"))
        if self.features is not None:
            _set(self, "features", real(self.features, at + "features", device))
        if self.draw is not None:
            _set(self, "draw", count(self.draw, at + "draw"))

    @property
    def key(self) -> int:
        """What random numbers of this round are keyed by."""
        return self.t if self.draw is None else self.draw

    @property
    def read(self) -> Self:
        """The round as models read it: with its features, where it has any, in the place of profiles and query."""
        if self.features is None:
            return self
        return replace(self, profiles=self.features, query=None, features=None)

    def only(self, positions: Tensor, slate_size: int, rules: Rules | None = None) -> Self:
        """The same round with these arms alone, in this order, and a slate of another size."""
        features = None if self.features is None else self.features[positions]
        return replace(
            self, arm_ids=self.arm_ids[positions], profiles=self.profiles[positions], features=features,
            slate_size=slate_size, rules=rules,
        )  # fmt: skip

    @property
    def active(self) -> Tensor:
        """Columns that can be non-zero in `contexts`, ascending: (q,) int64."""
        if self.query is None or self.features is not None:
            return torch.arange(self.contexts.shape[1], device=self.profiles.device)
        return torch.nonzero(self.query).flatten()

    @property
    def contexts(self) -> Tensor:
        """The features, else z = x ⊙ a, (n, d); the profiles themselves where the round asks for nothing."""
        if self.features is not None:
            return self.features
        return self.profiles if self.query is None else self.profiles * self.query


@dataclass(frozen=True, slots=True)
class Design:
    """How a slate was drawn; `base` and `pool` are positions in the round, A(S) the arms that may follow S.

    - deterministic: the base slate, for certain;
    - sequential: slot by slot around the base slate, by P(a | S) of `slates.propensities` with share, pool, anywhere;
    - one-coin: with probability `share` a slate drawn evenly from A(S) slot by slot, else the base slate;
    - uniform: every slot evenly from A(S);
    - unknown: nothing but the propensities of the slate is known, if those are.
    """

    kind: DesignKind
    base: tuple[int, ...] = ()
    share: float = 0.0  # ε
    pool: tuple[int, ...] = ()
    anywhere: float = 1.0


@dataclass(frozen=True, slots=True)
class Slate:
    """The k arms chosen, best first, with what the policy believed of each.

    `propensities`: the exact chance of each slot's arm given the arms in the slots before it, so that their product is
    the chance of the slate. Ones: nothing was left to chance. None: the chance has no closed form.
    """

    positions: Tensor  # (K,) int64 rows of Round.profiles
    means: Tensor  # (K,)
    bonuses: Tensor  # (K,)
    propensities: Tensor | None = None  # (K,)
    cluster: int | None = None
    explored: Tensor | None = None  # (K,) bool: slots drawn evenly from all allowed arms; None: no slot was
    design: Design | None = None  # of a slate that was drawn by a known one

    @property
    def drawn_by(self) -> Design:
        """The design; deterministic where every propensity is 1, else unknown where none is told."""
        if self.design is not None:
            return self.design
        certain = self.propensities is not None and bool((self.propensities == 1).all())
        return Design("deterministic", tuple(self.positions.tolist())) if certain else Design("unknown")

    def __post_init__(self) -> None:
        _set(self, "positions", whole(self.positions, "slate positions"))
        device = self.positions.device
        for name in ("means", "bonuses", "propensities"):
            value = getattr(self, name)
            if value is not None or name != "propensities":
                _set(self, name, real(value, f"slate {name}", device))
        if self.explored is not None:
            _set(self, "explored", flags(self.explored, "slate explored", device))


@dataclass(frozen=True, slots=True)
class Feedback:
    """What came back: one reward per arm in slate order and one for the slate; NaN = not observed."""

    arm_rewards: Tensor  # (K,)
    slate_reward: Tensor  # scalar

    def __post_init__(self) -> None:
        _set(self, "arm_rewards", real(self.arm_rewards, "arm rewards"))
        reward = real(self.slate_reward, "slate reward", self.arm_rewards.device)
        if reward.numel() != 1:
            raise DataError(f"slate reward: expected one number, got shape {tuple(reward.shape)}; NaN is unseen")
        _set(self, "slate_reward", reward if reward.ndim == 0 else reward.reshape(()))


@runtime_checkable
class Policy(Protocol):
    """Selects a slate and learns from its feedback. `select` leaves the learned state as it was.

    Threads: any number may `select` while none updates or loads, provided that what the policy was given (an oracle's
    `means`, a clusterer) allows it. `update` and `load_state_dict` need the policy to themselves; to select meanwhile,
    use a `copy.deepcopy` made between two updates. A policy whose `load_state_dict` raised must be discarded.
    """

    def select(self, round: Round) -> Slate:
        """The slate of a round; asked twice it gives the same one."""

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        """Learn what came back of a slate; rewards of NaN were not seen."""

    def state_dict(self) -> dict[str, Tensor]:
        """What was learned, by name: all that `load_state_dict` needs to go on bit for bit."""

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state of a policy with the same configuration."""

    def save(self, directory: Path) -> None:
        """Write configuration and state into a folder that `neuclust.load` reads."""


@runtime_checkable
class Environment(Protocol):
    """Deals rounds 1 to `horizon`, pays feedback, and computes the expected rewards that regret is measured against.

    `dim` is d, the number of features per arm, `slate_size` is K. Optional members: `environments/problem.py`.
    """

    @property
    def name(self) -> str:
        """What records and pictures call it."""

    @property
    def dim(self) -> int:
        """The number of features per arm, d."""

    @property
    def slate_size(self) -> int:
        """How many arms a slate has, K."""

    @property
    def horizon(self) -> int:
        """The number of the last round."""

    def round(self, t: int) -> Round:
        """Round t, the same whenever it is asked for."""

    def play(self, round: Round, slate: Slate) -> Feedback:
        """What a slate earns in a round: the same coins for whoever plays it."""

    def expected_reward(self, round: Round, slate: Slate) -> float:
        """What a slate earns on average."""

    def best_expected_reward(self, round: Round) -> float:
        """What the best slate of a round earns on average."""


def check_round(round: Round, dim: int, slate_size: int) -> None:
    """Refuse a round no policy can play: wrong dimension, k > n, k > K, NaN, huge numbers, ids that do not fit."""
    at = f"round {round.t}"
    if not 0 < round.t < 2**63:
        raise DataError(f"{at}: expected rounds counted 1, 2, ..., got t = {round.t}")
    if not 0 <= round.key < 2**64:
        raise DataError(f"{at}: expected a draw from 0 to 2**64 - 1, got {round.draw}")
    if round.profiles.ndim != 2:
        raise DataError(f"{at}: expected profiles as a matrix (arms, {dim}), got {tuple(round.profiles.shape)}")
    n, d = round.profiles.shape
    if round.features is not None and round.features.shape != (n, dim):
        got = f"got {tuple(round.features.shape)}"
        raise DataError(f"{at}: expected features as a matrix ({n}, {dim}), one row for each arm, {got}")
    if round.features is None and d != dim:
        raise DataError(f"{at}: expected profiles with {dim} features, got {d}")
    if round.query is not None and round.query.shape != (d,):
        raise DataError(f"{at}: expected a query of {d} entries, got shape {tuple(round.query.shape)}")
    if round.arm_ids.shape != (n,):
        raise DataError(f"{at}: expected {n} arm ids, one for each profile, got {tuple(round.arm_ids.shape)}")
    if not 0 < round.slate_size <= slate_size:
        built = f"this policy was built for slates of up to {slate_size}, the round asks for {round.slate_size}"
        raise DataError(f"{at}: {built}; build the policy with slate_size={round.slate_size}")
    if n < round.slate_size:
        raise DataError(f"{at}: expected at least k = {round.slate_size} arms to choose from, got {n}")
    _check_ids(round)
    for name, values in (("profiles", round.profiles), ("features", round.features)):
        if values is not None and not _moderate(values):
            row = int((~(values.abs() <= LARGEST)).any(1).nonzero()[0])
            got = f"NaN, infinity or more in row {row} (arm {int(round.arm_ids[row])}); fill, scale or drop it"
            raise DataError(f"{at}: expected finite {name} of at most {LARGEST:g}, got {got}")
    if round.query is not None and not _moderate(round.query):
        raise DataError(f"{at}: expected a finite query of at most {LARGEST:g}, got NaN, infinity or more")


def _check_ids(round: Round) -> None:
    ids = round.arm_ids
    if bool((ids[1:] > ids[:-1]).all()):  # ascending, as they nearly always are: no need to sort
        return
    low, high = (int(end) for end in torch.aminmax(ids))
    if high - low < SPREAD * len(ids):  # counting is many times cheaper than sorting
        twice = torch.nonzero(torch.bincount(ids - low) > 1).flatten() + low
    else:
        ordered = ids.sort().values
        twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise DataError(f"round {round.t}: expected every arm once, got id {int(twice[0])} twice; use distinct ids")


def _moderate(values: Tensor) -> bool:
    """Whether all are numbers of a size that can be computed with; one pass, no copy, once for a table that stays."""
    if values.numel() == 0:
        return True
    version = -1 if values.is_inference() else values._version  # torch counts no changes in inference mode
    known, checked = _CHECKED.get("last", (None, -1))
    if known is not None and known() is values and checked == version >= 0:
        return True
    low, high = torch.aminmax(values)  # NaN where any entry is
    moderate = bool((low >= -LARGEST) & (high <= LARGEST))
    if moderate and values.numel() >= LARGE_TABLE:
        _CHECKED["last"] = weakref.ref(values), version
    return moderate


def known_arms(arms: tuple[Tensor, Tensor] | None, dim: int | None, name: str) -> tuple[Tensor, Tensor] | None:
    """(ids (N,), values (N, dim)) of all arms there are, if given, cast and checked as those of a round are.
    `dim` None: any number of columns, where models read features instead of profiles."""
    if arms is None:
        return None
    ids, values = whole(arms[0], f"{name} ids"), real(arms[1], name)
    if ids.ndim != 1 or values.ndim != 2 or values.shape != (len(ids), dim or values.shape[1]):
        wanted = f"N ids and a matrix (N, {dim or 'd'})"
        raise DataError(f"{name}: expected {wanted}, got {(*ids.shape,)} and {(*values.shape,)}")
    if len(torch.unique(ids)) != len(ids):
        raise DataError(f"{name}: expected every arm once, got an id twice; number arms anew")
    if not _moderate(values):
        raise DataError(f"{name}: expected finite numbers of at most {LARGEST:g}, got others; fill, scale or drop them")
    return ids, values


def check_feedback(round: Round, slate: Slate, feedback: Feedback) -> None:
    """Refuse feedback that does not belong to the slate: wrong length, foreign positions, infinite rewards."""
    k = round.slate_size
    if slate.positions.shape != (k,) or feedback.arm_rewards.shape != (k,):
        got = f"{tuple(slate.positions.shape)} positions and {tuple(feedback.arm_rewards.shape)} rewards"
        raise DataError(f"round {round.t}: expected a slate and arm rewards of k = {k}, got {got}")
    inside = (slate.positions >= 0) & (slate.positions < len(round.arm_ids))
    if not bool(inside.all()) or len(torch.unique(slate.positions)) != k:
        wanted = f"{k} distinct positions below {len(round.arm_ids)}"
        raise DataError(f"round {round.t}: expected {wanted}, got {slate.positions.tolist()}")
    if bool((feedback.arm_rewards.abs() > LARGEST).any()) or bool(feedback.slate_reward.abs() > LARGEST):
        wanted = f"finite rewards of at most {LARGEST:g} (NaN for unseen ones)"
        raise DataError(f"round {round.t}: expected {wanted}, got infinity or more; scale them")
