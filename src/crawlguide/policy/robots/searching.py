"""The loops of robots rules over bare columns."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from crawlguide.core.kernels import I32, I64, MASK, Bytes, kernel, nothing, part

LINE_END = 10
WORDS = 4  # of bits, for each rule
BITS = numba.uint64[:, ::1]


@part
def mark(first: Any, second: Any, marks: Any, row: Any) -> None:
    """Set one of 256 bits, in four words of a row, for two neighbouring bytes."""
    mixed = (np.uint64(first) * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(second) * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed = (mixed * np.uint64(0x165667B19E3779F9)) >> np.uint64(56)
    marks[row, np.int64(mixed >> np.uint64(6))] |= np.uint64(1) << (mixed & np.uint64(63))


@part
def has_all(has: Any, need: Any, rule: Any) -> Any:
    """Is every bit that the rule needs set?"""
    for word in range(WORDS):  # noqa: SIM110 - numba knows no generators
        if need[rule, word] & ~has[0, word] != 0:
            return False
    return True


@part
def begins(path: Any, begin: Any, end: Any, pattern: Any, start: Any, stop: Any) -> Any:
    """Does the text pattern[start:stop] stand in the path at `begin`?"""
    if end - begin < stop - start:
        return False
    for at in range(stop - start):  # noqa: SIM110
        if path[begin + at] != pattern[start + at]:
            return False
    return True


@part
def after(path: Any, begin: Any, end: Any, pattern: Any, start: Any, stop: Any, slip: Any) -> Any:
    """Where the first occurrence of pattern[start:stop] in path[begin:end] ends; -1: there is none."""
    matched, size = 0, stop - start
    if size > end - begin:
        return -1
    for at in range(begin, end):
        while matched and path[at] != pattern[start + matched]:
            matched = slip[start + matched - 1]
        if path[at] == pattern[start + matched]:
            matched += 1
            if matched == size:
                return at + 1
    return -1


@part
def matches(path: Any, begin: Any, end: Any, rule: Any, part_at: Any, ends: Any, start: Any, pattern: Any, slip: Any) -> Any:  # fmt: skip # noqa: E501
    """Its first text at the beginning, the others as early as can be, the last at the end if nothing may follow."""
    first, last = part_at[rule], part_at[rule + 1] - 1
    if not begins(path, begin, end, pattern, start[first], start[first + 1]):
        return False
    here = begin + start[first + 1] - start[first]
    for text in range(first + 1, last + 1):
        size = start[text + 1] - start[text]
        if text == last and ends[rule]:
            return end - size >= here and begins(path, end - size, end, pattern, start[text], start[text + 1])
        here = after(path, here, end, pattern, start[text], start[text + 1], slip)
        if here < 0:
            return False
    return not ends[rule] or here == end


@kernel(nothing(Bytes, I64, MASK, BITS, I64, Bytes, I32, I64))
def search(paths, part_at, ends, need, start, pattern, slip, found):  # type: ignore[no-untyped-def]
    """The first rule that matches each line."""
    begin, has = 0, np.zeros((1, WORDS), np.uint64)
    for number in range(len(found)):
        end = begin
        has[0, :] = 0
        while end < len(paths) and paths[end] != LINE_END:
            if end > begin:
                mark(paths[end - 1], paths[end], has, 0)
            end += 1
        for rule in range(len(need)):
            if has_all(has, need, rule) and matches(paths, begin, end, rule, part_at, ends, start, pattern, slip):
                found[number] = rule
                break
        begin = end + 1


@kernel(nothing(Bytes, I64, I32))
def slips(pattern, start, slip):  # type: ignore[no-untyped-def]
    """For every byte of a text: how many bytes before and with it are also how the text begins."""
    for text in range(len(start) - 1):
        begin, matched = start[text], 0
        for at in range(begin + 1, start[text + 1]):
            while matched and pattern[at] != pattern[begin + matched]:
                matched = slip[begin + matched - 1]
            if pattern[at] == pattern[begin + matched]:
                matched += 1
            slip[at] = matched


@kernel(nothing(Bytes, I64, I64, BITS))
def bits(pattern, start, part_at, need):  # type: ignore[no-untyped-def]
    """The pairs of neighbouring bytes in the texts of each rule."""
    for rule in range(len(need)):
        for text in range(part_at[rule], part_at[rule + 1]):
            for at in range(start[text] + 1, start[text + 1]):
                mark(pattern[at - 1], pattern[at], need, rule)
