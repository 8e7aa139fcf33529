"""Hashed features of URLs, a few hundred each; the same code in training and in service.

A URL comes as `host/path?query` (see `url_text.py`): neither scheme nor length is a feature. The n-grams of 3 to 5
bytes of the sub-domain, the registrable domain, the path and the query each make a vector of length one, so that a long
part counts no more than a short one. All digits are alike. Beside them are flags about the host.
"""

import numpy as np

from crawlguide.core.kernels import f32s, f64s, fixed_bytes, i8s, i32s, i64s, kernel, matrix_i64, nothing, one_f64, part
from crawlguide.core.url_bytes import is_digit

BITS = 18
FEATURES = 1 << BITS
MOST_FEATURES = 1_100  # of one URL
HOST, PATH, QUERY = 64, 100, 60  # bytes that are looked at
SHORTEST, LONGEST = 3, 5
MASK = FEATURES - 1
HOST_FLAGS = 8  # the first flags, which are about the host alone
FLAG = 0.5  # the value of a flag, beside vectors of length one


@part
def without_digits(byte):  # type: ignore[no-untyped-def]
    """All digits are alike."""
    return 48 if is_digit(byte) else byte


@part
def mixed(value):  # type: ignore[no-untyped-def]
    value = (value ^ (value >> 15)) * 0x2C1B3C6D & 0xFFFFFFFF
    value = (value ^ (value >> 12)) * 0x297A2D39 & 0xFFFFFFFF
    return value ^ (value >> 15)


@part
def flag_of(kind, value):  # type: ignore[no-untyped-def]
    return mixed(0x51ED270B ^ (kind * 1_009 + value)) & MASK


@part
def add_ngrams(text, start, end, most, salt, index, value, count):  # type: ignore[no-untyped-def]
    """The n-grams of a part of the text, with its two ends marked, as a vector of length one.

    An n-gram of four bytes is one of three and one more: all sizes are hashed in one go, and written one after another.
    """
    end = min(end, start + most)
    if end <= start:
        return count
    seeds = (seed(salt, 3), seed(salt, 4), seed(salt, 5))
    whole = end - start  # n-grams of the shortest size; of each next size there is one less
    for at in range(whole):
        code, place = 0, count + at
        for size in range(1, LONGEST + 1):
            if at + size > whole + 2:
                break
            near = start + at + size - 2
            code = (code * 263 + (without_digits(text[near]) if start <= near < end else 1)) & 0xFFFFFFFF
            if size >= SHORTEST:
                index[place] = mixed((code + seeds[size - SHORTEST]) & 0xFFFFFFFF) & MASK
                place += whole - (size - SHORTEST)
    total = whole + max(whole - 1, 0) + max(whole - 2, 0)
    value[count : count + total] = 1.0 / np.sqrt(total)
    return count + total


@part
def seed(salt, size):  # type: ignore[no-untyped-def]
    """The start of the hash of an n-gram of that size in that part of a URL."""
    code = salt * 8 + size
    for _ in range(size):
        code = (code * 263) & 0xFFFFFFFF
    return code


@part
def bucket(number):  # type: ignore[no-untyped-def]
    return min(number, 4)


@part
def add_flags(text, bounds, index, value, count):  # type: ignore[no-untyped-def]
    """About the host: its structure, not its length; about the rest: only what is rare in harmless URLs."""
    start, registrable, host, path, end, address, port = bounds
    dots = hyphens = digits = 0
    longest = since = 0
    for place in range(start, host):
        byte = text[place]
        hyphens += byte == 45
        digits += is_digit(byte)
        dots += byte == 46 and place < registrable
        since = 0 if byte == 46 else since + 1
        longest = max(longest, since)
    suffix = 0
    for place in range(registrable, host):
        suffix = 0 if text[place] == 46 else (suffix * 263 + text[place]) & 0xFFFFFFFF
    found = (
        bucket(dots), bucket(hyphens), bucket(digits // 2), bucket(longest // 8), address, port, suffix,
        contains(text, start, host, 120, 110, 45, 45), int(path <= host + 1), contains(text, host, end, 64, 0, 0, 0),
        contains(text, host, path, 47, 126, 0, 0), contains(text, host + 1, path, 47, 47, 0, 0),
        host_in_path(text, host, path),
    )  # fmt: skip
    for kind in range(0 if host > start else HOST_FLAGS, len(found)):  # without a host there is nothing to say about it
        index[count], value[count] = flag_of(kind, found[kind]), FLAG
        count += 1
    return count


@part
def contains(text, start, end, a, b, c, d):  # type: ignore[no-untyped-def]
    """Whether these bytes (0: fewer of them) occur in a part of the text."""
    for place in range(start, end):
        if text[place] != a:
            continue
        if (b == 0 or (place + 1 < end and text[place + 1] == b)) and (
            c == 0 or (place + 3 < end and text[place + 2] == c and text[place + 3] == d)
        ):
            return 1
    return 0


@part
def host_in_path(text, host, path):  # type: ignore[no-untyped-def]
    """1 if a segment of the path looks like a host (www.example.org), with two dots; else 0."""
    dots = 0
    for place in range(host, path):
        if text[place] == 47:
            dots = 0
        elif text[place] == 46:
            dots += 1
            if dots > 1:
                return 1
    return 0


@part
def features_of(text, bounds, index, value):  # type: ignore[no-untyped-def]
    """Write all features of one URL; returns how many."""
    start, registrable, host, path, end = bounds[:5]
    count = add_ngrams(text, start, registrable, HOST, 1, index, value, 0)
    count = add_ngrams(text, registrable, host, HOST, 2, index, value, count)
    count = add_ngrams(text, host + 1, path, PATH, 3, index, value, count)
    count = add_ngrams(text, path + 1, end, QUERY, 4, index, value, count)
    return add_flags(text, (start, registrable, host, path, end, bounds[5], bounds[6]), index, value, count)


@kernel(nothing(fixed_bytes, matrix_i64, i32s, f32s, i64s))
def extract(text, bounds, index, value, ends):  # type: ignore[no-untyped-def]
    """The features of many URLs, one after the other; `ends` receives where those of each end."""
    filled = 0
    for row in range(len(bounds)):
        filled += features_of(text, bounds[row], index[filled:], value[filled:])
        ends[row] = filled


@kernel(nothing(fixed_bytes, matrix_i64, i8s, one_f64, one_f64, f64s))
def sum_weights(text, bounds, weights, scale, bias, out):  # type: ignore[no-untyped-def]
    """The sum of the weights of each URL's features: log odds before calibration."""
    index, value = np.empty(MOST_FEATURES, np.int32), np.empty(MOST_FEATURES, np.float32)
    for row in range(len(bounds)):
        count = features_of(text, bounds[row], index, value)
        total = 0.0
        for place in range(count):
            total += weights[index[place]] * value[place]
        out[row] = bias + scale * total
