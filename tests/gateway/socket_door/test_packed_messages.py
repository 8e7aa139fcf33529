"""Sockets on which MessagePack was agreed on: how it is, and what becomes of bytes that are none."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gateway.conftest import Served
from tests.gateway.socket_door.common import PACKED, TEXT, Message, ask, opened, tell
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from crawlguide.core.messages import ErrorBody, ErrorMessage
from crawlguide.gateway.websocket.codecs import CODECS

pack = msgspec.msgpack.encode
CUT = pack({"type": "ping", "id": 7})[:-1]


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        ([], None), ([TEXT], TEXT), ([PACKED], PACKED), ([PACKED, TEXT], PACKED), ([TEXT, PACKED], TEXT),
        (["graphql-ws", PACKED], PACKED), (["graphql-ws"], None), ([PACKED.upper()], None),
    ],
)  # fmt: skip
async def test_the_first_known_name_that_is_offered_is_agreed_on(
    served: Served, offered: list[str], agreed: str | None
) -> None:
    names = [Subprotocol(name) for name in offered] or None
    async with connect(f"ws://127.0.0.1:{served.port}/ws", subprotocols=names, proxy=None) as socket:
        assert socket.subprotocol == agreed
        await socket.send(pack({"type": "ping", "id": 1}) if agreed == PACKED else '{"type": "ping", "id": 1}')
        heard = await socket.recv()
        said = msgspec.msgpack.decode(heard) if isinstance(heard, bytes) else json.loads(heard)
        assert said == {"type": "pong", "id": 1}
        assert isinstance(heard, bytes) == (agreed == PACKED)


async def test_a_text_frame_closes_with_1003_where_binary_ones_were_agreed_on(served: Served) -> None:
    async with opened(served, PACKED) as line:
        await line.socket.send('{"type": "ping", "id": 1}')
        assert await line.closed_with() == 1003


@pytest.mark.parametrize(
    ("body", "name", "words"),
    [
        (b"", None, "a MessagePack map, got nothing"),
        (b"\xc0", None, "got null"), (pack([]), None, "expected a JSON object, got []"),
        (CUT, None, "it ends amid"), (pack({"type": "ping", "id": 7}) + b"\x00", None, "got more"),
        (pack({"type": "next", "id": 7, "a": b"x"}), 7, "got bytes or an extension"),
        (pack({"type": "next", "id": 7, "a": msgspec.msgpack.Ext(1, b"")}), 7, "got bytes or an extension"),
        (pack({"type": "next", "id": 7, "a": float("nan")}), 7, "expected a finite number"),
        (pack({"type": "ping", "id": 7, "a": {1: 2}}), 7, "expected text as a key"),
        (pack({"type": "ping", "id": b"7"}), None, "got bytes or an extension"),
        (b"\x84\xa4type\xa4next\xa2id\x07\xa1a\x01\xa1a\x01", 7, "the same key twice"),
        (b"\x83\xa4type\xa4next\xa2id\x07\xa1a" + b"\x91" * 40 + b"\x00", 7, "at most 32 levels"),
        (b"\x83\xa4type\xa4next\xa2id\x07\xa1a" + b"\x91" * 400_000 + b"\x00", None, "at most 32 levels"),
        (b"\x83\xa4type\xa4next\xa2id\x07\xa1a\xdd\xff\xff\xff\xff", None, "it ends amid"),
        (b"\x83\xa4type\xa4next\xa2id\x07\xa1a\xa1\xff", 7, "expected text in UTF-8"),
        (pack({"type": "dance", "id": 7}), 7, "type: expected one of next"),
        (pack({"type": "next", "id": 2**63}), None, "id: expected"),
        (pack({"type": "next", "id": 7, **ask("x", -1)}), 7, "budget.max_urls: expected an integer"),
        (pack({"type": "report", "id": 7, **tell("x"), "fetches": [5]}), 7, "fetches[0]: expected"),
    ],
)  # fmt: skip
async def test_what_is_malformed_is_said_and_the_socket_goes_on(
    served: Served, body: bytes, name: object, words: str
) -> None:
    async with opened(served, PACKED) as line:
        await line.socket.send(body)
        answer = await line.hear()
        assert (answer["type"], answer["id"], answer["error"]["code"]) == ("error", name, "malformed_request")
        assert words in answer["error"]["message"]
        assert (await line.call("ping", 8))["type"] == "pong"


MESSAGES: list[Message] = [
    {"type": "next", "id": 1, **ask("hostile", 3, context={"seed_urls": ["https://a.example/"]})},
    {"type": "report", "id": "r", **tell("hostile", "https://a.example/")},
    {"type": "stats", "id": 2, "every_s": 0.5},
    {"type": "subscribe", "id": 3, "crawler_id": "c", "crawl_id": "hostile", "budget": {"max_urls": 2}},
]
REFUSALS = {"malformed_request", "unsupported_version", "conflict", "not_found"}
SPOILT = st.tuples(st.sampled_from(MESSAGES).map(pack), st.integers(0, 200), st.binary(max_size=6)).map(
    lambda made: made[0][: made[1]] + made[2] + made[0][made[1] + len(made[2]) :]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(st.binary(max_size=40) | SPOILT, min_size=1, max_size=20))
async def test_whatever_bytes_come_the_socket_answers_the_next_ping(served: Served, bodies: list[bytes]) -> None:
    async with opened(served, PACKED) as line:
        for body in bodies:
            await line.socket.send(body)
        await line.say("ping", "last")
        while (heard := await line.hear())["id"] != "last":
            assert heard["type"] != "error" or heard["error"]["code"] in REFUSALS


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("fields", [0, 1, 13, 14, 15, 16, 300])
def test_type_and_id_come_before_any_number_of_fields(codec: str, fields: int) -> None:
    wire, more = CODECS[codec], {f"f{number}": number for number in range(fields)}
    body = b"".join(wire.encode("next", "name", more))
    assert wire.form.decode_any(body) == {"type": "next", "id": "name", **more}
    assert wire.id_of(body) == "name"


def test_an_error_is_the_same_message_however_it_is_written() -> None:
    problem: Any = ErrorMessage(ErrorBody("rate_limited", "later", None, 1.5))
    said = [codec.form.decode_any(b"".join(codec.encode("error", None, problem))) for codec in CODECS.values()]
    assert said[0] == said[1]
    assert said[0]["error"]["retry_after_s"] == 1.5
