"""Ctrl-C: the first ends the work after the current round, a later one stops at once."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType

STOPPED = 130  # the exit code: 128 + SIGINT, as a shell reports it
SAME_PRESS_SECONDS = 1.0  # wrappers such as make or timeout pass one Ctrl-C on twice


@contextmanager
def patient_interrupt(on_request: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Inside, SIGINT sets a flag that the yielded function reads; the old handling returns on leaving."""
    first_press: list[float] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if not first_press:
            first_press.append(monotonic())
            on_request()
        elif monotonic() - first_press[0] > SAME_PRESS_SECONDS:
            signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: bool(first_press)
    finally:
        signal.signal(signal.SIGINT, before)
