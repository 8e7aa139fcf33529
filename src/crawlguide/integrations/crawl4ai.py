"""Crawl4AI, guided: a deep-crawl strategy whose next page is what a guide thinks best.

    strategy = GuidedCrawlStrategy("database internals and SQL", max_pages=200)
    config = CrawlerRunConfig(deep_crawl_strategy=strategy, stream=True)

The crawler keeps its browser or HTTP client, its markdown and its extraction.
"""

from __future__ import annotations

import html as entities
import re
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Unpack

import httpx

from crawlguide.core.clock import retry_after_s
from crawlguide.core.errors import ConfigError
from crawlguide.core.extras import installing
from crawlguide.core.outcomes import is_success
from crawlguide.integrations._answers import fetching, robots_report
from crawlguide.integrations._crawl import GuidedCrawl, Settings, most_pages, side_by_side
from crawlguide.integrations._pages import READ, leading_to, read

try:
    from crawl4ai.deep_crawling import DeepCrawlStrategy
except ImportError as missing:
    raise ImportError(f"Crawl4AI is not installed ({missing}): {installing('crawl4ai')}") from missing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from crawl4ai import AsyncWebCrawler, CrawlerRunConfig
    from crawl4ai.models import CrawlResult

    from crawlguide.gateway.client.assignments import Assignment, Assignments
    from crawlguide.integrations._answers import Fetch
    from crawlguide.integrations._crawl import Goal, Options

    Visited = tuple[Assignment, CrawlResult]

ERRORS = (  # a part of Crawl4AI's message, and what that is in the guide protocol; the first that fits
    ("timed out", "timeout"), ("timeout", "timeout"), ("name_not_resolved", "dns"), ("name or service", "dns"),
    ("name resolution", "dns"), ("domain name", "dns"), ("certificate", "tls"), ("ssl", "tls"), ("connect", "connect"),
)  # fmt: skip
_STATUS = re.compile(r"\bHTTP (\d{3}):")


class GuidedCrawlStrategy(DeepCrawlStrategy):  # type: ignore[misc]  # Crawl4AI has no types
    """Crawls from the start URL, best page first.

    At most `max_pages` are requested (0: as many as there are; failures count, robots.txt does not), `concurrency` at a
    time. `relevance` says how good a result is, from 0 to 1, or None where the guide shall judge. The other options are
    those of `integrations._crawl.Settings`: `data=` or `guide=`, `crawl_id=`, `policy=`, `strategy=` …
    """

    def __init__(
        self,
        goal: Goal = None,
        *,
        max_pages: int = 0,
        concurrency: int = 5,
        relevance: Callable[[CrawlResult], float | None] | None = None,
        **options: Unpack[Options],
    ) -> None:
        most_pages(max_pages)  # what cannot be is said at once
        if relevance is not None and not callable(relevance):
            raise ConfigError(f"relevance: expected a function of a result, got {relevance!r}")
        self.goal, self.settings, self.concurrency = goal, Settings(**options), concurrency
        self.max_pages, self.relevance = max_pages, relevance
        self._open: set[GuidedCrawl] = set()

    async def _arun_batch(
        self, start_url: str, crawler: AsyncWebCrawler, config: CrawlerRunConfig
    ) -> list[CrawlResult]:
        return [result async for result in self._arun_stream(start_url, crawler, config)]

    async def _arun_stream(
        self, start_url: str, crawler: AsyncWebCrawler, config: CrawlerRunConfig
    ) -> AsyncGenerator[CrawlResult, None]:
        agent = _agent(crawler, config)
        crawl = GuidedCrawl(start_url, self.goal, self.settings, agent=agent, concurrency=self.concurrency)
        async with crawl as assignments, _rules_client(config, agent) as client:
            pages = Pages(assignments, crawler, config, fetching(client)[0])
            self._open.add(crawl)
            try:
                visited = side_by_side(pages.next, self.concurrency, most_pages(self.max_pages))
                async with aclosing(visited):
                    async for one, result in visited:
                        yield result
                        assignments.report(self._report(one, result, crawl.robots_name))
            finally:
                self._open.discard(crawl)

    def _report(self, one: Assignment, result: CrawlResult, robots_name: str) -> dict[str, Any]:
        status = _status(result)
        if status is None:
            return {"url": one.url, "error": _error(result.error_message or "")}
        report = {"url": one.url, "status": status, "retry_after_s": retry_after_s(_header(result, "retry-after"))}
        if not is_success(status):
            return report
        tags = [_header(result, "x-robots-tag") or ""]
        reading = read(result.html or "", result.redirected_url or one.url, tags, robots_name)
        return report | {
            "redirected_to": result.redirected_url or None,
            "content_type": _header(result, "content-type"),
            "title": reading.title,
            "text": reading.text[:READ],
            "language": reading.language or None,
            "robots_meta": list(reading.robots_meta) or None,
            "relevance": self.relevance(result) if self.relevance else None,
            "outlinks": _links(result, one.url),
        }

    async def shutdown(self) -> None:
        """Close crawls that were broken off: Crawl4AI leaves that to the garbage collector."""
        for crawl in list(self._open):
            await crawl.close()

    async def can_process_url(self, url: str, depth: int) -> bool:  # noqa: ARG002
        """The guide has decided."""
        return True

    async def link_discovery(self, *_: Any, **__: Any) -> None:
        """The guide discovers links in reports."""


class Pages:
    """What a crawler fetches, one after the other."""

    def __init__(self, assignments: Assignments, crawler: AsyncWebCrawler, config: CrawlerRunConfig, rules: Fetch):
        self._assignments, self._crawler, self._config, self._rules = assignments, crawler, config, rules

    async def next(self) -> Visited | None:
        """The next page; None: nothing is left. A robots.txt on the way is told as it is."""
        while (one := await self._assignments.next()) is not None:
            if one.kind != "robots":
                return one, await self._page(one)
            self._assignments.report(robots_report(one.url, await self._rules(one.url, True)))
        return None

    async def _page(self, one: Assignment) -> CrawlResult:
        """Each with a configuration of its own: Crawl4AI writes into it."""
        alone = self._config.clone(deep_crawl_strategy=None, stream=False)
        (result,) = await self._crawler.arun(one.url, config=alone)
        result.metadata = (result.metadata or {}) | {"p": one.p, "score": one.score, "reason": one.reason}
        return result


def _rules_client(config: CrawlerRunConfig, agent: str) -> httpx.AsyncClient:
    """For robots.txt, which Crawl4AI's own clients would store as a download or show in a browser."""
    proxies = config.proxy_config if isinstance(config.proxy_config, list) else [config.proxy_config]
    server = getattr(proxies[0], "server", None) if proxies else None
    return httpx.AsyncClient(proxy=server, headers={"user-agent": agent} if agent else None)


def _agent(crawler: AsyncWebCrawler, config: CrawlerRunConfig) -> str:
    """The User-Agent that the crawler sends, as far as it was set."""
    own = getattr(getattr(crawler.crawler_strategy, "browser_config", None), "headers", None) or {}
    return str(config.user_agent or own.get("User-Agent") or getattr(crawler.browser_config, "user_agent", None) or "")


def _status(result: CrawlResult) -> int | None:
    """Crawl4AI leaves the status of an answer that it does not like in its message only."""
    if result.status_code is not None:
        redirected: int | None = result.redirected_status_code
        return redirected if 300 <= result.status_code < 400 and redirected else int(result.status_code)
    if (said := _STATUS.search(result.error_message or "")) is not None:
        return int(said[1])
    return 200 if result.success else None


def _error(message: str) -> str:
    low = message.lower()
    return next((word for part, word in ERRORS if part in low), "other")


def _header(result: CrawlResult, name: str) -> str | None:
    headers = result.response_headers or {}
    return next((str(value) for key, value in headers.items() if key.lower() == name), None)


def _links(result: CrawlResult, url: str) -> list[dict[str, Any]]:
    """As Crawl4AI found them, so that what its configuration leaves out is left out."""
    every = [*result.links.get("internal", ()), *result.links.get("external", ())]
    return [
        {"url": leading_to(link["href"], url), "anchor": entities.unescape(link.get("text") or "")} for link in every
    ]
