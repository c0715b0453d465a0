"""Invented records as a fixture."""

from __future__ import annotations

import pytest
from invented_records import MakeRecord, invented


@pytest.fixture
def record() -> MakeRecord:
    return invented
