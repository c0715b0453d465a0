"""Searches of a reproduction: the paper's grids, and an equal budget for every policy; on seeds no report plays."""

from collections.abc import Sequence
from dataclasses import replace

from neuclust.configuration import entries
from neuclust.experiment.reproduction.phases import PAPER_POLICIES, Layout, our_policies, paper_preset
from neuclust.experiment.tuning.space import PAPER_GRIDS, Space, parse_space
from neuclust.experiment.tuning.tune import TuningPlan
from neuclust.registry import POLICIES, knows_truth, policy_config

DEVELOPMENT_SEEDS = (1000, 1001, 1002)
# By the last part of a setting's name, so that a policy added tomorrow is tuned like the others: how much it
# explores, how much it shrinks, how fast its net learns where no step is found by itself, how many clusters it has.
TUNABLE = {
    "gamma": "0.01:10:log",
    "alpha": "0.01:10:log",
    "spread": "0.01:10:log",
    "exploration": "0.1:100:log",
    "epsilon": "0.1:100:log",
    "bonus": "0.01:10:log",
    "v1": "0.01:10:log",
    "smoothness": "0.25:4:log",
    "ridge": "0.1:10:log",
    "prior_variance": "0.01:10:log",
    "rate": "3e-4:3e-2:log",
    "count": "5:40",
}
SKIPPED = ("slate.", "slate_net.", "arms.training.")
UNUSED = {"epsilon-greedy": ("arms.",)}  # its configuration has widths, which it never computes


def space_of(policy: str, most_clusters: int = 40) -> Space:
    """What is tuned of a policy's default preset; empty where there is nothing to choose."""
    skipped = (*SKIPPED, *UNUSED.get(policy, ()))
    params = [
        f"{key}={_range(key, most_clusters)}"
        for key, value in entries(policy_config(policy)).items()
        if key.rsplit(".", 1)[-1] in TUNABLE and not key.startswith(skipped) and _is_number(value)
    ]
    return parse_space(policy, "default", params) if params and not knows_truth(policy) else ()


def _range(key: str, most_clusters: int) -> str:
    last = key.rsplit(".", 1)[-1]
    return f"2:{min(40, most_clusters)}" if last == "count" and most_clusters < 40 else TUNABLE[last]


def _is_number(value: object) -> bool:
    """A number, or None where the policy chooses one itself."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def tuned_plans(layout: Layout, trials: int, policies: Sequence[str] = ()) -> list[TuningPlan]:
    """The same number of trials, seeds and rounds for every policy that has something to tune."""
    spaces = {name: space_of(name, layout.environment.n_arms) for name in our_policies(layout, policies)}
    return [_plan(layout, name, "default", space, trials) for name, space in spaces.items() if space]


def grid_plans(layout: Layout, trials: int) -> list[TuningPlan]:
    """The paper's grids for the paper's policies that have one; a grid larger than `trials` is sampled."""
    names = [name for name in PAPER_POLICIES if name in PAPER_GRIDS and name in POLICIES]
    kept = [name for name in names if name not in layout.scale.left_out]
    return [_plan(layout, name, paper_preset(name, layout.study), PAPER_GRIDS[name], trials) for name in kept]


def _plan(layout: Layout, policy: str, preset: str, space: Space, trials: int) -> TuningPlan:
    problem = replace(layout.problem, rounds=layout.rounds)
    return TuningPlan(problem, policy, preset, space, trials, DEVELOPMENT_SEEDS, ())
