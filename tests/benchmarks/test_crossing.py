"""Rules of crossing are played on invented shops, each set of features once, and kept from run to run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.crossing import RULES, WIDTH, main
from benchmarks.crossing_shops import ITEMS, SHOPS, USERS, make_shop

SHOP = "numbers 5 %"


@pytest.mark.parametrize("name", SHOPS)
def test_every_rule_makes_features_of_every_shop(name: str) -> None:
    shop = make_shop(name, 1)
    assert shop.chances.shape == (USERS, ITEMS)
    assert ((shop.chances > 0) & (shop.chances < 1)).all()
    for title, rule in RULES.items():
        rows = rule.features(shop).rows(np.arange(3), 0)
        assert np.isfinite(rows).all()
        assert rows.shape[1] <= WIDTH or title == "true"


def test_runs_are_kept_and_equal_features_played_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs.jsonl"
    order = ["--shop", SHOP, "--policy", "linucb", "--seeds", "1", "--requests", "4", "--out", str(out)]
    main([*order, "--rule", "none", "--rule", "default"])
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["rule"], row["seed"]) for row in rows] == [("none", 0), ("default", 0)]
    assert all(row["random"] < row["best"] and row["clicks"] <= row["best"] for row in rows)
    main([*order, "--rule", "default", "--rule", "all, half"])  # nothing is alike in this shop: the same features
    again = [json.loads(line) for line in out.read_text().splitlines()]
    assert again == [*rows, {**rows[1], "rule": "all, half"}]
    assert "| linucb" in capsys.readouterr().out
