"""Between calls as plain data and httpx: what both clients send, and how what comes back is understood."""

from __future__ import annotations

import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict

import httpx

from crawlguide.core.errors import ConfigError, CrawlGuideError, UnavailableError
from crawlguide.gateway.client_calls import LINES, Reply
from crawlguide.gateway.places import address
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from crawlguide.gateway.client_calls import Call
    from crawlguide.gateway.client_tries import Tries

KEPT_S = 30.0  # an idle connection; a guide keeps it for a minute


class Options(TypedDict):
    """How both kinds of httpx client are made."""

    base_url: str
    headers: dict[str, str]
    limits: httpx.Limits
    trust_env: bool


class Sent(TypedDict):
    """One request, in the words of httpx."""

    method: str
    url: str
    params: Mapping[str, str]
    content: bytes
    timeout: httpx.Timeout


def options(url: str, headers: Mapping[str, str] | None) -> Options:
    """As many connections as there are callers at once, each used again."""
    try:
        base_url = address(url)
    except ConfigError as wrong:
        raise ConfigError(wrong.message.removeprefix("--")) from None
    words = {"content-type": "application/json", "user-agent": f"crawlguide/{__version__}", **(headers or {})}
    return Options(base_url=base_url, headers=words, limits=httpx.Limits(keepalive_expiry=KEPT_S), trust_env=False)


def shown(url: httpx.URL) -> str:
    """The address as it may stand in a message: without a password."""
    return str(url.copy_with(userinfo=b"")).rstrip("/")


def sent(call: Call[Any], tries: Tries) -> Sent:
    return Sent(method=call.method, url=call.path, params=call.query, content=call.body, timeout=tries.timeout)


def reply(server: str, answer: httpx.Response, body: bytes, tries: Tries) -> Reply:
    return Reply(server, answer.status_code, body, answer.headers.get("retry-after"), again=tries.failed > 0)


def are_lines(answer: httpx.Response) -> bool:
    return answer.is_success and answer.headers.get("content-type", "").startswith(LINES)


def check_open(closed: bool) -> None:
    if closed:
        raise RuntimeError("this client is closed; open another one")


@contextmanager
def heard(server: str) -> Iterator[None]:
    """Every way in which HTTP can fail, said in one line. Only what is unavailable may be tried again."""
    try:
        yield
    except (httpx.TimeoutException, TimeoutError):
        raise UnavailableError(f"{server} does not answer in time") from None
    except httpx.ConnectError as problem:
        if _is_untrusted(problem):
            raise CrawlGuideError(f"{server} cannot be trusted: {problem}") from None
        raise UnavailableError(f"{server} cannot be reached ({problem}): is a server running there?") from None
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.DecodingError) as problem:
        raise CrawlGuideError(f"{server} cannot be spoken to: {problem}") from None
    except httpx.HTTPError as problem:
        raise UnavailableError(f"{server} broke off: {str(problem) or type(problem).__name__}") from None


def _is_untrusted(problem: BaseException) -> bool:
    """Is it the certificate? That does not change by waiting."""
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
