"""How messages are written on a socket: as JSON in text frames or as MessagePack in binary ones, as was agreed on.

The client offers names in `Sec-WebSocket-Protocol`; the first that is known here is taken. Who offers none speaks JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from crawlguide.core.errors import MalformedRequest
from crawlguide.gateway import wire
from crawlguide.gateway.websocket.frames import BINARY, TEXT
from crawlguide.gateway.websocket.messages import Envelope, Id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from crawlguide.gateway.wire import Format

    Pieces = tuple[bytes | memoryview, ...]

Message = TypeVar("Message")
FEW, MANY = 0x80, 0xDE  # the first byte of a map with up to 15 entries, and of one with up to 65,535


class Codec(NamedTuple):
    """One subprotocol: its name, the frames it uses, and how messages become bytes and come of them."""

    name: str
    frame: int
    form: Format
    envelope_of: Callable[[str, bytes, bytes], Pieces]  # type, id and fields as one message

    def envelope(self, body: bytes) -> Envelope:
        """Who asks for what. What is wrong with the body beyond that is found when its message is decoded."""
        try:
            return self.form.decode(body, type=Envelope)  # type: ignore[no-any-return]  # of the type it is given
        except wire.UNREADABLE:
            self.decode(body, Envelope)
            raise MalformedRequest(f"body: expected {self.form.object_words}") from None

    def id_of(self, body: bytes) -> Id | None:
        """The id of a message with which something else is wrong, so that its sender knows which one."""
        try:
            return self.form.decode(body, type=_Named).id  # type: ignore[no-any-return]  # of the type it is given
        except wire.UNREADABLE:
            return None

    def decode(self, body: bytes, kind: type[Message]) -> Message:
        return wire.decode(body, kind, self.form)

    def encode(self, kind: str, name: Id | None, message: Any = None) -> Pieces:
        """A message: `type` and `id`, then its fields, which are encoded once and never copied but into the frame."""
        return self.envelope_of(kind, self.form.encode(name), self.form.encode({} if message is None else message))


class _Named(msgspec.Struct, frozen=True):
    id: Id | None = None


def agreed(offered: Iterable[str]) -> tuple[Codec, str | None]:
    """The codec of a socket, and what the handshake says of it: nothing where the client offers nothing we know."""
    for name in offered:
        if name in CODECS:
            return CODECS[name], name
    return JSON, None


def _in_json(kind: str, name: bytes, fields: bytes) -> Pieces:
    comma = b"," if len(fields) > 2 else b""
    return b'{"type":"%b","id":' % kind.encode(), name, comma, memoryview(fields)[1:]


def _in_message_pack(kind: str, name: bytes, fields: bytes) -> Pieces:
    """One map of what were two: only its count changes. No message has more than 65,533 fields of its own."""
    if fields[0] < MANY:
        count, start = fields[0] - FEW, 1
    else:
        count, start = int.from_bytes(fields[1:3], "big"), 3
    count += 2
    head = bytes((FEW + count,)) if count < 16 else bytes((MANY,)) + count.to_bytes(2, "big")
    return head + b"\xa4type" + _pack(kind) + b"\xa2id", name, memoryview(fields)[start:]


_pack = wire.MESSAGE_PACK.encode
JSON = Codec("crawlguide.json", TEXT, wire.JSON, _in_json)
MESSAGE_PACK = Codec("crawlguide.msgpack", BINARY, wire.MESSAGE_PACK, _in_message_pack)
CODECS = {codec.name: codec for codec in (JSON, MESSAGE_PACK)}
