import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from neuclust.core import Slate
from neuclust.data import twin
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.twin import STATISTICS_FILE, movielens_twin, read_statistics
from neuclust.environments.profiles import profile_environment
from neuclust.environments.slates import SlateEnvironment
from neuclust.errors import ConfigError, DataError
from tools.fit_movielens_twin import FEWEST_USERS, fit_statistics, main, smallest_denominators, write_statistics

BEST_SLATE = 0.832039
SHARED = Path(os.environ.get("NEUCLUST_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))


@lru_cache(maxsize=1)
def full() -> ProfileDataset:
    return movielens_twin()


@lru_cache(maxsize=1)
def real() -> ProfileDataset:
    path = SHARED / "movielens-25m.npz"
    if not path.is_file():
        pytest.skip(f"the prepared MovieLens problem is not at {path}")
    return load_dataset(path)


def slate(positions: Any) -> Slate:
    zeros = torch.zeros(len(positions), dtype=torch.float64)
    return Slate(torch.from_numpy(positions.copy()), zeros, zeros)


def user_means(data: ProfileDataset) -> Any:
    return data.arms.sum(1) / (data.arms > 0).sum(1)


def counts_of(data: ProfileDataset) -> Any:
    assert data.counts is not None
    return data.counts


def linucb_regret(environment: SlateEnvironment, rounds: int) -> float:
    """Shared LinUCB, ridge 1, α = 1, contexts z/5, in a few lines of numpy."""
    matrix, moment, regret = np.eye(environment.dim), np.zeros(environment.dim), 0.0
    for t in range(1, rounds + 1):
        r = environment.round(t)
        x = r.contexts.numpy() / 5
        inverse = np.linalg.inv(matrix)
        chosen = np.argsort(-(x @ inverse @ moment + np.sqrt(((x @ inverse) * x).sum(1))), kind="stable")[:5]
        rewards = environment.play(r, slate(chosen)).arm_rewards.numpy()
        regret += environment.best_expected_reward(r) - environment.expected_reward(r, slate(chosen))
        matrix += x[chosen].T @ x[chosen]
        moment += x[chosen].T @ rewards
    return regret


def test_has_the_shape_of_the_real_problem() -> None:
    data = full()
    assert data.arms.shape == (10168, 20)
    assert data.rounds.shape == (6000, 20)
    assert data.features[0] == "Action"
    assert data.features[-1] == "(no genres listed)"
    assert set(np.unique(data.rounds)) == {0.0, 1.0}
    histogram = np.bincount(data.rounds[:1000].sum(1).astype(int)).tolist()
    assert histogram == [0, 132, 218, 324, 216, 86, 20, 4]
    assert len(np.unique(data.rounds[:1000], axis=0)) == 362


def test_entries_are_means_of_half_star_ratings() -> None:
    data = full()
    counts, arms = counts_of(data).astype(np.float64), data.arms.astype(np.float64)
    assert np.array_equal(counts == 0, arms == 0)
    assert np.array_equal(counts, np.round(counts))
    halves = 2 * counts * arms
    assert np.abs(halves - np.round(halves)).max() < 1e-3 * counts.max()
    assert np.abs(halves - np.round(halves))[counts < 50].max() < 1e-3
    assert arms[counts > 0].min() >= 0.5
    assert arms.max() == 5.0


def test_five_users_rated_everything_five_and_so_the_optimum_never_moves() -> None:
    data = full()
    assert int(((data.arms >= 5) | (data.arms == 0)).all(1).sum()) == 5
    environment = profile_environment(data, horizon=6000)
    best = [environment.best_expected_reward(environment.round(t)) for t in range(1, 6001, 7)]
    assert best == pytest.approx([BEST_SLATE] * len(best), abs=5e-7)


def test_aggregates_are_those_published_for_the_real_problem() -> None:
    data = full()
    environment = profile_environment(data, horizon=1000)
    rounds = range(1, 1001, 4)
    means = torch.stack([environment.means(environment.round(t)) for t in rounds])
    draws = torch.from_numpy(np.random.default_rng(0).integers(10168, size=(len(means), 40, 5)))
    random = environment.reward.expected(torch.gather(means[:, None].expand(-1, 40, -1), 2, draws))
    assert float(means.mean()) == pytest.approx(0.69296, abs=0.006)
    assert float(random.mean()) == pytest.approx(0.513, abs=0.012)
    assert float(np.linalg.norm(data.arms, axis=1).mean()) == pytest.approx(15.322, rel=0.01)
    missing = dict(zip(data.features, (data.arms == 0).mean(0), strict=True))
    assert missing["Film-Noir"] == pytest.approx(0.1971, abs=0.02)
    assert missing["Documentary"] == pytest.approx(0.2259, abs=0.02)
    assert missing["(no genres listed)"] == pytest.approx(0.5232, abs=0.02)
    tied = (means >= means.max(1, keepdim=True).values - 1e-12).sum(1)
    assert int(tied.min()) >= 5
    assert 5 <= int(tied.median()) <= 10
    assert 150 < int(tied.max()) < 700


def test_shared_linucb_finds_the_optimum_almost_at_once() -> None:
    assert 0 < linucb_regret(profile_environment(full(), horizon=300), 300) < 3


def test_equal_arguments_give_equal_users_and_seeds_differ() -> None:
    first, again, other = movielens_twin(300, 50, 1), movielens_twin(300, 50, 1), movielens_twin(300, 50, 2)
    for name in ("arms", "rounds", "counts"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
        assert not np.array_equal(getattr(first, name), getattr(other, name))


@pytest.mark.parametrize(("users", "rounds"), [(5, 1), (60, 2000), (1000, 7000)])
def test_small_and_long_twins_keep_a_perfect_slate(users: int, rounds: int) -> None:
    data = movielens_twin(users, rounds)
    assert data.arms.shape == (users, 20)
    assert data.rounds.shape == (rounds, 20)
    assert (data.rounds.sum(1) >= 1).all()
    assert int((data.arms == 5).all(1).sum()) == 5
    environment = profile_environment(data)
    for t in {1, rounds // 2 + 1, rounds}:
        assert environment.best_expected_reward(environment.round(t)) == pytest.approx(BEST_SLATE, abs=5e-7)


@pytest.mark.parametrize(("users", "rounds"), [(4, 10), (10, 0), (-1, 5)])
def test_refuses_twins_too_small_to_play(users: int, rounds: int) -> None:
    with pytest.raises(ConfigError, match="at least 5 users and 1 round"):
        movielens_twin(users, rounds)


def test_the_shipped_file_holds_aggregates_alone() -> None:
    statistics = read_statistics(STATISTICS_FILE)
    assert STATISTICS_FILE.stat().st_size < 300_000
    assert all(part.users >= FEWEST_USERS for part in statistics.components)
    assert all((part.missing_users >= FEWEST_USERS).all() for part in statistics.components)
    assert sum(part.users for part in statistics.components) + statistics.perfect == statistics.users


def test_statistics_survive_the_file(tmp_path: Path) -> None:
    write_statistics(read_statistics(STATISTICS_FILE), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == STATISTICS_FILE.read_bytes()


def test_a_fit_is_deterministic_and_its_twin_looks_like_what_was_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = movielens_twin(3000, 1500, seed=3)
    paths = [tmp_path / "first.json", tmp_path / "second.json"]
    for path in paths:
        write_statistics(fit_statistics(source, n_clusters=5, tail_users=(25, 25, 25)), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    monkeypatch.setattr(twin, "STATISTICS_FILE", paths[0])
    copy = movielens_twin(3000, 1500, seed=4)
    there, here = source.arms > 0, copy.arms > 0
    assert here.mean(0) == pytest.approx(there.mean(0), abs=0.04)
    assert copy.arms.sum(0) / here.sum(0) == pytest.approx(source.arms.sum(0) / there.sum(0), abs=0.045)
    spread = [np.nanstd(np.where(data.arms > 0, data.arms, np.nan), 0) for data in (copy, source)]
    assert spread[0] == pytest.approx(spread[1], rel=0.03)
    quantiles = [0.05, 0.25, 0.5, 0.75, 0.95]
    assert np.quantile(user_means(copy), quantiles) == pytest.approx(
        np.quantile(user_means(source), quantiles), abs=0.12
    )
    typical = [np.median(counts_of(data)[:, :9], axis=0) for data in (source, copy)]
    assert np.abs(np.log(typical[1] / typical[0])).max() < 0.8  # counts were never shown to the fit


def test_refuses_to_describe_too_few_users() -> None:
    with pytest.raises(DataError, match="at least 20 users"):
        fit_statistics(movielens_twin(120, 20), n_clusters=5, tail_users=(20, 20, 20))


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main([str(tmp_path / "nowhere.npz")]) == 65
    assert "nowhere.npz" in capsys.readouterr().err


@settings(deadline=None)
@given(st.integers(1, 400), st.data())
def test_denominators_are_found_in_lowest_terms(count: int, data: st.DataObject) -> None:
    halves = data.draw(st.integers(count, 10 * count))
    expected = 2 * count // int(np.gcd(halves, 2 * count))
    found = smallest_denominators(np.array([halves / (2 * count)], dtype=np.float32))
    assert int(found[0]) == expected


def test_no_real_user_is_in_the_twin() -> None:
    ordinary = real().arms[(real().arms < 5).any(1) & ((real().arms != 5) & (real().arms != 0)).any(1)]
    rows = {row.tobytes() for row in ordinary}
    assert not any(row.tobytes() in rows for row in full().arms)


def test_users_and_clusters_are_spread_as_the_real_ones() -> None:
    quantiles = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
    assert np.quantile(user_means(full()), quantiles) == pytest.approx(
        np.quantile(user_means(real()), quantiles), abs=0.1
    )
    spread = [np.nanstd(np.where(data.arms > 0, data.arms, np.nan), 1) for data in (full(), real())]
    assert np.quantile(spread[0], quantiles) == pytest.approx(np.quantile(spread[1], quantiles), rel=0.1)
    for k in (5, 22):
        within = [KMeans(k, n_init=2, random_state=0).fit(data.arms).inertia_ for data in (full(), real())]
        assert within[0] == pytest.approx(within[1], rel=0.1)


def test_linucb_does_as_well_as_on_the_real_users() -> None:
    ours, theirs = (linucb_regret(profile_environment(data, horizon=300), 300) for data in (full(), real()))
    assert ours == pytest.approx(theirs, abs=3)
