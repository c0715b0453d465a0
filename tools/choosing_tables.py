"""The tables of docs/choosing.md: regrets, verdicts on `auto`, claims and costs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from tools.choosing_record import (
    OWN_HORIZON,
    Contest,
    Estimate,
    Scores,
    aligned,
    best,
    difference,
    horizons,
    is_linear,
    is_rival,
    mean_of,
    ratio_of,
    winner,
)  # fmt: skip
from tools.reproduction_page import number, table

SHOWN = ("neuclust", "cn-ucb", "neural-linear", "uniform")
FEWEST_PAIRS = 5  # below, no policy is called ahead
EQUAL_WITHIN = 0.10
UNMEASURED = "not measured yet"


def _regret(scores: Scores, policy: str) -> str:
    """Mean ± s.e.; with the number of seeds where others of the row have more."""
    if policy not in scores:
        return "–"
    values = list(scores[policy].regret.values())
    most = max(len(score.regret) for score in scores.values())
    return str(mean_of(values)) + (f" ({len(values)} seeds)" if len(values) < most else "")


def regret_table(given: Contest, which: str) -> str:
    """Rows problems, columns policies; the smallest mean bold."""
    head = ["problem", "rounds", "`auto`", "best linear in hindsight", *(f"`{name}`" for name in SHOWN)]
    rows = [
        [f"`{problem}`{given.mark(problem, horizon)}", str(horizon), *_regret_cells(scores)]
        for problem, horizon, scores in given.played(which)
    ]
    return _or_unmeasured([*head, "best of all others"], rows) + _unplayed(given, which)


def _regret_cells(scores: Scores) -> list[str]:
    linear, rival = best(scores, is_linear) or "", best(scores, is_rival) or ""
    first = winner(scores)

    def cell(policy: str, named: bool = False) -> str:
        text = _regret(scores, policy)
        if first and policy in scores and scores[policy].mean == scores[first].mean:
            text = f"**{text}**"
        return f"{text} `{policy}`" if named and policy else text

    return [cell("auto"), cell(linear, named=True), *(cell(name) for name in SHOWN), cell(rival, named=True)]


def _or_unmeasured(head: Sequence[str], rows: Sequence[Sequence[str]], rule: str = "---:") -> str:
    return table(head, rows, rule) if rows else f"*{UNMEASURED.capitalize()}.*"


def _unplayed(given: Contest, which: str) -> str:
    played = {problem for problem, _, _ in given.played(which)}
    missing = [f"`{name}`" for name in OWN_HORIZON if name not in played]
    return f"\n\nNot played: {', '.join(missing)}." if missing and played else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`auto` against the best other policy: its name, the paired difference, the same as a share, and the word."""

    rival: str
    gap: Estimate
    share: float  # of the rival's mean; infinite where that is 0
    word: str  # ahead, equal, behind, or unsaid


def verdict(scores: Scores, rival: str | None = None) -> Verdict | None:
    """Equal is what lies within two standard errors or 10 %; None where `auto` or the other one is missing."""
    rival = rival or best(scores, is_rival)
    if rival is None or rival not in scores or "auto" not in scores:
        return None
    gap = difference(scores["auto"], scores[rival])
    if gap is None:
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


def verdict_table(given: Contest, which: str) -> str:
    head = ["problem", "rounds", "best other", "common seeds", "`auto` − other", "in %", "`auto` is"]
    rows: list[list[str]] = []
    for problem, horizon, scores in given.played(which):
        if found := verdict(scores):
            said = _said(found, given.reasons.get(problem, ""))
            cells = [f"`{found.rival}`", str(found.gap.pairs), _signed(found.gap), _percent(found.share, "+"), said]
            rows.append([f"`{problem}`{given.mark(problem, horizon)}", str(horizon), *cells])
    return _or_unmeasured(head, rows, rule="---")


def _signed(gap: Estimate) -> str:
    return f"+{gap}" if gap.value > 0 else str(gap)


def tally(given: Contest, which: str, rival: str | None = None) -> str:
    """How often `auto` is ahead, equal and behind, beside the best other policy or this one, as part of a sentence."""
    words = Counter(found.word for _, _, scores in given.played(which) if (found := verdict(scores, rival)))
    said = words["ahead"] + words["equal"] + words["behind"]
    if not said:
        return f"({UNMEASURED})"
    return f"ahead on {words['ahead']}, equal on {words['equal']} and behind on {words['behind']} of {said} problems"


def measured(given: Contest, problem: str, *policies: str) -> str:
    """Mean regrets of policies on a problem of its own length over the seeds they share; `linear` and `best` are the
    best of these."""
    scores = given.at(problem)
    asked = {"linear": best(scores, is_linear) or "", "best": best(scores, is_rival) or ""}
    names = [name for name in dict.fromkeys(asked.get(policy, policy) for policy in policies) if name in scores]
    columns = aligned(*(scores[name].regret for name in names)) if names else []
    if not columns or not columns[0]:
        return UNMEASURED
    shown = ", ".join(f"`{name}` {mean_of(values)}" for name, values in zip(names, columns, strict=True))
    return f"{shown} ({len(columns[0])} seeds){given.mark(problem)}"


def claims_table(given: Contest) -> str:
    """Everything is of the problems' own length, and what stands beside linear policies of both."""
    rows = [
        *(_near_linear(given.at(name), name) for name in ("ml-paper", "ml-volatile")),
        *_at_both(_beside_linear, given, ("ml-ideal", "bump", "clusters", "yelp", "replay")),
        *(_gap_closed(given.at(name), name) for name in ("ml-volatile", "ml-ideal", "bump")),
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
            yield ask(given.at(problem, horizon), f"`{problem}`, {horizon} rounds{given.mark(problem, horizon)}")


def _beside_linear(scores: Scores, where: str) -> list[str] | None:
    linear = best(scores, is_linear)
    return _share_of(scores, linear, where, "the best linear policy's") if linear else None


def _share_of(scores: Scores, other: str, where: str, whose: str) -> list[str] | None:
    if other not in scores or "auto" not in scores:
        return None
    ratio = _ratio(scores["auto"].regret, scores[other].regret)
    question = f"which share of {whose} regret has `auto`?"
    return [question, where, f"`auto` / `{other}`: {ratio}", _beside(ratio, 1)] if ratio else None


def _gap_closed(scores: Scores, problem: str) -> list[str] | None:
    """(neuclust − cn-ucb) / cluster-oracle: 1 where mixing clusters wins back all that one cluster costs."""
    names = ("neuclust", "cn-ucb", "cluster-oracle")
    if not all(name in scores for name in names):
        return None
    inside, across, floor = aligned(*(scores[name].regret for name in names))
    if not inside or fmean(floor) == 0:
        return None
    share = ratio_of([one - other for one, other in zip(inside, across, strict=True)], floor)
    question = "which share of what slates inside one cluster must cost is won back across clusters?"
    shown = f"(`neuclust` − `cn-ucb`) / `cluster-oracle`: {share}"
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
    where = f"`delayed`, `clusters`, {horizon} rounds{given.mark('delayed', horizon)}"
    return [question, where, shown, _beside(ratio, 1)] if ratio else None


def _ratio(tops: Mapping[int, float], bottoms: Mapping[int, float]) -> Estimate | None:
    """Ratio of means over common seeds; None where there is none."""
    above, below = aligned(tops, bottoms)
    found = ratio_of(above, below) if above else None
    return found if found and math.isfinite(found.value) else None


def _beside(estimate: Estimate, level: int) -> str:
    if not estimate.surely_off(level):
        return f"cannot be told from {level}"
    return f"{'above' if estimate.value > level else 'below'} {level}"


def cost_table(given: Contest) -> str:
    """Milliseconds per round of every policy played on a core: the median problem, the quickest and the slowest."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for problem, _, scores in given.played("own"):
        for policy in filter(lambda name: name == "auto" or is_rival(name), scores):
            if (seconds := scores[policy].seconds) is not None:
                found[policy][problem] = 1000 * seconds
    ordered = sorted(found.items(), key=lambda item: median(item[1].values()))
    rows = [
        [f"`{policy}`", number(median(times.values())), *(_named(times, pick) for pick in (min, max)), str(len(times))]
        for policy, times in ordered
    ]
    return _or_unmeasured(["policy", "median problem", "quickest", "slowest", "problems"], rows)


def _named(times: Mapping[str, float], pick: Callable[..., str]) -> str:
    problem = pick(times, key=lambda name: times[name])
    return f"{number(times[problem])} (`{problem}`)"
