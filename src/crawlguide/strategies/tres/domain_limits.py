"""forager's limits on domains: not too many pages of one, none of those that fail, slow ones last.

A limit that is learned (`auto`, `range`) is relaxed where it would leave an answer short, and stays so; a domain that
pays more than the average of the crawl may go beyond `domain_max_pages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.strategies.tres.options import Options, param

if TYPE_CHECKING:
    from crawlguide.core.notebook import Records
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Batch, Hosts

PAGES, SLOW, UNRELIABLE = 0, 1, 2
TRIES = 10  # fetches before a failure rate counts
RELAXED = 20  # times at most, in one answer


class DomainLimits:
    """`crawl` is the record that holds the limits as learned so far."""

    def __init__(self, options: Options, crawl: Records) -> None:
        self._options, self._crawl = options, crawl
        self._params = tuple(
            param(option) for option in (options.domain_max_pages, options.slow_domain_ms, options.unreliable_threshold)
        )
        limits = crawl["limits"][0]
        for which, option in enumerate(self._params):  # 0: never set
            limits[which] = option.bound(float(limits[which]) or option.value)

    def limit(self, which: int) -> float:
        return float(self._crawl["limits"][0][which])

    def keep(self, batch: Batch, wanted: int) -> Mask:
        """Rows that may be assigned. Learned limits are relaxed while these are fewer than wanted."""
        for _ in range(RELAXED):
            refused = self._refused(batch)
            keep: Mask = ~np.any(refused, axis=0)
            short = np.count_nonzero(keep) < min(wanted, len(batch))
            refusing = [which for which, rows in enumerate(refused) if rows.any()]
            if not short or not sum(self._relax(which) for which in refusing):
                break
        return keep

    def slow(self, hosts: Hosts) -> Mask:
        """Hosts whose median answer takes too long; unknown ones are not slow."""
        slow: Mask = hosts.median_ms > self.limit(SLOW)
        return slow & (self._options.slow_domains != "off")

    def _refused(self, batch: Batch) -> tuple[Mask, Mask, Mask]:
        hosts, row = batch.hosts, batch.host
        slow = self.slow(hosts) & (self._options.slow_domains == "filter")
        return self._full(hosts)[row], slow[row], self._unreliable(hosts)[row]

    def _full(self, hosts: Hosts) -> Mask:
        option = self._params[PAGES]
        most = np.full(len(hosts.name), self.limit(PAGES))
        if option.mode != "fixed":
            pays = hosts.relevance_sum > self._mean_reward() * np.maximum(hosts.judged, 1.0)
            most[pays] = option.bound(np.inf)
        full: Mask = hosts.domain_pages >= most
        return full

    def _unreliable(self, hosts: Hosts) -> Mask:
        """Missing pages do not count as errors: they say nothing about the host."""
        tries: F64 = hosts.pages + hosts.failures
        failing: Mask = hosts.errors > self.limit(UNRELIABLE) * tries
        return failing & (tries >= TRIES)

    def _mean_reward(self) -> float:
        crawl = self._crawl[0]
        return float(crawl["reward"]) / max(float(crawl["transitions"]), 1.0)

    def _relax(self, which: int) -> bool:
        """Twice the limit, for a failure rate half of the way to 1; returns whether anything changed."""
        limits, option = self._crawl["limits"][0], self._params[which]
        before = float(limits[which])
        limits[which] = option.bound((1.0 + before) / 2.0 if which == UNRELIABLE else 2.0 * before)
        return bool(limits[which] > before)
