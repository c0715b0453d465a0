"""Verdicts follow the records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from invented_reproduction import REGRETS, answers, readings, runs

from neuclust.analysis.claims import order_verdict
from neuclust.analysis.estimates import Estimate
from neuclust.analysis.reproduction.results import (
    Reproduction,
    table_rows,
)
from neuclust.analysis.reproduction.verdicts import elbow_corner, printed_error, size_verdict, verdicts
from neuclust.experiment.reproduction.phases import (
    CLUSTERS,
    PAPER,
    READINGS,
)


@pytest.mark.parametrize(
    ("difference", "pairs", "answer"),
    [
        (Estimate(-3.0, 1.0), 10, "reproduces"),
        (Estimate(3.0, 1.0), 10, "does not reproduce"),
        (Estimate(-1.9, 1.0), 10, "cannot be told"),
        (Estimate(0.0, 0.0), 10, "cannot be told"),
        (Estimate(-3.0, 0.1), 4, "cannot be told"),
        (Estimate(-3.0, None), 1, "cannot be told"),
    ],
)
def test_the_order_needs_two_standard_errors_and_five_pairs(difference: Estimate, pairs: int, answer: str) -> None:
    assert order_verdict(difference, pairs) == answer


def test_sizes_are_compared_with_both_errors() -> None:
    error = printed_error(152, 1000, 10)
    assert error == pytest.approx(3.59, abs=0.01)
    assert size_verdict(Estimate(160.0, 3.0), 10, 152, error) == "reproduces"
    assert size_verdict(Estimate(165.0, 3.0), 10, 152, error) == "does not reproduce"
    assert size_verdict(Estimate(152.0, 3.0), 3, 152, error) == "cannot be told"


def test_verdicts_follow_the_records(reproduced: Reproduction) -> None:
    ((answer, evidence),) = answers(reproduced, "NeUClust has less regret than CN-UCB (the paper's protocol")
    assert answer == "reproduces"
    assert "paired difference -15.00 ± 0.00 over 6 common seeds" in evidence
    turned = replace(reproduced, runs={**reproduced.runs, PAPER: runs({**REGRETS, "neuclust": 40.0})})
    assert answers(turned, "NeUClust has less regret than CN-UCB (the paper's protocol")[0][0] == "does not reproduce"
    assert answers(turned, "NeUClust has less regret than CN-UCB (our protocol")[0][0] == "reproduces"
    few = replace(reproduced, runs={PAPER: runs(REGRETS, seeds=2)})
    assert answers(few, "NeUClust has less regret than CN-UCB (the paper's protocol")[0][0] == "cannot be told"


def test_other_lengths_give_no_verdict_on_size_or_time(reproduced: Reproduction) -> None:
    short = replace(reproduced, rounds=120)
    assert not answers(short, "NeUClust has a clipped regret")
    assert not answers(short, "Time of")


def test_fewer_than_five_common_seeds_give_no_verdict(reproduced: Reproduction) -> None:
    all_of_them = {**reproduced.runs, READINGS: readings((13, 15, 12), (28, 45, 41), (44, 29, 29))}
    first = {name: tuple(run for run in each if run.seed < 4) for name, each in all_of_them.items()}
    few = replace(reproduced, runs=first, elbow=())  # the elbow is the data's, whatever the seeds
    assert {each.answer for each in verdicts(few)} == {"cannot be told", "finding"}
    for claim in ("One fixed slate", "CC-MAB, ", "What F does", "K-LinUCB over", "The order turns", "The start of"):
        assert not answers(few, claim), claim


def test_the_floor_the_fixed_slate_and_the_linear_model_are_named(reproduced: Reproduction) -> None:
    assert "pays 160.0 of clipped regret in 1000 rounds" in answers(reproduced, "The floor")[0][1]
    assert "105% of the 152 published" in answers(reproduced, "The floor")[0][1]
    assert "contexts are hardly needed" in answers(reproduced, "One fixed slate")[0][1]
    needed = replace(reproduced, runs={PAPER: runs({**REGRETS, "static": 100.0})})
    assert "so contexts are needed" in answers(needed, "One fixed slate")[0][1]
    assert "more regret than the linear model" in answers(reproduced, "A shared linear model")[0][1]
    better = replace(reproduced, runs={PAPER: runs({**REGRETS, "linucb": 50.0})})
    assert "less regret than the linear model" in answers(better, "A shared linear model")[0][1]
    assert "no better and no worse than random" in answers(reproduced, "CC-MAB, contexts scaled")[0][1]
    learning = replace(reproduced, runs={PAPER: runs({**REGRETS, "cc-mab": 100.0})})
    assert "better than random" in answers(learning, "CC-MAB, contexts scaled")[0][1]


def test_the_number_of_clusters_is_judged_by_pairs(reproduced: Reproduction) -> None:
    ((answer, evidence),) = answers(reproduced, "22 clusters are the best number")
    assert answer == "does not reproduce"
    assert "Least with 5" in evidence
    assert elbow_corner(reproduced.elbow) == 5
    one_seed = tuple(run for run in reproduced.runs[CLUSTERS] if run.seed == 0)
    few = replace(reproduced, runs={**reproduced.runs, CLUSTERS: one_seed})
    assert answers(few, "22 clusters are the best number")[0][0] == "cannot be told"


def test_no_records_no_verdicts_but_a_table(reproduced: Reproduction) -> None:
    empty = replace(reproduced, runs={}, elbow=())
    assert verdicts(empty) == []
    assert len(table_rows(empty)) == 10


def test_reward_is_judged_against_every_policy_of_the_paper(reproduced: Reproduction) -> None:
    claims = [each.claim for each in verdicts(reproduced) if each.claim.startswith("NeUClust collects")]
    assert claims == [f"NeUClust collects more reward than {name}" for name in ("CN-UCB", "K-LinUCB", "CC-MAB")]
    answer, evidence = answers(reproduced, "NeUClust collects more reward than CN-UCB")[0]
    assert answer == "reproduces"
    assert "paired difference +15.00 ± 0.00 over 6 common seeds" in evidence
    behind = replace(reproduced, runs={PAPER: runs({**REGRETS, "neuclust": 40.0})})
    assert answers(behind, "NeUClust collects more reward than CN-UCB")[0][0] == "does not reproduce"
    few = replace(reproduced, runs={PAPER: runs(REGRETS, seeds=3)})
    assert answers(few, "NeUClust collects more reward than CN-UCB")[0][0] == "cannot be told"


def test_the_elbow_is_held_to_the_printed_range_where_the_data_is_the_paper_s(reproduced: Reproduction) -> None:
    assert answers(reproduced, "The elbow lies between 10 and 20")[0][0] == "does not reproduce"
    inside = replace(reproduced, elbow=((1, 100.0), (5, 60.0), (12, 20.0), (22, 18.0), (40, 15.0)))
    assert answers(inside, "The elbow lies between 10 and 20")[0][0] == "reproduces"
    twin = replace(inside, source=None)
    answer, evidence = answers(twin, "The elbow lies between 10 and 20")[0]
    assert (answer, evidence.startswith("On the twin: the curve bends most at 12")) == ("finding", True)
