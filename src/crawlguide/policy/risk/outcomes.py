"""What a crawl has met: domains that turned out dead or blocked, and pages whose links led there.

A correction of the model's log odds, learned while the crawl runs: for the domain that a link leads to and for the one
it stands on, log((bad + 2) / (good + 2)), each at most 2 either way. Where nothing was met it is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from crawlguide.core import urls as addresses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Lesson

CALM, MOST = 2.0, 2.0  # outcomes that must come before one counts much, and how far each domain moves the log odds
PLACES = 1 << 16
BAD_ERRORS, BAD_STATUS = ("dns", "connect", "tls", "blocked"), (404, 410, 451)


class Outcomes:
    """Good and bad ones by domain; and from which domain URLs on their way were found. Bounded: newer ones go first."""

    def __init__(self) -> None:
        self._keys, self._good, self._bad = np.zeros(PLACES, np.uint64), np.zeros(PLACES), np.zeros(PLACES)
        self._ids, self._from = np.zeros(PLACES, np.uint64), np.zeros(PLACES, np.uint64)

    def found(self, ids: U64, pages: Sequence[str]) -> None:
        """Links that lead to other domains were found on pages of these queues."""
        places = ids & np.uint64(PLACES - 1)
        self._ids[places] = ids
        self._from[places] = [_code(page) if page else 0 for page in pages]

    def shift(self, queues: Sequence[str], pages: Sequence[str]) -> F64:
        """What to add to the log odds of links to these queues, found on pages of those."""
        to, source = _codes(queues), _codes(pages)
        return self._moved(to) + self._moved(source)

    def learn(self, lesson: Lesson) -> None:
        fetches = lesson.fetches
        told = zip(
            fetches.id.tolist(), fetches.host.tolist(), fetches.status.tolist(), fetches.error.tolist(), strict=True
        )
        for key, host, status, error in told:
            bad = error in BAD_ERRORS or (not error and status in BAD_STATUS)
            if bad or (not error and 200 <= status < 300):
                place = key & PLACES - 1
                source = int(self._from[place]) if int(self._ids[place]) == key else 0
                for domain in {_code(host), source} - {0}:
                    self._count(domain, bad)

    def _count(self, domain: int, bad: bool) -> None:
        place = domain & PLACES - 1
        if int(self._keys[place]) != domain:
            self._keys[place], self._good[place], self._bad[place] = domain, 0.0, 0.0
        self._bad[place] += bad
        self._good[place] += not bad

    def _moved(self, domains: U64) -> F64:
        places = domains & np.uint64(PLACES - 1)
        odds = np.log((self._bad[places] + CALM) / (self._good[places] + CALM))
        return np.where((self._keys[places] == domains) & (domains > 0), np.clip(odds, -MOST, MOST), 0.0)


def _codes(queues: Sequence[str]) -> U64:
    return np.array([_code(queue) if queue else 0 for queue in queues], np.uint64)


def _code(queue: str) -> int:
    return int(xxhash.xxh3_64_intdigest(addresses.domain_of(queue).encode()))
