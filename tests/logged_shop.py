"""A small shop that writes a log, and by hand what the log should hold of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from neuclust import Category, Choice, Exploration, Features, Number, Recommender
from neuclust.core import Round
from neuclust.randomness import stream
from neuclust.recommender.learner import Learner

ITEMS: list[dict[str, Any]] = [{"sku": f"s{at}", "price": float(at % 7), "kind": "abc"[at % 3]} for at in range(24)]
ITEMS += [{"sku": "bare", "price": None, "kind": None}]  # so that missing values have columns from the start
USERS: list[dict[str, Any]] = [{"user": f"u{at}", "segment": "xy"[at % 2]} for at in range(8)]
USERS += [{"user": "u8", "segment": None}]
FIXED = Features(
    items={"price": Number(0, 10), "kind": Category(["a", "b", "c"])}, users={"segment": Category(["x", "y"])},
    context={"device": Category(["phone", "desk"])}, cross=[("segment", "kind"), ("device", "price")],
)  # fmt: skip  # encodes the same whatever was seen
WINDOW = 100.0
GONE = 40  # decisions before an item is taken out and the shop saved and loaded


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Day:
    """What was asked, answered and said, in order."""

    path: Path
    shop: Recommender
    choices: list[Choice] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)  # that the policy was given
    clicks: dict[str, dict[Any, float]] = field(default_factory=dict)  # by decision, also late ones
    seen: dict[str, int] = field(default_factory=dict)  # leading slots that were seen
    open: set[str] = field(default_factory=set)  # still open at the end
    runs: list[str] = field(default_factory=list)


def logged_shop(path: Path, **options: Any) -> Recommender:
    chosen: dict[str, Any] = {
        "policy": "linucb", "slate_size": 3, "exploration": Exploration(share=0.3, pool=6, anywhere=0.3),
        "features": FIXED, "reward_range": (0, 5), "window": WINDOW, "clock": Clock(), **options,
    }  # fmt: skip
    return Recommender(ITEMS, "sku", users=USERS, user_id="user", log=path, **chosen)


def play_day(path: Path, monkeypatch: pytest.MonkeyPatch, decisions: int = 100) -> Day:
    """Requests with and without rules, clicks at once, in parts, late and never; items that come and go."""
    day = Day(path, logged_shop(path))
    day.runs.append(day.shop.ids.token)
    select = Learner.select

    def recorded(self: Learner, rounds: Any) -> Any:
        day.rounds.extend(rounds)
        return select(self, rounds)

    monkeypatch.setattr(Learner, "select", recorded)
    for at in range(decisions):
        _change(day, at)
        _visit(day, at, decisions)
    return day


def _change(day: Day, at: int) -> None:
    clock: Any = day.shop.clock
    clock.now = 10.0 * at
    if at == 10:
        day.shop.add_items([{"sku": "new", "price": 2.5, "kind": "a"}, {"sku": "plain"}])
    elif at == 20:
        day.shop.add_items([{"sku": "s3", "price": 9.0, "kind": "b"}])
    elif at == 30:
        day.shop.remove_items(["s7"])
    elif at == GONE:
        day.shop.remove_items(["s5", "new"])
        day.shop.save(day.path.with_name("shop"))
        day.shop.log.close()
        day.shop = Recommender.load(day.path.with_name("shop"), clock=clock, log=day.path)
        day.runs.append(day.shop.ids.token)
    elif at == 60:
        day.shop.add_items([{"sku": "new", "price": 4.0, "kind": "c"}])
        day.shop.add_users([{"user": "u1", "segment": "x"}, {"user": "u99", "segment": "y"}])


def _visit(day: Day, at: int, decisions: int) -> None:
    draws = stream(3, "logged shop", at)
    asked: dict[str, Any] = {"user": f"u{int(draws.integers(10))}", "context": {"device": ["phone", "desk"][at % 2]}}
    if at % 3 == 1:
        asked["at_most"] = {"kind": 1}
    if at % 4 == 1:
        asked |= {"eligible": ["s9", "s8", "s7", "s6", "unknown", "s4"], "exclude": ["s8"]}
    if at % 5 == 2:
        asked |= {"required": ["s2"], "eligible": None}
    if at % 7 == 3:
        asked |= {"k": 2, "request_id": f"r{at}"}
    if at % 10 == 9:
        reader = day.shop.reader()
        choice = Choice.from_json(reader.recommend(**asked).to_json())
        day.shop.accept(choice)
    else:
        choice = day.shop.recommend(**asked)
    day.choices.append(choice)
    _answer(day, at, decisions)


def _answer(day: Day, at: int, decisions: int) -> None:
    choice, shop = day.choices[-1], day.shop
    said = day.clicks.setdefault(choice.id, {})
    if at >= decisions - WINDOW / 10 and (at % 6 not in (0, 2) or at >= decisions - 5):
        day.open.add(choice.id)  # no message closes it, and no window ends
    if at >= decisions - 5:
        if at == decisions - 1:
            assert shop.feedback(choice.id, {choice.items[0]: 4}, partial=True).status == "open"
        return
    if at % 6 == 0:
        said[choice.items[0]] = 2.0
        assert shop.feedback(choice.id, {choice.items[0]: 2}).status == "learned"
    elif at % 6 == 1:
        for value in (1.0, 3.0, 2.0):
            assert shop.feedback(choice.id, {choice.items[-1]: value}, partial=True).status == "open"
        said[choice.items[-1]] = 3.0
    elif at % 6 == 2:
        day.seen[choice.id] = 1
        assert shop.feedback(choice.id, {}, shown=1).status == "learned"
    if at >= 15 and at % 6 == 3:  # its window ended 5 decisions ago
        old = day.choices[at - 12]
        if at % 12 == 3 and old.id.startswith(shop.ids.token):
            assert shop.feedback(old.id, {old.items[0]: 5}).status == "late"
            day.clicks[old.id][old.items[0]] = 5.0
