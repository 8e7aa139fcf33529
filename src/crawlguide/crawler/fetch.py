"""Fetching: one URL in, what came of it out, whatever the other side does.

Redirects are followed here, each step checked like a first request: scheme, port, public address, and whoever else has
a say. What comes back is bounded in headers, bytes, how far it unpacks, and time. No cookies, no credentials.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from crawlguide.core import urls
from crawlguide.core.clock import SystemClock, retry_after_s
from crawlguide.core.errors import ConfigError, UrlError
from crawlguide.core.extras import installing
from crawlguide.core.outcomes import REDIRECTS
from crawlguide.core.urls import parts
from crawlguide.crawler.fetched import Fetched, Redirect, Validators
from crawlguide.crawler.headers import plain_line, shown
from crawlguide.crawler.patience import Patience
from crawlguide.guide.robots.outgoing import Refused, usual_tls
from crawlguide.guide.robots.resolver import Resolver
from crawlguide.policy.addresses import networks
from crawlguide.version import __version__

try:
    import aiohttp
    from yarl import URL

    from crawlguide.crawler.codings import ACCEPTED, Body, TooLarge, Unreadable
    from crawlguide.crawler.connecting import CheckedResolver, Reach
except ImportError as missing:
    raise ConfigError(f"crawling needs {missing.name}, which is not installed: {installing('crawl')}") from None

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from crawlguide.core.clock import Clock
    from crawlguide.crawler.connecting import Resolve

    Permitted = Callable[[str], Awaitable[str | None]]

__all__ = ["FetchOptions", "Fetched", "Fetcher", "Redirect", "Validators"]

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,application/pdf;q=0.8,text/plain;q=0.8,*/*;q=0.5"
NAMES_OF_DOMAIN = 64  # looked up at once: a crawl of one site's many names is no attack
NAMES_KEPT_S = 60


class Lost(Exception):
    """A way that leads nowhere."""


# What others do, and the protocol's word for it: the first that fits.
WORDS: tuple[tuple[type[Exception], str], ...] = (
    (Refused, "blocked"),
    (UrlError, "blocked"),  # a redirect to what is no http(s) URL
    (TooLarge, "too_large"),
    (Unreadable, "other"),
    (Lost, "other"),
    (TimeoutError, "timeout"),
    (UnicodeError, "dns"),  # a name that none can have
    (aiohttp.ClientConnectorDNSError, "dns"),
    (aiohttp.ClientSSLError, "tls"),
    (ssl.SSLError, "tls"),
    (aiohttp.ClientPayloadError, "connect"),
    (aiohttp.ClientConnectionError, "connect"),
    (OSError, "connect"),
    (aiohttp.ClientError, "other"),
)
TOO_LARGE = ("Got more than", "Too many headers")  # aiohttp's words for a head beyond our bounds
OF_AIOHTTP = re.compile(r" ssl:(?:\w+|<[^>]*>) \[")  # how it would have used TLS
OTHERS_DO = tuple(kind for kind, _ in WORDS)


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """How to fetch, and how much at most."""

    user_agent: str = "crawlguide"
    contact: str = ""  # a URL or an e-mail address, for those whose sites are crawled
    proxy: str | None = None  # http://host:port; names are then resolved by the proxy, and any may be reached
    concurrency: int = 64
    per_host: int = 4
    max_bytes: int = 10 * 1024 * 1024  # of a body, unpacked
    max_ratio: int = 100  # so far may a body unpack
    max_redirects: int = 10
    max_headers: int = 128
    max_header_bytes: int = 16_384  # of one header
    timeout_s: float = 30.0  # until the answer begins, and between two pieces of it; quick hosts get less
    least_timeout_s: float = 3.0
    total_s: float = 120.0  # for the whole of a fetch, with its redirects
    min_bytes_per_s: float = 512.0  # of a body
    grace_s: float = 10.0  # before it must keep to that
    keep_alive_s: float = 10.0
    allow_networks: tuple[str, ...] = ()  # as outgoing.allow_networks

    def __post_init__(self) -> None:
        for name in ("user_agent", "contact"):
            value = getattr(self, name)
            if not value.isascii() or not value.isprintable():
                raise ConfigError(f"{name}: expected printable ASCII, got {value[:100]!r}")
        if not self.user_agent.strip():
            raise ConfigError("user_agent: expected a name, got nothing")
        for name in ("concurrency", "per_host", "max_bytes", "max_ratio", "timeout_s", "total_s"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name}: expected more than 0, got {getattr(self, name)}")
        if self.proxy is not None:
            object.__setattr__(self, "proxy", _proxy(self.proxy))

    @property
    def agent(self) -> str:
        """Who we say we are; a name that carries a version is left as it is."""
        name = self.user_agent if "/" in self.user_agent else f"{self.user_agent}/{__version__}"
        return f"{name} (+{self.contact})" if self.contact else name


@dataclass
class _Way:
    """A fetch under way: where it is, what it has passed."""

    url: str
    began: float
    enough: int | None = None  # bytes of its body
    redirects: list[Redirect] = field(default_factory=list)
    last: Fetched | None = None  # the last answer, before its body
    received_bytes: int = 0  # of its body


class Fetcher:
    """Fetches canonical URLs; an async context manager.

    `permitted` is asked before each redirect step: None to go on, else the reason why not.
    """

    def __init__(
        self,
        options: FetchOptions,
        permitted: Permitted | None = None,
        *,
        resolve: Resolve | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.options = options
        self._permitted, self._tls, self._clock = permitted, tls, clock or SystemClock()
        self._resolve = resolve or Resolver(most_of_domain=NAMES_OF_DOMAIN)
        allowed = networks(options.allow_networks, "allow_networks")
        self._reach = None if options.proxy else Reach(allowed)
        self._patience = Patience(options.least_timeout_s, options.timeout_s)
        self._slots = asyncio.Semaphore(options.concurrency)
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._at_gate: Counter[str] = Counter()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        options = self.options
        connector = aiohttp.TCPConnector(
            limit=0,  # waiting for a turn is no waiting for an answer: `_slots` and `_gates`
            resolver=CheckedResolver(self._resolve, self._reach),
            ttl_dns_cache=NAMES_KEPT_S,
            keepalive_timeout=options.keep_alive_s,
            ssl=self._tls or usual_tls(),
            socket_factory=self._reach.socket if self._reach else None,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": options.agent, "Accept": ACCEPT, "Accept-Encoding": ACCEPTED},
            timeout=aiohttp.ClientTimeout(total=None, sock_read=options.timeout_s),
            max_line_size=options.max_header_bytes,
            max_field_size=options.max_header_bytes,
            max_headers=options.max_headers,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def refusal(self, url: str) -> str:
        """Why nothing of this canonical URL can be fetched: it may not be reached, nobody knows its name; or ""."""
        if self._reach is None:
            return ""
        try:
            self._reach.check_url(url)
            _, host, _, _, _ = parts(url)
            for address in await self._resolve(host, 0):
                self._reach.check(address, host)
        except Refused as wrong:
            return str(wrong)
        except OSError as problem:
            return f"{parts(url).host[:100]}: {problem.strerror or problem}"
        except UnicodeError:  # a name that none can have
            return f"{parts(url).host[:100]}: not a valid host name"
        return ""

    async def fetch(self, url: str, validators: Validators | None = None, *, enough: int | None = None) -> Fetched:
        """Never raises for what others do. Of a body that has more than `enough` bytes the rest is not read."""
        async with self._slots:
            way = _Way(url, time.monotonic(), enough)
            try:
                async with asyncio.timeout(self.options.total_s):
                    found = await self._followed(way, validators)
            except OTHERS_DO as wrong:
                found = _failed(way, wrong)
        return replace(
            found,
            url=url,
            redirected_to=way.url if found.status is not None and way.url != url else None,
            redirects=tuple(way.redirects),
            received_bytes=way.received_bytes,
            elapsed_ms=1_000.0 * (time.monotonic() - way.began),
        )

    async def _followed(self, way: _Way, validators: Validators | None) -> Fetched:
        while True:
            target = await self._once(way, validators)
            if not isinstance(target, str):
                return target
            await self._check_step(way, target)
            way.url, way.last, validators = target, None, None

    async def _check_step(self, way: _Way, target: str) -> None:
        passed = [redirect.url for redirect in way.redirects]
        if target in passed:  # without cookies it would go on for ever
            raise Lost(f"a redirect back to {target[:200]}")
        if len(passed) > self.options.max_redirects:
            raise Lost(f"more than {self.options.max_redirects} redirects")
        if self._permitted is not None and (reason := await self._permitted(target)) is not None:
            raise Refused(reason)
        self._check(target)

    def _check(self, url: str) -> None:
        if self._reach is not None:
            self._reach.check_url(url)

    async def _once(self, way: _Way, validators: Validators | None) -> Fetched | str:
        """One request: its answer, or where that leads."""
        self._check(way.url)
        async with self._turn(urls.queue(way.url)) as host, self._answer(host, way.url, validators) as answer:
            way.last = found = self._head(way.url, answer)
            location = found.header("location") if found.status in REDIRECTS else ""
            if not location:
                return replace(found, body=await self._body(way, answer))
            redirect = Redirect(way.url, answer.status, found.headers)
            way.redirects.append(redirect)
            target = urls.without_userinfo(urls.canonical(location, way.url))
            way.redirects[-1] = replace(redirect, target=target)
            return target

    @asynccontextmanager
    async def _turn(self, host: str) -> AsyncIterator[str]:
        """At most `per_host` requests of a host at once."""
        gate = self._gates.setdefault(host, asyncio.Semaphore(self.options.per_host))
        self._at_gate[host] += 1
        try:
            async with gate:
                yield host
        finally:
            self._at_gate[host] -= 1
            if not self._at_gate[host]:
                del self._at_gate[host], self._gates[host]

    @asynccontextmanager
    async def _answer(
        self, host: str, url: str, validators: Validators | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None, "a Fetcher is used within `async with`"  # noqa: S101
        began, patience_s = time.monotonic(), self._patience.of(host)
        try:
            async with asyncio.timeout(patience_s):
                answer = await self._session.get(
                    _same(url), headers=_conditions(validators), proxy=self.options.proxy, allow_redirects=False
                )
        except TimeoutError:
            # A host that became slow is given more time by and by.
            self._patience.add(host, patience_s)
            raise TimeoutError(f"no answer within {patience_s:.1f} s") from None
        self._patience.add(host, time.monotonic() - began)
        async with answer:
            yield answer

    def _head(self, url: str, answer: aiohttp.ClientResponse) -> Fetched:
        headers = tuple((shown(name), shown(value)) for name, value in answer.raw_headers)
        version = f"{answer.version.major}.{answer.version.minor}" if answer.version else "1.1"
        found = Fetched(url, answer.status, headers=headers, reason=answer.reason or "", version=version)
        wish = retry_after_s(found.header("retry-after"), found.header("date"), self._clock.now())
        return replace(found, retry_after_s=wish)

    async def _body(self, way: _Way, answer: aiohttp.ClientResponse) -> bytes:
        """Raises what is wrong with it."""
        options, began = self.options, time.monotonic()
        if way.enough is None and (answer.content_length or 0) > options.max_bytes:
            raise TooLarge(f"a body of {answer.content_length} bytes, of at most {options.max_bytes}")
        coding = ",".join(answer.headers.getall("Content-Encoding", ()))
        body = Body(coding, options.max_bytes, options.max_ratio)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(options.timeout_s) as patience:  # chunks may be all frame, and never hold a byte
            async for piece in answer.content.iter_any():
                patience.reschedule(loop.time() + options.timeout_s)
                way.received_bytes += len(piece)
                body.add(piece)
                if way.enough is not None and len(body) >= way.enough:
                    break
                elapsed_s = time.monotonic() - began
                if elapsed_s > options.grace_s and way.received_bytes < elapsed_s * options.min_bytes_per_s:
                    raise TimeoutError(f"{way.received_bytes} bytes in {elapsed_s:.0f} s")
        return body.whole()[: way.enough]


def _failed(way: _Way, wrong: Exception) -> Fetched:
    word = next(word for kind, word in WORDS if isinstance(wrong, kind))
    if isinstance(wrong, aiohttp.ClientResponseError) and wrong.message.startswith(TOO_LARGE):
        word = "too_large"
    problem = str(wrong) or ("no whole answer in time" if word == "timeout" else type(wrong).__name__)
    if isinstance(wrong, aiohttp.ClientConnectorError):
        problem = OF_AIOHTTP.sub(" [", problem, count=1)
    if isinstance(wrong, aiohttp.ClientProxyConnectionError):
        problem = f"the proxy does not answer: {problem}"
    return replace(way.last or Fetched(way.url), error=word, problem=plain_line(problem))


def _conditions(validators: Validators | None) -> dict[str, str]:
    """What a server said goes back to it, but nothing that would be more than one header."""
    if validators is None:
        return {}
    found = {"If-None-Match": validators.etag, "If-Modified-Since": validators.last_modified}
    return {name: plain_line(value, 1_000) for name, value in found.items() if value.strip()}


def _same(url: str) -> URL:
    """For aiohttp, whose own reading of a URL must be ours. Credentials are not sent."""
    scheme, host, port, _, _ = urls.parts(url)
    target = url[url.index("/", 8) :]
    known = URL(f"{scheme}://{host}{':' if port else ''}{port}{target}", encoded=True)
    place = (known.scheme, known.raw_host, known.explicit_port)
    if place != (scheme, host.strip("[]"), int(port) if port else None):
        raise Lost(f"a host that is read in two ways: {known.raw_host!r}")
    if known.raw_path_qs not in (target, target.removesuffix("?")):
        raise Lost("a path that is read in two ways")
    return known


def _proxy(proxy: str) -> str:
    try:
        found = urls.canonical(proxy)
    except UrlError as wrong:
        raise ConfigError(f"proxy: expected a URL such as http://127.0.0.1:8080: {wrong}") from None
    if not found.startswith("http://"):
        raise ConfigError(f"proxy: expected a URL that begins with http://, got {proxy[:100]!r}")
    return found
