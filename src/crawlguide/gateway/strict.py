"""What JSON parsers let pass and we do not: repeated keys and deep nesting, found in one look at the bytes.

A key is remembered by a hash of its bytes. Bodies with escaped keys or very many keys take the slow way round.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.kernels import fixed_bytes, kernel, pair, part

MAX_DEPTH = 32
MAX_KEYS = 256  # of all open objects together; every new key is compared with those of its object
FINE, TOO_DEEP, REPEATED, LOOK_CLOSELY = 0, 1, 2, 3
_QUOTE, _BACKSLASH, _COMMA = 34, 92, 44
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_LIST, _CLOSE_LIST = 123, 125, 91, 93


def check(body: bytes) -> None:
    """Raise `MalformedRequest` if the body nests too deep or repeats a key. It need not be JSON at all."""
    verdict, at = inspect(np.frombuffer(body, np.uint8))
    if verdict == TOO_DEEP:
        raise MalformedRequest(f"body: expected at most {MAX_DEPTH} levels, got more at byte {at}")
    if verdict == REPEATED:
        raise MalformedRequest(f"body: the same key twice in one object, the second at byte {at}")
    if verdict == LOOK_CLOSELY:
        _check_slowly(body)


def _check_slowly(body: bytes) -> None:
    try:
        json.loads(body, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as wrong:
        if isinstance(wrong, MalformedRequest):
            raise
        return  # not JSON: whoever decodes it says so, and says where


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise RepeatedKey("body: the same key twice in one object")
    return found


class RepeatedKey(MalformedRequest, ValueError):
    """So that the JSON parser lets it through."""


@part
def string_end(body, at):  # type: ignore[no-untyped-def]
    """Where the string that opens at `at` closes, and whether it holds an escape."""
    escaped = False
    at += 1
    while at < len(body) and body[at] != _QUOTE:
        if body[at] == _BACKSLASH:
            escaped = True
            at += 1
        at += 1
    return at, escaped


@part
def hashed(body, start, end):  # type: ignore[no-untyped-def]
    """FNV-1a of a key's bytes."""
    value = np.uint64(14695981039346656037)
    for at in range(start, min(end, len(body))):
        value = (value ^ np.uint64(body[at])) * np.uint64(1099511628211)
    return value


@part
def repeats(keys, first, count, key):  # type: ignore[no-untyped-def]
    for at in range(first, count):  # noqa: SIM110 - numba compiles loops, not generators
        if keys[at] == key:
            return True
    return False


@kernel(pair(fixed_bytes))
def inspect(body):  # type: ignore[no-untyped-def]  # noqa: C901 - one case for each kind of byte
    """A verdict and where. Keys of all open objects lie on one stack; `base` marks where the innermost begin."""
    keys, base, in_object = np.empty(MAX_KEYS, np.uint64), np.empty(MAX_DEPTH + 1, np.int64), np.zeros(MAX_DEPTH + 1)
    count, depth, at, key_next, closely = 0, 0, 0, False, False
    while at < len(body):
        byte = body[at]
        if byte == _QUOTE:
            end, escaped = string_end(body, at)
            if key_next:
                key = hashed(body, at + 1, end)
                if escaped or count == MAX_KEYS:
                    closely = True
                else:
                    if repeats(keys, base[depth], count, key):
                        return REPEATED, at
                    keys[count] = key
                    count += 1
                key_next = False
            at = end
        elif byte in (_OPEN_OBJECT, _OPEN_LIST):
            depth += 1
            if depth > MAX_DEPTH:
                return TOO_DEEP, at
            key_next = byte == _OPEN_OBJECT
            base[depth], in_object[depth] = count, key_next
        elif byte in (_CLOSE_OBJECT, _CLOSE_LIST) and depth > 0:
            count = base[depth]
            depth -= 1
            key_next = False
        elif byte == _COMMA and depth > 0:
            key_next = in_object[depth] > 0
        at += 1
    return (LOOK_CLOSELY if closely else FINE), at
