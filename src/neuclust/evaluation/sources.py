"""Logs of every kind behind one contract, columns of a Parquet file as targets, and the best policy kept for use."""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from neuclust.errors import ConfigError, DataError, LogWarning, one_of, suggestion
from neuclust.evaluation.candidates import Candidate, learn
from neuclust.evaluation.columns import parquet_blocks, table_blocks
from neuclust.evaluation.evaluate import Question, evaluate
from neuclust.evaluation.intervals.asymptotic import Moments, asymptotic
from neuclust.evaluation.intervals.choice import ENOUGH
from neuclust.evaluation.intervals.many import bonferroni_level
from neuclust.evaluation.results import Ends, Evaluation, Judgement, Logged, verdict
from neuclust.evaluation.rewards.meaning import meaning_of
from neuclust.evaluation.rewards.unanswered import Unseen
from neuclust.evaluation.scoring import Log, Watch
from neuclust.evaluation.slate_values import parse_slate_value
from neuclust.evaluation.streaming import KNOWN, Blocks, Sums, Weighed, weigh
from neuclust.evaluation.survey import Survey, survey
from neuclust.experiment.contestants import parse_contestants
from neuclust.logs.table_blocks import TableLog

FORMATS = ("vw", "obp", "table")
COLUMNS = ("decision", "arm", "slot", "reward", "propensity", "slate_reward", "time", "user", "features")
FIXED = "columns are weighed as rows of a fixed policy, which are independent"


@dataclass(frozen=True, slots=True)
class Source:
    """An opened log; `recommender`: it is one of the front door, with tables of items and users."""

    path: Path
    log: Log
    recommender: bool = False


def open_source(
    path: Path, format: str | None, skip_bad: int, say: Callable[[str], None], columns: Sequence[str] = ()
) -> Source:
    """The log at a path: of the front door, in the format of docs/logs.md, or one of another library."""
    if not path.is_file():
        raise DataError(f"{path}: expected a log, got {'a folder' if path.is_dir() else 'nothing there'}; name a file")
    if format == "table":
        return Source(path, open_table(path, columns, (), skip_bad, say))
    if format is not None:
        from neuclust.logs import read_obp, read_vw_ccb

        if format not in FORMATS:
            raise ConfigError(one_of(format, FORMATS), field="format")
        return Source(path, (read_vw_ccb if format == "vw" else read_obp)(path, skip_bad=skip_bad, on_bad=say))
    if is_recommender_log(path):
        from neuclust.recommender.log.rounds import logged_decisions

        return Source(path, logged_decisions(path, skip_bad=skip_bad, on_bad=say), recommender=True)
    from neuclust.logs import open_log

    return Source(path, open_log(path, skip_bad=skip_bad, on_bad=say))


def open_table(
    path: Path, columns: Sequence[str], targets: Sequence[str], skip_bad: int, say: Callable[[str], None]
) -> Any:
    """A long table whose columns are named by `decision=NAME` and so on; `features` are several, with commas."""
    from neuclust.logs import read_table

    named: dict[str, Any] = {part: part for part in COLUMNS[:5]}
    for text in columns:
        part, equals, name = text.partition("=")
        if part not in COLUMNS or not equals or not name:
            known = ", ".join(COLUMNS)
            raise ConfigError(f"expected PART=COLUMN with a part of {known}, got {text!r:.100}", field="column")
        named[part] = name.split(",") if part == "features" else name
    judged = {target: target for target in targets}
    return read_table(path, **named, targets=judged, skip_bad=skip_bad, on_bad=say)


def is_recommender_log(path: Path) -> bool:
    """Whether the first line is the start of a recommender's log."""
    if path.suffix.lower() == ".parquet":
        return False
    with path.open("rb") as file:
        line = file.readline(1 << 26)
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.get("event") == "start" and "item_id" in first


def save_best(source: Source, candidate: Candidate, folder: Path) -> str:
    """Learn the whole log by the candidate and save it; how it is loaded again."""
    if source.recommender:
        from neuclust.recommender.log.from_log import recommender_from_log

        who = candidate.contestant
        shop = recommender_from_log(source.path, who.title, dict(who.settings) or None, candidate.seed)
        shop.save(folder)
        return f'Recommender.load("{folder}")'
    held = survey(source.log)
    policy = candidate.built(held.dim, held.slate_size)
    for decision in source.log.decisions():
        learn(policy, decision)
    policy.save(folder)
    return f'neuclust.load("{folder}"); the log has no tables of items, so it is a policy and no recommender'


# --- columns of a Parquet file --------------------------------------------------------------------------------------


def judge_columns(log: Path | TableLog, targets: Sequence[str], question: Question, watch: Watch) -> Evaluation:
    """Targets whose chances are columns, of a Parquet log or a long table: each under ips and snips, and under iips
    where slates are worth the sum of their slots and the log has marginals; or under the estimator asked for."""
    path = log.path if isinstance(log, TableLog) else log
    meaning = meaning_of(question, None, Survey())
    made = partial(parse_slate_value, meaning.reward, low=meaning.range[0], high=meaning.range[1])
    names = _estimators(question, isinstance(log, Path) and made(1).additive)
    blocks: Blocks = (
        partial(table_blocks, log)
        if isinstance(log, TableLog)
        else partial(parquet_blocks, log, targets, "iips" in names)
    )
    sums = weigh(blocks, targets, made, names, partial(watch, "weighing"))
    level = bonferroni_level(len(targets), question.level)
    judged = [
        _judgement(target, name, each, sums, (question.level, level)) for (target, name), each in sums.targets.items()
    ]
    logged = Logged(
        path=str(path), decisions=sums.logged.count, fitted=0, evaluated=sums.logged.count,
        value=float(sums.logged.mean), interval=_ends(sums.logged, question.level, sums.span),
        interval_kind="asymptotic", reward=meaning.reward, runs=(), designs={}, learning=False,
        reward_range=meaning.range, reward_from=meaning.reward_from, range_from=meaning.range_from,
        value_range=sums.span,
    )  # fmt: skip
    return Evaluation(logged, tuple(judged), None, question.level, (meaning.sentence(), FIXED))


def _estimators(question: Question, marginals: bool) -> tuple[str, ...]:
    known = KNOWN if marginals else tuple(name for name in KNOWN if name != "iips")
    if question.estimator != "auto" and question.estimator not in known:
        raise ConfigError(f"expected {', '.join(known)} for columns, got {question.estimator}", field="estimator")
    if question.interval not in (None, "asymptotic"):
        raise ConfigError(f"expected asymptotic for columns, got {question.interval!r:.50}", field="interval")
    return known if question.estimator == "auto" else (question.estimator,)


def _judgement(target: str, estimator: str, each: Weighed, sums: Sums, levels: tuple[float, float]) -> Judgement:
    """A target under one estimator; intervals by moments."""
    if each.contributions is None or each.differences is None:
        raise DataError(f"{target}: expected rows, got none")
    low, high = sums.span
    apart = _ends(each.differences, levels[1], (low - high, high - low))
    warnings = () if each.ess >= ENOUGH else (f"{each.ess:.1f} effective rows are few for a normal approximation",)
    return Judgement(
        policy=target, estimator=estimator, estimate=float(each.contributions.mean),
        interval=_ends(each.contributions, levels[0], sums.span), interval_kind="asymptotic", ess=each.ess,
        difference=float(each.differences.mean), difference_interval=apart, rows=sums.logged.count,
        verdict=verdict(f"{target} ({estimator})", each.ess, apart, float(sums.logged.mean), sums.span),
        reason=f"{estimator}: its chances are columns of the log. asymptotic: the logger stayed the same",
        largest_weights=each.largest, warnings=warnings,
    )  # fmt: skip


def _ends(moments: Moments, level: float, span: Ends) -> Ends:
    found = asymptotic(moments, level, span)
    return float(found.low), float(found.high)


# --- from Python ----------------------------------------------------------------------------------------------------


class EvaluateOptions(TypedDict, total=False):
    """Settings of policies (`key=value`), the log's format where it is another library's, seed and draws of the
    candidates, bad lines that are passed over, and the fields of `Question`."""

    settings: Sequence[str]
    format: str
    draws: int
    skip_bad: int
    seed: int
    reward: str
    reward_low: float
    reward_high: float
    estimator: str
    interval: str
    level: float
    learning: Literal["frozen", "replay"]
    fit: float
    hold_back: float
    unseen: Unseen


def evaluate_log(path: str | Path, policies: Sequence[str], **options: Unpack[EvaluateOptions]) -> Evaluation:
    """What policies (`NAME` or `NAME:PRESET`) would have earned, from the log at a path; see `Question`."""
    given: dict[str, Any] = dict(options)
    for name in sorted(given.keys() - EvaluateOptions.__annotations__.keys()):
        raise TypeError(
            f"evaluate_log: unexpected argument {name!r}; {suggestion(name, EvaluateOptions.__annotations__)}"
        )
    settings, draws = given.pop("settings", ()), given.pop("draws", 5)
    source = open_source(Path(path), given.pop("format", None), given.pop("skip_bad", 0), warn_of_line)
    seed = given.get("seed", 0)
    candidates = [Candidate(each, seed, draws) for each in parse_contestants(policies, settings=settings)]
    return evaluate(source.log, candidates, Question(**given))


def warn_of_line(sentence: str) -> None:
    """A bad line that was passed over, as a warning."""
    warnings.warn(sentence, LogWarning, stacklevel=2)
