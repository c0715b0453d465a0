"""Plans pair every contestant with every seed's environment and refuse what cannot be played."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.offers import Offers
from neuclust.errors import ConfigError
from neuclust.experiment.contestants import Contestant, parse_contestants
from neuclust.experiment.plan import Problem, make_plan
from neuclust.randomness import stream


@pytest.fixture
def small(tmp_path: Path) -> Path:
    generator = stream(0, "plan arms")
    path = tmp_path / "small.npz"
    ProfileDataset(
        name="small",
        arms=generator.uniform(0.5, 5.0, (30, 4)).astype(np.float32),
        rounds=np.ones((40, 4), dtype=np.float32),
        arm_ids=np.arange(30),
        round_ids=np.arange(40),
        features=tuple("abcd"),
    ).save(path)
    return path


def test_names_presets_and_settings_are_split() -> None:
    settings = ["gamma=0.5", "cn-ucb.arms.network.width = 8"]
    neuclust, cn_ucb = parse_contestants(
        ["neuclust", "cn-ucb:paper"], preset="paper-lift", clusters=4, settings=settings
    )
    assert neuclust == Contestant("neuclust", "paper-lift", 4, {"gamma": "0.5"})
    assert cn_ucb == Contestant("cn-ucb", "paper", 4, {"gamma": "0.5", "arms.network.width": "8"})
    assert (neuclust.title, cn_ucb.title, Contestant("linucb").title) == (
        "neuclust:paper-lift",
        "cn-ucb:paper",
        "linucb",
    )


def test_a_value_may_hold_an_equals_sign() -> None:
    assert parse_contestants(["a"], settings=["key=x=y"])[0].settings == {"key": "x=y"}


@pytest.mark.parametrize("setting", ["gamma", "=1", ""])
def test_settings_without_key_or_value_are_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match="expected key=value"):
        parse_contestants(["neuclust"], settings=[setting])


def test_a_key_for_all_and_for_one_at_once_is_refused() -> None:
    with pytest.raises(ConfigError, match="alpha twice for linucb"):
        parse_contestants(["linucb"], settings=["alpha=1", "linucb.alpha=2"])


def test_the_same_policy_with_two_presets_is_fine_and_with_one_is_not() -> None:
    assert len(parse_contestants(["neuclust", "neuclust:paper"])) == 2
    with pytest.raises(ConfigError, match="neuclust twice"):
        parse_contestants(["neuclust:default", "neuclust"])


def test_everybody_meets_the_same_environment_seed_by_seed(small: Path) -> None:
    contestants = parse_contestants(["uniform", "oracle"])
    plan = make_plan(Problem(data=small, slate_size=3), contestants, [4, 9])
    matches = list(plan.matches())
    assert [(seed, contestant.policy) for seed, _, contestant in matches] == [
        (4, "uniform"), (4, "oracle"), (9, "uniform"), (9, "oracle"),
    ]  # fmt: skip
    assert matches[0][1] is matches[1][1]
    assert (matches[0][1].seed, matches[2][1].seed) == (4, 9)
    assert (plan.size, plan.rounds, plan.problem.name) == (4, 40, "small")


def test_settings_change_what_is_built(small: Path) -> None:
    (contestant,) = parse_contestants(["linucb"], settings=["alpha=0.125"])
    plan = make_plan(Problem(data=small), [contestant], [0])
    assert contestant.build(plan.environment(0), 0).config.alpha == 0.125  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("problem", "policy", "complaint"),
    [
        ({"rounds": 41}, "uniform", "at most the 40 rounds it holds, got 41"),
        ({"slate_size": 31}, "uniform", "30 arms offered"),
        ({"slate_reward": "sum"}, "uniform", "'sum'"),
        ({"arms_per_round": 31}, "uniform", "1 to 30 arms offered"),
        ({}, "unifrom", "did you mean uniform"),
        ({}, "neuclust:papper", "did you mean paper"),
    ],
)
def test_what_cannot_be_played_is_refused(small: Path, problem: dict[str, object], policy: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make_plan(Problem(data=small, **problem), parse_contestants([policy]), [0])  # type: ignore[arg-type]


def test_catalogue_problems_run_a_thousand_rounds_unless_told() -> None:
    assert make_plan(Problem(env="bump"), parse_contestants(["uniform"]), [0]).rounds == 1000
    assert make_plan(Problem(env="bump", rounds=1500), parse_contestants(["uniform"]), [0]).rounds == 1500


@pytest.fixture
def replay(small: Path) -> Path:
    """The same file with a record of 8 of the 30 arms in each of its 40 rounds, half of which paid."""
    arms = np.concatenate([np.sort(stream(0, "plan offers", t).permutation(30)[:8]) for t in range(40)])
    offers = Offers(np.arange(0, 321, 8), arms, np.tile([0.0, 1.0], 160).astype(np.float32))
    path = small.with_name("replay.npz")
    replace(load_dataset(small), offers=offers).save(path)
    return path


def test_a_file_with_recorded_offers_is_played_back(replay: Path) -> None:
    plan = make_plan(Problem(data=replay, slate_size=4, rounds=30), parse_contestants(["uniform"]), [0, 1])
    environments = [environment for _, environment, _ in plan.matches()]
    for environment in environments:
        round = environment.round(3)
        assert environment.means(round).tolist() == [0.0, 1.0] * 4
        assert environment.best_expected_reward(round) == 1.0
    assert (plan.rounds, plan.problem.name) == (30, "replay")
    first, second = ([e.round(t).arm_ids.tolist() for t in range(1, 31)] for e in environments)
    assert first != second


def test_the_reward_of_a_replay_can_be_chosen(replay: Path) -> None:
    plan = make_plan(Problem(data=replay, slate_size=8, slate_reward="mean"), parse_contestants(["oracle"]), [0])
    environment = plan.environment(0)
    assert environment.best_expected_reward(environment.round(1)) == 0.5


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"arms_per_round": 5}, "--arms-per-round: expected none with .*replay.npz"),
        ({"start_ratings": 5}, "--start-ratings: expected none with .*replay.npz"),
        ({"slate_size": 9}, "1 to the 8 arms of the smallest round"),
        ({"rounds": 41}, "at most the 40 rounds it holds"),
    ],
)
def test_what_cannot_be_played_back_is_refused(replay: Path, options: dict[str, int], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make_plan(Problem(data=replay, **options), parse_contestants(["uniform"]), [0])  # type: ignore[arg-type]
