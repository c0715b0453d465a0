"""The rules of a round (`core.Rules`) as rows, the arms that may still enter a slate, and slates that keep the rules.

Let R be the required arms and k′ the length of the longest allowed slate, at most k. With the arms S already chosen,

    A(S) = {a ∉ S, not excluded : S ∪ {a} ∪ R keeps the caps and has at most k′ members}.

Under one cap the allowed sets are the independent sets of a matroid (`slates.constraints`): S ∪ R can always be
extended to k′ arms, so that every order of filling ends with k′ arms, R among them. Several caps are an intersection of
matroids: k′ is then a bound, and a slate ends where A(S) is empty. It holds R there too, since arms of R that are not
yet chosen always belong to A(S).
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import Cap, Round, Rules, Slate, check_round
from neuclust.errors import DataError

Mask = NDArray[np.bool_]
Codes = NDArray[np.int64]
Select = TypeVar("Select", bound=Callable[..., Slate])


# --- a round's rules, checked ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowRules:
    """Rules as rows of a round: allowed ones (n,), k′, required ones in ascending order, and the caps' groups (n,)."""

    allowed: Mask
    length: int  # k′
    required: tuple[int, ...] = ()
    caps: tuple[tuple[Codes, int], ...] = ()  # groups, and how many arms of each


def row_rules(round: Round) -> RowRules:
    """The rules of a round as rows, refused where they contradict each other or do not fit the round's arms."""
    rules, ids = round.rules, _array(round.arm_ids)
    if rules is None:
        return RowRules(np.ones(len(ids), np.bool_), min(round.slate_size, len(ids)))
    out: Mask = torch.isin(round.arm_ids, rules.excluded.to(round.arm_ids.device)).cpu().numpy()
    required = _required_rows(round, rules, ids, out)
    caps = tuple(_cap_rows(round, cap, required) for cap in rules.caps)
    return RowRules(~out, _longest(~out, caps, round.slate_size), required, caps)


def _longest(allowed: Mask, caps: Sequence[tuple[Codes, int]], k: int) -> int:
    """k′ = min(k, allowed arms, Σ_g min(allowed arms of g, cap) for every cap)."""
    bounds = [k, int(np.count_nonzero(allowed))]
    for groups, most in caps:
        sizes = np.unique(groups[allowed], return_counts=True)[1]
        bounds.append(int(np.minimum(sizes, most).sum()))
    return min(bounds)


def _required_rows(round: Round, rules: Rules, ids: Codes, out: Mask) -> tuple[int, ...]:
    k, wanted = round.slate_size, rules.required.tolist()
    if len(wanted) > k:
        said = f"expected at most k = {k} required arms, got {len(wanted)}; require fewer or ask for a longer slate"
        raise DataError(f"round {round.t}: {said}")
    rows = []
    for arm in wanted:
        found = np.flatnonzero(ids == arm)
        if not len(found):
            got = f"got arm {arm}, which is not; offer it or drop it from the rules"
            raise DataError(f"round {round.t}: expected required arms among those offered, {got}")
        if out[found[0]]:
            got = f"got arm {arm} as both; drop it from one of them"
            raise DataError(f"round {round.t}: expected arms to be required or excluded, {got}")
        rows.append(int(found[0]))
    return tuple(sorted(rows))


def _cap_rows(round: Round, cap: Cap, required: Sequence[int]) -> tuple[Codes, int]:
    groups = _array(cap.groups)
    if len(groups) != len(round.arm_ids):
        got = f"got {len(groups)} for {len(round.arm_ids)} arms; give one per arm, in the order of the arms"
        raise DataError(f"round {round.t}: expected one group of a cap for every arm, {got}")
    if len(required) <= cap.most:
        return groups, cap.most
    names, counts = np.unique(groups[list(required)], return_counts=True)
    if counts.max() > cap.most:
        got = f"but {counts.max()} are required of group {names[counts.argmax()]}; raise the cap or require fewer"
        raise DataError(f"round {round.t}: expected at most {cap.most} arms of a group, {got}")
    return groups, cap.most


def _array(tensor: Tensor) -> Codes:
    """The numbers of a tensor of any device, not copied where it is on the CPU."""
    array: Codes = tensor.cpu().numpy()
    return array


def check_rules(round: Round) -> None:
    """Refuse rules that contradict each other or do not fit the round's arms; excluded ids not offered are ignored."""
    row_rules(round)


def allowed(round: Round) -> Mask:
    """Which arms are not excluded: (n,) bool."""
    return row_rules(round).allowed


def longest(round: Round) -> int:
    """k′, the length of the longest allowed slate, at most the round's slate size; an upper bound with several caps."""
    return row_rules(round).length


# --- one slot after another -----------------------------------------------------------------------------------------


class Filling:
    """A slate that is filled one arm after another: A(S), kept up to date in O(n) or less per arm taken.

    An arm outside R belongs to A(S) while it is new, |S ∪ R| < k′ and each of its groups has room, that is fewer than
    `most` arms in S ∪ R; an arm of R while it is new.
    """

    __slots__ = ("_caps", "_mask", "_rooms", "_spare", "length", "taken", "waiting")

    def __init__(self, rules: RowRules) -> None:
        self.length, self.taken = rules.length, list[int]()
        self.waiting = dict.fromkeys(rules.required)  # of R, not taken yet
        self._mask, self._caps = rules.allowed.copy(), rules.caps
        self._spare = rules.length - len(rules.required)  # arms outside R that may still be taken
        self._rooms: list[dict[int, int]] = [{} for _ in rules.caps]  # arms of a group that still fit, `most` at first
        for row in rules.required:
            self._count(row)
        if self._spare == 0:
            self._close(slice(None))

    @classmethod
    def of(cls, round: Round) -> Self:
        """The empty slate of a round."""
        return cls(row_rules(round))

    def options(self) -> Mask:
        """A(S) as a mask (n,), to be read only; it changes with the next `take`."""
        return self._mask

    @property
    def left(self) -> int:
        """|A(S)|; 0 where the slate has k′ arms, and with several caps perhaps before."""
        return int(np.count_nonzero(self._mask))

    def allows(self, position: int) -> bool:
        """Whether an arm belongs to A(S); False for rows the round does not have."""
        return 0 <= position < len(self._mask) and bool(self._mask[position])

    def take(self, position: int) -> None:
        """Add an arm of A(S)."""
        if not self.allows(position):
            raise DataError(f"slate: expected an arm that may be added to {self.taken}, got row {position!r:.100}")
        self.taken.append(position)
        self._mask[position] = False
        if position in self.waiting:
            del self.waiting[position]
            return
        self._spare -= 1
        self._count(position)
        if self._spare == 0:
            self._close(slice(None))

    def _count(self, position: int) -> None:
        """One arm more in its groups; those that are full are closed."""
        for (groups, most), rooms in zip(self._caps, self._rooms, strict=True):
            group = int(groups[position])
            rooms[group] = rooms.get(group, most) - 1
            if rooms[group] == 0:
                self._close(groups == group)

    def _close(self, rows: Mask | slice) -> None:
        """No arm of these rows may be added any more, but those of R."""
        self._mask[rows] = False
        for row in self.waiting:
            self._mask[row] = True


def option_counts(round: Round, positions: Sequence[int]) -> tuple[int, ...]:
    """|A(S)| before each slot of a slate, (k,); refused where an arm cannot follow those before it."""
    filling, counts = Filling.of(round), []
    for position in positions:
        counts.append(filling.left)
        filling.take(position)
    return tuple(counts)


def keeps(rules: RowRules, positions: Sequence[int]) -> bool:
    """Whether this slate is one that filling can end with: allowed arms in some order, R among them, as many as fit."""
    filling = Filling(rules)
    for position in positions:
        if not filling.allows(position):
            return False
        filling.take(position)
    return not filling.left


# --- any policy within the rules ------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A policy's answer on some of the arms, its arms as rows of the whole round, and which of them entered."""

    slate: Slate
    rows: list[int]
    entered: list[bool]


def within_rules(round: Round, choose: Callable[[Round], Slate]) -> Slate:
    """A slate that keeps the round's rules, made of answers of `choose` on rounds without rules.

    `choose` is asked for the required arms, as a round of their own, then for the arms of A(S), and its answers are
    taken in order while A(S) holds them, until the slate is full. For a policy that plays the top k by score this is
    the greedy basis (`slates.assembly`): arms by score, each taken if the rules still allow it. Where the first answer
    enters whole, its slate is returned as it is; under caps without the propensities of a random answer, since the same
    slate may be reached by answers that enter in part. Otherwise slots are ordered by mean + bonus, explored ones last,
    and propensities are ones where all answers have ones, else None.

    A round whose slates must be shorter than it asks for is refused, unless several caps end a slate early.
    """
    if round.rules is None:
        return choose(round)
    filling = Filling.of(round)
    length = filling.length
    if length < round.slate_size:
        got = f"only {length} fit; ask for slate_size={length} (slates.rules.longest) or relax the rules"
        raise DataError(f"round {round.t}: expected rules that leave k = {round.slate_size} arms, but {got}")
    parts, required = [], list(filling.waiting)
    if required:
        parts.append(_asked(round, choose, filling, np.array(required), len(required)))
    while filling.left:
        rows = np.flatnonzero(filling.options())
        parts.append(_asked(round, choose, filling, rows, min(len(rows), length - len(filling.taken))))
    return _joined(round, parts)


def _asked(round: Round, choose: Callable[[Round], Slate], filling: Filling, rows: Codes, k: int) -> _Part:
    """The answer of `choose` on these rows alone; its arms enter the slate in order, while A(S) holds them."""
    every = len(rows) == len(round.arm_ids)
    at = torch.from_numpy(rows).to(round.arm_ids.device)
    part = replace(round, slate_size=k, rules=None) if every else round.only(at, k)
    slate = choose(part)
    answer = rows[checked_answer(part, slate)].tolist()
    entered = []
    for row in answer:
        entered.append(filling.allows(row))
        if entered[-1]:
            filling.take(row)
    return _Part(slate, answer, entered)


def checked_answer(round: Round, slate: Slate) -> list[int]:
    """The rows a policy chose in a round, refused where they are not k distinct ones of it."""
    n, k, rows = len(round.arm_ids), round.slate_size, slate.positions.tolist()
    if len(rows) != k or len(set(rows)) != k or not all(0 <= row < n for row in rows):
        raise DataError(f"round {round.t}: expected {k} distinct rows below {n} from the policy, got {rows!r:.100}")
    return rows


def _joined(round: Round, parts: Sequence[_Part]) -> Slate:
    """One slate of all arms that entered; a single answer that entered whole stays as it is."""
    slates, device = [part.slate for part in parts], round.arm_ids.device
    certain = all(slate.propensities is not None and bool((slate.propensities == 1).all()) for slate in slates)
    if len(parts) == 1 and all(parts[0].entered):
        # under caps a random answer may enter in part, and the same slate be reached another way
        known = certain or round.rules is None or not round.rules.caps
        chances = slates[0].propensities if known else None
        positions = torch.tensor(parts[0].rows, device=device)
        return replace(slates[0], positions=positions, propensities=chances, design=None)
    slots = [slot for part in parts for slot, entered in zip(_slots(part), part.entered, strict=True) if entered]
    slots.sort(key=lambda slot: (slot.explored, -(slot.mean + slot.bonus)))
    rows, means, bonuses, explored = (list(column) for column in zip(*slots, strict=True))
    return Slate(
        torch.tensor(rows, device=device),
        torch.tensor(means, dtype=torch.float64, device=device),
        torch.tensor(bonuses, dtype=torch.float64, device=device),
        propensities=torch.ones(len(slots), dtype=torch.float64, device=device) if certain else None,
        cluster=slates[0].cluster if len(slates) == 1 else None,
        explored=torch.tensor(explored, device=device) if any(explored) else None,
    )


class _Slot(NamedTuple):
    position: int
    mean: float
    bonus: float
    explored: bool


def _slots(part: _Part) -> Iterator[_Slot]:
    slate = part.slate
    explored = [False] * len(part.rows) if slate.explored is None else slate.explored.tolist()
    return map(_Slot, part.rows, slate.means.tolist(), slate.bonuses.tolist(), explored)


def keeps_rules(select: Select) -> Select:
    """Decorate a policy's `select(self, round)`: a round with rules is checked and played through `within_rules`.

    Further arguments of `select` are handed on. The policy has `dim` and `slate_size`.
    """

    @functools.wraps(select)
    def kept(self: Any, round: Round, *args: Any, **kwargs: Any) -> Slate:
        if round.rules is None:
            return select(self, round, *args, **kwargs)
        check_round(round, self.dim, self.slate_size)  # the parts are shorter: they would not show that k > K
        return within_rules(round, lambda part: select(self, part, *args, **kwargs))

    return cast("Select", kept)
