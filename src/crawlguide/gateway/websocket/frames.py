"""WebSocket frames (RFC 6455) as a server reads and writes them: pulled one at a time, so that a reader can pause.

The `websockets` package parses whatever has come in at once; here the next message is parsed when somebody has time
for it. A test holds that both understand the same of the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from websockets.exceptions import ProtocolError
from websockets.frames import Close

try:
    from websockets.speedups import apply_mask
except ImportError:
    from websockets.utils import apply_mask

if TYPE_CHECKING:
    from collections.abc import Iterable

    Piece = bytes | memoryview

MORE, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NAMES = {TEXT: "text", BINARY: "binary"}
LAST, MASKED = 0x80, 0x80
GOING_AWAY, BAD_FRAME, OTHER_KIND, NOT_UTF8, REFUSED, TOO_BIG = 1001, 1002, 1003, 1007, 1008, 1009
TRY_AGAIN_LATER = 1013
FRAMES_AT_ONCE = 1_000
MOST_IN_CONTROL = 125
MOST_IN_REASON = MOST_IN_CONTROL - 2


class Broken(Exception):
    """The other side broke the rules; `code` is what the socket is closed with."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Frames:
    """Bytes in, whole messages out. Of a message in many frames only its content is held, however many there are.

    Messages are all of one `kind`, TEXT or BINARY.
    """

    __slots__ = ("_bytes", "_message", "_most", "kind")

    def __init__(self, most_bytes: int, kind: int = TEXT) -> None:
        self._most, self.kind = most_bytes, kind
        self._bytes = bytearray()
        self._message: bytearray | None = None  # what came so far of one that comes in several frames

    def __len__(self) -> int:
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def clear(self) -> None:
        self._bytes.clear()

    def take(self) -> tuple[int, bytes] | None:
        """The next message or control frame, or None where it has not come whole. Raises `Broken`.

        MORE where a message comes in so many frames that others should have their turn before the rest is read.
        """
        for _ in range(FRAMES_AT_ONCE):
            frame = self._frame()
            if frame is None:
                return None
            first, payload = frame
            kind = first & 0x0F
            if kind >= CLOSE:
                return kind, payload
            if kind == self.kind and first & LAST:
                return kind, self._checked(payload)
            if self._message is None:
                self._message = bytearray()
            self._message += payload
            if first & LAST:
                whole, self._message = bytes(self._message), None
                return self.kind, self._checked(whole)
        return MORE, b""

    def _checked(self, payload: bytes) -> bytes:
        if self.kind == TEXT:
            _check_utf8(payload)
        return payload

    def _frame(self) -> tuple[int, bytes] | None:
        """The next whole frame, its payload unmasked. What is wrong with it is known by its head already."""
        held = self._bytes
        if len(held) < 2:
            return None
        first, second = held[0], held[1]
        size, start = second & 0x7F, 6
        if size > MOST_IN_CONTROL:
            start += 2 if size == 126 else 8
            if len(held) < start - 4:
                return None
            size = int.from_bytes(held[2 : start - 4], "big")
        self._check(first, second, size)
        end = start + size
        if len(held) < end:
            return None
        payload = apply_mask(held[start:end], held[start - 4 : start])
        del held[:end]
        return first, payload

    def _check(self, first: int, second: int, size: int) -> None:
        kind = first & 0x0F
        if kind not in (MORE, TEXT, BINARY, CLOSE, PING, PONG):
            raise Broken(BAD_FRAME, f"opcode {kind} is not one of RFC 6455")
        if not second & MASKED:
            raise Broken(BAD_FRAME, "a client masks its frames")
        if kind < CLOSE and size + len(self._message or b"") > self._most:
            raise Broken(TOO_BIG, f"expected at most {self._most} bytes")
        if first & 0x70:
            raise Broken(BAD_FRAME, "no extension was agreed on")
        if kind < CLOSE:
            self._check_message(kind)
        elif size > MOST_IN_CONTROL or not first & LAST:
            raise Broken(BAD_FRAME, f"a control frame is whole and of at most {MOST_IN_CONTROL} bytes")

    def _check_message(self, kind: int) -> None:
        if (kind == MORE) != (self._message is not None):
            raise Broken(BAD_FRAME, "a message ends before another begins")
        if kind not in (MORE, self.kind):
            raise Broken(OTHER_KIND, f"expected {NAMES[self.kind]} frames, got a {NAMES[kind]} one")


def message(kind: int, pieces: Iterable[Piece]) -> bytes:
    """A message as one frame."""
    pieces = tuple(pieces)
    return b"".join((_head(kind, sum(map(len, pieces))), *pieces))


def control(kind: int, payload: bytes) -> bytes:
    return _head(kind, len(payload)) + payload


def closing(code: int, reason: str) -> bytes:
    """A close frame; of a long reason only as much as fits."""
    words = reason.encode()[:MOST_IN_REASON].decode(errors="ignore")
    return control(CLOSE, Close(code, words).serialize())


def check_close(payload: bytes) -> None:
    """Raises `Broken` for a close frame that says what none may say."""
    try:
        Close.parse(payload)
    except ProtocolError as wrong:
        raise Broken(BAD_FRAME, str(wrong)) from None
    except UnicodeDecodeError:
        raise Broken(NOT_UTF8, "the reason is not UTF-8") from None


def _head(kind: int, size: int) -> bytes:
    if size <= MOST_IN_CONTROL:
        return bytes((LAST | kind, size))
    if size < 65_536:
        return bytes((LAST | kind, 126)) + size.to_bytes(2, "big")
    return bytes((LAST | kind, 127)) + size.to_bytes(8, "big")


def _check_utf8(payload: bytes) -> None:
    try:
        payload.decode()
    except UnicodeDecodeError:
        raise Broken(NOT_UTF8, "a text frame is UTF-8") from None
