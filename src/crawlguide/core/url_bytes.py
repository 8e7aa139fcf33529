"""Parts of kernels that read the bytes of URLs: classes of bytes, and hashes of pieces of text."""

import numpy as np

from crawlguide.core.kernels import allocating_part, part

HASH_START, HASH_FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C55)
LINE_END = 10
NUMBER = 35  # "#" stands for any run of digits


@part
def lower(byte):  # type: ignore[no-untyped-def]
    return byte + 32 if 65 <= byte <= 90 else byte


@part
def is_digit(byte):  # type: ignore[no-untyped-def]
    return 48 <= byte <= 57


@part
def is_letter(byte):  # type: ignore[no-untyped-def]
    return 97 <= byte <= 122 or 65 <= byte <= 90


@part
def is_blank(byte):  # type: ignore[no-untyped-def]
    return 9 <= byte <= 13 or 28 <= byte <= 32


@part
def find_byte(text, start, end, byte):  # type: ignore[no-untyped-def]
    """Where a byte first occurs in text[start:end]; `end` if it does not."""
    while start < end and text[start] != byte:
        start += 1
    return start


@part
def host_start(text, start, end):  # type: ignore[no-untyped-def]
    """Where the host begins in scheme://authority: after a user name, if there is one."""
    first = find_byte(text, start, end, 47) + 2
    for place in range(first, end):
        if text[place] == 64:  # @
            first = place + 1
    return first


@part
def hash_byte(code, byte):  # type: ignore[no-untyped-def]
    """A hash that goes on by one byte; the first one goes on from HASH_START."""
    return (code ^ np.uint64(byte)) * HASH_FACTOR


@part
def hash_pair(first, second):  # type: ignore[no-untyped-def]
    """One hash of two, in this order."""
    code = (first ^ (first >> np.uint64(31))) * HASH_FACTOR + second
    code = (code ^ (code >> np.uint64(32))) * HASH_FACTOR
    return code ^ (code >> np.uint64(29))


@part
def hash_exact(text, start, end):  # type: ignore[no-untyped-def]
    code = HASH_START
    for place in range(start, end):
        code = hash_byte(code, text[place])
    return code


@part
def hash_lower(text, start, end):  # type: ignore[no-untyped-def]
    """The hash of text[start:end] in lower case."""
    code = HASH_START
    for place in range(start, end):
        code = hash_byte(code, lower(text[place]))
    return code


@part
def hash_skeleton(text, start, end):  # type: ignore[no-untyped-def]
    """The hash of text[start:end] in lower case, stripped, with every number alike; 0 for an empty text."""
    while start < end and is_blank(text[start]):
        start += 1
    while start < end and is_blank(text[end - 1]):
        end -= 1
    code = HASH_START
    for place in range(start, end):
        if not is_digit(text[place]):
            code = hash_byte(code, lower(text[place]))
        elif place == start or not is_digit(text[place - 1]):
            code = hash_byte(code, NUMBER)
    return code if end > start else np.uint64(0)


@allocating_part
def hash_set(codes, count):  # type: ignore[no-untyped-def]
    """One hash of the set of the first `count` hashes, in any order; and whether one of them occurs twice."""
    codes[:count].sort()
    total, twice = HASH_START, False
    for place in range(count):
        if place > 0 and codes[place] == codes[place - 1]:
            twice = True
        else:
            total += hash_pair(codes[place], HASH_START)
    return total, twice
