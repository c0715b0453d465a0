"""Policies judged from logs whose truth is known."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from logged_problem import ARMS, DIM, SLATE, MemoryLog, logged, means_of, problem_round

from neuclust import evaluate_log
from neuclust.core import Design
from neuclust.errors import ConfigError, DataError
from neuclust.evaluation.candidates import Candidate, learn
from neuclust.evaluation.designs import slot_marginals
from neuclust.evaluation.estimators.catalogue import ESTIMATORS
from neuclust.evaluation.estimators.rows import Rows
from neuclust.evaluation.evaluate import Question, choose_estimator, evaluate
from neuclust.evaluation.evidence import Evidence, rows_of
from neuclust.evaluation.intervals.asymptotic import asymptotic
from neuclust.evaluation.judging import Judge, Scale, effective_rows, normal_rows
from neuclust.evaluation.scoring import Plan, score
from neuclust.evaluation.slate_values import parse_slate_value
from neuclust.experiment.contestants import parse_contestants
from neuclust.policies.exploring import Exploring
from neuclust.registry import build_policy
from neuclust.slates.propensities import Exploration

ROWS = 1600


@pytest.fixture(scope="module")
def log() -> MemoryLog:
    """Of a fixed policy that explores much."""
    return logged(Exploring(build_policy("linucb", dim=DIM, slate_size=SLATE), Exploration(0.8, 5, 0.5), 3), ROWS)


def candidates(*names: str) -> list[Candidate]:
    return [Candidate(each, seed=1) for each in parse_contestants(names)]


def truth(name: str, log: MemoryLog, fitted: int) -> float:
    """Expected clicks per slate of the policy fitted on the first rows, over the contexts of the others."""
    (candidate,) = candidates(name)
    policy = candidate.built(DIM, SLATE)
    for decision in log.kept[:fitted]:
        learn(policy, decision)
    rounds = [decision.round for decision in log.kept[fitted:]]
    return float(np.mean([means_of(each)[policy.select(each).positions.numpy()].sum() for each in rounds]))


def test_every_estimator_holds_the_truth(log: MemoryLog) -> None:
    """Fails when rows hand an estimator chances, marginals or model values of other slates than it needs."""
    plan = Plan(
        parse_slate_value("sum", SLATE), ROWS // 2, ROWS - ROWS // 2, SLATE, DIM, False,
        needs=frozenset({"marginals", "pi", "model"}),
    )  # fmt: skip
    table = score(log, candidates("linucb", "uniform"), plan, lambda *_: None)
    values = plan.value.of(table.rewards, table.slate_rewards)
    for each in table.scored:
        expected, rows = truth(each.candidate.title, log, ROWS // 2), rows_of(table, each, values, plan)
        for name, spec in ESTIMATORS.items():
            found = spec.estimate(rows)
            ends = asymptotic(found.values, 0.99)
            slack = 0.1 if name == "dm" else 0.0  # a linear model of a logistic truth is biased
            assert ends.low - slack <= expected <= ends.high + slack, name
            assert name not in ("iips", "pi") or float(ends.width) < 1.0


def test_a_policy_that_learned_is_better_than_what_ran_and_random_slates_are_not(log: MemoryLog) -> None:
    """Fails when the difference to what ran is taken the wrong way round."""
    better, random = evaluate(log, candidates("linucb", "uniform"), Question(hold_back=0.0)).policies
    assert better.verdict.startswith("linucb is better than what ran by")
    assert better.estimate > random.estimate
    assert random.difference_interval[0] < 0


def test_interacting_slate_rewards_are_judged_by_whole_slates(log: MemoryLog) -> None:
    """Fails when the value of a slate that interacts is estimated slot by slot."""
    few = MemoryLog(log.kept[:800])
    found = evaluate(few, candidates("uniform"), Question(reward="any"))
    expected = np.mean([_any_click(t) for t in range(401, 801)])
    assert found.policies[0].interval[0] <= expected <= found.policies[0].interval[1]
    assert found.policies[0].estimator in ("dr", "ips")
    with pytest.raises(ConfigError, match="sum of their slots"):
        evaluate(log, candidates("uniform"), Question(reward="any", estimator="iips"))


def _any_click(t: int) -> float:
    means = means_of(problem_round(t))
    return float(np.mean([1 - np.prod(1 - means[list(some)]) for some in combinations(range(ARMS), SLATE)]))


def test_the_winner_is_judged_on_rows_that_took_no_part(log: MemoryLog) -> None:
    """Fails when the rows held back are those of the choice."""
    found = evaluate(log, candidates("linucb", "uniform"), Question(hold_back=0.4))
    assert found.winner is not None
    assert found.winner.policy == "linucb"
    assert (found.policies[0].rows, found.winner.rows) == (480, 320)
    assert found.winner.estimate != found.policies[0].estimate


def test_replay_scores_every_row_before_it_is_learned(log: MemoryLog) -> None:
    """Fails when a candidate has seen the row it is scored on, or when the interval forgets that it learned."""
    few = MemoryLog(log.kept[:400])
    found = evaluate(few, candidates("linucb"), Question(learning="replay", estimator="iips"))
    assert found.logged.evaluated == 400
    assert found.policies[0].interval_kind in ("martingale", "confidence-sequence")
    (candidate,) = candidates("linucb")
    policy, scores = candidate.built(DIM, SLATE), []
    for decision in few.kept:
        target = policy.select(decision.round).positions.numpy()
        marginals = slot_marginals(decision.design, decision.round)[range(SLATE), decision.slate]
        scores.append(((target == decision.slate) / marginals * decision.rewards).sum())
        learn(policy, decision)
    assert found.policies[0].estimate == pytest.approx(np.mean(scores))


def test_random_targets_are_averaged_over_their_own_draws(log: MemoryLog) -> None:
    """Fails when one draw of Thompson sampling stands for all, or when its draws are those of the log."""
    few = MemoryLog(log.kept[:600])
    one, many = (
        evaluate(few, [replace(candidates("lin-ts")[0], draws=draws)], Question(estimator="iips")) for draws in (1, 8)
    )
    assert many.policies[0].ess > 1.1 * one.policies[0].ess


def test_a_log_without_exploration_lacks_support() -> None:
    """Fails when a target that was never shown gets an estimate of 0 instead of an error."""
    certain = logged(build_policy("linucb", dim=DIM, slate_size=SLATE), 40)
    with pytest.raises(DataError, match="missing support: in 20 of 20 decisions uniform"):
        evaluate(certain, candidates("uniform"), Question())


def test_too_few_effective_rows_are_said_and_not_an_error() -> None:
    """Fails when a log of 30 rows claims to know, or ends in an error."""
    log = logged(Exploring(build_policy("linucb", dim=DIM, slate_size=SLATE), Exploration(0.05, 5, 1.0), 3), 60)
    (each,) = evaluate(log, candidates("popular"), Question(fit=0.5)).policies
    assert each.ess < 10
    assert each.verdict.startswith("this log cannot tell")
    assert each.interval_kind == "confidence-sequence"
    assert 0 <= each.interval[0] <= each.interval[1] <= SLATE


def test_learning_loggers_get_intervals_of_martingales() -> None:
    """Fails when rows of a policy that learned are treated as independent."""
    policy = Exploring(build_policy("linucb", dim=DIM, slate_size=SLATE), Exploration(0.8, 5, 0.5), 3)
    found = evaluate(logged(policy, 800, learns=True), candidates("uniform"), Question(estimator="iips"))
    assert found.logged.learning
    assert found.policies[0].interval_kind == "martingale"


def test_bad_logs_are_refused_in_one_sentence(log: MemoryLog) -> None:
    """Fails when propensities that contradict their design, unknown ones, or unseen rewards are used silently."""
    first = log.kept[0]
    chances = first.propensities
    assert chances is not None

    def changed(**fields: object) -> MemoryLog:
        return MemoryLog([replace(each, **fields) for each in log.kept[:20]])  # type: ignore[arg-type]

    for bad, words in (
        (changed(propensities=chances / 2), "expected the propensities of its design"),
        (changed(propensities=None, design=Design("unknown")), "expected propensities"),
        (
            changed(rewards=np.array([np.nan, 1.0])),
            "unseen: expected a reward for every slot, got none in 20 of 20 decisions",
        ),
        (changed(rewards=np.array([3.0, 1.0])), "1 to 3"),
    ):
        with pytest.raises(DataError, match=words):
            evaluate(bad, candidates("uniform"), Question(estimator="ips"))
    dropped = evaluate(
        changed(rewards=np.array([np.nan, 1.0])), candidates("uniform"), Question(estimator="ips", unseen="zero")
    )
    assert dropped.logged.value == 1.0


@pytest.mark.parametrize("kind", ["bootstrap", "empirical-bernstein", "confidence-sequence", "martingale"])
def test_wanted_intervals_are_made_and_hold_the_estimate(log: MemoryLog, kind: str) -> None:
    """Fails when a kind that was asked for is replaced, or when an estimate lies outside its interval."""
    few, plain = MemoryLog(log.kept[:300]), "ips" if kind == "empirical-bernstein" else "auto"
    (each,) = evaluate(few, candidates("uniform"), Question(interval=kind, estimator=plain)).policies
    assert each.interval_kind == kind
    assert each.interval[0] <= each.estimate <= each.interval[1]
    assert 0 <= each.interval[0] < each.interval[1] <= SLATE
    assert each.difference_interval[0] < each.difference < each.difference_interval[1]


@pytest.mark.parametrize("kind", ["empirical-bernstein", "confidence-sequence"])
def test_intervals_of_a_handful_of_rows_hold_estimate_and_difference(log: MemoryLog, kind: str) -> None:
    """Large weights on few rows: the estimate lies beyond what slates can pay, and so does the difference."""
    few = MemoryLog(log.kept[100:110])
    (each,) = evaluate(few, candidates("linucb"), Question(interval=kind, estimator="ips")).policies
    assert each.difference > SLATE
    assert each.interval[0] <= each.estimate <= each.interval[1]
    assert each.difference_interval[0] <= each.difference <= each.difference_interval[1]


def test_few_large_weights_among_many_small_ones_are_no_normal_approximation() -> None:
    """Fails when a target that mostly shows what ran, and else what was hardly ever tried, gets a narrow interval."""
    rng, rows = np.random.default_rng(1), 4000
    marginal = np.where(rng.random(rows) < 0.97, 0.97, 0.003)  # of what the target shows in the only slot
    matched = (rng.random(rows) < marginal).astype(float)
    data = Rows(
        rewards=np.full((rows, 1), 0.5), slate_rewards=np.full(rows, 0.5),
        logging_marginals=np.where(matched > 0, marginal, 1 - marginal)[:, None], target_marginals=matched[:, None],
        logging=np.where(matched > 0, marginal, 1 - marginal)[:, None], target=matched[:, None],
    )  # fmt: skip
    evidence = Evidence(data, {"slots": np.column_stack([1 / marginal, 1 / marginal**2])})
    assert effective_rows(evidence, "iips") > 100
    assert normal_rows(evidence, "iips") < 20
    name, reason = choose_estimator(("iips", "siips"), {"p": evidence})
    assert name == "iips"
    least, effective = (f"{kind(evidence, 'iips'):.1f}" for kind in (normal_rows, effective_rows))
    assert f"this one has {effective}, as good as {least}, since few of them have the large weights" in reason
    judge = Judge(Scale(parse_slate_value("sum", 1), False))
    (each,) = judge.all({"p": evidence}, data.slate_rewards if data.slate_rewards is not None else marginal, "iips", "")
    assert each.interval_kind == "confidence-sequence"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": 95}, "^level: expected a number from 0.5 to 0.9999, got 95; did you mean 0.95[?]$"),
        ({"level": "0.95"}, "^level: expected a finite number, got '0.95'$"),
        ({"learning": "never"}, "^learning: expected one of frozen, replay"),
        ({"reward": 3}, "^reward: expected"),
    ],
)
def test_questions_that_cannot_be_asked_name_the_option(options: dict[str, Any], said: str) -> None:
    """Fails when a message names a class of the inside."""
    with pytest.raises(ConfigError, match=said):
        Question(**options)


def test_unknown_options_of_evaluate_log_are_named() -> None:
    """Fails when a misspelt option is told as one of an inner class."""
    options: Any = {"lvel": 0.9}
    with pytest.raises(TypeError, match=r"^evaluate_log: unexpected argument 'lvel'; did you mean level"):
        evaluate_log("log.jsonl", ["uniform"], **options)
