"""What the readings of the paper decide."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from invented_reproduction import MOVIELENS, REGRETS, answers, readings, runs

from neuclust.analysis.reproduction.readings import reading_title, readings_json
from neuclust.analysis.reproduction.results import (
    Reproduction,
)
from neuclust.analysis.reproduction.verdicts import verdicts
from neuclust.experiment.reproduction.phases import (
    AUTHORS,
    PAPER,
    READINGS,
)


def test_the_order_is_judged_reading_by_reading(reproduced: Reproduction) -> None:
    played = replace(reproduced, runs={**reproduced.runs, READINGS: readings((13, 15, 12), (28, 45, 41), (44, 29, 29))})
    orders = {each.claim: each.answer for each in verdicts(played) if each.claim.startswith("NeUClust has less regret")}
    words = {reading_title(reading): reading.words for reading in MOVIELENS.readings}
    for title, answer in (
        ("paper", "reproduces"),
        ("paper-raw", "reproduces"),
        ("paper, init=symmetric", "does not reproduce"),
    ):
        assert orders[f"NeUClust has less regret than CN-UCB (reading {title}: {words[title]})"] == answer
    assert not any("the paper's protocol" in claim for claim in orders)
    ((answer, evidence),) = answers(played, "The order turns on the start of the net")
    assert answer == "finding"
    assert "behind in 0 of 2 readings where the net starts at f = 0 and in 1 of 1 where it does not" in evidence
    ((_, evidence),) = answers(played, "What F does")
    assert "paper-raw -13.00" in evidence
    assert re.search(r"paper-raw -13\.00 [^;]*: F helps", evidence)
    assert re.search(r"init=symmetric \+15\.00 [^;]*: F hurts", evidence)
    ((_, evidence),) = answers(played, "K-LinUCB over the printed range of α")
    assert "Least with α = 0.1. Nearest to the published 207 is α = " in evidence
    (raw,) = [row for row in readings_json(played) if row["reading"] == "paper-raw"]
    assert (raw["ahead"], raw["seeds"], raw["difference"]["mean"]) == (6, 6, pytest.approx(-17.0, abs=0.01))
    turned = replace(reproduced, runs={**reproduced.runs, READINGS: readings((19, 15, 12), (28, 45, 41), (44, 29, 29))})
    assert not answers(turned, "The order turns on the start of the net")
    assert answers(turned, "The start of the net is not all that decides")


def test_every_verdict_on_size_names_its_reading_and_none_is_given_twice(reproduced: Reproduction) -> None:
    played = {**reproduced.runs, READINGS: readings((13, 15, 12), (28, 45, 41), (44, 29, 29))}
    played[AUTHORS] = runs({"cc-mab": 317.0, "neural-mab": 150.0}, preset="authors-ml")
    played[PAPER] = runs({**REGRETS, "neural-mab": 90.0})
    judged = replace(reproduced, runs=played)
    claims = [each.claim for each in verdicts(judged) if "has a clipped regret of" in each.claim]
    assert len(set(claims)) == len(claims)
    assert sum(claim.startswith("NeUClust has a clipped regret of 152 (reading paper: ") for claim in claims) == 1
    for words in (
        "the paper's protocol: contexts scaled into [0, 1]",
        "the authors' settings: the authors' raw contexts",
    ):
        assert any(claim.startswith(f"CC-MAB has a clipped regret of 403 ({words}") for claim in claims), words
    assert [claim for claim in claims if claim.startswith("Neural-MAB")] == [
        "Neural-MAB has a clipped regret of 227 (the authors' settings: the authors' one linear layer, greedy)"
    ]
    assert answers(judged, "Neural-MAB in our own design")[0][0] == "finding"
