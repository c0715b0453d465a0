"""What a reproduction plays: the paper's protocol, ours, and searches that nobody's report sees."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuclust.errors import ConfigError
from neuclust.experiment.problem import Problem
from neuclust.experiment.reproduction.phases import (
    AUTHORS,
    CLUSTERS,
    OURS,
    PAPER,
    READINGS,
    STUDIES,
    Layout,
    all_tasks,
    full_scale,
    open_study,
    paper_preset,
    phases,
    quick_scale,
)
from neuclust.experiment.reproduction.tuning import DEVELOPMENT_SEEDS, grid_plans, space_of, tuned_plans
from neuclust.registry import POLICIES

MOVIELENS, YELP = STUDIES["movielens"], STUDIES["yelp"]


@pytest.fixture(scope="module")
def layout() -> Layout:
    return open_study(MOVIELENS, Problem(env="movielens-twin"), full_scale(MOVIELENS))


def test_the_papers_protocol_is_the_papers(layout: Layout) -> None:
    paper = phases(layout)[0]
    assert (layout.rounds, layout.problem.slate_size) == (1000, 5)
    assert {task.seed for task in paper.tasks} == set(range(10))
    titles = [contestant.title for contestant in paper.contestants]
    assert {"neuclust:paper", "neuclust-online:paper", "cn-ucb:paper", "linucb-disjoint", "cc-mab"} <= set(titles)
    neuclust = next(contestant for contestant in paper.contestants if contestant.policy == "neuclust")
    assert neuclust.clustering is not None
    assert neuclust.clustering.count == 22
    assert (full_scale(YELP).runs, paper_preset("neuclust", YELP), paper_preset("cn-ucb", YELP)) == (
        5,
        "paper-yelp",
        "paper-yelp",
    )


def test_readings_are_both_presets_and_the_start_they_turn_on_with_and_without_the_slate_net(layout: Layout) -> None:
    readings = phases(layout)[1]
    assert {task.seed for task in readings.tasks} == set(range(20))
    players = [(one.policy, one.preset, dict(one.settings)) for one in readings.contestants]
    for preset, start in (("paper", {}), ("paper-raw", {}), ("paper", {"arms.network.init": "symmetric"})):
        assert ("neuclust", preset, start) in players
        assert ("cn-ucb", preset, start) in players
        assert ("neuclust", preset, {**start, "slate.weight": "0"}) in players
    assert ("linucb-disjoint", "default", {"alpha": "0.1"}) in players
    yelp = open_study(YELP, Problem(env="movielens-twin"), full_scale(YELP))
    assert phases(yelp)[1].tasks == ()


def test_our_protocol_is_everybody_with_twenty_seeds(layout: Layout) -> None:
    _, _, ours, _ = phases(layout)
    assert [contestant.title for contestant in ours.contestants] == list(POLICIES)
    assert {task.seed for task in ours.tasks} == set(range(20))
    chosen = phases(layout, policies=("uniform", "linucb"))[2]
    assert [contestant.title for contestant in chosen.contestants] == ["uniform", "linucb"]
    with pytest.raises(ConfigError, match="no policy 'lynucb'"):
        phases(layout, policies=("lynucb",))


def test_runs_that_phases_share_are_played_once(layout: Layout) -> None:
    found = phases(layout, authors=True)
    assert [phase.name for phase in found] == [PAPER, READINGS, OURS, CLUSTERS, AUTHORS]
    tasks = all_tasks(found)
    assert len({task.key for task in tasks}) == len(tasks) < sum(len(phase.tasks) for phase in found)
    twenty_two = [
        task for task in found[3].tasks if task.contestant.clusters == 22 and task.contestant.preset == "paper"
    ]
    paper = {task.key for task in found[0].tasks}
    assert all(task.key in paper for task in twenty_two)
    assert {contestant.preset for contestant in found[4].contestants} == {"authors-ml"}


def test_a_quick_look_is_small_and_says_what_it_changes() -> None:
    for study in (MOVIELENS, YELP):
        quick = quick_scale(study)
        assert quick.quick
        assert study.clusters in quick.cluster_numbers
        assert (quick.rounds or 1000) * (quick.runs + quick.our_seeds) <= 500
    assert quick_scale(YELP).settings["clustering.n_init"] == "1"


def test_settings_of_a_quick_look_reach_those_who_cluster_alone(layout: Layout) -> None:
    changed = replace(layout, scale=replace(layout.scale, settings={"clustering.n_init": "1"}))
    assert changed.contestant("neuclust").settings == {"clustering.n_init": "1"}
    assert changed.contestant("linucb").settings == {}


def test_every_learner_is_tuned_with_the_same_budget_on_seeds_that_are_not_reported(layout: Layout) -> None:
    plans = tuned_plans(layout, 7)
    assert {(plan.trials, plan.tune_seeds, plan.problem.rounds) for plan in plans} == {(7, DEVELOPMENT_SEEDS, 1000)}
    assert not set(DEVELOPMENT_SEEDS) & {task.seed for task in all_tasks(phases(layout))}
    tuned = {plan.policy for plan in plans}
    assert not tuned & {"uniform", "static", "oracle", "cluster-oracle"}
    assert tuned >= {"neuclust", "cn-ucb", "linucb", "linucb-disjoint", "cc-mab", "cucb", "epsilon-greedy"}


def test_spaces_hold_numbers_alone() -> None:
    assert [entry.key for entry in space_of("linucb")] == ["alpha", "ridge"]
    assert "clustering.count" in [entry.key for entry in space_of("neuclust")]
    assert space_of("uniform") == ()


def test_grids_are_the_papers_on_its_preset(layout: Layout) -> None:
    assert [(plan.policy, plan.preset) for plan in grid_plans(layout, 5)] == [
        ("neuclust", "paper"),
        ("neuclust-online", "paper"),
        ("cn-ucb", "paper"),
        ("linucb-disjoint", "default"),
    ]


def test_more_clusters_than_arms_are_refused() -> None:
    scale = replace(full_scale(MOVIELENS), cluster_numbers=(5, 20_000))
    with pytest.raises(ConfigError, match="at most as many clusters as the 10168 arms, got 20000"):
        open_study(MOVIELENS, Problem(env="movielens-twin"), scale)
