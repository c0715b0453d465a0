"""A slate put together across clusters, by its optimistic value.

    U(S) = Σ_{i ∈ S} v_i + ωK·F(r_S) + δ·D(S),      D(S) = Σ_c (1 − Π_{i ∈ S} (1 − p_ic))

v_i is an arm's optimistic score, r_S what F reads of the slate's arms (their v, or their means), rectified and sorted,
and p_ic the membership of arm i in category c: 0 or 1, which makes D the number of distinct categories, or soft.

Where F reads v and δ = 0, the slate is the greedy one: arms by (−v, tie), each taken if the constraints still allow
it. *Proof.* Slates that keep to the constraints are the bases of a matroid (`slates.constraints`). Its greedy basis B
has, for every j, a j-th largest v at least that of any other basis S (Gale 1968): otherwise take the first j where it
fails; the j best arms of S are independent, the j − 1 best of B are too, so one of the former extends the latter with
a v above B's j-th, and greedy would have taken it. Adding the required arms to both keeps that order. F reads sorted
inputs and rises in each, so U(B) ≥ U(S) for any such F and ω ≥ 0. Without constraints B is the top K by v (CN-UCB).

Where ω = 0 and memberships are 0 or 1, counting categories stays greedy: the n_c arms taken of category c are its best
by v, with utility Σ_{j ≤ n_c} v_cj + δ·1[n_c ≥ 1]. Its steps v_c1 + δ ≥ v_c2 ≥ … fall, and a separable concave sum over
whole numbers is maximised by taking the largest step K times.

Elsewhere greedy is a start, single swaps improve it, and where few arms can still better it all their slates are tried.
Bounds say which: a slate that holds arm i has at most the utility
Σ of the K − 1 largest v + v_i + ωK·F(the K − 1 largest r, r_i) + δ·min(K, number of categories),
since F rises in each sorted input. The same with the largest v and r of a cluster skips the cluster whole.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from neuclust.configuration import NON_NEGATIVE, checked
from neuclust.kernels.ranking import sort_positions, sound
from neuclust.slates.constraints import Rules

SlateValue = Callable[[Tensor], Tensor]  # F of slates' arm rewards (m, K), in any order: (m,)
SLACK = 1e-9  # a gain below this share of a slate's utility is rounding


@dataclass(frozen=True, slots=True)
@checked(exact_slates=NON_NEGATIVE, sweeps=NON_NEGATIVE)
class AssemblyConfig:
    """Search where greedy is not known to be best: `sweeps` rounds of single swaps, then all slates of the arms that
    may still enter, if they are at most `exact_slates`. `soft` counts categories by responsibilities instead of labels,
    where they are the policy's clusters."""

    exact_slates: int = 20_000
    sweeps: int = 20
    soft: bool = False


@dataclass(frozen=True, slots=True)
class SlateUtility:
    """What U(S) is made of, for a round's n arms: v (n,), r (n,), the tie rank (n,), F, ωK, p (n, C) and δ."""

    values: Tensor
    reads: Tensor
    rank: Tensor
    slate_value: SlateValue
    slate_weight: float = 0.0
    membership: Tensor | None = None
    diversity: float = 0.0

    @property
    def greedy_is_best(self) -> bool:
        """Whether U rises with every v and with nothing else."""
        same = self.reads is self.values or self.slate_weight == 0
        return same and (self.diversity == 0 or self.membership is None)

    def of(self, slates: Tensor) -> Tensor:
        """U of slates of positions (m, k), k ≤ K: (m,)."""
        total = self.values[slates].sum(1)
        if self.slate_weight:
            total = total + self.slate_weight * self.slate_value(self.reads[slates])
        if self.diversity == 0 or self.membership is None:
            return total
        return total + self.diversity * (1 - (1 - self.membership[slates]).prod(1)).sum(1)

    def of_one(self, slate: Tensor) -> float:
        """U of one slate (k,)."""
        return float(self.of(slate.unsqueeze(0))[0])


@dataclass(frozen=True, slots=True)
class Assembled:
    """A slate (K,), best arm first, its U, and whether no slate of the candidates has a larger one."""

    positions: Tensor
    value: float
    exact: bool


def assemble(
    utility: SlateUtility, rules: Rules, k: int, config: AssemblyConfig, clusters: Tensor | None = None
) -> Assembled:
    """The slate of K arms that keeps to the rules with the largest U found; `clusters` (n,) are skipped whole."""
    if utility.greedy_is_best:
        return _finished(utility, greedy_basis(utility.values, utility.rank, rules, k), exact=True)
    clusters = torch.zeros_like(rules.categories) if clusters is None else clusters
    candidates = undominated(utility, rules, clusters, k)
    slate = improved(utility, rules, greedy_slate(utility, rules, candidates, k), candidates, config.sweeps)
    open_arms = _may_enter(utility, slate, candidates, clusters)
    slate, exact = _best_of_all(utility, rules, slate, open_arms, config.exact_slates)
    return _finished(utility, slate, exact and not config.soft)


def greedy_basis(values: Tensor, rank: Tensor, rules: Rules, k: int) -> Tensor:
    """The required arms and then arms by (−v, rank) while their categories have room: (K,)."""
    free = _free(rules)
    order = free[sort_positions(values[free], rank[free])]
    _, category = torch.unique(rules.categories, return_inverse=True)
    room = rules.cap - torch.bincount(category[rules.required], minlength=int(category.max()) + 1)
    fits = _places(category[order]) < room[category[order]]
    return torch.cat([rules.required, order[fits][: k - len(rules.required)]])


def _free(rules: Rules) -> Tensor:
    """Positions allowed and not required."""
    open_ = rules.allowed.clone()
    open_[rules.required] = False
    return torch.nonzero(open_).flatten()


def _places(groups: Tensor) -> Tensor:
    """How many earlier entries share each entry's group: (m,)."""
    order = torch.argsort(groups, stable=True)
    sizes = torch.bincount(groups)
    starts = (torch.cumsum(sizes, 0) - sizes)[groups[order]]
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=groups.device) - starts
    return places


def undominated(utility: SlateUtility, rules: Rules, clusters: Tensor, k: int) -> Tensor:
    """Free arms that fewer than K of their cluster and category beat in both v and r, by (−v, rank): (m,).
    Of K arms that beat another one, a slate that holds it lacks at least one; swapping the two lowers neither Σv nor F
    and changes no count. With r = v these are the group's top K."""
    free = _free(rules)
    order = free[sort_positions(utility.values[free], utility.rank[free])]
    pairs = torch.stack([clusters[order], rules.categories[order]], 1)
    group = torch.unique(pairs, dim=0, return_inverse=True)[1]
    if utility.reads is utility.values:
        return order[_places(group) < k]
    best: list[list[float]] = [[] for _ in range(int(group.max()) + 1)]
    reads, kept = utility.reads[order].tolist(), []
    for place, (read, member) in enumerate(zip(reads, group.tolist(), strict=True)):
        heap = best[member]  # the K largest r of the arms with a larger v
        if len(heap) < k:
            heapq.heappush(heap, read)
        elif read > heap[0]:
            heapq.heapreplace(heap, read)
        else:
            continue
        kept.append(place)
    return order[torch.tensor(kept, dtype=torch.int64, device=order.device)]


def greedy_slate(utility: SlateUtility, rules: Rules, candidates: Tensor, k: int) -> Tensor:
    """One arm after the other, each the one that makes U largest; slots still empty count as rewards of 0."""

    def value(reads: Tensor) -> Tensor:
        return utility.slate_value(torch.nn.functional.pad(reads, (0, k - reads.shape[1])))

    padded, chosen = replace(utility, slate_value=value), rules.required
    for _ in range(k - len(rules.required)):
        options = candidates[_fitting(rules, chosen, candidates)]
        tried = torch.cat([chosen.expand(len(options), -1), options.unsqueeze(1)], 1)
        chosen = tried[_first_largest(padded.of(tried))]
    return chosen


def _fitting(rules: Rules, chosen: Tensor, candidates: Tensor) -> Tensor:
    """Which candidates are new and of a category with room, (m,) bool."""
    taken = (rules.categories[candidates].unsqueeze(1) == rules.categories[chosen]).sum(1)
    return (taken < rules.cap) & ~torch.isin(candidates, chosen)


def improved(utility: SlateUtility, rules: Rules, slate: Tensor, candidates: Tensor, sweeps: int) -> Tensor:
    """Swap one arm for another while that raises U, the best swap first, at most `sweeps` times."""
    fixed = torch.isin(slate, rules.required)
    for _ in range(sweeps):
        tried = _swaps(rules, slate, fixed, candidates)
        if not len(tried):
            return slate
        values = utility.of(tried)
        winner = _first_largest(values)
        if not _above(float(values[winner]), utility.of_one(slate)):
            return slate
        slate = tried[winner]
    return slate


def _swaps(rules: Rules, slate: Tensor, fixed: Tensor, candidates: Tensor) -> Tensor:
    """Every slate that differs in one arm that is not required, (m, K)."""
    found = []
    for slot in torch.nonzero(~fixed).flatten().tolist():
        others = torch.cat([slate[:slot], slate[slot + 1 :]])
        options = candidates[_fitting(rules, others, candidates) & (candidates != slate[slot])]
        tried = slate.repeat(len(options), 1)
        tried[:, slot] = options
        found.append(tried)
    return torch.cat(found) if found else slate.new_zeros(0, len(slate))


def _may_enter(utility: SlateUtility, slate: Tensor, candidates: Tensor, clusters: Tensor) -> Tensor:
    """Candidates whose bound, and whose cluster's bound, exceeds the slate's U; the slate's own arms stay."""
    floor = utility.of_one(slate)
    names, of = torch.unique(clusters[candidates], return_inverse=True)
    tops = [
        torch.full((len(names),), -math.inf, dtype=source.dtype).scatter_reduce(0, of, source[candidates], "amax")
        for source in (utility.values, utility.reads)
    ]
    alive = bounds(utility, tops[0], tops[1], slate, candidates) > floor
    arms = candidates[alive[of]]
    arms = arms[bounds(utility, utility.values[arms], utility.reads[arms], slate, candidates) > floor]
    return torch.cat([slate, arms[~torch.isin(arms, slate)]])


def bounds(utility: SlateUtility, values: Tensor, reads: Tensor, slate: Tensor, candidates: Tensor) -> Tensor:
    """An upper bound on U of a slate that holds an arm with this v and r, (m,), among slate and candidates."""
    k, pool = len(slate), torch.unique(torch.cat([slate, candidates]))
    best = torch.topk(utility.values[pool], k - 1).values.sum() + values
    if utility.slate_weight:
        others = torch.topk(utility.reads[pool], k - 1).values.expand(len(reads), -1)
        best = best + utility.slate_weight * utility.slate_value(torch.cat([others, reads.unsqueeze(1)], 1))
    if utility.membership is not None:
        best = best + utility.diversity * min(k, utility.membership.shape[1])
    return best


def _best_of_all(utility: SlateUtility, rules: Rules, slate: Tensor, arms: Tensor, limit: int) -> tuple[Tensor, bool]:
    """Every slate of these arms that keeps to the rules, if they are few; the given slate wins ties."""
    free = arms[~torch.isin(arms, rules.required)]
    missing = len(slate) - len(rules.required)
    if math.comb(len(free), missing) > limit:
        return slate, False
    rows = torch.combinations(torch.arange(len(free)), missing) if missing else torch.zeros(1, 0, dtype=torch.int64)
    tried = torch.cat([rules.required.expand(len(rows), -1), free[rows]], 1)
    held = rules.categories[tried]
    tried = tried[(held.unsqueeze(2) == held.unsqueeze(1)).sum(2).amax(1) <= rules.cap]
    values = utility.of(tried)
    winner = _first_largest(values)
    return (tried[winner] if _above(float(values[winner]), utility.of_one(slate)) else slate), True


def _above(new: float, old: float) -> bool:
    return new > old + SLACK * max(1.0, abs(old))


def _first_largest(values: Tensor) -> int:
    """Index of the largest, the first of those equal up to rounding: candidates come by (−v, tie)."""
    top = sound(values).max()
    return int(torch.nonzero(values >= top - SLACK * torch.clamp(top.abs(), min=1.0))[0])


def _finished(utility: SlateUtility, slate: Tensor, exact: bool) -> Assembled:
    ordered = slate[sort_positions(utility.values[slate], utility.rank[slate])]
    return Assembled(ordered, utility.of_one(ordered), exact)
