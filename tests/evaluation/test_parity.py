"""Our estimates beside those of obp 0.5.7 and vw-estimators 0.2.2 on one log, kept by tools/parity_figures.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuclust.evaluation.estimators.catalogue import ESTIMATORS
from neuclust.evaluation.estimators.rows import Rows
from neuclust.evaluation.estimators.weighting import pseudo_inverse_product

RECORD: dict[str, Any] = json.loads((Path(__file__).parent / "parity.json").read_text(encoding="utf-8"))
NAMES = ("ips", "iips", "rips", "snips", "siips", "srips", "cascade-dr", "pi, product")


def logged_rows() -> Rows:
    log = {name: np.array(values) for name, values in RECORD["log"].items()}
    given = {name: log[name] for name in ("rewards", "logging", "target", "logging_marginals", "target_marginals")}
    q_hat = np.take_along_axis(log["q_hat"], log["actions"][..., None], 2)[..., 0]
    v_hat = (log["target_shares"] * log["q_hat"]).sum(2)
    return Rows(**given, slate_rewards=log["rewards"].sum(1), q_hat=q_hat, v_hat=v_hat)


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_those_of_other_packages(name: str) -> None:
    """Fails when an estimator is not the one that other packages have under its name."""
    estimator = pseudo_inverse_product if name == "pi, product" else ESTIMATORS[name].estimate
    assert estimator(logged_rows()).estimate == pytest.approx(RECORD["estimates"][name], abs=1e-9, rel=1e-9)


def test_the_file_says_how_it_was_made() -> None:
    """Fails when an estimate has no counterpart here, or the file does not name its command and packages."""
    assert set(RECORD["estimates"]) == set(NAMES)
    assert RECORD["command"].startswith("python -m tools.parity_figures")
    assert RECORD["packages"] == {"obp": "0.5.7", "vw-estimators": "0.2.2"}
