"""Chance that can be had again: the n-th number of a seed is the same in every process."""

import numpy as np

from crawlguide.core.kernels import part

STEP = np.uint64(0x9E3779B97F4A7C15)


@part
def uniform(seed, draw):  # type: ignore[no-untyped-def]
    """splitmix64, between 0 and 1, neither of them."""
    bits = np.uint64(seed) + np.uint64(draw + 1) * STEP
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return (np.float64(bits >> np.uint64(11)) + 0.5) / 9007199254740992.0


@part
def normal(seed, crawl):  # type: ignore[no-untyped-def]
    first, second = uniform(seed, crawl.draws), uniform(seed, crawl.draws + 1)
    crawl.draws += 2
    return np.sqrt(-2.0 * np.log(first)) * np.cos(2.0 * np.pi * second)


@part
def gamma(seed, crawl, shape):  # type: ignore[no-untyped-def]
    """Marsaglia and Tsang; below 1 by the power of another draw."""
    boost = 1.0
    if shape < 1.0:
        boost = uniform(seed, crawl.draws) ** (1.0 / shape)
        crawl.draws += 1
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal(seed, crawl)
        v = (1.0 + c * x) ** 3
        u = uniform(seed, crawl.draws)
        crawl.draws += 1
        if v > 0.0 and np.log(u) < 0.5 * x * x + d - d * v + d * np.log(v):
            return d * v * boost


@part
def beta(seed, crawl, good, bad):  # type: ignore[no-untyped-def]
    first, second = gamma(seed, crawl, good), gamma(seed, crawl, bad)
    return first / (first + second) if first + second > 0.0 else 0.0
