"""The bytes of a file, block by block and unpacked, so that no file is ever held whole."""

from __future__ import annotations

import gzip
import io
import struct
import sys
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crawlguide.core.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDARD_INPUT = Path("-")
BLOCK_BYTES = 64 * 1024
MAX_RATIO = 100
ALWAYS_ALLOWED_BYTES = 10 * 1024 * 1024  # a small file may be as repetitive as it likes

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Held:
    """Bytes that are in memory already, read as if they were a file."""

    name: str
    content: bytes

    def __str__(self) -> str:
        return self.name


def blocks(path: Path | Held) -> Iterator[bytes]:
    """What the file holds, with one layer of gzip taken off; `-` is the standard input.

    Raises `DataError` with file and position for what cannot be read or unpacked, and for a gzip bomb.
    """
    position = 0
    try:
        with _opened(path) as file:
            most = _most_bytes(path, file)
            while block := file.read1(BLOCK_BYTES):
                position += len(block)
                if most is not None and position > most:
                    raise DataError(f"{path}: byte {most}: expected gzip of at most {MAX_RATIO}:1; unpack it yourself")
                yield block
    except (OSError, EOFError, zlib.error) as wrong:
        raise DataError(f"{path}: byte {position}: cannot be read: {wrong}") from wrong


@contextmanager
def _opened(path: Path | Held) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    if path == STANDARD_INPUT:
        yield _unpacked(_standard_input())
        return
    if isinstance(path, Held):
        yield _unpacked(io.BufferedReader(io.BytesIO(path.content)))
        return
    with path.open("rb") as file:
        yield _unpacked(file)


def _standard_input() -> io.BufferedReader:
    """It stays open. Whoever has put something else in its place may have put something that cannot be peeked at."""
    given = sys.stdin.buffer
    return given if isinstance(given, io.BufferedReader) else io.BufferedReader(io.BytesIO(given.read()))


def _unpacked(file: io.BufferedReader) -> io.BufferedReader | gzip.GzipFile:
    """Told by the bytes, not by the name: servers and people rename files."""
    return gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == _GZIP else file


def _most_bytes(path: Path | Held, file: io.BufferedReader | gzip.GzipFile) -> int | None:
    """How far gzip may grow, where the packed size is known; a pipe's is not."""
    if isinstance(file, io.BufferedReader) or path == STANDARD_INPUT:
        return None
    packed = len(path.content) if isinstance(path, Held) else path.stat().st_size
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * packed)


# Bytes of a stranger, taken from the front: never beyond their end, and nothing is set aside for a size they claim.


@dataclass
class Cursor:
    """What is left to read. Everything raises `ValueError` where the bytes end too early or are not UTF-8."""

    content: bytes
    position: int = 0

    def taken(self, size: int) -> bytes:
        start, end = self.position, self.position + size
        if not start <= end <= len(self.content):
            raise ValueError(f"byte {start}: expected {size} more bytes, got {len(self.content) - start}")
        self.position = end
        return self.content[start:end]

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.taken(size), "little")

    def signed(self, size: int) -> int:
        return int.from_bytes(self.taken(size), "little", signed=True)

    def double(self, form: str) -> float:
        return float(struct.unpack(form, self.taken(8))[0])

    def run(self, size_of_size: int) -> bytes:
        """Bytes after their own number."""
        return self.taken(self.unsigned(size_of_size))

    def text(self, size_of_size: int) -> str:
        return self.run(size_of_size).decode()
