"""How many parts a message of protobuf has, found in its bytes before anything is built of them.

Two bytes can say "one more empty message", for which a parser takes a hundred. JSON has no such disproportion, so the
other doors do well with a bound on bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.errors import TooLarge
from crawlguide.core.kernels import fixed_bytes, i32s, kernel, one_i64, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_PARTS = 100_000
FEW_BYTES = 16_384  # what has fewer cannot have many parts
DEEPEST = 64
NUMBERS = 64  # of fields: no .proto of ours has a higher one
PLAIN, ELEMENT = -2, -1  # a field that counts for nothing; one of many texts
VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5  # how a field is written


def check_parts(data: bytes, kind: Any) -> None:
    """Raise `TooLarge` for a message of more parts than any crawler has to say. `kind` is its descriptor."""
    if len(data) > FEW_BYTES and count_parts(np.frombuffer(data, np.uint8), _fields(kind), MOST_PARTS) > MOST_PARTS:
        raise TooLarge(f"body: expected at most {MOST_PARTS} messages and texts in one message, got more")


@cache
def _fields(kind: Any) -> NDArray[np.int32]:
    """For each kind of message and number of a field: which kind of message stands there, ELEMENT, or PLAIN."""
    kinds = [kind]
    rows: list[list[int]] = []
    for one in kinds:  # which grows meanwhile
        rows.append([PLAIN] * NUMBERS)
        for field in one.fields:
            inner = field.message_type
            if inner is not None and inner not in kinds:
                kinds.append(inner)
            rows[-1][field.number] = kinds.index(inner) if inner else ELEMENT if field.is_repeated else PLAIN
    return np.array(rows, np.int32).ravel()


@part
def varint(data, at, end):  # type: ignore[no-untyped-def]
    """A number and where it ends; the end where there is none."""
    value, shift = np.int64(0), 0
    while at < end and shift < 63:
        byte = np.int64(data[at])
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    return np.int64(0), end


@kernel(one_i64(fixed_bytes, i32s, one_i64))
def count_parts(data, fields, most):  # type: ignore[no-untyped-def]  # noqa: C901, PLR0915 - one walk
    """Up to one more than `most`. What is malformed ends the walk: the parser refuses it."""
    ends, kinds = np.empty(DEEPEST, np.int64), np.zeros(DEEPEST, np.int64)
    depth, at, count = 0, 0, 0
    ends[0] = len(data)
    while count <= most:
        if at >= ends[depth]:
            if depth == 0:
                break
            depth -= 1
            continue
        tag, at = varint(data, at, ends[depth])
        number, how = tag >> 3, tag & 7
        if how == VARINT:
            _, at = varint(data, at, ends[depth])
        elif how == EIGHT:
            at += 8
        elif how == FOUR:
            at += 4
        elif how == BYTES:
            size, at = varint(data, at, ends[depth])
            if size < 0 or size > ends[depth] - at:
                break
            inner = fields[kinds[depth] * NUMBERS + number] if 0 <= number < NUMBERS else PLAIN
            count += inner != PLAIN
            if inner >= 0:
                depth += 1
                if depth == DEEPEST:
                    break
                ends[depth], kinds[depth] = at + size, inner
            else:
                at += size
        else:
            break
    return count
