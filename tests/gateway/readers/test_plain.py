"""Pickles and marshalled bytes are read as plain data or refused; what is hostile costs little."""

from __future__ import annotations

import marshal
import pickle
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from crawlguide.core.errors import DataError
from crawlguide.gateway.readers import _marshalled, _pickled

if TYPE_CHECKING:
    from collections.abc import Callable

SCALARS = (
    some.none() | some.booleans() | some.integers(-(2**80), 2**80) | some.floats(allow_nan=False) | some.text()
    | some.binary()
)  # fmt: skip
VALUES = some.recursive(
    SCALARS,
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner) | some.tuples(inner, inner),
    max_leaves=20,
)
READERS = pytest.mark.parametrize("plain", [_pickled.plain, _marshalled.plain], ids=["pickle", "marshal"])
WIDE = b"\x80\x04" + b"]\x94" + b"".join(b"](h%ch%ce\x94" % (level, level) for level in range(60)) + b"."


@pytest.mark.parametrize("protocol", [3, 4, 5])
@given(value=VALUES)
def test_a_pickle_of_plain_data_is_read_as_it_was_written(protocol: int, value: object) -> None:
    assert _pickled.plain(pickle.dumps(value, protocol=protocol)) == value


@given(value=VALUES)
def test_marshalled_plain_data_is_read_as_it_was_written(value: Any) -> None:
    assert _marshalled.plain(marshal.dumps(value)) == value


@READERS
@given(content=some.binary(max_size=200))
def test_any_bytes_are_read_or_refused(plain: Callable[[bytes], object], content: bytes) -> None:
    for start in (b"", b"\x80\x04", b"\x80\x04}(", b"\xfb"):
        try:
            plain(start + content)
        except DataError:
            continue


@given(value=VALUES, place=some.integers(0, 1_000), byte=some.integers(0, 255))
def test_one_wrong_byte_is_read_or_refused(value: Any, place: int, byte: int) -> None:
    for plain, write in ((_pickled.plain, pickle.dumps), (_marshalled.plain, marshal.dumps)):
        content = bytearray(write(value))
        content[place % len(content)] = byte
        try:
            plain(bytes(content))
        except DataError:
            continue


def test_sets_are_lists_and_only_keys_that_are_text_are_kept() -> None:
    value = {"set": {1}, "frozen": frozenset([2]), 3: "number", (4,): "tuple", b"5": "bytes"}
    assert _pickled.plain(pickle.dumps(value, protocol=4)) == {"set": [1], "frozen": [2]}
    assert _marshalled.plain(marshal.dumps(value)) == {"set": [1], "frozen": [2]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x80\x04", "malformed"),
        (b"\x80\x04.", "malformed"),
        (b"\x80\x04h\x07.", "malformed"),
        (b"\x80\x04Nt.", "malformed"),
        (b"\x80\x04Na.", "malformed"),
        (b"\x80\x04N\x85a.", "malformed"),
        (b"cos\nsystem\n.", "expected plain data, got GLOBAL"),
        (b"\x80\x04\x82\x01.", "expected plain data, got EXT1"),
        (b"\x80\x04Nb.", "expected plain data, got BUILD"),
        (b"\x80\x04NNR.", "expected plain data, got REDUCE"),
        (b"\x80\x04X\xff\xff\xff\xff.", "expected 4294967295 more bytes, got 1"),
        (b"\x80\x04\x8e" + b"\xff" * 8 + b".", "malformed"),
    ],
)
def test_a_pickle_that_is_wrong_is_refused_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        _pickled.plain(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"(",
        b"[\xff\xff\xff\x7f",
        b"s\xff\xff\xff\xff",
        b"r\x00\x00\x00\x00",
        b"l\xff\xff\xff\x7f",
        b"[\x01\0\0\0" * 500,
    ],
)
def test_marshalled_bytes_that_are_wrong_are_refused(content: bytes) -> None:
    with pytest.raises(DataError, match="marshal: malformed"):
        _marshalled.plain(content)


def test_marshalled_code_is_refused() -> None:
    with pytest.raises(DataError, match="expected plain data, got type 0x"):
        _marshalled.plain(marshal.dumps(compile("1", "", "eval")))


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04N" + b"r\xff\xff\xff\x7f" + b".",  # a memo of which only the last of 2**31 places is used
        b"\x80\x04})" + b"\x85" * 500_000 + b"Ns.",  # a key whose hash would overflow the stack
        WIDE,  # sixty lists that would be 2**60 long when written out
    ],
    ids=["memo", "deep key", "shared lists"],
)
def test_a_pickle_that_would_bring_down_others_costs_little(content: bytes) -> None:
    started = time.monotonic()
    value: Any = _pickled.plain(content)
    assert not value or len(value) == 2
    assert time.monotonic() - started < 10
