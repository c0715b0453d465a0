"""Feedback files of obp 0.5.7 and its estimates on ours: writes tests/logs/obp_feedback.json.

    python -m tools.obp_feedback --out tests/logs/obp_feedback.json

Needs obp on the import path, which declares Python up to 3.10 and runs on 3.11 beside numpy 2: in a virtual environment
of its own, `pip install --no-deps --ignore-requires-python obp==0.5.7 seaborn`. The test reads the file; the long one
(`make soak`) makes such an environment and compares the file with what obp says there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuclust.core import Feedback, Round
from neuclust.logs import LogWriter, RunStart, open_log, write_obp
from neuclust.policies.exploring import Exploring
from neuclust.randomness import stream
from neuclust.registry import build_policy
from neuclust.slates.propensities import Exploration

COMMAND = "python -m tools.obp_feedback --out tests/logs/obp_feedback.json"
ACTIONS, ROUNDS, SLOTS, DIM = 5, 12, 3, 2
KEPT = ("n_rounds", "n_unique_action", "n_actions", "slate_id", "context", "action_context", "action", "position",
        "reward", "pscore_cascade", "pscore")  # fmt: skip


def our_log(path: Path, slots: int = SLOTS, rounds: int = 60) -> None:
    """A log of ours that obp has room for: every arm is eligible in every round, described by the same numbers."""
    rng = stream(5, "obp feedback")
    ids, profiles = torch.tensor([3, 7, 11, 40, 41]), torch.from_numpy(rng.normal(size=(ACTIONS, DIM)))
    policy = Exploring(build_policy("linucb", dim=DIM, slate_size=slots), Exploration(share=0.6, pool=ACTIONS), seed=2)
    with LogWriter(path) as log:
        log.start(RunStart("ours", "linucb", slots, DIM, learning=False, reward="sum"))
        for t in range(1, rounds + 1):
            round = Round(t, ids, profiles, torch.from_numpy(rng.normal(size=DIM)), slots)
            slate = policy.select(round)
            clicks = torch.from_numpy((rng.random(slots) < 0.4).astype(np.float64))
            log.decided(round, slate, Feedback(clicks, clicks.sum()))


def obp_feedback() -> dict[str, dict[str, Any]]:
    """What obp's own simulators give, as lists: slates drawn by a learned-looking policy, and plain feedback."""
    dataset: Any = importlib.import_module("obp.dataset")
    common = {"dim_context": DIM, "reward_type": "binary", "random_state": 12}
    slates = dataset.SyntheticSlateBanditDataset(
        n_unique_action=ACTIONS, len_list=SLOTS, reward_structure="standard_additive",
        behavior_policy_function=dataset.linear_behavior_policy_logit,
        base_reward_function=dataset.logistic_reward_function, **common,
    )  # fmt: skip
    plain = dataset.SyntheticBanditDataset(n_actions=ACTIONS, **common)
    made = {
        "slates": slates.obtain_batch_bandit_feedback(n_rounds=ROUNDS),
        "plain": plain.obtain_batch_bandit_feedback(n_rounds=ROUNDS),
    }
    return {kind: _listed(feedback) for kind, feedback in made.items()}


def _listed(feedback: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: feedback[name] for name in KEPT if feedback.get(name) is not None}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in kept.items()}


def obp_estimates(feedback: Mapping[str, Any]) -> dict[str, float]:
    """What slates or arms drawn evenly would have earned, by obp's estimators under our names."""
    ope: Any = importlib.import_module("obp.ope")
    table = {name: np.asarray(value) for name, value in feedback.items()}
    if "slate_id" not in table:
        n = int(table["n_actions"])
        evenly = np.full((int(table["n_rounds"]), n, 1), 1 / n)
        given = {**table, "n_rounds": int(table["n_rounds"]), "n_actions": n, "position": table.get("position")}
        judged = ope.OffPolicyEvaluation(given, ope_estimators=[ope.InverseProbabilityWeighting()])
        return {"ips": float(judged.estimate_policy_values(evenly)["ipw"])}
    n, slots = int(table["n_unique_action"]), int(table["position"].max()) + 1
    chances = np.cumprod([1 / (n - slot) for slot in range(slots)])
    common = {name: table[name] for name in ("slate_id", "reward", "position")}
    whole = np.full(len(table["reward"]), chances[-1])
    ips = ope.SlateStandardIPS(len_list=slots).estimate_policy_value(
        **common, pscore=table["pscore"], evaluation_policy_pscore=whole
    )
    rips = ope.SlateRewardInteractionIPS(len_list=slots).estimate_policy_value(
        **common, pscore_cascade=table["pscore_cascade"], evaluation_policy_pscore_cascade=chances[table["position"]]
    )
    return {"ips": float(ips), "rips": float(rips)}


def record() -> dict[str, Any]:
    """Feedback of obp, and its estimates on that and on the files that `write_obp` makes of our log."""
    warnings.simplefilter("ignore")
    made = obp_feedback()
    found: dict[str, Any] = {"command": COMMAND, "obp": str(importlib.import_module("obp").__version__)}
    found["feedback"] = made
    estimates = {kind: obp_estimates(feedback) for kind, feedback in made.items()}
    with tempfile.TemporaryDirectory() as folder:
        for kind, slots in (("ours", SLOTS), ("ours, one slot", 1)):
            log, out = Path(folder) / f"{slots}.jsonl", Path(folder) / f"{slots}.npz"
            our_log(log, slots)
            write_obp(open_log(log), out)
            with np.load(out, allow_pickle=False) as file:
                estimates[kind] = obp_estimates(dict(file.items()))
    return found | {"estimates": estimates}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args(arguments).out
    out.write_text(json.dumps(record()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
