"""A save that is killed: whatever the instant, the name loads as the earlier save or as the new one, whole, and the
next save leaves nothing else behind. The processes are real, and so is SIGKILL."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from damage import write_unchecked
from torch import Tensor

from neuclust.errors import StateError
from neuclust.persistence import MANIFEST, NEXT_TENSORS, TENSORS, read_state, write_state
from neuclust.randomness import stream

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")

STEPS = ("open", "write", "fsync", "close", "replace", "unlink", "mkdir")  # of the system calls that a save consists of
Start = Callable[[Path], None]


def content(number: int, size: int = 2_000) -> tuple[dict[str, Any], dict[str, Tensor]]:
    return {"number": number}, {"a": torch.full((size,), float(number)), "b": torch.tensor(number)}


def number_of(folder: Path) -> int:
    """Which content the folder holds, all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        manifest, state = read_state(folder)
    number = manifest["number"]
    assert bool((state["a"] == number).all())
    assert int(state["b"]) == number
    return int(number)


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


def die_at(step: int, half: bool) -> None:
    """From here on the `step`-th system call kills the process before it is made, or the `step`-th write half way."""
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


def nothing(_: Path) -> None:
    """No earlier save."""


def checked(folder: Path) -> None:
    write_state(folder, *content(1))


def unchecked(folder: Path) -> None:
    write_unchecked(folder, *content(1))


def killed_before(folder: Path) -> None:
    """A save that was killed between its two renames: its tensors still have their scratch name."""
    write_state(folder, *content(1))
    os.rename(folder / TENSORS, folder / NEXT_TENSORS)
    write_unchecked(folder / "other", *content(0))
    os.rename(folder / "other" / TENSORS, folder / TENSORS)
    shutil.rmtree(folder / "other")


def _killed(folder: Path, step: int, number: int, half: bool = False) -> None:
    die_at(step, half)
    write_state(folder, *content(number))


def check_after(folder: Path, start: Start, counts: Counter[str]) -> None:
    """What the name holds after a kill, and that the next save clears everything away."""
    if not folder.exists() or not (folder / MANIFEST).exists():
        assert start is nothing
        with pytest.raises(StateError, match="found none"):
            read_state(folder)
        counts["nothing yet"] += 1
    else:
        counts[{1: "earlier", 2: "new"}[number_of(folder)]] += 1
    counts["left scratch"] += folder.exists() and not set(os.listdir(folder)) <= {MANIFEST, TENSORS}
    write_state(folder, *content(3))
    assert number_of(folder) == 3
    assert set(os.listdir(folder)) == {MANIFEST, TENSORS}
    assert os.listdir(folder.parent) == [folder.name]


def kill_at_every_step(folder: Path, start: Start) -> Counter[str]:
    counts: Counter[str] = Counter()
    for half in (False, True):
        for step in itertools.count():
            save = folder / f"{half}-{step}" / "save"
            save.parent.mkdir(parents=True)
            start(save)
            child = in_a_child(partial(_killed, save, step, 2, half))
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                assert status == 0
                break
            counts["kills"] += 1
            check_after(save, start, counts)
    return counts


@pytest.mark.parametrize(
    "start",
    [
        checked,
        unchecked,
        pytest.param(nothing, marks=pytest.mark.soak),
        pytest.param(killed_before, marks=pytest.mark.soak),
    ],
)
def test_a_kill_at_any_step_leaves_a_whole_save(
    start: Start, tmp_path: Path, report_counts: Callable[..., None]
) -> None:
    counts = kill_at_every_step(tmp_path, start)
    report_counts(f"saves killed at every step ({start.__name__.replace('_', ' ')})", **counts, damaged=0)
    assert counts["kills"] > 20
    assert counts["new"] > 5
    assert counts["left scratch"] > 5
    assert counts["earlier" if start is not nothing else "nothing yet"] > 10


def save_for_ever(folder: Path, first: int, size: int) -> None:
    for i in itertools.count(first):
        write_state(folder, *content(1 + i % 2, size))


def kill_at_random(folder: Path, kills: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for i in range(kills):
        rng, save = stream(3, "kills", i), folder / f"{i}" / "save"
        save.parent.mkdir(parents=True)
        (checked, unchecked)[i % 2](save)
        size = int(rng.choice([2_000, 200_000]))
        child = in_a_child(partial(save_for_ever, save, i, size))
        time.sleep(float(rng.uniform(0.001, 0.04)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        check_after(save, checked, counts)
    return counts


def test_saves_killed_at_random(tmp_path: Path) -> None:
    counts = kill_at_random(tmp_path, 20)
    assert counts["earlier"] + counts["new"] == 20


@pytest.mark.soak
def test_five_hundred_saves_killed_at_random(tmp_path: Path, report_counts: Callable[..., None]) -> None:
    counts = kill_at_random(tmp_path, 500)
    assert counts["earlier"] + counts["new"] == 500
    report_counts("saves killed at random", tried=500, damaged=0, **counts)


def test_two_that_save_and_one_that_loads_never_meet_a_mixture(tmp_path: Path) -> None:
    """The writers clear away the scratch of killed saves, never each other's."""
    folder = tmp_path / "save"
    checked(folder)
    children = [in_a_child(partial(_save_often, folder, 40)) for _ in range(2)]
    seen = Counter(number_of(folder) for _ in range(200))
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert set(seen) <= {1, 2}
    assert set(os.listdir(folder)) == {MANIFEST, TENSORS}


def _save_often(folder: Path, times: int) -> None:
    for i in range(times):
        write_state(folder, *content(1 + i % 2))


def test_an_interrupt_leaves_a_whole_save(tmp_path: Path) -> None:
    """Ctrl-C at every step: unlike a kill it lets the save clear away its own scratch."""
    for step in itertools.count():
        folder = tmp_path / f"{step}"
        checked(folder)
        with pytest.MonkeyPatch.context() as patch:
            done = _interrupted(patch, folder, step)
        assert number_of(folder) in ((2,) if done else (1, 2))
        assert set(os.listdir(folder)) - {MANIFEST, TENSORS} <= {".state.safetensors.next"}
        if done:
            break
    assert step > 5


def _interrupted(patch: pytest.MonkeyPatch, folder: Path, step: int) -> bool:
    """Interrupt after the `step`-th write, sync or rename; whether the save was done before that."""
    calls = itertools.count()

    def interrupting(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            result = real(*arguments, **named)
            if next(calls) == step:
                raise KeyboardInterrupt
            return result

        return call

    for name in ("write", "fsync", "replace"):
        patch.setattr(os, name, interrupting(getattr(os, name)))
    try:
        write_state(folder, *content(2))
    except KeyboardInterrupt:
        return False
    return True
