"""Orders that look only at when a URL was discovered: first, last, or in no order at all.

All values lie in 0…1, so that a priority set by hand (0…1) means the same under every strategy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Batch

TIE = 1e-6  # how much such a number counts where it only says which of equals goes first


@dataclass(frozen=True)
class First:
    """Earlier is better: 1 / (1 + n) for the n-th URL discovered."""

    version: str = "first-1"

    def predict(self, batch: Batch) -> F64:
        value: F64 = np.reciprocal(1.0 + batch.sequence)
        return value


@dataclass(frozen=True)
class Last:
    """Later is better: 1 − 1 / (1 + n); distinct for the first 90 million."""

    version: str = "last-1"

    def predict(self, batch: Batch) -> F64:
        value: F64 = 1.0 - np.reciprocal(1.0 + batch.sequence)
        return value


@dataclass(frozen=True)
class Shuffled:
    """A number drawn once per URL: the same for the same seed, whoever asks and however often."""

    seed: int = 0
    version: str = "shuffled-1"

    def predict(self, batch: Batch) -> F64:
        return drawn_once(batch.id, self.seed)


def drawn_once(ids: U64, seed: int) -> F64:
    """A number in 0…1 for each URL: the same for the same seed."""
    return mixed(ids ^ np.uint64(seed)) / 2.0**64


def mixed(bits: U64) -> U64:
    """splitmix64: every input bit changes about half of the output bits."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
