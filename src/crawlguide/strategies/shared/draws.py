"""Random numbers that can be drawn again: each follows from the crawl's seed and a number, in every process.

All of them come from one generator, splitmix64. There are two ways to ask it:
the n-th draw of a crawl (`uniform`, `normal`, `gamma`; kernels count the draws in the crawl's own record), and
a draw for each of many URLs or arms by their ids (`uniform_by_id`, …), which does not depend on the order of the ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from crawlguide.core.kernels import f64s, kernel, nothing, part, records, u64s

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, U64

TIE = 1e-6  # the weight of a random number that only decides between equals
STEP = np.uint64(0x9E3779B97F4A7C15)
SMALLEST = 1e-12  # whose logarithm is still a number
ONE: U64 = np.zeros(1, np.uint64)
one_u64 = numba.uint64
# The first field keeps numba from taking the record of a crawl, which begins with `draws`, for one of these.
COUNTER = np.dtype([("alone", np.int64), ("draws", np.int64)])
COUNTERS = records(COUNTER)


@part
def mixed(bits):  # type: ignore[no-untyped-def]
    """The last step of splitmix64: every input bit changes about half of the output bits."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@part
def to_unit(bits):  # type: ignore[no-untyped-def]
    """From 0 up to, and never, 1."""
    return np.float64(bits >> np.uint64(11)) / 9007199254740992.0


# The n-th draw of a crawl


@part
def uniform(seed, draw):  # type: ignore[no-untyped-def]
    """From 0 up to, and never, 1."""
    return to_unit(mixed(np.uint64(seed) + np.uint64(draw + 1) * STEP))


@part
def normal(seed, crawl):  # type: ignore[no-untyped-def]
    """Box and Muller."""
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


# A draw for each id


def fixed_by_id(ids: U64, seed: int) -> F64:
    """A number in 0…1 for each URL, always the same for the same seed."""
    return mixed_with(ids, seed) / 2.0**64


def uniform_by_id(seed: int, draw: int, ids: U64 = ONE) -> F64:
    """A number from 0 up to, and never, 1 for each id; another one with every `draw`."""
    return (bits_by_id(seed, draw, ids) >> np.uint64(11)) / 2.0**53


def gamma_by_id(shape: F64, seed: int, draw: int, ids: U64) -> F64:
    """A number from a gamma distribution for each shape and id."""
    out = np.empty(len(ids))
    gammas(np.ascontiguousarray(shape), bits_by_id(seed, draw, ids), np.zeros(1, COUNTER), out)
    return out


def mixed_with(ids: U64, salt: int) -> U64:
    """Other ids for the same things: each bit depends on every bit of the id and of the salt."""
    out = np.empty(len(ids), np.uint64)
    mix(np.ascontiguousarray(ids), np.uint64(salt), out)
    return out


def bits_by_id(seed: int, draw: int, ids: U64) -> U64:
    """64 random bits for each id."""
    out = np.empty(len(ids), np.uint64)
    mix_draw(np.ascontiguousarray(ids), np.uint64(seed), np.uint64(draw), out)
    return out


@kernel(nothing(f64s, u64s, COUNTERS, f64s))
def gammas(shape, seeds, counter, out):  # type: ignore[no-untyped-def]
    """Each draws from a sequence of its own."""
    for row in range(len(shape)):
        counter[0].draws = 0
        out[row] = gamma(seeds[row], counter[0], shape[row])


@kernel(nothing(u64s, one_u64, u64s))
def mix(ids, salt, out):  # type: ignore[no-untyped-def]
    for row in range(len(ids)):
        out[row] = mixed(ids[row] ^ salt)


@part
def stem(seed, draw):  # type: ignore[no-untyped-def]
    """What all ids of one draw have in common."""
    return mixed(mixed(seed) ^ mixed(mixed(draw + np.uint64(1)) + np.uint64(1)))


@kernel(nothing(u64s, one_u64, one_u64, u64s))
def mix_draw(ids, seed, draw, out):  # type: ignore[no-untyped-def]
    common = stem(seed, draw)
    for row in range(len(ids)):
        out[row] = mixed(ids[row] ^ common)
