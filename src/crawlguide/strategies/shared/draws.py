"""Orders that look only at when a URL was discovered: first, last, or in no order at all.

All values lie in 0…1, so that a priority set by hand (0…1) means the same under every strategy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import part

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, U64

TIE = 1e-6  # how much such a number counts where it only says which of equals goes first


def drawn_once(ids: U64, seed: int) -> F64:
    """A number in 0…1 for each URL: the same for the same seed."""
    return mixed(ids ^ np.uint64(seed)) / 2.0**64


def mixed(bits: U64) -> U64:
    """splitmix64: every input bit changes about half of the output bits."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


# Chance that can be had again: the n-th number of a seed is the same in every process.

STEP = np.uint64(0x9E3779B97F4A7C15)


@part
def uniform(seed, draw):  # type: ignore[no-untyped-def]
    """splitmix64: from 0 up to, and never, 1."""
    bits = np.uint64(seed) + np.uint64(draw + 1) * STEP
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return np.float64(bits >> np.uint64(11)) / 9007199254740992.0


# Chance that can be had again: the n-th draw of a seed is the same in every process, so only n has to be kept.

ONE: U64 = np.zeros(1, np.uint64)


def drawn(seed: int, draw: int, salt: U64 = ONE) -> F64:
    """A number from 0 up to, and never, 1 for each salt."""
    return (_bits(seed, draw, salt) >> np.uint64(11)) / 2.0**53


def normal_column(seed: int, draw: int, salt: U64 = ONE) -> F64:
    """A number from the normal distribution for each salt (Box and Muller)."""
    bits = _bits(seed, draw, salt)
    first, second = (bits >> np.uint64(32)) / 2.0**32, (bits & np.uint64(0xFFFFFFFF)) / 2.0**32
    return np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second)


def gamma_column(shape: F64, seed: int, draw: int, salt: U64) -> F64:
    """A number from a gamma distribution for each shape and salt (Wilson and Hilferty's approximation)."""
    spread = normal_column(seed, draw, salt) / (3.0 * np.sqrt(shape))
    value: F64 = shape * np.maximum(1.0 - 1.0 / (9.0 * shape) + spread, 0.0) ** 3
    return value


def _bits(seed: int, draw: int, salt: U64) -> U64:
    stem = mixed(np.array([seed, draw + 1], np.uint64))
    return mixed(salt ^ mixed(stem[:1] ^ mixed(stem[1:] + np.uint64(1))))


# Draws of several kinds from one row of numbers, of which a crawl remembers how far it has come.

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
