"""Hosts as one crawl knows them: pages, failures, relevance, caps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls
from crawlguide.store.columns import grown
from crawlguide.store.rows import HOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I32, I64, Text
    from crawlguide.store.pace import Pace


class CrawlHosts:
    """One row for each politeness queue in which the crawl knows a URL."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.rows = np.zeros(0, HOST)
        self.pace_row: I32 = np.zeros(0, np.int32)  # the same as rows["pace"], in one piece for kernels
        self.scratch: I32 = np.zeros(0, np.int32)  # zeros, for joins
        self.names: Text = np.zeros(0, object)
        self.domain_pages: I64 = np.zeros(0, np.int64)  # fetched well or on their way, per registrable domain
        self._row_of: dict[str, int] = {}
        self._domain_of: dict[str, int] = {}
        self._of_domain_hash: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def find(self, name: str) -> int | None:
        return self._row_of.get(name)

    def of_domain(self, domain_hash: str) -> list[int]:
        return self._of_domain_hash.get(domain_hash, [])

    def rows_of(self, names: Sequence[str]) -> I32:
        """The row of each host, new ones added."""
        known = self._row_of
        return np.array([known[name] if name in known else self._add(name) for name in names], np.int32)

    def _add(self, name: str) -> int:
        row = self._row_of[name] = len(self._row_of)
        self.rows, self.names = grown(self.rows, row + 1), grown(self.names, row + 1, "")
        self.pace_row, self.scratch = grown(self.pace_row, row + 1, 0), grown(self.scratch, row + 1, 0)
        self.names[row] = name
        self.rows[row] = np.zeros((), HOST)
        self.rows["withheld"][row] = -np.inf
        self.rows["pace"][row] = self.pace_row[row] = self._pace.row(name)
        self.rows["domain"][row] = self._domain(name, row)
        return row

    def _domain(self, name: str, row: int) -> int:
        domain = urls.domain_of(name)
        self._of_domain_hash.setdefault(urls.domain_hash(domain), []).append(row)
        number = self._domain_of.setdefault(domain, len(self._domain_of))
        self.domain_pages = grown(self.domain_pages, number + 1, 0)
        return number
