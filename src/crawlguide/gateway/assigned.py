"""URLs that were assigned to subscriptions and streams and not reported yet, over all sockets and streams."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

from crawlguide.core import urls as addresses
from crawlguide.core.clock import instant
from crawlguide.core.errors import CrawlGuideError, UrlError
from crawlguide.core.messages import AskMessage, ReleaseMessage, ReportMessage
from crawlguide.core.types import Crawl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from crawlguide.core.messages import Advice, Fetch
    from crawlguide.gateway.routes import RouteCall
    from crawlguide.guide.local import LocalGuide

FEW_HOLDERS = 100  # on one stream, among which nobody looks for those that hold nothing


class AssignedUrls:
    """Who holds which URL. A URL has one lease at a time, so the crawl and the URL name it, whoever tells of it."""

    def __init__(self) -> None:
        self._holders: dict[Crawl, dict[str, Holder]] = {}  # by URL

    def served(self, call: RouteCall) -> None:
        """A call was served, through whatever door: what it reports or releases is no longer held."""
        message = call.message
        if isinstance(message, ReleaseMessage):
            self.released(call.crawl, message.crawler_id)
        elif isinstance(message, ReportMessage):
            self.reported(Crawl(call.tenant, message.crawl_id), message.fetches)
        elif isinstance(message, AskMessage) and message.context is not None:
            self.reported(Crawl(call.tenant, message.crawl_id), message.context.recent_history or ())

    def note(self, holder: Holder, urls: Iterable[str]) -> None:
        holders = self._holders.setdefault(holder.crawl, {})
        for url in urls:
            if url in holders:  # its lease has ended, else it would not be assigned again
                holders[url].drop(url)
            holders[url] = holder

    def reported(self, crawl: Crawl, fetches: Iterable[Fetch]) -> None:
        """These URLs were reported, through whatever door: their places are free."""
        holders = self._holders.get(crawl)
        if holders is None:
            return
        for fetch in fetches:
            url = fetch.url if fetch.url in holders else _one_form(fetch.url)
            holder = holders.get(url)
            if holder is not None:
                self.forget(holder, [url])
                holder.drop(url)
                holder.freed()

    def released(self, crawl: Crawl, crawler_id: str) -> None:
        """A crawler holds nothing any more: the places of its subscriptions are free."""
        self._free(holder for holder in self._of(crawl) if holder.crawler_id == crawler_id)

    def deleted(self, crawl: Crawl) -> None:
        """Nobody holds anything of a crawl that is gone, nor of one that gets its name later."""
        self._free(self._of(crawl))

    def _of(self, crawl: Crawl) -> set[Holder]:
        return set(self._holders.get(crawl, {}).values())

    def _free(self, holders: Iterable[Holder]) -> None:
        for holder in holders:
            holder.clear()
            holder.freed()

    def forget(self, holder: Holder, urls: Iterable[str]) -> None:
        holders = self._holders.get(holder.crawl, {})
        for url in urls:
            if holders.get(url) is holder:
                del holders[url]
        if not holders:
            self._holders.pop(holder.crawl, None)


class Holder:
    """The URLs that one subscription, or one crawler on a stream, holds until each is reported or its lease ends."""

    def __init__(self, crawl: Crawl, crawler_id: str, assigned: AssignedUrls, freed: Callable[[], None]) -> None:
        self.crawl = crawl
        self.freed = freed
        self.crawler_id = crawler_id
        self._assigned = assigned
        self._ends: dict[str, float] = {}  # by URL
        self._first_end = inf  # none ends before
        self._asks: dict[str, str] = {}  # by URL: the `request_id` of the ask that it answers, if that has one

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, advice: Advice, request_id: str | None = None) -> None:
        urls = [one.url for one in advice.assigned_urls]
        if urls:
            self._assigned.note(self, urls)
            end = instant(advice.assigned_urls[0].lease_expires)
            self._ends.update(dict.fromkeys(urls, end))
            self._first_end = min(self._first_end, end)
            if request_id is not None:
                self._asks.update(dict.fromkeys(urls, request_id))

    def drop(self, url: str) -> None:
        self._ends.pop(url, None)
        self._asks.pop(url, None)

    def clear(self) -> list[str]:
        """Nothing is held any more; returns what was."""
        held = list(self._ends)
        self._assigned.forget(self, held)
        self._ends.clear()
        self._asks.clear()
        return held

    def next_end(self, now: float) -> float | None:
        """Give up what has expired; returns the instant before which no other lease ends, or None."""
        if self._first_end <= now:
            expired = [url for url, end in self._ends.items() if end <= now]
            self._assigned.forget(self, expired)
            for url in expired:
                self.drop(url)
            self._first_end = min(self._ends.values(), default=inf)
        return self._first_end if self._ends else None

    async def give_back(self, guide: LocalGuide) -> None:
        """Return every lease. One that cannot be returned ends by itself; a deleted crawl stays deleted."""
        request_ids = set(self._asks.values())
        self.next_end(guide.clock.now())
        with suppress(CrawlGuideError):
            await guide.give_back(self.crawl, self.crawler_id, self.clear(), request_ids)


class Holders:
    """The crawlers on one stream. Very many may come by, each for a while; those that hold nothing are forgotten."""

    def __init__(self, assigned: AssignedUrls) -> None:
        self._assigned = assigned
        self._holders: dict[tuple[Crawl, str], Holder] = {}
        self._most = FEW_HOLDERS  # with one more, those that hold nothing are forgotten

    def __len__(self) -> int:
        return len(self._holders)

    def __iter__(self) -> Iterator[Holder]:
        return iter(self._holders.values())

    def of(self, crawl: Crawl, crawler_id: str, now: float) -> Holder:
        """What a crawler holds, without what has expired."""
        key = (crawl, crawler_id)
        if key not in self._holders:
            if len(self._holders) >= self._most:
                self._holders = {one: holder for one, holder in self._holders.items() if holder.next_end(now)}
                self._most = max(FEW_HOLDERS, 2 * len(self._holders))
            self._holders[key] = Holder(crawl, crawler_id, self._assigned, lambda: None)
        self._holders[key].next_end(now)
        return self._holders[key]


def _one_form(url: str) -> str:
    try:
        return addresses.canonical(url)
    except UrlError:
        return url
