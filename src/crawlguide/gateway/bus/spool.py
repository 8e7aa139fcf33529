"""Events that the bus does not have yet, in files: in order, bounded, found again after a restart.

Every record has its length and a checksum before it. A tail that was cut in the middle is cut off when the folder is
opened; what lies behind a damaged record in the same file is lost, and counted. Nothing is synced: what was appended
survives the end of the process, however it ends, and the last seconds of it may be lost with the power. What was
delivered just before the process ends may be delivered again.
"""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

HEAD = struct.Struct("<II")
SEGMENTS, SMALLEST_SEGMENT = 16, 65_536
LARGEST_RECORD = 64 * 1024 * 1024
TRANSIENT_ERRNOS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # a file cannot be read now, and takes no harm


@dataclass
class Segment:
    """A file: its bytes, how many records it holds, and how far those are delivered."""

    number: int
    path: Path
    size: int = 0
    records: int = 0
    delivered: int = 0
    delivered_bytes: int = 0


class Spool:
    """Appended to at the end, delivered from the beginning; when it is full, the oldest file goes."""

    def __init__(self, folder: Path, most_bytes: int, on_lost: Callable[[int], None]) -> None:
        self._folder, self._most, self._on_lost = folder, most_bytes, on_lost
        self._segment_bytes = max(SMALLEST_SEGMENT, most_bytes // SEGMENTS)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._before = self._read_delivered()[0]  # files of this number and of smaller ones may be gone
        self._segments = deque(self._found())
        self._appending: BinaryIO | None = None

    @property
    def waiting_bytes(self) -> int:
        return sum(segment.size - segment.delivered_bytes for segment in self._segments)

    @property
    def waiting(self) -> int:
        return sum(segment.records - segment.delivered for segment in self._segments)

    def append(self, records: Sequence[bytes]) -> None:
        """Raises `OSError`, and then has taken none of them."""
        last = self._last()
        text = b"".join(HEAD.pack(len(record), zlib.crc32(record)) + record for record in records)
        try:
            self._appending = self._appending or self._opened(last)
            self._appending.seek(last.size)
            _write_all(self._appending, text)
        except FileNotFoundError:
            self._leave(last)
            raise
        except OSError:
            self._stop_appending()
            raise
        last.size += len(text)
        last.records += len(records)
        self._bound()

    def read(self, most: int) -> list[bytes]:
        """The oldest records that are not delivered, all of one file. What cannot be read any more is lost."""
        for segment in self._segments:
            if segment.delivered < segment.records:
                if found := self._readable(segment, most):
                    return found
                self._on_lost(segment.records - segment.delivered)
                segment.delivered, segment.delivered_bytes = segment.records, segment.size
        return []

    def _readable(self, segment: Segment, most: int) -> list[bytes]:
        """None of a file that is gone, or that the disk does not give back: nothing more is written into it."""
        try:
            return self._read(segment, most)
        except OSError as problem:
            if problem.errno in TRANSIENT_ERRNOS:
                raise
            if segment is self._segments[-1]:
                self._leave(segment)
            return []

    def _opened(self, segment: Segment) -> BinaryIO:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # somebody may have removed it
        return segment.path.open("r+b" if segment.size else "w+b", buffering=0)

    def _leave(self, segment: Segment) -> None:
        """What comes next goes into another file."""
        self._stop_appending()
        segment.size = max(segment.size, self._segment_bytes)

    def delivered(self, records: Sequence[bytes]) -> None:
        """These were `read`. Those whose file had to go meanwhile are of no more interest."""
        segment = next((one for one in self._segments if one.delivered < one.records), None)
        if segment is None or not self._is_next(segment, records):
            return
        segment.delivered += len(records)
        segment.delivered_bytes += sum(HEAD.size + len(record) for record in records)
        while len(self._segments) > 1 and self._segments[0].delivered == self._segments[0].records:
            self._segments.popleft().path.unlink(missing_ok=True)
        half = self._folder / "delivered.half"
        with suppress(OSError):  # a full disk: they are delivered again if the process ends now
            half.write_text(json.dumps([segment.number, segment.delivered_bytes]))
            half.replace(self._folder / "delivered.json")

    def close(self) -> None:
        self._stop_appending()

    def _read(self, segment: Segment, most: int) -> list[bytes]:
        with segment.path.open("rb") as file:
            file.seek(segment.delivered_bytes)
            return list(islice(_records(file, segment.size), most))

    def _is_next(self, segment: Segment, records: Sequence[bytes]) -> bool:
        return self._readable(segment, 1) == list(records[:1])

    def _last(self) -> Segment:
        if self._segments and self._segments[-1].size < self._segment_bytes:
            return self._segments[-1]
        self._stop_appending()
        number = 1 + (self._segments[-1].number if self._segments else self._before)
        self._segments.append(Segment(number, self._folder / f"{number:012}.events"))
        return self._segments[-1]

    def _stop_appending(self) -> None:
        if self._appending is not None:
            self._appending.close()
            self._appending = None

    def _bound(self) -> None:
        while len(self._segments) > 1 and sum(segment.size for segment in self._segments) > self._most:
            oldest = self._segments.popleft()
            oldest.path.unlink(missing_ok=True)
            self._on_lost(oldest.records - oldest.delivered)

    def _found(self) -> Iterator[Segment]:
        """What an earlier process has left. Whatever cannot be read is cut off."""
        number, offset = self._read_delivered()
        for path in sorted(self._folder.glob("[0-9]" * 12 + ".events")):
            segment = Segment(int(path.stem), path)
            with path.open("rb") as file:
                for record in _records(file, path.stat().st_size):
                    segment.size += HEAD.size + len(record)
                    segment.records += 1
                    if segment.number < number or (segment.number == number and segment.size <= offset):
                        segment.delivered, segment.delivered_bytes = segment.records, segment.size
            if segment.size < path.stat().st_size:
                self._on_lost(1)
                with path.open("r+b") as file:
                    file.truncate(segment.size)
            yield segment

    def _read_delivered(self) -> tuple[int, int]:
        try:
            number, offset = json.loads((self._folder / "delivered.json").read_text())
            return int(number), int(offset)
        except (OSError, ValueError, TypeError):
            return 0, 0


def _write_all(file: BinaryIO, text: bytes) -> None:
    """Or nothing: a disk that is nearly full takes a part, and says no more than how much."""
    start = file.tell()
    if file.write(text) < len(text):
        file.truncate(start)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _records(file: BinaryIO, end: int) -> Iterator[bytes]:
    """All whole ones from here to the end, up to the first that is not as it was written."""
    while file.tell() + HEAD.size <= end:
        head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            return
        size, checksum = HEAD.unpack(head)
        if not 0 < size <= min(LARGEST_RECORD, end - file.tell()):  # zeros would be an empty one with its checksum
            return
        record = file.read(size)
        if len(record) < size or zlib.crc32(record) != checksum:
            return
        yield record
