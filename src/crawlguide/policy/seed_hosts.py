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
    """Names of politeness queues, kept as hashes; they only become more."""

    def __init__(self) -> None:
        self._sheet, self._known = Sheet(KIND), set[int]()
        self._kept = False  # in a notebook

    def __contains__(self, queue: str) -> bool:
        return _code(queue) in self._known

    def add(self, queue: str) -> None:
        if queue not in self and len(self._known) < MOST:
            self._write(_code(queue))

    def moved(self, fetches: Fetches) -> None:
        """Where a home redirects to is one as well."""
        for host, target in zip(fetches.host.tolist(), fetches.target_host.tolist(), strict=True):
            if host != target and host in self:
                self.add(target)

    def keep_in(self, sheet: Sheet) -> None:
        """Go on with what lies in a sheet, and write there from now on."""
        old, self._sheet, self._kept = self._known, sheet, True
        self._known = set(sheet.rows[: sheet.used].tolist())
        self.join(old)

    def take(self, other: SeedHosts) -> None:
        """All that another knows; whoever writes nowhere yet goes on where the other wrote."""
        if self._kept:
            self.join(other._known)
            return
        mine, self._sheet, self._known, self._kept = self._known, other._sheet, other._known, other._kept
        self.join(mine)

    def join(self, codes: set[int]) -> None:
        for code in codes - self._known:
            self._write(code)

    def _write(self, code: int) -> None:
        place = self._sheet.used
        self._sheet.fit(place + 1)
        self._sheet.rows[place] = code
        self._sheet.changed(np.array([place]))
        self._known.add(code)


def _code(queue: str) -> int:
    return int(xxhash.xxh3_64_intdigest(queue.encode()))
