"""What reproduces and what does not: every verdict is computed from the records, with the numbers it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from neuclust.analysis.claims import Answer, JudgedClaim, common_seeds, order_evidence, order_verdict
from neuclust.analysis.groups import Contender, Estimate, estimate
from neuclust.analysis.published import NAMES, SCRIPTS, SCRIPTS_AT, published
from neuclust.experiment.reproduction.phases import AUTHORS, GRIDS, OURS, PAPER, PHASE_TITLES, READINGS, TUNED
from neuclust.report.reproduction import Reproduction, Row, cluster_points, inferred_regret, table_rows
from neuclust.report.reproduction_readings import reading_orders, reading_title, reading_verdicts
from neuclust.report.tables import FEW_SEEDS, NOISE, is_within_noise, number, paired_difference, with_error

NEARLY_NOTHING = 0.01  # of the regret of random slates


def verdicts(found: Reproduction) -> list[JudgedClaim]:
    """All that these records can say; a question they do not touch is left out."""
    makers: tuple[Callable[[Reproduction], Sequence[JudgedClaim]], ...] = (
        reading_verdicts, _orders, _scripts, _sizes, _own_designs, _floor, _static, _linear, _random, _clusters,
        _elbow, _times,
    )  # fmt: skip
    return [verdict for make in makers for verdict in make(found)]


def _orders(found: Reproduction) -> list[JudgedClaim]:
    """The order in every phase; where readings were played, they speak for the paper's settings, by name."""
    made = []
    for phase in (*(() if reading_orders(found) else (PAPER,)), AUTHORS, GRIDS, TUNED, OURS):
        ours, theirs = found.contender(phase, "neuclust"), found.contender(phase, "cn-ucb")
        if ours is None or theirs is None or (gap := paired_difference(ours, theirs)) is None:
            continue
        pairs = common_seeds(ours, theirs)
        claim = f"NeUClust has less regret than CN-UCB ({PHASE_TITLES[phase]}: {ours.title}, {theirs.title})"
        made.append(JudgedClaim(claim, order_verdict(gap, pairs), order_evidence(ours, theirs, gap, pairs)))
    return made


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
    return [JudgedClaim("The order under the authors' own scripts", "finding", evidence)]


def printed_error(regret: float, rounds: int, runs: int) -> float:
    """Standard error of a printed clipped regret C, a sum of T coins of chance C/T, over n runs: √(C(1 − C/T)/n)."""
    return math.sqrt(regret * (1 - regret / rounds) / runs)


def size_verdict(measured: Estimate, runs: int, printed: float, error: float) -> Answer:
    """Whether a printed number lies within two combined standard errors of the measured one."""
    if runs < FEW_SEEDS or measured.error is None:
        return "cannot be told"
    near = abs(measured.mean - printed) <= NOISE * math.hypot(measured.error, error)
    return "reproduces" if near else "does not reproduce"


OWN_DESIGNS = ("neural-mab",)  # our reading of one sentence of the paper: its numbers say nothing about theirs


def _sizes(found: Reproduction) -> list[JudgedClaim]:
    if not found.comparable:
        return []
    return [
        _size(found, row, row.published.regret, row.measured)
        for row in table_rows(found)
        if row.published.regret is not None and row.measured is not None and _judges_size(found, row)
    ]


def _judges_size(found: Reproduction, row: Row) -> bool:
    """The paper's protocol, unless a reading of the same preset says the same on more seeds; the authors' settings."""
    if row.protocol == PAPER:
        same = [each for each in table_rows(found) if each.protocol == READINGS]
        known = {(each.policy, each.preset) for each in same}
        return (row.policy, row.preset) not in known and row.policy not in OWN_DESIGNS
    return row.protocol in (READINGS, AUTHORS)


def _size(found: Reproduction, row: Row, printed: float, measured: Contender) -> JudgedClaim:
    clipped = measured.over_seeds("clipped_regret")
    error = printed_error(printed, found.rounds, found.study.runs)
    behind = inferred_regret(found, row)
    evidence = (
        f"Measured {with_error(clipped)}, published {printed:.0f} (standard error from coins alone: about "
        f"{error:.1f}). In expected regret: {with_error(measured.over_seeds('expected_regret'))} measured, "
        f"{0.0 if behind is None else behind:.1f} behind the published number."
    )
    claim = f"{row.name} has a clipped regret of {printed:.0f} ({_reading_of(found, row)})"
    return JudgedClaim(claim, size_verdict(clipped, len(measured.runs), printed, error), evidence)


# What a setting means where the name of its preset does not say it.
_MEANINGS = {
    ("linucb-disjoint", "default"): "one model per arm, raw contexts, α = 1",
    ("cc-mab", "default"): "contexts scaled into [0, 1], as CC-MAB asks",
    ("cc-mab", "authors-ml"): "the authors' raw contexts, which reach 5",
    ("neural-mab", "authors-ml"): "the authors' one linear layer, greedy",
}


def _reading_of(found: Reproduction, row: Row) -> str:
    """The reading a row rests on, in words."""
    for reading in found.study.readings:
        if row.protocol == READINGS and row.measured == found.under(reading, row.policy):
            return f"reading {reading_title(reading)}: {reading.words}"
    meaning = _MEANINGS.get((row.policy, row.preset), row.preset)
    return f"{PHASE_TITLES[row.protocol]}: {meaning}"


def _own_designs(found: Reproduction) -> list[JudgedClaim]:
    """Policies whose description in the paper is one sentence: our design beside the published number."""
    made = []
    for row in table_rows(found):
        if row.policy in OWN_DESIGNS and row.protocol == PAPER and row.measured is not None and found.comparable:
            text = (
                f"Two networks of our own design have a clipped regret of "
                f"{with_error(row.measured.over_seeds('clipped_regret'))}, published {row.published.regret:.0f}. The "
                "authors' script is another algorithm, one linear layer without exploration, so that neither agreement "
                "nor difference says anything about the published number."
            )
            made.append(JudgedClaim(f"{row.name} in our own design", "finding", text))
    return made


def _floor(found: Reproduction) -> list[JudgedClaim]:
    run = next((run for runs in found.runs.values() for run in runs), None)
    if run is None:
        return []
    text = (
        f"A perfect policy pays {number(run.clipped_floor)} of clipped regret in {run.rounds} rounds, on average: bad "
        "luck is counted and good luck is not."
    )
    best = published(found.study.name, "neuclust").regret
    if best is not None and found.comparable:
        share = run.clipped_floor / best
        text += f" That is {share:.0%} of the {best:.0f} published for NeUClust."
    return [JudgedClaim("The floor of the published metric", "finding", text)]


def _static(found: Reproduction) -> list[JudgedClaim]:
    fixed, random = found.contender(PAPER, "static"), found.contender(PAPER, "uniform")
    if fixed is None or random is None or common_seeds(fixed, random) < FEW_SEEDS:
        return []
    lost, all_of_it = fixed.over_seeds("expected_regret").mean, random.over_seeds("expected_regret").mean
    share = lost / all_of_it if all_of_it else 0.0
    word = "so contexts are hardly needed" if share < NEARLY_NOTHING else "so contexts are needed"
    text = (
        f"One fixed slate for all rounds, chosen with knowledge of the means, has expected regret {number(lost)}, "
        f"{_percent(share)} of the {number(all_of_it)} of random slates: {word} to play this problem well."
    )
    return [JudgedClaim("One fixed slate, without contexts", "finding", text)]


def _percent(share: float) -> str:
    return f"{share:.2%}" if share >= 0.0001 or share == 0.0 else "less than 0.01%"


def _linear(found: Reproduction) -> list[JudgedClaim]:
    linear = found.contender(OURS, "linucb") or found.contender(PAPER, "linucb")
    rivals = [
        one
        for phase in (PAPER, OURS, AUTHORS, TUNED, GRIDS)
        for one in found.contenders(phase)
        if one.policy in ("neuclust", "neuclust-online", "cn-ucb")
    ]
    if linear is None or not rivals:
        return []
    best = min(rivals, key=lambda one: one.over_seeds("expected_regret").mean)
    gap = paired_difference(best, linear)
    reached = with_error(linear.over_seeds("expected_regret"))
    text = f"A shared linear model (linucb) has expected regret {reached} and clipped regret "
    text += f"{with_error(linear.over_seeds('clipped_regret'))}; the best of NeUClust, its online variant and CN-UCB "
    text += f"here, {best.title}, "
    text += f"{with_error(best.over_seeds('expected_regret'))}"
    if gap is None or common_seeds(best, linear) < FEW_SEEDS:
        tail = f"; fewer than {FEW_SEEDS} common seeds do not tell them apart."
    elif is_within_noise(gap):
        tail = f"; paired difference to linucb {with_error(gap, sign=True)}, within noise."
    else:
        word = "less" if gap.mean < 0 else "more"
        tail = f"; paired difference to linucb {with_error(gap, sign=True)}: {word} regret than the linear model."
    return [JudgedClaim("A shared linear model, without a network", "finding", text + tail)]


def _random(found: Reproduction) -> list[JudgedClaim]:
    """CC-MAB's printed regret is that of random slates."""
    cubes, random = found.contender(PAPER, "cc-mab"), found.contender(PAPER, "uniform")
    gap = None if cubes is None or random is None else paired_difference(cubes, random)
    if cubes is None or random is None or gap is None or common_seeds(cubes, random) < FEW_SEEDS:
        return []
    one, other = (with_error(each.over_seeds("expected_regret")) for each in (cubes, random))
    same = is_within_noise(gap) or abs(gap.mean) < 0.05 * random.over_seeds("expected_regret").mean
    word = "no better and no worse" if same else "worse" if gap.mean > 0 else "better"
    text = (
        f"CC-MAB has expected regret {one}, random slates {other}; paired difference {with_error(gap, sign=True)}: "
        f"{word} than random in {found.rounds} rounds."
    )
    return [JudgedClaim("CC-MAB, contexts scaled into [0, 1], beside random slates", "finding", text)]


def _clusters(found: Reproduction) -> list[JudgedClaim]:
    points = cluster_points(found, "neuclust")
    chosen = dict(points).get(found.study.clusters)
    if chosen is None or len(points) < 2:
        return []
    count, best = min(points, key=lambda point: point[1].over_seeds("expected_regret").mean)
    claim = f"{found.study.clusters} clusters are the best number"
    listed = ", ".join(f"{number_of}: {number(one.over_seeds('expected_regret').mean)}" for number_of, one in points)
    if best is chosen:
        answer, text = _best_of(points, chosen)
        return [JudgedClaim(claim, answer, f"Expected regret by number of clusters: {listed}. {text}")]
    gap = paired_difference(chosen, best)
    few, listed = common_seeds(chosen, best) < FEW_SEEDS, f"Expected regret by number of clusters: {listed}."
    text = f"{listed} Least with {count}" + ("" if gap is None else f", paired difference {with_error(gap, sign=True)}")
    if gap is None or few:
        return [JudgedClaim(claim, "cannot be told", f"{text}, from fewer than {FEW_SEEDS} seeds.")]
    if is_within_noise(gap):
        return [JudgedClaim(claim, "cannot be told", f"{text}, which these seeds cannot tell from chance.")]
    return [JudgedClaim(claim, "does not reproduce", f"{text}, more than chance explains.")]


def _best_of(points: Sequence[tuple[int, Contender]], chosen: Contender) -> tuple[Answer, str]:
    """The chosen number has the least regret: are all others more than noise away?"""
    gaps = [paired_difference(one, chosen) for _, one in points if one is not chosen]
    enough = all(common_seeds(one, chosen) >= FEW_SEEDS for _, one in points)
    if enough and all(gap is not None and not is_within_noise(gap) for gap in gaps):
        return "reproduces", "It has the least, and every other number more than chance explains."
    return "cannot be told", "It has the least, but not by more than chance explains."


def _elbow(found: Reproduction) -> list[JudgedClaim]:
    if len(found.elbow) < 3:
        return []
    corner = elbow_corner(found.elbow)
    squares = dict(found.elbow)
    chosen = squares.get(found.study.clusters)
    at_chosen = "" if chosen is None else f"; with {found.study.clusters} it is {chosen / found.elbow[0][1]:.0%}"
    text = (
        f"The curve bends most at {corner} clusters (the point furthest below the line between its ends), where "
        f"{squares[corner] / found.elbow[0][1]:.0%} of the sum of squares with {found.elbow[0][0]} is left{at_chosen}."
    )
    return [JudgedClaim("The elbow", "finding", text)]


def elbow_corner(curve: Sequence[tuple[int, float]]) -> int:
    """The number of clusters furthest below the straight line between the two ends of the curve."""
    (first, high), (last, low) = curve[0], curve[-1]

    def below(point: tuple[int, float]) -> float:
        line = high + (low - high) * (point[0] - first) / (last - first)
        return line - point[1]

    return max(curve, key=below)[0]


def _times(found: Reproduction) -> list[JudgedClaim]:
    if not found.comparable:
        return []
    rows = [
        (row, row.measured.over_seeds("seconds").mean)
        for row in table_rows(found)
        if row.measured is not None and row.published.seconds is not None and row.protocol == PAPER
    ]
    return [
        JudgedClaim(
            f"Time of {NAMES[row.policy]}, published: {row.published.seconds:,.0f} s",
            "finding",
            f"{seconds:.1f} s a run here, on other hardware: {(row.published.seconds or 0) / seconds:,.0f} times less.",
        )
        for row, seconds in rows
    ]
