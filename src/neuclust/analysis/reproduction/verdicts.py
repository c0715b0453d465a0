"""What reproduces and what does not: every verdict is computed from the records, with the numbers it rests on."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from neuclust.analysis.claims import Answer, JudgedClaim, paired, regret_of
from neuclust.analysis.estimates import FEW_SEEDS, NOISE, Estimate, estimate, number, with_error
from neuclust.analysis.groups import Contender
from neuclust.analysis.published import ELBOWS, NAMES, SCRIPTS, SCRIPTS_AT, published
from neuclust.analysis.reproduction.readings import reading_orders, reading_title, reading_verdicts
from neuclust.analysis.reproduction.results import Reproduction, Row, cluster_points, inferred_regret, table_rows
from neuclust.analysis.reproduction.rewards import reward_verdicts
from neuclust.experiment.reproduction.phases import AUTHORS, GRIDS, OURS, PAPER, PHASE_TITLES, READINGS, TUNED

NEARLY_NOTHING = 0.01  # of the regret of random slates
OWN_DESIGNS = ("neural-mab",)  # our reading of one sentence of the paper: its numbers say nothing about theirs
MEANINGS = {  # of settings where the name of their preset does not say it
    ("linucb-disjoint", "default"): "one model per arm, raw contexts, α = 1",
    ("cc-mab", "default"): "contexts scaled into [0, 1], as CC-MAB asks",
    ("cc-mab", "authors-ml"): "the authors' raw contexts, which reach 5",
    ("neural-mab", "authors-ml"): "the authors' one linear layer, greedy",
}


def verdicts(found: Reproduction) -> list[JudgedClaim]:
    """All that these records can say; a question they do not touch is left out."""
    makers: tuple[Callable[[Reproduction], Sequence[JudgedClaim]], ...] = (
        reading_verdicts, _orders, _scripts, _sizes, _own_designs, reward_verdicts, _floor, _static, _linear, _random,
        _clusters, _elbow, _times,
    )  # fmt: skip
    judged = [verdict for make in makers for verdict in make(found)]
    return judged if found.source is not None else [_of_twin(verdict) for verdict in judged]


def _of_twin(verdict: JudgedClaim) -> JudgedClaim:
    """A twin is not the paper's data: what holds there is said to hold there."""
    return verdict if verdict.answer == "finding" else replace(verdict, claim=f"On the twin: {verdict.claim}")


def _finding(claim: str, evidence: str) -> list[JudgedClaim]:
    return [JudgedClaim(claim, "finding", evidence)]


def _orders(found: Reproduction) -> list[JudgedClaim]:
    """The order in every phase; where readings were played, they speak for the paper's settings, by name."""
    phases = (*(() if reading_orders(found) else (PAPER,)), AUTHORS, GRIDS, TUNED, OURS)
    pairs = {phase: paired(*(found.contender(phase, name) for name in ("neuclust", "cn-ucb"))) for phase in phases}
    claim = "NeUClust has less regret than CN-UCB"
    return [
        pair.judged(f"{claim} ({PHASE_TITLES[phase]}: {pair.ours.title}, {pair.theirs.title})")
        for phase, pair in pairs.items()
        if pair is not None
    ]


def _scripts(found: Reproduction) -> list[JudgedClaim]:
    """What the authors' own scripts gave belongs beside any word on the order; too few runs for a verdict."""
    runs = SCRIPTS[found.study.name]
    if not runs or not (_orders(found) or reading_orders(found)):
        return []
    ours, theirs = estimate(runs["neuclust"]), estimate(runs["cn-ucb"])
    gap = Estimate(ours.mean - theirs.mean, math.hypot(ours.error or 0.0, theirs.error or 0.0))
    evidence = (
        f"Run unmodified on the MovieLens data, clipped regret after {SCRIPTS_AT} rounds: NeUClust {with_error(ours)} "
        f"({len(runs['neuclust'])} runs), CN-UCB {with_error(theirs)} ({len(runs['cn-ucb'])} runs), difference "
        f"{with_error(gap, sign=True)}, not paired. Noted earlier, not played for this page."
    )
    return _finding("The order under the authors' own scripts", evidence)


def printed_error(regret: float, rounds: int, runs: int) -> float:
    """Standard error of a printed clipped regret C, a sum of T coins of chance C/T, over n runs: √(C(1 − C/T)/n)."""
    return math.sqrt(regret * (1 - regret / rounds) / runs)


def size_verdict(measured: Estimate, runs: int, printed: float, error: float) -> Answer:
    """Whether a printed number lies within two combined standard errors of the measured one."""
    if runs < FEW_SEEDS or measured.error is None:
        return "cannot be told"
    near = abs(measured.mean - printed) <= NOISE * math.hypot(measured.error, error)
    return "reproduces" if near else "does not reproduce"


def _sizes(found: Reproduction) -> list[JudgedClaim]:
    """Published clipped regrets, without those of the paper's protocol that a reading answers on more seeds."""
    rows = table_rows(found) if found.comparable and found.source is not None else []
    known = {(row.policy, row.preset) for row in rows if row.protocol == READINGS}
    judged = [
        row
        for row in rows
        if row.protocol in (READINGS, AUTHORS)
        or (row.protocol == PAPER and (row.policy, row.preset) not in known and row.policy not in OWN_DESIGNS)
    ]
    return [
        _size(found, row, row.published.regret, row.measured)
        for row in judged
        if row.published.regret is not None and row.measured is not None
    ]


def _size(found: Reproduction, row: Row, printed: float, measured: Contender) -> JudgedClaim:
    clipped = measured.over_seeds("clipped_regret")
    error = printed_error(printed, found.rounds, found.study.runs)
    behind = inferred_regret(found, row) or 0.0
    evidence = (
        f"Measured {with_error(clipped)}, published {printed:.0f} (standard error from coins alone: about "
        f"{error:.1f}). In expected regret: {regret_of(measured)} measured, {behind:.1f} behind the published number."
    )
    claim = f"{row.name} has a clipped regret of {printed:.0f} ({_reading_of(found, row)})"
    return JudgedClaim(claim, size_verdict(clipped, len(measured.runs), printed, error), evidence)


def _reading_of(found: Reproduction, row: Row) -> str:
    """The reading a row rests on, in words."""
    for reading in found.study.readings:
        if row.protocol == READINGS and row.measured == found.under(reading, row.policy):
            return f"reading {reading_title(reading)}: {reading.words}"
    return f"{PHASE_TITLES[row.protocol]}: {MEANINGS.get((row.policy, row.preset), row.preset)}"


def _own_designs(found: Reproduction) -> list[JudgedClaim]:
    """Policies whose description in the paper is one sentence: our design beside the published number."""
    rows = [row for row in table_rows(found) if row.policy in OWN_DESIGNS and row.protocol == PAPER]
    return [
        JudgedClaim(
            f"{row.name} in our own design",
            "finding",
            f"Two networks of our own design have a clipped regret of {regret_of(row.measured, 'clipped_regret')}, "
            f"published {row.published.regret:.0f}. The authors' script is another algorithm, one linear layer "
            "without exploration, so that neither agreement nor difference says anything about the published number.",
        )
        for row in rows
        if row.measured is not None and found.comparable
    ]


def _floor(found: Reproduction) -> list[JudgedClaim]:
    run = found.any_run
    if run is None:
        return []
    text = (
        f"A perfect policy pays {number(run.clipped_floor)} of clipped regret in {run.rounds} rounds, on average: bad "
        "luck is counted and good luck is not."
    )
    best = published(found.study.name, "neuclust").regret
    if best is not None and found.comparable and found.source is not None:
        text += f" That is {run.clipped_floor / best:.0%} of the {best:.0f} published for NeUClust."
    return _finding("The floor of the published metric", text)


def _static(found: Reproduction) -> list[JudgedClaim]:
    pair = paired(found.contender(PAPER, "static"), found.contender(PAPER, "uniform"))
    if pair is None or pair.few:
        return []
    lost, all_of_it = (one.over_seeds("expected_regret").mean for one in (pair.ours, pair.theirs))
    share = lost / all_of_it if all_of_it else 0.0
    shown = f"{share:.2%}" if share >= 0.0001 or share == 0.0 else "less than 0.01%"
    word = "so contexts are hardly needed" if share < NEARLY_NOTHING else "so contexts are needed"
    text = (
        f"One fixed slate for all rounds, chosen with knowledge of the means, has expected regret {number(lost)}, "
        f"{shown} of the {number(all_of_it)} of random slates: {word} to play this problem well."
    )
    return _finding("One fixed slate, without contexts", text)


def _linear(found: Reproduction) -> list[JudgedClaim]:
    linear = found.contender(OURS, "linucb") or found.contender(PAPER, "linucb")
    phases, names = (PAPER, OURS, AUTHORS, TUNED, GRIDS), ("neuclust", "neuclust-online", "cn-ucb")
    neural = [one for phase in phases for one in found.contenders(phase) if one.policy in names]
    if linear is None or not neural:
        return []
    best = min(neural, key=lambda one: one.over_seeds("expected_regret").mean)
    pair = paired(best, linear)
    if pair is None or pair.few:
        tail = f"fewer than {FEW_SEEDS} common seeds do not tell them apart."
    else:
        word = ": less regret than the linear model" if pair.gap.mean < 0 else ": more regret than the linear model"
        tail = f"paired difference to linucb {pair.difference}{', within noise' if pair.within_noise else word}."
    text = (
        f"A shared linear model (linucb) has expected regret {regret_of(linear)} and clipped regret "
        f"{regret_of(linear, 'clipped_regret')}; the best of NeUClust, its online variant and CN-UCB here, "
        f"{best.title}, {regret_of(best)}; {tail}"
    )
    return _finding("A shared linear model, without a network", text)


def _random(found: Reproduction) -> list[JudgedClaim]:
    """CC-MAB's printed regret is that of random slates."""
    pair = paired(found.contender(PAPER, "cc-mab"), found.contender(PAPER, "uniform"))
    if pair is None or pair.few:
        return []
    same = pair.within_noise or abs(pair.gap.mean) < 0.05 * pair.theirs.over_seeds("expected_regret").mean
    word = "no better and no worse" if same else "worse" if pair.gap.mean > 0 else "better"
    text = (
        f"CC-MAB has expected regret {regret_of(pair.ours)}, random slates {regret_of(pair.theirs)}; paired difference "
        f"{pair.difference}: {word} than random in {found.rounds} rounds."
    )
    return _finding("CC-MAB, contexts scaled into [0, 1], beside random slates", text)


def _clusters(found: Reproduction) -> list[JudgedClaim]:
    points = cluster_points(found, "neuclust")
    chosen = dict(points).get(found.study.clusters)
    if chosen is None or len(points) < 2:
        return []
    regrets = {count: one.over_seeds("expected_regret").mean for count, one in points}
    least = min(regrets, key=lambda count: regrets[count])
    listed = ", ".join(f"{count}: {number(regret)}" for count, regret in regrets.items())
    best = dict(points)[least]
    if best is chosen:
        pairs = [paired(one, chosen) for _, one in points if one is not chosen]
        told = all(pair is not None and not pair.few and not pair.within_noise for pair in pairs)
        answer: Answer = "reproduces" if told else "cannot be told"
        what = "and every other number more than" if told else "but not by more than"
        text = f"It has the least, {what} chance explains."
    else:
        pair = paired(chosen, best)
        told = pair is not None and not pair.few and not pair.within_noise
        answer = "does not reproduce" if told else "cannot be told"
        difference = "" if pair is None else f", paired difference {pair.difference}"
        few = f"from fewer than {FEW_SEEDS} seeds" if pair is None or pair.few else ""
        noise = "more than chance explains" if told else "which these seeds cannot tell from chance"
        text = f"Least with {least}{difference}, {few or noise}."
    evidence = f"Expected regret by number of clusters: {listed}. {text}"
    return [JudgedClaim(f"{found.study.clusters} clusters are the best number", answer, evidence)]


def _elbow(found: Reproduction) -> list[JudgedClaim]:
    if len(found.elbow) < 3:
        return []
    corner, squares, (first, whole) = elbow_corner(found.elbow), dict(found.elbow), found.elbow[0]
    low, high = ELBOWS[found.study.name]
    chosen = squares.get(found.study.clusters)
    at_chosen = "" if chosen is None else f"; with {found.study.clusters} it is {chosen / whole:.0%}"
    text = (
        f"The curve bends most at {corner} clusters (the point furthest below the line between its ends), where "
        f"{squares[corner] / whole:.0%} of the sum of squares with {first} is left{at_chosen}."
    )
    if found.source is None:  # the paper's statement is about the data, not about a twin of it
        return _finding(
            f"The elbow lies between {low} and {high} clusters", f"On the twin: {text[0].lower()}{text[1:]}"
        )
    answer: Answer = "reproduces" if low <= corner <= high else "does not reproduce"
    return [JudgedClaim(f"The elbow lies between {low} and {high} clusters", answer, text)]


def elbow_corner(curve: Sequence[tuple[int, float]]) -> int:
    """The number of clusters furthest below the straight line between the two ends of the curve."""
    (first, high), (last, low) = curve[0], curve[-1]
    return max(curve, key=lambda point: high + (low - high) * (point[0] - first) / (last - first) - point[1])[0]


def _times(found: Reproduction) -> list[JudgedClaim]:
    rows = [row for row in table_rows(found) if row.protocol == PAPER] if found.comparable else []
    return [
        JudgedClaim(
            f"Time of {NAMES[row.policy]}, published: {printed:,.0f} s",
            "finding",
            f"{seconds:.1f} s per run here, on other hardware: {printed / seconds:,.0f} times less.",
        )
        for row in rows
        if row.measured is not None and (printed := row.published.seconds) is not None
        for seconds in [row.measured.over_seeds("seconds").mean]
    ]
