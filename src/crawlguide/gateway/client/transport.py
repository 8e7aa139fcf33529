"""Between calls as plain data and httpx: what both clients send, how they read what comes back, and when they retry."""

from __future__ import annotations

import ssl
import time
from contextlib import contextmanager
from dataclasses import dataclass
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar

import httpx

from crawlguide.core.errors import ConfigError, CrawlGuideError, RateLimited, UnavailableError
from crawlguide.gateway.arguments import address
from crawlguide.gateway.client.calls import LINES, Reply, body
from crawlguide.gateway.client.calls import address as path_of
from crawlguide.gateway.client.credentials import found_token, trust
from crawlguide.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping

    from crawlguide.gateway.client.calls import Call

Result = TypeVar("Result")
TIMEOUT_S, RETRIES, DEADLINE_S = 30.0, 5, 60.0
CONNECT_S = 5.0
KEPT_S = 30.0  # an idle connection; a guide keeps it for a minute
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0
INSECURE = "crawlguide-insecure"
AT_LEAST_S = 0.01  # for a try that begins just before the deadline
NO_TLS = "WRONG_VERSION_NUMBER"  # in what OpenSSL says of somebody who does not speak it
NO_HTTP = ("illegal request line", "illegal status line")  # in what h11 says of somebody who speaks otherwise
OTHERS = "is it the port for https://, for gRPC (an address of grpc://), or for clients of URLFrontier?"
PASSING = (UnavailableError, RateLimited)  # what another try may mend


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


class Shown(TypedDict, total=False):
    """What a client may show and trust; docs/clients.md says where each comes from when it is not given."""

    token: str | None
    ca: str | None
    certificate: str | None
    certificate_key: str | None


def options(url: str, headers: Mapping[str, str] | None, shown: Shown) -> Options:
    """As many connections as there are callers at once, each used again."""
    try:
        base_url = address(url)
    except ConfigError as wrong:
        raise ConfigError(wrong.message.removeprefix("--")) from None
    words = {"content-type": "application/json", "user-agent": f"crawlguide/{__version__}", **(headers or {})}
    token = found_token(shown.get("token"))
    if token is not None and "@" not in base_url.partition("://")[2].partition("/")[0]:
        words = {"authorization": f"Bearer {token}", **words}
    own = shown.get("ca"), shown.get("certificate"), shown.get("certificate_key")
    verify = trust(*own) if base_url.startswith("https") else True
    limits = httpx.Limits(keepalive_expiry=KEPT_S)
    return Options(base_url=base_url, headers=words, limits=limits, trust_env=False, verify=verify)


def without_password(url: httpx.URL) -> str:
    """The address as it may stand in a message: without a password."""
    return str(url.copy_with(userinfo=b"")).rstrip("/")


def sent(call: Call[Any], tries: Tries) -> Sent:
    return Sent(method=call.method, url=path_of(call), params=call.query, content=body(call), timeout=tries.timeout)


def reply(server: str, answer: httpx.Response, content: bytes, tries: Tries) -> Reply:
    return Reply(server, answer.status_code, content, answer.headers.get("retry-after"), retried=tries.failed > 0)


class Notice:
    """What a server wants people to know, as it said in the last answer; empty: nothing."""

    def __init__(self) -> None:
        self.text = ""

    def note(self, answer: httpx.Response) -> None:
        self.text = answer.headers.get(INSECURE, "")


class Transport(Protocol):
    """What carries calls to one server, for scripts. What goes wrong is raised as `CrawlGuideError`."""

    notice: Notice

    @property
    def is_closed(self) -> bool: ...

    def close(self) -> None: ...

    def answered(self, call: Call[Result], tries: Tries) -> Result: ...

    def opened(self, call: Call[None], tries: Tries) -> Generator[bytes, None, None]:
        """An answer whose lines are still to come."""


class AsyncTransport(Protocol):
    """The same for asyncio programs."""

    server: str

    @property
    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...

    async def answered(self, call: Call[Result], tries: Tries) -> Result: ...

    async def opened(self, call: Call[None], tries: Tries) -> AsyncGenerator[bytes, None]: ...


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
            how = "name the authority that signed its certificate with --ca or CRAWLGUIDE_CA"
            raise CrawlGuideError(f"{server} cannot be trusted ({how}): {problem}") from None
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


@dataclass(frozen=True)
class Patience:
    """How often and how long both clients try a call. Time and chance come in as arguments."""

    timeout_s: float = TIMEOUT_S
    retries: int = RETRIES
    deadline_s: float = DEADLINE_S
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = SystemRandom().random

    def __post_init__(self) -> None:
        for name in ("timeout_s", "deadline_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}: expected a number above 0, got {getattr(self, name)}")
        if self.retries < 0:
            raise ConfigError(f"retries: expected an integer from 0, got {self.retries}")


class Tries:
    """The tries of one call, from its first to its deadline."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._began = patience.clock()
        self.failed = 0

    @property
    def left_s(self) -> float:
        return self._began + self._patience.deadline_s - self._patience.clock()

    @property
    def timeout_s(self) -> float:
        """For the try that begins now."""
        return max(AT_LEAST_S, min(self._patience.timeout_s, self.left_s))

    @property
    def timeout(self) -> httpx.Timeout:
        most = self.timeout_s
        return httpx.Timeout(most, connect=min(most, CONNECT_S))

    def wait_s(self, problem: CrawlGuideError) -> float:
        """How long to wait before the next try; raises the problem if there is none.

        wait = Retry-After + min(first · 2ⁿ, longest) · uniform(½, 1), so that those who failed together come back apart
        """
        doubled = min(FIRST_WAIT_S * 2.0 ** min(self.failed, 30), LONGEST_WAIT_S)
        wait = max(0.0, problem.retry_after_s or 0.0) + doubled * (1 + self._patience.chance()) / 2
        self.failed += 1
        if self.failed > self._patience.retries or wait >= self.left_s:
            problem.add_note(self._summary())
            raise problem
        return wait

    def check(self) -> None:
        """An answer that comes drop by drop is none after the deadline."""
        if self.left_s <= 0:
            raise TimeoutError

    def _summary(self) -> str:
        took_s = self._patience.clock() - self._began
        return f"given up after {self.failed} {'try' if self.failed == 1 else 'tries'} in {took_s:.1f} s"
