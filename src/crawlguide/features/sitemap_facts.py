"""What sitemaps say about pages: their priority among the pages of their site, and when they were last modified."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.clock import instant
from crawlguide.core.lossy_table import LossyTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, U64

DEFAULT_PRIORITY = 0.5  # of a page for which a sitemap gives none (https://www.sitemaps.org/protocol.html)
MOST = 1 << 18
RECORD = np.dtype([("key", np.uint64), ("priority", np.float64), ("modified", np.float64)])


class SitemapFact(NamedTuple):
    """For each URL: its priority from 0 to 1, 0 where no sitemap names it; and when it was modified, NaN: unknown."""

    priority: F64
    modified: F64


class SitemapFacts:
    """By URL, in a sheet of the crawl's notebook; bounded."""

    def __init__(self) -> None:
        self._table, self.kept = LossyTable(RECORD, most=MOST), False

    def hear(self, ids: U64, entries: Sequence[Mapping[str, str]]) -> None:
        """Record entries of sitemaps: `priority` and `lastmod` as they are written there."""
        slots = self._table.claim(ids)
        self._table.rows["priority"][slots] = [_priority(entry.get("priority", "")) for entry in entries]
        self._table.rows["modified"][slots] = [instant(entry.get("lastmod", "")) for entry in entries]

    def of(self, ids: U64) -> SitemapFact | None:
        """None: no sitemap was read."""
        if not self._table.sheet.used:
            return None
        slots = self._table.find(ids)
        known = self._table.rows[slots]
        return SitemapFact(np.where(slots < 0, 0.0, known["priority"]), np.where(slots < 0, np.nan, known["modified"]))

    def remember(self, notebook: Notebook) -> None:
        self._table, self.kept = LossyTable(RECORD, notebook.sheet("stated", RECORD), MOST), True

    def inherit(self, before: SitemapFacts) -> None:
        """Go on with what another has recorded, unless it lies in a notebook that is read anew."""
        if not self.kept or self._table.sheet is before._table.sheet:
            self._table, self.kept = before._table, before.kept


def _priority(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return DEFAULT_PRIORITY
    return number if 0 <= number <= 1 else DEFAULT_PRIORITY
