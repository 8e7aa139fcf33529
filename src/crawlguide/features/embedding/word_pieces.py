"""Texts become unit vectors: greedy word pieces over bytes, the sum of their rows, scaled to length one.

A word is a run of ASCII letters and digits, in lower case; `camelCase` and `HTTPServer` are two words each. Its
longest known beginning is the first piece, the longest known continuation the next. Punctuation is left out: it says
nothing about the subject of a text.
"""

import numba
import numpy as np

from crawlguide.core.kernels import f32s, fixed_bytes, i32s, i64s, kernel, nothing, part, u64s

LONGEST_PIECE = 24
LONGEST_WORD = 64  # longer runs are codes, not words
ROWS_AT_ONCE = 8
NEWLINE, HASH = 10, 35
START = np.uint64(14_695_981_039_346_656_037)  # FNV-1a
STEP = np.uint64(1_099_511_628_211)
matrix_i8 = numba.int8[:, ::1]
matrix_f32 = numba.float32[:, ::1]


@part
def hash_byte(code, byte):  # type: ignore[no-untyped-def]
    return (code ^ np.uint64(byte)) * STEP


@part
def slot(code, keys, rows):  # type: ignore[no-untyped-def]
    """The slot of a piece in the index, or the free one where it belongs; `rows` holds -1 in free slots."""
    last = np.uint64(len(keys) - 1)
    at = (code ^ (code >> np.uint64(29))) & last
    while rows[at] >= 0 and keys[at] != code:
        at = (at + np.uint64(1)) & last
    return at


@kernel(nothing(fixed_bytes, u64s, i32s))
def index(vocabulary, keys, rows):  # type: ignore[no-untyped-def]
    """The hash index of all pieces; they come one to a line, `##` before those that continue a word."""
    row, code = 0, START
    for byte in vocabulary:
        if byte != NEWLINE:
            code = hash_byte(code, byte)
            continue
        at = slot(code, keys, rows)
        keys[at], rows[at] = code, row
        row, code = row + 1, START


@part
def kind(byte):  # type: ignore[no-untyped-def]
    """1: a lower-case letter or a digit, 2: an upper-case letter, 0: anything else."""
    if 97 <= byte <= 122 or 48 <= byte <= 57:
        return 1
    return 2 if 65 <= byte <= 90 else 0


@part
def word_end(text, start, end):  # type: ignore[no-untyped-def]
    """Where the word that begins at `start` ends."""
    at = start + 1
    while at < end:
        here, before = kind(text[at]), kind(text[at - 1])
        if here == 0 or (here == 2 and before == 1):
            break
        if here == 1 and before == 2 and at - start > 1 and text[at] > 57:  # HTTPServer: the S belongs to what follows
            return at - 1
        at += 1
    return at


@part
def longest(text, start, end, code, keys, rows, codes):  # type: ignore[no-untyped-def]
    """The row of the longest piece at `start`, and where it ends; -1: none."""
    size = min(end - start, LONGEST_PIECE)
    for place in range(size):
        byte = text[start + place]
        code = hash_byte(code, byte + 32 if 65 <= byte <= 90 else byte)
        codes[place] = code
    for place in range(size - 1, -1, -1):
        row = rows[slot(codes[place], keys, rows)]
        if row >= 0:
            return row, start + place + 1
    return -1, start + 1


@part
def add_word(text, start, end, keys, rows, codes, table, scale, total):  # type: ignore[no-untyped-def]
    """Adds the rows of a word's pieces to `total`."""
    code = START
    while start < end:
        row, start = longest(text, start, end, code, keys, rows, codes)
        code = hash_byte(hash_byte(START, HASH), HASH)
        if row >= 0:
            weight = scale[row]
            for column in range(len(total)):
                total[column] += weight * np.float32(table[row, column])


@part
def add_text(text, at, end, keys, rows, codes, table, scale, total):  # type: ignore[no-untyped-def]
    """Adds the rows of all words of a text."""
    while at < end:
        if kind(text[at]) == 0:
            at += 1
            continue
        stop = word_end(text, at, end)
        if stop - at <= LONGEST_WORD:
            add_word(text, at, stop, keys, rows, codes, table, scale, total)
        at = stop


@kernel(nothing(fixed_bytes, i64s, u64s, i32s, matrix_i8, f32s, matrix_f32))
def add_up(text, ends, keys, rows, table, scale, out):  # type: ignore[no-untyped-def]
    """One row of `out` for each text; they lie one after the other and `ends` says where each ends."""
    codes = np.empty(LONGEST_PIECE, np.uint64)
    at = 0
    for number in range(len(ends)):
        out[number, :] = np.float32(0.0)
        add_text(text, at, ends[number], keys, rows, codes, table, scale, out[number])
        at = ends[number]


@part
def add_squares(rows, sums):  # type: ignore[no-untyped-def]
    a = b = c = d = e = f = g = h = np.float32(0.0)
    for column in range(rows.shape[1]):
        a += rows[0, column] * rows[0, column]
        b += rows[1, column] * rows[1, column]
        c += rows[2, column] * rows[2, column]
        d += rows[3, column] * rows[3, column]
        e += rows[4, column] * rows[4, column]
        f += rows[5, column] * rows[5, column]
        g += rows[6, column] * rows[6, column]
        h += rows[7, column] * rows[7, column]
    sums[0], sums[1], sums[2], sums[3] = a, b, c, d
    sums[4], sums[5], sums[6], sums[7] = e, f, g, h


@kernel(nothing(matrix_f32))
def normalise(out):  # type: ignore[no-untyped-def]
    """Scale every row to length one, unless it is all zeros.

    Each step of a sum of squares waits for the one before; those of eight rows at a time do not wait for each other.
    """
    sums = np.empty(ROWS_AT_ONCE, np.float32)
    for first in range(0, len(out), ROWS_AT_ONCE):
        some = min(len(out) - first, ROWS_AT_ONCE)
        sums[:] = np.float32(0.0)
        if some == ROWS_AT_ONCE:
            add_squares(out[first : first + ROWS_AT_ONCE], sums)
        else:
            for number in range(some):
                for column in range(out.shape[1]):
                    sums[number] += out[first + number, column] * out[first + number, column]
        for number in range(some):
            if sums[number] > 0:
                out[first + number] *= np.float32(1.0) / np.sqrt(sums[number])
