"""Random numbers: every draw comes from a stateless stream named by (seed, purpose, t), so rounds can be replayed."""

import zlib

import numpy as np


def stream(seed: int, purpose: str, t: int = 0) -> np.random.Generator:
    """A fresh generator for this seed, purpose and round; equal arguments give equal numbers."""
    key = np.array([seed & 0xFFFF_FFFF_FFFF_FFFF, zlib.crc32(purpose.encode())], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=np.array([0, 0, 0, t], dtype=np.uint64)))
