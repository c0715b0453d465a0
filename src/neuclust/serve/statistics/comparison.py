"""What live slates earn beside holdout, shadow, fallback and random ones: intervals, and a sentence each."""

from typing import Any

from neuclust.evaluation.intervals.choice import ENOUGH, LEAST
from neuclust.serve.statistics.buckets import ARMS, ArmSums, Bucket
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.sums import Estimate, Sums, difference_estimate, mean_estimate

EXPLORE = 'PATCH this recommender with {"exploration": 0.1}'


def comparison(statistics: Statistics) -> list[dict[str, Any]]:
    """One row per arm that was used and one for random: decisions, answered, clicks, reward, difference, sentence.

    Of the time up to which nearly all rewards are there, where that is enough; else of all, and `provisional`.
    """
    everything, until = statistics.buckets.total(), statistics.buckets.settled_until()
    settled = Bucket() if until is None else statistics.buckets.total(until)
    known = sum(arm.clicks.count for arm in settled.arms.values()) >= ENOUGH
    total, slots = settled if known else everything, max(len(statistics.slots), 1)
    rows = [
        _arm_row(name, total, slots) | {"decisions": everything.arms[name].decisions}
        for name in ARMS
        if name in everything.arms
    ]
    if "live" in everything.arms:
        rows.append(_random_row(statistics, total, slots))
    provisional = not known and any(arm.pending for arm in everything.arms.values())
    return [row | {"provisional": provisional} for row in rows]


def _arm_row(name: str, total: Bucket, slots: int) -> dict[str, Any]:
    arm, live = total.arms.get(name, ArmSums()), total.arms.get("live", ArmSums())
    clicks = mean_estimate(arm.clicks, (0.0, float(slots)))
    gap = None if name == "live" else difference_estimate(live.clicks, arm.clicks)
    return {
        "arm": name, "answered": arm.clicks.count, "clicks": told(clicks), "estimated": False,
        "reward": told(mean_estimate(arm.slates, (0.0, 1.0))), "difference": told(gap),
        "sentence": _arm_sentence(name, clicks, live.clicks, gap),
    }  # fmt: skip


def _arm_sentence(name: str, clicks: Estimate | None, live: Sums, gap: Estimate | None) -> str:
    if clicks is None:
        return f"{name}: no decision has its reward yet."
    if name == "live" or live.mean is None:
        return f"{name} earns {number(clicks.mean)} clicks per request{ends(clicks)}."
    return f"live earns {number(live.mean)} clicks per request, {name} {number(clicks.mean)}{_difference(gap)}."


def _random_row(statistics: Statistics, total: Bucket, slots: int) -> dict[str, Any]:
    ess, problem = statistics.weights.ess, random_problem(statistics)
    clicks = None if problem else mean_estimate(total.random, (0.0, float(slots)))
    gap = None if problem else mean_estimate(total.gaps)
    row = {"arm": "random", "decisions": None, "answered": total.random.count, "estimated": True, "reward": None}
    if clicks is None or gap is None:
        said = problem or "random cannot be told yet: no answered decision explored so far."
        return {**row, "clicks": None, "difference": None, "sentence": said}
    live = clicks.mean + gap.mean  # of the same decisions
    said = f"live earns {number(live)} clicks per request, random {number(clicks.mean)}{_difference(gap)}"
    rough = (
        f"; rough: exploring slots are worth {ess:.0f} even draws so far, {ENOUGH} are wanted" if ess < ENOUGH else ""
    )
    return {**row, "clicks": told(clicks), "difference": told(gap), "sentence": f"{said}{rough}."}


def random_problem(statistics: Statistics) -> str:
    """Why random cannot be estimated, and what to do; empty: it can."""
    weights = statistics.weights
    if weights.count == 0 and weights.unsupported > 0:
        return f"random cannot be told: slates are drawn without exploration, or under rules. {EXPLORE}."
    if weights.ess < LEAST:
        so_far = f"exploring slots so far are worth {weights.ess:.1f} even draws, {LEAST} are needed"
        return f"random cannot be told yet: {so_far}; wait, or explore more."
    return ""


def told(estimate: Estimate | None) -> dict[str, Any] | None:
    """An estimate as JSON."""
    return None if estimate is None else estimate.to_json()


def number(value: float, signed: bool = False) -> str:
    """A number of clicks for people."""
    text = f"{value:+.2f}" if signed else f"{value:.2f}"
    return text.replace("-", "−")


def ends(estimate: Estimate, signed: bool = False) -> str:
    """The interval behind a number; empty where there is none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({number(estimate.low, signed)} to {number(estimate.high, signed)})"


def _difference(gap: Estimate | None) -> str:
    return "" if gap is None else f": {number(gap.mean, signed=True)}{ends(gap)}"
