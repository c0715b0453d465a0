"""What the readings of the paper decide: the order of NeUClust and CN-UCB, the part of F in it, and K-LinUCB's α."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from neuclust.analysis.claims import JudgedClaim, PairedRegrets, paired, regret_of
from neuclust.analysis.estimates import FEW_SEEDS, number
from neuclust.analysis.groups import Contender
from neuclust.analysis.published import published
from neuclust.analysis.reproduction.results import Reproduction
from neuclust.experiment.reproduction.phases import PRINTED_ALPHAS, READINGS, WITHOUT_SLATE_NET, Reading

Order = tuple[Reading, PairedRegrets]  # NeUClust beside CN-UCB under one reading


def reading_verdicts(found: Reproduction) -> list[JudgedClaim]:
    """The order under every reading played, what it turns on, what F does to it, and α of K-LinUCB."""
    orders = reading_orders(found)
    judged = [
        pair.judged(f"NeUClust has less regret than CN-UCB (reading {reading_title(reading)}: {reading.words})")
        for reading, pair in orders
    ]
    return [*judged, *_turns_on_the_start(orders), *_part_of_f(found), *_alpha(found)]


def reading_orders(found: Reproduction) -> list[Order]:
    """Readings under which both were played on common seeds."""
    return [
        (reading, pair)
        for reading in found.study.readings
        if (pair := paired(found.under(reading, "neuclust"), found.under(reading, "cn-ucb"))) is not None
    ]


def readings_json(found: Reproduction) -> list[dict[str, Any]]:
    """Every reading played, as plain numbers under names that stay."""

    def regrets(contender: Contender, column: str = "expected_regret") -> dict[str, Any]:
        return asdict(contender.over_seeds(column))

    return [
        {
            "reading": reading_title(reading),
            "words": reading.words,
            "starts_at_zero": reading.starts_at_zero,
            "neuclust": regrets(pair.ours),
            "neuclust_clipped": regrets(pair.ours, "clipped_regret"),
            "cn_ucb": regrets(pair.theirs),
            "cn_ucb_clipped": regrets(pair.theirs, "clipped_regret"),
            "without_f": None if bare is None else regrets(bare),
            "difference": asdict(pair.gap),
            "seeds": len(pair.gaps),
            "ahead": sum(gap < 0 for gap in pair.gaps),
        }
        for reading, pair in reading_orders(found)
        for bare in [found.under(reading, "neuclust", WITHOUT_SLATE_NET)]
    ]


def reading_title(reading: Reading) -> str:
    """`paper`, or `paper, init=symmetric`."""
    short = [f"{key.rsplit('.', 1)[-1]}={value}" for key, value in reading.settings.items()]
    return ", ".join([reading.preset, *short])


def _turns_on_the_start(orders: Sequence[Order]) -> list[JudgedClaim]:
    """Ahead or level where f(·; θ_0) = 0, behind where it is not."""
    kinds = {zero: [pair for reading, pair in orders if reading.starts_at_zero is zero] for zero in (True, False)}
    if not all(kinds.values()) or any(pair.few for _, pair in orders):
        return []
    behind = {zero: sum(pair.gap.mean > 0 and not pair.within_noise for pair in kinds[zero]) for zero in kinds}
    told = "; ".join(f"{reading_title(reading)} {pair.difference}" for reading, pair in orders)
    counts = (
        f"NeUClust is behind in {behind[True]} of {len(kinds[True])} readings where the net starts at f = 0 and "
        f"in {behind[False]} of {len(kinds[False])} where it does not"
    )
    turns = not behind[True] and behind[False] == len(kinds[False])
    claim = "The order turns on the start of the net" if turns else "The start of the net is not all that decides"
    return [JudgedClaim(claim, "finding", f"{counts}. Paired differences: {told}.")]


def _part_of_f(found: Reproduction) -> list[JudgedClaim]:
    """NeUClust with F minus NeUClust without it, reading by reading."""
    told = []
    for reading in found.study.readings:
        pair = paired(found.under(reading, "neuclust"), found.under(reading, "neuclust", WITHOUT_SLATE_NET))
        if pair is None or pair.few:
            continue
        word = "no difference told" if pair.within_noise else "F helps" if pair.gap.mean < 0 else "F hurts"
        told.append(f"{reading_title(reading)} {pair.difference} (without F {regret_of(pair.theirs)}): {word}")
    evidence = f"Expected regret with F minus without it, paired: {'; '.join(told)}."
    return [JudgedClaim("What F does", "finding", evidence)] if told else []


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
    clipped = {alpha: one.over_seeds("clipped_regret").mean for alpha, one in points}
    told = "; ".join(f"α = {alpha}: {regret_of(one)} (clipped {number(clipped[alpha])})" for alpha, one in points)
    best, _ = min(points, key=lambda point: point[1].over_seeds("expected_regret").mean)
    printed = published(found.study.name, "linucb-disjoint").regret
    beside = ""
    if printed is not None and found.comparable:
        near = min(clipped, key=lambda alpha: abs(clipped[alpha] - printed))
        beside = f" Nearest to the published {printed:.0f} is α = {near}."
    text = f"Expected regret by α inside the printed range 0.01 to 1: {told}. Least with α = {best}.{beside}"
    return [JudgedClaim("K-LinUCB over the printed range of α", "finding", text)]
