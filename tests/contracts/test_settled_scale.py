"""An automatic ρ is fixed by the first round that tells it, and a refused update changes nothing, in every policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_problems import feedback, same_state, slate_of, small_environment, snapshot

from neuclust.errors import ConfigError, StateError
from neuclust.registry import POLICIES, build_policy


def automatic(name: str) -> Any:
    """The policy with an automatic ρ; None where it has none."""
    small = {"clustering.small": "merge"} if "clust" in name else {}
    try:
        return build_policy(
            name, environment=small_environment(), seed=1, clusters=4, overrides={"encoder.rho": "none", **small}
        )
    except ConfigError:
        return None


SCALED = [name for name in POLICIES if automatic(name) is not None]


def test_the_policies_with_a_scale_are_found() -> None:
    assert {"linucb", "lin-ts", "linucb-disjoint", "cc-mab", "acc-ucb", "cn-ucb", "neural-linear"} <= set(SCALED)


def settled(policy: Any) -> float:
    (rho,) = {float(value) for key, value in policy.state_dict().items() if key.split(".")[-1] == "rho"}
    return rho


UNTOLD = [(name, "query of zeros") for name in SCALED]
UNTOLD += [(name, "profiles of zeros") for name in SCALED if "clust" not in name]  # arms all alike form no clusters


@pytest.mark.parametrize(("name", "untold"), UNTOLD)
def test_a_round_that_tells_nothing_settles_no_scale(name: str, untold: str) -> None:
    environment, policy = small_environment(), automatic(name)
    first, second = environment.round(1), environment.round(2)
    blank: dict[str, Any] = {
        "query of zeros": {"query": torch.zeros(6)},
        "profiles of zeros": {"profiles": torch.zeros(48, 6)},
    }[untold]
    policy.update(replace(first, **blank), slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert settled(policy) != settled(policy)  # NaN: not settled
    policy.update(second, slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert second.query is not None
    bound = float(second.profiles.norm(dim=1).max() * second.query.abs().max())
    assert settled(policy) == pytest.approx(bound, rel=0.2 if "online" in name else 1e-12)  # online profiles move
    policy.update(environment.round(3), slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert settled(policy) == pytest.approx(bound, rel=0.2 if "online" in name else 1e-12)


@pytest.mark.parametrize("name", SCALED)
def test_an_unsettled_scale_is_saved_and_loaded(name: str) -> None:
    policy, again = automatic(name), automatic(name)
    policy.update(small_environment().round(1), slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    fresh = snapshot(again)
    again.load_state_dict(policy.state_dict())
    assert settled(again) == settled(policy) > 0
    again.load_state_dict(fresh)
    assert same_state(snapshot(again), fresh)


def spoil(policy: Any) -> None:
    """Make the covariance one that no sum of squares could be."""
    if hasattr(policy, "arms"):
        covariance = policy.arms.confidence._covariance
        if hasattr(covariance, "_matrix"):
            covariance._matrix[0, 0] = -1e9
        else:
            covariance._ridge = -1e9
    else:
        policy.matrix[0, 0] = -1e9


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("linucb", {"refresh": "1"}),
        ("lin-ts", {}),
        ("cn-ucb", {"confidence.refresh": "1"}),
        ("cn-ucb", {"confidence.solver": "dual"}),
        ("cn-ts", {"confidence.refresh": "1"}),
        ("neuclust", {"confidence.refresh": "1"}),
    ],
)
def test_an_update_that_is_refused_leaves_the_state_as_it_was(name: str, settings: dict[str, str]) -> None:
    environment = small_environment()
    policy: Any = build_policy(
        name, environment=environment, seed=1, clusters=4, overrides={"encoder.rho": "none", **settings}
    )
    spoil(policy)
    before = snapshot(policy)
    with pytest.raises(StateError, match="scale the features"):
        policy.update(environment.round(1), slate_of(0, 1, 2), feedback([1.0, 0.0, 1.0], 1.0))
    assert same_state(before, snapshot(policy))
