"""Frames are what RFC 6455 says: the `websockets` package, which many clients use, understands the same bytes alike."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol
from websockets.utils import apply_mask

from crawlguide.gateway.websocket import frames
from crawlguide.gateway.websocket.frames import BINARY, CLOSE, MORE, PING, PONG, TEXT, Broken, Frames

MOST = 300
MASK = b"\x01\x80\xff\x5a"
Told = list[tuple[int, bytes]]


def framed(first: int, payload: bytes, masked: bool = True) -> bytes:
    """A frame as a client sends it, with whatever first byte."""
    size, mask = len(payload), 0x80 if masked else 0
    head = bytes((first, mask | size)) if size < 126 else bytes((first, mask | 126)) + size.to_bytes(2, "big")
    return head + (MASK + apply_mask(payload, MASK) if masked else payload)


def ours(chunks: list[bytes]) -> tuple[Told, int | None]:
    """What we hear, and the code with which we would close."""
    reader, heard = Frames(MOST), []
    for chunk in chunks:
        reader.feed(chunk)
        try:
            while (found := reader.take()) is not None:
                if found[0] == MORE:
                    continue
                heard.append(found)
                if found[0] == CLOSE:
                    frames.check_close(found[1])
                    return heard, None
        except Broken as wrong:
            return [one for one in heard if one[0] != CLOSE], wrong.code
    return heard, None


def theirs(chunks: list[bytes]) -> tuple[Told, int | None]:  # noqa: C901 - one case for each way to end
    """The same by the package; fragments joined and binary messages refused, as we do."""
    server, heard, parts = ServerProtocol(state=OPEN, max_size=MOST), [], bytearray()
    for chunk in chunks:
        server.receive_data(chunk)
        for event in server.events_received():
            assert isinstance(event, Frame)
            if event.opcode >= CLOSE:
                heard.append((int(event.opcode), bytes(event.data)))
                continue
            if event.opcode == Opcode.BINARY:
                return heard, frames.OTHER_KIND
            parts += event.data
            if event.fin:
                try:
                    parts.decode()
                except UnicodeDecodeError:
                    return heard, frames.NOT_UTF8
                heard.append((TEXT, bytes(parts)))
                parts.clear()
        if "incomplete fragmented message" in str(server.parser_exc):  # which the RFC allows
            return [*heard, (CLOSE, b"")], None
        if server.parser_exc is not None:
            assert server.close_sent is not None
            return heard, int(server.close_sent.code)
        if server.close_rcvd is not None:
            return heard, None
    return heard, None


def comparable(told: tuple[Told, int | None]) -> object:
    """Without the words of a goodbye."""
    return [one if one[0] != CLOSE else CLOSE for one in told[0]], told[1]


PAYLOADS = st.one_of(
    st.text(max_size=60).map(str.encode), st.binary(max_size=140), st.just(b"x" * 200), st.just(b"y" * (MOST + 1))
)
CLOSES = st.sampled_from([b"", b"\x03\xe8", b"\x03\xe8bye", b"\x03\xee", b"\x03", b"\x03\xe8\xff"])
HEADS = st.sampled_from([0x80 | TEXT] * 6 + [TEXT, MORE, 0x80 | MORE, 0x80 | PING, 0x80 | PONG, 0x80 | BINARY])
ODD = st.integers(0, 255).filter(lambda first: first & 0x0F != CLOSE)
USUAL = st.builds(framed, HEADS, PAYLOADS)
STREAMS = st.lists(
    st.one_of(
        USUAL, USUAL, USUAL, st.builds(framed, ODD, PAYLOADS), st.builds(framed, st.just(0x80 | CLOSE), CLOSES),
        st.builds(framed, HEADS, PAYLOADS, st.just(False)),
    ),
    max_size=8,
)  # fmt: skip


def is_told_alike(frame: bytes) -> bool:
    """The package counts control frames in the middle of a long message against its size; the RFC does not."""
    return frame[0] & 0x0F not in (PING, PONG) or len(frame) <= 6


@settings(max_examples=400, deadline=None)
@given(STREAMS, st.integers(1, 500))
def test_any_bytes_are_understood_as_the_websockets_package_does(stream: list[bytes], step: int) -> None:
    stream = [frame for frame in stream if is_told_alike(frame)]
    whole = b"".join(stream)
    chunks = [whole[at : at + step] for at in range(0, len(whole), step)]
    assert comparable(ours(chunks)) == comparable(theirs(stream))


def test_a_ping_between_the_parts_of_a_message_is_heard_first() -> None:
    parts = [
        framed(TEXT, b"one "),
        framed(0x80 | PING, b"there?"),
        framed(MORE, b"two "),
        framed(0x80 | MORE, b"three"),
    ]
    assert ours(parts) == ([(PING, b"there?"), (TEXT, b"one two three")], None)


def test_a_million_empty_parts_take_no_room() -> None:
    reader = Frames(MOST)
    reader.feed(framed(TEXT, b"a"))
    for _ in range(1_000):
        reader.feed(framed(MORE, b"") * 100)
        assert reader.take() is None
    assert len(reader) == 0
    reader.feed(framed(0x80 | MORE, b"b"))
    assert reader.take() == (TEXT, b"ab")


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 200_000])
def test_what_we_send_is_read_by_the_package(size: int) -> None:
    from websockets.client import ClientProtocol
    from websockets.uri import parse_uri

    client = ClientProtocol(parse_uri("ws://127.0.0.1/ws"), state=OPEN, max_size=None)
    client.receive_data(frames.message(TEXT, [b"x" * (size // 2), memoryview(b"x" * (size - size // 2))]))
    (event,) = client.events_received()
    assert isinstance(event, Frame)
    assert (event.opcode, len(event.data), event.fin) == (Opcode.TEXT, size, True)


def test_a_reason_that_is_too_long_is_cut_between_letters() -> None:
    frame = frames.closing(1009, "ü" * 100)
    assert len(frame) <= 2 + 125
    assert frame[4:].decode() == "ü" * 61


def test_many_frames_of_one_message_are_read_in_turns() -> None:
    reader, times = Frames(1_000_000), 5_000
    reader.feed(framed(TEXT, b"") + framed(MORE, b"a") * times + framed(MORE | 0x80, b"b"))
    turns = 1
    while (found := reader.take()) == (MORE, b""):
        turns += 1
    assert found == (TEXT, b"a" * times + b"b")
    assert turns == 1 + times // frames.FRAMES_AT_ONCE


def test_a_message_in_pieces_costs_as_much_as_its_bytes() -> None:
    def took(pieces: int) -> float:
        reader, piece = Frames(1 << 30), framed(MORE, b"x" * 10_000)
        reader.feed(framed(TEXT, b""))
        began = time.process_time()
        for _ in range(pieces):
            reader.feed(piece)
            assert reader.take() is None
        return time.process_time() - began

    many, few = min(took(4_000) for _ in range(3)), max(took(400) for _ in range(3))  # others use the machine, too
    assert many < 30 * max(few, 0.005)  # if pieces were copied again and again it would be a hundred times
