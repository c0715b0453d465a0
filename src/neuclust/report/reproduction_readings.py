"""What the readings of the paper decide: the order of NeUClust and CN-UCB, the part of F in it, and K-LinUCB's α."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from neuclust.analysis.claims import JudgedClaim, common_seeds, order_evidence, order_verdict
from neuclust.analysis.groups import Contender, Estimate
from neuclust.analysis.published import published
from neuclust.experiment.reproduction.phases import PRINTED_ALPHAS, READINGS, WITHOUT_SLATE_NET, Reading
from neuclust.report.reproduction import Reproduction
from neuclust.report.tables import FEW_SEEDS, is_within_noise, number, paired_difference, with_error


@dataclass(frozen=True, slots=True)
class Order:
    """NeUClust beside CN-UCB under one reading; the gap is NeUClust's regret minus CN-UCB's, paired by seed."""

    reading: Reading
    ours: Contender
    theirs: Contender
    gap: Estimate
    pairs: int

    @property
    def ahead(self) -> int:
        """On how many common seeds NeUClust has less regret."""
        theirs = {run.seed: run.expected_regret for run in self.theirs.runs}
        return sum(run.expected_regret < theirs[run.seed] for run in self.ours.runs if run.seed in theirs)


def reading_verdicts(found: Reproduction) -> list[JudgedClaim]:
    """The order under every reading played, what it turns on, what F does to it, and α of K-LinUCB."""
    orders = reading_orders(found)
    return [*(_order(order) for order in orders), *_turns_on_the_start(orders), *_part_of_f(found), *_alpha(found)]


def reading_orders(found: Reproduction) -> list[Order]:
    """Readings under which both were played on common seeds."""
    made = []
    for reading in found.study.readings:
        ours, theirs = found.under(reading, "neuclust"), found.under(reading, "cn-ucb")
        gap = None if ours is None or theirs is None else paired_difference(ours, theirs)
        if ours is not None and theirs is not None and gap is not None:
            made.append(Order(reading, ours, theirs, gap, common_seeds(ours, theirs)))
    return made


def readings_json(found: Reproduction) -> list[dict[str, Any]]:
    """Every reading played, as plain numbers under names that stay."""
    return [
        {
            "reading": reading_title(order.reading),
            "words": order.reading.words,
            "starts_at_zero": order.reading.starts_at_zero,
            "neuclust": asdict(order.ours.over_seeds("expected_regret")),
            "neuclust_clipped": asdict(order.ours.over_seeds("clipped_regret")),
            "cn_ucb": asdict(order.theirs.over_seeds("expected_regret")),
            "cn_ucb_clipped": asdict(order.theirs.over_seeds("clipped_regret")),
            "without_f": None if bare is None else asdict(bare.over_seeds("expected_regret")),
            "difference": asdict(order.gap),
            "seeds": order.pairs,
            "ahead": order.ahead,
        }
        for order in reading_orders(found)
        for bare in [found.under(order.reading, "neuclust", WITHOUT_SLATE_NET)]
    ]


def reading_cells(row: Mapping[str, Any]) -> dict[str, str]:
    """The words of a line of `readings_json` by heading."""

    def words(key: str, sign: bool = False) -> str:
        return "–" if row[key] is None else with_error(Estimate(**row[key]), sign=sign)

    return {
        "reading": str(row["reading"]),
        "what it means": str(row["words"]),
        "NeUClust": words("neuclust"),
        "CN-UCB": words("cn_ucb"),
        "NeUClust without F": words("without_f"),
        "NeUClust − CN-UCB, paired": words("difference", sign=True),
        "NeUClust ahead": f"{row['ahead']} of {row['seeds']} seeds",
    }


def reading_title(reading: Reading) -> str:
    """`paper`, or `paper, init=symmetric`."""
    short = [f"{key.rsplit('.', 1)[-1]}={value}" for key, value in reading.settings.items()]
    return ", ".join([reading.preset, *short])


def _order(order: Order) -> JudgedClaim:
    claim = f"NeUClust has less regret than CN-UCB (reading {reading_title(order.reading)}: {order.reading.words})"
    evidence = order_evidence(order.ours, order.theirs, order.gap, order.pairs)
    return JudgedClaim(claim, order_verdict(order.gap, order.pairs), evidence)


def _turns_on_the_start(orders: Sequence[Order]) -> list[JudgedClaim]:
    """Ahead or level where f(·; θ_0) = 0, behind where it is not."""
    kinds = {zero: [order for order in orders if order.reading.starts_at_zero is zero] for zero in (True, False)}
    if not all(kinds.values()) or min(order.pairs for order in orders) < FEW_SEEDS:
        return []
    behind = {zero: [order for order in kinds[zero] if _is_behind(order)] for zero in kinds}
    told = "; ".join(f"{reading_title(order.reading)} {with_error(order.gap, sign=True)}" for order in orders)
    counts = (
        f"NeUClust is behind in {len(behind[True])} of {len(kinds[True])} readings where the net starts at f = 0 and "
        f"in {len(behind[False])} of {len(kinds[False])} where it does not"
    )
    turns = not behind[True] and len(behind[False]) == len(kinds[False])
    claim = "The order turns on the start of the net" if turns else "The start of the net is not all that decides"
    return [JudgedClaim(claim, "finding", f"{counts}. Paired differences: {told}.")]


def _is_behind(order: Order) -> bool:
    return order.gap.mean > 0 and not is_within_noise(order.gap)


def _part_of_f(found: Reproduction) -> list[JudgedClaim]:
    """NeUClust with F minus NeUClust without it, reading by reading."""
    told = []
    for reading in found.study.readings:
        ours, bare = found.under(reading, "neuclust"), found.under(reading, "neuclust", WITHOUT_SLATE_NET)
        gap = None if ours is None or bare is None else paired_difference(ours, bare)
        if bare is None or gap is None or ours is None or common_seeds(ours, bare) < FEW_SEEDS:
            continue
        word = "no difference told" if is_within_noise(gap) else "F helps" if gap.mean < 0 else "F hurts"
        regret = with_error(bare.over_seeds("expected_regret"))
        told.append(f"{reading_title(reading)} {with_error(gap, sign=True)} (without F {regret}): {word}")
    if not told:
        return []
    return [
        JudgedClaim("What F does", "finding", f"Expected regret with F minus without it, paired: {'; '.join(told)}.")
    ]


def _alpha(found: Reproduction) -> list[JudgedClaim]:
    """K-LinUCB over the printed range of α."""
    points = [
        (alpha, one)
        for alpha in PRINTED_ALPHAS
        for one in found.contenders(READINGS)
        if one.policy == "linucb-disjoint" and one.runs[0].settings.get("alpha") == alpha
    ]
    if len(points) < 2 or min(len(one.runs) for _, one in points) < FEW_SEEDS:
        return []
    told = "; ".join(
        f"α = {alpha}: {with_error(one.over_seeds('expected_regret'))} (clipped "
        f"{number(one.over_seeds('clipped_regret').mean)})"
        for alpha, one in points
    )
    best, _ = min(points, key=lambda point: point[1].over_seeds("expected_regret").mean)
    printed = published(found.study.name, "linucb-disjoint").regret
    beside = ""
    if printed is not None and found.comparable:
        near, _ = min(points, key=lambda point: abs(point[1].over_seeds("clipped_regret").mean - printed))
        beside = f" Nearest to the published {printed:.0f} is α = {near}."
    text = f"Expected regret by α inside the printed range 0.01 to 1: {told}. Least with α = {best}.{beside}"
    return [JudgedClaim("K-LinUCB over the printed range of α", "finding", text)]
