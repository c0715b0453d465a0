"""Rows of a log as estimators read them: chances of every logged slate under what ran and under each candidate."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from neuclust.core import Policy, Round
from neuclust.errors import DataError
from neuclust.evaluation.candidates import Candidate, Target, learn, parts, target_of
from neuclust.evaluation.designs import next_chances, slot_chances, slot_marginals
from neuclust.evaluation.pseudo_inverse import pseudo_inverse_weight
from neuclust.evaluation.reward_model import RewardModel
from neuclust.evaluation.slate_values import SlateValue
from neuclust.evaluation.weight_bounds import largest_weight, slate_moments, slot_moments, supported, widen
from neuclust.logs.decisions import LoggedDecision
from neuclust.randomness import stream

Floats = NDArray[np.float64]
BLOCKS = 6  # of the evaluated rows, for cross-fitting
CHECKED = 50  # decisions whose logged propensities are compared with those of their design
TOLERANCE = 1e-6
FAMILIES = ("slate", "prefix", "slots")  # of weights: of whole slates, of slots up to one, of single slots
SAMPLED = 16  # slates of a random target by which the model's value of an interacting slate is averaged


class Log(Protocol):
    """What the readers give: runs, and decisions that can be gone through several times."""

    def decisions(self) -> Iterator[LoggedDecision]: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """How rows are scored: the first `fitted` decisions teach the candidates, the others are evaluated.

    `replay`: nothing is set aside, candidates learn every logged slate after it was scored. `needs`: marginals,
    pseudo-inverse weights, a model; what no estimator asks for is not computed.
    """

    value: SlateValue
    fitted: int
    evaluated: int
    slate_size: int
    dim: int
    learning: bool  # the logger learned: reward models may only use earlier rows
    replay: bool = False
    needs: frozenset[str] = frozenset()
    unseen: Literal["error", "zero", "drop"] = "error"
    seed: int = 0


@dataclass(slots=True)
class Scored:
    """Rows of one candidate under construction."""

    candidate: Candidate
    policy: Policy
    target: Floats
    target_marginals: Floats
    pi_weights: Floats
    v_hat: Floats
    model_target: Floats
    moments: dict[str, Floats]  # E[w²] and E[w³] of every row (m, 2) by family of weights, NaN without a closed form
    unsupported: int = 0


@dataclass(slots=True)
class Table:
    """What all candidates share, one row per evaluated decision: (m, k), (m,)."""

    rewards: Floats
    slate_rewards: Floats
    logging: Floats
    logging_marginals: Floats
    q_hat: Floats
    model_logged: Floats
    slots: NDArray[np.bool_]
    largest: dict[str, float | None]  # weight that the designs allow, by estimator; None: not known
    scored: list[Scored] = field(default_factory=list)
    filled: int = 0
    dropped: int = 0


Watch = Callable[[str, int, int], None]  # what is done, how many rows of how many


def score(log: Log, candidates: Sequence[Candidate], plan: Plan, watch: Watch) -> Table:
    """Fit the candidates, then score every evaluated decision under all of them."""
    table = _empty(candidates, plan)
    model = _fitted(log, table, plan, watch)
    for row, decision in enumerate(_evaluated(log, plan)):
        watch("scoring", row, plan.evaluated)
        seen = observed(decision, plan)
        if seen is None:
            table.dropped += 1
        else:
            block = row * BLOCKS // max(plan.evaluated, 1) + 1
            means = None if model is None else model.means(block, decision.round.contexts.numpy())
            _score_row(table, decision, seen, means, plan)
        if plan.replay:
            for each in table.scored:
                learn(each.policy, decision)
    watch("scoring", plan.evaluated, plan.evaluated)
    return _cut(table)


def _empty(candidates: Sequence[Candidate], plan: Plan) -> Table:
    m, k = plan.evaluated, plan.slate_size

    def zeros(*shape: int) -> Floats:
        return np.zeros(shape)

    table = Table(
        zeros(m, k), zeros(m), np.ones((m, k)), np.ones((m, k)), zeros(m, k), zeros(m), np.zeros((m, k), np.bool_),
        {"ips": 0.0, "iips": 0.0 if "marginals" in plan.needs else None},
    )  # fmt: skip
    table.scored = [
        Scored(
            each,
            each.built(plan.dim, k),
            np.ones((m, k)),
            np.ones((m, k)),
            zeros(m),
            zeros(m, k),
            zeros(m),
            {family: np.full((m, 2), np.nan) for family in FAMILIES},
        )
        for each in candidates
    ]
    return table


def _fitted(log: Log, table: Table, plan: Plan, watch: Watch) -> RewardModel | None:
    """One pass: candidates learn the first decisions; sums of the reward model are taken over all of them."""
    wanted = "model" in plan.needs
    model = RewardModel(plan.dim, BLOCKS + 1, "earlier" if plan.learning or plan.replay else "others")
    for at, decision in enumerate(log.decisions()):
        if at < plan.fitted:
            watch("fitting", at, plan.fitted)
            for each in table.scored:
                learn(each.policy, decision)
        elif not wanted:
            break
        if wanted:
            block = 0 if at < plan.fitted else (at - plan.fitted) * BLOCKS // max(plan.evaluated, 1) + 1
            contexts = decision.round.contexts.numpy()
            model.observe(block, contexts[decision.slate], decision.rewards)
    watch("fitting", plan.fitted, plan.fitted)
    return model if wanted else None


def _evaluated(log: Log, plan: Plan) -> Iterator[LoggedDecision]:
    for at, decision in enumerate(log.decisions()):
        if at >= plan.fitted:
            yield decision


def observed(decision: LoggedDecision, plan: Plan) -> tuple[Floats, float] | None:
    """Rewards (k,) and the slate's own; None where the row is left out. Slots that were not shown count 0."""
    rewards, slate = decision.rewards, decision.slate_reward
    if decision.shown is not None:
        rewards = np.where(decision.shown, rewards, 0.0)
    own = plan.value.name == "slate"
    missing = np.isnan(slate) if own else bool(np.isnan(rewards).any())
    if not missing:
        return np.nan_to_num(rewards), slate
    if plan.unseen == "error":
        what = "the reward of the slate" if own else "a reward for every slot"
        advice = "count missing ones as 0 (zero) or leave such rows out (drop)"
        raise DataError(f"decision {decision.id}: expected {what}, got none; {advice}", field="unseen")
    return None if plan.unseen == "drop" else (np.nan_to_num(rewards), float(np.nan_to_num(slate)))


def _score_row(
    table: Table, decision: LoggedDecision, seen: tuple[Floats, float], means: Floats | None, plan: Plan
) -> None:
    """Fill the next row; `means` (n,) are the model's rewards of the offered arms."""
    row, k = table.filled, len(decision.slate)
    table.filled += 1
    table.rewards[row, :k], table.slate_rewards[row] = seen
    table.slots[row, :k] = True
    table.logging[row, :k] = logged_chances(decision, row)
    slots = np.arange(k)
    widen(table.largest, "ips", largest_weight(decision))
    if "marginals" in plan.needs:
        marginals = slot_marginals(decision.design, decision.round)
        table.logging_marginals[row, :k] = marginals[slots, decision.slate]
        least = marginals[:k].min(1)
        widen(table.largest, "iips", float((1 / least).sum()) if least.all() else None)
    if means is not None:
        table.q_hat[row, :k] = means[decision.slate]
        table.model_logged[row] = plan.value.expected(means[decision.slate])
    for each in table.scored:
        target = target_of(each.policy, decision.round, each.candidate.draws, each.candidate.seed)
        each.unsupported += not supported(decision, target)
        each.target[row, :k] = slot_chances(target, decision.round, decision.slate.tolist())
        if "marginals" in plan.needs:
            own = slot_marginals(target, decision.round)
            each.target_marginals[row, :k] = own[slots, decision.slate]
            each.moments["slots"][row] = slot_moments(own[:k], marginals[:k])
        each.moments["slate"][row], each.moments["prefix"][row] = slate_moments(target, decision)
        if "pi" in plan.needs:
            each.pi_weights[row] = pseudo_inverse_weight(
                decision.design, target, decision.round, decision.slate.tolist()
            )
        if means is not None:
            each.v_hat[row, :k] = _following_means(target, decision, means, each.target[row, :k])
            each.model_target[row] = model_value(target, decision.round, means, plan)


def logged_chances(decision: LoggedDecision, row: int) -> Floats:
    """The logged propensities (k,), compared with those of the design in the first rows."""
    chances, design = decision.propensities, decision.design
    if chances is None:
        if design.kind == "unknown":
            advice = "log with exploration (Recommender(..., exploration=...)), which knows them"
            raise DataError(f"decision {decision.id}: expected propensities, got none of an unknown design; {advice}")
        return slot_chances(design, decision.round, decision.slate.tolist())
    if row < CHECKED and design.kind != "unknown":
        again = slot_chances(design, decision.round, decision.slate.tolist())
        if not np.allclose(again, chances, rtol=TOLERANCE, atol=0):
            got = f"got {chances.tolist()!r:.100} where the design {design.kind} gives {again.tolist()!r:.100}"
            raise DataError(f"decision {decision.id}: expected the propensities of its design, {got}; log one of them")
    return chances


def _following_means(target: Target, decision: LoggedDecision, means: Floats, chances: Floats) -> Floats:
    """E[m(a) | S_1, …, S_{j−1}] under the target per slot (k,), 0 from where the target leaves the logged slate."""
    found, slate = np.zeros(len(chances)), decision.slate.tolist()
    reached = np.concatenate([[True], np.cumprod(chances[:-1]) > 0])
    for place in np.flatnonzero(reached).tolist():
        found[place] = next_chances(target, decision.round, slate[:place]) @ means
    return found


def model_value(target: Target, round: Round, means: Floats, plan: Plan) -> float:
    """The model's value of the target in a round: exact for sums, else over its slates or some drawn ones."""
    if not plan.value.table:
        return float((slot_marginals(target, round) @ means).sum())
    certain = [part.base for part in parts(target) if part.kind == "deterministic"]
    if len(certain) == len(parts(target)):
        return float(np.mean([plan.value.expected(means[list(base)]) for base in certain]))
    return float(np.mean([plan.value.expected(means[slate]) for slate in drawn_slates(target, round, plan.seed)]))


def drawn_slates(target: Target, round: Round, seed: int) -> Iterable[list[int]]:
    """`SAMPLED` slates of a target, drawn slot by slot."""
    rng = stream(seed, "evaluation slates", round.t)
    for _ in range(SAMPLED):
        slate: list[int] = []
        while len(slate) < round.slate_size:
            chances = next_chances(target, round, slate)
            if not chances.any():
                break
            slate.append(int(rng.choice(len(chances), p=chances / chances.sum())))
        yield slate


def _cut(table: Table) -> Table:
    """Without the rows that were left out."""
    m = table.filled
    for name in ("rewards", "slate_rewards", "logging", "logging_marginals", "q_hat", "model_logged", "slots"):
        setattr(table, name, getattr(table, name)[:m])
    for each in table.scored:
        for name in ("target", "target_marginals", "pi_weights", "v_hat", "model_target"):
            setattr(each, name, getattr(each, name)[:m])
        each.moments = {family: moments[:m] for family, moments in each.moments.items()}
    return table
