"""Chance that can be had again: the n-th number of a seed is the same in every process."""

import numpy as np

from crawlguide.core.kernels import part

STEP = np.uint64(0x9E3779B97F4A7C15)


@part
def uniform(seed, draw):  # type: ignore[no-untyped-def]
    """splitmix64: from 0 up to, and never, 1."""
    bits = np.uint64(seed) + np.uint64(draw + 1) * STEP
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return np.float64(bits >> np.uint64(11)) / 9007199254740992.0
