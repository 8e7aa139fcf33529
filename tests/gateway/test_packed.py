"""MessagePack that JSON could not say is refused, whatever bytes come, in time and room that grow with their number."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlguide.core.errors import MalformedRequest
from crawlguide.core.messages import AskMessage, ReportMessage
from crawlguide.gateway import packed, wire
from crawlguide.gateway.strict import MAX_DEPTH

pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.decode
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=40)
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner, max_size=20)
)
FOUR_MIB = 4 * 1024 * 1024


def refusal(body: bytes) -> str:
    """What is said of it; nothing where it is let pass."""
    try:
        packed.check(body)
    except MalformedRequest as problem:
        return problem.message
    return ""


@settings(max_examples=300, deadline=None)
@given(VALUES)
@example(["x" * 70_000, "x" * 300, list(range(70_000)), {str(n): n for n in range(70_000)}])
def test_whatever_json_can_say_passes(value: Any) -> None:
    assert not refusal(pack(value))


@settings(max_examples=300, deadline=None)
@given(VALUES, st.data())
def test_what_is_cut_or_followed_by_more_is_refused(value: Any, data: st.DataObject) -> None:
    body = pack(value)
    assert "it ends amid" in refusal(body[: data.draw(st.integers(0, len(body) - 1))])
    assert "got more at byte" in refusal(body + data.draw(st.binary(min_size=1, max_size=9)))


@settings(max_examples=1_000, deadline=None)
@given(st.binary(max_size=60) | st.tuples(VALUES.map(pack), st.integers(0, 99), st.binary(max_size=3)).map(
    lambda spoilt: spoilt[0][: spoilt[1]] + spoilt[2] + spoilt[0][spoilt[1] + len(spoilt[2]) :]
))  # fmt: skip
@example(b"\xa3\xed\xa0\x80")
@example(b"\xa4\xf4\x90\x80\x80")
@example(b"\xa2\xc0\x80")
def test_what_passes_is_read_by_msgspec_and_is_json(body: bytes) -> None:
    if not refusal(body):
        assert unpack(body) == json.loads(json.dumps(unpack(body), allow_nan=False))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=8))
def test_text_is_utf8_as_python_knows_it(text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError:
        assert "UTF-8" in refusal(b"\xd9" + bytes([len(text)]) + text)
    else:
        assert not refusal(b"\xd9" + bytes([len(text)]) + text)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "it ends amid the value at byte 0"),
        (pack({"a": b"x"}), "got bytes or an extension at byte 3"),
        (pack([msgspec.msgpack.Ext(5, b"x")]), "got bytes or an extension at byte 1"),
        (b"\xd6\xff\x00\x00\x00\x00", "got bytes or an extension at byte 0"),  # a timestamp
        (pack({1: 2}), "expected text as a key, got something else at byte 1"),
        (pack([float("nan")]), "expected a finite number, got another at byte 1"),
        (pack([float("-inf")]), "expected a finite number, got another at byte 1"),
        (b"\xca\x7f\x80\x00\x00", "expected a finite number, got another at byte 0"),
        (b"\xc1", "no value begins as byte 0 does"),
        (b"\x82\xa1a\x01\xd9\x01a\x02", "the same key twice in one object, at byte 4"),
        (b"\x91" * (MAX_DEPTH + 1) + b"\x00", f"at most {MAX_DEPTH} levels"),
        (b"\xdd\xff\xff\xff\xff", "it ends amid the value at byte 0"),
        (b"\xdf\xff\xff\xff\xff", "it ends amid the value at byte 0"),
        (b"\xdb\xff\xff\xff\xffabc", "it ends amid the value at byte 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(body: bytes, words: str) -> None:
    assert words in refusal(body)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 64, 65, 300, 5_000])
def test_any_number_of_keys_is_compared(count: int) -> None:
    keys = [pack(f"k{number}") + pack({"k0": number}) for number in range(count)]
    assert not refusal(b"\xdf" + count.to_bytes(4, "big") + b"".join(keys))
    assert "twice" in refusal(b"\xdf" + (count + 1).to_bytes(4, "big") + b"".join([*keys, keys[0]]))


@pytest.mark.parametrize(
    "body",
    [
        b"\x91" * FOUR_MIB,
        b"\x81\xa1a" * (FOUR_MIB // 3),
        b"\xdd\x00\x3f\xff\xfb" + b"\xdd\xff\xff\xff\xff" * (FOUR_MIB // 5),
        b"\xdd\x00\x3f\xff\xfb" + b"\x90" * (FOUR_MIB - 5),
        b"\xdf\x00\x15\x55\x53" + b"".join(b"\xa1%c\x00" % (number % 127) for number in range(FOUR_MIB // 3 - 2)),
        b"\x81\xa1a\xdb\x00\x3f\xff\xf0" + b"\xe2\x82\xac" * (FOUR_MIB // 3),
    ],
    ids=["lists in lists", "maps in maps", "lies about length", "empty lists", "the same keys", "cut text"],
)
def test_four_hostile_mebibytes_hold_neither_the_loop_nor_the_memory(body: bytes) -> None:
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(MalformedRequest):
        wire.decode(body, AskMessage, wire.MESSAGE_PACK)
    took, (_, most) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert took < 0.5, took
    assert most < 32 * FOUR_MIB, most


MISTAKES: list[tuple[type, Any]] = [
    (AskMessage, {}), (AskMessage, []), (AskMessage, 5), (AskMessage, None), (AskMessage, "x"),
    (AskMessage, {"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": "x"}}),
    (AskMessage, {"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 1.0}}),
    (AskMessage, {"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 2**63}}),
    (AskMessage, {"mcp_version": "2025-11", "crawler_id": "", "budget": {"max_urls": 1}}),
    (AskMessage, {"mcp_version": "2025-11", "crawler_id": "c", "buget": {"max_urls": 1}}),
    (ReportMessage, {"mcp_version": "2025-11", "crawler_id": "c", "fetches": [{"url": "https://a.example/"}, 7]}),
    (ReportMessage, {"mcp_version": "2025-11", "crawler_id": "c", "fetches": [{"url": 5}]}),
    (ReportMessage, {"mcp_version": "2025-11", "crawler_id": "c", "fetches": [{"url": "u", "outlinks": [{}]}]}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "said"), MISTAKES)
def test_a_mistake_is_told_in_the_same_words_as_in_json(kind: type, said: Any) -> None:
    with pytest.raises(MalformedRequest) as in_json:
        wire.decode(json.dumps(said).encode(), kind)
    with pytest.raises(MalformedRequest) as in_pack:
        wire.decode(pack(said), kind, wire.MESSAGE_PACK)
    assert (in_pack.value.message, in_pack.value.field) == (in_json.value.message, in_json.value.field)
