"""A sketch of a page's text, which stays nearly the same where only dates, counters and the like have changed.

A simhash of 64 bits (Charikar, "Similarity estimation techniques from rounding algorithms", 2002): each pair of
neighbouring words votes on every bit, so that texts with few different words differ in few bits. Words with a digit in
them, single letters and names of months and weekdays have no vote: they are what changes where nothing new is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.kernels import fixed_bytes, kernel, one_u64, u64s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import U64

READ_BYTES = 200_000
SAME_WITHIN = 3  # bits in which sketches of the same content may differ
DATES = (
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun "
    "ago today yesterday hour hours minute minutes second seconds day days week weeks month months year years"
)


def sketch(text: str) -> int:
    """64 bits; 0 for a text without two words."""
    body = np.frombuffer(text.lower()[:READ_BYTES].encode("utf-8", "replace"), np.uint8)
    return int(simhash(body, _WORDS)) if len(body) else 0


def is_same(one: int, other: int) -> bool:
    """Whether two texts say the same, as far as their sketches tell."""
    return (one ^ other).bit_count() <= SAME_WITHIN


@kernel(one_u64(fixed_bytes, u64s))
def simhash(text, unheard):  # type: ignore[no-untyped-def]
    """Bytes above 127 count as letters, so that every script has words."""
    votes = np.zeros(64, np.int64)
    before, code = np.uint64(0), np.uint64(0)
    length, has_digit = 0, False
    for place in range(len(text) + 1):
        byte = text[place] if place < len(text) else 32
        is_digit = 48 <= byte <= 57
        if is_digit or 97 <= byte <= 122 or byte >= 128:
            code = (code ^ np.uint64(byte)) * np.uint64(0x100000001B3)
            length, has_digit = length + 1, has_digit or is_digit
            continue
        if length > 1 and not has_digit and not np.any(unheard == code):
            if before != 0:
                mixed = (before * np.uint64(0x9E3779B97F4A7C15)) ^ code
                mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
                mixed ^= mixed >> np.uint64(29)
                for bit in range(64):
                    votes[bit] += 1 if (mixed >> np.uint64(bit)) & np.uint64(1) else -1
            before = code
        code, length, has_digit = np.uint64(0), 0, False
    found = np.uint64(0)
    for bit in range(64):
        if votes[bit] > 0:
            found |= np.uint64(1) << np.uint64(bit)
    return found


def _codes(words: Sequence[str]) -> U64:
    """As the kernel hashes them."""
    codes = []
    for word in words:
        code = 0
        for byte in word.encode():
            code = (code ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        codes.append(code)
    return np.array(codes, np.uint64)


_WORDS = _codes(DATES.split())
