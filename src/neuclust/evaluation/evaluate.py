"""Policies judged from a log: fitted on its first part, weighed on the rest, the best once more on rows held back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from neuclust.configuration import check_entries
from neuclust.errors import ConfigError, DataError, one_of
from neuclust.evaluation.candidates import Candidate
from neuclust.evaluation.estimators.catalogue import ESTIMATORS
from neuclust.evaluation.evidence import Evidence, evidence_of
from neuclust.evaluation.intervals.choice import ENOUGH
from neuclust.evaluation.judging import Judge, Scale, effective_rows, normal_rows
from neuclust.evaluation.results import Evaluation, Logged, best
from neuclust.evaluation.rewards.meaning import Meaning, meaning_of, paid_by, settings_of
from neuclust.evaluation.rewards.unanswered import Unseen, settle
from neuclust.evaluation.scoring import Floats, Log, Plan, Table, Watch, score
from neuclust.evaluation.slate_values import SlateValue, parse_slate_value
from neuclust.evaluation.survey import Survey, survey

ADDITIVE = ("dr", "cascade-dr", "iips")  # in the order of what they assume: nothing, a cascade, additive slots
SHARES = {"level": (0.5, 0.9999), "fit": (0.0, 0.95), "hold_back": (0.0, 0.9)}
NEEDS = {"marginals": ("iips", "siips"), "pi": ("pi",), "model": ("dm", "dr", "sndr", "switch", "cascade-dr")}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a log: the value of a slate and what missing rewards mean (None: as the log says), the
    estimator and interval (None: chosen by the data), and how candidates learn: `frozen` after the first `fit` of the
    log, or `replay`, every logged slate after it was scored. The last `hold_back` of the evaluated rows takes no part
    in the choice."""

    reward: str | None = None  # where the log says nothing: sum
    reward_low: float | None = None  # of a slot, or of the slate with `slate`; where the log says nothing: 0
    reward_high: float | None = None  # 1
    estimator: str = "auto"
    interval: str | None = None
    level: float = 0.95
    learning: Literal["frozen", "replay"] = "frozen"
    fit: float = 0.5
    hold_back: float = 0.3
    unseen: Unseen | None = None  # where the log says nothing: error, but for decisions open at its end
    seed: int = 0

    def __post_init__(self) -> None:
        _check_question(self)
        if self.estimator != "auto" and self.estimator not in ESTIMATORS:
            raise ConfigError(one_of(self.estimator, ["auto", *ESTIMATORS]), field="estimator")


def _check_question(question: Question) -> None:
    """Refuse entries of another type and shares outside their range, by the name of the option."""
    try:
        check_entries(question)
    except ConfigError as error:
        name, _, said = error.message.partition(": ")
        raise ConfigError(said, field=name.rpartition(".")[2]) from None
    for name, (low, high) in SHARES.items():
        value = getattr(question, name)
        if not low <= value <= high:
            meant = f"; did you mean {value / 100:g}?" if value > 1 and low <= value / 100 <= high else ""
            raise ConfigError(f"expected a number from {low:g} to {high:g}, got {value:g}{meant}", field=name)


def evaluate(
    log: Log, candidates: Sequence[Candidate], question: Question, watch: Watch = lambda *_: None
) -> Evaluation:
    """What each candidate would have earned per slate, and how that compares with what ran."""
    held, settings = survey(log), settings_of(log)
    meaning = meaning_of(question, settings, held, paid_by(log))
    settled = settle(log, held, question.unseen, meaning.own, settings)
    learner = _learning(log, held)
    plan, names = _planned(question, meaning, held, settled.decisions, learner)
    table = score(settled.log, candidates, plan, watch)
    if not table.filled:
        raise DataError(f"log: expected rows with observed rewards to judge by, got {table.dropped:,} without")
    _check_support(table, plan)
    plan.value.check(table.rewards, table.slate_rewards)
    values = plan.value.of(table.rewards, table.slate_rewards)
    judge = Judge(Scale(plan.value, learner or plan.replay, table.largest), question.level, question.interval)
    every = {each.candidate.title: evidence_of(table, each, values, plan) for each in table.scored}
    chosen, kept = _split(len(values), question.hold_back if len(every) > 1 else 0.0)
    some = {title: each.part(chosen) for title, each in every.items()}
    estimator, reason = choose_estimator(names, some)
    judged = judge.all(some, values[chosen], estimator, reason)
    winner = None
    if len(values[kept]):
        title = best(judged).policy
        (winner,) = judge.all({title: every[title].part(kept)}, values[kept], estimator, reason)
    logged = replace(
        _logged(log, held, judge, values[chosen], learner, meaning), fitted=plan.fitted, held_back=len(values[kept]),
        dropped=table.dropped + settled.open + int(getattr(log, "skipped", 0)), open=settled.open,
    )  # fmt: skip
    notes = (meaning.sentence(), *settled.notes, *_notes(held, table))
    return Evaluation(logged, tuple(judged), winner, question.level, notes)


def _learning(log: Log, held: Survey) -> bool:
    """Whether the policy that ran learned: as its runs say, else as versions of its model that differ."""
    told = [bool(start.learning) for start in getattr(log, "runs", {}).values()]
    return any(told) if told else len(held.versions) > 1


def _planned(
    question: Question, meaning: Meaning, held: Survey, decisions: int, learner: bool
) -> tuple[Plan, tuple[str, ...]]:
    """The plan, and the estimators that may be used, in order."""
    value = parse_slate_value(meaning.reward, held.slate_size, *meaning.range)
    names: tuple[str, ...] = (question.estimator,)
    if question.estimator == "auto":
        names = ADDITIVE if value.additive else ("dr", "ips")
        names = names if held.known else tuple(name for name in names if name != "iips")
    _check_estimators(names, value, held)
    replay = question.learning == "replay"
    fitted = 0 if replay else int(question.fit * decisions)
    needs = frozenset(need for need, users in NEEDS.items() if any(name in users for name in names))
    plan = Plan(
        value, fitted, decisions - fitted, held.slate_size, held.dim, learner, replay, needs,
        question.unseen or "error", question.seed,
    )  # fmt: skip
    return plan, names


def _check_estimators(names: Sequence[str], value: SlateValue, held: Survey) -> None:
    for name in names:
        if ESTIMATORS[name].value == "slots" and not value.additive:
            got = f"got {value.name!r:.50}; use dr or ips, which assume nothing of it"
            raise ConfigError(f"{name}: expected slates worth the sum of their slots, {got}", field="estimator")
        if name in ("iips", "siips", "pi") and not held.known:
            number = held.designs["unknown"]
            got = f"got {number:,} decisions of an unknown one; use dr or ips"
            raise DataError(f"{name}: expected a known design, whose slot marginals it needs, {got}", field="estimator")


def _check_support(table: Table, plan: Plan) -> None:
    for each in table.scored:
        if each.unsupported:
            share = f"in {each.unsupported:,} of {plan.evaluated:,} decisions"
            what = f"{each.candidate.title} would show slates that what ran could never have shown"
            advice = "log with exploration (anywhere above 0) first; no estimator can replace what was never tried"
            raise DataError(f"missing support: {share} {what}; {advice}")


def _split(rows: int, held_back: float) -> tuple[slice, slice]:
    """Rows for the choice, and those held back from it."""
    at = rows - int(held_back * rows)
    return slice(0, at), slice(at, rows)


def choose_estimator(names: Sequence[str], evidence: Mapping[str, Evidence]) -> tuple[str, str]:
    """The estimator that assumes least among those with enough effective rows for every candidate, and why."""
    if len(names) == 1:
        return names[0], "as asked for"
    for name in names:
        least = min(min(effective_rows(each, name), normal_rows(each, name)) for each in evidence.values())
        if least >= ENOUGH:
            return name, f"it assumes least of those with at least {ENOUGH:g} effective rows ({least:,.0f})"
    name = next((name for name in names if name in ("iips", "ips")), names[-1])  # which keeps to bounds
    rows = min(effective_rows(each, name) for each in evidence.values())
    least = min(rows, *(normal_rows(each, name) for each in evidence.values()))
    said = f"no estimator has {ENOUGH:g} effective rows for every candidate; this one has {rows:.1f}"
    return name, said if rows < ENOUGH else f"{said}, as good as {least:.1f}, since few of them have the large weights"


def _logged(log: Log, held: Survey, judge: Judge, values: Floats, learner: bool, meaning: Meaning) -> Logged:
    """What ran, on the rows that candidates are compared on."""
    ends, kind = judge.mean(values)
    return Logged(
        path=str(getattr(log, "path", "")), decisions=held.decisions, fitted=0, evaluated=len(values),
        value=float(values.mean()), interval=ends, interval_kind=kind, reward=judge.scale.value.name,
        runs=tuple(held.runs), designs=dict(held.designs), learning=learner, reward_from=meaning.reward_from,
        reward_range=meaning.range, range_from=meaning.range_from, value_range=judge.scale.value.range,
    )  # fmt: skip


def _notes(held: Survey, table: Table) -> tuple[str, ...]:
    notes = []
    if not held.known:
        notes.append("some designs are unknown: whether what ran could have shown everything was not checked")
    if table.dropped:
        notes.append(f"{table.dropped:,} rows without observed rewards were left out")
    return tuple(notes)
