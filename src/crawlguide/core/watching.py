"""Who is told what happens in a guide, whatever door it came through: once for each, after it was kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Ack, Advice, Fetch
    from crawlguide.core.types import Crawl


class Watcher(Protocol):
    """Is told within the request: what takes time is done later."""

    def decided(self, crawl: Crawl, crawler_id: str, advice: Advice, at: float) -> None:
        """An ask was answered; one that comes again is not told again."""

    def fetched(self, crawl: Crawl, crawler_id: str, fetches: Sequence[Fetch], ack: Ack, at: float) -> None:
        """Fetches were told; `ack.results` says of each in turn what became of it."""

    def changed(self, crawl: Crawl, change: str, at: float) -> None:
        """A crawl was created, changed, paused, resumed or deleted, or is finished or exhausted."""


class Nobody:
    def decided(self, crawl: Crawl, crawler_id: str, advice: Advice, at: float) -> None:
        pass

    def fetched(self, crawl: Crawl, crawler_id: str, fetches: Sequence[Fetch], ack: Ack, at: float) -> None:
        pass

    def changed(self, crawl: Crawl, change: str, at: float) -> None:
        pass


NOBODY = Nobody()
