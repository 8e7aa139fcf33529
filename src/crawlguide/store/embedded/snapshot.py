"""A snapshot of all rows, written in small chunks between commits, after which the journal begins anew.

Chunks are written at different moments, and may be newer than the place at which the journal begins: applying the
journal to them writes the same rows again, the last time as they are now. So any mixture of old and new chunks is right
as long as the journal from the last finished snapshot on is there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crawlguide.core import faults
from crawlguide.core.errors import CrawlGuideError
from crawlguide.store.embedded.journal import Column
from crawlguide.store.tables.keyspace import key_of

if TYPE_CHECKING:
    from crawlguide.store.embedded.disk import Disk

CHUNK = 512
Tables = Callable[[], Iterator[tuple[int, str, Column, int]]]


def table_key(owner: int, table: str) -> bytes:
    return key_of(owner) + table.encode().ljust(8)


def chunk_key(owner: int, table: str, number: int) -> bytes:
    return table_key(owner, table) + key_of(number)


@dataclass
class Attempt:
    """One attempt. A flush that ends after its attempt was abandoned says nothing about the next one."""

    start: int  # the journal from here on belongs to this snapshot
    chunks: Iterator[tuple[bytes, bytes]]
    gone: set[int]  # crawls that were deleted since
    budget: int = 0  # bytes that may be written by now; less than 0 after a chunk larger than what was left
    flush: threading.Thread | None = None
    flushed: bool = False
    failed: bool = False


class Snapshot:
    """Idle, or writing, or waiting until what it wrote is on the disk."""

    def __init__(self, disk: Disk, tables: Tables) -> None:
        self._disk, self._tables = disk, tables
        self._run: Attempt | None = None

    @property
    def is_running(self) -> bool:
        return self._run is not None

    def begin(self, start: int) -> None:
        gone = set[int]()
        self._run = Attempt(start, self._all_chunks(gone), gone)

    def abandon(self) -> None:
        """What was written may be gone, or is of no use any more."""
        self._run = None

    def leave_out(self, owner: int) -> None:
        """A crawl was deleted: nothing of it is written any more. Where crawls come and go, snapshots still end."""
        if self._run is not None:
            self._run.gone.add(owner)

    def step(self, budget: int) -> int | None:
        """Write chunks for so many bytes more; once all are on the disk: where the journal begins now."""
        run = self._run
        if run is None:
            return None
        run.budget += budget
        while run.flush is None and run.budget > 0:
            run.budget -= self._write(run)
        if run.failed:
            self._run = None  # the journal stays; the next snapshot may succeed
        if not run.flushed:
            return None
        self._run = None
        return run.start

    def join(self) -> None:
        """Let a flush that runs end."""
        if self._run is not None and self._run.flush is not None:
            self._run.flush.join()

    def _write(self, run: Attempt) -> int:
        """The next chunk; after the last one the flush begins. Returns how many bytes were written."""
        chunk = next(run.chunks, None)
        if chunk is None:
            run.flush = threading.Thread(target=self._finish, args=(run,), name="crawlguide-snapshot", daemon=True)
            run.flush.start()
            return 0
        self._disk.write_unlogged("rows", dict([chunk]))
        faults.point("during_snapshot")
        return len(chunk[1])

    def _finish(self, run: Attempt) -> None:
        """In a thread of its own."""
        try:
            self._disk.flush("rows")
        except CrawlGuideError:
            run.failed = True
            return
        run.flushed = True

    def _all_chunks(self, gone: Container[int]) -> Iterator[tuple[bytes, bytes]]:
        for owner, table, column, length in self._tables():
            for first in range(0, length, CHUNK):
                if owner in gone:
                    break
                yield chunk_key(owner, table, first // CHUNK), column[first : min(first + CHUNK, length)].tobytes()
