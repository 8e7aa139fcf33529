"""What MessagePack can hold and we refuse, found in one look at the bytes, before anything is built of them.

A decoder makes room for as many values as a list declares. Here a list or map that declares more than there are bytes
is refused first, and so is whatever else JSON could not say: bytes, extensions such as timestamps, NaN, other keys
than text, text that is not UTF-8.
"""

from __future__ import annotations

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.kernels import fixed_bytes, kernel, one_u64, pair, part
from crawlguide.gateway.strict import FEW, MAX_DEPTH, MOST_CONTAINERS, SECRET, is_among, mixed, repeats, roomier

FINE, TOO_DEEP, REPEATED, CUT, MORE, KEY, NOT_FINITE, NOT_UTF8, FOREIGN, UNUSED, TOO_MANY = range(11)
SCALAR, FLOAT, TEXT, LIST, MAP, OTHER, NONE = range(7)
WORDS = {
    TOO_DEEP: f"expected at most {MAX_DEPTH} levels, got more at byte {{}}",
    TOO_MANY: f"expected at most {MOST_CONTAINERS} lists and objects, got more at byte {{}}",
    REPEATED: "the same key twice in one object, at byte {}",
    CUT: "not MessagePack: it ends amid the value at byte {}",
    MORE: "not MessagePack: expected one value, got more at byte {}",
    KEY: "expected text as a key, got something else at byte {}",
    NOT_FINITE: "expected a finite number, got another at byte {}",
    NOT_UTF8: "expected text in UTF-8, got something else at byte {}",
    FOREIGN: "expected what JSON can say, got bytes or an extension at byte {}",
    UNUSED: "not MessagePack: no value begins as byte {} does",
}


def check(body: bytes) -> int:
    """How many values a body holds. Raises `MalformedRequest` unless it is one that JSON could say, within limits."""
    verdict, found = inspect(np.frombuffer(body, np.uint8), SECRET)
    if verdict != FINE:
        raise MalformedRequest("body: " + WORDS[verdict].format(found))
    return int(found)


@part
def number(body, at, size):  # type: ignore[no-untyped-def]
    """The unsigned number of so many bytes; what is missing counts as zero."""
    value = np.int64(0)
    for place in range(at, min(at + size, len(body))):
        value |= np.int64(body[place]) << 8 * (at + size - 1 - place)
    return value


@part
def head(body, at):  # type: ignore[no-untyped-def]  # noqa: C901, PLR0911 - one case for each kind of first byte
    """What begins here, how many bytes or members follow its head, and how long the head is."""
    byte = np.int64(body[at])
    if byte < 0x80 or byte >= 0xE0:
        return SCALAR, 0, 1
    if byte < 0x90:
        return MAP, byte & 0x0F, 1
    if byte < 0xA0:
        return LIST, byte & 0x0F, 1
    if byte < 0xC0:
        return TEXT, byte & 0x1F, 1
    if byte == 0xC1:
        return NONE, 0, 1
    if byte <= 0xC3:
        return SCALAR, 0, 1
    if byte in (0xCA, 0xCB):
        return FLOAT, 4 << byte - 0xCA, 1
    if 0xCC <= byte <= 0xD3:
        return SCALAR, 1 << (byte - 0xCC & 3), 1
    if byte < 0xD9:
        return OTHER, 0, 1
    if byte <= 0xDB:
        wide = 1 << byte - 0xD9
        return TEXT, number(body, at + 1, wide), 1 + wide
    wide = 2 << (byte & 1)
    return LIST if byte < 0xDE else MAP, number(body, at + 1, wide), 1 + wide


@part
def is_finite(body, at, size):  # type: ignore[no-untyped-def]
    """Whether not all bits of the exponent are set."""
    whole = 0x7F80 if size == 4 else 0x7FF0
    return number(body, at, 2) & whole != whole


@part
def is_utf8(body, at, end):  # type: ignore[no-untyped-def]  # noqa: C901 - one case for each length of a letter
    while at < end:
        byte = body[at]
        at += 1
        if byte < 0x80:
            continue
        if byte < 0xC2 or byte > 0xF4 or at == end:
            return False
        # Bounds of the second byte: no overlong letters, no surrogates, none beyond the last.
        least, most = 0x80, 0xBF
        if byte == 0xE0:
            least = 0xA0
        elif byte == 0xED:
            most = 0x9F
        elif byte == 0xF0:
            least = 0x90
        elif byte == 0xF4:
            most = 0x8F
        if body[at] < least or body[at] > most:
            return False
        last = at + (byte >= 0xE0) + (byte >= 0xF0)
        if last >= end:
            return False
        at += 1
        while at <= last:
            if body[at] & 0xC0 != 0x80:
                return False
            at += 1
    return True


@part
def hashed(body, at, end, secret):  # type: ignore[no-untyped-def]
    value = secret
    for place in range(at, end):
        value = mixed(value, body[place])
    return value


@part
def wrong_with(body, kind, at, end):  # type: ignore[no-untyped-def]
    """The verdict on a value without members, of which these are the bytes behind its head."""
    if kind == NONE:
        return UNUSED
    if kind == OTHER:
        return FOREIGN
    if end > len(body):
        return CUT
    if kind == FLOAT and not is_finite(body, at, end - at):
        return NOT_FINITE
    if kind == TEXT and not is_utf8(body, at, end):
        return NOT_UTF8
    return FINE


@kernel(pair(fixed_bytes, one_u64))
def inspect(body, secret):  # type: ignore[no-untyped-def]  # noqa: C901, PLR0911, PLR0912, PLR0915 - one walk
    """A verdict and where; if all is fine, how many values. `left` counts what is to come of each open list or map."""
    keys, base, left = np.empty(64, np.uint64), np.zeros(MAX_DEPTH + 1, np.int64), np.zeros(MAX_DEPTH + 1, np.int64)
    in_map = np.zeros(MAX_DEPTH + 1, np.bool_)
    count, depth, at, values, containers = 0, 0, 0, 0, 0
    left[0] = 1
    while True:
        while depth > 0 and left[depth] == 0:
            if count - base[depth] > FEW and repeats(keys[base[depth] : count]):
                return REPEATED, at
            count = base[depth]
            depth -= 1
        if left[depth] == 0:
            return (FINE, values) if at == len(body) else (MORE, at)
        if at >= len(body):
            return CUT, at
        kind, size, long = head(body, at)
        is_key = in_map[depth] and left[depth] & 1 == 0
        left[depth] -= 1
        values += 1
        if is_key and kind != TEXT:
            return KEY, at
        start = at + long
        if kind in (LIST, MAP):
            members = size if kind == LIST else 2 * size
            if members > len(body) - start:
                return CUT, at
            depth += 1
            containers += 1
            if depth > MAX_DEPTH:
                return TOO_DEEP, at
            if containers > MOST_CONTAINERS:
                return TOO_MANY, at
            left[depth], in_map[depth], base[depth] = members, kind == MAP, count
            at = start
            continue
        verdict = wrong_with(body, kind, start, start + size)
        if verdict != FINE:
            return verdict, at
        if is_key:
            key = hashed(body, start, start + size, secret)
            if count - base[depth] < FEW and is_among(keys, base[depth], count, key):
                return REPEATED, at
            if count == len(keys):
                keys = roomier(keys)
            keys[count] = key
            count += 1
        at = start + size
