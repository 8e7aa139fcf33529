"""Draws of several kinds from one row of numbers, of which a crawl remembers how far it has come."""

import numpy as np

from crawlguide.core.kernels import part
from crawlguide.predictors.chance import uniform

SMALLEST = 1e-12  # whose logarithm is still a number


@part
def normal(seed, crawl):  # type: ignore[no-untyped-def]
    first, second = uniform(seed, crawl.draws), uniform(seed, crawl.draws + 1)
    crawl.draws += 2
    return np.sqrt(-2.0 * np.log(max(first, SMALLEST))) * np.cos(2.0 * np.pi * second)


@part
def gamma(seed, crawl, shape):  # type: ignore[no-untyped-def]
    """Marsaglia and Tsang; below 1 by the power of another draw."""
    boost = 1.0
    if shape < 1.0:
        boost = max(uniform(seed, crawl.draws), SMALLEST) ** (1.0 / shape)
        crawl.draws += 1
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal(seed, crawl)
        v = (1.0 + c * x) ** 3
        u = max(uniform(seed, crawl.draws), SMALLEST)
        crawl.draws += 1
        if u < 1.0 - 0.0331 * x * x * x * x and v > 0.0:  # most draws, without a logarithm: the bound is theirs
            return d * v * boost
        if v > 0.0 and np.log(u) < 0.5 * x * x + d - d * v + d * np.log(v):
            return d * v * boost


@part
def beta(seed, crawl, good, bad):  # type: ignore[no-untyped-def]
    first, second = gamma(seed, crawl, good), gamma(seed, crawl, bad)
    return first / (first + second) if first + second > 0.0 else 0.0
