"""A reproduction of invented records whose answers are known."""

from __future__ import annotations

from typing import Any

from invented_records import invented

from neuclust.analysis.reproduction.results import Reproduction
from neuclust.analysis.reproduction.verdicts import verdicts
from neuclust.experiment.records import RunRecord
from neuclust.experiment.reproduction.phases import CLUSTERS, OURS, PAPER, STUDIES, full_scale

MOVIELENS = STUDIES["movielens"]
REGRETS = {
    "neuclust": 15.0, "cn-ucb": 30.0, "linucb-disjoint": 80.0, "cc-mab": 320.0, "linucb": 0.4, "static": 0.01,
    "uniform": 320.0, "oracle": 0.0,
}  # fmt: skip


def runs(regrets: dict[str, float], seeds: int = 6, rounds: int = 1000, **more: Any) -> tuple[RunRecord, ...]:
    """Six seeds of every policy; regrets differ by seed in the same way for all, so that differences have no noise."""
    return tuple(
        invented(policy, seed, regret + 0.1 * seed + 0.001 * seed * place, rounds, **more)
        for place, (policy, regret) in enumerate(regrets.items())
        for seed in range(seeds)
    )


def reproduction() -> Reproduction:
    clusters = tuple(
        invented(policy, seed, regret * count + 0.1 * seed + 0.001 * seed * count, 1000, clusters=count)
        for policy, regret in (("neuclust", 1.0), ("cluster-oracle", 0.05))
        for count in (5, 10, 22)
        for seed in range(6)
    )
    return Reproduction(
        study=MOVIELENS,
        source="movielens-25m.npz",
        rounds=1000,
        slate_size=5,
        scale=full_scale(MOVIELENS),
        runs={PAPER: runs(REGRETS), OURS: runs(REGRETS), CLUSTERS: clusters},
        elbow=((1, 100.0), (5, 30.0), (10, 25.0), (22, 20.0), (40, 15.0)),
        commands=("neuclust reproduce movielens",),
    )


def readings(*regrets: tuple[float, float, float]) -> tuple[RunRecord, ...]:
    """Runs of NeUClust, CN-UCB and NeUClust without F under every reading of MovieLens, and of K-LinUCB by α."""
    found: tuple[RunRecord, ...] = ()
    for reading, (ours, theirs, bare) in zip(MOVIELENS.readings, regrets, strict=True):
        settings = dict(reading.settings)
        found += runs({"neuclust": ours, "cn-ucb": theirs}, preset=reading.preset, settings=settings)
        found += runs({"neuclust": bare}, preset=reading.preset, settings={**settings, "slate.weight": "0"})
    alphas = {"0.01": 60.0, "0.1": 21.0, "1": 84.0}
    return found + tuple(
        run for alpha, regret in alphas.items() for run in runs({"linucb-disjoint": regret}, settings={"alpha": alpha})
    )


def answers(found: Reproduction, start: str) -> list[tuple[str, str]]:
    """Answers and evidence of the claims that begin so."""
    return [(each.answer, each.evidence) for each in verdicts(found) if each.claim.startswith(start)]
