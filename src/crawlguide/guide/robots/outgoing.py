"""Requests of our own, such as for robots.txt. A page that we were told about must not lead us anywhere else.

Only http and https, only to allowed ports; a name is resolved once, every address it has is checked, and the connection
goes to an address that was checked, so a second answer of its name server changes nothing. Each redirect is a new
request. What comes back is bounded in bytes, in how far it unpacks, in what stands around it, and in time, and is read
in pieces so small that none keeps others waiting. No proxy, no cookies, no credentials.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import httpcore

from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.core.outcomes import REDIRECTS
from crawlguide.guide.robots.resolver import Resolver
from crawlguide.policy.addresses import address_of, may_reach, networks

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from crawlguide.core.config import OutgoingOptions as Options
    from crawlguide.policy.addresses import Network

    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

MAX_REDIRECTS = 5
MAX_RATIO, SMALL_BYTES = 100, 65_536  # so far may a body unpack, once it is no longer small
PIECE_BYTES = 8_192  # may hold a thousand chunks, each of which takes a while
MOST_AROUND_BYTES = 65_536  # of heads, of chunks and of what is packed to nothing; the longer the body, the more
USUAL_PORTS = {"http": 80, "https": 443}
PRIVATE_NAMES = (".local", ".internal", ".localhost", ".localdomain", ".home.arpa", ".lan", ".intranet")
_NOT_IN_HEADERS = re.compile(r"[^ -~]")


class Refused(Exception):
    """We do not go there, or do not take what comes from there."""


@dataclass(frozen=True)
class Answer:
    """What came back; without a status nothing did, and `problem` says why. `cut`: there was more than was wanted.

    `address` is where the host that was asked first is: of several the same one every time.
    """

    status: int | None = None
    body: bytes = b""
    problem: str = ""
    cut: bool = False
    address: str = field(default="", compare=False)


@cache
def usual_tls() -> ssl.SSLContext:
    """The certificates that everybody trusts: read once, which takes a tenth of a second."""
    return httpcore.default_ssl_context()


@dataclass(frozen=True)
class Outgoing:
    """Fetches what is at a canonical URL, or says why not."""

    options: Options
    resolve: Resolve = field(default_factory=Resolver)
    tls: ssl.SSLContext = field(default_factory=usual_tls)
    allowed: tuple[Network, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed", networks(self.options.allow_networks, "outgoing.allow_networks"))

    async def get(self, url: str, agent: str, most_bytes: int) -> Answer:
        """Never raises for what others do: it comes back as a problem."""
        try:
            async with asyncio.timeout(self.options.timeout_s):
                return await self._followed(url, agent, most_bytes)
        except TimeoutError:
            return Answer(problem=f"no whole answer within {self.options.timeout_s:g} s")
        except (Refused, UrlError) as refusal:
            return Answer(problem=str(refusal))
        except (
            OSError,
            UnicodeError,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
        ) as wrong:
            return Answer(problem=f"{type(wrong).__name__}: {wrong}"[:200])

    async def _followed(self, url: str, agent: str, most_bytes: int) -> Answer:
        address = ""
        for _ in range(MAX_REDIRECTS + 1):
            answer, target = await self._once(url, agent, most_bytes)
            address = address or answer.address
            if target is None:
                return replace(answer, address=address)
            url = urls.canonical(target, url)
        raise Refused(f"more than {MAX_REDIRECTS} redirects")

    async def _once(self, url: str, agent: str, most_bytes: int) -> tuple[Answer, str | None]:
        """One request, on a connection of its own; and where it redirects to."""
        scheme, host, port, _, _ = urls.parts(url)
        number = int(port or USUAL_PORTS[scheme])
        self._check(host.strip("[]"), number)
        path = url[url.index("/", 8) :]
        place = httpcore.URL(scheme=scheme, host=host.strip("[]"), port=number, target=path)
        headers = {
            "Host": host + (f":{port}" if port else ""),
            "User-Agent": _in_a_header(agent),
            "Accept-Encoding": "gzip",
        }
        wait = dict.fromkeys(("connect", "read", "write", "pool"), self.options.timeout_s)
        backend = Checked(self.resolve, self.allowed)
        async with (
            httpcore.AsyncConnectionPool(self.tls, network_backend=backend) as pool,
            pool.stream("GET", place, headers=list(headers.items()), extensions={"timeout": wait}) as response,
        ):
            target = _header(response, b"location") if response.status in REDIRECTS else ""
            if target:
                return Answer(response.status, address=backend.address), target
            body, cut = await _body(response, backend.received, most_bytes)
            return Answer(response.status, body, cut=cut, address=backend.address), None

    def _check(self, host: str, port: int) -> None:
        if self.options.ports and port not in self.options.ports:
            raise Refused(f"port {port} is none of outgoing.ports")
        is_name = address_of(host) is None
        if is_name and not self.allowed and ("." not in host or host.rstrip(".").endswith(PRIVATE_NAMES)):
            raise Refused(f"{host[:100]} is no public name")


@dataclass
class ReceivedBytes:
    """How many bytes came, and how many of them were of a body."""

    all_bytes: int = 0
    body_bytes: int = 0

    def check(self) -> None:
        """Of what was received all is understood by now. Raises `Refused` if most of it says nothing."""
        if self.all_bytes - self.body_bytes > MOST_AROUND_BYTES + self.body_bytes // 4:
            raise Refused("an answer of almost only headers and chunk framing")


@dataclass
class Pieces(httpcore.AsyncNetworkStream):
    """A connection that is read in small pieces, between which others are served."""

    inner: httpcore.AsyncNetworkStream
    received: ReceivedBytes

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as httpcore calls it
        self.received.check()
        piece = await self.inner.read(min(max_bytes, PIECE_BYTES), timeout)
        self.received.all_bytes += len(piece)
        return piece

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the same
        await self.inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the same
    ) -> httpcore.AsyncNetworkStream:
        return Pieces(await self.inner.start_tls(ssl_context, server_hostname, timeout), self.received)

    def get_extra_info(self, info: str) -> Any:
        return self.inner.get_extra_info(info)


@dataclass
class Checked(httpcore.AsyncNetworkBackend):
    """Connects to addresses that were checked, and to nothing else."""

    resolve: Resolve
    allowed: Iterable[Network]
    inner: httpcore.AsyncNetworkBackend = field(default_factory=httpcore.AnyIOBackend)
    address: str = ""  # of those that were checked the first in order
    received: ReceivedBytes = field(default_factory=ReceivedBytes)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as httpcore calls it
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = [host] if address_of(host) is not None else await self.resolve(host, port)
        for address in addresses:
            if not may_reach(address, self.allowed):
                raise Refused(f"{host[:100]} leads to {address}, which is no public address")
        self.address = min(addresses, default="")
        problem: Exception = Refused(f"{host[:100]} has no address")
        for address in addresses:
            try:
                stream = await self.inner.connect_tcp(address, port, timeout, local_address, socket_options)
                return Pieces(stream, self.received)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as wrong:
                problem = wrong
        raise problem

    async def connect_unix_socket(self, path: str, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        raise Refused(f"{path} is a file")

    async def sleep(self, seconds: float) -> None:
        await self.inner.sleep(seconds)


async def _body(response: httpcore.Response, received: ReceivedBytes, most_bytes: int) -> tuple[bytes, bool]:
    """The body as it was meant; and whether it was cut off after as many bytes as were wanted, packed or not."""
    coding = _header(response, b"content-encoding").strip().lower()
    if coding not in ("", "identity", "gzip", "x-gzip"):
        raise Refused(f"content-encoding {coding[:40]!r}, which was not asked for")
    unpacked, body = zlib.decompressobj(wbits=47) if coding.endswith("gzip") else None, bytearray()
    async for piece in response.aiter_stream():
        received.body_bytes += len(piece)
        most = max(SMALL_BYTES, MAX_RATIO * received.body_bytes)
        try:
            body += unpacked.decompress(piece, min(most, most_bytes) - len(body) + 1) if unpacked else piece
        except zlib.error as wrong:
            raise Refused(f"a body that is not gzip: {wrong}") from None
        if unpacked and len(body) > most:
            raise Refused(f"a body that unpacks to more than {MAX_RATIO} times its size")
        if len(body) > most_bytes or received.body_bytes > most_bytes + MOST_AROUND_BYTES:
            return bytes(body[:most_bytes]), True
        if unpacked and unpacked.eof:  # what follows is none of it
            break
    return bytes(body), False


def _in_a_header(agent: str) -> str:
    """A name as a header can hold it: a crawl that chose another must not keep all from having a host's files."""
    return _NOT_IN_HEADERS.sub("?", agent).strip()


def _header(response: httpcore.Response, name: bytes) -> str:
    values = [value for key, value in response.headers if key.lower() == name]
    return values[0].decode("utf-8", "replace") if values else ""
