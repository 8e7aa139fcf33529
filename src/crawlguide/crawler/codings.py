"""Content codings undone while a body comes in, with a bound on what they unpack to.

A few kilobytes may unpack to gigabytes, so a decoder is never asked for more than there is room for. One layer is
undone; servers have no use for two, bombs do.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


def _optional(name: str) -> Any:
    """The built-in crawler brings them along; beside a script's own client they may be missing."""
    try:
        return import_module(name)
    except ImportError:
        return None


brotli, zstd = _optional("brotli"), _optional("backports.zstd")
SMALL_BYTES = 65_536  # up to here a body may unpack as far as it likes
MOST_MEMBERS = 1_000
LARGEST_WINDOW = 23  # of Zstandard: 8 MiB, as RFC 9659 has it for the web
BROKEN: tuple[type[Exception], ...] = (
    zlib.error,
    *((brotli.error,) if brotli else ()),
    *((zstd.ZstdError,) if zstd else ()),
)


class TooLarge(Exception):
    """More than was wanted."""


class Unreadable(Exception):
    """Not what its content coding says."""


class Decoder(Protocol):
    """Undoes one coding, piece by piece."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """What `data` unpacks to; where that is more than `max_length`, at least so much of it."""


class Body:
    """A body as it comes in."""

    def __init__(self, content_encoding: str, max_bytes: int, max_ratio: int) -> None:
        self._decoder = _decoder(content_encoding)
        self._max_bytes, self._max_ratio = max_bytes, max_ratio
        self._body = bytearray()
        self._received_bytes = 0

    def add(self, piece: bytes) -> None:
        """Raises `TooLarge` or `Unreadable`."""
        self._received_bytes += len(piece)
        ratio_bytes = max(SMALL_BYTES, self._max_ratio * self._received_bytes)
        room = min(ratio_bytes, self._max_bytes) - len(self._body)
        if self._received_bytes > self._max_bytes:  # also what follows the end of a coding
            raise TooLarge(f"a body of more than {self._max_bytes} bytes")
        try:
            found = self._decoder.decompress(piece, room + 1) if self._decoder else piece
        except BROKEN as wrong:
            raise Unreadable(f"a body that is not what its content-encoding says: {wrong}") from None
        if len(found) <= room:
            self._body += found
        elif ratio_bytes < self._max_bytes:
            raise TooLarge(f"a body that unpacks to more than {self._max_ratio} times its size")
        else:
            raise TooLarge(f"a body of more than {self._max_bytes} bytes")

    def __len__(self) -> int:
        return len(self._body)

    def whole(self) -> bytes:
        """All of it. That the last bytes of a coding are missing is forgiven, as browsers do."""
        return bytes(self._body)


def _decoder(content_encoding: str) -> Decoder | None:
    """None: nothing is to be undone, also where what is named is no coding (`none`, `UTF-8`): so browsers have it."""
    named = (part.strip().lower() for part in content_encoding.split(","))
    layers = [layer for layer in named if layer not in {"", "identity"}]
    if len(layers) > 1:
        raise Unreadable(f"content-encoding {content_encoding[:60]!r}: expected one coding, got {len(layers)}")
    if not layers or layers[0] not in REGISTERED:
        return None
    made = DECODERS.get(layers[0])
    if made is None:
        raise Unreadable(f"content-encoding: expected {ACCEPTED}, got {content_encoding[:60]!r}")
    return made()


class Members:
    """What consists of one or several streams, one after the other: gzip members, Zstandard frames."""

    def __init__(self, start: Callable[[], Any], magic: bytes) -> None:
        self._start, self._magic = start, magic
        self._stream, self._left = start(), MOST_MEMBERS
        self._rest = b""  # behind a member: how the next one may begin

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        found, data, self._rest = b"", self._rest + data, b""
        while not self._stream.eof or data.startswith(self._magic):
            if self._stream.eof:
                self._next()
            found += self._stream.decompress(data, max_length - len(found))
            if len(found) >= max_length or not self._stream.eof:
                break
            data = self._stream.unused_data  # what is no member is padding
        if self._stream.eof and self._magic.startswith(data):
            self._rest = data
        return found

    def _next(self) -> None:
        self._stream, self._left = self._start(), self._left - 1
        if not self._left:
            raise Unreadable(f"a body of more than {MOST_MEMBERS} members")


class Deflate:
    """zlib's format as the standard says, or bare deflate as some servers understood it."""

    def __init__(self) -> None:
        self._head, self._stream = b"", zlib.decompressobj()

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        if self._stream.eof:
            return b""
        if len(self._head) < 2:
            self._head = data = self._head + data
            if len(data) < 2:
                return b""
            if data[0] & 0x0F != 8 or int.from_bytes(data[:2]) % 31:
                self._stream = zlib.decompressobj(wbits=-15)
        return self._stream.decompress(data, max_length)


class Brotli:
    """Its limit is a rough one: what comes may be some kilobytes more."""

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        found = bytearray()
        while len(found) < max_length and not self._stream.is_finished():
            found += self._stream.process(data, output_buffer_limit=max_length - len(found))
            data = b""
            if self._stream.can_accept_more_data():
                break
        return bytes(found)


def _gzip() -> Decoder:
    return Members(lambda: zlib.decompressobj(wbits=31), b"\x1f\x8b")


def _zstd() -> Decoder:
    bounds = {int(zstd.DecompressionParameter.window_log_max): LARGEST_WINDOW}
    return Members(lambda: zstd.ZstdDecompressor(options=bounds), b"\x28\xb5\x2f\xfd")


DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": Deflate,
    **({"br": Brotli} if brotli else {}),
    **({"zstd": _zstd} if zstd else {}),
}
REGISTERED = {*DECODERS, "br", "zstd", "compress", "x-compress", "dcb", "dcz", "aes128gcm", "exi", "pack200-gzip"}
ACCEPTED = ", ".join(name for name in DECODERS if name != "x-gzip")
