"""Calls carried over HTTP by httpx: once for scripts and threads, once for asyncio programs."""

from __future__ import annotations

import ssl
from contextlib import aclosing, closing, contextmanager
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import httpx

from crawlguide.core.errors import CrawlGuideError, UnavailableError
from crawlguide.gateway.client.calls import LINES, Reply, body, path_of
from crawlguide.gateway.client.credentials import files, found_token, trust
from crawlguide.gateway.client.transport import NO_TLS, NOTICE, Notice, checked_address, untrusted
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator, Mapping

    from crawlguide.gateway.client.calls import Call
    from crawlguide.gateway.client.patience import Tries
    from crawlguide.gateway.client.transport import Shown

Result = TypeVar("Result")
CONNECT_S = 5.0
KEPT_S = 30.0  # an idle connection; a guide keeps it for a minute
NO_HTTP = ("illegal request line", "illegal status line")  # in what h11 says of somebody who speaks otherwise
OTHERS = "is it the port for https://, for gRPC (an address of grpc://), or for clients of URLFrontier?"


class HttpTransport:
    """One server, for scripts. What goes wrong is raised as `CrawlGuideError`."""

    def __init__(self, url: str, headers: Mapping[str, str] | None, shown: Shown) -> None:
        self.notice = Notice()
        self._http = httpx.Client(**_options(url, headers, shown), event_hooks={"response": [self._note]})
        self._server = _without_password(self._http.base_url)

    def _note(self, answer: httpx.Response) -> None:
        self.notice.text = answer.headers.get(NOTICE, "")

    @property
    def is_closed(self) -> bool:
        return self._http.is_closed

    def close(self) -> None:
        self._http.close()

    def answered(self, call: Call[Result], tries: Tries) -> Result:
        with http_errors_as_ours(self._server):
            with self._http.stream(**_sent(call, tries)) as answer:
                content = _read(answer, tries)
            return call.read(_reply(self._server, answer, content, tries))

    def opened(self, call: Call[None], tries: Tries) -> Generator[bytes, None, None]:
        """An answer whose lines are still to come."""
        with http_errors_as_ours(self._server):
            answer = self._http.send(self._http.build_request(**_sent(call, tries)), stream=True)
            if not _are_lines(answer):
                with closing(answer):
                    call.read(_reply(self._server, answer, _read(answer, tries), tries))
        return self._pieces(answer)

    def _pieces(self, answer: httpx.Response) -> Generator[bytes, None, None]:
        with closing(answer), http_errors_as_ours(self._server):
            yield from answer.iter_bytes()


class AsyncHttpTransport:
    """The same for asyncio programs."""

    def __init__(self, url: str, headers: Mapping[str, str] | None, shown: Shown) -> None:
        self._http = httpx.AsyncClient(**_options(url, headers, shown))
        self.server = _without_password(self._http.base_url)

    @property
    def is_closed(self) -> bool:
        return self._http.is_closed

    async def close(self) -> None:
        await self._http.aclose()

    async def answered(self, call: Call[Result], tries: Tries) -> Result:
        with http_errors_as_ours(self.server):
            answer = await self._http.request(**_sent(call, tries))
            return call.read(_reply(self.server, answer, answer.content, tries))

    async def opened(self, call: Call[None], tries: Tries) -> AsyncGenerator[bytes, None]:
        with http_errors_as_ours(self.server):
            answer = await self._http.send(self._http.build_request(**_sent(call, tries)), stream=True)
            if not _are_lines(answer):
                async with aclosing(answer):
                    call.read(_reply(self.server, answer, await answer.aread(), tries))
        return self._pieces(answer)

    async def _pieces(self, answer: httpx.Response) -> AsyncGenerator[bytes, None]:
        async with aclosing(answer):
            with http_errors_as_ours(self.server):
                async for piece in answer.aiter_bytes():
                    yield piece


def _read(answer: httpx.Response, tries: Tries) -> bytes:
    pieces = []
    for piece in answer.iter_bytes():
        tries.check()
        pieces.append(piece)
    return b"".join(pieces)


class Options(TypedDict):
    """How both kinds of httpx client are made."""

    base_url: str
    headers: dict[str, str]
    limits: httpx.Limits
    trust_env: bool
    verify: ssl.SSLContext | bool


class Sent(TypedDict):
    """One request, in the words of httpx."""

    method: str
    url: str
    params: Mapping[str, str]
    content: bytes
    timeout: httpx.Timeout


def _options(url: str, headers: Mapping[str, str] | None, shown: Shown) -> Options:
    """As many connections as there are callers at once, each used again."""
    base_url = checked_address(url)
    words = {"content-type": "application/json", "user-agent": f"crawlguide/{__version__}", **(headers or {})}
    token = found_token(shown.get("token"))
    if token is not None and "@" not in base_url.partition("://")[2].partition("/")[0]:
        words = {"authorization": f"Bearer {token}", **words}
    verify = trust(files(shown)) if base_url.startswith("https") else True
    limits = httpx.Limits(keepalive_expiry=KEPT_S)
    return Options(base_url=base_url, headers=words, limits=limits, trust_env=False, verify=verify)


def _without_password(url: httpx.URL) -> str:
    """The address as it may stand in a message: without a password."""
    return str(url.copy_with(userinfo=b"")).rstrip("/")


def _sent(call: Call[Any], tries: Tries) -> Sent:
    return Sent(method=call.method, url=path_of(call), params=call.query, content=body(call), timeout=timeout(tries))


def timeout(tries: Tries) -> httpx.Timeout:
    """For the try that begins now."""
    most = tries.timeout_s
    return httpx.Timeout(most, connect=min(most, CONNECT_S))


def _reply(server: str, answer: httpx.Response, content: bytes, tries: Tries) -> Reply:
    return Reply(server, answer.status_code, content, answer.headers.get("retry-after"), retried=tries.failed > 0)


def _are_lines(answer: httpx.Response) -> bool:
    return answer.is_success and answer.headers.get("content-type", "").startswith(LINES)


@contextmanager
def http_errors_as_ours(server: str) -> Iterator[None]:
    """Every way in which HTTP can fail, said in one line. Only what is unavailable may be tried again."""
    try:
        yield
    except (httpx.TimeoutException, TimeoutError):
        raise UnavailableError(f"{server} does not answer in time") from None
    except httpx.ConnectError as problem:
        if _is_untrusted(problem):
            raise untrusted(server, problem) from None
        if NO_TLS in str(problem):
            raise CrawlGuideError(f"{server} does not speak TLS: is its address one of http://?") from None
        raise UnavailableError(f"{server} cannot be reached ({problem}): is a server running there?") from None
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.DecodingError) as problem:
        raise CrawlGuideError(f"{server} cannot be spoken to: {problem}") from None
    except httpx.HTTPError as problem:
        words = str(problem) or type(problem).__name__
        if any(sign in words for sign in NO_HTTP):
            raise CrawlGuideError(f"{server} does not answer in HTTP ({words}): {OTHERS}") from None
        hint = "; does it speak https?" if server.startswith("http:") else ""
        raise UnavailableError(f"{server} broke off: {words}{hint}") from None


def _is_untrusted(problem: BaseException) -> bool:
    """Is it the certificate? That does not change by waiting."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
