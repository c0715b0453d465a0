"""Who counts as a rival."""

from __future__ import annotations

import pytest

from neuclust.analysis.groups import Contender
from neuclust.registry import POLICIES


@pytest.mark.parametrize("name", list(POLICIES))
def test_policies_that_know_the_truth_are_references(name: str) -> None:
    assert Contender(name, "default", "", ()).knows_truth == (name in ("oracle", "cluster-oracle", "static"))
