"""Rings of keys: the last ones are found, older ones are not, and saving keeps both."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuclust.errors import StateError
from neuclust.recommender.feedback.rings import Key, KeyRing, MessageRing, id_text, item_hash, key_of

# few first halves, so that many keys share a bucket
KEYS = st.tuples(st.sampled_from([0, 1, -1, 8, 16, -(2**63), 2**63 - 1]), st.integers(-3, 3))


@given(st.lists(KEYS, unique=True, max_size=40), st.integers(1, 9), st.integers(0, 40))
def test_the_last_keys_are_found(keys: list[Key], capacity: int, saved_after: int) -> None:
    ring, kept = KeyRing(capacity), deque[Key](maxlen=capacity)
    for number, key in enumerate(keys):
        if number == saved_after:
            ring = KeyRing.from_state(*ring.to_state(), capacity, "keys")
        place = ring.add(key)
        kept.append(key)
        assert ring.find(key) == place == number % capacity
        assert len(ring) == len(kept)
        for each in keys:
            assert (ring.find(each) >= 0) == (each in kept)


def test_messages_keep_their_bodies() -> None:
    ring = MessageRing(2)
    for number in range(3):
        ring.add((number, 0), (number, 9))
    assert [ring.find((number, 0)) for number in range(3)] == [None, (1, 9), (2, 9)]
    with pytest.raises(StateError, match="expected int64"):
        MessageRing.from_state(3, {"keys": np.zeros((2, 2)), "bodies": np.zeros((2, 2))}, 2)


def test_words_and_numbers_have_other_keys() -> None:
    assert id_text("1") != id_text(1)
    assert item_hash("1") != item_hash(1)
    assert key_of("a") != key_of("b")
    assert key_of("\ud800") == key_of("\ud800")
    assert item_hash(-(10**900)) != item_hash(10**900)
    assert -(2**63) <= min(key_of("a")) <= max(key_of("a")) < 2**63
