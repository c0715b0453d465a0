"""Randomised exploration around any policy, with exact propensities (`slates.propensities`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from neuclust.core import Design, Feedback, Policy, Round, Slate
from neuclust.errors import ConfigError, DataError, SaveError
from neuclust.kernels.ranking import top
from neuclust.models.state import nested, take_whole, under
from neuclust.randomness import stream
from neuclust.slates.propensities import Exploration, SlateSampler
from neuclust.slates.rules import RowRules, checked_answer, keeps, row_rules, within_rules


@runtime_checkable
class HasScores(Protocol):
    """A policy that says what it ranks arms by: (n,), larger is better."""

    def scores(self, round: Round) -> Tensor: ...


class Exploring:
    """The slate of another policy, with slots that explore: each is filled by P(a | S) of `slates.propensities`.

    The base slate is the policy's own. The pool are its arms and those of the best scores besides, `exploration.pool`
    in all. Propensities are the chances given the base slate, also where that one is itself random, which keeps
    importance weighting unbiased. Random numbers are keyed by (seed, round key).
    """

    name = "exploring"

    def __init__(self, policy: Policy, exploration: Exploration | None = None, seed: int = 0) -> None:
        if not isinstance(policy, Policy):
            raise ConfigError(f"expected a policy to explore around, got {policy!r:.100}", field="policy")
        self.policy, self.seed = policy, seed
        self.exploration = Exploration() if exploration is None else exploration

    def select(self, round: Round) -> Slate:
        """The policy's slate, in which some slots are drawn anew, with the chance of each."""
        rules = row_rules(round)
        base = base_slate(self.policy, round, rules)
        pool = pooled_arms(self.policy, round, rules, base.positions, self.exploration.pool)
        sampler = SlateSampler(base.positions, pool, round, self.exploration, rules)
        drawn = sampler.draw(stream(self.seed, "exploring", round.key))
        rows = drawn.positions.tolist()
        beliefs = _beliefs(base, base.positions)
        new = [row for row in rows if row not in beliefs]
        if new:  # arms that are not in the base slate, asked for by themselves
            beliefs |= _beliefs(*_asked(self.policy, round, torch.tensor(new), len(new)))
        explored = drawn.explored | _of_base(base, rows)
        device = drawn.positions.device
        return Slate(
            drawn.positions,
            torch.tensor([beliefs[row][0] for row in rows], dtype=torch.float64, device=device),
            torch.tensor([beliefs[row][1] for row in rows], dtype=torch.float64, device=device),
            propensities=drawn.propensities,
            cluster=None if new else base.cluster,
            explored=explored if bool(explored.any()) else None,
            design=_design(base.positions, pool, self.exploration),
        )

    def update(self, round: Round, slate: Slate, feedback: Feedback) -> None:
        """What was played is learned by the policy, drawn or not."""
        self.policy.update(round, slate, feedback)

    def state_dict(self) -> dict[str, Tensor]:
        """The policy's state and the seed of the draws."""
        return {"seed": torch.tensor(self.seed), **nested("policy", self.policy.state_dict())}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from such a state."""
        seed = take_whole(state, "seed")
        self.policy.load_state_dict(under("policy", state))
        self.seed = seed

    def save(self, directory: Path) -> None:
        """Refused: a save names one policy and its settings, and this one is two."""
        advice = "save its `policy`, and after loading that one give it to Exploring again with the same seed"
        raise SaveError(f"{directory}: expected a policy that can be built by its name, got exploring; {advice}")


def _design(base: Tensor, pool: Tensor, exploration: Exploration) -> Design:
    around = tuple(base.tolist()), exploration.share, tuple(pool.tolist()), exploration.anywhere
    return Design("sequential", *around)


def base_slate(policy: Policy, round: Round, rules: RowRules) -> Slate:
    """The policy's slate; where it breaks the round's rules, the one that `within_rules` makes of its answers."""
    slate = policy.select(round)
    if round.rules is None or keeps(rules, slate.positions.tolist()):
        return slate
    return within_rules(round, policy.select)


def pooled_arms(policy: Policy, round: Round, rules: RowRules, base: Tensor, size: int) -> Tensor:
    """Positions of the base slate's arms and of the policy's best allowed arms besides, `size` in all: (p,).

    Fewer where fewer are allowed, and never fewer than the base slate has. The best are those of the largest scores,
    among equals of the smaller id; a policy without scores is asked for slates of the remaining arms.
    """
    free = torch.tensor(rules.allowed, device=base.device)
    free[base] = False
    rest = torch.nonzero(free).flatten()
    missing = min(size - len(base), len(rest))
    if missing <= 0:
        return base
    if isinstance(policy, HasScores):
        scores = _checked_scores(round, policy.scores(round))
        return torch.cat([base, rest[top(scores[rest], round.arm_ids[rest], missing)]])
    pool = base
    while missing > 0:
        best = _asked(policy, round, rest, min(round.slate_size, missing))[1]
        pool, rest, missing = torch.cat([pool, best]), rest[~torch.isin(rest, best)], missing - len(best)
    return pool


def _checked_scores(round: Round, scores: Tensor) -> Tensor:
    if scores.shape != round.arm_ids.shape:
        wanted = f"one score per arm, ({len(round.arm_ids)},), from the policy"
        raise DataError(f"round {round.t}: expected {wanted}, got shape {tuple(scores.shape)}")
    return scores


def _asked(policy: Policy, round: Round, rows: Tensor, k: int) -> tuple[Slate, Tensor]:
    """The policy's slate of k of these rows, without rules, and its positions as rows of the whole round."""
    part = round.only(rows, k)
    slate = policy.select(part)
    return slate, rows[checked_answer(part, slate)]


def _beliefs(slate: Slate, rows: Tensor) -> dict[int, tuple[float, float]]:
    """Mean and bonus of every row of a slate."""
    return dict(zip(rows.tolist(), zip(slate.means.tolist(), slate.bonuses.tolist(), strict=True), strict=True))


def _of_base(base: Slate, rows: Sequence[int]) -> Tensor:
    """Which rows the policy itself drew evenly from all arms: (k,) bool."""
    drawn = set() if base.explored is None else set(base.positions[base.explored].tolist())
    return torch.tensor([row in drawn for row in rows], device=base.positions.device)
