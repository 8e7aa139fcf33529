"""When a crawl ends before everything is fetched: its time is over, or what is left is not worth it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crawlguide.crawler.loop import CrawlLoop
    from crawlguide.crawler.options import CrawlOptions


class Limits:
    """Looked at now and then."""

    def __init__(self, options: CrawlOptions) -> None:
        self._options, self._began = options, time.monotonic()

    def look(self, loop: CrawlLoop) -> None:
        """Stop the crawl if it is time; else say how much is left."""
        options, passed_s = self._options, time.monotonic() - self._began
        if options.max_time_s and passed_s >= options.max_time_s:
            loop.stop("max-time")
        loop.left_s = min(self._left(loop, passed_s), default=None)

    def _left(self, loop: CrawlLoop, passed_s: float) -> list[float]:
        options, pace = self._options, loop.tally.pace()
        left = [options.max_time_s - passed_s] if options.max_time_s else []
        if options.max_pages and pace:
            left.append((options.max_pages - loop.tally.requests) / pace)
        return [max(0.0, seconds) for seconds in left]
