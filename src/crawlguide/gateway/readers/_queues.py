"""What waits in a disk queue of queuelib 1.10, read without changing it: its own classes write as soon as they open.

    LIFO, a file:    number of records, then for each: the record, its size         (numbers: 4 bytes, big-endian)
    FIFO, a folder:  q00000, q00001, ... with for each record: its size, the record; info.json says what was taken

A crawl that was killed leaves numbers that are out of date, or no info.json. So a file's own end counts, not the number
of records written at its start; and without info.json all of a queue counts as waiting, fetched or not.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

from crawlguide.gateway.readers import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

SIZE_BYTES = 4
MAX_RECORD_BYTES = 1024 * 1024
MAX_INFO_BYTES = 64 * 1024

_DAMAGED = "the queue is damaged here (was the crawl killed?); nothing beyond this can be found"
_TOO_LONG = f"expected a request of at most {MAX_RECORD_BYTES} bytes, got more"
_CHUNK = re.compile(r"q([0-9]{5,15})")
_SQLITE = b"SQLite format 3\x00"
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


@dataclass(frozen=True)
class Record:
    """The bytes of one request, and where they stand."""

    where: str
    content: bytes


class Info(msgspec.Struct, frozen=True):
    """Up to where a FIFO queue was taken: the number of the chunk, records taken from it, and bytes."""

    tail: tuple[_Count, _Count, _Count] = (0, 0, 0)


def records(queue: Path, name: str) -> Iterator[Record | Skipped]:
    """What waits in the queue, the next to be taken first."""
    found = _first_in(queue) if queue.is_dir() else _last_in(queue)
    try:
        for number, content in enumerate(found, 1):
            where = f"{name}, entry {number}"
            yield Record(where, content) if isinstance(content, bytes) else Skipped(where, content)
    except OSError as wrong:
        yield Skipped(name, f"cannot be read: {wrong.strerror}")


def _last_in(path: Path) -> Iterator[bytes | str]:
    """From the end to the start: each record, or why there is none."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) == _SQLITE:
            yield "expected a disk queue, got an SQLite queue, which is not read here"
            return
        end = file.seek(0, os.SEEK_END)
        if end < SIZE_BYTES:
            yield _DAMAGED
        while end > SIZE_BYTES:
            end, found = _before(file, end)
            yield found


def _before(file: BinaryIO, end: int) -> tuple[int, bytes | str]:
    """Where the record that ends here starts, and the record. Damage starts at 0: there is no way on from it."""
    file.seek(end - SIZE_BYTES)
    size = int.from_bytes(file.read(SIZE_BYTES))
    start = end - SIZE_BYTES - size
    if start < SIZE_BYTES:
        return 0, _DAMAGED
    if size > MAX_RECORD_BYTES:
        return start, _TOO_LONG
    file.seek(start)
    return start, file.read(size)


def _first_in(folder: Path) -> Iterator[bytes | str]:
    number, _, taken = _info(folder / "info.json").tail
    for chunk in _chunks(folder, number):
        yield from _after(folder / f"q{chunk:05d}", taken if chunk == number else 0)


def _info(path: Path) -> Info:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(MAX_INFO_BYTES), type=Info)
    except (OSError, msgspec.DecodeError):
        return Info()


def _chunks(folder: Path, first: int) -> list[int]:
    names = (_CHUNK.fullmatch(entry.name) for entry in os.scandir(folder) if entry.is_file())
    return sorted(number for name in names if name and (number := int(name[1])) >= first)


def _after(path: Path, position: int) -> Iterator[bytes | str]:
    """Every record from this position on, or why there is none."""
    with path.open("rb") as file:
        file.seek(position)
        while header := file.read(SIZE_BYTES):
            size = int.from_bytes(header)
            if size > MAX_RECORD_BYTES:
                file.seek(size, os.SEEK_CUR)
                yield _TOO_LONG
                continue
            content = file.read(size)
            if len(header) < SIZE_BYTES or len(content) < size:
                yield _DAMAGED
                return
            yield content
