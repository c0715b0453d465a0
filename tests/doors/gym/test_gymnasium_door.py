"""Problems as environments of the real Gymnasium and back: its checker, slates as actions, the same runs."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from command_line import clean_environment
from hypothesis import given
from hypothesis import strategies as st
from patience import HANG_SECONDS

from neuclust import build_environment, build_policy
from neuclust.core import Environment
from neuclust.environments.catalogue import ENVIRONMENTS
from neuclust.errors import ConfigError, DataError, StateError
from neuclust.experiment.run import RunLabel, run

pytest.importorskip("gymnasium", reason="the door to Gymnasium needs it")

import gymnasium
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from neuclust.doors.gym import SlateEnv, from_gymnasium, register_all, to_gymnasium
from neuclust.doors.gym.actions import slate_of

SMALL: dict[str, Any] = {"slate_size": 3, "horizon": 6, "arms_per_round": 12}
LARGE = {"yelp-twin", "yelp-volatile", "many-arms"}  # seconds to build: checked in the soak


def checked(name: str) -> None:
    """The checker of Gymnasium passes without a warning."""
    env = gymnasium.make(f"neuclust/{name}-v0", disable_env_checker=True, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize("name", sorted(set(ENVIRONMENTS) - LARGE))
def test_every_problem_passes_the_checker_of_gymnasium(name: str) -> None:
    checked(name)


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(LARGE))
def test_large_problems_pass_the_checker_of_gymnasium(name: str) -> None:
    checked(name)


def test_an_id_with_its_module_registers_by_itself() -> None:
    made = "gymnasium.make('neuclust.doors.gym:neuclust/clusters-v0', slate_size=2, horizon=4)"
    code = f"import gymnasium; print({made}.reset(seed=1)[0]['contexts'].shape)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=clean_environment(), timeout=HANG_SECONDS
    )
    assert (done.stdout, done.returncode) == ("(500, 20)\n", 0), done.stderr


@pytest.mark.parametrize("name", ["clusters", "ml-paper", "shop-late", "missing"])
def test_there_and_back_plays_the_same_run(name: str) -> None:
    """A policy that plays the problem through Gymnasium gets the same rounds, coins, delays and regret."""
    fields: dict[str, Any] = {"slate_size": 3, "horizon": 40, "arms_per_round": 15}
    direct = build_environment(name, seed=7, **fields)
    through = from_gymnasium(to_gymnasium(name, **fields), horizon=40, seed=7)
    assert (through.dim, through.slate_size) == (direct.dim, direct.slate_size)
    plain, passed = (_played(each) for each in (direct, through))
    assert passed.curve == plain.curve
    assert passed.reward_curve == plain.reward_curve
    assert passed.arm_successes == plain.arm_successes
    assert plain.expected_regret > 0


def _played(environment: Environment) -> Any:
    return run(build_policy("linucb", environment=environment, seed=3), environment, 40, 7, label=RunLabel("linucb"))


def test_a_seed_is_that_of_the_problem_and_info_tells_its_truth() -> None:
    env, truth = to_gymnasium("shop-slots", **SMALL), build_environment("shop-slots", seed=5, **SMALL)
    observation, _ = env.reset(seed=5)
    round = truth.round(1)
    assert np.array_equal(observation["contexts"], round.contexts.numpy())
    assert np.array_equal(observation["profiles"], round.profiles.numpy())
    assert observation["ids"].tolist() == round.arm_ids.tolist()
    _, reward, terminated, truncated, info = env.step(np.array([4, 0, 9]))
    assert (terminated, truncated, info["slate"].tolist(), info["repaired"]) == (False, False, [4, 0, 9], 0)
    assert info["ids"].tolist() == round.arm_ids[[4, 0, 9]].tolist()
    best = truth.best_expected_reward(round)
    assert info["best_expected_reward"] == best
    assert info["expected_regret"] == best - info["expected_reward"] > 0
    assert reward == pytest.approx(info["arm_rewards"].mean())


def test_an_episode_is_the_horizon_and_then_must_be_reset() -> None:
    env = to_gymnasium("clusters", **SMALL)
    with pytest.raises(StateError, match="call reset"):
        env.step(np.array([0, 1, 2]))
    env.reset(seed=0)
    assert [env.step(np.array([0, 1, 2]))[3] for _ in range(6)] == [False] * 5 + [True]
    with pytest.raises(StateError, match="call reset"):
        env.step(np.array([0, 1, 2]))
    first, second = (env.reset()[0]["contexts"] for _ in range(2))
    assert not np.array_equal(first, second)  # every episode without a seed is a problem of its own


def test_unseen_rewards_are_marked_and_late_ones_say_when() -> None:
    env = to_gymnasium("missing", slate_size=10, horizon=40, arms_per_round=50)
    env.reset(seed=2)
    infos = [env.step(np.arange(10))[4] for _ in range(40)]
    assert 0.5 < np.mean([info["seen"] for info in infos]) < 0.9  # 30 % are unseen
    assert all(info["arm_rewards"][~info["seen"]].sum() == 0 for info in infos)
    assert -1 in {info["arrival"] for info in infos} <= {-1, *range(1, 41)}


# --- slates as actions ----------------------------------------------------------------------------------------------


@given(st.data())
def test_a_repaired_slate_is_one_and_a_right_one_stays(data: st.DataObject) -> None:
    offered = data.draw(st.integers(1, 8))
    action = data.draw(st.lists(st.integers(0, 11), min_size=1, max_size=offered))
    slate, repaired = slate_of(action, offered, "repair")
    assert len(set(slate)) == len(action) == len(slate)
    assert all(0 <= position < offered for position in slate)
    assert repaired == sum(made != asked for made, asked in zip(slate, action, strict=True))
    right = len(set(action)) == len(action) and max(action) < offered
    assert (repaired == 0) == right == (slate == action)


def test_repairs_are_the_next_free_positions_or_refused() -> None:
    assert slate_of([3, 3, 3], 5, "repair") == ([3, 4, 0], 2)
    assert slate_of([9, 0, 2], 5, "repair") == ([0, 1, 2], 2)
    with pytest.raises(DataError, match="distinct positions below 5"):
        slate_of([3, 3, 1], 5, "refuse")
    env = to_gymnasium("clusters", repeats="refuse", **SMALL)
    env.reset(seed=0)
    for wrong in ([0, 0, 1], [0, 1], [0.0, 1.0, 2.0], [-1, 0, 1]):
        with pytest.raises(DataError, match="action"):
            env.step(np.array(wrong))
    assert env.step(np.array([0, 1, 2]))[4]["round"] == 1  # nothing was played before
    wrong_word: dict[str, Any] = {"repeats": "drop"}
    with pytest.raises(ConfigError, match="repair, refuse"):
        to_gymnasium("clusters", **wrong_word)


def test_rounds_with_fewer_arms_are_padded_and_larger_ones_refused() -> None:
    deals = {seed: build_environment("clusters", seed=seed, slate_size=2, horizon=3, arms_per_round=4 + seed)
             for seed in range(3)}  # fmt: skip
    env = SlateEnv(lambda seed: deals[seed], arms=5)
    observation, _ = env.reset(seed=0)
    assert observation["offered"].tolist() == [1, 1, 1, 1, 0]
    assert not observation["contexts"][4].any()
    assert env.step(np.array([4, 4]))[4]["slate"].tolist() == [0, 1]
    with pytest.raises(DataError, match="arms=6"):
        env.reset(seed=2)


def test_vectors_of_environments_step_together() -> None:
    register_all()
    many = gymnasium.make_vec("neuclust/clusters-v0", num_envs=3, vectorization_mode="sync", **SMALL)
    observation, _ = many.reset(seed=1)
    assert observation["contexts"].shape == (3, 12, 20)
    _, rewards, _, _, info = many.step(np.tile(np.arange(3), (3, 1)))
    assert rewards.shape == (3,)
    assert info["arm_rewards"].shape == (3, 3)


# --- environments of others -----------------------------------------------------------------------------------------


class Taste(gymnasium.Env[Any, Any]):
    """A contextual bandit as others write it: a shared Box, one of n arms, episodes of one step."""

    def __init__(self, form: str = "shared", n: int = 4) -> None:
        box = (3,) if form == "shared" else (n, 3)
        self.form, self.n = form, n
        self.observation_space = spaces.Box(-1.0, 1.0, box, np.float32)
        self.action_space = spaces.Discrete(n, start=10)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.seen = self.np_random.uniform(-1, 1, self.observation_space.shape).astype(np.float32)
        return self.seen, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        arm = int(action) - 10
        assert 0 <= arm < self.n
        good = np.argmax(self.seen) == arm if self.form == "shared" else self.seen[arm, 0] > 0
        return self.seen, float(good), True, False, {}


@pytest.mark.parametrize(("form", "dim"), [("shared", 16), ("matrix", 3)])
def test_policies_learn_an_environment_of_gymnasium(form: str, dim: int) -> None:
    environment = from_gymnasium(Taste(form), horizon=400, seed=1, best_reward=1.0)
    assert (environment.dim, environment.slate_size) == (dim, 1)
    policy = build_policy("linucb", environment=environment, seed=0)
    record = run(policy, environment, 400, 1, label=RunLabel("linucb"))
    late = record.curve[-1][1] - record.curve[99][1]  # regret of rounds 201 to 400 against 1 per round
    assert late < 0.55 * 200  # a random arm pays 0.25 or 0.5 of the rounds
    again = run(build_policy("linucb", environment=environment, seed=0), environment, 400, 1, label=RunLabel("linucb"))
    assert again.curve == record.curve


def test_what_cannot_be_played_is_refused_in_a_sentence() -> None:
    environment = from_gymnasium(Taste(), horizon=5)
    policy = build_policy("linucb", environment=environment)
    with pytest.raises(DataError, match="in order"):
        environment.round(3)
    with pytest.raises(ConfigError, match="best_reward"):
        run(policy, environment, 5, 0, label=RunLabel("linucb"))
    round = environment.round(1)
    slate = policy.select(round)
    environment.play(round, slate)
    with pytest.raises(DataError, match="once"):
        environment.play(round, slate)
    assert environment.round(2).t == 2
    with pytest.raises(DataError, match="each played once"):
        environment.round(3)
    with pytest.raises(ConfigError, match="a Dict with 'contexts'"):
        from_gymnasium("FrozenLake-v1")
    with pytest.raises(ConfigError, match="Discrete"):
        from_gymnasium("Pendulum-v1")
    with pytest.raises(ConfigError, match="seed"):
        to_gymnasium("clusters", seed=1)


def test_without_gymnasium_one_sentence_names_the_extra() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import neuclust.doors.gym"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=clean_environment(), timeout=HANG_SECONDS
    )
    said = done.stderr.strip().splitlines()[-1]
    assert "needs gymnasium" in said
    assert said.endswith("pip install 'neuclust[gym]'")
