"""Reward, the paper's Figures 4 and 5: does NeUClust collect the most? Successes of slates, paired by seed."""

from neuclust.analysis.claims import Answer, JudgedClaim
from neuclust.analysis.estimates import FEW_SEEDS, Estimate, counted, estimate, is_within_noise, with_error
from neuclust.analysis.groups import Contender
from neuclust.analysis.published import NAMES
from neuclust.analysis.reproduction.results import Reproduction
from neuclust.experiment.reproduction.phases import AUTHORS, PAPER, PAPER_POLICIES


def reward_verdicts(found: Reproduction) -> list[JudgedClaim]:
    """NeUClust beside every other policy of the paper: expected reward, which has no luck of its own, and successes."""
    ours = found.contender(PAPER, "neuclust")
    others = [one for phase in (PAPER, AUTHORS) for one in found.contenders(phase) if _is_rival(phase, one)]
    judged = [] if ours is None else [_judged(ours, other) for other in others]
    return [verdict for verdict in judged if verdict is not None]


def _is_rival(phase: str, one: Contender) -> bool:
    """A policy of the paper; of the authors' settings the one whose paper's description is a single sentence."""
    names = PAPER_POLICIES if phase == PAPER else ("neural-mab",)
    return one.policy in names and not one.policy.startswith("neuclust")


def _judged(ours: Contender, other: Contender) -> JudgedClaim | None:
    gaps = _gaps(ours, other, "expected_reward")
    if not gaps:
        return None
    coins = _gaps(ours, other, "successes")
    gap = estimate(gaps)
    evidence = (
        f"Expected reward {with_error(ours.over_seeds('expected_reward'))} against "
        f"{with_error(other.over_seeds('expected_reward'))}; paired difference {with_error(gap, sign=True)} over "
        f"{counted(len(gaps), 'common seed')}, of slates that succeeded {with_error(estimate(coins), sign=True)}"
        f"{f'; at least {FEW_SEEDS} are needed to say anything' if len(gaps) < FEW_SEEDS else ''}."
    )
    name = f"{NAMES[other.policy]}{'' if other.preset == 'default' else f' ({other.preset})'}"
    return JudgedClaim(f"NeUClust collects more reward than {name}", _answer(gap, len(gaps)), evidence)


def _gaps(ours: Contender, other: Contender, column: str) -> list[float]:
    mine, theirs = ours.values(column), other.values(column)
    return [mine[seed] - theirs[seed] for seed in mine if seed in theirs]


def _answer(gap: Estimate, pairs: int) -> Answer:
    if pairs < FEW_SEEDS or gap.error is None or is_within_noise(gap):
        return "cannot be told"
    return "reproduces" if gap.mean > 0 else "does not reproduce"
