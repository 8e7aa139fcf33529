"""Bytes of a URL: what each of them is, and hashes of pieces of text."""

import numpy as np

from crawlguide.core.kernels import allocating_part, part

EMPTY, FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C55)
LINE_END = 10
NUMBER = 35  # "#" stands for any number


@part
def lower(byte):  # type: ignore[no-untyped-def]
    return byte + 32 if 65 <= byte <= 90 else byte


@part
def digit(byte):  # type: ignore[no-untyped-def]
    return 48 <= byte <= 57


@part
def alpha(byte):  # type: ignore[no-untyped-def]
    return 97 <= byte <= 122 or 65 <= byte <= 90


@part
def blank(byte):  # type: ignore[no-untyped-def]
    return 9 <= byte <= 13 or 28 <= byte <= 32


@part
def stepped(code, byte):  # type: ignore[no-untyped-def]
    return (code ^ np.uint64(byte)) * FACTOR


@part
def joined(first, second):  # type: ignore[no-untyped-def]
    """One hash of two, in this order."""
    code = (first ^ (first >> np.uint64(31))) * FACTOR + second
    code = (code ^ (code >> np.uint64(32))) * FACTOR
    return code ^ (code >> np.uint64(29))


@part
def exact(text, start, end):  # type: ignore[no-untyped-def]
    code = EMPTY
    for place in range(start, end):
        code = stepped(code, text[place])
    return code


@part
def lowered(text, start, end):  # type: ignore[no-untyped-def]
    """The hash of a piece in small letters."""
    code = EMPTY
    for place in range(start, end):
        code = stepped(code, lower(text[place]))
    return code


@part
def skeleton(text, start, end):  # type: ignore[no-untyped-def]
    """The hash of a piece in small letters, without its numbers and the blanks around it; 0 for nothing."""
    while start < end and blank(text[start]):
        start += 1
    while start < end and blank(text[end - 1]):
        end -= 1
    code = EMPTY
    for place in range(start, end):
        if not digit(text[place]):
            code = stepped(code, lower(text[place]))
        elif place == start or not digit(text[place - 1]):
            code = stepped(code, NUMBER)
    return code if end > start else np.uint64(0)


@part
def find(text, start, end, byte):  # type: ignore[no-untyped-def]
    """Where a byte stands first; `end`: nowhere."""
    while start < end and text[start] != byte:
        start += 1
    return start


@part
def kind_of(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """What a name may stand for (see `names.py`)."""
    return kind_of_hash(lowered(text, start, end), names, kinds)


@part
def kind_of_hash(code, names, kinds):  # type: ignore[no-untyped-def]
    first, last = 0, len(names)
    while first < last:
        middle = (first + last) // 2
        if names[middle] < code:
            first = middle + 1
        else:
            last = middle
    return kinds[first] if first < len(names) and names[first] == code else 0


@allocating_part
def together(codes, count):  # type: ignore[no-untyped-def]
    """One hash of a set of hashes, the first `count`; and whether one of them stood there twice."""
    codes[:count].sort()
    total, twice = EMPTY, False
    for place in range(count):
        if place > 0 and codes[place] == codes[place - 1]:
            twice = True
        else:
            total += joined(codes[place], EMPTY)
    return total, twice
