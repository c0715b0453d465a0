"""NeUClust against a plain Python Algorithm 2, and what must and must not change its choices."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import naive_reference as naive
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_problems import feedback, play, same_state, slate_of, small_environment, snapshot

from neuclust.core import Round
from neuclust.errors import ConfigError, DataError, NeuclustError, StateError
from neuclust.kernels.network import flatten
from neuclust.models.arm_model import NetworkConfig
from neuclust.models.tracker import ProfileTracker, TrackerConfig
from neuclust.policies.combinatorial_neural import CombinatorialNeuralUCB
from neuclust.policies.neuclust import NeUClust, NeUClustConfig, diagonal_of
from neuclust.registry import build_policy, policy_config
from neuclust.slates.clustering import ClusteringConfig

DIM, K = 6, 3


def sized(preset: str, clusters: int = 4, width: int = 6) -> NeUClustConfig:
    """A preset with a small net, so that explicit matrices stay cheap."""
    config: NeUClustConfig = policy_config("neuclust", preset, clusters)
    network = replace(config.arms.network, width=width)
    return replace(config, arms=replace(config.arms, network=network), slate=replace(config.slate, width=5))


def naive_twin(policy: NeUClust) -> naive.NaiveNeUClust:
    return naive.NaiveNeUClust(policy.config, policy.arms.initial.weights, policy.slates.initial, policy.slate_size)


class Given:
    """A clusterer that names the clusters as it was told to."""

    def __init__(self, labels: NDArray[np.int64]) -> None:
        self.labels = labels

    def fit_predict(self, X: NDArray[np.float64], y: None = None) -> NDArray[np.int64]:
        return self.labels


# --- Algorithm 2 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["default", "paper", "paper-raw", "paper-literal", "paper-lift"])
def test_25_rounds_equal_the_plain_algorithm(preset: str) -> None:
    environment = small_environment(n=36, d=DIM, slate_size=K)
    policy = NeUClust(sized(preset), DIM, K, seed=3)
    twin = naive_twin(policy)
    clusters = set()
    for t in range(1, 26):
        round = environment.round(t)
        slate = policy.select(round)
        expected, means, widths, _ = twin.select(round)
        scores = policy.arms.scores(round)
        torch.testing.assert_close(scores.means, torch.tensor(means, dtype=torch.float64), rtol=0, atol=1e-8)
        gamma = policy.config.arms.schedule.gamma
        torch.testing.assert_close(
            scores.bonuses, gamma * torch.tensor(widths, dtype=torch.float64), rtol=0, atol=1e-8 * max(1.0, gamma)
        )
        assert slate.positions.tolist() == expected, t
        assert torch.equal(slate.means, scores.means[slate.positions])
        assert torch.equal(slate.bonuses, scores.bonuses[slate.positions])
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        twin.update(round, expected, outcome.arm_rewards.tolist(), float(outcome.slate_reward))
        clusters.add(slate.cluster)
    for found, wanted in zip(policy.slates.net.parameters, twin.big_theta, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-8)
    assert len(clusters) > 1


def test_the_papers_start_is_the_block_symmetric_one_on_duplicated_inputs() -> None:
    """Fails when f(·; θ_0) ≠ 0, or when the net with half the parameters plays otherwise than the printed one."""
    paper = build_policy("neuclust", preset="paper", environment=small_environment(d=20), seed=3)
    assert isinstance(paper, NeUClust)
    assert paper.arms.net.size == 420
    environment = small_environment(n=36, d=DIM, slate_size=K)
    config = sized("paper")
    arms = replace(
        config.arms,
        encoder=replace(config.arms.encoder, duplicate=True),
        network=replace(config.arms.network, init="symmetric"),
    )
    halved, printed = NeUClust(config, DIM, K, seed=3), NeUClust(replace(config, arms=arms), DIM, K, seed=3)
    assert printed.arms.net.size == 2 * halved.arms.net.size - halved.arms.config.network.width
    start = halved.arms.scores(environment.round(1)).means
    torch.testing.assert_close(start, torch.zeros_like(start), rtol=0, atol=1e-15)
    for t in range(1, 31):
        round = environment.round(t)
        one, other = halved.select(round), printed.select(round)
        assert one.positions.tolist() == other.positions.tolist(), f"round {t}"
        torch.testing.assert_close(one.means, other.means, rtol=0, atol=1e-10)
        torch.testing.assert_close(one.bonuses, other.bonuses, rtol=0, atol=1e-10)
        for policy in (halved, printed):
            policy.update(round, one, environment.play(round, one))


def test_the_raw_reading_keeps_contexts_and_trains_from_the_start_every_time() -> None:
    for name in ("neuclust", "cn-ucb"):
        paper, raw = (policy_config(name, preset) for preset in ("paper", "paper-raw"))
        training = replace(raw.arms.training, start="warm")
        assert (raw.arms.encoder.kind, raw.arms.training.start) == ("raw", "restart")
        assert replace(raw, arms=replace(raw.arms, encoder=paper.arms.encoder, training=training)) == paper


def test_two_layers_another_ridge_and_a_weight_on_f_equal_the_plain_algorithm() -> None:
    environment = small_environment(n=36, d=DIM, slate_size=K)
    config = sized("default")
    arms = replace(
        config.arms,
        network=NetworkConfig(4, 2, "he"),
        confidence=replace(config.arms.confidence, ridge=0.3, solver="dual"),
        schedule=replace(config.arms.schedule, gamma=0.4),
    )
    policy = NeUClust(replace(config, arms=arms, slate=replace(config.slate, weight=2.5)), DIM, K, seed=1)
    twin = naive_twin(policy)
    for t in range(1, 11):
        round = environment.round(t)
        slate, expected = policy.select(round), twin.select(round)[0]
        assert slate.positions.tolist() == expected
        outcome = environment.play(round, slate)
        policy.update(round, slate, outcome)
        twin.update(round, expected, outcome.arm_rewards.tolist(), float(outcome.slate_reward))


@pytest.mark.parametrize("preset", ["default", "paper", "paper-literal", "paper-lift"])
@pytest.mark.parametrize("weight", [0.0, 1.0, 7.0])
def test_one_cluster_is_cn_ucb_whatever_the_weight_of_f(preset: str, weight: float) -> None:
    environment = small_environment()
    config = sized(preset, clusters=1)
    config = replace(config, slate=replace(config.slate, weight=weight))
    one = NeUClust(config, DIM, K, seed=5)
    reference = CombinatorialNeuralUCB(policy_config("cn-ucb"), DIM, K, seed=5)
    reference = CombinatorialNeuralUCB(replace(reference.config, arms=config.arms), DIM, K, seed=5)
    assert play(one, environment, range(1, 21)) == play(reference, environment, range(1, 21))
    for left, right in zip(one.arms.net.weights, reference.arms.net.weights, strict=True):
        assert torch.equal(left, right)


def test_the_weight_of_f_matters_where_there_are_clusters() -> None:
    environment = small_environment()
    slates = []
    for weight in (0.0, 50.0):
        config = sized("paper")
        policy = NeUClust(replace(config, slate=replace(config.slate, weight=weight)), DIM, K, seed=5)
        slates.append(play(policy, environment, range(1, 21)))
    assert slates[0] != slates[1]


def cluster_order(order: list[int], preset: str = "default", **changes: Any) -> list[list[int]]:
    environment = small_environment()
    labels = np.argsort(order)[np.arange(48) % 4].astype(np.int64)
    policy = NeUClust(replace(sized(preset), **changes), DIM, K, seed=2, clusterer=Given(labels))
    return play(policy, environment, range(1, 16))


@pytest.mark.parametrize("preset", ["default", "paper", "paper-lift"])
def test_scores_do_not_depend_on_the_order_of_the_clusters(preset: str) -> None:
    straight = cluster_order([0, 1, 2, 3], preset)
    assert straight == cluster_order([3, 1, 0, 2], preset) == cluster_order([2, 3, 1, 0], preset)
    assert len({tuple(slate) for slate in straight}) > 3


def test_score_mean_and_sum_choose_alike() -> None:
    environment = small_environment()
    slates = []
    scores: tuple[Any, ...] = ("sum", "mean")
    for score in scores:
        config = sized("default")
        policy = NeUClust(replace(config, slate=replace(config.slate, score=score)), DIM, K, seed=2)
        slates.append(play(policy, environment, range(1, 16)))
    assert slates[0] == slates[1]


def test_every_slate_comes_from_one_cluster() -> None:
    environment = small_environment()
    labels = (np.arange(48) % 4).astype(np.int64)
    policy = NeUClust(sized("default"), DIM, K, seed=2, clusterer=Given(labels))
    for t in range(1, 11):
        round = environment.round(t)
        slate = policy.select(round)
        assert {int(labels[i]) for i in slate.positions} == {slate.cluster}
        policy.update(round, slate, environment.play(round, slate))


def test_ties_go_to_the_smaller_id_and_the_first_cluster() -> None:
    ids = torch.tensor([9, 3, 7, 1, 8, 2, 6, 4])
    round = Round(1, ids, torch.zeros(8, 2, dtype=torch.float64), None, 2)
    config = replace(sized("default"), clustering=ClusteringConfig(count=2))
    policy = NeUClust(config, 2, 2, clusterer=Given(np.array([1, 1, 1, 1, 0, 0, 0, 0])))
    slate = policy.select(round)
    assert slate.cluster == 0
    assert ids[slate.positions].tolist() == [2, 4]


def test_among_equal_clusters_the_smaller_number_wins_also_where_clusters_are_filled() -> None:
    round = Round(1, torch.arange(5), torch.zeros(5, 2, dtype=torch.float64), None, 2)
    config = replace(sized("default"), clustering=ClusteringConfig(count=2, small="fill"))
    policy = NeUClust(config, 2, 2, clusterer=Given(np.array([0, 1, 1, 1, 1])))
    assert policy.select(round).cluster == 0


def test_random_ties_differ_between_rounds_and_repeat_for_the_same_round() -> None:
    profiles = torch.zeros(40, 2, dtype=torch.float64)
    config = replace(sized("default", clusters=1), tie="random")
    policy = NeUClust(config, 2, 2)
    chosen = [policy.select(Round(t, torch.arange(40), profiles, None, 2)).positions.tolist() for t in (1, 2, 3, 1)]
    assert chosen[0] == chosen[3]
    assert len({tuple(c) for c in chosen}) > 1


# --- snapshots ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["neuclust", "neuclust-online"])
def test_changing_profiles_after_play_changes_nothing_learned(name: str) -> None:
    """The covariance and the history hold contexts as they were shown."""
    environment = small_environment()
    policy = build_policy(name, environment=environment, clusters=4)
    for t in range(1, 4):
        round = environment.round(t)
        assert round.query is not None
        query = round.query.clone()
        own = replace(round, profiles=round.profiles.clone(), query=query)
        slate = policy.select(own)
        policy.update(own, slate, environment.play(round, slate))
        before = snapshot(policy)
        own.profiles.mul_(-3.0)
        query.fill_(9.0)
        slate.positions.fill_(0)
        assert same_state(before, snapshot(policy))


@pytest.mark.parametrize("order", ["after", "before"])
def test_the_covariance_takes_the_context_shown_and_the_parameters_in_force(order: Any) -> None:
    """Or, where the lines of Algorithm 1 are taken in their order, the context that the rewards have moved."""
    environment = small_environment()
    policy = NeUClust(replace(sized("paper"), tracker=TrackerConfig(order=order)), DIM, K, seed=1)
    explicit = torch.eye(policy.arms.net.size, dtype=torch.float64)
    for t in range(1, 6):
        round = environment.round(t)
        seen = tracker_of(policy).view(round)
        slate = policy.select(round)
        payment = environment.play(round, slate)
        if order == "before":
            moved = copy.deepcopy(tracker_of(policy))
            moved.observe(round, slate, payment)
            seen = moved.view(round)
        ghat = flatten(policy.arms.features(policy.arms.encode(seen, slate.positions)))
        explicit += ghat.T @ ghat
        policy.update(round, slate, payment)
        torch.testing.assert_close(
            policy.state_dict()["arms.confidence.matrix"], explicit, rtol=0, atol=1e-10, msg=f"round {t}"
        )


# --- the authors' scan ----------------------------------------------------------------------------------------


def naive_scan(policy: NeUClust, round: Round, diagonal: torch.Tensor) -> tuple[list[int], torch.Tensor]:
    """nm:960-1001 in plain Python: rank by f, bonus of those K, U grows after every cluster."""
    twin = naive_twin(policy)
    twin.theta, twin.big_theta = policy.arms.net.weights, policy.slates.net.parameters
    xs, ids = twin.contexts(round), round.arm_ids.tolist()
    labels = policy.clusters.partition(round).labels.tolist()
    f = [float(naive.forward(twin.theta, x, 1.0, bias=True)) for x in xs]
    best_value, best = -np.inf, []
    for c in sorted(set(labels)):
        b_c = naive.top(f, ids, [i for i in range(len(xs)) if labels[i] == c], K)
        g = [naive.gradient(twin.theta, xs[i], 1.0, bias=True) for i in b_c]
        bonus = [policy.config.arms.schedule.gamma * float((gi * gi / diagonal).sum().sqrt()) for gi in g]
        f_c = float(twin.slate_value(torch.tensor([f[i] for i in b_c], dtype=torch.float64)))
        value = sum(f[i] + b + f_c for i, b in zip(b_c, bonus, strict=True)) / K
        if value > best_value:
            best_value, best, winners = value, b_c, g
        for gi in winners:
            diagonal = diagonal + gi * gi
    return best, diagonal


def authors_policy(**schedule: Any) -> NeUClust:
    config: NeUClustConfig = policy_config("neuclust", "authors-ml", 4)
    training = replace(config.arms.training, steps=3)
    network = replace(config.arms.network, width=6)
    arms = replace(config.arms, network=network, training=training, schedule=replace(config.arms.schedule, **schedule))
    return NeUClust(replace(config, arms=arms), DIM, K, seed=4)


def test_the_authors_scan_equals_the_plain_loop() -> None:
    environment = small_environment()
    policy = authors_policy(gamma=0.5)
    diagonal = torch.ones(policy.arms.net.size, dtype=torch.float64)
    for t in range(1, 9):
        round = environment.round(t)
        slate = policy.select(round)
        expected, diagonal = naive_scan(policy, round, diagonal)
        assert slate.positions.tolist() == expected
        policy.update(round, slate, environment.play(round, slate))
        found = torch.cat([u.flatten() for u in diagonal_of(policy.arms).diagonal])
        torch.testing.assert_close(found, diagonal, rtol=0, atol=1e-9)


def test_the_authors_scan_depends_on_the_order_of_the_clusters() -> None:
    """The reason why it is an option and not the default."""
    grown = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        environment = small_environment()
        labels = np.array(order)[np.arange(48) % 4].astype(np.int64)
        policy = NeUClust(authors_policy().config, DIM, K, seed=4, clusterer=Given(labels))
        play(policy, environment, range(1, 3))
        grown.append(torch.cat([u.flatten() for u in diagonal_of(policy.arms).diagonal]))
    assert not torch.allclose(grown[0], grown[1])


def test_the_authors_scan_needs_a_diagonal() -> None:
    with pytest.raises(ConfigError, match="diagonal"):
        replace(sized("paper"), covariance="scan")


# --- the online variant ---------------------------------------------------------------------------------------


def online(**tracker: Any) -> NeUClust:
    config = replace(sized("paper"), tracker=TrackerConfig(**tracker))
    return NeUClust(config, DIM, K, seed=1)


def tracker_of(policy: NeUClust) -> ProfileTracker:
    assert policy.tracker is not None
    return policy.tracker


def test_the_online_variant_chooses_from_what_it_tracked() -> None:
    environment = small_environment()
    policy = online(weight=5.0)
    differing = 0
    for t in range(1, 21):
        round = environment.round(t)
        seen = tracker_of(policy).view(round)
        slate = policy.select(round)
        assert torch.equal(slate.means, policy.arms.scores(seen).means[slate.positions])
        differing += not torch.equal(slate.means, policy.arms.scores(round).means[slate.positions])
        policy.update(round, slate, environment.play(round, slate))
    assert differing > 0


def test_the_online_variant_tracks_played_arms_only_and_clusters_anew() -> None:
    environment = small_environment()
    policy = online(liked=40.0, disliked=-20.0, weight=20.0)
    before = policy.clusters.partition(environment.round(1), refit=True).labels
    played = {i for slate in play(policy, environment, range(1, 13)) for i in slate}
    round = environment.round(13)
    seen = tracker_of(policy).view(round)
    moved = set(torch.nonzero((seen.profiles != round.profiles).any(1)).flatten().tolist())
    assert moved <= played
    assert moved
    after = policy.clusters.partition(seen, refit=True).labels
    pairs_before, pairs_after = before[:, None] == before, after[:, None] == after
    assert not torch.equal(pairs_before, pairs_after)


def test_an_online_policy_that_saw_nothing_is_the_offline_one() -> None:
    environment = small_environment()
    offline, tracking = NeUClust(sized("paper"), DIM, K, seed=1), online()
    assert torch.equal(offline.select(environment.round(1)).positions, tracking.select(environment.round(1)).positions)


def test_counts_of_the_problem_reach_the_tracker() -> None:
    environment = small_environment(counts=True)
    policy: Any = build_policy("neuclust-online", environment=environment, clusters=4)
    round = environment.round(1)
    policy.update(round, slate_of(0, 1, 2), feedback([1.0, 1.0, 1.0], 1.0))
    asked = int(round.active[0])
    shown = float(round.profiles[0, asked])
    found = float(policy.tracker.view(round).profiles[0, asked])
    tracker = policy.config.tracker
    assert found == pytest.approx((4 * shown + tracker.weight * tracker.liked) / (4 + tracker.weight))


# --- nothing half done ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("small", ["merge", "error"])
def test_an_update_that_cannot_cluster_leaves_the_state_as_it_was(small: Any) -> None:
    policy = NeUClust(replace(sized("default"), clustering=ClusteringConfig(count=6, small=small)), DIM, K)
    environment = small_environment()
    full = environment.round(1)
    few = replace(full, arm_ids=full.arm_ids[:4], profiles=full.profiles[:4])
    before = snapshot(policy)
    with pytest.raises(NeuclustError, match="cluster"):
        policy.update(few, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert same_state(before, snapshot(policy))


@pytest.mark.parametrize("step", [1e2, 1e6, 1e60])
@pytest.mark.parametrize("name", ["neuclust", "cn-ucb"])
def test_literal_training_that_blows_up_is_counted_and_still_gives_whole_slates(name: str, step: float) -> None:
    """Unguarded training on the sum loss may throw every unit away or end in NaN; a slate is owed all the same."""
    environment = small_environment()
    overrides = {"arms.training.step": str(step)} | ({"clustering.small": "merge"} if name == "neuclust" else {})
    policy: Any = build_policy(name, preset="paper-literal", environment=environment, clusters=4, overrides=overrides)
    for t in range(1, 9):
        round = environment.round(t)
        slate = policy.select(round)
        assert len(set(slate.positions.tolist())) == K
        assert bool(torch.isfinite(slate.means).all() and torch.isfinite(slate.bonuses).all())
        policy.update(round, slate, environment.play(round, slate))
    largest = max(float(w.abs().max()) for w in policy.arms.net.weights)
    assert policy.failed_trainings > 0 or largest > 1e3


# --- volatile arms --------------------------------------------------------------------------------------------


def test_the_whole_catalogue_is_clustered_though_rounds_offer_few_arms() -> None:
    environment = small_environment(arms_per_round=6)
    config = replace(sized("default"), clustering=ClusteringConfig(count=8, small="skip"))  # more than are offered
    catalogue = (environment.arm_ids, environment.profiles)
    policy = NeUClust(config, DIM, K, catalogue=catalogue)
    play(policy, environment, range(1, 11))
    assert policy.clusters.settled is not None
    assert len(policy.clusters.settled.labels) == 48
    with pytest.raises(ConfigError, match="8 clusters for 6 arms"):  # the first round alone could not be
        NeUClust(config, DIM, K).select(environment.round(1))


def test_an_arm_outside_the_catalogue_joins_the_nearest_cluster() -> None:
    environment = small_environment()
    ids, profiles = environment.arm_ids, environment.profiles
    policy = NeUClust(sized("default"), DIM, K, catalogue=(ids[:40], profiles[:40]))
    full = policy.clusters.partition(environment.round(1))
    fitted = policy.clusters.partition(replace(environment.round(1), arm_ids=ids[:40], profiles=profiles[:40]))
    centres = torch.stack([profiles[:40][fitted.labels == c].mean(0) for c in range(len(fitted.names))])
    nearest = torch.cdist(profiles[40:], centres).argmin(1)
    assert torch.equal(full.labels[:40], fitted.labels)
    assert torch.equal(full.labels[40:], nearest)


@pytest.mark.parametrize("scale", [1, 10**9])
def test_an_arm_offered_twice_is_refused_whatever_its_ids_are(scale: int) -> None:
    policy = NeUClust(sized("paper"), DIM, K, seed=1)
    ids = torch.randperm(40) * scale
    ids[7] = ids[3]
    with pytest.raises(DataError, match=f"expected every arm once, got id {int(ids[3])} twice"):
        policy.select(Round(1, ids, torch.rand(40, DIM), None, K))


def test_a_refused_update_leaves_profiles_where_they_were_also_if_they_move_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = small_environment()
    policy = NeUClust(replace(sized("paper"), tracker=TrackerConfig(order="before")), DIM, K, seed=1)
    play(policy, environment, range(1, 4))

    def refuse(*_: Any) -> None:
        raise StateError("no")

    monkeypatch.setattr(policy.arms.confidence, "observe", refuse)
    before, round = snapshot(policy), environment.round(4)
    with pytest.raises(StateError, match="no"):
        policy.update(round, policy.select(round), feedback([1.0, 0.0, 1.0], 1.0))
    assert same_state(before, snapshot(policy))


def test_a_catalogue_is_read_and_checked_as_rounds_are() -> None:
    ids, profiles = list(range(40)), np.random.default_rng(0).random((40, DIM), dtype=np.float32)

    def with_catalogue(ids: Any, profiles: Any) -> NeUClust:
        return NeUClust(sized("paper"), DIM, K, seed=1, catalogue=(ids, profiles))

    make_round: Any = Round
    round = make_round(1, ids, profiles, None, K)
    assert with_catalogue(ids, profiles).select(round).positions.shape == (K,)
    bad = profiles.copy()
    bad[3, 1] = np.nan
    for wrong, said in (
        ((ids, profiles[:, 1:]), "expected profiles of as many columns"),
        ((ids, profiles[1:]), "expected N ids and a matrix"),
        ((ids, bad), "expected finite numbers"),
        (([0, *ids[:-1]], profiles), "expected every arm once"),
    ):
        with pytest.raises(DataError, match=said):
            with_catalogue(*wrong).select(round)
