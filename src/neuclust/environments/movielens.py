"""MovieLens users and movies with other mean rewards than the paper's: `ml-volatile`, `ml-ideal`, `ml-quadratic`.

Users who rate everything alike are left out, since a static slate of them would win. A user's mean and s.d. are taken
over the genres the user has rated; the others stay 0. The seed deals movies, offers, coins and hidden parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuclust.data.dataset import ProfileDataset
from neuclust.environments.dealing import Arms, MeanRewards, Simulated, View
from neuclust.environments.problem import ProblemSpec
from neuclust.environments.profiles import tanh_affinity
from neuclust.environments.slates import SlateEnvironment
from neuclust.environments.synthetic import FLOOR, SPAN, some_offered
from neuclust.errors import ConfigError, DataError
from neuclust.randomness import stream

Floats = NDArray[np.float64]

SMALLEST_SPREAD, LARGEST_MEAN = 0.15, 4.7  # users beyond these rate everything alike
MIDDLE = 3.0  # where centred profiles are shifted to
IDEAL_WIDTH = 0.15  # s.d. of the bell around the ideal point
IDEAL_SPREAD = 0.25  # s.d. of the ideal point around the users' mean, in s.d. of the users


@dataclass(frozen=True, slots=True)
class HiddenTaste:
    """μ of users for a movie, (n,), by a rule with one hidden vector."""

    rule: Callable[[Tensor, Tensor, Tensor], Tensor]  # of profiles (n, d), query (d,) and the hidden vector
    profiles: Tensor  # (N, d)
    hidden: Tensor  # (d,)

    def __call__(self, positions: Tensor | None, query: Tensor | None) -> Tensor:
        assert query is not None  # a movie always asks for something
        return self.rule(self.profiles if positions is None else self.profiles[positions], query, self.hidden)


def ideal_point(profiles: Tensor, query: Tensor, ideal: Tensor) -> Tensor:
    """μ = 0.05 + 0.9 exp(−mean_g (x_g − τ_g)² / (2 · 0.15²)) over the genres asked for, τ the ideal: (n,)."""
    asked = torch.nonzero(query).flatten()
    away = (profiles[:, asked] - ideal[asked]).square().mean(1)
    return FLOOR + SPAN * torch.exp(-away / (2 * IDEAL_WIDTH**2))


def squared_taste(profiles: Tensor, query: Tensor, direction: Tensor) -> Tensor:
    """μ = 0.05 + 0.9 (x·θ)², x = z/‖z‖ and θ cut to the genres asked for and scaled to length 1: (n,)."""
    contexts = unit_contexts(profiles, query) * query
    asked = direction * (query != 0)
    along: Tensor = contexts @ (asked / asked.norm())
    return FLOOR + SPAN * along.square().clamp(max=1.0)


def unit_contexts(profiles: Tensor, query: Tensor | None) -> Tensor:
    """Profiles (n, d) at masked length 1, or 0 where nothing is shared with the query."""
    contexts = profiles if query is None else profiles * query
    lengths = contexts.norm(dim=1, keepdim=True)
    return torch.where(lengths > 0, profiles / lengths.clamp(min=1e-12), 0.0)


def ml_volatile(dataset: ProfileDataset, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """The paper's truth where no user is good at everything: profiles x − mean + 3, μ = tanh(s/4) on them."""
    spec = some_offered(spec, fields)
    users, present, mean, _ = varied_users(dataset)
    profiles = np.where(present, np.clip(dataset.arms[users] - mean + MIDDLE, 0.0, None), 0.0)
    arms = _arms(dataset, users, profiles)
    return SlateEnvironment("ml-volatile", arms, _movies(dataset, tanh_affinity(arms.profiles), spec), spec)


def ml_ideal(dataset: ProfileDataset, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """`ideal_point` on standardised profiles, τ = their mean + a quarter of their s.d. times N(0, 1), per genre."""
    spec = some_offered(spec, fields)
    users, profiles = standardised_users(dataset)
    noise = stream(spec.seed, "ml-ideal truth").standard_normal(profiles.shape[1])
    ideal = profiles.mean(0) + IDEAL_SPREAD * profiles.std(0) * noise
    arms = _arms(dataset, users, profiles)
    truth = HiddenTaste(ideal_point, arms.profiles, torch.from_numpy(ideal))
    return SlateEnvironment("ml-ideal", arms, _movies(dataset, truth, spec), spec)


def ml_quadratic(dataset: ProfileDataset, spec: ProblemSpec | None = None, **fields: Any) -> SlateEnvironment:
    """`squared_taste` on standardised profiles, for movies of two genres or more: with one every context is 1 or −1.

    A round shows profiles scaled to a masked length of 1; the catalogue holds them unscaled.
    """
    spec = some_offered(spec, fields)
    users, profiles = standardised_users(dataset)
    direction = stream(spec.seed, "ml-quadratic truth").standard_normal(profiles.shape[1])
    arms = _arms(dataset, users, profiles, unit_contexts)
    truth = HiddenTaste(squared_taste, arms.profiles, torch.from_numpy(direction / np.linalg.norm(direction)))
    return SlateEnvironment("ml-quadratic", arms, _movies(dataset, truth, spec, fewest_genres=2), spec)


def varied_users(dataset: ProfileDataset) -> tuple[NDArray[np.int64], NDArray[np.bool_], Floats, Floats]:
    """Rows of users with profile s.d. ≥ 0.15 and mean ≤ 4.7, (U,); what each rated (U, d); mean and s.d., (U, 1)."""
    arms = dataset.arms.astype(np.float64)
    present = arms != 0
    rated = np.maximum(present.sum(1, keepdims=True), 1)
    mean = arms.sum(1, keepdims=True) / rated
    spread = np.sqrt((np.square(arms - mean) * present).sum(1, keepdims=True) / rated)
    users = np.flatnonzero((spread >= SMALLEST_SPREAD)[:, 0] & (mean <= LARGEST_MEAN)[:, 0])
    if users.size == 0:
        wanted = f"users with a profile s.d. of at least {SMALLEST_SPREAD} and a mean of at most {LARGEST_MEAN}"
        raise DataError(f"{dataset.name}: expected {wanted}, got none; give profiles made of ratings")
    return users, present[users], mean[users], spread[users]


def standardised_users(dataset: ProfileDataset) -> tuple[NDArray[np.int64], Floats]:
    """Rows of the varied users, (U,), and their profiles (x − mean)/s.d., 0 where nothing was rated: (U, d)."""
    users, present, mean, spread = varied_users(dataset)
    return users, np.where(present, (dataset.arms[users] - mean) / spread, 0.0)


def dealt_movies(dataset: ProfileDataset, horizon: int, seed: int, fewest_genres: int = 1) -> Floats:
    """Queries of `horizon` movies at random, with replacement: (horizon, d) of 0 and 1."""
    queries = (dataset.rounds != 0).astype(np.float64)
    usable = queries[queries.sum(1) >= fewest_genres]
    if len(usable) == 0:
        raise DataError(f"{dataset.name}: expected rounds that ask for at least {fewest_genres} features, got none")
    if horizon < 1:
        raise ConfigError(f"{dataset.name}: expected a horizon of at least 1, got {horizon}")
    drawn: Floats = usable[stream(seed, "movies").integers(len(usable), size=horizon)]
    return drawn


def _arms(dataset: ProfileDataset, users: NDArray[np.int64], profiles: Floats, view: View | None = None) -> Arms:
    return Arms(torch.from_numpy(profiles), torch.tensor(dataset.arm_ids[users], dtype=torch.int64), view=view)


def _movies(dataset: ProfileDataset, truth: MeanRewards, spec: ProblemSpec, fewest_genres: int = 1) -> Simulated:
    return Simulated(truth, torch.from_numpy(dealt_movies(dataset, spec.horizon, spec.seed, fewest_genres)))
