"""What came of a request through somebody else's HTTP client: httpx, aiohttp, requests.

Redirects are not followed: their targets have robots rules, a pace and a rank of their own, which the guide knows.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

from crawlguide.core.clock import retry_after_s
from crawlguide.core.errors import ConfigError
from crawlguide.crawler.lines import robots_text

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_BYTES = 10 << 20
MOST_S = 90.0  # for a whole answer: less than a lease lasts
REQUESTS_TIMEOUTS_S = (10.0, 30.0)  # to connect, to read: requests has none of its own
PIECE = 1 << 16
ROBOTS_TAG = "x-robots-tag"
CLIENTS = {"httpx.AsyncClient", "aiohttp.ClientSession", "requests.Session", "httpx.Client"}
ERRORS = (  # a part of an exception's name, and what that is in the guide protocol; the first that fits
    ("TooLarge", "too_large"), ("Timeout", "timeout"), ("SSL", "tls"), ("Certificate", "tls"), ("gaierror", "dns"),
    ("DNS", "dns"), ("onnect", "connect"), ("RemoteProtocol", "connect"), ("IncompleteRead", "connect"),
    ("ClientPayload", "connect"), ("ReadError", "connect"),
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """An answer, or why there is none: `error` in the words of the guide protocol."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # names in lower case; several of one name are one
    content: bytes = b""
    response: Any = None  # the client's own
    robots_tags: Sequence[str] = ()  # each X-Robots-Tag as it came: joined, nobody could tell whom which words are for
    error: str | None = None
    elapsed_ms: float = 0.0

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    @property
    def retry_after_s(self) -> float | None:
        return retry_after_s(self.headers.get("retry-after"))


Fetch = Callable[[str, bool], Awaitable[Answer]]  # of a URL, following redirects or not
FetchSync = Callable[[str, bool], Answer]


class TooLarge(Exception):
    """The body is longer than anybody reads."""


def fetching(client: Any) -> tuple[Fetch, str]:
    """How an asyncio program's client fetches, and the User-Agent that it sends."""
    get = _getter(client, {"httpx.AsyncClient": _by_httpx, "aiohttp.ClientSession": _by_aiohttp}, "guided_sync")
    return partial(timed, partial(get, client)), _agent(client)


def fetching_sync(client: Any) -> tuple[FetchSync, str]:
    """The same for scripts."""
    get = _getter(client, {"requests.Session": _by_requests, "httpx.Client": _by_httpx_sync}, "guided")
    return partial(_timed_sync, partial(get, client)), _agent(client)


def error_of(problem: BaseException) -> str:
    """The guide protocol's word for an exception of any client: by its name, or by that of what caused it."""
    chain = [problem]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    names = " ".join(type(one).__name__ for one in chain)
    return next((word for part, word in ERRORS if part in names), "other")


def report_of_answer(url: str, answer: Answer) -> dict[str, Any]:
    """What came, without its content."""
    outcome = {"error": answer.error} if answer.error else {"status": answer.status}
    return {"url": url, "elapsed_ms": answer.elapsed_ms, "retry_after_s": answer.retry_after_s} | outcome


def robots_report(url: str, answer: Answer) -> dict[str, Any]:
    """What came of a robots.txt."""
    return report_of_answer(url, answer) | {"text": robots_text(answer.status, answer.content)}


def _getter(client: Any, known: Mapping[str, Callable[..., Any]], other: str) -> Callable[..., Any]:
    kinds = [f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(client).__mro__]
    found = next((known[kind] for kind in kinds if kind in known), None)
    if found is None:
        hint = f"; for that one there is {other}" if CLIENTS.intersection(kinds) else ""
        raise ConfigError(f"client: expected {' or '.join(known)}, got {kinds[0]}{hint}")
    return found


def _agent(client: Any) -> str:
    """What it is set to send; "" for nothing. aiohttp adds its own when it sends."""
    aiohttp = sys.modules.get("aiohttp")
    usual = aiohttp.http.SERVER_SOFTWARE if aiohttp and isinstance(client, aiohttp.ClientSession) else ""
    return str(client.headers.get("User-Agent") or usual)


# asyncio programs


async def timed(get: Callable[..., Awaitable[Answer]], *request: Any) -> Answer:
    """How long it took, or why nothing came."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(MOST_S):
            found = await get(*request)
    except Exception as problem:  # noqa: BLE001 - every client has its own, and a fetch that fails is told
        return _failed(problem, began)
    return _took(found, began)


async def _by_httpx(client: httpx.AsyncClient, url: str, redirects: bool) -> Answer:
    async with client.stream("GET", url, follow_redirects=redirects) as response:
        body = bytearray()
        async for piece in response.aiter_bytes():
            _grow(body, piece)
    response._content = bytes(body)  # as `aread` would have left it, for those who look at the response
    return Answer(response.status_code, response.headers, bytes(body), response, response.headers.get_list(ROBOTS_TAG))


async def _by_aiohttp(session: Any, url: str, redirects: bool) -> Answer:
    import yarl  # noqa: PLC0415 - comes with aiohttp

    async with session.get(yarl.URL(url, encoded=True), allow_redirects=redirects) as response:
        body = bytearray()
        async for piece in response.content.iter_any():
            _grow(body, piece)
    response._body = bytes(body)  # as `read` would have left it
    tags = [_text(value, "utf-8") for value in response.headers.getall(ROBOTS_TAG, ())]
    return Answer(response.status, _lower(response.headers.items(), "utf-8"), bytes(body), response, tags)


# scripts


def _timed_sync(get: Callable[[str, bool], Answer], url: str, redirects: bool) -> Answer:
    began = time.monotonic()
    try:
        found = get(url, redirects)
    except Exception as problem:  # noqa: BLE001 - as above
        return _failed(problem, began)
    return _took(found, began)


def _by_httpx_sync(client: httpx.Client, url: str, redirects: bool) -> Answer:
    until, body = time.monotonic() + MOST_S, bytearray()
    with client.stream("GET", url, follow_redirects=redirects) as response:
        for piece in response.iter_bytes():
            _grow(body, piece, until)
    response._content = bytes(body)
    return Answer(response.status_code, response.headers, bytes(body), response, response.headers.get_list(ROBOTS_TAG))


def _by_requests(session: Any, url: str, redirects: bool) -> Answer:
    until, body = time.monotonic() + MOST_S, bytearray()
    with session.get(url, stream=True, allow_redirects=redirects, timeout=REQUESTS_TIMEOUTS_S) as response:
        for piece in response.iter_content(PIECE):
            _grow(body, piece, until)
    response._content = bytes(body)
    headers = _lower(response.headers.items(), "latin-1")
    return Answer(response.status_code, headers, bytes(body), response, _tags_by_requests(response))


def _tags_by_requests(response: Any) -> list[str]:
    """Its own headers are joined; what it has them from is urllib3's, unless an adapter of somebody else made it."""
    sent: Any = getattr(response.raw, "headers", None)
    if hasattr(sent, "getlist"):
        return list(sent.getlist(ROBOTS_TAG, []))
    return [response.headers[ROBOTS_TAG]] if ROBOTS_TAG in response.headers else []


def _grow(body: bytearray, piece: bytes, until: float = float("inf")) -> None:
    body += piece
    if len(body) > MOST_BYTES:
        raise TooLarge(f"more than {MOST_BYTES} bytes")
    if time.monotonic() > until:
        raise TimeoutError(f"not complete within {MOST_S} s")


def _lower(headers: Iterable[tuple[str, str]], codec: str) -> dict[str, str]:
    """Several of one name become one, with commas between, as httpx and requests have it."""
    found: dict[str, str] = {}
    for name, value in headers:
        before = f"{found[name.lower()]}, " if name.lower() in found else ""
        found[name.lower()] = before + _text(value, codec)
    return found


def _text(value: str, codec: str) -> str:
    """A header of which the client has made text by `codec`: UTF-8 where it is that, else Latin-1."""
    try:
        sent = value.encode(codec, "surrogateescape")
    except UnicodeEncodeError:  # text that never was a header
        return value
    try:
        return sent.decode()
    except UnicodeDecodeError:
        return sent.decode("latin-1")


def _took(answer: Answer, began: float) -> Answer:
    return replace(answer, elapsed_ms=(time.monotonic() - began) * 1_000)


def _failed(problem: Exception, began: float) -> Answer:
    return Answer(error=error_of(problem), elapsed_ms=(time.monotonic() - began) * 1_000)
