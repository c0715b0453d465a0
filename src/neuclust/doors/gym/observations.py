"""Rounds as observations, and back.

| key | holds |
|---|---|
| `contexts` | (n, d) what models read of each arm |
| `offered` | (n,) 1 where a row is an arm, 0 below the arms of a round that offers fewer than n |
| `ids` | (n,) int64 |
| `profiles`, `query` | (n, d'), (d',) where contexts are made of them or beside them |
"""

from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from neuclust.core import LARGEST, Round
from neuclust.errors import DataError

MOST_ID = 2**62  # of an arm: gymnasium samples whole numbers up to one more

Observation = dict[str, Any]  # of arrays


def space_of(round: Round, arms: int) -> spaces.Dict:
    """The space of a problem's observations by one of its rounds."""
    found: dict[str, spaces.Space[Any]] = {
        "contexts": _numbers(arms, round.contexts.shape[1]),
        "offered": spaces.MultiBinary(arms),
        "ids": spaces.Box(-MOST_ID, MOST_ID, (arms,), np.int64),
    }
    if round.query is not None or round.features is not None:
        found["profiles"] = _numbers(arms, round.profiles.shape[1])
    if round.query is not None:
        found["query"] = _numbers(len(round.query))
    return spaces.Dict(found)


def _numbers(*shape: int) -> spaces.Box:
    return spaces.Box(-LARGEST, LARGEST, shape, np.float64)


def observation_of(round: Round, arms: int) -> Observation:
    """New arrays of a round, zeros below its arms."""
    n = len(round.arm_ids)
    if n > arms:
        said = f"expected at most {arms} arms, as the space of the observations has, got {n}"
        raise DataError(f"round {round.t}: {said}; make the environment with arms={n}")
    if round.rules is not None:
        raise DataError(f"round {round.t}: expected a round without rules, which Gymnasium has no place for, got some")
    found = {
        "contexts": _padded(round.contexts, arms),
        "offered": (np.arange(arms) < n).astype(np.int8),
        "ids": _padded(round.arm_ids, arms),
    }
    if round.query is not None or round.features is not None:
        found["profiles"] = _padded(round.profiles, arms)
    if round.query is not None:
        found["query"] = round.query.numpy(force=True).copy()
    return found


def _padded(values: Tensor, rows: int) -> NDArray[Any]:
    given = values.numpy(force=True)
    found = np.zeros((rows, *given.shape[1:]), given.dtype)
    found[: len(given)] = given
    return found


def round_of(observation: Observation, t: int, slate_size: int) -> tuple[Round, NDArray[np.int64]]:
    """The round of an observation of this form, and the rows its arms stand in; all keys but `contexts` may lack."""
    contexts = np.asarray(observation["contexts"], dtype=np.float64)
    offered = observation.get("offered")
    rows = np.arange(len(contexts)) if offered is None else np.flatnonzero(offered)
    contexts = contexts[rows]
    profiles = contexts if "profiles" not in observation else np.asarray(observation["profiles"], np.float64)[rows]
    query = None if "query" not in observation else np.asarray(observation["query"], np.float64)
    asked = profiles if query is None else profiles * query
    features = None if np.array_equal(asked, contexts) else contexts
    ids = rows if "ids" not in observation else np.asarray(observation["ids"], np.int64)[rows]
    asked_for, read = (None if each is None else torch.tensor(each) for each in (query, features))
    return Round(t, torch.tensor(ids), torch.tensor(profiles), asked_for, slate_size, read), rows
