"""Writes docs/choosing.md, what to use when, and its picture from a template and docs/records/choosing.json.

    python -m tools.choosing_page                                   # the page again from the numbers kept
    python -m tools.choosing_page --take RUNS.jsonl [RUNS.jsonl …]  # keep runs of benchmarks.contest first

Taking replaces the record. Only runs with seeds of `--seeds` are taken, and a range with a seed that was used for
development is refused. The template holds the words; {{...}} are filled in. A test keeps page, picture, template and
numbers equal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from neuclust.experiment.suite import SUITE
from tools.reproduction_page import DOCS, number, render, table, with_error

TEMPLATE, PAGE = Path(__file__).parent / "templates" / "choosing.md", Path("choosing.md")
RECORD, PICTURE = Path("records/choosing.json"), Path("figures/choosing.svg")

OWN_HORIZON = {problem.name: problem.rounds for problem in SUITE}
LONG = 1000
HORIZON_BOUND = ("drift-abrupt", "drift-slow", "turnover")  # a longer run plays another world, not more of the same
EARLIER = {"drift-none": 400, "drift-abrupt": 400}  # kept as well: what a change costs once it lies back
DEVELOPMENT = (range(100, 108), range(200, 212), range(300, 304), range(400, 404), range(500, 521), range(600, 625))
REPORTED = "1000:1020"

KNOWS_THE_TRUTH = ("oracle", "cluster-oracle", "static")
LINEAR = ("linucb", "lin-ts", "auto:linear")
SHOWN = ("neuclust", "neuclust-across", "cn-ucb", "neural-linear", "uniform")
NINE = (  # what the prototype was first measured on
    "ml-paper", "ml-volatile", "ml-ideal", "clusters", "bump", "yelp", "replay", "ml-quadratic", "quadratic",
)  # fmt: skip
FEWEST_PAIRS = 5  # below, nothing is said about who is ahead
EQUAL_WITHIN = 0.10
UNMEASURED = "not measured yet"

Row = Mapping[str, Any]


# --- from runs to the record ---------------------------------------------------------------------------------------


def seed_range(text: str) -> range:
    """The seeds of FIRST:END, refused where one of them was used for development."""
    match = re.fullmatch(r"(\d+):(\d+)", text)
    seeds = range(int(match[1]), int(match[2])) if match else range(0)
    if not seeds:
        raise SystemExit(f"--seeds: expected FIRST:END with FIRST below END, got {text!r}; {REPORTED} are reported")
    refuse_development(seeds)
    return seeds


def refuse_development(seeds: Iterable[int]) -> None:
    """Whoever chose settings on a seed cannot report it."""
    used = sorted(seed for seed in set(seeds) if any(seed in known for known in DEVELOPMENT))
    if used:
        raise SystemExit(f"seed {used[0]}: expected seeds that were not used for development; take {REPORTED}")


def read_rows(files: Iterable[Path]) -> Iterator[Row]:
    """Every run of files of benchmarks.contest."""
    for file in files:
        for place, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise SystemExit(f"{file}, line {place}: expected one run as JSON, got {error}; cut it out") from None


def serves(row: Row, horizon: int) -> bool:
    """Whether a run tells the regret after `horizon` rounds of the problem made for so many."""
    if row["rounds"] != horizon and (row["rounds"] < horizon or row["problem"] in HORIZON_BOUND):
        return False
    return str(horizon) in row["regret"]


def horizons(problem: str) -> tuple[int, ...]:
    """The problem's own length, and the long one."""
    return tuple(dict.fromkeys((OWN_HORIZON[problem], LONG)))


def condense(rows: Iterable[Row], seeds: range) -> dict[str, Any]:
    """The record: for every problem, horizon and policy the seeds, their regrets and mean seconds a round."""
    found: dict[tuple[str, int, str], dict[int, Row]] = defaultdict(dict)
    for row in _once(row for row in rows if row["seed"] in seeds):
        for horizon in horizons(row["problem"]):
            runs = found[row["problem"], horizon, row["policy"]]
            known = runs.get(row["seed"])
            if serves(row, horizon) and (known is None or row["rounds"] < known["rounds"]):
                runs[row["seed"]] = row
    order = {name: place for place, name in enumerate(OWN_HORIZON)}
    keys = sorted((key for key in found if found[key]), key=lambda key: (order[key[0]], *key[1:]))
    return {"seeds": f"{seeds.start}:{seeds.stop}", "rows": [_kept(key, found[key]) for key in keys]}


def _once(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows of problems we have, the same run once; the same run with another end is an error."""
    seen: dict[tuple[str, str, int, int], Any] = {}
    for row in rows:
        key = row["problem"], row["policy"], row["seed"], row["rounds"]
        if row["problem"] not in OWN_HORIZON:
            raise SystemExit(f"{row['problem']}: expected a problem of the suite ({', '.join(OWN_HORIZON)})")
        if seen.setdefault(key, row["regret"]) != row["regret"]:
            raise SystemExit(
                f"{key[0]}, {key[1]}, seed {key[2]}, {key[3]} rounds: expected one result, got two that differ; "
                "leave out the file of the older version"
            )
        yield row


def _kept(key: tuple[str, int, str], runs: Mapping[int, Row]) -> dict[str, Any]:
    problem, horizon, policy = key
    chosen = [runs[seed] for seed in sorted(runs)]
    kept: dict[str, Any] = {
        "problem": problem,
        "horizon": horizon,
        "policy": policy,
        "seeds": sorted(runs),
        "regret": [round(row["regret"][str(horizon)], 2) for row in chosen],
        "seconds": float(f"{fmean(row['seconds'] / row['rounds'] for row in chosen):.3g}"),
    }
    if problem in EARLIER and horizon == OWN_HORIZON[problem]:
        kept["earlier"] = [round(row["regret"][str(EARLIER[problem])], 2) for row in chosen]
    return kept


def record_text(record: Mapping[str, Any]) -> str:
    """The record as JSON, a line for every problem, horizon and policy."""
    lines = ",\n".join("  " + json.dumps(row) for row in record["rows"])
    return f'{{\n "seeds": {json.dumps(record["seeds"])},\n "rows": [\n{lines}\n ]\n}}\n'


# --- the numbers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or a ratio of means over `pairs` seeds, and its standard error; None from one seed."""

    value: float
    error: float | None
    pairs: int

    def __str__(self) -> str:
        return with_error(self.value, self.error).replace("-", "−")

    def surely_off(self, level: float) -> bool:
        """Whether more than two standard errors lie between value and level."""
        return self.error is not None and abs(self.value - level) > 2 * self.error


@dataclass(frozen=True, slots=True)
class Score:
    """Regrets of one policy on one problem by seed, and seconds a round."""

    regret: Mapping[int, float]
    seconds: float
    earlier: Mapping[int, float]

    @property
    def mean(self) -> float:
        return fmean(self.regret.values())


Scores = Mapping[str, Score]  # by policy, in the order of their names


@dataclass(frozen=True, slots=True)
class Contest:
    """Scores by problem and horizon; `reasons` say why `auto` is behind where it is."""

    scores: Mapping[tuple[str, int], Scores]
    reasons: Mapping[str, str]

    def at(self, problem: str, horizon: int | None = None) -> Scores:
        """Scores after so many rounds, by default the problem's own length; empty where nothing was played."""
        return self.scores.get((problem, horizon or OWN_HORIZON[problem]), {})

    def played(self, which: str) -> list[tuple[str, int, Scores]]:
        """Problems of the suite with their scores after their own length ("own") or another one ("1000")."""
        asked = [(name, own if which == "own" else int(which)) for name, own in OWN_HORIZON.items()]
        return [(name, horizon, self.at(name, horizon)) for name, horizon in asked if self.at(name, horizon)]


def contest(record: Mapping[str, Any], reasons: Mapping[str, str] | None = None) -> Contest:
    """The record by problem, horizon and policy."""
    scores: dict[tuple[str, int], dict[str, Score]] = defaultdict(dict)
    for row in record["rows"]:
        refuse_development(row["seeds"])
        regret = dict(zip(row["seeds"], row["regret"], strict=True))
        earlier = dict(zip(row["seeds"], row["earlier"], strict=True)) if "earlier" in row else {}
        scores[row["problem"], row["horizon"]][row["policy"]] = Score(regret, row["seconds"], earlier)
    return Contest(scores, reasons or {})


def mean_of(values: Sequence[float]) -> Estimate:
    """Mean and standard error of values (n,)."""
    return Estimate(fmean(values), stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None, len(values))


def ratio_of(tops: Sequence[float], bottoms: Sequence[float]) -> Estimate:
    """Ratio of the means of pairs (n,), its error by the delta method: s.e. of (top − ratio · bottom) / mean bottom."""
    bottom = fmean(bottoms)
    if bottom == 0:
        return Estimate(math.inf, None, len(tops))
    ratio = fmean(tops) / bottom
    left = mean_of([top - ratio * below for top, below in zip(tops, bottoms, strict=True)])
    return Estimate(ratio, None if left.error is None else left.error / abs(bottom), len(tops))


def aligned(*by_seed: Mapping[int, float]) -> list[list[float]]:
    """Values of the seeds that all have, in the order of the seeds."""
    common = sorted(set.intersection(*(set(values) for values in by_seed)))
    return [[values[seed] for seed in common] for values in by_seed]


def difference(left: Score, right: Score) -> Estimate | None:
    """Regret of the left less that of the right, seed by seed; None without a common seed."""
    lefts, rights = aligned(left.regret, right.regret)
    return mean_of([one - other for one, other in zip(lefts, rights, strict=True)]) if lefts else None


def is_linear(policy: str) -> bool:
    """One shared linear model: linucb, lin-ts, or auto left with its linear learner."""
    title, _, settings = policy.partition("@")
    name = title.partition(":")[0]
    alone = {"ensemble.learners=linear", "team.learners=linear"}  # the latter in records before it was renamed
    return name in LINEAR or title in LINEAR or (name == "auto" and not alone.isdisjoint(settings.split(";")))


def is_rival(policy: str) -> bool:
    """Everybody but `auto` itself and those who know the truth."""
    return policy != "auto" and re.split("[:@]", policy)[0] not in KNOWS_THE_TRUTH


def best(scores: Scores, among: Callable[[str], bool]) -> str | None:
    """The least mean regret of those with at least a quarter of the keenest policy's seeds; None without any."""
    most = max((len(score.regret) for score in scores.values()), default=0)
    asked = [name for name, score in scores.items() if among(name) and 4 * len(score.regret) >= most]
    return min(asked, key=lambda name: (scores[name].mean, name), default=None)


def winner(scores: Scores) -> str | None:
    """The least mean regret of all who do not know the truth."""
    return best(scores, lambda policy: policy == "auto" or is_rival(policy))


# --- tables --------------------------------------------------------------------------------------------------------


def _regret(scores: Scores, policy: str) -> str:
    """Mean ± s.e.; with the number of seeds where others of the row have more."""
    if policy not in scores:
        return "–"
    values = list(scores[policy].regret.values())
    most = max(len(score.regret) for score in scores.values())
    return str(mean_of(values)) + (f" ({len(values)} seeds)" if len(values) < most else "")


def _regret_table(given: Contest, which: str) -> str:
    """Rows problems, columns policies; the smallest mean bold."""
    head = ["problem", "rounds", "`auto`", "best linear in hindsight", *(f"`{name}`" for name in SHOWN)]
    rows = [_regret_row(*played) for played in given.played(which)]
    return _or_unmeasured([*head, "best of all others"], rows) + _unplayed(given, which)


def _regret_row(problem: str, horizon: int, scores: Scores) -> list[str]:
    linear, rival = best(scores, is_linear) or "", best(scores, is_rival) or ""
    first = winner(scores)

    def cell(policy: str, named: bool = False) -> str:
        text = _regret(scores, policy)
        if first and policy in scores and scores[policy].mean == scores[first].mean:
            text = f"**{text}**"
        return f"{text} `{policy}`" if named and policy else text

    columns = [cell("auto"), cell(linear, named=True), *(cell(name) for name in SHOWN), cell(rival, named=True)]
    return [f"`{problem}`", str(horizon), *columns]


def _or_unmeasured(head: Sequence[str], rows: Sequence[Sequence[str]], rule: str = "---:") -> str:
    return table(head, rows, rule) if rows else f"*{UNMEASURED.capitalize()}.*"


def _unplayed(given: Contest, which: str) -> str:
    played = {problem for problem, _, _ in given.played(which)}
    missing = [f"`{name}`" for name in OWN_HORIZON if name not in played]
    return f"\n\nNot played: {', '.join(missing)}." if missing and played else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`auto` against the best other policy: who that is, the paired difference, the same as a share, and the word."""

    rival: str
    gap: Estimate
    share: float  # of the rival's mean; infinite where that is 0
    word: str  # ahead, equal, behind, or unsaid


def verdict(scores: Scores) -> Verdict | None:
    """Equal is what lies within two standard errors or 10 %; None where `auto` or anybody else is missing."""
    rival = best(scores, is_rival)
    gap = difference(scores["auto"], scores[rival]) if rival and "auto" in scores else None
    if rival is None or gap is None:
        return None
    base = fmean(aligned(scores[rival].regret, scores["auto"].regret)[0])
    share = gap.value / base if base else math.copysign(math.inf, gap.value) if gap.value else 0.0
    if gap.pairs < FEWEST_PAIRS:
        word = "unsaid"
    elif not gap.surely_off(0.0) or abs(share) <= EQUAL_WITHIN:
        word = "equal"
    else:
        word = "ahead" if gap.value < 0 else "behind"
    return Verdict(rival, gap, share, word)


def _percent(share: float, sign: str = "") -> str:
    return f"{100 * share:{sign},.0f} %".replace("-", "−") if math.isfinite(share) else "–"


def _said(found: Verdict, reason: str) -> str:
    if found.word == "unsaid":
        return f"fewer than {FEWEST_PAIRS} common seeds"
    if found.word != "behind":
        return found.word
    by = _percent(found.share) if math.isfinite(found.share) else number(found.gap.value)
    return f"**behind** by {by}" + (f" because {reason}" if reason else "")


def _verdict_table(given: Contest, which: str) -> str:
    head = ["problem", "rounds", "best other", "common seeds", "`auto` − other", "in %", "`auto` is"]
    rows: list[list[str]] = []
    for problem, horizon, scores in given.played(which):
        if found := verdict(scores):
            said = _said(found, given.reasons.get(problem, ""))
            cells = [f"`{found.rival}`", str(found.gap.pairs), _signed(found.gap), _percent(found.share, "+"), said]
            rows.append([f"`{problem}`", str(horizon), *cells])
    return _or_unmeasured(head, rows, rule="---")


def _signed(gap: Estimate) -> str:
    return f"+{gap}" if gap.value > 0 else str(gap)


def _tally(given: Contest, which: str) -> str:
    """How often `auto` is ahead, equal and behind, as part of a sentence."""
    words = Counter(found.word for _, _, scores in given.played(which) if (found := verdict(scores)))
    said = words["ahead"] + words["equal"] + words["behind"]
    if not said:
        return f"({UNMEASURED})"
    return f"ahead on {words['ahead']}, equal on {words['equal']} and behind on {words['behind']} of {said} problems"


def _measured(given: Contest, problem: str, *policies: str) -> str:
    """Mean regrets of policies on a problem of its own length; `linear` and `best` are the best of these."""
    scores = given.at(problem)
    asked = {"linear": best(scores, is_linear) or "", "best": best(scores, is_rival) or ""}
    names = dict.fromkeys(asked.get(policy, policy) for policy in policies)
    return ", ".join(f"`{name}` {_regret(scores, name)}" for name in names if name in scores) or UNMEASURED


# --- claims --------------------------------------------------------------------------------------------------------


def _claims_table(given: Contest) -> str:
    """Everything is of the problems' own length, and what stands beside linear policies and the prototype of both."""
    rows = [
        *(_near_linear(given.at(name), name) for name in ("ml-paper", "ml-volatile")),
        *_at_both(_beside_linear, given, ("ml-ideal", "bump", "clusters", "yelp", "replay")),
        *_at_both(_beside_prototype, given, NINE),
        *(_gap_closed(given.at(name), name) for name in ("ml-volatile", "ml-ideal", "bump", "clusters")),
        *(_after_change(given, policy) for policy in ("auto", "neuclust", "linucb")),
        *(_with_delay(given, policy, n) for policy in ("auto", "neuclust", "linucb") for n in horizons("delayed")),
    ]
    return _or_unmeasured(["question", "on", "measured", "answer"], [row for row in rows if row], rule="---")


def _near_linear(scores: Scores, problem: str) -> list[str] | None:
    linear = best(scores, is_linear)
    gap = difference(scores["auto"], scores[linear]) if linear and "auto" in scores else None
    if gap is None:
        return None
    answer = ("yes" if gap.value <= 1 else "no") + ("" if gap.surely_off(1.0) else ", not by two s.e.")
    question = "is `auto` within +1 of the best linear policy?"
    return [question, f"`{problem}`", f"`auto` − `{linear}`: {_signed(gap)}", answer]


def _at_both(
    ask: Callable[[Scores, str], list[str] | None], given: Contest, problems: Iterable[str]
) -> Iterator[list[str] | None]:
    """A question about problems, after their own number of rounds and after the long one."""
    for problem in problems:
        for horizon in horizons(problem):
            yield ask(given.at(problem, horizon), f"`{problem}`, {horizon} rounds")


def _beside_linear(scores: Scores, where: str) -> list[str] | None:
    linear = best(scores, is_linear)
    return _share_of(scores, linear, where, "the best linear policy's") if linear else None


def _beside_prototype(scores: Scores, where: str) -> list[str] | None:
    return _share_of(scores, "auto:prototype", where, "the prototype's")


def _share_of(scores: Scores, other: str, where: str, whose: str) -> list[str] | None:
    if other not in scores or "auto" not in scores:
        return None
    ratio = _ratio(scores["auto"].regret, scores[other].regret)
    question = f"which share of {whose} regret has `auto`?"
    return [question, where, f"`auto` / `{other}`: {ratio}", _beside(ratio, 1)] if ratio else None


def _gap_closed(scores: Scores, problem: str) -> list[str] | None:
    """(neuclust − neuclust-across) / cluster-oracle: 1 where mixing clusters wins back all that one cluster costs."""
    names = ("neuclust", "neuclust-across", "cluster-oracle")
    if not all(name in scores for name in names):
        return None
    inside, across, floor = aligned(*(scores[name].regret for name in names))
    if not inside or fmean(floor) == 0:
        return None
    share = ratio_of([one - other for one, other in zip(inside, across, strict=True)], floor)
    question = "which share of what slates inside one cluster must cost is won back across clusters?"
    shown = f"(`neuclust` − `neuclust-across`) / `cluster-oracle`: {share}"
    return [question, f"`{problem}`", shown, _beside(share, 0)]


def _after_change(given: Contest, policy: str) -> list[str] | None:
    """Regret of the rounds from 400 to 500, with a change after round 250 and without one."""
    moved, still = (given.at(name).get(policy) for name in ("drift-abrupt", "drift-none"))
    if moved is None or still is None:
        return None
    late = [{seed: regret - score.earlier[seed] for seed, regret in score.regret.items()} for score in (moved, still)]
    changed, settled = aligned(*late)
    if not changed:
        return None
    gap = mean_of([one - other for one, other in zip(changed, settled, strict=True)])
    shown = f"`{policy}`: {mean_of(changed)} and {mean_of(settled)}, difference {_signed(gap)}"
    question = "what does a change at round 250 still cost in rounds 400 to 500?"
    return [question, "`drift-abrupt`, `drift-none`", shown, _beside(gap, 0)]


def _with_delay(given: Contest, policy: str, horizon: int) -> list[str] | None:
    late, prompt = (given.at(name, horizon).get(policy) for name in ("delayed", "clusters"))
    ratio = _ratio(late.regret, prompt.regret) if late and prompt else None
    question = "what does late feedback cost?"
    shown = f"`{policy}`, delayed / prompt: {ratio}"
    return [question, f"`delayed`, `clusters`, {horizon} rounds", shown, _beside(ratio, 1)] if ratio else None


def _ratio(tops: Mapping[int, float], bottoms: Mapping[int, float]) -> Estimate | None:
    """Ratio of means over common seeds; None where there is none."""
    above, below = aligned(tops, bottoms)
    found = ratio_of(above, below) if above else None
    return found if found and math.isfinite(found.value) else None


def _beside(estimate: Estimate, level: int) -> str:
    if not estimate.surely_off(level):
        return f"cannot be told from {level}"
    return f"{'above' if estimate.value > level else 'below'} {level}"


def _cost_table(given: Contest) -> str:
    """Milliseconds a round of every policy: the median problem, the quickest and the slowest."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for problem, _, scores in given.played("own"):
        for policy in filter(lambda name: name == "auto" or is_rival(name), scores):
            found[policy][problem] = 1000 * scores[policy].seconds
    ordered = sorted(found.items(), key=lambda item: median(item[1].values()))
    rows = [
        [f"`{policy}`", number(median(times.values())), *(_named(times, pick) for pick in (min, max)), str(len(times))]
        for policy, times in ordered
    ]
    return _or_unmeasured(["policy", "median problem", "quickest", "slowest", "problems"], rows)


def _named(times: Mapping[str, float], pick: Callable[..., str]) -> str:
    problem = pick(times, key=lambda name: times[name])
    return f"{number(times[problem])} (`{problem}`)"


# --- the picture ---------------------------------------------------------------------------------------------------

FARTHEST = 100.0  # times the best policy's regret; what is farther stands at the edge
LEAST_REGRET = 0.1  # divides in place of a smaller best regret, which no ratio could be read of
MARKERS = {  # shape, and how far below the middle of its row, so that equal policies do not hide each other
    "auto": ("D", 0.0),
    "best linear": ("o", -0.12),
    "neuclust": ("s", 0.12),
    "neuclust-across": ("^", -0.22),
    "cn-ucb": ("v", 0.22),
    "neural-linear": ("P", -0.06),
    "uniform": ("X", 0.06),
}


def relative_regrets(scores: Scores, least: float) -> dict[str, float]:
    """Mean regrets over the least one, for everybody the picture shows."""
    shown = {name: name for name in MARKERS} | {"best linear": best(scores, is_linear) or ""}
    base = max(least, LEAST_REGRET)
    return {label: max(1.0, scores[name].mean / base) for label, name in shown.items() if name in scores}


def picture_text(given: Contest, digest: str) -> str:
    """The picture as SVG, with the digest of the record it was drawn from at its end."""
    from matplotlib.figure import Figure

    from neuclust.report.vectors import small_letters, svg_text

    played = [(problem, scores, name) for problem, _, scores in given.played("own") if (name := winner(scores))]
    sizes = ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
    with small_letters(dict.fromkeys(sizes, 9.5)):
        figure = Figure(figsize=(10.0, 1.45 + 0.36 * len(played)))
        _draw(figure, played)
        return f"{svg_text(figure)}<!-- record {digest} -->\n"


def _draw(figure: Any, played: Sequence[tuple[str, Scores, str]]) -> None:
    """A row for every problem, with its scores and its winner."""
    from neuclust.report.figures import GREY, INK

    axes = figure.add_subplot()
    tall = figure.get_figheight()
    figure.subplots_adjust(left=0.12, right=0.75, top=1 - 0.75 / tall, bottom=0.55 / tall)
    for place, (_, scores, name) in enumerate(played):
        axes.axhspan(place - 0.5, place + 0.5, color="#F3F3F3" if place % 2 else "white", zorder=0)
        text = f"{name}  {number(scores[name].mean)}"
        axes.text(1.015, place, text, transform=axes.get_yaxis_transform(), va="center", color=INK)
    _draw_markers(axes, [relative_regrets(scores, scores[name].mean) for _, scores, name in played])
    axes.set_yticks(range(len(played)), [problem for problem, _, _ in played])
    axes.set_ylim(len(played) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    _draw_scale(axes)
    axes.text(1.015, 1.01, "best policy and its regret", transform=axes.transAxes, va="bottom", color=GREY)
    figure.legend(loc="upper center", ncols=len(MARKERS), frameon=False, handletextpad=0.2, columnspacing=1.2)


def _draw_markers(axes: Any, rows: Sequence[Mapping[str, float]]) -> None:
    """A marker for every policy and problem; white edges keep neighbours apart."""
    from neuclust.report.figures import COLOURS, INK

    for colour, (label, (marker, lower)) in zip((INK, *COLOURS), MARKERS.items(), strict=False):
        points = [(min(row[label], FARTHEST * 1.3), place + lower) for place, row in enumerate(rows) if label in row]
        across, down = [value for value, _ in points], [height for _, height in points]
        look = {"s": 80 if label == "auto" else 62, "facecolor": colour, "edgecolor": "white", "linewidths": 0.5}
        axes.scatter(across, down, marker=marker, label=label, zorder=3, **look)


def _draw_scale(axes: Any) -> None:
    from neuclust.report.figures import GREY, INK

    axes.set_xscale("log")
    axes.set_xlim(0.87, FARTHEST * 1.7)
    axes.axvline(1.0, color=INK, linewidth=0.9, zorder=1)
    axes.axvline(FARTHEST, color=GREY, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    ticks = (1, 1.5, 2, 3, 5, 10, 20, 50)
    axes.set_xticks([*ticks, FARTHEST * 1.3], [*(f"{tick:g}×" for tick in ticks), "more"])
    axes.minorticks_off()
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("mean expected regret divided by that of the best policy (log scale; left is better)")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


# --- the page ------------------------------------------------------------------------------------------------------


def _picture(given: Contest, *words: str) -> str:
    """The picture with its alternative text, once there is something to draw."""
    return f"![{' '.join(words)}]({PICTURE})" if given.played("own") else f"*{UNMEASURED.capitalize()}.*"


_KINDS: Mapping[str, Callable[..., str]] = {
    "regret-table": _regret_table,
    "verdict-table": _verdict_table,
    "claims": _claims_table,
    "costs": _cost_table,
    "tally": _tally,
    "measured": _measured,
    "picture": _picture,
}
_REASONS = re.compile(r"<!-- because\n(.*?)\n-->\n*", re.DOTALL)


def reasons_of(template: str) -> dict[str, str]:
    """Why `auto` is behind, by problem: JSON in a comment of the template that the page leaves out."""
    match = _REASONS.search(template)
    reasons: dict[str, str] = json.loads(match[1]) if match else {}
    unknown = sorted(set(reasons) - set(OWN_HORIZON))
    if unknown:
        raise SystemExit(f"because: expected problems of the suite, got {unknown[0]!r}; see `neuclust suite --help`")
    return reasons


def page_text(template: str, record: Mapping[str, Any]) -> str:
    """The page: the template with the record's numbers."""
    return render(_REASONS.sub("", template), contest(record, reasons_of(template)), _KINDS)


def kept_record(docs: Path) -> dict[str, Any]:
    """What was taken last; without a record one that holds nothing."""
    path = docs / RECORD
    empty: dict[str, Any] = {"seeds": REPORTED, "rows": []}
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty


def digest_of(record: Mapping[str, Any]) -> str:
    """Tells records apart, so that a picture of an older one is noticed."""
    return hashlib.sha256(record_text(record).encode()).hexdigest()[:16]


def write_page(docs: Path) -> None:
    """Page and picture from template and record."""
    record = kept_record(docs)
    (docs / PAGE).write_text(page_text(TEMPLATE.read_text(encoding="utf-8"), record), encoding="utf-8")
    if record["rows"]:
        (docs / PICTURE).parent.mkdir(exist_ok=True)
        (docs / PICTURE).write_text(picture_text(contest(record), digest_of(record)), encoding="utf-8")


def take(files: Sequence[Path], seeds: range, docs: Path) -> None:
    """Keep these runs, in place of those kept before, and say what was left out."""
    rows = list(read_rows(files))
    record = condense(rows, seeds)
    if not record["rows"]:
        raise SystemExit(f"--take: expected runs of seeds {record['seeds']} that reach a horizon, got none")
    (docs / RECORD).parent.mkdir(exist_ok=True)
    (docs / RECORD).write_text(record_text(record), encoding="utf-8")
    inside = [row for row in rows if row["seed"] in seeds]
    idle = sum(not any(serves(row, horizon) for horizon in horizons(row["problem"])) for row in inside)
    print(f"{len(rows)} runs: {len(rows) - len(inside)} of other seeds left out, {idle} end at no horizon of the page")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--take", nargs="+", type=Path, metavar="FILE.jsonl", help="keep these runs first")
    parser.add_argument("--seeds", default=REPORTED, metavar="FIRST:END", help=f"default {REPORTED}")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of record and page")
    chosen = parser.parse_args(words)
    if chosen.take:
        take(chosen.take, seed_range(chosen.seeds), chosen.docs)
    write_page(chosen.docs)
    print(f"wrote {chosen.docs / PAGE}")


if __name__ == "__main__":
    main()
