"""What may change while learned state stays: users, open decisions, exploration, waiting times; saves as bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_shop import Clock, play, small_shop, told

from neuclust.errors import ConfigError, DataError, SaveError
from neuclust.policies.exploring import Exploring
from neuclust.recommender.log.history import read_history
from neuclust.recommender.recommender import Recommender


def test_a_removed_user_is_unknown_and_may_come_back(tmp_path: Path) -> None:
    """Fails when values of a removed user are still used, other users lose theirs, or the id cannot come back."""
    shop = small_shop(log=tmp_path / "log.jsonl")
    ids = shop.stock.users.ids()
    kept = {id: shop.stock.users.raw(id) for id in ids if id != "u3"}
    assert shop.remove_users(["u3"]) == ["u3"]
    assert shop.stock.users.raw("u3") is None
    assert {id: shop.stock.users.raw(id) for id in shop.stock.users.ids()} == kept
    with pytest.raises(DataError, match="nobody was removed"):
        shop.remove_users(["u1", "u3"])
    assert "u1" in shop.stock.users.ids()
    shop.add_users([{"user": "u3", "age": 1, "segment": "tin"}])
    assert shop.stock.users.raw("u3") == {"age": 1, "segment": "tin"}
    assert '"users-removed"' in (tmp_path / "log.jsonl").read_text()
    read_history(tmp_path / "log.jsonl")


def test_forgotten_decisions_are_not_learned(tmp_path: Path) -> None:
    """Fails when a dropped decision is learned at the end of its window, or feedback for it is taken."""
    shop = small_shop(log=tmp_path / "log.jsonl")
    first, second = shop.recommend("u1"), shop.recommend("u2")
    with pytest.raises(DataError, match="open decisions"):
        shop.forget([first.id, "unknown"])
    assert shop.decisions.counts.open == 2
    assert shop.forget([first.id]) == [first.id]
    with pytest.raises(DataError, match="unknown decision"):
        shop.feedback(first.id, {})
    clock: Any = shop.clock
    clock.now += 1_000
    shop.expire()
    assert shop.decisions.counts.learned == 1
    assert shop.feedback(second.id, {}).status == "duplicate"
    events = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [event["ids"] for event in events if event["event"] == "forgotten"] == [[first.id]]


def test_exploration_changes_and_learned_state_stays() -> None:
    """Fails when a change of exploration alters what was learned, or does not reach the slates."""
    shop = small_shop()
    play(shop, range(20))
    assert shop.learner is not None
    policy, before = shop.learner.policy, shop.to_bytes()
    shop.change(exploration=0.5)
    assert shop.learner.policy is policy
    assert isinstance(shop.learner.player, Exploring)
    shop.change(exploration=None)
    assert shop.to_bytes() == before
    change: Any = shop.change
    with pytest.raises(ConfigError, match="may change"):
        change(policy="popular")


def test_open_decisions_wait_by_the_new_window() -> None:
    """Fails when a longer window learns at the old end, or a shorter one waits for it."""
    for window, seconds, learned in ((200.0, 150.0, 0), (50.0, 60.0, 1)):
        shop = small_shop()
        shop.recommend("u1")
        shop.change(window=window)
        clock: Any = shop.clock
        clock.now += seconds
        shop.expire(older_than=float("inf"))
        assert shop.decisions.counts.closed == learned
    with pytest.raises(ConfigError, match="window"):
        small_shop().change(window=-1.0)


@pytest.mark.parametrize("policy", ["linucb", "popular"])
def test_a_recommender_goes_on_from_its_bytes(policy: str) -> None:
    """Fails when a recommender that was written to bytes and read back answers or learns otherwise."""
    shop = small_shop(policy)
    earlier = play(shop, range(25)).choices
    saved = shop.to_bytes()
    assert saved == shop.to_bytes()
    other = Recommender.from_bytes(saved, clock=Clock(shop.clock()))
    assert other.to_bytes() == saved
    left, right = play(shop, range(25, 40), earlier), play(other, range(25, 40), earlier)
    assert left.seen == right.seen
    assert [told(choice) for choice in left.choices] == [told(choice) for choice in right.choices]


def test_damaged_bytes_are_refused() -> None:
    """Fails when changed, cut or foreign bytes are read as a recommender, or another error than SaveError comes."""
    saved = small_shop().to_bytes()
    for at in range(0, len(saved), len(saved) // 40):
        with pytest.raises(SaveError):
            Recommender.from_bytes(saved[:at] + bytes([saved[at] ^ 1]) + saved[at + 1 :], clock=Clock())
        with pytest.raises(SaveError):
            Recommender.from_bytes(saved[:at], clock=Clock())
