"""A server with the door for clients of URLFrontier, and what such clients send."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from tests.gateway.access.common import NO_LIMITS, Guarded, guarding
from tests.gateway.conftest import Served, serving

from crawlguide.core.config import Config, ServerOptions
from crawlguide.gateway.client.urlfrontier import UrlFrontierClient
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service
from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
from crawlguide.gateway.urlfrontier.server import UrlFrontierDoor
from crawlguide.gateway.urlfrontier.urlfrontier_pb2_grpc import URLFrontierStub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from pathlib import Path

DOOR = {"CRAWLGUIDE_SERVER_FRONTIER": "true", "CRAWLGUIDE_SERVER_FRONTIER_PORT": "0"}
WITHIN_S = 30.0
TENANTS = count()
OK, SKIPPED, FAIL = wire.AckMessage.OK, wire.AckMessage.SKIPPED, wire.AckMessage.FAIL


@dataclass
class Raw:
    """Calls as a generated client makes them, with a credential."""

    port: int
    token: str = ""
    stub: URLFrontierStub = field(init=False)

    def __post_init__(self) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        self.stub = URLFrontierStub(self.channel)

    def call(self, name: str, request: Any) -> Any:
        shown = (("authorization", f"Bearer {self.token}"),) if self.token else ()
        return getattr(self.stub, name)(request, timeout=WITHIN_S, metadata=shown)

    def put(self, *items: wire.URLItem) -> dict[str, list[int]]:
        """Statuses by the id of the acknowledgement."""
        acks: dict[str, list[int]] = {}
        for ack in self.call("PutURLs", iter(items)):
            acks.setdefault(ack.ID, []).append(ack.status)
        return acks

    def batch(self, *infos: wire.URLInfo, name: str = "") -> wire.BatchAck:
        (ack,) = self.call("PutDiscovered", iter([wire.DiscoveredBatch(ID=name, items=infos)]))
        assert name == ack.ID
        return ack  # type: ignore[no-any-return]

    def get(self, **wanted: Any) -> list[str]:
        return [info.url for info in self.infos(**wanted)]

    def infos(self, **wanted: Any) -> list[wire.URLInfo]:
        return list(self.call("GetURLs", wire.GetParams(**wanted)))

    def stats(self, key: str = "", crawl: str = "") -> wire.Stats:
        return self.call("GetStats", wire.QueueWithinCrawlParams(key=key, crawlID=crawl))  # type: ignore[no-any-return]

    def status(self, url: str, key: str = "", crawl: str = "") -> wire.URLItem:
        return self.call("GetURLStatus", wire.URLStatusRequest(url=url, key=key, crawlID=crawl))  # type: ignore[no-any-return]

    def listed(self, **wanted: Any) -> list[wire.URLItem]:
        return list(self.call("ListURLs", wire.ListUrlParams(**wanted)))

    def close(self) -> None:
        self.channel.close()


def info(url: str, key: str = "", crawl: str = "", **metadata: Iterable[str]) -> wire.URLInfo:
    about = {name.replace("__", "."): wire.StringList(values=list(values)) for name, values in metadata.items()}
    return wire.URLInfo(url=url, key=key, crawlID=crawl, metadata=about)


def found(url: str, key: str = "", crawl: str = "", name: str = "", **metadata: Iterable[str]) -> wire.URLItem:
    return wire.URLItem(ID=name, discovered=wire.DiscoveredURLItem(info=info(url, key, crawl, **metadata)))


def known(url: str, date: int = 0, key: str = "", crawl: str = "", **metadata: Iterable[str]) -> wire.URLItem:
    item = wire.KnownURLItem(info=info(url, key, crawl, **metadata), refetchable_from_date=date)
    return wire.URLItem(known=item)


def until(holds: Callable[[], Any]) -> Any:
    """Wait for what has to come true; returns it."""
    ends = time.monotonic() + WITHIN_S
    while not (seen := holds()):
        assert time.monotonic() < ends, "it never came true"
        time.sleep(0.05)
    return seen


async def eventually(holds: Callable[[], bool]) -> None:
    """The same in the event loop of the server."""
    while not holds():  # noqa: ASYNC110 - a look from outside: nobody tells
        await asyncio.sleep(0.005)


@contextmanager
def refused(code: grpc.StatusCode) -> Iterator[Any]:
    with pytest.raises(grpc.RpcError) as problem:
        yield problem
    assert problem.value.code() == code, problem.value


@dataclass(frozen=True)
class Frontier:
    """A server that wants credentials: each tenant finds it empty."""

    guarded: Guarded
    port: int

    def raw(self, *scopes: str, tenant: str = "", crawl: str = "*") -> Raw:
        tenant = tenant or f"tenant-{next(TENANTS)}"
        return Raw(self.port, self.guarded.key(*(scopes or ("admin",)), tenant=tenant, crawl=crawl))

    def client(self, crawl: str = "") -> UrlFrontierClient:
        token = self.guarded.key("admin", tenant=f"tenant-{next(TENANTS)}")
        return UrlFrontierClient(f"127.0.0.1:{self.port}", crawl, token=token)


def port_of(folder: Path) -> int:
    return int(json.loads((folder / "ready.json").read_text())["frontier_port"])


@contextmanager
def guarded_frontier(folder: Path, **settings: str) -> Iterator[Frontier]:
    (folder / "ready.json").unlink(missing_ok=True)  # of one before
    with guarding(folder, **{**DOOR, **NO_LIMITS, **settings}) as guarded:
        yield Frontier(guarded, port_of(folder))


@asynccontextmanager
async def door_here(**options: Any) -> AsyncIterator[tuple[UrlFrontierDoor, Service, Any]]:
    """The door in this event loop, over a guide without a folder, for anybody; what is behind it, and a client."""
    config = Config(server=ServerOptions(frontier_port=0, drain_s=5, **options))
    service = Service(open_guide(MEMORY, config), config)
    door = UrlFrontierDoor(service)
    port = (await door.open())["frontier_port"]
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield door, service, URLFrontierStub(channel)
    finally:
        await door.close()
        await service.guide.close()


@contextmanager
def open_frontier(folder: Path) -> Iterator[tuple[Served, Raw]]:
    """A server without credentials."""
    with pytest.MonkeyPatch.context() as patch:
        for name, text in DOOR.items():
            patch.setenv(name, text)
        (folder / "ready.json").unlink(missing_ok=True)
        with serving(folder, folder / "data") as server:
            raw = Raw(port_of(folder))
            yield server, raw
            raw.close()
