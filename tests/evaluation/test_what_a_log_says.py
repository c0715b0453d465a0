"""Rewards mean what the log says of them, unanswered decisions too; what is asked for wins."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logged_problem import DIM, SLATE, MemoryLog, logged

from neuclust import Exploration, Recommender, evaluate_log
from neuclust.errors import DataError
from neuclust.evaluation.candidates import Candidate
from neuclust.evaluation.evaluate import Question, evaluate
from neuclust.evaluation.results import Evaluation
from neuclust.experiment.contestants import parse_contestants
from neuclust.logs import RunStart
from neuclust.policies.exploring import Exploring
from neuclust.registry import build_policy

VISITS = 60
Values = Callable[[random.Random], float]


def click(_: random.Random) -> float:
    return 1.0


def shop_log(path: Path, values: Values = click, *, unheard: tuple[int, ...] = (), **options: Any) -> Path:
    """A shop of two slots with a visit every second; visits in `unheard` get no answer."""
    now, coins = [0.0], random.Random(1)
    items = [{"sku": f"s{n}", "price": n} for n in range(4)]
    shop = Recommender(
        items, "sku", slate_size=2, policy="popular", exploration=Exploration(0.9), log=path, clock=lambda: now[0],
        **options,
    )  # fmt: skip
    for visit in range(VISITS):
        now[0] += 1.0
        choice = shop.recommend()
        heard = {sku: values(coins) for sku in choice.items if coins.random() < 0.5}
        if visit not in unheard:
            shop.feedback(choice.id, heard)
    shop.log.close()
    return path


def judged(path: Path, **options: Any) -> Evaluation:
    return evaluate_log(path, ["uniform"], **options)


def test_a_logs_own_range_and_reward_are_the_defaults(tmp_path: Path) -> None:
    """Fails when a log of money needs --reward-range, or the report does not say where the range came from."""
    path = shop_log(tmp_path / "money.jsonl", lambda coins: coins.choice([20.0, 150.0]), reward_range=(0, 200))
    logged = judged(path).logged
    assert (logged.reward, logged.reward_range, logged.value_range) == ("sum", (0.0, 200.0), (0.0, 400.0))
    assert (logged.reward_from, logged.range_from) == ("log", "log")
    assert judged(path).notes[0] == "reward: sum, as the log says; of a slot from 0 to 200, as the log says"


def test_what_is_asked_for_wins_over_the_log(tmp_path: Path) -> None:
    """Fails when an option is replaced by what the log says."""
    path = shop_log(tmp_path / "any.jsonl", reward="any")
    found = judged(path, reward="sum", reward_high=3.0)
    assert (found.logged.reward, found.logged.reward_range) == ("sum", (0.0, 3.0))
    assert (found.logged.reward_from, found.logged.range_from) == ("asked", "asked")
    assert found.notes[0].startswith("reward: sum, as asked for; the log says any;")
    with pytest.raises(DataError, match=r"reward_range: expected rewards from 0 to 0\.5"):
        judged(path, reward="sum", reward_high=0.5)


@pytest.mark.parametrize(
    ("reward", "values", "named", "span"),
    [
        ("any", click, "any", (0.0, 1.0)),
        ("threshold:0.6", click, "threshold:2", (0.0, 1.0)),
        ("any", lambda coins: coins.choice([0.5, 1.0]), "slate", (0.0, 1.0)),  # worth counting, though not 0 or 1
        (lambda values: max(values), lambda coins: coins.random(), "slate", (0.0, 1.0)),
    ],
)
def test_rewards_of_a_recommender_are_judged_as_it_learned_them(
    tmp_path: Path, reward: Any, values: Values, named: str, span: tuple[float, float]
) -> None:
    """Fails when a log of any, of a share or of a function is judged as a sum."""
    found = judged(shop_log(tmp_path / "shop.jsonl", values, reward=reward)).logged
    assert (found.reward, found.reward_from, found.value_range) == (named, "log", span)
    assert found.value <= 1.0


def test_decisions_still_open_at_the_end_are_left_out_and_counted(tmp_path: Path) -> None:
    """Fails when the last slates of a live shop refuse the whole log, or count 0 before their window ended."""
    open_ones = shop_log(tmp_path / "open.jsonl", unheard=(58, 59))
    found, plain = judged(open_ones), judged(shop_log(tmp_path / "all.jsonl"))
    logged = found.logged
    assert (logged.decisions, logged.open, logged.dropped) == (VISITS, 2, 2)
    assert logged.fitted + logged.evaluated + logged.held_back == VISITS - 2
    assert found.notes[1].startswith("2 of 60 decisions were still open at the end of the log and are left out")
    assert plain.logged.open == 0
    assert len(plain.notes) == 1


def test_decisions_nobody_answered_count_what_the_log_says(tmp_path: Path) -> None:
    """Fails when a decision whose window ended, in a process that ended before it, is refused or left out."""
    path = tmp_path / "shop.jsonl"
    shop_log(path, unheard=(58, 59), window=5.0)
    shop_log(path, unheard=(58, 59), window=5.0)
    # one of the two that nobody answered, in both runs, was made long before the log ended
    late = [line.replace('"time":59.0', '"time":40.0') for line in path.read_text().splitlines(keepends=True)]
    path.write_text("".join(late))
    found = judged(path)
    assert found.logged.open == 2
    assert (
        "2 of 120 decisions were never answered; their items count 0, as the log says (unanswered: zeros)"
        in (found.notes[2])
    )


def test_what_a_person_has_to_decide_is_counted_and_explained(tmp_path: Path) -> None:
    """Fails when a refusal does not say how many decisions it is about and what each choice means."""
    path = shop_log(tmp_path / "unseen.jsonl", unheard=(3, 30), window=5.0, unanswered="unseen")
    with pytest.raises(DataError, match=r"unseen: .* got none in 2 of 60 decisions .*zero: .*; drop: ") as refused:
        judged(path)
    assert "-4)" in str(refused.value)  # the first
    assert judged(path, unseen="zero").logged.decisions == VISITS
    assert judged(path, unseen="drop").logged.open == 0
    still = shop_log(tmp_path / "open.jsonl", unheard=(59,))
    with pytest.raises(DataError, match="got none in 1 of 60 decisions"):
        judged(still, unseen="error")


def test_forgotten_decisions_are_no_decisions(tmp_path: Path) -> None:
    """Fails when a decision that a shop forgot, as it was never shown, counts 0."""
    path = shop_log(tmp_path / "shop.jsonl", unheard=(3,), window=5.0)
    lines = path.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not ('"learned"' in line and '-4"' in line)]
    assert len(kept) == len(lines) - 1
    assert judged(_written(path, kept)).notes[1].startswith("1 of 60 decisions were never answered")
    (id,) = {line.split('"id":"')[1].split('"')[0] for line in kept if '-4","run"' in line}
    found = judged(_written(path, [*kept, f'{{"event":"forgotten","ids":["{id}"]}}\n']))
    assert found.logged.decisions == VISITS - 1
    assert len(found.notes) == 1


def _written(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(lines))
    return path


def test_other_logs_lose_only_what_follows_the_last_answer() -> None:
    """Fails when unanswered decisions in the middle of a log without a window vanish silently."""
    full = logged(Exploring(build_policy("linucb", dim=DIM, slate_size=SLATE), Exploration(0.8, 5, 0.5), 3), 60).kept

    def without(*places: int) -> MemoryLog:
        none = np.full(SLATE, np.nan)
        gone = [replace(each, rewards=none, slate_reward=float("nan")) for each in full]
        return MemoryLog([gone[at] if at in places else each for at, each in enumerate(full)])

    candidates = [Candidate(each) for each in parse_contestants(["uniform"])]
    found = evaluate(without(58, 59), candidates, Question())
    assert (found.logged.decisions, found.logged.open) == (60, 2)
    assert (found.logged.reward, found.logged.reward_from, found.logged.range_from) == ("sum", "default", "default")
    with pytest.raises(DataError, match="got none in 1 of 60 decisions"):
        evaluate(without(30, 59), candidates, Question())
    with pytest.raises(DataError, match="expected at least 2 answered decisions"):
        evaluate(without(*range(60)), candidates, Question())


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ((0.0, 0.0, 1.0), "; its slates were paid otherwise, the reward table:0,0,1 judges by that;"),
        ((0.0, 0.5, 1.0), ";"),  # the mean ranks policies as the sum does
        (None, ";"),
    ],
)
def test_logs_of_runs_tell_how_their_slates_were_paid(table: tuple[float, ...] | None, told: str) -> None:
    """Fails when a log whose slates interact is judged as a sum without a word."""
    policy = Exploring(build_policy("linucb", dim=DIM, slate_size=SLATE), Exploration(0.8, 5, 0.5), 3)
    log = RunLog(logged(policy, 20).kept, {"run": RunStart("run", "linucb", SLATE, DIM, reward_values=table)})
    found = evaluate(log, [Candidate(each) for each in parse_contestants(["uniform"])], Question())
    assert found.notes[0] == f"reward: sum, by default{told} of a slot from 0 to 1, by default"


@dataclass(frozen=True)
class RunLog(MemoryLog):
    """A log in memory that tells of its runs."""

    runs: Mapping[str, RunStart] = field(default_factory=dict)
