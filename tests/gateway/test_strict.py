"""Repeated keys and deep nesting are found in any JSON, in time that grows with its length."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlguide.core.definition import Definition
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.messages import AskMessage, ReportMessage, SeedsMessage
from crawlguide.gateway import strict, wire

KEYS = st.text(max_size=3) | st.sampled_from(["a", "ä", "\U0001f600", '"', "\\", "/", "\b\f\n\r\t", "\ud800"])


def escaped(text: str, how: int) -> str:
    """A string of JSON, with none, some or all of its characters as escapes."""
    if how < 2:
        return json.dumps(text, ensure_ascii=how == 1)
    units = [bytes(pair) for pair in zip(*[iter(text.encode("utf-16-be", "surrogatepass"))] * 2, strict=True)]
    return '"' + "".join(f"\\u{unit.hex()}" for unit in units) + '"'


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(KEYS, st.integers(0, 2)), max_size=40))
@example([("a", 0), ("a", 2)])
@example([("\U0001f600", 0), ("\U0001f600", 1)])
@example([(str(number), 0) for number in range(40)] + [("7", 2)])
def test_a_key_is_the_same_however_it_is_written(keys: list[tuple[str, int]]) -> None:
    body = "{" + ",".join(f"{escaped(key, how)}:0" for key, how in keys) + "}"
    names = [key for key, _ in keys]
    assert refused(body.encode(errors="surrogatepass")) == (len(set(names)) < len(names))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.text('{}[]",:\\u0a', max_size=60).map(str.encode))
def test_whatever_is_not_json_is_looked_at_without_harm(body: bytes) -> None:
    refused(body)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 64, 65, 300, 5_000])
def test_any_number_of_keys_is_compared(count: int) -> None:
    keys = [f'"k{number}":{{"k0":{number}}}' for number in range(count)]
    assert not refused(("{" + ",".join(keys) + "}").encode())
    assert refused(("{" + ",".join([*keys, '"k0":0']) + "}").encode())
    assert refused(('[{"a":{' + ",".join(keys) + "}},{" + ",".join([*keys, keys[-1]]) + "}]").encode())


def refused(body: bytes) -> bool:
    try:
        strict.check(body)
    except MalformedRequest:
        return True
    return False


def test_of_very_many_wrong_values_one_is_shown_if_it_comes_early() -> None:
    def said(place: int) -> str:
        features: dict[str, Any] = {f"u{number}": {"a": 1.0} for number in range(20_000)}
        features[f"u{place}"] = {"a": []}
        asked = {"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 1}}
        with pytest.raises(MalformedRequest) as wrong:
            wire.convert(asked | {"context": {"external_features": features}}, AskMessage)
        return wrong.value.message

    assert said(5).endswith("got []")
    assert said(19_999).endswith("got something else")


def test_a_very_long_message_is_not_read_again_to_show_what_came() -> None:
    def said(length: int) -> str:
        body = json.dumps({"mcp_version": "2025-11", "crawler_id": 7, "crawl_id": "x" * length}).encode()
        with pytest.raises(MalformedRequest) as wrong:
            wire.decode(body, AskMessage)
        assert wrong.value.field == "crawler_id"
        return wrong.value.message

    assert said(10).endswith("got 7")
    assert said(wire.EXPLAINED_BYTES).endswith("got something else")


EXCESS = ["[]", "{}", "[[[[{}]]]]", '{"a":[{}]}']


@pytest.mark.parametrize("part", EXCESS)
def test_more_lists_and_objects_than_any_message_needs_are_refused_before_they_are_made(part: str) -> None:
    """Two million of them, in metadata that may hold anything, kept everybody waiting for a second."""
    within = sum(map(part.count, "[{"))
    values = (strict.MOST_CONTAINERS - 6) // within

    def body(count: int) -> bytes:
        metadata = '{"a": [' + ",".join([part] * count) + "]}"
        seed = '{"url": "https://a.example/", "metadata": ' + metadata + "}"
        return ('{"urls": [' + seed + "]}").encode()

    seeds = wire.decode(body(values), SeedsMessage)
    assert wire.decode(msgspec.msgpack.encode(seeds), SeedsMessage, wire.MESSAGE_PACK) == seeds
    with pytest.raises(MalformedRequest, match="expected at most 400000 lists and objects, got more at byte"):
        wire.decode(body(values + 9), SeedsMessage)
    packed = msgspec.msgpack.encode(msgspec.json.decode(body(values + 9)))
    with pytest.raises(MalformedRequest, match="expected at most 400000 lists and objects, got more at byte"):
        wire.decode(packed, SeedsMessage, wire.MESSAGE_PACK)


def test_a_message_may_be_full_of_links_without_words() -> None:
    links = b",".join([b'{"url":""}'] * 380_000)
    start = b'{"mcp_version":"2025-11","crawler_id":"c","fetches":[{"url":"https://a.example/","outlinks":['
    assert 4_170_000 < len(start + links) < 4 * 1024 * 1024
    assert wire.decode(start + links + b"]}]}", ReportMessage)


def test_a_very_long_name_is_not_sent_back_whole() -> None:
    with pytest.raises(MalformedRequest) as wrong:
        wire.decode(json.dumps({"q" * 1_000_000: 1}).encode(), Definition)
    assert len(wrong.value.message) < 1_000
    assert len(wrong.value.field or "") < 200
