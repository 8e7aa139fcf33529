"""A correction of the risk model, learned from the outcomes of a crawl's fetches.

For the domain that a link leads to, and for the domain of the page it was found on, log((bad + 2) / (good + 2)) is
added to the log odds, each at most 2 either way. A bad outcome is a dead or blocked page. Without outcomes it is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core import urls as addresses
from crawlguide.core.lossy_table import LossyTable
from crawlguide.core.outcomes import GONE, is_success

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.notebook import Sheet
    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Lesson

PRIOR, MOST_SHIFT = 2.0, 2.0  # outcomes of either kind before the first; bound of each domain's shift
DOMAIN = np.dtype([("key", np.uint64), ("good", np.float64), ("bad", np.float64)])
SOURCE = np.dtype([("key", np.uint64), ("domain", np.uint64)])
SHEETS = {"riskmet": DOMAIN, "riskfrom": SOURCE}
BAD_ERRORS, BAD_STATUS = ("dns", "connect", "tls", "blocked"), (*GONE, 451)


class Outcomes:
    """Good and bad outcomes by domain; and the domain on which each URL was found. Bounded: newer ones stay."""

    def __init__(self, domains: Sheet | None = None, sources: Sheet | None = None) -> None:
        self.domains, self._sources = LossyTable(DOMAIN, domains), LossyTable(SOURCE, sources)

    def record_sources(self, ids: U64, pages: Sequence[str]) -> None:
        """Links that lead to other domains were found on pages of these queues."""
        slots = self._sources.claim(ids)
        self._sources.rows["domain"][slots] = _hashes(pages)

    def shift(self, queues: Sequence[str], pages: Sequence[str]) -> F64:
        """What to add to the log odds of links to these queues, found on pages of those."""
        return self._shifts(_hashes(queues)) + self._shifts(_hashes(pages))

    def learn(self, lesson: Lesson) -> None:
        fetches = lesson.fetches
        outcomes = zip(fetches.host.tolist(), fetches.status.tolist(), fetches.error.tolist(), strict=True)
        slots = self._sources.find(fetches.id).tolist()
        for slot, (host, status, error) in zip(slots, outcomes, strict=True):
            source = int(self._sources.rows["domain"][slot]) if slot >= 0 else 0
            bad = error in BAD_ERRORS or (not error and status in BAD_STATUS)
            if bad or is_success(status, error):
                for domain in {_hash(host), source} - {0}:
                    self._count(domain, "bad" if bad else "good")

    def count(self, queue: str, bad: bool) -> None:
        """Count one outcome of a URL of this queue."""
        self._count(_hash(queue), "bad" if bad else "good")

    def _count(self, domain: int, outcome: str) -> None:
        slot, _ = self.domains.claim_one(domain)
        self.domains.rows[outcome][slot] += 1.0
        self.domains.sheet.changed(np.array([slot]))

    def _shifts(self, domains: U64) -> F64:
        slots = self.domains.find(domains)
        if not (slots >= 0).any():
            return np.zeros(len(domains))
        known = self.domains.rows[slots]
        odds = np.log((known["bad"] + PRIOR) / (known["good"] + PRIOR))
        return np.where(slots >= 0, np.clip(odds, -MOST_SHIFT, MOST_SHIFT), 0.0)


def _hashes(queues: Sequence[str]) -> U64:
    """The hashes of the domains of politeness queues, 0 for none."""
    return np.array([_hash(queue) if queue else 0 for queue in queues], np.uint64)


def _hash(queue: str) -> int:
    return int(xxhash.xxh3_64_intdigest(addresses.domain_of(queue).encode()))
