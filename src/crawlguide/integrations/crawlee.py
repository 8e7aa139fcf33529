"""Crawlee for Python, guided: any of its crawlers gets its requests from a guide instead of a queue.

    crawler = guided_crawler(ParselCrawler, "database internals and SQL", max_requests_per_crawl=500)

The crawler keeps its handlers, sessions, proxies and storages. What its handlers enqueue are links of the page at hand;
what became of a request is told when Crawlee is done with it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import msgspec

from crawlguide.core.clock import retry_after_s
from crawlguide.core.errors import ConfigError
from crawlguide.core.extras import installing
from crawlguide.core.messages import MAX_METADATA_BYTES
from crawlguide.core.outcomes import REDIRECTS, is_success
from crawlguide.crawler.hops import leading
from crawlguide.crawler.lines import ROBOTS_BYTES
from crawlguide.integrations._answers import Answer, error_of, followed, robots_report, timed
from crawlguide.integrations._crawl import STAYING, GuidedCrawl, Settings
from crawlguide.integrations._pages import READ, Reading, decoded, leading_to, read

try:
    from crawlee import Request, RequestState
    from crawlee.errors import ContextPipelineInterruptedError
    from crawlee.http_clients import ImpitHttpClient
    from crawlee.request_loaders import RequestManager
except ImportError as missing:
    raise ImportError(f"Crawlee is not installed ({missing}): {installing('crawlee')}") from missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlee.http_clients import HttpClient, HttpCrawlingResult, HttpResponse
    from crawlee.proxy_configuration import ProxyConfiguration, ProxyInfo

    from crawlguide.gateway.client.assignments import Assignment, Assignments
    from crawlguide.integrations._crawl import Goal, Options

Crawler = TypeVar("Crawler")
OURS = "crawlguide"  # where a request says what the guide thinks of it
RELEVANCE = "relevance"  # where a handler says what it thinks of the page
NOT_TRAVELLING = frozenset({OURS, RELEVANCE, "__crawlee"})  # of `user_data`
WAITS_S = 1.0


@dataclass
class Visit:
    """What is known of a request that Crawlee is working on."""

    metadata: Mapping[str, Any] = field(default_factory=dict)  # that came with its URL
    began: float = field(default_factory=time.monotonic)
    status: int | None = None
    error: str | None = None
    elapsed_ms: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    size: int | None = None
    reading: Reading = field(default_factory=Reading)
    links: dict[str, dict[str, Any]] = field(default_factory=dict)


logger = logging.getLogger(__name__)
_visit: ContextVar[Visit | None] = ContextVar("crawlguide_visit", default=None)


def guided_crawler(kind: type[Crawler], goal: Goal = None, **options: Any) -> Crawler:
    """A Crawlee crawler of this kind that a guide leads to `goal`.

    `options` are those of the crawler and those of `GuideManager`; what hammers a host that says no is off unless it is
    asked for: the guide decides when a page is tried again.
    """
    ours = {name: options.pop(name) for name in Settings.__dataclass_fields__ if name in options}
    if (depth := options.pop("max_crawl_depth", None)) is not None:
        ours["limits"] = {"max_depth": depth} | dict(ours.get("limits") or {})
    if (settings := options.get("concurrency_settings")) is not None:
        ours["concurrency"] = settings.max_concurrency
    client = options.setdefault("http_client", GuidedHttpClient())
    manager = GuideManager(goal, http_client=client, proxies=options.get("proxy_configuration"), **ours)
    calm = {"max_request_retries": 0, "retry_on_blocked": False, "request_manager": manager}
    crawler = kind(**(calm | options))
    manager.install(crawler)
    return crawler


class GuideManager(RequestManager):
    """The guide as Crawlee sees it. `install` it into the crawler that has it as its `request_manager`.

    `http_client` and `proxies` are the crawler's, for robots.txt; `concurrency` is what it has under way at most.
    """

    def __init__(
        self,
        goal: Goal = None,
        *,
        http_client: HttpClient | None = None,
        proxies: ProxyConfiguration | None = None,
        concurrency: int = 10,
        **options: Unpack[Options],
    ) -> None:
        self._client = http_client or ImpitHttpClient()
        self._proxies = proxies
        self._crawl = GuidedCrawl([], goal, Settings(**options), concurrency=concurrency)
        self._assignments: Assignments | None = None
        self._visits: dict[str, Visit] = {}  # by the unique key of their request
        self._local: deque[Request] = deque()  # what is more than a URL: a guide cannot tell it from the page there
        self._handled = 0

    def install(self, crawler: Any) -> None:
        """Watch what the crawler receives, and end with it."""
        if isinstance(self._client, GuidedHttpClient):
            self._client.manager = self
        if hasattr(crawler, "post_navigation_hook"):
            crawler.post_navigation_hook(self._received)
        run = crawler.run

        async def run_and_close(*requests: Any, **options: Any) -> Any:
            try:
                return await run(*requests, **options)
            finally:
                await self.close()

        crawler.run = run_and_close

    async def close(self) -> None:
        """Reports go out, leases go back."""
        self._assignments = None
        self._visits.clear()
        await self._crawl.close()

    # what Crawlee asks for

    async def is_empty(self) -> bool:
        """Crawlee looks twice a second only, so it may come and wait as long as there is anything to wait for."""
        return not self._local and (await self._opened()).is_over

    async def is_finished(self) -> bool:
        """Also called while requests are handled: those are started, so it is not over."""
        return not self._local and not self._visits and (await self._opened()).is_over

    async def get_handled_count(self) -> int:
        return self._handled

    async def get_total_count(self) -> int:
        return self._handled + len(self._visits) + len(self._local)

    async def fetch_next_request(self) -> Request | None:
        assignments = await self._opened()
        if self._local:
            return self._begun(self._local.popleft())
        while (one := await _soon(assignments)) is not None:
            if one.kind != "robots":
                return self._begun(_request(one), one.metadata)
            assignments.report(await self._robots(one.url))
        return None

    async def add_request(self, request: str | Request, *, forefront: bool = False) -> None:
        await self.add_requests([request], forefront=forefront)

    async def add_requests(self, requests: Sequence[str | Request], **_: Any) -> None:
        """Links of the page at hand, or seeds where there is none."""
        every = self._transform_requests(requests)
        self._local += [one for one in every if one.method != "GET" or one.payload]
        links = [_link(one) for one in every if one.method == "GET" and not one.payload]
        if (visit := _visit.get()) is not None:
            anchors = {link.url: link.anchor for link in visit.reading.links}
            visit.links |= {link["url"]: link | {"anchor": anchors.get(link["url"], "")} for link in links}
        elif links and self._assignments is None:
            self._crawl.seeds = [*links]  # before anything is asked: a crawl without seeds would be said to be over
            await self._opened()
            self._crawl.seeds = []
        elif links and self._assignments is not None:
            await self._assignments.seed(links)

    async def mark_request_as_handled(self, request: Request) -> None:
        visit = self._visits.pop(request.unique_key, None)
        self._handled += 1
        if visit is None or self._assignments is None or request.unique_key not in self._assignments.started:
            return
        self._assignments.report(_report(request, visit))

    async def reclaim_request(self, request: Request, *, forefront: bool = False) -> None:  # noqa: ARG002
        """The guide says when to try again; Crawlee would do so at once."""
        request.state = RequestState.ERROR
        await self.mark_request_as_handled(request)

    async def drop(self) -> None:
        await self.close()

    # what happens to a request

    def _begun(self, request: Request, metadata: Mapping[str, Any] | None = None) -> Request:
        self._visits[request.unique_key] = Visit(metadata or {})
        return request

    def failed(self, request: Request, problem: Exception) -> None:
        """No answer came."""
        if (visit := self._visits.get(request.unique_key)) is not None:
            visit.error = error_of(problem)

    async def _received(self, context: Any) -> None:
        """An answer came: it is read here, whatever the handler makes of it."""
        visit = self._visits.get(context.request.unique_key)
        if visit is None:
            return
        _visit.set(visit)
        visit.elapsed_ms = (time.monotonic() - visit.began) * 1_000
        html = await _html(context, visit)
        if visit.status in REDIRECTS:
            raise ContextPipelineInterruptedError(f"{context.request.url} leads elsewhere: the guide says when to go")
        if visit.status is not None and is_success(visit.status):
            at, tags = context.request.loaded_url or context.request.url, visit.headers.get("x-robots-tag", "")
            visit.reading = await asyncio.to_thread(read, html, at, [tags], self._crawl.robots_name)

    async def _robots(self, url: str) -> dict[str, Any]:
        """A robots.txt, through the crawler's own client."""
        proxy = await self._proxies.new_proxy_info(None, None, None) if self._proxies else None
        return robots_report(url, await timed(followed, partial(self._answer, proxy), url, True))

    async def _answer(self, proxy: ProxyInfo | None, url: str) -> Answer:
        async with self._client.stream(url, proxy_info=proxy) as answer:
            body = b"" if answer.status_code in REDIRECTS else await _beginning(answer)
            return Answer(answer.status_code, answer.headers, body)

    async def _opened(self) -> Assignments:
        if self._assignments is None:
            self._assignments = await self._crawl.open()
        return self._assignments


class GuidedHttpClient(ImpitHttpClient):
    """Crawlee's own HTTP client that follows no redirects and says what kept an answer from coming."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**({"follow_redirects": False} | options))
        self.manager: GuideManager | None = None

    async def crawl(self, request: Request, **options: Any) -> HttpCrawlingResult:
        try:
            return await super().crawl(request, **options)
        except Exception as problem:
            if self.manager is not None:
                self.manager.failed(request, problem)
            raise


async def _soon(assignments: Assignments) -> Assignment | None:
    """The next URL, if there is one before Crawlee thinks that we hang."""
    try:
        async with asyncio.timeout(WAITS_S):
            return await assignments.next()
    except TimeoutError:
        return None


async def _beginning(answer: HttpResponse) -> bytes:
    """Of a robots.txt as much as is read as rules: what comes may unpack to gigabytes, or never end."""
    body = bytearray()
    async for piece in answer.read_stream():
        body += piece
        if len(body) >= ROBOTS_BYTES:
            break
    return bytes(body[:ROBOTS_BYTES])


async def _html(context: Any, visit: Visit) -> str:
    """The body, of an HTTP crawler or of a browser."""
    if hasattr(context, "http_response"):
        answer = context.http_response
        visit.status, visit.headers, body = answer.status_code, answer.headers, await answer.read()
        visit.size = len(body)
        return decoded(body, answer.headers.get("content-type", ""))
    visit.status, visit.headers = context.response.status, context.response.headers
    html: str = await context.page.content()
    return html


class Travelled(msgspec.Struct):
    """What comes back with a URL, checked."""

    user_data: dict[str, Any] = {}
    headers: dict[str, str] = {}


def _request(one: Assignment) -> Request:
    """As it was enqueued, with what the guide thinks of it."""
    judged = {OURS: {"p": one.p, "score": one.score, "reason": one.reason}}
    try:
        said = msgspec.convert(one.metadata.get(OURS, {}), Travelled)
        own = {name: value for name, value in said.user_data.items() if name not in NOT_TRAVELLING}
        headers = {name: value for name, value in said.headers.items() if name.lower() not in STAYING}
        return Request.from_url(one.url, unique_key=one.url, headers=headers, user_data=own | judged)
    except (msgspec.ValidationError, ValueError):  # others who share the guide may have written anything
        return Request.from_url(one.url, unique_key=one.url, user_data=judged)


def _link(request: Request) -> dict[str, Any]:
    """A request as a link; what its maker put into it travels along."""
    own = {name: value for name, value in request.user_data.items() if name not in NOT_TRAVELLING}
    said = {
        "user_data": own,
        "headers": {name: value for name, value in request.headers.items() if name.lower() not in STAYING},
    }
    kept = {name: value for name, value in said.items() if value}
    if len(msgspec.json.encode(kept)) > MAX_METADATA_BYTES - 20:
        raise ConfigError(f"user_data of {request.url}: expected at most {MAX_METADATA_BYTES} bytes of JSON, got more")
    return {"url": request.url} | ({"metadata": {OURS: kept}} if kept else {})


def _relevance(request: Request) -> float | None:
    """As the handler says it. Crawlee would swallow an error here, and the page would never be told."""
    said: Any = request.user_data.get(RELEVANCE)
    if said is None or (isinstance(said, bool | int | float) and 0 <= said <= 1):
        return None if said is None else float(said)
    words = 'crawlguide: user_data["relevance"] of %s: expected a number from 0 to 1, got %r; the guide judges the page'
    logger.error(words, request.url, said)
    return None


def _report(request: Request, visit: Visit) -> dict[str, Any]:
    report: dict[str, Any] = {"url": request.unique_key, "elapsed_ms": visit.elapsed_ms}
    if visit.status is None:
        done = request.state == RequestState.DONE  # by a crawler that shows no answers
        refused = "blocked" if request.state == RequestState.SKIPPED else visit.error or "connect"
        return report | ({"status": 200} if done else {"error": refused})
    wish_s = retry_after_s(visit.headers.get("retry-after"))
    report |= {"status": visit.status, "retry_after_s": wish_s, "bytes": visit.size}
    if visit.status in REDIRECTS:
        target = visit.headers.get("location")
        return report | {"outlinks": leading(leading_to(target, request.url), visit.metadata) if target else []}
    reading = visit.reading
    return report | {
        "redirected_to": request.loaded_url,
        "title": reading.title,
        "text": reading.text[:READ],
        "language": reading.language or None,
        "robots_meta": list(reading.robots_meta) or None,
        "relevance": _relevance(request),
        "outlinks": list(visit.links.values()),
    }
