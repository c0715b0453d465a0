"""Randomised trees: what they predict, when they are renewed, and what a state holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_problems import random_round
from torch import Tensor

from neuclust.errors import StateError
from neuclust.policies.auto.features import BlocksConfig, FeatureBlocks
from neuclust.policies.auto.learners import forest_regression
from neuclust.policies.auto.learners.catalogue import LEARNERS, LearnersConfig, fitting_learners
from neuclust.policies.auto.learners.forest_regression import MOST_AT_ONCE, TREES, ForestRegression, Tree
from neuclust.policies.auto.plays import Held, Plays, RewardScale
from neuclust.policies.auto.reward_range import Rescaling
from neuclust.randomness import stream

D, K = 6, 5


def blocks(dim: int = D, masked: bool = False) -> FeatureBlocks:
    query = (torch.arange(dim) % 3 != 1).double() if masked else None
    found = FeatureBlocks.of(BlocksConfig(), random_round(1, 50, dim, K, query=query))
    assert found is not None
    return found


BLOCKS = blocks()


def forest(seed: int = 0, purpose: str = "test") -> ForestRegression:
    return ForestRegression(BLOCKS, seed, purpose)


def contexts(t: int, n: int = K, dim: int = D) -> Tensor:
    return random_round(t, n, dim, K, seed=5).profiles


def boxed(z: Tensor) -> Tensor:
    """Chances that jump: large in one box of two features."""
    return 0.05 + 0.9 * ((z[:, 0] > 0.5) & (z[:, 3] < 0.6)).double()


def taught(learners: list[ForestRegression], plays: Plays, slates: range) -> Plays:
    for t in slates:
        z = contexts(t)
        rewards = (torch.from_numpy(stream(1, "test boxed", t).random(K)) < boxed(z)).double()
        played = plays.add(z, plays.blocks.read(z), rewards)
        for learner in learners:
            learner.learn(played, plays)
    return plays


def held(slates: int) -> Plays:
    return taught([], Plays(BLOCKS, K), range(1, slates + 1))


def test_before_any_data_the_level_is_predicted() -> None:
    assert forest().means(BLOCKS.read(contexts(9))).tolist() == [RewardScale().level] * K


def test_a_tree_predicts_the_mean_reward_of_each_leaf() -> None:
    data = held(30).held()
    tree = Tree.grown(data, seed=3)
    x, ends = data.features.rows.numpy(), []
    for row in x:
        node = 0
        while tree.nodes[node, 0] >= 0:
            below = (
                np.float32(row[tree.nodes[node, 0]]) <= tree.numbers[node, 0]
            )  # trees are fitted in single precision
            node = int(tree.nodes[node, 1]) + (not below)
        ends.append(node)
    for leaf in set(ends):
        inside = torch.tensor([end == leaf for end in ends])
        mean = float(data.sums[inside].sum() / data.counts[inside].sum())
        assert tree.numbers[leaf, 1] == pytest.approx(mean)
        assert float(data.counts[inside].sum()) * data.scale.unit >= forest_regression.LEAF * (1 - 1e-9)
    assert len(set(ends)) > 3


def test_contexts_count_by_their_exposures() -> None:
    plays = Plays(BLOCKS, K)
    z = contexts(1)
    for rewards in (torch.ones(K), torch.zeros(K), torch.zeros(K)):
        plays.add(z, BLOCKS.read(z), rewards.double(), torch.full((K,), 0.5).double())
    data = plays.held()
    tree = Tree.grown(data, seed=0)
    assert tree.numbers[0, 1] == pytest.approx(2 / 3)  # one reward per 1.5 looks


def test_trees_are_few_at_once_and_all_renewed_while_the_data_grow() -> None:
    learner, plays, counts = forest(), Plays(BLOCKS, K), []
    for t in range(1, 401):
        taught([learner], plays, range(t, t + 1))
        counts.append(learner._grown)
    steps = np.diff([0, *counts])
    assert steps.max() <= MOST_AT_ONCE
    assert counts[-1] - counts[319] == pytest.approx(TREES * np.log(400 / 320) / 0.25, abs=2)
    assert (steps[-100:] == 0).sum() > 30  # most updates late in life grow none
    assert len(learner._trees) == TREES


def test_a_full_memory_is_renewed_at_a_constant_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    plays, learner = Plays(BLOCKS, K), forest()
    plays.capacity = 100  # 20 slates
    taught([learner], plays, range(1, 101))
    before = learner._grown
    monkeypatch.setattr(forest_regression, "TREES", 5)
    taught([learner], plays, range(101, 201))
    assert learner._grown - before == pytest.approx(100, abs=1)


def test_no_tree_has_more_leaves_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = held(200).held()
    leaves = int((Tree.grown(data, seed=1).nodes[:, 0] < 0).sum())
    monkeypatch.setattr(forest_regression, "MOST_LEAVES", 8)
    assert 1 < int((Tree.grown(data, seed=1).nodes[:, 0] < 0).sum()) <= 8 < leaves


def test_what_is_read_while_trees_grow_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when another thread that selects during an update leaves the trees of before behind."""
    learner, z, grown = forest(), BLOCKS.read(contexts(99, 40)), Tree.grown
    plays = taught([learner], Plays(BLOCKS, K), range(1, 30))

    def watched(held: Held, seed: int) -> Tree:
        learner.means(z)
        return grown(held, seed)

    monkeypatch.setattr(Tree, "grown", watched)
    taught([learner], plays, range(30, 40))
    again = forest()
    again.load_state_dict(learner.state_dict())
    assert torch.equal(learner.means(z), again.means(z))


def test_jumps_are_found() -> None:
    learner = forest()
    taught([learner], Plays(BLOCKS, K), range(1, 151))
    fresh = contexts(10_000, 400)
    best = learner.means(BLOCKS.read(fresh)).argsort()[-20:]
    assert float(boxed(fresh)[best].mean()) > 0.85
    scores, means = learner.scores(BLOCKS.read(fresh), 1)
    assert torch.equal(scores, means)


def test_plain_products_predict_as_compiled_loops_do(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, features = forest(), BLOCKS.read(contexts(77, 50))
    taught([learner], Plays(BLOCKS, K), range(1, 31))
    compiled = learner.means(features)
    monkeypatch.setattr(forest_regression, "serves", lambda *_: False)
    torch.testing.assert_close(learner.means(features), compiled, rtol=1e-12, atol=1e-12)


def test_of_very_many_contexts_all_trees_are_asked_about_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, z = forest(), contexts(77, 300)
    z[1] = z[0]
    taught([learner], Plays(BLOCKS, K), range(1, 101))
    whole = learner.means(BLOCKS.read(z))
    monkeypatch.setattr(forest_regression, "MANY", 200)
    monkeypatch.setattr(forest_regression, "ASKED", 50)
    found = learner.means(BLOCKS.read(z))
    assert found.argsort(descending=True)[:10].tolist() == whole.argsort(descending=True)[:10].tolist()
    assert 50 <= int((found == whole).sum()) < 300
    assert found[0] == found[1]


def test_other_ranges_of_rewards_are_followed() -> None:
    learner, features = forest(), BLOCKS.read(contexts(77, 50))
    plays = taught([learner], Plays(BLOCKS, K), range(1, 31))
    before = learner.means(features)
    learner.rescale(Rescaling(0.5, 0.25), plays.scale)
    torch.testing.assert_close(learner.means(features), 0.5 * before + 0.25)


def test_masked_contexts_are_read_with_their_mean() -> None:
    masked = blocks(masked=True)
    learner = LEARNERS["forest"](LearnersConfig(), masked, 0, "test")
    assert isinstance(learner, ForestRegression)
    assert learner.columns == D + 1


def test_there_is_no_forest_on_many_features() -> None:
    assert "forest" in fitting_learners("linear,forest", blocks(dim=64))
    assert "forest" not in fitting_learners("linear,forest", blocks(dim=65))


@pytest.mark.parametrize("slates", [0, 1, 7, 40])
def test_a_state_brings_it_back_and_both_continue_alike(slates: int) -> None:
    learner, again = forest(), forest()
    plays = taught([learner], Plays(BLOCKS, K), range(1, slates + 1))
    state = {name: tensor.clone() for name, tensor in learner.state_dict().items()}
    again.load_state_dict(state)
    taught([learner, again], plays, range(slates + 1, slates + 9))
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in learner.state_dict().items())
    features = BLOCKS.read(contexts(99, 20))
    assert torch.equal(learner.means(features), again.means(features))
    assert not torch.equal(learner.means(features), forest(seed=1).means(features))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("grown", torch.tensor(3), "3 trees"),
        ("settled", torch.tensor([9.0, 0.5]).double(), "trees that are due"),
        ("sizes", torch.tensor([1, 2]), "trees"),
        ("nodes", torch.zeros(1, 2, dtype=torch.int32), "as many nodes"),
        ("numbers", torch.full((1, 2), torch.nan), "finite"),
    ],
)
def test_states_that_cannot_have_been_saved_are_refused(name: str, value: Tensor, says: str) -> None:
    learner = forest()
    taught([learner], Plays(BLOCKS, K), range(1, 9))
    with pytest.raises(StateError, match=says):
        forest().load_state_dict(learner.state_dict() | {name: value})


@pytest.mark.parametrize(
    ("column", "value", "says"), [(0, D, "features of trees"), (1, 0, "children"), (1, 10**6, "children")]
)
def test_trees_that_lead_to_no_leaf_are_refused(column: int, value: int, says: str) -> None:
    learner = forest()
    taught([learner], Plays(BLOCKS, K), range(1, 31))
    state = learner.state_dict()
    state["nodes"][int((state["nodes"][:, 0] >= 0).nonzero()[0]), column] = value
    with pytest.raises(StateError, match=says):
        forest().load_state_dict(state)
