"""Top K overall and in every cluster against a plain Python sort, with many ties."""

from __future__ import annotations

from collections.abc import Callable

import naive_reference as naive
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_problems import PATHS, path
from torch import Tensor

from neuclust.errors import StateError
from neuclust.kernels.ranking import cluster_table, first_largest, greedy_slate, sort_positions, top, top_of_clusters
from neuclust.randomness import stream


def tied_scores(seed: int, n: int) -> tuple[list[float], list[int]]:
    rng = stream(seed, "test scores")
    scores = rng.choice([-1.5, -0.0, 0.0, 0.25, 1.0], size=n)
    return scores.tolist(), rng.permutation(n * 3)[:n].tolist()


def tensors(scores: list[float], ids: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(scores, dtype=torch.float64), torch.tensor(ids)


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_sort_positions_equals_a_plain_sort(seed: int, n: int) -> None:
    scores, ids = tied_scores(seed, n)
    assert sort_positions(*tensors(scores, ids)).tolist() == naive.top(scores, ids, range(n), n)


@pytest.mark.parametrize("engine", PATHS)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), data=st.data())
def test_top_equals_a_plain_sort(engine: str, seed: int, n: int, data: st.DataObject) -> None:
    scores, ids = tied_scores(seed, n)
    k = data.draw(st.integers(1, n))
    with path(engine):
        assert top(*tensors(scores, ids), k).tolist() == naive.top(scores, ids, range(n), k)


@pytest.mark.parametrize("engine", PATHS)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.integers(0, 20))
def test_top_of_clusters_equals_a_plain_sort_in_each(engine: str, seed: int, clusters: int, k: int, spare: int) -> None:
    n = clusters * k + spare
    scores, ids = tied_scores(seed, n)
    rng = stream(seed, "test labels")
    labels = torch.from_numpy(rng.permutation([*list(range(clusters)) * k, *rng.integers(clusters, size=spare)]))
    labels = labels.to(torch.int64)
    with path(engine):
        found = top_of_clusters(*tensors(scores, ids), labels, cluster_table(labels, clusters), k)
    for c in range(clusters):
        members = [i for i in range(n) if int(labels[i]) == c]
        assert found[c].tolist() == naive.top(scores, ids, members, k)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 5))
def test_cluster_table_lists_every_member_once(seed: int, n: int, clusters: int) -> None:
    labels = torch.from_numpy(stream(seed, "test labels").integers(clusters, size=n))
    table = cluster_table(labels, clusters)
    assert len(table) == clusters
    for c in range(clusters):
        listed = [i for i in table[c].tolist() if i >= 0]
        assert listed == [i for i in range(n) if int(labels[i]) == c]


@pytest.mark.parametrize("engine", PATHS)
def test_the_top_none_of_some_is_empty(engine: str) -> None:
    with path(engine):
        assert top(torch.rand(5, dtype=torch.float64), torch.arange(5), 0).tolist() == []


def test_first_largest_takes_the_first_of_equals() -> None:
    assert first_largest(torch.tensor([1.0, 3.0, 3.0, 2.0])) == 1


@pytest.mark.parametrize("name", PATHS)
def test_scores_that_are_no_numbers_are_refused_and_infinite_ones_ranked(name: str) -> None:
    scores, rank = torch.tensor([0.0, torch.nan, 1.0, torch.inf]).double(), torch.arange(4)
    labels = torch.zeros(4, dtype=torch.int64)
    table = cluster_table(labels, 1)
    with path(name):
        asked: tuple[Callable[[Tensor], object], ...] = (
            lambda x: top(x, rank, 2),
            lambda x: top_of_clusters(x, rank, labels, table, 2)[0],
            lambda x: greedy_slate(lambda slates: slates.sum(1), x, rank, 2),
            lambda x: torch.tensor([first_largest(x), 2]),
        )
        for ask in asked:
            with pytest.raises(StateError, match="begin anew"):
                ask(scores)
        infinite = torch.tensor([0.0, -torch.inf, 1.0, torch.inf]).double()
        assert (
            top(infinite, rank, 2).tolist() == top_of_clusters(infinite, rank, labels, table, 2)[0].tolist() == [3, 2]
        )
