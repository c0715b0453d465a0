"""What all tests share: one thread for small matrices, and Hypothesis examples that are the same on every run.

This file's folder is on the import path of the tests, so that they can use naive_reference and small_problems.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch loads: threads cost more than they bring at these sizes

from hypothesis import settings

settings.register_profile("neuclust", deadline=None, derandomize=True)
settings.load_profile("neuclust")
