"""A problem of neuclust as a `gymnasium.Env`: an observation is a round, an action a slate, an episode the horizon."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from neuclust.core import Environment, Feedback, Round, Slate
from neuclust.doors.gym.actions import Repeats, check_repeats, slate_of
from neuclust.doors.gym.observations import Observation, observation_of, space_of
from neuclust.environments.catalogue import build_environment
from neuclust.environments.problem import arrival, scored
from neuclust.errors import ConfigError, DataError, StateError

NEVER = -1  # `arrival` of feedback that does not come
SEEDS = 2**31  # a reset without a seed draws one below

Build = Callable[[int], Environment]  # of a seed


class SlateEnv(gymnasium.Env[Observation, NDArray[np.int64]]):
    """Deals the rounds of an environment; `reset(seed=s)` builds the problem of seed s, without one of a drawn seed.

    Actions are k positions of the observation's rows (`actions.slate_of`). The reward is the slate's, paid at once.
    An episode is truncated after the horizon; its last observation is that of the last round.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own declaration

    def __init__(self, build: Build, *, arms: int | None = None, repeats: Repeats = "repair") -> None:
        check_repeats(repeats)
        self._build, self._repeats = build, repeats
        self.environment = build(0)
        first = self.environment.round(1)
        self.arms = len(first.arm_ids) if arms is None else arms
        if self.arms < first.slate_size:
            raise ConfigError(f"expected at least the {first.slate_size} arms of a slate, got {arms}", field="arms")
        self.observation_space = space_of(first, self.arms)
        self.action_space = spaces.MultiDiscrete(np.full(first.slate_size, self.arms))
        self._round: Round | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """The first round of the problem of this seed; there are no options."""
        super().reset(seed=seed)
        if options:
            raise ConfigError(f"expected none, got {sorted(options)}", field="options")
        self.environment = self._build(int(self.np_random.integers(SEEDS)) if seed is None else seed)
        self._round = self.environment.round(1)
        return self._observed(self._round), {"round": 1}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play a slate, and see the next round."""
        round = self._round
        if round is None:
            raise StateError("expected a round to play, got none: the episode is over or not begun; call reset")
        positions, repaired = slate_of(self._entries(action), len(round.arm_ids), self._repeats)
        slate = slate_at(positions)
        feedback = self.environment.play(round, slate)
        info = self._info(round, slate, feedback) | {"repaired": repaired}
        ended = round.t >= self.environment.horizon
        self._round = None if ended else self.environment.round(round.t + 1)
        reward = float(feedback.slate_reward)
        return self._observed(self._round or round), reward if info["reward_seen"] else 0.0, False, ended, info

    def _observed(self, round: Round) -> Observation:
        found = observation_of(round, self.arms)
        if found not in self.observation_space:
            said = "expected rounds of one form: k, features, profiles and query as in the first round of seed 0"
            raise DataError(f"round {round.t}: {said}, got another; such a problem is no Gymnasium environment")
        return found

    def _entries(self, action: Any) -> Sequence[int]:
        given, k = np.asarray(action), self.environment.slate_size
        if given.shape != (k,) or given.dtype.kind not in "iu":
            raise DataError(f"action: expected {k} whole numbers, got {given.dtype} of shape {given.shape}")
        found: list[int] = given.tolist()
        return found

    def _info(self, round: Round, slate: Slate, feedback: Feedback) -> dict[str, Any]:
        """What came back and what was expected; unseen rewards are 0 here, since NaN differs from itself."""
        score, due = scored(self.environment, round, slate, feedback), arrival(self.environment, round.t)
        rewards = feedback.arm_rewards.numpy(force=True)
        return {
            "round": round.t,
            "slate": slate.positions.numpy().copy(),
            "ids": round.arm_ids[slate.positions].numpy(force=True).copy(),
            "arm_rewards": np.nan_to_num(rewards, nan=0.0),
            "seen": ~np.isnan(rewards),
            "reward_seen": not bool(feedback.slate_reward.isnan()),
            "expected_reward": score.expected,
            "best_expected_reward": score.best_expected,
            "expected_regret": score.expected_regret,
            "arrival": NEVER if due is None else due,
        }


def slate_at(positions: Sequence[int]) -> Slate:
    """A slate somebody else chose: its means and bonuses are 0, its propensities not known."""
    nothing = torch.zeros(len(positions), dtype=torch.float64)
    return Slate(torch.tensor(positions, dtype=torch.int64), nothing, nothing)


def to_gymnasium(
    problem: str | Environment, *, arms: int | None = None, repeats: Repeats = "repair", **fields: Any
) -> SlateEnv:
    """A problem by name, with the fields of a `ProblemSpec`, or an environment, whose rounds every episode deals again.

    `arms` are the rows of an observation, by default as many as the first round has arms. `repeats` says what becomes
    of an action that names an arm twice: `repair` or `refuse`.
    """
    if isinstance(problem, str):
        if "seed" in fields:
            raise ConfigError("expected none, since reset(seed=...) gives it", field="seed")
        return SlateEnv(lambda seed: build_environment(problem, seed=seed, **fields), arms=arms, repeats=repeats)
    if fields:
        raise ConfigError(f"expected no {', '.join(fields)} beside an environment; build it with them")
    return SlateEnv(partial(_same, problem), arms=arms, repeats=repeats)


def _same(environment: Environment, seed: int) -> Environment:  # noqa: ARG001  # it has a seed of its own
    return environment
