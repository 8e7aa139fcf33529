"""A client of URLFrontier, for a guide's door of that kind and for the original service alike.

with UrlFrontierClient("127.0.0.1:7071", crawl="news") as frontier:
    frontier.discover(["https://example.com/"])
    for page in frontier.get(queues=10, per_queue=10, lease_s=60):
        frontier.put([KnownUrl(page.url, page.key, page.metadata)])  # fetched, for ever
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from crawlguide.core import errors
from crawlguide.core.errors import ConfigError, CrawlGuideError
from crawlguide.core.extras import installing
from crawlguide.gateway.client.credentials import files, found_token

try:
    import grpc
    from grpc.experimental import ChannelOptions

    from crawlguide.gateway.client.over_grpc import channel_credentials, error_in_details, of_grpc
    from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
    from crawlguide.gateway.urlfrontier.urlfrontier_pb2_grpc import URLFrontierStub
except ModuleNotFoundError as missing:
    words = f"UrlFrontierClient needs {missing.name}, which is not installed: {installing('grpc')}"
    raise ConfigError(words) from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from crawlguide.gateway.client.credentials import Files

PORT = 7071
BATCH, PUT_AT_ONCE, PAGE = 100, 1_000, 1_000
Metadata = Mapping[str, Sequence[str]]
NO_METADATA: Metadata = {}
ERRORS: dict[grpc.StatusCode, type[CrawlGuideError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: errors.MalformedRequest,
    grpc.StatusCode.UNAUTHENTICATED: errors.Unauthenticated,
    grpc.StatusCode.PERMISSION_DENIED: errors.Forbidden,
    grpc.StatusCode.NOT_FOUND: errors.NotFound,
    grpc.StatusCode.UNKNOWN: errors.NotFound,  # a limit for a queue that is not there
    grpc.StatusCode.ALREADY_EXISTS: errors.Conflict,
    grpc.StatusCode.RESOURCE_EXHAUSTED: errors.RateLimited,
}
BY_ITSELF = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


class Status(IntEnum):
    """What became of a URL that was put."""

    OK = wire.AckMessage.OK
    SKIPPED = wire.AckMessage.SKIPPED  # known, or of no use: do not send it again
    FAIL = wire.AckMessage.FAIL  # or nothing was said of it: send it again later


class NewUrl(NamedTuple):
    """A URL that was found. Without a key it waits in the queue of its host."""

    url: str
    key: str = ""
    metadata: Metadata = NO_METADATA


class KnownUrl(NamedTuple):
    """A URL that was fetched, or whose date is known: the second from which on it is wanted (again); 0: never."""

    url: str
    key: str = ""
    metadata: Metadata = NO_METADATA
    date: int = 0
    created: int = 0  # set by the server


class Page(NamedTuple):
    """A URL to fetch now."""

    url: str
    key: str
    metadata: dict[str, list[str]]
    crawl: str

    @property
    def score(self) -> float | None:
        """What a guide thinks it is worth; None: another server gave it."""
        return float(self.metadata["guide.score"][0]) if "guide.score" in self.metadata else None

    @property
    def reason(self) -> str | None:
        return self.metadata["guide.reason"][0] if "guide.reason" in self.metadata else None


@dataclass(frozen=True)
class QueueStats:
    """Numbers of a queue, or of all queues of a crawl."""

    active: int  # not done
    in_process: int  # of these, held by clients
    completed: int
    queues: int
    active_queues: int
    crawl: str


@dataclass
class UrlFrontierClient:
    """Speaks for one crawl; "" is the crawl DEFAULT. Every call raises `CrawlGuideError` alone."""

    address: str = f"127.0.0.1:{PORT}"
    crawl: str = ""
    token: str | None = None
    ca: str | None = None  # a file: the connection is encrypted, and the server known by it
    certificate: tuple[str, str] | None = None  # files of a certificate and its key, to be shown
    timeout_s: float = 60.0
    tls: bool = False  # encrypted, also without a `ca`: then by CRAWLGUIDE_CA, else by the usual authorities
    _channel: grpc.Channel = field(init=False, repr=False)

    def __post_init__(self) -> None:
        address = _address(self.address)
        options = [("grpc.max_receive_message_length", -1), (ChannelOptions.SingleThreadedUnaryStream, 1)]
        if self.tls or self.ca is not None:
            self._channel = grpc.secure_channel(address, channel_credentials(self._files()), options)
        elif self.certificate is not None:
            raise ConfigError("certificate: expected tls or ca beside it, without which nothing is encrypted")
        else:
            self._channel = grpc.insecure_channel(address, options)
        self._stub = URLFrontierStub(self._channel)
        token = found_token(self.token)
        self._shown = (("authorization", f"Bearer {token}"),) if token else ()
        self._batches = True  # until a server says that it knows none

    def _files(self) -> Files:
        certificate, key = self.certificate or (None, None)
        return files({"ca": self.ca, "certificate": certificate, "certificate_key": key})

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # URLs in

    def discover(self, urls: Iterable[str | NewUrl]) -> list[Status]:
        """URLs that were found; those that are known already are SKIPPED. What is OK is on the server's disk."""
        infos = (self._info(NewUrl(one) if isinstance(one, str) else one) for one in urls)
        statuses: list[Status] = []
        while some := list(islice(infos, PUT_AT_ONCE * 10)):
            statuses += self._discover(some)
        return statuses

    def _discover(self, infos: Sequence[wire.URLInfo]) -> list[Status]:
        """In batches; a server from before 2.6 gets them one by one."""
        if self._batches:
            batches = [
                wire.DiscoveredBatch(ID=str(first), items=infos[first : first + BATCH])
                for first in range(0, len(infos), BATCH)
            ]
            try:
                acks = {ack.ID: ack.statuses for ack in self._streamed(self._stub.PutDiscovered, batches)}
                return [
                    Status(one) for batch in batches for one in acks.get(batch.ID, [Status.FAIL] * len(batch.items))
                ]
            except errors.MethodNotAllowed:
                self._batches = False
        return self._put([wire.URLItem(discovered=wire.DiscoveredURLItem(info=info)) for info in infos])

    def put(self, urls: Iterable[KnownUrl]) -> list[Status]:
        """URLs that are done, or wanted from a date on. Their metadata may say what came of a fetch."""
        known = (
            wire.URLItem(known=wire.KnownURLItem(info=self._info(one), refetchable_from_date=one.date)) for one in urls
        )
        statuses: list[Status] = []
        while some := list(islice(known, PUT_AT_ONCE)):
            statuses += self._put(some)
        return statuses

    def _put(self, some: Sequence[wire.URLItem]) -> list[Status]:
        for number, item in enumerate(some):
            item.ID = str(number)
        acks = {ack.ID: Status(ack.status) for ack in self._streamed(self._stub.PutURLs, some)}
        return [acks.get(item.ID, Status.FAIL) for item in some]

    # URLs out

    def get(
        self, queues: int = 10, per_queue: int = 10, lease_s: int = 0, key: str = "", *, any_crawl: bool = False
    ) -> Iterator[Page]:
        """URLs to fetch now, held for this client for `lease_s` (0: 30), from so many queues (0: no limit)."""
        wanted = wire.GetParams(max_urls_per_queue=per_queue, max_queues=queues, key=key, delay_requestable=lease_s)
        if any_crawl:
            wanted.anyCrawlID.SetInParent()
        else:
            wanted.crawlID = self.crawl or "DEFAULT"
        for info in self._streamed(self._stub.GetURLs, wanted):
            yield Page(info.url, info.key, _metadata(info), info.crawlID)

    def status(self, url: str, key: str = "") -> KnownUrl:
        """What is known of a URL. Raises `NotFound`."""
        asked = wire.URLStatusRequest(url=url, key=key, crawlID=self.crawl)
        return _known(self._called(self._stub.GetURLStatus, asked))

    def urls(
        self, key: str = "", start: int = 0, size: int = 2**31 - 1, holding: str = "", *, ignore_case: bool = False
    ) -> Iterator[KnownUrl]:
        """All URLs of a queue, or of the crawl, that hold a text; `put` takes them as they are."""
        wanted = wire.ListUrlParams(start=start, size=size, key=key, crawlID=self.crawl)
        if holding:
            wanted.filter, wanted.ignoreCase = holding, ignore_case
        yield from map(_known, self._streamed(self._stub.ListURLs, wanted))

    def count(self, key: str = "", holding: str = "", *, ignore_case: bool = False) -> int:
        wanted = wire.CountUrlParams(key=key, crawlID=self.crawl)
        if holding:
            wanted.filter, wanted.ignoreCase = holding, ignore_case
        return int(self._called(self._stub.CountURLs, wanted).value)

    def purge(self, days: int, key: str = "") -> int:
        """Forget URLs that are known for longer; returns how many."""
        return int(
            self._called(self._stub.PurgeURLs, wire.PurgeUrlParams(key=key, crawlID=self.crawl, days=days)).value
        )

    # queues

    def queues(self, *, inactive: bool = False) -> Iterator[str]:
        """The keys of all queues; also of those that are blocked or have nothing left, if they are wanted."""
        start = 0
        while True:
            page = wire.Pagination(start=start, size=PAGE, include_inactive=inactive, crawlID=self.crawl)
            keys = self._called(self._stub.ListQueues, page).values
            yield from keys
            start += len(keys)
            if len(keys) < PAGE:
                return

    def stats(self, key: str = "") -> QueueStats:
        found = self._called(self._stub.GetStats, wire.QueueWithinCrawlParams(key=key, crawlID=self.crawl))
        completed, active = found.counts.get("completed", 0), found.counts.get("active_queues", 0)
        return QueueStats(found.size, found.inProcess, completed, found.numberOfQueues, active, found.crawlID)

    def delete_queue(self, key: str) -> int:
        """Forget a queue; returns how many of its URLs were not done."""
        return int(self._called(self._stub.DeleteQueue, wire.QueueWithinCrawlParams(key=key, crawlID=self.crawl)).value)

    def block(self, key: str, until: int) -> None:
        """Nothing is given from a queue up to this second; 0: unblock."""
        self._called(self._stub.BlockQueueUntil, wire.BlockQueueParams(key=key, time=until, crawlID=self.crawl))

    def set_delay(self, seconds: int, key: str = "") -> None:
        """How long a queue is left alone after it has given something; without a key, every queue."""
        asked = wire.QueueDelayParams(key=key, delay_requestable=seconds, crawlID=self.crawl)
        self._called(self._stub.SetDelay, asked)

    def set_limit(self, key: str, urls: int) -> None:
        """Nothing more is given from a queue once so many of its URLs are done; 0: no limit. Raises `NotFound`."""
        self._called(self._stub.SetCrawlLimit, wire.CrawlLimitParams(key=key, limit=urls, crawlID=self.crawl))

    # crawls and nodes

    def crawls(self) -> list[str]:
        return list(self._called(self._stub.ListCrawls, wire.Local()).values)

    def delete_crawl(self) -> int:
        """Forget the crawl; returns how many of its URLs were not done."""
        return int(self._called(self._stub.DeleteCrawl, wire.DeleteCrawlMessage(value=self.crawl)).value)

    def nodes(self) -> list[str]:
        return list(self._called(self._stub.ListNodes, wire.Empty()).values)

    @property
    def active(self) -> bool:
        """Whether anything is given out at all."""
        return bool(self._called(self._stub.GetActive, wire.Local()).state)

    @active.setter
    def active(self, state: bool) -> None:
        self._called(self._stub.SetActive, wire.Active(state=state))

    def set_log_level(self, package: str, level: str) -> None:
        """`level` is one of TRACE, DEBUG, INFO, WARN, ERROR."""
        asked = wire.LogLevelParams(package=package, level=wire.LogLevelParams.Level.Value(level))
        self._called(self._stub.SetLogLevel, asked)

    # how it is sent

    def _info(self, one: NewUrl | KnownUrl) -> wire.URLInfo:
        info = wire.URLInfo(url=one.url, key=one.key, crawlID=self.crawl)
        for name, values in one.metadata.items():
            info.metadata[name].values.extend(values)
        return info

    def _called(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            return method(request, timeout=self.timeout_s, metadata=self._shown)
        except grpc.RpcError as problem:
            raise _error(self.address, problem) from None

    def _streamed(self, method: Callable[..., Any], request: Any) -> Iterator[Any]:
        sent = iter(request) if isinstance(request, (list, tuple)) else request
        try:
            yield from method(sent, timeout=self.timeout_s, metadata=self._shown)
        except grpc.RpcError as problem:
            raise _error(self.address, problem) from None


def _address(text: str) -> str:
    """HOST:PORT, as gRPC takes it; an IPv6 address without brackets is a host alone."""
    if not text or text.startswith(("http:", "https:", "grpc:", "grpcs:")):
        raise ConfigError(f"address: expected HOST:PORT such as 127.0.0.1:{PORT}, got {text[:200]!r}")
    whole = f"[{text}]" if text.count(":") > 1 and not text.startswith("[") else text
    return whole if ":" in whole.rpartition("]")[2] else f"{whole}:{PORT}"


def _error(server: str, problem: grpc.RpcError) -> CrawlGuideError:
    """What a guide tells in its details, or what another server says by its code alone."""
    code, words = problem.code(), problem.details() or ""
    if said := error_in_details(problem):
        return said
    if code == grpc.StatusCode.UNIMPLEMENTED:
        return errors.MethodNotAllowed(of_grpc(server, code, words).message)
    if code in BY_ITSELF:
        return of_grpc(server, code, words)
    return ERRORS.get(code, CrawlGuideError)(words or code.name)


def _metadata(info: wire.URLInfo) -> dict[str, list[str]]:
    return {name: list(values.values) for name, values in info.metadata.items()}


def _known(item: wire.URLItem) -> KnownUrl:
    info = item.known.info
    return KnownUrl(info.url, info.key, _metadata(info), item.known.refetchable_from_date, item.creation_date)
