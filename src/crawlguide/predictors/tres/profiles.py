"""forager's profiles of domains: not too many pages of one, none of those that fail, slow ones last.

A limit that is learned (`auto`, `range`) gives way where it would leave an answer short, and stays there; a domain that
pays more than the crawl does on average may go on beyond `domain_max_pages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.predictors.tres.options import Settings, param

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Batch, Hosts

PAGES, SLOW, UNRELIABLE = 0, 1, 2
TRIES = 10  # fetches before a failure rate says anything
GIVES_WAY = 20  # times at most, in one answer


class Profiles:
    """`crawl` is the record in which limits stand as they are now."""

    def __init__(self, settings: Settings, crawl: Records) -> None:
        self._settings, self._crawl = settings, crawl
        self._params = tuple(
            param(given)
            for given in (settings.domain_max_pages, settings.slow_domain_ms, settings.unreliable_threshold)
        )
        limits = crawl["limits"][0]
        for place, one in enumerate(self._params):  # 0: never set
            limits[place] = one.bound(float(limits[place]) or one.value)

    def limit(self, which: int) -> float:
        return float(self._crawl["limits"][0][which])

    def keep(self, batch: Batch, wanted: int) -> Mask:
        """Rows that may go out. What was learned gives way while they are fewer than wanted."""
        for _ in range(GIVES_WAY):
            refused = self._refused(batch)
            keep: Mask = ~np.any(refused, axis=0)
            short = np.count_nonzero(keep) < min(wanted, len(batch))
            in_the_way = [which for which, mine in enumerate(refused) if mine.any()]
            if not short or not sum(self._give_way(which) for which in in_the_way):
                break
        return keep

    def slow(self, hosts: Hosts) -> Mask:
        """Hosts whose median answer takes too long; unknown ones are not slow."""
        mine: Mask = hosts.median_ms > self.limit(SLOW)
        return mine & (self._settings.slow_domains != "off")

    def _refused(self, batch: Batch) -> tuple[Mask, Mask, Mask]:
        hosts, row = batch.hosts, batch.host
        slow = self.slow(hosts) & (self._settings.slow_domains == "filter")
        return self._full(hosts)[row], slow[row], self._unreliable(hosts)[row]

    def _full(self, hosts: Hosts) -> Mask:
        mode = self._params[PAGES]
        most = np.full(len(hosts.name), self.limit(PAGES))
        if mode.mode != "fixed":
            pays = hosts.relevance_sum > self._mean() * np.maximum(hosts.judged, 1.0)
            most[pays] = mode.bound(np.inf)
        full: Mask = hosts.domain_pages >= most
        return full

    def _unreliable(self, hosts: Hosts) -> Mask:
        """Missing pages do not count: they say nothing about the host."""
        tries: F64 = hosts.pages + hosts.failures
        failing: Mask = hosts.errors > self.limit(UNRELIABLE) * tries
        return failing & (tries >= TRIES)

    def _mean(self) -> float:
        crawl = self._crawl[0]
        return float(crawl["reward"]) / max(float(crawl["transitions"]), 1.0)

    def _give_way(self, which: int) -> bool:
        """Twice as much, and of a failure rate half of the way to 1; whether anything changed."""
        limits, one = self._crawl["limits"][0], self._params[which]
        before = float(limits[which])
        limits[which] = one.bound((1.0 + before) / 2.0 if which == UNRELIABLE else 2.0 * before)
        return bool(limits[which] > before)
