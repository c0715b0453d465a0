"""Many small kernels as one launch: a piece of work is done once as it is, then recorded, then replayed.

A recorded piece must read and write the same tensors every time. On the CPU nothing is recorded.
"""

from collections.abc import Callable, Hashable

import torch


class Replays:
    """Pieces of work by name, recorded as CUDA graphs that share one memory pool."""

    def __init__(self, device: torch.device) -> None:
        self.recording = device.type == "cuda"
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle() if self.recording else None

    def do(self, name: Hashable, work: Callable[[], None]) -> None:
        """Do the work; from the second time on by replaying it."""
        if name in self._graphs:
            self._graphs[name].replay()
            return
        work()
        if self.recording:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                work()
            self._graphs[name] = graph


def bucket(rows: int, room: int, step: int) -> int:
    """The size a buffer is read at when `rows` of its `room` rows are filled: few sizes, so few graphs."""
    size = step
    while size < rows:
        size += max(step, size // (2 * step) * step)
    return min(size, room)
