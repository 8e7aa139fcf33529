"""The door for gRPC: over a guide in this process, and over a real server with credentials."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from tests.gateway.access.common import NO_LIMITS, Guarded, guarding

from crawlguide.core.config import AccessOptions, Config, ServerOptions
from crawlguide.core.messages import VERSION
from crawlguide.gateway.grpc import guide_pb2 as wire
from crawlguide.gateway.grpc.guide_pb2_grpc import GuideStub
from crawlguide.gateway.grpc.methods import SERVICE
from crawlguide.gateway.grpc.server import GrpcDoor
from crawlguide.gateway.service import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide

DOOR = {"CRAWLGUIDE_SERVER_GRPC": "true", "CRAWLGUIDE_SERVER_GRPC_PORT": "0"}
WITHIN_S = 30.0
FREE = {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}}
TENANTS = count()


@asynccontextmanager
async def door_over(guide: LocalGuide, keys: str = "", **options: Any) -> AsyncIterator[tuple[Service, int]]:
    """The door over any guide, without a process of its own: the service behind it, and its port."""
    usual: dict[str, Any] = {"grpc_port": 0, "drain_s": 5}
    config = Config(server=ServerOptions(**{**usual, **options}), access=AccessOptions(keys=keys))
    service = Service(guide, config)
    door = GrpcDoor(service)
    port = (await door.open())["grpc_port"]
    try:
        yield service, port
    finally:
        await door.close()


@asynccontextmanager
async def speaking(port: int) -> AsyncIterator[Any]:
    """A generated client in this event loop."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield GuideStub(channel)


@dataclass
class Raw:
    """Calls as a generated client makes them, with a credential."""

    port: int
    token: str = ""
    stub: GuideStub = field(init=False)

    def __post_init__(self) -> None:
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.port}")
        self.stub = GuideStub(self.channel)

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def call(self, name: str, request: Any, timeout: float = WITHIN_S) -> Any:
        return getattr(self.stub, name)(request, timeout=timeout, metadata=self.shown)

    def ask(self, crawl: str = "default", most: int = 5, **more: Any) -> wire.Advice:
        return self.call("Next", asking(crawl, most, **more))  # type: ignore[no-any-return]

    def seed(self, *urls: str, crawl: str = "default") -> int:
        seeds = [wire.SeedMessage(url=url) for url in urls]
        return int(self.call("AddSeeds", wire.AddSeedsRequest(crawl_id=crawl, urls=seeds)).discovered)

    def stats(self, crawl: str = "default") -> wire.CrawlStats:
        return self.call("Stats", wire.StatsRequest(crawl_id=crawl)).crawls[crawl]  # type: ignore[no-any-return]

    def free(self, crawl: str = "default") -> None:
        """A crawl without pacing and robots.txt."""
        policy = {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}}
        request = wire.PutCrawlRequest(crawl_id=crawl, definition=wire.Json(text=json.dumps(policy)))
        self.call("PutCrawl", request)

    def close(self) -> None:
        self.channel.close()


@dataclass(frozen=True)
class Opened:
    """A server that wants credentials: each tenant finds it empty."""

    guarded: Guarded
    port: int

    def raw(self, *scopes: str, tenant: str = "", crawl: str = "*") -> Raw:
        tenant = tenant or f"tenant-{next(TENANTS)}"
        scopes = scopes or ("admin", "robots:override")
        return Raw(self.port, self.guarded.key(*scopes, tenant=tenant, crawl=crawl))


@contextmanager
def guarded_door(folder: Path, **settings: str) -> Iterator[Opened]:
    (folder / "ready.json").unlink(missing_ok=True)  # of a server before
    with guarding(folder, **{**DOOR, **NO_LIMITS, **settings}) as guarded:
        yield Opened(guarded, port_of(folder))


def port_of(folder: Path) -> int:
    return int(json.loads((folder / "ready.json").read_text())["grpc_port"])


def asking(crawl: str = "default", most: int = 5, **more: Any) -> wire.AskMessage:
    budget = wire.BudgetMessage(max_urls=most)
    return wire.AskMessage(mcp_version=VERSION, crawler_id="c-1", crawl_id=crawl, budget=budget, **more)


def telling(*urls: str, crawl: str = "default", **more: Any) -> wire.ReportMessage:
    fetches = [wire.Fetch(url=url, status=200) for url in urls]
    return wire.ReportMessage(mcp_version=VERSION, crawler_id="c-1", crawl_id=crawl, fetches=fetches, **more)


def request_of(name: str) -> Any:
    """Some request for any method: good enough to get past the entrance."""
    if name == "Next":
        return asking()
    if name == "Report":
        return telling("https://a.example/")
    made: Any = GetMessageClass(SERVICE.methods_by_name[name].input_type)()
    if "crawl_id" in made.DESCRIPTOR.fields_by_name:
        made.crawl_id = "default"
    return made


def called(raw: Raw, name: str) -> Any:
    method = SERVICE.methods_by_name[name]
    if method.client_streaming:
        streamed = GetMessageClass(method.input_type)
        kind = "ask" if name == "NextStream" else "report"
        message = streamed(id="1", **{kind: asking() if kind == "ask" else telling("https://a.example/")})
        return list(raw.call(name, iter([message])))
    answer = raw.call(name, request_of(name))
    return list(answer) if method.server_streaming else answer


@contextmanager
def refused(code: grpc.StatusCode) -> Iterator[Any]:
    with pytest.raises(grpc.RpcError) as problem:
        yield problem
    assert problem.value.code() == code, problem.value


def details(problem: Any) -> dict[str, Any]:
    """What the details of an error say, by their kind."""
    return details_of(dict(problem.trailing_metadata()))


def details_of(trailing: dict[str, Any]) -> dict[str, Any]:
    status = Status.FromString(trailing["grpc-status-details-bin"])
    found: dict[str, Any] = {}
    for one in status.details:
        for kind in (ErrorInfo, BadRequest, RetryInfo):
            if one.Is(kind.DESCRIPTOR):
                found[kind.__name__] = kind.FromString(one.value)
    return found
