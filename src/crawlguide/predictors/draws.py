"""Chance that can be had again: the n-th draw of a seed is the same in every process, so only n has to be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.predictors.arrival import mixed

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, U64

ONE: U64 = np.zeros(1, np.uint64)


def drawn(seed: int, draw: int, salt: U64 = ONE) -> F64:
    """A number from 0 up to, and never, 1 for each salt."""
    return (_bits(seed, draw, salt) >> np.uint64(11)) / 2.0**53


def normal(seed: int, draw: int, salt: U64 = ONE) -> F64:
    """A number from the normal distribution for each salt (Box and Muller)."""
    bits = _bits(seed, draw, salt)
    first, second = (bits >> np.uint64(32)) / 2.0**32, (bits & np.uint64(0xFFFFFFFF)) / 2.0**32
    return np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second)


def gamma(shape: F64, seed: int, draw: int, salt: U64) -> F64:
    """A number from a gamma distribution for each shape and salt (Wilson and Hilferty's approximation)."""
    spread = normal(seed, draw, salt) / (3.0 * np.sqrt(shape))
    value: F64 = shape * np.maximum(1.0 - 1.0 / (9.0 * shape) + spread, 0.0) ** 3
    return value


def _bits(seed: int, draw: int, salt: U64) -> U64:
    stem = mixed(np.array([seed, draw + 1], np.uint64))
    return mixed(salt ^ mixed(stem[:1] ^ mixed(stem[1:] + np.uint64(1))))
