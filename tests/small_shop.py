"""A small shop for tests: 24 items, 10 users, a clock that is moved by hand, and a script of requests and clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from neuclust.randomness import stream
from neuclust.recommender.choices import Choice
from neuclust.recommender.recommender import Recommender

ITEMS = [
    {"sku": f"s{i}", "price": 3.0 + 7 * i % 19, "category": "abc"[i % 3], "tags": ["new", "sale"][: i % 3], "on": i < 9}
    for i in range(24)
]  # fmt: skip
USERS = [{"user": f"u{i}", "age": 20 + 5 * i, "segment": ["gold", "tin"][i % 2]} for i in range(10)]


class Clock:
    """Seconds that stand still."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def small_shop(policy: str = "linucb", **options: Any) -> Recommender:
    given: dict[str, Any] = {"users": USERS, "user_id": "user", "slate_size": 3, "remember": 40, "window": 100.0}
    return Recommender(ITEMS, "sku", **{**given, "clock": Clock(), "policy": policy, **options})


@dataclass
class Played:
    """What a script did: the choices, and every answer that can be compared between two shops."""

    choices: list[Choice] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)


def told(choice: Choice) -> tuple[Any, ...]:
    """All of a choice but its id."""
    return (
        choice.items, choice.means, choice.bonuses, choice.propensities, choice.explored, choice.short, choice.reason,
        choice.ignored, choice.version, choice.time,
    )  # fmt: skip


def play(shop: Recommender, steps: Sequence[int], earlier: Sequence[Choice] = ()) -> Played:
    """Requests of every kind, and feedback for them and for `earlier` choices: whole, partial, late and none."""
    clock: Any = shop.clock
    played = Played(list(earlier))
    for step in steps:
        rng = stream(5, "shop", step)
        clock.now = 1_000.0 + 10 * step
        details: dict[str, Any] = {"context": {"hour": float(rng.integers(24)), "device": "xyz"[step % 3]}}
        if step % 4 == 1:
            details["request_id"] = f"r{step // 8}-{step % 8}"
        if step % 5 == 2:
            details |= {"eligible": [f"s{i}" for i in range(step % 24)], "at_most": {"category": 1}}
        elif step % 7 == 3:
            details |= {"exclude": ["s1", "s2"], "required": ["s5"], "k": 2}
        choice = shop.recommend(f"u{step % 13}", **details)
        played.choices.append(choice)
        played.seen.append(told(choice))
        if step % 5 == 0 and choice.items:
            played.seen.append(shop.feedback(choice.id, {choice.items[0]: 1}).status)
        late = played.choices[-1 - min(step % 4, len(played.choices) - 1)]
        if late.items and _is_open(shop, late):
            clicks = {item: 1 for item in late.items if rng.random() < 0.5}
            said: dict[str, Any] = {"partial": step % 4 < 2, "feedback_id": f"f{step}"}
            played.seen.append(shop.feedback(late.id, clicks, **said).status)
        if step % 11 == 10:
            played.seen.append(shop.expire(50.0))
    return played


def _is_open(shop: Recommender, choice: Choice) -> bool:
    """Whether a decision is open, so that other values are not refused."""
    return choice.id in {decision.id for decision in shop.decisions.open_decisions()}
