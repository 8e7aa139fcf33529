"""The bytes of a file, block by block and unpacked, so that no file is ever held whole."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from contextlib import contextmanager
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


def blocks(path: Path) -> Iterator[bytes]:
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
def _opened(path: Path) -> Iterator[io.BufferedReader | gzip.GzipFile]:
    if path == STANDARD_INPUT:
        yield _unpacked(_standard_input())
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


def _most_bytes(path: Path, file: io.BufferedReader | gzip.GzipFile) -> int | None:
    """How far gzip may grow, where the packed size is known; a pipe's is not."""
    if isinstance(file, io.BufferedReader) or path == STANDARD_INPUT:
        return None
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * path.stat().st_size)
