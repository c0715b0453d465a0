"""Inspecting prepared problems: numbers against the environment's truth, the verdict, files and stdout."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import completed

from neuclust.analysis.inspection import Inspection, cluster_profiles, distinct_rows, inspect, record, sentences
from neuclust.analysis.inspection_rewards import mean_rewards
from neuclust.core import Slate
from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.offers import Offers
from neuclust.environments.profiles import profile_environment, replay_environment
from neuclust.errors import ConfigError, DataError
from neuclust.report.inspection import figures

SHARED = Path(os.environ.get("NEUCLUST_SHARED_DATA") or Path(__file__).parents[2] / "../shared/data")
REAL = SHARED / "movielens-25m.npz"


def problem(seed: int = 0, n: int = 120, rounds: int = 60) -> ProfileDataset:
    """Arms that are good at one of four features each; the query decides who is best."""
    rng = np.random.default_rng(seed)
    arms = np.zeros((n, 4), dtype=np.float32)
    arms[np.arange(n), np.arange(n) % 4] = rng.uniform(1, 5, n)
    arms[: n // 4] = arms[n // 4 : 2 * (n // 4)]  # every fourth profile occurs twice
    queries = np.eye(4, dtype=np.float32)[rng.integers(0, 4, rounds)]
    identifiers = np.arange(n, dtype=np.int64) + 100
    return ProfileDataset("toy", arms, queries, identifiers, np.arange(rounds, dtype=np.int64), ("a", "b", "c", "d"))


@pytest.fixture(scope="module")
def found() -> Inspection:
    return inspect(problem(), rounds=50, slate_size=3, clusters=4)


def test_mean_rewards_are_the_environments_truth() -> None:
    rng = np.random.default_rng(1)
    arms = (rng.uniform(0, 5, (40, 6)) * (rng.random((40, 6)) < 0.6)).astype(np.float32)
    rounds = (rng.uniform(0, 2, (15, 6)) * (rng.random((15, 6)) < 0.5)).astype(np.float32)
    numbers = np.arange(40, dtype=np.int64), np.arange(15, dtype=np.int64)
    dataset = ProfileDataset("dense", arms, rounds, *numbers, tuple("abcdef"))
    environment = profile_environment(dataset, slate_size=3)
    expected = np.stack([environment.means(environment.round(t)).numpy() for t in range(1, 16)])
    np.testing.assert_allclose(mean_rewards(arms, rounds), expected, atol=1e-12)


def test_slates_are_worth_what_the_environment_says(found: Inspection) -> None:
    dataset = problem()
    environment = profile_environment(dataset, slate_size=3, horizon=50)
    positions = [int(np.flatnonzero(dataset.arm_ids == arm)[0]) for arm in found.rewards.static_arms]
    for t in (1, 17, 50):
        dealt = environment.round(t)
        zeros = environment.means(dealt)[:3] * 0
        static = Slate(environment.arm_ids.new_tensor(positions), zeros, zeros)
        assert found.rewards.best[t - 1] == pytest.approx(environment.best_expected_reward(dealt))
        assert found.rewards.static[t - 1] == pytest.approx(environment.expected_reward(dealt, static))
    assert (found.rewards.best >= found.rewards.best_cluster - 1e-12).all()
    assert (found.rewards.best >= found.rewards.static - 1e-12).all()
    every = np.stack([environment.means(environment.round(t)).numpy() for t in range(1, 51)])
    assert found.rewards.mean == pytest.approx(every.mean())
    assert found.rewards.quantiles["median"] == pytest.approx(np.median(every), abs=1e-3)
    assert found.rewards.quantiles["max"] == pytest.approx(every.max(), abs=1e-3)


def test_counts_of_the_problem(found: Inspection) -> None:
    assert (found.arms, found.rounds, found.features, found.rounds_looked_at) == (120, 60, 4, 50)
    assert found.zeros_in_arms == 0.75
    assert found.zeros_in_rounds == 0.75
    assert found.active_features_a_round == 1.0
    assert found.distinct_profiles == 90
    assert found.arms_without_profile == 0
    assert found.observations is None


def test_clusters_group_what_belongs_together(found: Inspection) -> None:
    best_feature = problem().arms.argmax(1)
    assert sum(found.clusters.sizes) == 120
    assert list(found.clusters.sizes) == sorted(found.clusters.sizes, reverse=True)
    for cluster in range(4):
        assert len(set(best_feature[found.clusters.labels == cluster])) == 1
    squares = dict(found.clusters.elbow)
    assert squares[1] == pytest.approx(((problem().arms - problem().arms.mean(0)) ** 2).sum(), rel=1e-5)
    assert squares[1] > squares[2] > squares[4] > squares[40]


def test_context_matters_here_and_the_words_say_so(found: Inspection) -> None:
    regrets = found.rewards.regrets
    assert regrets["static"] > 100
    assert regrets["best cluster"] == pytest.approx(0.0, abs=1e-9)
    assert not found.rewards.nearly_static
    assert any("no static slate will do" in sentence for sentence in sentences(found))


def test_static_problem_is_called_static() -> None:
    dataset = problem()
    arms = dataset.arms.copy()
    arms[:5] = 5.0
    easy = inspect(replace(dataset, name="easy", arms=arms), rounds=50, clusters=4)
    assert easy.rewards.regrets["static"] == pytest.approx(0.0, abs=1e-9)
    assert set(easy.rewards.static_arms) == {100, 101, 102, 103, 104}
    assert any("a static slate is nearly optimal" in sentence for sentence in sentences(easy))


@pytest.mark.skipif(not REAL.is_file(), reason="the real prepared file is not here")
def test_golden_numbers_of_the_papers_problem() -> None:
    real = inspect(load_dataset(REAL), rounds=1000)
    regrets = real.rewards.regrets
    assert real.rewards.mean == pytest.approx(0.69296, abs=5e-6)
    assert real.rewards.best.min() == pytest.approx(0.832039, abs=1e-6)
    assert real.rewards.best.max() == pytest.approx(0.832039, abs=1e-6)
    assert record(real)["clipped_floor_per_1000"] == pytest.approx(139.7499, abs=1e-3)
    assert regrets["static"] == pytest.approx(0.015, abs=5e-4)
    assert regrets["random"] == pytest.approx(320, abs=8)
    assert record(real)["nearly_static"] is True


def test_distinct_rows_by_hand() -> None:
    rows = np.array([[1, 0], [2, 1], [1, -0.0], [2, 1], [3, 3]], dtype=np.float32)
    first, back, number = distinct_rows(rows)
    assert sorted(first.tolist()) == [0, 1, 4]
    assert np.array_equal(rows[first][back], rows)
    assert sorted(number.tolist()) == [1, 2, 2]


def test_what_cannot_be_inspected_is_refused() -> None:
    dataset = problem()
    with pytest.raises(ConfigError, match="expected 1 to 90 clusters"):
        cluster_profiles(dataset.arms, 91)
    with pytest.raises(ConfigError, match="slates of 1 to 120 arms, got 10 and 121"):
        inspect(dataset, rounds=10, slate_size=121)
    with pytest.raises(DataError, match="negative entry"):
        inspect(replace(dataset, name="bad", arms=-dataset.arms), rounds=10)


def test_pictures_show_what_they_claim(found: Inspection) -> None:
    drawn: Any = figures(found)
    assert set(drawn) == {"rewards", "elbow", "clusters"}
    line = drawn["elbow"].axes[0].lines[0].get_xydata()
    assert line.tolist() == [list(map(float, point)) for point in found.clusters.elbow]
    bars = [patch.get_height() for patch in drawn["clusters"].axes[0].patches]
    assert bars == list(found.clusters.sizes)
    legend = [text.get_text() for text in drawn["rewards"].axes[1].get_legend().get_texts()]
    assert any(text.startswith("one slate throughout") for text in legend)


def replayed(rounds: int = 60) -> ProfileDataset:
    """Recorded rounds of 15 of the arms, of which those good at the first feature paid."""
    dataset = problem(rounds=rounds)
    arms = [np.sort(np.random.default_rng(t).permutation(120)[: 15 + t % 3]) for t in range(rounds)]
    paid = (dataset.arms[np.concatenate(arms)].argmax(1) == 0).astype(np.float32)
    return replace(dataset, offers=Offers(np.cumsum([0, *map(len, arms)]), np.concatenate(arms), paid))


def test_a_replay_is_valued_in_hindsight() -> None:
    dataset = replayed()
    found = inspect(dataset, rounds=50, slate_size=3, clusters=4)
    environment = replay_environment(dataset, slate_size=3)
    played = {tuple(environment.round(t).arm_ids.tolist()): t for t in range(1, 61)}
    assert dataset.offers is not None
    for row in (0, 20, 49):
        dealt = environment.round(played[tuple(dataset.arm_ids[dataset.offers.of(row)[0]].tolist())])
        assert found.rewards.best[row] == environment.best_expected_reward(dealt)
    assert found.arms_offered == (15, 16.0, 17)
    assert found.rewards.mean == pytest.approx(dataset.offers.rewards[: dataset.offers.starts[50]].mean())
    # payment depends on the arm alone, and the clusters are the features: both find all there is
    regrets = found.rewards.regrets
    assert regrets["static"] == regrets["best cluster"] == 0
    assert regrets["random"] > 300
    assert any(sentence.startswith("Real feedback: 15 to 17 arms per round") for sentence in sentences(found))
    assert any(sentence.startswith("One order of the arms loses 0.000") for sentence in sentences(found))
    assert record(found)["arms_offered"] == (15, 16.0, 17)
    drawn: Any = figures(found)
    legend = [text.get_text() for text in drawn["rewards"].axes[1].get_legend().get_texts()]
    assert any(text.startswith("one order of the arms") for text in legend)
    with pytest.raises(ConfigError, match="slates of 1 to 15 arms, got 50 and 16"):
        inspect(dataset, rounds=50, slate_size=16)


def test_a_replay_of_standardised_features_is_inspected() -> None:
    plain = replayed()
    signed = replace(plain, arms=plain.arms - plain.arms.mean(0))
    assert (signed.arms < 0).any()
    found = inspect(signed, rounds=50, slate_size=3, clusters=4)
    np.testing.assert_array_equal(found.rewards.best, inspect(plain, rounds=50, slate_size=3, clusters=4).rewards.best)


def test_a_cluster_with_too_few_arms_on_offer_fills_no_slate() -> None:
    dataset = replayed()
    found = inspect(dataset, rounds=50, slate_size=8, clusters=4)
    assert found.rewards.best_cluster.max() == 0


def command(*words: object) -> subprocess.CompletedProcess[str]:
    return completed("data", "inspect", *words)


def test_command_writes_words_numbers_and_pictures(tmp_path: Path) -> None:
    problem().save(tmp_path / "toy.npz")
    done = command(tmp_path / "toy.npz", "--clusters", 4, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "no static slate will do" in done.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    pictures = {f"{name}.{ending}" for name in ("rewards", "elbow", "clusters") for ending in ("png", "svg")}
    assert names == pictures | {"inspect.json", "inspect.txt"}
    assert (tmp_path / "out" / "inspect.txt").read_text() == done.stdout
    done = command(tmp_path / "toy.npz", "--clusters", 4, "--json", "-")
    assert json.loads(done.stdout)["arms"] == 120
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "inspect.json").read_text())


def test_command_refuses_what_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "broken.npz").write_text("no")
    done = command(tmp_path / "broken.npz", "--out", tmp_path / "out")
    assert done.returncode == 65
    assert not (tmp_path / "out").exists()
    problem().save(tmp_path / "toy.npz")
    done = command(tmp_path / "toy.npz", "--clusters", 1000)
    assert done.returncode == 2
    assert "expected 1 to 90 clusters" in done.stderr
