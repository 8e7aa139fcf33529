"""A snapshot of all rows, written in small pieces between commits, after which the log begins anew.

Pieces are written at different moments, and may be newer than the place at which the log begins: applying the log to
them writes the same rows again, the last time as they are now. So any mixture of old and new pieces is right as long
as the log from the last finished snapshot on is there.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from crawlguide.core import faults
from crawlguide.core.errors import CrawlGuideError
from crawlguide.store.shelves import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crawlguide.store.embedded.disk import Disk
    from crawlguide.store.embedded.journal import Column

CHUNK = 512
Tables = "Callable[[], Iterator[tuple[int, str, Column, int]]]"


def chunk_key(owner: int, table: str, number: int) -> bytes:
    return key_of(owner) + table.encode().ljust(8) + key_of(number)


class Snapshot:
    """Idle, or writing, or waiting until what it wrote is on the disk."""

    def __init__(self, disk: Disk, tables: Callable[[], Iterator[tuple[int, str, Column, int]]]) -> None:
        self._disk, self._tables = disk, tables
        self._chunks: Iterator[tuple[bytes, bytes]] | None = None
        self._flush: threading.Thread | None = None
        self._flushed = False
        self.start = 0  # the log from here on belongs to this snapshot

    @property
    def is_running(self) -> bool:
        return self._chunks is not None

    def begin(self, start: int) -> None:
        self.start, self._flush, self._flushed = start, None, False
        self._chunks = self._pieces()

    def abandon(self) -> None:
        """The disk was opened anew: what was written unlogged may be gone."""
        self._chunks = None

    def step(self, budget: int) -> bool:
        """Write pieces until the budget of bytes is used up; True when all of them are on the disk."""
        if self._chunks is None:
            return False
        while self._flush is None and budget > 0:
            piece = next(self._chunks, None)
            if piece is None:
                self._flush = threading.Thread(target=self._finish, name="crawlguide-snapshot", daemon=True)
                self._flush.start()
                break
            self._disk.write_unlogged("rows", dict([piece]))
            faults.point("during_snapshot")
            budget -= len(piece[1])
        if not self._flushed:
            return False
        self._chunks = None
        return True

    def join(self) -> None:
        """Before closing: let the flush end."""
        if self._flush is not None:
            self._flush.join()

    def _finish(self) -> None:
        try:
            self._disk.flush("rows")
        except CrawlGuideError:
            self._chunks = None  # the log stays as it is; the next snapshot may fare better
            return
        self._flushed = True

    def _pieces(self) -> Iterator[tuple[bytes, bytes]]:
        for owner, table, column, length in self._tables():
            for first in range(0, length, CHUNK):
                yield chunk_key(owner, table, first // CHUNK), column[first : min(first + CHUNK, length)].tobytes()
