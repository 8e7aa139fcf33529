"""A script's own HTTP client, guided: `async for page in guided(client, seeds, goal)`, or `for page in guided_sync(…)`.

    async with httpx.AsyncClient() as client:
        async for page in guided(client, ["https://example.com/"], "database internals", max_pages=500):
            print(page.p, page.url, page.title)

Every page is told to the guide when the loop goes on, and the next one is what the guide then thinks best. However the
loop ends, reports go out first and what was not fetched goes back.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from crawlguide.core.messages import Outlink
from crawlguide.core.outcomes import REDIRECTS, is_success
from crawlguide.crawler.hops import leading
from crawlguide.crawler.parse import robots_tag
from crawlguide.integrations._answers import fetching, fetching_sync, report_of_answer, robots_report
from crawlguide.integrations._crawl import GuidedCrawl, Settings, most_pages, side_by_side
from crawlguide.integrations._pages import READ, Reading, decoded, leading_to, read

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Mapping

    from crawlguide.gateway.client.assignments import Assignment, Assignments
    from crawlguide.integrations._answers import Answer, Fetch, FetchSync
    from crawlguide.integrations._crawl import Goal, Options, Seeds


class Page:
    """A page that was fetched, and what is told of it.

    Set `relevance` (0 to 1) if you know better than the guide, `links` if other links count than those of the HTML.
    """

    def __init__(self, assignment: Assignment, answer: Answer, robots_name: str) -> None:
        self.url = assignment.url
        self.p, self.score, self.reason = assignment.p, assignment.score, assignment.reason
        self.metadata: Mapping[str, Any] = assignment.metadata
        self.status, self.error, self.headers = answer.status, answer.error, answer.headers
        self.content, self.response, self.elapsed_ms = answer.content, answer.response, answer.elapsed_ms
        self.relevance: float | None = None
        self._answer, self._robots_name = answer, robots_name
        self._links: Iterable[str | Mapping[str, Any] | Outlink] | None = None

    def __repr__(self) -> str:
        return f"<Page {self.status or self.error} {self.url}>"

    @property
    def ok(self) -> bool:
        """It answered with a status from 200 to 299."""
        return self.status is not None and is_success(self.status, self.error or "")

    @cached_property
    def html(self) -> str:
        """The body as text."""
        return decoded(self.content, self._answer.content_type)

    @property
    def title(self) -> str:
        return self._reading.title

    @property
    def text(self) -> str:
        """What a reader sees, without markup."""
        return self._reading.text

    @property
    def links(self) -> list[Outlink]:
        """Where the page leads to: URLs, or dictionaries with `url`, `anchor` and so on, can be put in their place."""
        given = self._reading.links if self._links is None else self._links
        return [link if isinstance(link, Outlink) else _outlink(link) for link in given]

    @links.setter
    def links(self, links: Iterable[str | Mapping[str, Any] | Outlink]) -> None:
        self._links = list(links)

    def skip(self) -> None:
        """The page is worth nothing, and nobody should follow its links."""
        self.relevance, self._links = 0.0, []

    def _read(self) -> None:
        """What will be told is read, which may take seconds; what did not come is not."""
        if self.ok:
            _ = self._reading

    @cached_property
    def _reading(self) -> Reading:
        kind = self._answer.content_type.partition(";")[0].strip().lower()
        tags = self._answer.robots_tags
        if kind in {"", "text/html", "application/xhtml+xml"}:
            return read(self.html, self.url, tags, self._robots_name)
        text = self.html if kind.startswith("text/") else ""
        return Reading(text=text, robots_meta=tuple(robots_tag(tags, self._robots_name)))

    @property
    def _location(self) -> str | None:
        return self.headers.get("location") if self.status in REDIRECTS else None

    def _report(self) -> dict[str, Any]:
        """A redirect is told with its target as a link, for which the guide finds the time."""
        found = report_of_answer(self.url, self._answer)
        if self._location:
            return found | {"outlinks": leading(leading_to(self._location, self.url), self.metadata)}
        if not self.ok:
            return found
        known = {
            "content_type": self._answer.content_type or None,
            "bytes": len(self.content),
            "title": self.title,
            "text": self.text[:READ],
            "language": self._reading.language or None,
            "robots_meta": list(self._reading.robots_meta) or None,
            "relevance": None if self.relevance is None else float(self.relevance),
            "outlinks": [_as_told(link) for link in self.links],
        }
        return found | known


async def guided(
    client: Any,
    seeds: Seeds,
    goal: Goal = None,
    *,
    max_pages: int = 0,
    concurrency: int = 8,
    failures: bool = False,
    **options: Unpack[Options],
) -> AsyncGenerator[Page, None]:
    """The pages of a crawl, best first, fetched by `client`: an httpx.AsyncClient or an aiohttp.ClientSession.

    At most `max_pages` are requested (0: as many as there are; redirects and failures count, robots.txt does not),
    `concurrency` at a time. `failures`: also what did not answer, or said no. The other options are those of
    `integrations._crawl.Settings`: `data=` or `guide=`, `crawl_id=`, `policy=`, `strategy=` …
    """
    fetch, agent = fetching(client)
    most = most_pages(max_pages)
    crawl = GuidedCrawl(seeds, goal, Settings(**options), agent=agent, concurrency=concurrency)
    async with crawl as assignments:
        fetched = side_by_side(lambda: _fetched(crawl, assignments, fetch), concurrency, most)
        async with aclosing(fetched):
            async for page in fetched:
                if page.ok or (failures and not page._location):
                    yield page
                assignments.report(page._report())


def guided_sync(
    client: Any,
    seeds: Seeds,
    goal: Goal = None,
    *,
    max_pages: int = 0,
    failures: bool = False,
    **options: Unpack[Options],
) -> Generator[Page, None, None]:
    """The same for scripts, one page after the other; `client` is a requests.Session or an httpx.Client."""
    fetch, agent = fetching_sync(client)
    most = most_pages(max_pages)
    crawl = GuidedCrawl(seeds, goal, Settings(**options), agent=agent, concurrency=1)
    _check_no_loop()
    with asyncio.Runner() as runner:
        assignments, begun = runner.run(crawl.open()), 0
        try:
            while begun < most and (page := _fetched_sync(runner, crawl, assignments, fetch)) is not None:
                begun += 1
                if page.ok or (failures and not page._location):
                    yield page
                runner.run(_reported(assignments, page._report()))
        finally:
            runner.run(crawl.close())


async def _fetched(crawl: GuidedCrawl, assignments: Assignments, fetch: Fetch) -> Page | None:
    """What came of the next URL; None: nothing is left. A robots.txt on the way is told as it is."""
    while (one := await assignments.next()) is not None:
        answer = await fetch(one.url, one.kind == "robots")
        if one.kind != "robots":
            page = Page(one, answer, crawl.robots_name)
            await asyncio.to_thread(page._read)
            return page
        assignments.report(robots_report(one.url, answer))
    return None


def _fetched_sync(
    runner: asyncio.Runner, crawl: GuidedCrawl, assignments: Assignments, fetch: FetchSync
) -> Page | None:
    while (one := runner.run(assignments.next())) is not None:
        answer = fetch(one.url, one.kind == "robots")
        if one.kind != "robots":
            return Page(one, answer, crawl.robots_name)
        runner.run(_reported(assignments, robots_report(one.url, answer)))
    return None


async def _reported(assignments: Assignments, report: Mapping[str, Any]) -> None:
    assignments.report(report)


def _outlink(link: str | Mapping[str, Any]) -> Outlink:
    return Outlink(link) if isinstance(link, str) else Outlink(**link)


def _as_told(link: Outlink) -> dict[str, Any]:
    known = {"url": link.url, "anchor": link.anchor, "rel": link.rel}
    return known | {name: value for name in ("position", "metadata") if (value := getattr(link, name)) is not None}


def _check_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("guided_sync is for scripts; inside an asyncio program use guided and async for")
