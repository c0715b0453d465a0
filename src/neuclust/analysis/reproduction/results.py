"""A reproduction as numbers: Table 1 with published beside measured, and every row as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from neuclust.analysis.estimates import counted
from neuclust.analysis.groups import Contender, problems
from neuclust.analysis.published import NAMES, Published, comparable, published
from neuclust.analysis.sources import Failure
from neuclust.experiment.records import RunRecord
from neuclust.experiment.reproduction import phases
from neuclust.experiment.reproduction.phases import Phase, Reading, Scale, Study
from neuclust.experiment.tasks import labelled
from neuclust.registry import POLICIES

RunsByPhase = Mapping[str, tuple[RunRecord, ...]]
MEASURED = ("expected_regret", "clipped_regret", "successes", "clipped_floor", "seconds")


@dataclass(frozen=True, slots=True)
class Search:
    """What a search for settings was allowed, and what it chose; `best` None where it is not finished."""

    phase: str
    policy: str
    preset: str
    trials: int
    seeds: tuple[int, ...]
    rounds: int
    best: Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Everything a page is made of; `runs` are records by phase, `missing` counts those not played yet."""

    study: Study
    source: str | None  # the prepared file; None: the twin
    rounds: int
    slate_size: int
    scale: Scale
    runs: RunsByPhase
    missing: int = 0
    elbow: tuple[tuple[int, float], ...] = ()
    searches: tuple[Search, ...] = ()
    failures: tuple[Failure, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether the printed numbers are sums over as many rounds."""
        return comparable(self.rounds, self.slate_size)

    @property
    def any_run(self) -> RunRecord | None:
        """Any record: the floor and the value of the best slates are the same in all of them."""
        return next((run for runs in self.runs.values() for run in runs), None)

    @property
    def label(self) -> str:
        """What was played, in a few words: `quick: T = 120, 2 seeds`."""
        seeds = max((len(one.runs) for phase in self.runs for one in self.contenders(phase)), default=0)
        return f"{'quick: ' if self.scale.quick else ''}T = {self.rounds}, {counted(seeds, 'seed')}"

    def contenders(self, phase: str) -> tuple[Contender, ...]:
        found = problems(self.runs.get(phase, ()))
        return found[0].contenders if found else ()

    def contender(self, phase: str, policy: str) -> Contender | None:
        return next((one for one in self.contenders(phase) if one.policy == policy), None)

    def under(self, reading: Reading, policy: str, settings: Mapping[str, str] | None = None) -> Contender | None:
        """A policy of the phase of readings with the reading's settings, and others on top of them."""
        wanted = {**reading.settings, **(settings or {})}
        alike = (
            one for one in self.contenders(phases.READINGS) if (one.policy, one.preset) == (policy, reading.preset)
        )
        return next((one for one in alike if dict(one.runs[0].settings) == wanted), None)


def runs_by_phase(asked: Sequence[Phase], records: Mapping[str, RunRecord]) -> tuple[RunsByPhase, int]:
    """The records of every phase, labelled as that phase asks for them, and how many are missing."""
    found = {
        phase.name: tuple(labelled(records[task.key], task) for task in phase.tasks if task.key in records)
        for phase in asked
    }
    return found, len({task.key for phase in asked for task in phase.tasks} - set(records))


def without_settings(runs: RunsByPhase, common: Mapping[str, str]) -> RunsByPhase:
    """The same runs named without settings that all of a quick look share, which the page gives once."""

    def renamed(run: RunRecord) -> RunRecord:
        return replace(run, settings={key: value for key, value in run.settings.items() if common.get(key) != value})

    return {phase: tuple(map(renamed, records)) for phase, records in runs.items()}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of Table 1; `measured` is None for a policy that has not run."""

    protocol: str
    policy: str
    preset: str
    measured: Contender | None
    published: Published = field(default_factory=Published)

    @property
    def name(self) -> str:
        return NAMES.get(self.policy, self.policy)


def table_rows(found: Reproduction) -> list[Row]:
    """The paper's policies by its protocol, the same with other settings, and what the paper leaves out."""

    def row(phase: str, policy: str) -> Row:
        measured = found.contender(phase, policy)
        preset = phases.paper_preset(policy, found.study) if policy in POLICIES else "default"
        printed = published(found.study.name, policy)
        return Row(phase, policy, measured.preset if measured else preset, measured, printed)

    readings = [
        Row(phases.READINGS, one.policy, one.preset, one, published(found.study.name, one.policy))
        for reading in found.study.readings
        for policy in ("neuclust", "cn-ucb")
        if (one := found.under(reading, policy)) is not None
    ]
    others = [
        row(phase, policy) for phase in (phases.AUTHORS, phases.GRIDS, phases.TUNED) for policy in phases.PAPER_POLICIES
    ]
    return [
        *(row(phases.PAPER, policy) for policy in phases.PAPER_POLICIES),
        *readings,
        *(other for other in others if other.measured is not None),
        *(row(phases.PAPER, policy) for policy in phases.YARDSTICKS),
    ]


def inferred_regret(found: Reproduction, row: Row) -> float | None:
    """Expected regret behind a printed clipped one C, (C − floor) / ū*, from E[C] = Σu*(1 − u*) + Σu*(u* − u).

    Exact where u* is the same in every round, as on MovieLens; None where rounds cannot be compared.
    """
    run = found.any_run
    if row.published.regret is None or not found.comparable or run is None:
        return None
    return (row.published.regret - run.clipped_floor) * run.rounds / run.best_expected


def speed_ratio(found: Reproduction, row: Row) -> float | None:
    """Printed seconds over ours: other machines, so a size and not a measurement."""
    if row.measured is None or row.published.seconds is None or not found.comparable:
        return None
    return row.published.seconds / row.measured.over_seeds("seconds").mean


def row_json(found: Reproduction, row: Row) -> dict[str, Any]:
    """A line as plain numbers under names that stay; None where there is none."""
    one = row.measured
    regret, clipped, reward, floor, seconds = (None if one is None else one.over_seeds(column) for column in MEASURED)
    return {
        "policy": row.policy,
        "preset": row.preset,
        "protocol": row.protocol,
        "settings": one.settings if one else "",
        "expected_regret_mean": regret and regret.mean,
        "expected_regret_se": regret and regret.error,
        "clipped_mean": clipped and clipped.mean,
        "clipped_se": clipped and clipped.error,
        "reward_mean": reward and reward.mean,
        "reward_se": reward and reward.error,
        "clipped_floor": floor and floor.mean,
        "seconds_mean": seconds and seconds.mean,
        "seeds": len(one.runs) if one else 0,
        "published_regret": row.published.regret,
        "published_seconds": row.published.seconds,
        "published_expected_regret": inferred_regret(found, row),
        "seconds_ratio": speed_ratio(found, row),
    }


def summary_rows(found: Reproduction) -> list[dict[str, Any]]:
    """Every contender of every phase; printed numbers stand with the paper's policies where its protocol is played."""
    rows = [row_json(found, row) for row in table_rows(found)]
    seen = {(row["protocol"], row["policy"], row["preset"], row["settings"]) for row in rows}
    return rows + [
        row_json(found, Row(phase, one.policy, one.preset, one))
        for phase in found.runs
        for one in found.contenders(phase)
        if (phase, *one.key) not in seen
    ]


def cluster_points(found: Reproduction, policy: str) -> list[tuple[int, Contender]]:
    """Contenders of the phase over numbers of clusters, by that number."""
    points = [(one.runs[0].clusters, one) for one in found.contenders(phases.CLUSTERS) if one.policy == policy]
    return sorted(((count, one) for count, one in points if count is not None), key=lambda point: point[0])
