"""What a crawl has met: domains that turned out dead or blocked, and pages whose links led there.

A correction of the model's log odds, learned while the crawl runs: for the domain that a link leads to and for the one
it stands on, log((bad + 2) / (good + 2)), each at most 2 either way. Where nothing was met it is 0.
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

CALM, MOST = 2.0, 2.0  # outcomes that must come before one counts much, and how far each domain moves the log odds
DOMAIN = np.dtype([("key", np.uint64), ("good", np.float64), ("bad", np.float64)])
SOURCE = np.dtype([("key", np.uint64), ("domain", np.uint64)])
SHEETS = {"riskmet": DOMAIN, "riskfrom": SOURCE}
BAD_ERRORS, BAD_STATUS = ("dns", "connect", "tls", "blocked"), (*GONE, 451)


class Outcomes:
    """Good and bad ones by domain; and from which domain URLs on their way were found. Bounded: newer ones stay."""

    def __init__(self, domains: Sheet | None = None, sources: Sheet | None = None) -> None:
        self.domains, self._sources = LossyTable(DOMAIN, domains), LossyTable(SOURCE, sources)

    def found(self, ids: U64, pages: Sequence[str]) -> None:
        """Links that lead to other domains were found on pages of these queues."""
        places = self._sources.claim(ids)
        self._sources.rows["domain"][places] = _codes(pages)

    def shift(self, queues: Sequence[str], pages: Sequence[str]) -> F64:
        """What to add to the log odds of links to these queues, found on pages of those."""
        return self._moved(_codes(queues)) + self._moved(_codes(pages))

    def learn(self, lesson: Lesson) -> None:
        fetches = lesson.fetches
        told = zip(fetches.host.tolist(), fetches.status.tolist(), fetches.error.tolist(), strict=True)
        places = self._sources.find(fetches.id).tolist()
        for place, (host, status, error) in zip(places, told, strict=True):
            source = int(self._sources.rows["domain"][place]) if place >= 0 else 0
            bad = error in BAD_ERRORS or (not error and status in BAD_STATUS)
            if bad or is_success(status, error):
                for domain in {_code(host), source} - {0}:
                    self._count(domain, "bad" if bad else "good")

    def count(self, queue: str, bad: bool) -> None:
        """One outcome of a URL of this queue, found nowhere."""
        self._count(_code(queue), "bad" if bad else "good")

    def _count(self, domain: int, word: str) -> None:
        place, _ = self.domains.claim_one(domain)
        self.domains.rows[word][place] += 1.0
        self.domains.sheet.changed(np.array([place]))

    def _moved(self, domains: U64) -> F64:
        places = self.domains.find(domains)
        if not (places >= 0).any():
            return np.zeros(len(domains))
        known = self.domains.rows[places]
        odds = np.log((known["bad"] + CALM) / (known["good"] + CALM))
        return np.where(places >= 0, np.clip(odds, -MOST, MOST), 0.0)


def _codes(queues: Sequence[str]) -> U64:
    return np.array([_code(queue) if queue else 0 for queue in queues], np.uint64)


def _code(queue: str) -> int:
    return int(xxhash.xxh3_64_intdigest(addresses.domain_of(queue).encode()))
