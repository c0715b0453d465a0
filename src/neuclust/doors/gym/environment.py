"""A `gymnasium.Env` of the right form as an environment that policies of neuclust play.

Actions are `Discrete(n)`, a slate of one arm, or `MultiDiscrete([n] * k)`. Observations are a `Dict` with `contexts`
(`observations.py`), a `Box` (n, d) of contexts, or a `Box` (d,) that all arms share, for which every arm has columns
of its own: contexts (n, n (d + 1)), row i has (1, x) in block i.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from neuclust.core import Feedback, Round, Slate
from neuclust.doors.gym.observations import Observation, round_of
from neuclust.doors.gym.slate_env import NEVER
from neuclust.errors import ConfigError, DataError

FORMS = "a Dict with 'contexts' (n, d), a Box (n, d) or a Box (d,)"

Read = Callable[[Any], Observation]


class GymEnvironment:
    """Plays a Gymnasium environment round by round, 1, 2, …: a round is an observation, its feedback one step.

    Round 1 resets with the seed, and so does each later round after an episode's end, without a seed. Arm rewards are
    `info["arm_rewards"]` (`info["seen"]` tells which were observed), or the reward itself for slates of one. Expected
    rewards are those of `info`; where there are none, the reward is set against `best_reward`.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], *, horizon: int = 1000, seed: int = 0, best_reward: float | None = None
    ) -> None:
        self.env, self.horizon, self.seed, self._best_reward = env, horizon, seed, best_reward
        self.name = str(env) if env.spec is None else env.spec.id
        n, self.slate_size, self._start = _actions(env.action_space)
        self._read, self.dim = _reader(env.observation_space, n)
        self._round: Round | None = None
        self._rows = np.zeros(0, np.int64)
        self._next: Any = None  # the observation of the round to come; None: reset first
        self._played: tuple[list[int], float, dict[str, Any]] | None = None

    def round(self, t: int) -> Round:
        """The round that is on, the next one, or the first one again once it was played: a sequence has no others."""
        if self._round is not None and self._round.t == t and not (t == 1 and self._played):
            return self._round
        if t == 1:
            self._next = self.env.reset(seed=self.seed)[0]
        elif self._round is None or t != self._round.t + 1 or self._played is None:
            at = "none" if self._round is None else f"{self._round.t}{'' if self._played else ', which was not played'}"
            raise DataError(f"{self.name}: expected rounds in order, each played once, got {t} after {at}")
        elif self._next is None:
            self._next = self.env.reset()[0]
        if not 1 <= t <= self.horizon:
            raise DataError(f"{self.name}: expected a round from 1 to {self.horizon}, got {t}")
        self._round, self._rows = round_of(self._read(self._next), t, self.slate_size)
        self._played = None
        return self._round

    def play(self, round: Round, slate: Slate) -> Feedback:
        """One step of the environment with the slate's rows as action."""
        positions = slate.positions.tolist()
        if self._round is None or round.t != self._round.t or self._played is not None:
            raise DataError(f"{self.name}: expected the round that is on, once, got round {round.t}; ask for the next")
        action = self._rows[positions] + self._start
        given = action if isinstance(self.env.action_space, spaces.MultiDiscrete) else int(action[0])
        observation, reward, terminated, truncated, info = self.env.step(given)
        self._next = None if terminated or truncated else observation
        self._played = positions, float(reward), info
        paid = float(reward) if info.get("reward_seen", True) else np.nan
        return Feedback(torch.from_numpy(self._arm_rewards(float(reward), info)), torch.tensor(paid))

    def _arm_rewards(self, reward: float, info: dict[str, Any]) -> NDArray[np.float64]:
        k = self.slate_size
        if "arm_rewards" not in info:
            if k == 1:
                return np.array([reward])
            raise DataError(f"{self.name}: expected info['arm_rewards'] for slates of {k}, got {sorted(info)}")
        found = np.asarray(info["arm_rewards"], dtype=np.float64)
        seen = np.asarray(info.get("seen", np.ones(k)), dtype=bool)
        if found.shape != (k,) or seen.shape != (k,):
            raise DataError(f"{self.name}: expected {k} arm_rewards and seen, got {found.shape} and {seen.shape}")
        return np.where(seen, found, np.nan)

    def arrival(self, t: int) -> int | None:
        """The round whose end brings the feedback of the round played last."""
        due = int(self._info(t).get("arrival", t))
        return None if due == NEVER else due

    def expected_reward(self, round: Round, slate: Slate) -> float:
        """What info says of the slate that was played; the reward itself where it says nothing."""
        info = self._info(round.t)
        assert self._played is not None
        if slate.positions.tolist() != self._played[0]:
            raise DataError(f"{self.name}: expected the slate that was played, got another; Gymnasium plays one only")
        return float(info["expected_reward"]) if self._tells(info) else self._played[1]

    def best_expected_reward(self, round: Round) -> float:
        """What info says after the round was played, else `best_reward`."""
        info = self._info(round.t)
        if self._tells(info):
            return float(info["best_expected_reward"])
        if self._best_reward is None:
            said = f"expected the best reward, since the info of {self.name} tells no expected rewards"
            raise ConfigError(f"{said}; give what a slate can pay at most", field="best_reward")
        return self._best_reward

    @staticmethod
    def _tells(info: dict[str, Any]) -> bool:
        return "expected_reward" in info and "best_expected_reward" in info

    def _info(self, t: int) -> dict[str, Any]:
        if self._played is None or self._round is None or self._round.t != t:
            raise DataError(f"{self.name}: expected a round that was just played, got {t}")
        return self._played[2]


def from_gymnasium(
    env: gymnasium.Env[Any, Any] | str, *, horizon: int = 1000, seed: int = 0, best_reward: float | None = None
) -> GymEnvironment:
    """An environment of Gymnasium, or the one `gymnasium.make` makes of an id."""
    made = gymnasium.make(env) if isinstance(env, str) else env
    return GymEnvironment(made, horizon=horizon, seed=seed, best_reward=best_reward)


def _actions(space: spaces.Space[Any]) -> tuple[int, int, int]:
    """n, k and the number of the first arm."""
    if isinstance(space, spaces.Discrete):
        return int(space.n), 1, int(space.start)
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        sizes, starts = set(space.nvec.tolist()), set(space.start.tolist())
        if len(sizes) == len(starts) == 1 and len(space.nvec) <= max(sizes):
            return int(max(sizes)), len(space.nvec), int(max(starts))
    raise ConfigError(f"expected Discrete(n) or MultiDiscrete([n] * k) with k at most n, got {space}", field="actions")


def _reader(space: spaces.Space[Any], n: int) -> tuple[Read, int]:
    """How an observation becomes one with `contexts`, and how many columns those have."""
    if isinstance(space, spaces.Dict):
        contexts = space.spaces.get("contexts")
        if isinstance(contexts, spaces.Box) and len(contexts.shape) == 2 and contexts.shape[0] == n:
            return dict, contexts.shape[1]
    elif isinstance(space, spaces.Box) and len(space.shape) == 2 and space.shape[0] == n:
        return lambda matrix: {"contexts": matrix}, space.shape[1]
    elif isinstance(space, spaces.Box) and len(space.shape) == 1:
        return lambda shared: _blocks(np.asarray(shared, np.float64), n), n * (space.shape[0] + 1)
    raise ConfigError(f"expected {FORMS} for {n} arms, got {space}", field="observations")


def _blocks(shared: NDArray[np.float64], n: int) -> Observation:
    return {"contexts": np.kron(np.eye(n), np.append(1.0, shared)[None, :]), "profiles": np.eye(n)}
