"""Sentences and documents of an evaluation."""

import json
import math

import pytest

from neuclust.evaluation.results import Evaluation, Judgement, Logged, best, verdict


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
