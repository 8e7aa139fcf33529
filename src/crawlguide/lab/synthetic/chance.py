"""Chance that is the same in every process: numbers drawn from a name instead of from a state."""

from __future__ import annotations

import random

import xxhash


def unit(*names: object) -> float:
    """A number in [0, 1) that belongs to these names."""
    return float(xxhash.xxh3_64_intdigest("/".join(map(str, names)).encode()) / 2**64)


def stream(*names: object) -> random.Random:
    """A generator that belongs to these names. Made-up pages need no secrets."""
    return random.Random("/".join(map(str, names)))  # noqa: S311
