"""What the page shows of a recommender, as plain JSON: the answer of `GET …/overview`.

Its keys:

- `name`, `created`, `events`, `time`: of the log; `time` is that of its last event, in seconds;
- `learner`: `applied` events, how many it is `behind`, `lag` in seconds, `lessons`, when it last `said` so, `problem`,
  and how many messages it has `refused` or found too `late`, which were acknowledged and do not count;
- `versions`: the latest models, newest first, with `serving` on the one that is served; `promoted`: the pinned one;
- `health`: as it was given;
- `totals`: `decisions` and `answered` of all arms;
- `comparison`: `comparison.comparison`; `series`: `series.series`;
- `slots`: `slot`, `mean`, `low`, `high`, `count` of what live slots earn;
- `reward`: the range of an item's reward, `low` and `high`, whether it is `clicks`, the `digits` to show, and more; all
  numbers of the overview are in its units: `clicks` is what a request earned, or an item in all;
- `random`: `ess` (even draws that exploring slots are worth) and `problem`, a sentence where random cannot be told;
- `items`: what was chosen lately: `item`, `chosen`, `answered`, `clicks`; counts fade;
- `map`: `clusters.item_map`, with what was chosen lately beside every item, or null;
- `decisions`: the latest answers, as they were given.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from neuclust.serve.statistics.comparison import comparison, random_problem, told
from neuclust.serve.statistics.series import series
from neuclust.serve.statistics.statistics import Statistics
from neuclust.serve.statistics.sums import mean_estimate
from neuclust.serve.statistics.units import Units
from neuclust.serve.store.contract import Head, Progress, Version

KEY = "statistics"  # of `Progress.told`: what `Statistics.view` gave
MOST_VERSIONS = 10
MOST_DECISIONS = 20
MOST_CHOSEN = 20


def overview(
    head: Head,
    progress: Progress | None,
    versions: Sequence[Version],
    decisions: Sequence[Mapping[str, Any]],
    health: Mapping[str, Any],
    item_map: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The overview of a recommender; `versions` and `decisions` newest first, `item_map` of `clusters.item_map`."""
    saved = None if progress is None else progress.told.get(KEY)
    statistics = Statistics() if saved is None else Statistics.from_json(saved)
    units = Units.of(progress)
    return {
        "name": head.name, "created": head.created, "events": head.seq, "time": head.time,
        "learner": _learner(head, progress), "versions": _versions(head, versions), "promoted": head.promoted,
        "health": dict(health), "totals": _totals(statistics), "comparison": comparison(statistics, units),
        "series": series(statistics, units), "slots": _slots(statistics, units),
        "reward": units.to_json(),
        "random": {"ess": statistics.weights.ess, "problem": random_problem(statistics)},
        "items": _items(statistics, units)[:MOST_CHOSEN],
        "map": None if item_map is None else _chosen_on_map(item_map, statistics, units),
        "decisions": [dict(each) for each in decisions[:MOST_DECISIONS]],
    }  # fmt: skip


def chosen_lately(progress: Progress | None) -> list[str]:
    """Items that were chosen lately, most often first."""
    saved = None if progress is None else progress.told.get(KEY)
    return [] if saved is None else [row["item"] for row in _items(Statistics.from_json(saved), Units())]


def _learner(head: Head, progress: Progress | None) -> dict[str, Any]:
    if progress is None:
        return {
            "applied": 0, "behind": head.seq, "lag": head.time - head.created, "lessons": 0, "said": None,
            "refused": 0, "late": 0, "problem": "the learner has not looked at this recommender yet",
        }  # fmt: skip
    behind = max(head.seq - progress.seq, 0)
    lag = max(head.time - progress.time, 0.0) if behind else 0.0
    problem, counts = progress.told.get("problem") or None, progress.told.get("counts") or {}
    return {
        "applied": progress.seq, "behind": behind, "lag": lag, "lessons": progress.lessons, "said": progress.time,
        "refused": counts.get("refused", 0), "late": counts.get("late", 0), "problem": problem,
    }  # fmt: skip


def _versions(head: Head, versions: Sequence[Version]) -> list[dict[str, Any]]:
    latest = next((each.version for each in versions if each.model), None)
    serving = latest if head.promoted is None else head.promoted
    shown = [each for at, each in enumerate(versions) if at < MOST_VERSIONS or each.version == serving]
    return [
        {
            "version": each.version, "seq": each.seq, "time": each.time, "lessons": each.lessons, "model": each.model,
            "serving": each.version == serving,
        }
        for each in shown
    ]  # fmt: skip


def _totals(statistics: Statistics) -> dict[str, int]:
    arms = statistics.buckets.total().arms.values()
    return {"decisions": sum(arm.decisions for arm in arms), "answered": sum(arm.clicks.count for arm in arms)}


def _slots(statistics: Statistics, units: Units) -> list[dict[str, Any]]:
    found = ((slot, units.per_item(mean_estimate(sums, (0.0, 1.0)))) for slot, sums in enumerate(statistics.slots, 1))
    return [{"slot": slot, **(told(each) or {})} for slot, each in found if each is not None]


def _items(statistics: Statistics, units: Units) -> list[dict[str, Any]]:
    """What was chosen lately, most often first."""
    rows = sorted(statistics.items.counts.items(), key=lambda row: (-row[1][0], row[0]))
    return [
        {"item": item, "chosen": chosen, "answered": answered, "clicks": units.total(clicks, answered)}
        for item, (chosen, answered, clicks) in rows
    ]


def _chosen_on_map(item_map: Mapping[str, Any], statistics: Statistics, units: Units) -> dict[str, Any]:
    known = {row["item"]: row for row in _items(statistics, units)}
    nothing = {"chosen": 0.0, "clicks": 0.0}
    points = [
        {**point, **{name: known.get(point["item"], nothing)[name] for name in nothing}} for point in item_map["points"]
    ]
    return {**item_map, "points": points}
