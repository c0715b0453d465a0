"""Slates that cannot be paid are pointed out, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from invented_records import MakeRecord

from neuclust.analysis.summary import HARDLY, unpaid_notes
from neuclust.report.results import text_table


@pytest.mark.parametrize(
    ("best", "paid", "rewarded", "source", "said"),
    [
        (0.0, 0.0, 40.0, "built-in", "hardly any slate can be paid: the best ones earn 0 per round"),
        (
            0.9 * HARDLY * 100,
            0.0,
            40.0,
            "simulated",
            "hardly any slate can be paid: the best ones earn 0.0009 per round",
        ),
        (0.9 * HARDLY * 100, 1.0, 40.0, "replayed", "hardly any slate can be paid"),
        (5.0, 0.0, 40.0, "replayed", "no slate was paid in 100 rounds"),
        (5.0, 0.0, 40.0, "simulated", None),
        (5.0, 1.0, 40.0, "replayed", None),
        (0.0, 0.0, 0.0, "replayed", None),
    ],
)
def test_only_a_reward_no_slate_reaches_is_warned_about(
    record: MakeRecord, best: float, paid: float, rewarded: float, source: str, said: str | None
) -> None:
    run = record("a", 0, 0.0, best_expected=best, successes=paid, arm_successes=rewarded, rewards=source)
    notes = unpaid_notes([run])
    assert len(notes) == (said is not None)
    if said is not None:
        assert said in notes[0]
        assert "the default slate reward, threshold:0.8, although arms were rewarded 40 times" in notes[0]
        assert "the slate rewards mean and at-least-one pay for fewer" in notes[0]
        assert said in text_table([run]).replace("Hardly", "hardly").replace("No slate", "no slate")


def test_the_reward_that_was_asked_for_is_named(record: MakeRecord) -> None:
    empty: dict[str, Any] = {
        "best_expected": 0.0,
        "successes": 0.0,
        "arm_successes": 3.0,
        "problem": {"slate_reward": "product"},
    }
    assert "under the slate reward product" in unpaid_notes([record("a", 0, 0.0, **empty)])[0]


def test_one_paid_run_is_enough(record: MakeRecord) -> None:
    lucky = record("a", 0, 0.0, arm_successes=9.0, rewards="replayed")
    unlucky = record("b", 0, 0.0, successes=0.0, arm_successes=9.0, rewards="replayed")
    assert unpaid_notes([lucky, unlucky]) == []
    assert len(unpaid_notes([unlucky])) == 1
