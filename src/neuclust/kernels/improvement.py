"""Expected improvement (Mockus, 1975; Jones, Schonlau and Welch, 1998)."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]


def expected_improvement(gap: Floats, spread: Floats) -> Floats:
    """E[(X − b)₊] of X ~ N(b − gap, spread²), spread > 0: s (φ(z) − z Φ(−z)), z = gap/s. (n,), (n,) -> (n,)."""
    z = gap / spread
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    improvement: Floats = spread * np.maximum(density - z * ndtr(-z), 0.0)
    return improvement
