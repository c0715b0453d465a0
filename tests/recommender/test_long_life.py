"""A long life: requests, clicks that come late, items that come and go; memory and saved size stay what they were."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from neuclust import Features, Number, Recommender
from neuclust.errors import DataError

ITEMS, USERS, STEP = 40, 30, 10.0  # STEP: seconds between requests
WINDOW, LATE = 600.0, 90  # seconds; requests after which the last clicks come, when the decision is closed
STATEMENT = Path("/proc/self/statm")  # Linux
PAGE = 4096
MOST_MORE = 60_000  # bytes: a dozen per request would be more


@dataclass(frozen=True)
class Figures:
    """Bytes the recommender reaches, bytes Python and NumPy hold in all (0: not traced), bytes of the process (0: not
    known), bytes of a save (0: there is none)."""

    reached: int
    held: int
    resident: int
    saved: int


class Life:
    """A shop on a clock of its own. Half of the clicks come soon and leave the decision open, some after its window."""

    def __init__(self, folder: Path) -> None:
        kinds = ("shoes", "shirts", "toys", "books")
        self.items = [{"sku": f"s{at}", "kind": kinds[at % 4], "price": float(at)} for at in range(ITEMS)]
        users = [{"user": f"u{at}", "segment": ("gold", "new")[at % 2]} for at in range(USERS)]
        self.now, self.folder, self.rng = 0.0, folder, np.random.default_rng(7)
        self.waiting: deque[tuple[str, Any]] = deque()
        self.answers: Counter[str] = Counter()
        self.shop = Recommender(
            self.items, "sku", users=users, user_id="user", slate_size=3, policy="linucb", window=WINDOW,
            features=Features(context={"hour": Number(0, 24)}), clock=lambda: self.now,
        )  # fmt: skip

    def request(self, number: int) -> None:
        self.now += STEP
        context = {"hour": number % 24}
        choice = self.shop.recommend(f"u{number % (USERS + 5)}", context=context)  # some are nobody's
        self.waiting.append((choice.id, choice.items[0]))
        if number % 3:
            self.click(choice.id, choice.items[int(self.rng.integers(3))], partial=number % 2 == 0)
        if len(self.waiting) > LATE:
            self.click(*self.waiting.popleft())
        if number % 50 == 0:
            self.shop.remove_items(["s1"])
            self.shop.add_items([self.items[1]])

    def click(self, id: str, item: Any, partial: bool = False) -> None:
        try:
            self.answers[self.shop.feedback(id, {item: 1.0}, partial=partial).status] += 1
        except DataError:  # another value for a decision that a message closed
            self.answers["refused"] += 1

    def figures(self) -> Figures:
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() else 0
        resident = int(STATEMENT.read_text().split()[1]) * PAGE if STATEMENT.exists() else 0
        return Figures(reached(self.shop), held, resident, self._saved())

    def _saved(self) -> int:
        save = getattr(self.shop, "save", None)
        if save is None:
            return 0
        save(self.folder / "shop")
        path = self.folder / "shop"
        files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        return sum(each.stat().st_size for each in files)


def reached(shop: Recommender) -> int:
    """Bytes of all objects, arrays and tensors that hang on a recommender, each once."""
    seen: set[int] = set()
    waiting: list[Any] = [vars(shop)]
    size = 0
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType | MethodType):
            continue
        seen.add(id(each))
        size += sys.getsizeof(each)
        if isinstance(each, torch.Tensor):
            size += each.untyped_storage().nbytes()
        waiting += gc.get_referents(each)
    return size


def lived(folder: Path, requests: int) -> tuple[Life, Figures, Figures]:
    """The figures after a tenth of the requests, and after all of them."""
    life = Life(folder)
    for number in range(1, requests // 10):
        life.request(number)
    early = life.figures()
    for number in range(requests // 10, requests):
        life.request(number)
    return life, early, life.figures()


def check(life: Life, early: Figures, late: Figures, requests: int) -> None:
    """Everything was lived through, and nothing has grown."""
    counts = life.shop.decisions.counts
    assert counts.open <= WINDOW / STEP + 1
    assert counts.closed + counts.open == requests - 1
    assert counts.learned >= counts.closed
    assert {"learned", "open", "late", "refused"} <= life.answers.keys()
    assert early.reached > 100_000
    assert late.reached < early.reached + MOST_MORE
    assert late.held <= 1.02 * early.held  # what the interpreter keeps for itself moves by some per mille
    assert late.saved <= 1.02 * early.saved + 5_000


def test_memory_is_flat_after_the_first_requests(tmp_path: Path) -> None:
    life, early, late = lived(tmp_path, 2_000)
    check(life, early, late, 2_000)


def test_what_grows_is_seen(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.request(1)
    before, shop = reached(life.shop), vars(life.shop)["learner"].policy
    assert before > 15_000_000  # the books of 100,000 closed decisions
    shop.kept = {number: float(number) for number in range(1_000)}
    assert reached(life.shop) > before + MOST_MORE
    shop.kept = torch.zeros(MOST_MORE, dtype=torch.uint8)
    assert reached(life.shop) > before + MOST_MORE


@pytest.mark.soak
def test_memory_is_flat_over_a_hundred_thousand_requests(tmp_path: Path, report_counts: Callable[..., None]) -> None:
    tracemalloc.start()
    try:
        life, early, late = lived(tmp_path, 100_000)
    finally:
        tracemalloc.stop()
    check(life, early, late, 100_000)
    assert late.resident < 1.05 * early.resident  # pages the allocator keeps
    report_counts(
        "recommender, 100,000 requests with late clicks",
        KB_held_after_10000=early.held // 1000, KB_held_at_the_end=late.held // 1000,
        MB_resident_after_10000=early.resident // 10**6, MB_resident_at_the_end=late.resident // 10**6,
        KB_saved_after_10000=early.saved // 1000, KB_saved_at_the_end=late.saved // 1000,
    )  # fmt: skip
