"""What JSON parsers let pass and we do not: repeated keys, deep nesting, millions of lists; found in one look.

A key is remembered by a hash of its characters, whatever escapes it is written with. The hash begins with a secret, so
that nobody can choose keys which sort slowly.
"""

from __future__ import annotations

import secrets

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.kernels import allocating_part, fixed_bytes, kernel, one_u64, pair, part

MAX_DEPTH = 32
FEW = 16  # keys of an object that are compared one by one; more are sorted when it ends
MOST_CONTAINERS = 400_000  # lists and objects: for a link without any words a message has room for 380,000
FINE, TOO_DEEP, REPEATED, TOO_MANY = 0, 1, 2, 3
SECRET = np.uint64(secrets.randbits(64))
_QUOTE, _BACKSLASH, _COMMA = 34, 92, 44
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_LIST, _CLOSE_LIST = 123, 125, 91, 93
_CODES = np.arange(128)  # what stands behind a backslash, and what it means
_CODES[[98, 102, 110, 114, 116]] = 8, 12, 10, 13, 9


def check(body: bytes) -> None:
    """Raise `MalformedRequest` if the body nests too deep or too much, or repeats a key. It need not be JSON at all."""
    verdict, at = inspect(np.frombuffer(body, np.uint8), SECRET)
    if verdict == TOO_DEEP:
        raise MalformedRequest(f"body: expected at most {MAX_DEPTH} levels, got more at byte {at}")
    if verdict == TOO_MANY:
        raise MalformedRequest(f"body: expected at most {MOST_CONTAINERS} lists and objects, got more at byte {at}")
    if verdict == REPEATED:
        raise MalformedRequest(f"body: the same key twice in one object, at byte {at}")


@part
def string_end(body, at):  # type: ignore[no-untyped-def]
    """Where the string that opens at `at` closes."""
    at += 1
    while at < len(body) and body[at] != _QUOTE:
        at += 2 if body[at] == _BACKSLASH else 1
    return at


@part
def mixed(value, byte):  # type: ignore[no-untyped-def]
    """One step of FNV-1a."""
    return (value ^ np.uint64(byte)) * np.uint64(1099511628211)


@part
def hashed(body, start, end, secret):  # type: ignore[no-untyped-def]
    """The hash of a key as UTF-8."""
    value, at = secret, start
    while at < min(end, len(body)):
        if body[at] != _BACKSLASH:
            value = mixed(value, body[at])
            at += 1
            continue
        code, at = unescaped(body, at)
        if 0xD800 <= code < 0xDC00 and at < end and body[at] == _BACKSLASH:
            low, after = unescaped(body, at)
            if 0xDC00 <= low < 0xE000:
                code, at = 0x10000 + ((code - 0xD800) << 10) + low - 0xDC00, after
        value = mixed_code(value, code)
    return value


@part
def mixed_code(value, code):  # type: ignore[no-untyped-def]
    """The bytes of a character, as UTF-8 writes them."""
    if code < 0x80:
        return mixed(value, code)
    if code < 0x800:
        value = mixed(value, 0xC0 | code >> 6)
    else:
        if code < 0x10000:
            value = mixed(value, 0xE0 | code >> 12)
        else:
            value = mixed(mixed(value, 0xF0 | code >> 18), 0x80 | code >> 12 & 0x3F)
        value = mixed(value, 0x80 | code >> 6 & 0x3F)
    return mixed(value, 0x80 | code & 0x3F)


@part
def unescaped(body, at):  # type: ignore[no-untyped-def]
    """The character that an escape stands for, and where the next one begins. A wrong escape may mean anything."""
    if at + 1 >= len(body):
        return np.int64(_BACKSLASH), at + 1
    if body[at + 1] != ord("u") or at + 6 > len(body):
        return np.int64(_CODES[body[at + 1] & 127]), at + 2
    code = np.int64(0)
    for place in range(at + 2, at + 6):
        digit = np.int64(body[place])
        code = code * 16 + (digit - 48 if digit < 58 else (digit | 32) - 87)
    return code & 0xFFFF, at + 6


@part
def is_among(keys, first, count, key):  # type: ignore[no-untyped-def]
    for at in range(first, count):  # noqa: SIM110 - numba compiles loops, not generators
        if keys[at] == key:
            return True
    return False


@allocating_part
def repeats(keys):  # type: ignore[no-untyped-def]
    found = np.sort(keys)
    for at in range(1, len(found)):  # noqa: SIM110 - numba compiles loops, not generators
        if found[at] == found[at - 1]:
            return True
    return False


@allocating_part
def roomier(keys):  # type: ignore[no-untyped-def]
    larger = np.empty(2 * len(keys), np.uint64)
    larger[: len(keys)] = keys
    return larger


@kernel(pair(fixed_bytes, one_u64))
def inspect(body, secret):  # type: ignore[no-untyped-def]  # noqa: C901, PLR0915 - one case for each kind of byte
    """A verdict and where. Keys of all open objects lie on one stack; `base` marks where the innermost begin."""
    keys, base, in_object = np.empty(64, np.uint64), np.empty(MAX_DEPTH + 1, np.int64), np.zeros(MAX_DEPTH + 1)
    count, depth, at, key_next, containers = 0, 0, 0, False, 0
    while at < len(body):
        byte = body[at]
        if byte == _QUOTE:
            end = string_end(body, at)
            if key_next:
                key = hashed(body, at + 1, end, secret)
                if count - base[depth] < FEW and is_among(keys, base[depth], count, key):
                    return REPEATED, at
                if count == len(keys):
                    keys = roomier(keys)
                keys[count] = key
                count += 1
                key_next = False
            at = end
        elif byte in (_OPEN_OBJECT, _OPEN_LIST):
            depth += 1
            containers += 1
            if depth > MAX_DEPTH:
                return TOO_DEEP, at
            if containers > MOST_CONTAINERS:
                return TOO_MANY, at
            key_next = byte == _OPEN_OBJECT
            base[depth], in_object[depth] = count, key_next
        elif byte in (_CLOSE_OBJECT, _CLOSE_LIST) and depth > 0:
            if count - base[depth] > FEW and repeats(keys[base[depth] : count]):
                return REPEATED, at
            count = base[depth]
            depth -= 1
            key_next = False
        elif byte == _COMMA and depth > 0:
            key_next = in_object[depth] > 0
        at += 1
    return FINE, at
