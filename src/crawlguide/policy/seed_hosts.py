"""The hosts of a crawl's seeds, and those to which its seeds redirect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core.notebook import Sheet

if TYPE_CHECKING:
    from crawlguide.core.types import Fetches

KIND = np.dtype(np.uint64)
MOST = 1_000_000


class SeedHosts:
    """A growing set of politeness queues, kept as hashes."""

    def __init__(self) -> None:
        self._sheet, self._hashes = Sheet(KIND), set[int]()
        self._kept = False  # whether the sheet is one of a notebook

    def __contains__(self, queue: str) -> bool:
        return _hash(queue) in self._hashes

    def add(self, queue: str) -> None:
        if queue not in self and len(self._hashes) < MOST:
            self._write(_hash(queue))

    def moved(self, fetches: Fetches) -> None:
        """A host to which a seed host redirects is one as well."""
        for host, target in zip(fetches.host.tolist(), fetches.target_host.tolist(), strict=True):
            if host != target and host in self:
                self.add(target)

    def keep_in(self, sheet: Sheet) -> None:
        """Go on with what is in a sheet, and write there from now on."""
        old, self._sheet, self._kept = self._hashes, sheet, True
        self._hashes = set(sheet.rows[: sheet.used].tolist())
        self.join(old)

    def take(self, other: SeedHosts) -> None:
        """Take over all hosts of another set; one that has no stored sheet yet goes on with that of the other."""
        if self._kept:
            self.join(other._hashes)
            return
        mine, self._sheet, self._hashes, self._kept = self._hashes, other._sheet, other._hashes, other._kept
        self.join(mine)

    def join(self, hashes: set[int]) -> None:
        for one in hashes - self._hashes:
            self._write(one)

    def _write(self, one: int) -> None:
        row = self._sheet.used
        self._sheet.fit(row + 1)
        self._sheet.rows[row] = one
        self._sheet.changed(np.array([row]))
        self._hashes.add(one)


def _hash(queue: str) -> int:
    return int(xxhash.xxh3_64_intdigest(queue.encode()))
