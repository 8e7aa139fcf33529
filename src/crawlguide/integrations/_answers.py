"""What came of a request through somebody else's HTTP client: httpx, aiohttp, requests.

Redirects are not followed: their targets have robots rules, a pace and a rank of their own, which the guide knows.
Bodies are unpacked here where a client gives them as they came: clients unpack a piece of some kilobytes to gigabytes.
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
from crawlguide.core.outcomes import REDIRECTS
from crawlguide.core.urls import canonical, without_userinfo
from crawlguide.crawler.codings import DECODERS, Body
from crawlguide.crawler.lines import robots_text

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_BYTES = 10 << 20
MOST_S = 90.0  # for a whole answer: less than a lease lasts
REQUESTS_TIMEOUTS_S = (10.0, 30.0)  # to connect, to read: requests has none of its own
MOST_REDIRECTS = 10  # of a robots.txt
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


class TooManyRedirects(Exception):
    """It leads from one place to the next."""


def fetching(client: Any) -> tuple[Fetch, str]:
    """How an asyncio program's client fetches, and the User-Agent that it sends."""
    get = _getter(client, {"httpx.AsyncClient": _by_httpx, "aiohttp.ClientSession": _by_aiohttp}, "guided_sync")
    return partial(timed, partial(followed, partial(get, client))), _agent(client)


def fetching_sync(client: Any) -> tuple[FetchSync, str]:
    """The same for scripts."""
    get = _getter(client, {"requests.Session": _by_requests, "httpx.Client": _by_httpx_sync}, "guided")
    return partial(_timed_sync, partial(_followed_sync, partial(get, client))), _agent(client)


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


async def followed(get: Callable[[str], Awaitable[Answer]], url: str, redirects: bool) -> Answer:
    """Step by step: clients that follow by themselves read all that comes on the way, however much it is."""
    for _ in range(MOST_REDIRECTS + 1):
        answer = await get(url)
        target = _target(url, answer) if redirects else None
        if target is None:
            return answer
        url = target
    raise TooManyRedirects(url)


async def _by_httpx(client: httpx.AsyncClient, url: str) -> Answer:
    async with client.stream("GET", url, headers=_asking(client), follow_redirects=False) as response:
        body = _body(response.headers, is_unpacked=response.is_stream_consumed)
        came = response.aiter_bytes() if response.is_stream_consumed else response.aiter_raw()
        if not _leads_on(response.status_code, response.headers):
            async for piece in came:
                body.add(piece)
    return _of_httpx(response, body)


async def _by_aiohttp(session: Any, url: str) -> Answer:
    import yarl  # noqa: PLC0415 - comes with aiohttp

    async with session.get(yarl.URL(url, encoded=True), allow_redirects=False) as response:
        headers = _lower(response.headers.items(), "utf-8")
        body = _body(headers, is_unpacked=session.auto_decompress)
        if not _leads_on(response.status, headers):
            async for piece in response.content.iter_any():
                body.add(piece)
    response._body = body.whole()  # as `read` would have left it
    tags = [_text(value, "utf-8") for value in response.headers.getall(ROBOTS_TAG, ())]
    return Answer(response.status, headers, body.whole(), response, tags)


# scripts


def _timed_sync(get: Callable[[str, bool], Answer], url: str, redirects: bool) -> Answer:
    began = time.monotonic()
    try:
        found = get(url, redirects)
    except Exception as problem:  # noqa: BLE001 - as above
        return _failed(problem, began)
    return _took(found, began)


def _followed_sync(get: Callable[[str], Answer], url: str, redirects: bool) -> Answer:
    for _ in range(MOST_REDIRECTS + 1):
        answer = get(url)
        target = _target(url, answer) if redirects else None
        if target is None:
            return answer
        url = target
    raise TooManyRedirects(url)


def _by_httpx_sync(client: httpx.Client, url: str) -> Answer:
    with client.stream("GET", url, headers=_asking(client), follow_redirects=False) as response:
        body = _body(response.headers, is_unpacked=response.is_stream_consumed)
        came = response.iter_bytes() if response.is_stream_consumed else response.iter_raw()
        if not _leads_on(response.status_code, response.headers):
            _add(body, came)
    return _of_httpx(response, body)


def _by_requests(session: Any, url: str) -> Answer:
    hooks = {"response": [_read_first, *session.hooks.get("response", ())]}
    options = {"stream": True, "allow_redirects": False, "timeout": REQUESTS_TIMEOUTS_S, "hooks": hooks}
    with session.get(url, headers=_asking(session), **options) as response:
        content = _read_first(response).content  # a hook of the session may have put another one in its place
    headers = _lower(response.headers.items(), "latin-1")
    return Answer(response.status_code, headers, content, response, _tags_by_requests(response))


def _read_first(response: Any, **_: Any) -> Any:
    """Before requests itself reads it: of a redirect all there is, even where it follows none."""
    if response._content is not False or not hasattr(response.raw, "stream"):  # of a cache, of somebody's tests
        return response
    headers = _lower(response.headers.items(), "latin-1")
    body = _body(headers, is_unpacked=False)
    try:
        if _leads_on(response.status_code, headers):
            response.raw.close()  # what is left of it is no beginning of another answer
        else:
            _add(body, response.raw.stream(PIECE, decode_content=False))
    except BaseException:
        response.close()
        raise
    response._content = body.whole()  # as reading it would have left it
    return response


def _tags_by_requests(response: Any) -> list[str]:
    """Its own headers are joined; what it has them from is urllib3's, unless an adapter of somebody else made it."""
    sent: Any = getattr(response.raw, "headers", None)
    if hasattr(sent, "getlist"):
        return list(sent.getlist(ROBOTS_TAG, []))
    return [response.headers[ROBOTS_TAG]] if ROBOTS_TAG in response.headers else []


def _add(body: Body, pieces: Iterable[bytes]) -> None:
    """The client's time-outs are for each piece, and a server may send pieces for ever."""
    until = time.monotonic() + MOST_S
    for piece in pieces:
        body.add(piece)
        if time.monotonic() > until:
            raise TimeoutError(f"not complete within {MOST_S} s")


def _leads_on(status: int, headers: Mapping[str, str]) -> bool:
    """Then nobody needs the body."""
    return status in REDIRECTS and bool(headers.get("location"))


def _body(headers: Mapping[str, str], *, is_unpacked: bool) -> Body:
    """However far it unpacks, as long as that is little."""
    return Body("" if is_unpacked else headers.get("content-encoding", ""), MOST_BYTES, max_ratio=MOST_BYTES)


def _asking(client: Any) -> dict[str, str]:
    """For no coding that the client could undo, and we cannot."""
    wanted = [one.strip() for one in client.headers.get("accept-encoding", "").split(",")]
    return {"accept-encoding": ", ".join(one for one in wanted if one.partition(";")[0].lower() in DECODERS)}


def _of_httpx(response: httpx.Response, body: Body) -> Answer:
    response._content = content = body.whole()  # as `read` would have left it, for those who look at the response
    return Answer(response.status_code, response.headers, content, response, response.headers.get_list(ROBOTS_TAG))


def _target(url: str, answer: Answer) -> str | None:
    if not _leads_on(answer.status or 0, answer.headers):
        return None
    return without_userinfo(canonical(answer.headers["location"], url))


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
