"""Recommenders that released versions saved (tools/saved_recommender.py) load, choose as recorded and learn on."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from neuclust import Recommender

SAVES = sorted(path.with_suffix("") for path in Path(__file__).parent.glob("saved_*/*.json"))
NAMES = [f"{path.parent.name}-{path.name}" for path in SAVES]


def replayed(recommender: Recommender, requests: list[dict[str, Any]]) -> None:
    """Every request gets the recorded slate; numbers may differ in their last digits from machine to machine."""
    for asked in requests:
        choice = recommender.recommend(asked["user"], eligible=asked["eligible"], context=asked["context"])
        assert choice.items == asked["items"]
        assert choice.means == pytest.approx(asked["means"], rel=1e-6, abs=1e-9)
        assert choice.bonuses == pytest.approx(asked["bonuses"], rel=1e-6, abs=1e-9)
        recommender.feedback(choice.id, dict(zip(choice.items, map(float, asked["clicks"]), strict=True)))


def test_there_are_saves_of_a_linear_policy_and_of_auto() -> None:
    assert {"saved_0_2_0-linucb", "saved_0_2_0-auto-linear"} <= set(NAMES)
    assert sum(file.stat().st_size for file in SAVES[0].parent.rglob("*") if file.is_file()) < 200_000


@pytest.mark.parametrize("saved", SAVES, ids=NAMES)
def test_a_save_of_an_earlier_version_goes_on(saved: Path, tmp_path: Path) -> None:
    """Fails when a save of a released version is refused, warns, or is read as another state than it was."""
    shutil.copytree(saved, tmp_path / "shop")
    record = json.loads(saved.with_suffix(".json").read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recommender = Recommender.load(tmp_path / "shop")
    assert recommender.settings.policy.name == record["policy"]
    replayed(recommender, record["requests"])
    before = recommender.recommend("u1").means
    for _ in range(20):  # what is clicked every time is believed to be worth more
        choice = recommender.recommend("u1", eligible=record["requests"][0]["eligible"])
        recommender.feedback(choice.id, dict.fromkeys(choice.items, 1.0))
    assert sum(recommender.recommend("u1").means) > sum(before)
    recommender.save(tmp_path / "again")
    assert Recommender.load(tmp_path / "again").recommend("u2").items == recommender.recommend("u2").items
