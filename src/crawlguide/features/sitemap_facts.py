"""What sites say of their own pages in sitemaps: how much each matters among them, and when it was changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.clock import instant
from crawlguide.core.lossy_table import LossyTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, U64

UNSAID = 0.5  # the priority of a page of which a sitemap says none (https://www.sitemaps.org/protocol.html)
MOST = 1 << 18
RECORD = np.dtype([("key", np.uint64), ("priority", np.float64), ("modified", np.float64)])


class SitemapFact(NamedTuple):
    """Of each URL: its priority from 0 to 1, 0 where no sitemap names it; and when it was changed, NaN: not said."""

    priority: F64
    modified: F64


class SitemapFacts:
    """By URL, in a sheet that is kept. Bounded: of two that claim one place the newer stays."""

    def __init__(self) -> None:
        self._places, self.kept = LossyTable(RECORD, most=MOST), False

    def hear(self, ids: U64, entries: Sequence[Mapping[str, str]]) -> None:
        """Sitemaps name these URLs, with their `priority` and `lastmod` as they are written there."""
        places = self._places.claim(ids)
        self._places.rows["priority"][places] = [_priority(entry.get("priority", "")) for entry in entries]
        self._places.rows["modified"][places] = [instant(entry.get("lastmod", "")) for entry in entries]

    def of(self, ids: U64) -> SitemapFact | None:
        """None: nothing is known of any URL at all."""
        if not self._places.sheet.used:
            return None
        places = self._places.find(ids)
        known = self._places.rows[places]
        return SitemapFact(
            np.where(places < 0, 0.0, known["priority"]), np.where(places < 0, np.nan, known["modified"])
        )

    def remember(self, notebook: Notebook) -> None:
        self._places, self.kept = LossyTable(RECORD, notebook.sheet("stated", RECORD), MOST), True

    def inherit(self, before: SitemapFacts) -> None:
        """Go on with what another has heard, unless it lies in a notebook that is read anew."""
        if not self.kept or self._places.sheet is before._places.sheet:
            self._places, self.kept = before._places, before.kept


def _priority(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return UNSAID
    return number if 0 <= number <= 1 else UNSAID
