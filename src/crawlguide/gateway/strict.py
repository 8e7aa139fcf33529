"""What JSON parsers let pass and we do not: repeated keys and deep nesting, found in one look at the bytes.

A key is remembered by a hash of its bytes. Keys with escapes are compared after decoding, by the slow way round.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.kernels import Bytes, kernel, pair

MAX_DEPTH = 32
FINE, TOO_DEEP, REPEATED, ESCAPED = 0, 1, 2, 3
_QUOTE, _BACKSLASH, _COLON, _COMMA = 34, 92, 58, 44
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_LIST, _CLOSE_LIST = 123, 125, 91, 93


def check(body: bytes) -> None:
    """Raise `MalformedRequest` if the body nests too deep or repeats a key. It need not be JSON at all."""
    verdict, at = inspect(np.frombuffer(body, np.uint8))
    if verdict == TOO_DEEP:
        raise MalformedRequest(f"body: expected at most {MAX_DEPTH} levels, got more at byte {at}")
    if verdict == REPEATED:
        raise MalformedRequest(f"body: the same key twice in one object, the second ending at byte {at}")
    if verdict == ESCAPED:
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


@kernel(pair(Bytes))
def inspect(body):  # type: ignore[no-untyped-def]
    """A verdict and where. Open objects' keys lie on one stack; `base` marks where the innermost begin."""
    keys = np.empty(64, np.uint64)
    base = np.empty(MAX_DEPTH + 1, np.int64)
    in_object = np.empty(MAX_DEPTH + 1, np.bool_)
    count, depth, at = 0, 0, 0
    key_next = False
    while at < len(body):
        byte = body[at]
        if byte == _QUOTE:
            start, escaped = at + 1, False
            at += 1
            while at < len(body) and body[at] != _QUOTE:
                if body[at] == _BACKSLASH:
                    escaped = True
                    at += 1
                at += 1
            if key_next:
                if escaped:
                    return ESCAPED, at
                hashed = np.uint64(14695981039346656037)
                for place in range(start, min(at, len(body))):
                    hashed = (hashed ^ np.uint64(body[place])) * np.uint64(1099511628211)
                for other in range(base[depth], count):
                    if keys[other] == hashed:
                        return REPEATED, at
                if count == len(keys):
                    wider = np.empty(2 * len(keys), np.uint64)
                    wider[:count] = keys
                    keys = wider
                keys[count] = hashed
                count += 1
                key_next = False
        elif byte in (_OPEN_OBJECT, _OPEN_LIST):
            depth += 1
            if depth > MAX_DEPTH:
                return TOO_DEEP, at
            base[depth] = count
            in_object[depth] = byte == _OPEN_OBJECT
            key_next = byte == _OPEN_OBJECT
        elif byte in (_CLOSE_OBJECT, _CLOSE_LIST) and depth > 0:
            count = base[depth]
            depth -= 1
            key_next = False
        elif byte == _COMMA and depth > 0:
            key_next = in_object[depth]
        at += 1
    return FINE, at
