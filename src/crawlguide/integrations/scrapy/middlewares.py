"""What Scrapy shows of an assigned URL as it goes by: what became of it, what the page says and where it leads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from crawlguide.core.clock import retry_after_s
from crawlguide.integrations.scrapy import reading
from crawlguide.integrations.scrapy.travel import KEY
from crawlguide.integrations.scrapy.visits import Visit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from scrapy.http import Response

DOWNLOADS_AT = 605  # nearer to the network than redirects (600) and retries (550), so that each answer is seen
PAGES_AT = 10  # nearer to the engine than what drops requests, so that only what is left is seen
ERRORS = {  # by the words in the name of an exception, be it Scrapy's, Twisted's or a client library's
    "timeout": ("timeout", "timedout"),
    "dns": ("dns", "resolve"),
    "tls": ("ssl", "tls", "certificate"),
    "connect": ("connect", "responsenever", "downloadfailed", "tunnel"),
    "too_large": ("toolarge", "cancelled", "maxsize"),
}


class Downloads:
    """A downloader middleware: each answer and each failure."""

    def process_response(self, request: Request, response: Response) -> Response:
        visit = visit_of(request)
        if visit is not None:
            visit.note(**facts_of(request, response))
            if response.status >= 400:
                visit.conclude()
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        visit = visit_of(request)
        if visit is not None:
            visit.conclude(error=error_of(exception), fetch_time=now())


class Pages:
    """A spider middleware: each page that a callback was given, and the requests that it yields."""

    def process_spider_output(self, response: Response, result: Iterable[Any]) -> Iterator[Any]:
        page = Page(response)
        try:
            for one in result:
                page.led_to(one)
                yield one
        finally:
            page.ended()

    async def process_spider_output_async(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        page = Page(response)
        try:
            async for one in result:
                page.led_to(one)
                yield one
        finally:
            page.ended()


class Page:
    """A page while its callback runs."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._visit = None if response.request is None else visit_of(response.request)
        self._anchors: dict[str, reading.Anchor] | None = None

    def led_to(self, one: Any) -> None:
        """A request that was given the meta of this page is none of the guide's assignments."""
        if not isinstance(one, Request):
            return
        one.meta.pop(KEY, None)
        if self._visit is None or self._visit.is_told:
            return
        if self._anchors is None:
            self._anchors = reading.anchors(self._response)
        url = reading.address(one.url)
        self._visit.follow(one, url, self._anchors.get(url))

    def ended(self) -> None:
        if self._visit is not None and not self._visit.is_told:
            self._visit.conclude(**reading.words(self._response))


def visit_of(request: Request) -> Visit | None:
    mark = request.meta.get(KEY)
    return mark if isinstance(mark, Visit) else None


def error_of(exception: BaseException) -> str:
    """The guide's word for a failure."""
    if isinstance(exception, IgnoreRequest):
        return "blocked"
    names = " ".join(kind.__name__.lower() for kind in type(exception).__mro__)
    return next((error for error, words in ERRORS.items() if any(word in names for word in words)), "other")


def now() -> str:
    return datetime.now(UTC).isoformat()


def facts_of(request: Request, response: Response) -> dict[str, Any]:
    """What a report says of an answer, without its content."""
    facts = {
        "status": response.status,
        "fetch_time": now(),
        "bytes": len(response.body),
        "elapsed_ms": _milliseconds(request.meta.get("download_latency")),
        "content_type": _header(response, "Content-Type"),
        "retry_after_s": retry_after_s(_header(response, "Retry-After")),
        "ip": None if response.ip_address is None else str(response.ip_address),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _milliseconds(latency_s: Any) -> float | None:
    return max(0.0, latency_s * 1_000) if isinstance(latency_s, int | float) else None


def _header(response: Response, name: str) -> str | None:
    found = response.headers.get(name)
    return None if found is None else found.decode("latin-1")
