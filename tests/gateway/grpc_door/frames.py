"""HTTP/2 by hand: calls that no client of gRPC makes, such as messages without an end."""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
ACK, END_STREAM, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4
WINDOW, LARGEST_FRAME = 65_535, 16_384
SILENT_S = 0.2


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def headers(**named: str) -> bytes:
    """Without compression; `path` is `:path`."""
    usual = {":method": "POST", ":scheme": "http", ":authority": "127.0.0.1", ":path": named.pop("path")}
    more = {"te": "trailers", "content-type": "application/grpc", **named}
    pairs = [(name.encode(), text.encode()) for name, text in {**usual, **more}.items()]
    return b"".join(b"\0" + bytes((len(name),)) + name + bytes((len(text),)) + text for name, text in pairs)


@dataclass
class Line:
    """One connection. It says what it is asked to, and counts what it may send."""

    bare: socket.socket
    window: int = WINDOW
    of_stream: int = WINDOW
    more: dict[int, int] = field(default_factory=dict)  # that a stream may send beyond `of_stream`
    sent: dict[int, int] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)  # by the server
    heard: bytes = b""

    def call(self, number: int, path: str, **named: str) -> None:
        stream = 2 * number + 1
        self.bare.sendall(frame(HEADERS, END_HEADERS, stream, headers(path=path, **named)))
        self.sent[stream] = 0

    def send_almost(self, size: int, within_s: float) -> None:
        """A message of so many bytes on each stream, but for its last one, as far as the server takes them."""
        ends = time.monotonic() + within_s
        whole = b"\0" + size.to_bytes(4, "big") + bytes(size - 1)
        while time.monotonic() < ends and self._streams(len(whole)):
            said = [self._say(stream, whole) for stream in self._streams(len(whole))]
            if not self._listen(0.0 if any(said) else SILENT_S) and not any(said):
                return

    def _streams(self, size: int) -> list[int]:
        return [stream for stream, sent in self.sent.items() if sent < size and stream not in self.ended]

    def _say(self, stream: int, whole: bytes) -> int:
        sent = self.sent[stream]
        may = self.of_stream + self.more.get(stream, 0) - sent
        some = whole[sent : sent + max(0, min(may, self.window, LARGEST_FRAME))]
        if some:
            self.bare.sendall(frame(DATA, 0, stream, some))
            self.sent[stream] += len(some)
            self.window -= len(some)
        return len(some)

    def _listen(self, wait_s: float) -> bool:
        """Whether something came in."""
        self.bare.settimeout(wait_s or 0.0001)
        try:
            data = self.bare.recv(65_536)
        except TimeoutError:
            return False
        self.heard += data
        while len(self.heard) >= 9 and len(self.heard) >= 9 + (size := int.from_bytes(self.heard[:3], "big")):
            kind, flags, stream = self.heard[3], self.heard[4], int.from_bytes(self.heard[5:9], "big")
            payload, self.heard = self.heard[9 : 9 + size], self.heard[9 + size :]
            self._heed(kind, flags, stream, payload)
        self.bare.settimeout(5.0)
        return bool(data)

    def _heed(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        number = int.from_bytes(payload[:4], "big")
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                if int.from_bytes(payload[at : at + 2], "big") == INITIAL_WINDOW_SIZE:
                    self.of_stream = int.from_bytes(payload[at + 2 : at + 6], "big")
            self.bare.sendall(frame(SETTINGS, ACK, 0))
        elif kind == WINDOW_UPDATE and stream:
            self.more[stream] = self.more.get(stream, 0) + number
        elif kind == WINDOW_UPDATE:
            self.window += number
        elif kind == RESET or (kind == HEADERS and flags & END_STREAM):
            self.ended.add(stream)


@contextmanager
def line_to(port: int) -> Iterator[Line]:
    with socket.create_connection(("127.0.0.1", port), timeout=5.0) as bare:
        bare.sendall(PREFACE + frame(SETTINGS, 0, 0))
        yield Line(bare)
