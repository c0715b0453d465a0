"""What live slates earn beside holdout, shadow, fallback and random ones: intervals, and a sentence each."""

from dataclasses import dataclass
from typing import Any

from neuclust.evaluation.intervals.choice import ENOUGH, LEAST
from neuclust.serve.statistics.buckets import ARMS, ArmSums, Bucket
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.sums import Estimate, Sums, difference_estimate, mean_estimate
from neuclust.serve.statistics.units import Units

EXPLORE = 'PATCH this recommender with {"exploration": 0.1}'


def comparison(statistics: Statistics, units: Units) -> list[dict[str, Any]]:
    """One row per arm that was used and one for random: decisions, answered, clicks, reward, difference, sentence.

    Of the time up to which nearly all rewards are there, where that is enough; else of all, and `provisional`.
    """
    everything, until = statistics.buckets.total(), statistics.buckets.settled_until()
    settled = Bucket() if until is None else statistics.buckets.total(until)
    known = sum(arm.clicks.count for arm in settled.arms.values()) >= ENOUGH
    total = settled if known else everything
    told_in = _ToldIn(units, units.seen(statistics), max(len(statistics.slots), 1))
    rows = [
        told_in.arm_row(name, total) | {"decisions": everything.arms[name].decisions}
        for name in ARMS
        if name in everything.arms
    ]
    if "live" in everything.arms:
        rows.append(told_in.random_row(statistics, total))
    provisional = not known and any(arm.pending for arm in everything.arms.values())
    return [row | {"provisional": provisional} for row in rows]


@dataclass(frozen=True, slots=True)
class _ToldIn:
    """Rows and sentences in some units, of slates of so many slots of which so many were seen on average."""

    units: Units
    seen: float
    slots: int

    def arm_row(self, name: str, total: Bucket) -> dict[str, Any]:
        arm, live = total.arms.get(name, ArmSums()), total.arms.get("live", ArmSums())
        clicks = self._clicks(arm.clicks)
        gap = None if name == "live" else self.units.difference(difference_estimate(live.clicks, arm.clicks))
        reward = self.units.per_slate(mean_estimate(arm.slates, (0.0, 1.0)))
        return {
            "arm": name, "answered": arm.clicks.count, "clicks": told(clicks), "estimated": False,
            "reward": told(reward), "difference": told(gap), "sentence": self._arm_sentence(name, clicks, live, gap),
        }  # fmt: skip

    def random_row(self, statistics: Statistics, total: Bucket) -> dict[str, Any]:
        ess, problem = statistics.weights.ess, random_problem(statistics)
        clicks = None if problem else self._clicks(total.random)
        gap = None if problem else self.units.difference(mean_estimate(total.gaps))
        row = {"arm": "random", "decisions": None, "answered": total.random.count, "estimated": True, "reward": None}
        if clicks is None or gap is None:
            said = problem or "random cannot be told yet: no answered decision explored so far."
            return {**row, "clicks": None, "difference": None, "sentence": said}
        live = clicks.mean + gap.mean  # of the same decisions
        said = self._both(live, "random", clicks.mean, gap)
        worth = f"exploring slots are worth {ess:.0f} even draws so far, {ENOUGH} are wanted"
        rough = f"; rough: {worth}" if ess < ENOUGH else ""
        return {**row, "clicks": told(clicks), "difference": told(gap), "sentence": f"{said}{rough}."}

    def _clicks(self, sums: Sums) -> Estimate | None:
        return self.units.per_request(mean_estimate(sums, (0.0, float(self.slots))), self.seen)

    def _arm_sentence(self, name: str, clicks: Estimate | None, live: ArmSums, gap: Estimate | None) -> str:
        if clicks is None:
            return f"{name}: no decision has its reward yet."
        beside = None if name == "live" else self._clicks(live.clicks)
        if beside is None:
            number, words = self.units.number(clicks.mean), self.units.words
            return f"{name} earns {number}{words} per request{self.units.ends(clicks)}."
        return f"{self._both(beside.mean, name, clicks.mean, gap)}."

    def _both(self, live: float, name: str, other: float, gap: Estimate | None) -> str:
        number, words = self.units.number, self.units.words
        more = "" if gap is None else f": {number(gap.mean, signed=True)}{self.units.ends(gap)}"
        return f"live earns {number(live)}{words} per request, {name} {number(other)}{more}"


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
