"""A shop whose process is killed while it saves: the name loads as the former shop or as the new one, never as neither.

The processes are real, and so is SIGKILL.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from small_shop import Clock, Played, play, small_shop, told

from neuclust.persistence import MANIFEST, TENSORS
from neuclust.randomness import stream
from neuclust.recommender.recommender import Recommender

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")

STEPS = ("open", "write", "fsync", "close", "replace", "unlink", "mkdir")  # of the system calls that a save consists of
REQUEST: Any = {"context": {"hour": 5.0, "device": "x"}}


class Shops:
    """The former state in a folder, the new one in memory, and what each answers and learns next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shop = small_shop("linucb", exploration=0.3)
        self.played = play(self.shop, range(1, 10))
        self.shop.save(folder / "former")
        self.former = self.next_of(folder / "former")
        self.played = play(self.shop, range(10, 16), self.played.choices)
        self.shop.save(folder / "new")
        self.new = self.next_of(folder / "new")
        assert self.former != self.new

    def next_of(self, folder: Path) -> list[Any]:
        """What a shop loaded from a folder does next, to the last bit."""
        loaded = Recommender.load(folder, clock=Clock(1_150.0))
        played: Played = play(loaded, range(16, 19), self.played.choices)
        return [loaded.ids.last, *played.seen, told(loaded.recommend("u3", **REQUEST))]

    def check(self, folder: Path, counts: Counter[str]) -> None:
        """What the folder holds after a kill, and that the next save clears everything away."""
        found = self.next_of(folder)
        assert found in (self.former, self.new)
        counts["new" if found == self.new else "former"] += 1
        counts["left scratch"] += not set(os.listdir(folder)) <= {MANIFEST, TENSORS}
        self.shop.save(folder)
        assert self.next_of(folder) == self.new
        assert set(os.listdir(folder)) == {MANIFEST, TENSORS}


def in_a_child(work: Callable[[], None]) -> int:
    """The child's process id; it ends with the work, or is killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def die_at(step: int, half: bool, work: Callable[[], None]) -> None:
    """Work whose `step`-th system call kills the process before it is made, or whose `step`-th write does half way."""
    calls = itertools.count()

    def deadly(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if next(calls) == step:
                if half:
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return call

    for name in ("write",) if half else STEPS:
        setattr(os, name, deadly(getattr(os, name)))
    work()


def kill_at_every_step(shops: Shops, every: int = 1) -> Counter[str]:
    counts: Counter[str] = Counter()
    for half in (False, True):
        for step in itertools.count(0, 1 if half else every):
            folder = shops.folder / "work"
            shutil.copytree(shops.folder / "former", folder)
            child = in_a_child(partial(die_at, step, half, partial(shops.shop.save, folder)))
            _, status = os.waitpid(child, 0)
            killed = os.WIFSIGNALED(status)
            if killed:
                counts["kills"] += 1
                shops.check(folder, counts)
            shutil.rmtree(folder)
            if not killed:
                assert status == 0
                break
    return counts


def kill_at_random(shops: Shops, kills: int) -> Counter[str]:
    """Children that save again and again, killed at any moment, also between the steps."""
    counts: Counter[str] = Counter()
    for i in range(kills):
        folder = shops.folder / "work"
        shutil.copytree(shops.folder / "former", folder)
        child = in_a_child(partial(save_for_ever, shops.shop, folder))
        time.sleep(float(stream(4, "kills", i).uniform(0.0, 0.04)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        shops.check(folder, counts)
        shutil.rmtree(folder)
    return counts


def save_for_ever(shop: Recommender, folder: Path) -> None:
    while True:
        shop.save(folder)


def test_a_shop_killed_while_it_saves_is_the_former_or_the_new_one(tmp_path: Path) -> None:
    counts = kill_at_every_step(Shops(tmp_path), every=3)
    assert counts["former"] > 3
    assert counts["new"] > 0
    assert counts["former"] + counts["new"] == counts["kills"]


@pytest.mark.soak
def test_two_hundred_kills(tmp_path: Path, report_counts: Callable[..., None]) -> None:
    shops = Shops(tmp_path)
    counts = kill_at_every_step(shops)
    counts += kill_at_random(shops, 200 - counts["kills"])
    assert counts["former"] + counts["new"] == 200
    assert min(counts["former"], counts["new"]) > 5
    del counts["kills"]
    report_counts("saves of a shop killed", tried=200, neither=0, **counts)
