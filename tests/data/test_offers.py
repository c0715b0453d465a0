"""Recorded rounds on disk: what was saved is loaded, and what does not fit is refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.npz import write_npz
from neuclust.data.offers import ARRAYS, Offers
from neuclust.errors import DataError

STARTS, ARMS, REWARDS = [0, 2, 5, 6], [0, 3, 1, 2, 3, 0], [1, 0, 0, 1, 1, 0]


def offers(starts: Any = STARTS, arms: Any = ARMS, rewards: Any = REWARDS) -> Offers:
    return Offers(np.array(starts, np.int64), np.array(arms, np.int64), np.array(rewards, np.float32))


def dataset(recorded: Offers | None) -> ProfileDataset:
    return ProfileDataset(
        name="toy",
        arms=np.arange(8, dtype=np.float32).reshape(4, 2),
        rounds=np.ones((3, 2), dtype=np.float32),
        arm_ids=np.arange(4),
        round_ids=np.arange(3),
        features=("a", "b"),
        offers=recorded,
    )


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    dataset(offers()).save(tmp_path / "replay.npz")
    loaded = load_dataset(tmp_path / "replay.npz").offers
    assert loaded is not None
    assert [loaded.starts.tolist(), loaded.arms.tolist(), loaded.rewards.tolist()] == [STARTS, ARMS, REWARDS]
    assert [part.tolist() for part in loaded.of(1)] == [[1, 2, 3], [0, 1, 1]]
    assert loaded.sizes.tolist() == [2, 3, 1]
    load_dataset(tmp_path / "replay.npz").save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "replay.npz").read_bytes()


def test_a_file_without_offers_has_none(tmp_path: Path) -> None:
    dataset(None).save(tmp_path / "plain.npz")
    assert load_dataset(tmp_path / "plain.npz").offers is None


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"starts": [0, 2, 6]}, "offer_starts: expected 4 numbers"),
        ({"starts": []}, "offer_starts: expected 4 numbers"),
        ({"starts": [1, 2, 5, 6]}, "from 0 to 6, got 4 from 1 to 6"),
        ({"starts": [0, 2, 5, 5]}, "from 0 to 6, got 4 from 0 to 5"),
        ({"starts": [0, 2, 2, 6]}, r"offer_starts\[2\]: expected rounds that offer at least 1 arm, got 0"),
        ({"starts": [0, 5, 2, 6]}, r"offer_starts\[2\]: .* got -3"),
        ({"arms": [0, 4, 1, 2, 3, 0]}, "offer_arms: expected rows from 0 to 3, got 0 to 4"),
        ({"arms": [-1, 3, 1, 2, 3, 0]}, "offer_arms: expected rows from 0 to 3, got -1 to 3"),
        ({"arms": [0, 3, 1, 2, 2, 0]}, r"offer_arms\[4\]: .* each once and ascending, got 2 after 2"),
        ({"arms": [3, 0, 1, 2, 3, 0]}, r"offer_arms\[1\]: .* got 0 after 3"),
        ({"rewards": [1, 0, 0, 1, 1]}, "offer_rewards: expected one reward per offered arm, 6, got 5"),
        ({"rewards": [1, 0, 0, 0.5, 1, 0]}, r"offer_rewards\[3\]: expected 0 or 1, got 0.5"),
        ({"rewards": [1, 0, 0, 1, np.nan, 0]}, r"offer_rewards\[4\]: expected 0 or 1, got nan"),
    ],
)
def test_offers_that_do_not_fit_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        dataset(offers(**wrong))


def damaged(folder: Path, change: dict[str, Any]) -> Path:
    """A file whose offers were replaced by hand; None leaves an array out."""
    dataset(offers()).save(folder / "whole.npz")
    with np.load(folder / "whole.npz") as whole:
        arrays = {**whole, **change}
    write_npz(folder / "damaged.npz", {name: value for name, value in arrays.items() if value is not None})
    return folder / "damaged.npz"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"offer_rewards": None}, f"expected {', '.join(ARRAYS)} together or none of them, got only offer_starts"),
        ({"offer_starts": np.array([0.0, 2, 5, 6])}, "offer_starts: expected a vector of whole numbers"),
        ({"offer_arms": np.array(ARMS)[:, None]}, "offer_arms: expected a vector of whole numbers"),
        ({"offer_rewards": np.array(list("110010"))}, "offer_rewards: expected a vector of numbers"),
    ],
)
def test_files_that_are_off_are_refused_by_name(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError, match=rf"damaged.npz: {complaint}"):
        load_dataset(damaged(tmp_path, change))
