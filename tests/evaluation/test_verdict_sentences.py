"""Sentences and documents of an evaluation."""

import json
import math
from dataclasses import replace

import pytest

from neuclust.evaluation.results import Evaluation, Judgement, Logged, best, stated, verdict
from neuclust.report.evaluation import csv_table, text_table


@pytest.mark.parametrize(
    ("ess", "difference", "value", "words"),
    [
        (500.0, (0.06, 0.11), 1.0, "p is better than what ran by 6 to 11 %"),
        (500.0, (-0.5, -0.2), 2.0, "p is worse than what ran by 10 to 25 %"),
        (500.0, (-0.01, 0.2), 1.0, "this log cannot tell p from what ran: the difference is between −1 % and +20 %"),
        (3.2, (0.06, 0.11), 1.0, "this log cannot tell what p would earn: only 3.2 effective rows support it"),
        (500.0, (0.0, 0.0), 1.0, "p is what ran: it shows every slate with the same chance"),
        (500.0, (1.0, 2.0), 0.0, "p is better than what ran by 1 to 2 per slate"),
        (500.0, (math.nan, math.nan), 1.0, "this log cannot tell what p would earn"),
    ],
)
def test_verdicts(ess: float, difference: tuple[float, float], value: float, words: str) -> None:
    """Fails when a sentence claims more than the interval of the difference says."""
    assert verdict("p", ess, difference, value) == words


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        ((-1.85, 0.4), "this log cannot tell p from what ran: the difference is between −100 % and +40 %"),
        (
            (-1.85, 20.91),
            "this log cannot tell p from what ran: the difference is between −100 % and more than tenfold",
        ),
        ((-1.85, -0.2), "p is worse than what ran by 20 to 100 %"),
        ((0.5, 20.91), "p is better than what ran by 50 % to more than tenfold"),
        ((11.0, 20.91), "p is better than what ran by more than tenfold"),
        ((0.5, 120.0), "p is better than what ran by 50 % to more than tenfold"),
    ],
)
def test_percentages_that_cannot_be_are_not_said(difference: tuple[float, float], words: str) -> None:
    """Fails when a policy is said to lose more than all there is, or four digits of per cents are said."""
    assert verdict("p", 500.0, difference, 1.0, (0.0, 60.0)) == words


@pytest.mark.parametrize(
    ("difference", "possible", "told"),
    [
        ((-3.0, 9.0), (0.0, 3.0), (-2.0, 1.0)),
        ((-3.0, 9.0), (-5.0, 30.0), (-3.0, 9.0)),  # where rewards may be below 0 more than all can be lost
        ((0.0, 0.0), (0.0, 2.0), (0.0, 0.0)),
        ((math.nan, math.nan), (0.0, 3.0), (math.nan, math.nan)),
    ],
)
def test_differences_are_told_within_what_slates_can_be_worth(
    difference: tuple[float, float], possible: tuple[float, float], told: tuple[float, float]
) -> None:
    """Fails when a table shows a difference that no policy can have."""
    assert stated(difference, 2.0, possible) == pytest.approx(told, nan_ok=True)


def test_the_table_tells_what_can_be_and_the_document_what_was_computed() -> None:
    """Fails when the table shows a loss above 100 %, or the document loses the interval itself."""
    logged = Logged(
        "l", 4, 2, 2, 0.5, (0.1, 0.9), "asymptotic", "sum", ("r",), {"uniform": 4}, False, value_range=(0.0, 1.0)
    )
    found = Evaluation(logged, (replace(judgement("p", 1.0, 20.0), difference_interval=(-0.9, 3.0)),))
    assert "(-0.5 to 0.5)" in text_table(found)
    assert text_table(found).endswith("\n")
    assert found.document()["policies"][0]["difference_interval"] == [-0.9, 3.0]
    assert "-0.9,3" in csv_table(found)


def judgement(policy: str, estimate: float, ess: float) -> Judgement:
    return Judgement(policy, "ips", estimate, (0.0, math.inf), "asymptotic", ess, 0.1, "v", (0.0, 1.0), 10, "r")


def test_the_best_is_one_that_the_log_can_tell_of() -> None:
    """Fails when a policy wins by two lucky rows."""
    lucky, sound = judgement("lucky", 9.0, 2.0), judgement("sound", 1.0, 200.0)
    assert best([lucky, sound]) is sound
    assert best([lucky]) is lucky


def test_the_document_has_the_promised_keys_and_is_plain_json() -> None:
    """Fails when a key of the contract goes, or infinity is written, which is no JSON."""
    logged = Logged("l", 4, 2, 2, 0.5, (0.1, 0.9), "asymptotic", "sum", ("r",), {"uniform": 4}, False)
    document = Evaluation(logged, (judgement("p", 1.0, 20.0),)).document()
    again = json.loads(json.dumps(document, allow_nan=False))
    keys = {"policy", "estimator", "estimate", "interval", "interval_kind", "ess", "difference", "verdict"}
    assert again["schema"] == 1
    assert keys <= again["policies"][0].keys()
    assert again["policies"][0]["interval"] == [0.0, None]
    assert again["logged"]["designs"] == {"uniform": 4}
