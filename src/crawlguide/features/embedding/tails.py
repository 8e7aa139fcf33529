"""The words of URLs become vectors without a string in between: what `words_of` says of ASCII, over bytes.

A URL that is not ASCII once its escapes are read is marked instead, and left to `words_of`.
"""

import numpy as np

from crawlguide.core.kernels import F32, I32, I64, U8, U64, Bytes, kernel, matrix_f32, nothing, part
from crawlguide.core.letters import digit
from crawlguide.features.embedding.kernels import LONGEST_PIECE, LONGEST_WORD, START, add_word, matrix_i8, mixed

SLASH, PERCENT = 47, 37
BEHIND_SCHEME = 8  # no slash of `https://` stands behind this place
MOST_DIGITS = 4  # longer numbers are codes


@part
def small(byte):  # type: ignore[no-untyped-def]
    return 97 <= byte <= 122


@part
def capital(byte):  # type: ignore[no-untyped-def]
    return 65 <= byte <= 90


@part
def digit_value(byte):  # type: ignore[no-untyped-def]
    """Of a hexadecimal digit; -1: it is none."""
    if digit(byte):
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    return byte - 55 if 65 <= byte <= 70 else -1


@part
def read_escapes(text, start, end, plain):  # type: ignore[no-untyped-def]
    """Copies a piece of text with its escapes read; returns its length, -1: not all of it is ASCII."""
    size = 0
    while start < end:
        byte = np.int64(text[start])
        if byte == PERCENT and start + 2 < end:
            high, low = digit_value(np.int64(text[start + 1])), digit_value(np.int64(text[start + 2]))
            if high >= 0 and low >= 0:
                byte, start = 16 * high + low, start + 2
        if byte > 127:
            return -1
        plain[size] = byte
        size, start = size + 1, start + 1
    return size


@part
def word_end(text, start, end):  # type: ignore[no-untyped-def]
    """Where the word that begins here ends; `start`: none does. Of `HTTPServer` the S belongs to what follows."""
    at = start
    while at < end and digit(text[at]):
        at += 1
    if at > start:
        return at
    while at < end and capital(text[at]):
        at += 1
    if at - start > 1:
        return at - 1 if at < end and small(text[at]) else at
    while at < end and small(text[at]):
        at += 1
    return at


@part
def says_something(text, start, end, silent):  # type: ignore[no-untyped-def]
    """No code, nor one of the words that say how a page is made or served."""
    if digit(text[start]):
        return end - start <= MOST_DIGITS
    code = START
    for at in range(start, end):
        code = mixed(code, text[at] + 32 if capital(text[at]) else text[at])
    for known in silent:
        if known == code:
            return False
    return end - start <= LONGEST_WORD


@kernel(nothing(Bytes, I64, I64, matrix_f32, U64, U8, U64, I32, matrix_i8, F32, matrix_f32, U8))
def add_up(urls, ends, name, names, silent, plain, keys, rows, table, scale, out, odd):  # type: ignore[no-untyped-def]
    """One row of `out` for each URL: that of the name of its domain in `names`, and the words behind its host.

    `plain` has room for the longest URL; `odd` gets a 1 where `words_of` has to say what it says.
    """
    codes, begin = np.empty(LONGEST_PIECE, np.uint64), 0
    for number in range(len(ends)):
        at = begin + BEHIND_SCHEME
        while urls[at] != SLASH:
            at += 1
        size = read_escapes(urls, at, ends[number], plain)
        odd[number], begin = size < 0, ends[number]
        out[number, :] = names[name[number]]
        at = 0
        while at < size:
            stop = word_end(plain, at, size)
            if stop > at and says_something(plain, at, stop, silent):
                add_word(plain, at, stop, keys, rows, codes, table, scale, out[number])
            at = max(stop, at + 1)
