"""Our own order: the page with the largest expected crawl value first, by the rates that the guide learns.

It is the code that a guide runs (`crawlguide.freshness`), fed with what a crawler sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
import xxhash

from crawlguide.freshness.rates import Rates
from crawlguide.lab.freshness.policies.memory import Highest, Memory

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, Rows
    from crawlguide.lab.freshness.replay import Known, Visits

EPOCH_S = 1_700_000_000.0
DAY_S = 86_400.0


def chain(url):
    parts = urlsplit(url)
    seg = parts.path.split("/")
    template = "/".join(seg[:2]) + f"/{len(seg)}"
    return [xxhash.xxh3_64_intdigest(parts.netloc.encode()) | 1, xxhash.xxh3_64_intdigest((parts.netloc + template).encode()) | 1]


class Learned:
    def __init__(self, known: Known) -> None:
        self.rates = Rates()
        self.rates.fit(len(known))
        self.group = self.rates.grouped([chain(url) for url in known.urls])
        self.every = np.arange(len(known))

    def values(self, memory: Memory, now: float) -> F64:
        at = np.full(len(self.every), EPOCH_S + now * DAY_S)
        return self.rates.values(self.every, at, memory.importance)

    def learn(self, memory: Memory, visits: Visits) -> None:
        self.rates.observe(visits.pages, np.full(len(visits.pages), EPOCH_S + visits.at * DAY_S), visits.changed)


class Ours(Highest):
    def discover(self, pages: Rows, at: float) -> None:
        super().discover(pages, at)
        self.valuation.rates.begin(pages, np.full(len(pages), EPOCH_S + at * DAY_S), self.valuation.group[pages])


def build(known: Known) -> Ours:
    return Ours(known, Learned(known))
