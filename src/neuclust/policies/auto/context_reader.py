"""Contexts read once, for as long as a catalogue stays and where arms have equal ones."""

import weakref
from collections.abc import Callable

import torch
from torch import Tensor

from neuclust.kernels.regions import group_rows
from neuclust.policies.auto.features import FeatureBlocks, Features


class ContextReader:
    """Reads the contexts of a round, and those of a catalogue that stays the same tensor only once.
    Writing into such a tensor is noticed by its version, unless it is done past torch, through a NumPy array."""

    def __init__(self) -> None:
        self._latest: tuple[Callable[[], Tensor | None], int, Features, Tensor] | None = None

    def read(self, blocks: FeatureBlocks, z: Tensor) -> tuple[Features, Tensor]:
        """Features of distinct contexts out of z (n, d), and the number of every arm's one, (n,)."""
        latest, version = self._latest, -1 if z.is_inference() else z._version
        if latest is not None and latest[0]() is z and latest[1] == version >= 0 and latest[2].blocks is blocks:
            return latest[2:]
        features, group = self._once(blocks, z)
        self._latest = weakref.ref(z), version, features, group
        return features, group

    @staticmethod
    def _once(blocks: FeatureBlocks, z: Tensor) -> tuple[Features, Tensor]:
        """Compiled loops score all contexts; elsewhere equal ones are scored once, so that ties stay ties."""
        if not blocks.masked or not blocks.crossed:
            features = blocks.read(z)
            if features.compiled or (features.sparse and features.many):
                return features, torch.arange(len(z))
        first, group = group_rows(z)
        if len(first) == len(z):
            return blocks.read(z), torch.arange(len(z))
        return blocks.read(z[first]), group
