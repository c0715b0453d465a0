"""Sizes, rates, depth and numbers that are refused, and hosts that are not answered."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running_service import running

from neuclust.serve.api.guards import Rates, is_loopback
from neuclust.serve.api.problems import Refused
from neuclust.serve.api.strict import DEEPEST, parsed


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": 1, "a": 2}', "{", "[1,]"])
def test_json_that_others_would_read_is_refused(text: str) -> None:
    """Fails when NaN, infinities or a name twice are read."""
    with pytest.raises(Refused, match="body: expected JSON"):
        parsed(text.encode())


def test_depth_has_a_limit() -> None:
    """Fails when deep nesting is read, or brackets inside of texts count."""
    deep = "[" * DEEPEST + "]" * DEEPEST
    assert parsed(deep.encode()) is not None
    with pytest.raises(Refused, match="inside each other"):
        parsed(f"[{deep}]".encode())
    assert parsed(json.dumps({"a": "[{" * 200 + '\\"', "b": ["]"] * 40}).encode())["b"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@settings(max_examples=200, deadline=None)
@given(_JSON)
def test_other_json_is_read_as_it_is(value: object) -> None:
    """Fails when strict reading changes a document."""
    assert parsed(json.dumps(value).encode()) == value


def test_rates_refill() -> None:
    """Fails when more passes than the rate allows, or a client that waits stays locked out."""
    rates = Rates(10.0)
    assert sum(rates.wait("a", 0.0) == 0 for _ in range(50)) == 20
    assert rates.wait("a", 0.0) == pytest.approx(0.1)
    assert rates.wait("b", 0.0) == 0
    assert sum(rates.wait("a", 1.0) == 0 for _ in range(50)) == 10


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("localhost", True),
                           ("0.0.0.0", False), ("10.0.0.1", False), ("::", False), ("example.org", False)]
)  # fmt: skip
def test_loopback_is_told_from_other_addresses(host: str, expected: bool) -> None:
    """Fails when an address that others can reach counts as loopback."""
    assert is_loopback(host) is expected


def test_quick_clients_are_turned_away(tmp_path: Path) -> None:
    """Fails when the rate of a client has no limit, or it is not told when to come again."""
    with running(tmp_path, "--rate", "3") as service:
        time.sleep(2)  # what was asked while it started has counted too
        answers = [service.client.get("/health/live") for _ in range(30)]
        limited = [each for each in answers if each.status_code == 429]
        assert 1 <= len(limited) <= 29
        assert int(limited[0].headers["retry-after"]) >= 1
        assert {each.status_code for each in answers} == {200, 429}
