"""Our own order: the page with the largest expected crawl value first, by the rates that a guide learns.

It is the code that a guide runs (`crawlguide.freshness`), fed with what a crawler sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
import xxhash

from crawlguide.freshness.rates import DAY_S, Rates
from crawlguide.lab.freshness.policies.memory import Highest, Memory
from crawlguide.policy.traps.url_scan import HOST_FINE, scan_urls

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64, Rows
    from crawlguide.lab.freshness.replay import Known, Visits

EPOCH_S = 1_700_000_000.0  # when every replay begins, for code that counts from 1970


class Learned:
    """Pages learn with others of their host and of their URL template."""

    def __init__(self, known: Known) -> None:
        self.rates = Rates()
        self.rates.fit(len(known))
        self._groups = self.rates.grouped(_chains(known))
        self._every = np.arange(len(known))

    def begin(self, pages: Rows, now: float) -> None:
        self.rates.begin(pages, _seconds(pages, now), self._groups[pages])

    def values(self, memory: Memory, now: float) -> F64:
        return self.rates.values(self._every, _seconds(self._every, now), memory.importance)

    def learn(self, memory: Memory, visits: Visits) -> None:
        self.rates.observe(visits.pages, _seconds(visits.pages, visits.at), visits.changed)


class Ours(Highest):
    def __init__(self, known: Known) -> None:
        self.learned = Learned(known)
        super().__init__(known, self.learned)

    def discover(self, pages: Rows, at: float) -> None:
        super().discover(pages, at)
        self.learned.begin(pages, at)


def build(known: Known) -> Ours:
    return Ours(known)


def _chains(known: Known) -> list[tuple[int, int]]:
    hosts = [xxhash.xxh3_64_intdigest(urlsplit(url).netloc.encode()) or 1 for url in known.urls]
    templates = scan_urls(known.urls, None).code(HOST_FINE).tolist()
    return [(host, template or 1) for host, template in zip(hosts, templates, strict=True)]


def _seconds(pages: I64, now: float) -> F64:
    return np.full(len(pages), EPOCH_S + now * DAY_S)
