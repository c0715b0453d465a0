"""A recommender's log as logged decisions: the rounds it saw, propensities, designs, rewards; and bad lines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from logged_shop import GONE, ITEMS, Day, logged_shop, play_day

from neuclust import Features, Recommender
from neuclust.core import Round
from neuclust.errors import ConfigError, DataError, LogWarning
from neuclust.logs.decisions import LoggedDecision
from neuclust.logs.runs import DecisionLog
from neuclust.recommender.log.from_log import recommender_from_log
from neuclust.recommender.log.rounds import RecommenderLog, logged_decisions
from neuclust.slates.propensities import Exploration, prefix_ratios, probability
from neuclust.slates.rules import option_counts


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    with pytest.MonkeyPatch.context() as patch:
        yield play_day(tmp_path_factory.mktemp("day") / "shop.jsonl", patch)


@pytest.fixture(scope="module")
def log(day: Day) -> RecommenderLog:
    return logged_decisions(day.path)


@pytest.fixture(scope="module")
def logged(log: RecommenderLog) -> list[LoggedDecision]:
    return list(log.decisions())


def same(one: Round, other: Round) -> bool:
    """Whether two rounds offer the same arms with the same numbers under the same rules."""
    plain = [(each.t, each.key, each.slate_size, each.arm_ids.tolist()) for each in (one, other)]
    assert one.features is not None
    assert other.features is not None
    equal = plain[0] == plain[1] and torch.equal(one.profiles, other.profiles)
    return equal and torch.equal(one.features, other.features) and rules_of(one) == rules_of(other)


def rules_of(round: Round) -> Any:
    rules = round.rules
    if rules is None:
        return None
    caps = [(cap.most, np.unique(cap.groups.numpy(), return_inverse=True)[1].tolist()) for cap in rules.caps]
    return rules.required.tolist(), rules.excluded.tolist(), caps


# --- what the log holds -----------------------------------------------------------------------------------------


def test_the_rounds_are_those_the_live_recommender_saw(day: Day, logged: list[LoggedDecision]) -> None:
    """Fails when items, users, offers, rules or features differ from the live ones, at any line of two runs."""
    assert len(day.rounds) == len(logged) == 100
    assert [each.id for each in logged] == [choice.id for choice in day.choices]
    assert all(same(each.round, live) for each, live in zip(logged, day.rounds, strict=True))
    assert sum(each.round.rules is not None for each in logged) > 40
    assert len({len(each.round.arm_ids) for each in logged}) > 4


def test_slates_and_propensities_come_from_the_design(day: Day, logged: list[LoggedDecision]) -> None:
    """Fails when base slate, pool, share or anywhere of the log do not give the logged propensities."""
    for each, choice in zip(logged, day.choices, strict=True):
        codes = day.shop.stock.catalogue.rows.codes
        arms, design = each.round.arm_ids.tolist(), each.design
        assert [arms[at] for at in each.slate] == [codes[item] for item in choice.items]
        assert each.propensities is not None
        assert each.propensities.tolist() == choice.propensities
        around = Exploration(design.share, max(len(design.pool), 1), design.anywhere)
        base, pool = torch.tensor(design.base), torch.tensor(design.pool)
        found = probability(torch.from_numpy(each.slate), base, pool, each.round, around)
        np.testing.assert_allclose(found.numpy(), each.propensities, rtol=1e-12)
        assert design.kind == "sequential"
        assert each.sizes == option_counts(each.round, each.slate.tolist())
    assert len({each.design.base for each in logged}) > 10


def test_rewards_are_in_the_users_units_after_late_and_partial_feedback(day: Day, logged: list[LoggedDecision]) -> None:
    """Fails when a late, partial or missing answer is dropped, scaled or counted as another."""
    for each, choice in zip(logged, day.choices, strict=True):
        said = day.clicks[choice.id]
        expected = [said.get(item, 0.0) for item in choice.items]
        if choice.id in day.open:
            expected = [math.nan] * len(choice.items)
        if choice.id in day.seen:
            expected[1:] = [math.nan] * (len(expected) - 1)
            assert each.shown is not None
            assert each.shown.tolist() == [True] + [False] * (len(expected) - 1)
        else:
            assert each.shown is None
        np.testing.assert_allclose(each.rewards, expected, rtol=1e-12)
        np.testing.assert_equal(each.slate_reward, float(np.sum(expected)))
    worth = [each.slate_reward for each in logged]
    assert {2.0, 3.0, 5.0, 0.0} <= set(worth)
    assert sum(map(math.isnan, worth)) > 5


def test_who_and_when_and_by_which_model(day: Day, log: RecommenderLog, logged: list[LoggedDecision]) -> None:
    """Fails when runs are not told apart, or versions do not change where the policy learned."""
    assert list(log.runs) == day.runs
    assert [each.run for each in logged] == [day.runs[0]] * GONE + [day.runs[1]] * (100 - GONE)
    assert [each.user for each in logged] == [choice.user for choice in day.choices]
    assert [each.time for each in logged] == [10.0 * at for at in range(100)]
    versions = [each.version for each in logged]
    assert versions[0] == "1.0"
    assert versions[-1] == f"1.{day.choices[-1].model}"
    assert len(set(versions)) > 50
    starts = list(log.runs.values())
    assert [(start.policy, start.slate_size, start.learning, start.reward) for start in starts] == [
        ("linucb", 3, True, "sum")
    ] * 2
    as_evaluated: DecisionLog = log
    assert (as_evaluated.slate_size, log.reward, log.path, log.skipped) == (3, "sum", day.path, 0)
    assert log.dim == starts[0].dim == logged[0].round.contexts.shape[1]


def test_decisions_can_be_gone_through_again(log: RecommenderLog, logged: list[LoggedDecision]) -> None:
    """Fails when a second pass differs from the first one."""
    again = list(log.decisions())
    assert [each.id for each in again] == [each.id for each in logged]
    assert all(same(one.round, two.round) for one, two in zip(again, logged, strict=True))


def test_features_can_be_given_anew(day: Day) -> None:
    """Fails when `features` does not take the place of the declared ones."""
    small = logged_decisions(day.path, features=Features(items={"kind": "ignore"}, cross=[("segment", "price")]))
    assert small.dim != logged_decisions(day.path).dim
    assert next(small.decisions()).round.contexts.shape[1] == small.dim
    with pytest.raises(ConfigError, match="features: expected Features"):
        logged_decisions(day.path, features={"kind": "ignore"})  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["uniform", "epsilon-greedy", "linucb"])
def test_other_designs_are_read(tmp_path: Path, policy: str) -> None:
    """Fails when one-coin, uniform or deterministic slates do not get their design back."""
    settings = {"exploration": 2.0} if policy == "epsilon-greedy" else None
    shop = logged_shop(tmp_path / "shop.jsonl", policy=policy, settings=settings, exploration=None)
    for at in range(8):
        shop.recommend(user="u1", context={"device": "desk"}, at_most={"kind": 2} if at % 2 else None)
    for each in logged_decisions(tmp_path / "shop.jsonl").decisions():
        slate = torch.from_numpy(each.slate)
        assert each.propensities is not None
        kind, base = each.design.kind, torch.tensor(each.design.base)
        assert kind == {"uniform": "uniform", "epsilon-greedy": "one-coin", "linucb": "deterministic"}[policy]
        share = {"uniform": 1.0, "one-coin": each.design.share}.get(kind, 0.0)
        found = prefix_ratios(slate, base, each.round, share)
        np.testing.assert_allclose(found.numpy(), each.propensities, rtol=1e-12)


def test_a_run_knows_only_its_own_users(tmp_path: Path) -> None:
    """Fails when users of an earlier run stay known in the next one, which began without them."""
    for known in (True, False):
        shop = logged_shop(tmp_path / "shop.jsonl")
        if known:
            shop.add_users([{"user": "u77", "segment": "x"}])
        for user in ("u77", None):
            shop.recommend(user=user, context={"device": "desk"})
    found = [each.round.contexts for each in logged_decisions(tmp_path / "shop.jsonl").decisions()]
    assert not torch.equal(found[0], found[1])
    assert torch.equal(found[2], found[3])


def test_slates_of_fit_log_and_empty_ones_are_counted(tmp_path: Path) -> None:
    """Fails when slates whose offers are unknown become decisions, or are not counted."""
    shop = logged_shop(tmp_path / "shop.jsonl")
    shop.recommend(user="u1", context={"device": "desk"})
    shop.fit_log([{"decision": 1, "item": "s1", "reward": 1}])
    shop.recommend(user="u1", eligible=[])
    log = logged_decisions(tmp_path / "shop.jsonl")
    assert (log.warmed, log.empty, len(list(log.decisions()))) == (1, 1, 1)


def test_a_stated_slate_value_and_any_click(tmp_path: Path) -> None:
    """Fails when a slate's own value or a threshold reward is not given in the units it was stated in."""
    for reward, stated, worth in (("sum", 7.5, 7.5), ("any", None, 1.0), (max, None, 4.0)):
        path = tmp_path / f"{worth}.jsonl"
        shop = logged_shop(path, reward=reward)
        choice = shop.recommend(user="u1", context={"device": "desk"})
        shop.feedback(choice.id, {choice.items[1]: 4}, slate=stated)
        (found,) = logged_decisions(path).decisions()
        assert (found.slate_reward, found.rewards.tolist()) == (worth, [0.0, 4.0, 0.0])


# --- logs of earlier versions, and bad lines ----------------------------------------------------------------------


def rewritten(day: Day, to: Path, change: Any) -> Path:
    """The day's log with every event changed, or left out where that gives None."""
    events = [change(json.loads(line)) for line in day.path.read_text().splitlines()]
    to.write_text("".join(f"{json.dumps(event)}\n" for event in events if event is not None))
    return to


def earlier(event: dict[str, Any]) -> dict[str, Any]:
    """As versions wrote it that knew no runs, models and base slates."""
    kept = {name: value for name, value in event.items() if name not in ("run", "model", "sizes")}
    if event["event"] == "decision":
        kept["design"] = {"kind": "sequential", "share": 0.3, "pool": 6, "anywhere": 0.3}
    return kept


def test_logs_of_earlier_versions_are_read(day: Day, logged: list[LoggedDecision], tmp_path: Path) -> None:
    """Fails when a log without runs, sizes and base slates is refused, or its design is taken for known."""
    old = logged_decisions(rewritten(day, tmp_path / "old.jsonl", earlier))
    found = list(old.decisions())
    assert list(old.runs) == ["run-1", "run-2"]
    for one, two in zip(found, logged, strict=True):
        assert one.design.kind == "unknown"
        assert same(one.round, two.round)
        assert (one.sizes, one.propensities is None) == (two.sizes, False)
        np.testing.assert_equal(one.rewards, two.rewards)


def broken(field: str, value: Any, at: int) -> Any:
    """A change of one entry of the decision with this number, from 0."""
    count = iter(range(1_000))

    def change(event: dict[str, Any]) -> dict[str, Any]:
        return {**event, field: value} if event["event"] == "decision" and next(count) == at else event

    return change


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("propensities", [0.0, 0.5, 0.5], "3 propensities above 0"),
        ("propensities", [0.5, 1.5, 0.5], "3 propensities above 0"),
        ("propensities", [0.5], "3 propensities above 0"),
        ("items", ["s0", "s1", "nobody"], "'nobody', which was not"),
        ("items", ["s0", "s0", "s1"], "every item of its slate once"),
        ("sizes", [9, 8, 7], r"expected \[9, 8, 7\] items to choose from"),
        ("design", {"kind": "magic"}, "the kind 'magic'"),
        ("run", "another", "a run that was started"),
        ("id", None, "every decision id once"),
        ("eligible", 5, "expected its request"),
        ("at_most", {"colour": 1}, "colour"),
    ],
)
def test_a_bad_line_is_named_and_can_be_skipped(day: Day, tmp_path: Path, field: str, value: Any, said: str) -> None:
    """Fails when a damaged decision is read, or its sentence does not name file, line and fault."""
    value = day.choices[0].id if field == "id" else value
    path = rewritten(day, tmp_path / "bad.jsonl", broken(field, value, 6))
    lines = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    number = [at for at, kind in enumerate(lines, start=1) if kind == "decision"][6]
    with pytest.raises(DataError, match=rf"bad.jsonl, line {number}: .*{said}"):
        logged_decisions(path)
    told: list[str] = []
    log = logged_decisions(path, skip_bad=1, on_bad=told.append)
    assert (log.skipped, len(list(log.decisions())), len(told)) == (1, 99, 1)
    assert f"line {number}" in told[0]


def test_lines_that_are_no_events(day: Day, tmp_path: Path) -> None:
    """Fails when nonsense, foreign files or unfinished lines are taken for a log, or hide one."""
    path = tmp_path / "shop.jsonl"
    path.write_bytes(day.path.read_bytes() + b"nonsense\n" + b'{"event":"feed')
    with pytest.raises(DataError, match=r"line \d+: expected an event"):
        logged_decisions(path)
    with pytest.warns(LogWarning, match="not finished"):
        assert len(list(logged_decisions(path, skip_bad=1).decisions())) == 100
    for content in (b"sku,price\n1,2\n", b'{"event":"start","format":2}\n', b""):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"is it the log of a recommender\?|is it a log\?"):
            logged_decisions(path, skip_bad=5)
    with pytest.raises(DataError, match="expected a file that can be read"):
        logged_decisions(tmp_path / "none.jsonl")
    with pytest.raises(ConfigError, match="skip_bad: expected a whole number"):
        logged_decisions(path, skip_bad=-1)


def test_runs_whose_rewards_differ_are_refused(tmp_path: Path) -> None:
    """Fails when rewards of two ranges are put into one log."""
    path = tmp_path / "shop.jsonl"
    for high in (5, 1):
        logged_shop(path, reward_range=(0, high)).recommend(user="u1", context={"device": "desk"})
    with pytest.raises(DataError, match=r"one reward and one reward_range.*split the log"):
        logged_decisions(path)


# --- a recommender from the log ---------------------------------------------------------------------------------


def test_another_policy_is_warm_started_from_the_log(day: Day, log: RecommenderLog, tmp_path: Path) -> None:
    """Fails when items, users or options are not those at the end, nothing was learned, or a save does not load."""
    shop = recommender_from_log(day.path, "linucb", {"alpha": 0.0}, seed=4, exploration=0.1)
    assert shop.stock.catalogue.ids() == day.shop.stock.catalogue.ids()
    assert shop.stock.users.raw("u1") == day.shop.stock.users.raw("u1")
    assert (shop.settings.feedback, shop.settings.slate_size) == (day.shop.settings.feedback, 3)
    assert (shop.settings.policy.seed, shop.settings.policy.exploration) == (4, Exploration(share=0.1))
    learned = sum(not np.isnan(each.rewards).all() for each in log.decisions())
    assert shop.decisions.counts.learned == learned == 100 - len(day.open)
    shop.save(tmp_path / "saved")
    loaded = Recommender.load(tmp_path / "saved", log=day.path.with_name("next.jsonl"))
    asked: dict[str, Any] = {"user": "u1", "context": {"device": "desk"}, "request_id": "r"}
    assert loaded.recommend(**asked).items == shop.recommend(**asked).items


def test_the_warm_start_learns_the_same_as_a_refit(day: Day) -> None:
    """Fails when lessons, their order or their features differ from those of the recommender itself."""
    fresh = recommender_from_log(logged_decisions(day.path), "linucb")
    again = recommender_from_log(day.path, "linucb")
    assert fresh.learner is not None
    assert again.learner is not None
    day.shop.refit()
    assert day.shop.learner is not None
    for shop in (fresh, again):
        assert shop.learner is not None
        ours, theirs = shop.learner.policy.state_dict(), day.shop.learner.policy.state_dict()
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            torch.testing.assert_close(value, theirs[name], rtol=1e-9, atol=1e-12)


def test_functions_are_asked_for_in_one_sentence(tmp_path: Path) -> None:
    """Fails when a log whose reward or features are functions gives a recommender without them."""
    path = tmp_path / "shop.jsonl"
    logged_shop(path, reward=max).recommend(user="u1", context={"device": "desk"})
    with pytest.raises(ConfigError, match="reward: expected a reward that a log can hold"):
        recommender_from_log(path, "linucb")
    from sklearn.preprocessing import StandardScaler

    path = tmp_path / "scaled.jsonl"
    shop = Recommender(ITEMS, "sku", features=Features(items={"price": StandardScaler()}), policy="linucb", log=path)
    shop.recommend()
    with pytest.raises(DataError, match="without transformers"):
        recommender_from_log(path, "linucb")
    plain = Features(items={"price": "number"})
    assert recommender_from_log(logged_decisions(path, features=plain), "linucb").settings.features == plain
