"""A snapshot of all rows, written in small pieces between commits, after which the log begins anew.

Pieces are written at different moments, and may be newer than the place at which the log begins: applying the log to
them writes the same rows again, the last time as they are now. So any mixture of old and new pieces is right as long
as the log from the last finished snapshot on is there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core import faults
from crawlguide.core.errors import CrawlGuideError
from crawlguide.store.embedded.journal import Column
from crawlguide.store.tables.shelves import key_of

if TYPE_CHECKING:
    from crawlguide.store.embedded.disk import Disk

CHUNK = 512
Tables = Callable[[], Iterator[tuple[int, str, Column, int]]]


def table_key(owner: int, table: str) -> bytes:
    return key_of(owner) + table.encode().ljust(8)


def chunk_key(owner: int, table: str, number: int) -> bytes:
    return table_key(owner, table) + key_of(number)


@dataclass
class Run:
    """One attempt. A flush that ends after its attempt was abandoned says nothing about the next one."""

    start: int  # the log from here on belongs to this snapshot
    chunks: Iterator[tuple[bytes, bytes]]
    budget: int = 0  # bytes that may be written by now; less than 0 after a piece larger than what was left
    flush: threading.Thread | None = None
    flushed: bool = False
    failed: bool = False


class Snapshot:
    """Idle, or writing, or waiting until what it wrote is on the disk."""

    def __init__(self, disk: Disk, tables: Tables) -> None:
        self._disk, self._tables = disk, tables
        self._run: Run | None = None

    @property
    def is_running(self) -> bool:
        return self._run is not None

    def begin(self, start: int) -> None:
        self._run = Run(start, self._pieces())

    def abandon(self) -> None:
        """What was written may be gone, or is of no use any more."""
        self._run = None

    def step(self, budget: int) -> int | None:
        """Write pieces for so many bytes more; once all are on the disk: where the log begins now."""
        run = self._run
        if run is None:
            return None
        run.budget += budget
        while run.flush is None and run.budget > 0:
            run.budget -= self._write(run)
        if run.failed:
            self._run = None  # the log stays as it is; the next snapshot may fare better
        if not run.flushed:
            return None
        self._run = None
        return run.start

    def join(self) -> None:
        """Let a flush that runs end."""
        if self._run is not None and self._run.flush is not None:
            self._run.flush.join()

    def _write(self, run: Run) -> int:
        """The next piece; after the last one the flush begins. Returns how many bytes were written."""
        piece = next(run.chunks, None)
        if piece is None:
            run.flush = threading.Thread(target=self._finish, args=(run,), name="crawlguide-snapshot", daemon=True)
            run.flush.start()
            return 0
        self._disk.write_unlogged("rows", dict([piece]))
        faults.point("during_snapshot")
        return len(piece[1])

    def _finish(self, run: Run) -> None:
        """In a thread of its own."""
        try:
            self._disk.flush("rows")
        except CrawlGuideError:
            run.failed = True
            return
        run.flushed = True

    def _pieces(self) -> Iterator[tuple[bytes, bytes]]:
        for owner, table, column, length in self._tables():
            for first in range(0, length, CHUNK):
                yield chunk_key(owner, table, first // CHUNK), column[first : min(first + CHUNK, length)].tobytes()
