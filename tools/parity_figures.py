"""Estimates of obp 0.5.7 and vw-estimators 0.2.2 on a small invented log: writes tests/evaluation/parity.json.

    python -m tools.parity_figures --out tests/evaluation/parity.json

Needs both on the import path. obp as a whole stops at Python 3.10; of it only `obp/ope/estimators_slate.py` and
`obp/utils.py` are loaded, which run on 3.11 by themselves, in a folder obp/ with empty `__init__.py` files and beside
numpy, pandas, scikit-learn and torch. The test reads the file and compares our estimators with it.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ROWS, SLOTS, ARMS = 14, 3, 4
DIGITS = 4  # of the inputs
COMMAND = "python -m tools.parity_figures --out tests/evaluation/parity.json"


def invented_log(seed: int = 17) -> dict[str, Any]:
    """Chances of slots given those before, marginal ones, rewards, a model of every arm and the target's chances of it.

    Slots here may repeat an arm: neither package looks at that.
    """
    rng = np.random.default_rng(seed)
    shape = (ROWS, SLOTS)
    actions = rng.integers(0, ARMS, shape)
    shares = rng.dirichlet(np.ones(ARMS), shape).round(DIGITS)
    shares[..., -1] = (1 - shares[..., :-1].sum(-1)).round(DIGITS)
    target = np.take_along_axis(shares, actions[..., None], 2)[..., 0]
    return {
        "actions": actions,
        "rewards": (rng.random(shape) < 0.4).astype(np.float64) * rng.integers(1, 4, shape),
        "logging": rng.uniform(0.1, 1, shape).round(DIGITS),
        "target": target,
        "logging_marginals": rng.uniform(0.1, 1, shape).round(DIGITS),
        "target_marginals": (rng.uniform(0, 1, shape) * (rng.random(shape) < 0.7)).round(DIGITS),
        "q_hat": rng.uniform(-1, 2, (*shape, ARMS)).round(DIGITS),  # of every arm in the slot
        "target_shares": shares,
    }


def obp_estimates(log: dict[str, Any]) -> dict[str, float]:
    """Of obp's slate estimators by our names."""
    slate = importlib.import_module("obp.ope.estimators_slate")
    common = {
        "slate_id": np.repeat(np.arange(ROWS), SLOTS),
        "position": np.tile(np.arange(SLOTS), ROWS),
        "reward": log["rewards"].ravel(),
    }
    prefixes = {name: log[name].cumprod(1) for name in ("logging", "target")}
    wholes = {name: np.repeat(prefix[:, -1], SLOTS) for name, prefix in prefixes.items()}
    by_slate = {"pscore": wholes["logging"], "evaluation_policy_pscore": wholes["target"]}
    by_slot = {
        "pscore_item_position": log["logging_marginals"].ravel(),
        "evaluation_policy_pscore_item_position": log["target_marginals"].ravel(),
    }
    by_prefix = {
        "pscore_cascade": prefixes["logging"].ravel(),
        "evaluation_policy_pscore_cascade": prefixes["target"].ravel(),
    }
    modelled = {
        "action": log["actions"].ravel(),
        "q_hat": log["q_hat"].ravel(),
        "evaluation_policy_action_dist": log["target_shares"].ravel(),
    }
    estimators = {
        "ips": (slate.SlateStandardIPS, by_slate),
        "iips": (slate.SlateIndependentIPS, by_slot),
        "rips": (slate.SlateRewardInteractionIPS, by_prefix),
        "snips": (slate.SelfNormalizedSlateStandardIPS, by_slate),
        "siips": (slate.SelfNormalizedSlateIndependentIPS, by_slot),
        "srips": (slate.SelfNormalizedSlateRewardInteractionIPS, by_prefix),
    }
    cascade = slate.SlateCascadeDoublyRobust(SLOTS, ARMS).estimate_policy_value(**common, **by_prefix, **modelled)
    plain = {name: float(made(SLOTS).estimate_policy_value(**common, **of)) for name, (made, of) in estimators.items()}
    return {**plain, "cascade-dr": float(cascade)}


def vw_estimate(log: dict[str, Any]) -> float:
    """Of vw-estimators' pseudo-inverse, which takes the slots as drawn independently."""
    estimator = importlib.import_module("estimators.slates.pseudo_inverse").Estimator()
    for logging, target, rewards in zip(log["logging"], log["target"], log["rewards"], strict=True):
        estimator.add_example(logging.tolist(), float(rewards.sum()), target.tolist())
    return float(estimator.get())


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the log and the estimates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    log = invented_log()
    record = {
        "command": COMMAND,
        "packages": {"obp": "0.5.7", "vw-estimators": "0.2.2"},
        "log": {name: values.tolist() for name, values in log.items()},
        "estimates": {**obp_estimates(log), "pi, product": vw_estimate(log)},
    }
    options.out.write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
