"""feedstock's state of a crawl: six values, each in one of three bins, as one number."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BINS = (0.33, 0.66)


def binned(values: Iterable[float]) -> int:
    """From 0 to 3ⁿ − 1."""
    state = 0
    for value in values:
        state = 3 * state + sum(value >= bound for bound in BINS)
    return state
