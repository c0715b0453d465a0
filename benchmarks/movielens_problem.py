"""The MovieLens problem the benchmarks play: the real prepared file where it is at hand, else the twin."""

from __future__ import annotations

import os
from pathlib import Path

from neuclust.data.dataset import ProfileDataset, load_dataset
from neuclust.data.twin import movielens_twin


def movielens_file() -> Path | None:
    """`movielens-25m.npz` in the folder NEUCLUST_SHARED_DATA names, else in ../shared/data; None where absent."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("NEUCLUST_SHARED_DATA", beside)) / "movielens-25m.npz"
    return path if path.is_file() else None


def movielens_dataset() -> ProfileDataset:
    """The real problem, or the twin."""
    path = movielens_file()
    return movielens_twin() if path is None else load_dataset(path)
