"""Learned limits: what counts as slow, as failing and as enough of a domain, where a definition says `auto`.

Each is learned from the crawl's own fetches, within bounds:

    slow_domain_ms        3 · the median of its newest fetches                   1 000 … 30 000
    unreliable_threshold  half of the way from its own rate of failures to 1     0.3 … 0.95
    domain_max_pages      100, twice as much whenever nothing else is left       100 … 10 000; the last at once for
                                                                                 hosts that pay more than the mean
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.notebook import Sheet
from crawlguide.core.outcomes import host_failures

if TYPE_CHECKING:
    from crawlguide.core.tables import F64
    from crawlguide.core.types import Hosts, Lesson

SLOW, SLOWEST, FASTEST, USUAL_MS = 3.0, 30_000.0, 1_000.0, 5_000.0
LEAST_SURE, MOST_SURE = 0.3, 0.95
FEWEST, MOST = 100.0, 10_000.0
PRIOR, PRIOR_FAILURES = 20.0, 12.0  # fetches that count before the first: so the threshold begins at 0.8
TIMED = 101
RECORD = np.dtype(
    [
        ("fetches", np.float64),
        ("failures", np.float64),  # without an answer, 429 and 5xx
        ("judged", np.float64),
        ("relevance", np.float64),
        ("most_pages", np.float64),
        ("timed", np.int64),
        ("recent_ms", np.float32, TIMED),  # a ring of the newest
    ]
)


class Profile:
    """One record per crawl, in a sheet of its notebook."""

    def __init__(self, sheet: Sheet | None = None) -> None:
        self.sheet = Sheet(RECORD) if sheet is None else sheet
        self.sheet.fit(1)

    def learn(self, lesson: Lesson) -> None:
        fetches, mine = lesson.fetches, self.sheet.rows[0]
        fetched = fetches.status >= 0  # late feedback is no fetch
        judged = fetched & ~np.isnan(fetches.relevance)
        mine["fetches"] += np.count_nonzero(fetched)
        mine["failures"] += np.count_nonzero(host_failures(fetches) & fetched)
        mine["judged"] += np.count_nonzero(judged)
        mine["relevance"] += fetches.relevance[judged].sum()
        for took_ms in fetches.elapsed_ms[fetched & ~np.isnan(fetches.elapsed_ms)].tolist():
            mine["recent_ms"][mine["timed"] % TIMED] = took_ms
            mine["timed"] += 1
        self.sheet.changed(np.array([0]))

    @property
    def slow_ms(self) -> float:
        """From this duration on a fetch is slow."""
        mine = self.sheet.rows[0]
        if mine["timed"] < PRIOR:
            return USUAL_MS
        return float(np.clip(SLOW * np.median(mine["recent_ms"][: mine["timed"]]), FASTEST, SLOWEST))

    @property
    def unreliable(self) -> float:
        """The rate of failures above which it is the host that fails, and not the whole crawl."""
        mine = self.sheet.rows[0]
        rate = (mine["failures"] + PRIOR_FAILURES) / (mine["fetches"] + PRIOR)
        return float(np.clip((1.0 + rate) / 2.0, LEAST_SURE, MOST_SURE))

    def most_pages(self, hosts: Hosts) -> F64:
        """How many pages the domain of each host may give."""
        mine = self.sheet.rows[0]
        mean = mine["relevance"] / max(mine["judged"], 1.0)
        pays = (hosts.judged > 0) & (hosts.relevance_sum > mean * hosts.judged)
        return np.where(pays, MOST, max(mine["most_pages"], FEWEST))

    def raise_page_bound(self) -> None:
        """Every domain is full: from now on each may give twice as many pages, up to the bound of that."""
        mine = self.sheet.rows[0]
        mine["most_pages"] = min(2.0 * max(float(mine["most_pages"]), FEWEST), MOST)
        self.sheet.changed(np.array([0]))
