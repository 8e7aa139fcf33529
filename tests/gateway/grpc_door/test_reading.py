"""Messages that come in slowly, or never to their end: how much room they take, for how long, and whose go."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.gateway.grpc_door.common import WITHIN_S, Opened, Raw, asking, door_over, guarded_door
from tests.gateway.grpc_door.frames import line_to
from tests.gateway.urlfrontier.common import guarded_frontier

from crawlguide import AsyncGuide
from crawlguide.core.config import ServerOptions
from crawlguide.core.errors import UnavailableError
from crawlguide.gateway.grpc import guide_pb2 as wire
from crawlguide.gateway.grpc import reading
from crawlguide.gateway.grpc.methods import SERVICE
from crawlguide.gateway.grpc.reading import Reads
from crawlguide.gateway.load import Load

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.gateway.conftest import Served

    from crawlguide.gateway.service import Service

MESSAGE, STREAMS, MIB = 4_000_000, 60, 1024 * 1024
NEXT = f"/{SERVICE.full_name}/Next"
HEALTH = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


def memory_bytes(served: Served) -> int:
    return int(Path(f"/proc/{served.process.pid}/statm").read_text().split()[1]) * 4_096


def taken_by_unfinished(port: int, served: Served, path: str, **shown: str) -> int:
    """Memory that messages take of which the last byte never comes."""
    before = memory_bytes(served)
    with line_to(port) as line:
        for number in range(STREAMS):
            line.call(number, path, **shown)
        line.send_almost(MESSAGE, within_s=5.0)
        return memory_bytes(served) - before


@pytest.mark.parametrize("path", [NEXT, f"/{SERVICE.full_name}/ReportStream", HEALTH, REFLECTION])
def test_unfinished_messages_of_strangers_take_no_memory(door: Opened, path: str) -> None:
    door.raw()  # there is a key
    assert taken_by_unfinished(door.port, door.guarded.server, path) < 60 * MIB
    stub = health_pb2_grpc.HealthStub(Raw(door.port).channel)
    assert (
        stub.Check(health_pb2.HealthCheckRequest(), timeout=WITHIN_S).status == health_pb2.HealthCheckResponse.SERVING
    )


def test_nor_do_those_of_somebody_known(tmp_path: Path) -> None:
    with guarded_door(tmp_path, CRAWLGUIDE_SERVER_MAX_BODIES_BYTES=str(32 * MIB)) as door:
        raw = door.raw()
        shown = {"authorization": f"Bearer {raw.token}"}
        assert taken_by_unfinished(door.port, door.guarded.server, NEXT, **shown) < 60 * MIB
        assert raw.ask().assigned_urls == []


def test_nor_do_those_at_the_door_for_urlfrontier(tmp_path: Path) -> None:
    with guarded_frontier(tmp_path) as frontier:
        frontier.raw()
        for name in ("GetStats", "GetURLs", "PutURLs"):
            path = f"/urlfrontier.URLFrontier/{name}"
            assert taken_by_unfinished(frontier.port, frontier.guarded.server, path) < 60 * MIB


def speaking(channel: grpc.aio.Channel, path: str = NEXT) -> Any:
    """A client that takes the method for a stream: it says what it likes, and ends when it likes."""
    serialize: Any = wire.AskMessage.SerializeToString
    return channel.stream_unary(path, serialize, wire.Advice.FromString)(timeout=WITHIN_S)


@asynccontextmanager
async def calling(**options: Any) -> AsyncIterator[tuple[Service, grpc.aio.Channel]]:
    """A door in this event loop: the service behind it, and a channel to it."""
    guide = AsyncGuide.open(":memory:")
    async with (
        asyncio.timeout(WITHIN_S),
        door_over(guide._guide, **options) as (service, port),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        yield service, channel
    await guide.close()


async def eventually(service: Service, held_bytes: int) -> None:
    while service.load.bodies.held_bytes != held_bytes:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(("messages", "words"), [(0, "got none"), (2, "got more")])
async def test_a_call_of_one_message_has_one(messages: int, words: str) -> None:
    async with calling() as (_, channel):
        call = speaking(channel)
        for _ in range(messages):
            await call.write(asking())
        await call.done_writing()
        with pytest.raises(grpc.aio.AioRpcError) as problem:
            await call
        assert problem.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert problem.value.details() == f"expected one message, {words}"


async def test_a_message_has_room_among_all_bodies_and_some_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "WITHIN_S", 1.0)
    async with calling() as (service, channel):
        call = speaking(channel)
        await call.write(asking())  # and no end
        await eventually(service, service.options.max_message_bytes)
        with pytest.raises(grpc.aio.AioRpcError) as problem:
            await call
        assert problem.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert problem.value.details() == "expected the message within 1 s"
        await eventually(service, 0)


async def test_slow_messages_keep_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reads, "patience_s", 0.05)
    async with calling(max_bodies_bytes=32 * MIB) as (service, channel):
        slow = [speaking(channel) for _ in range(2)]  # as many as have room
        await eventually(service, 2 * service.options.max_message_bytes)
        other = speaking(channel)
        await other.write(asking())
        await other.done_writing()
        assert (await other).assigned_urls == []
        codes = [asyncio.create_task(one.code()) for one in slow]
        ended, _ = await asyncio.wait(codes, return_when=asyncio.FIRST_COMPLETED)
        assert [code.result() for code in ended] == [grpc.StatusCode.UNAVAILABLE]
        for one in slow:
            one.cancel()
        await asyncio.wait(codes)
        await eventually(service, 0)


class Silent:
    """A call whose message does not come."""

    async def read(self) -> Any:
        await asyncio.Event().wait()


async def test_of_slow_messages_one_goes_of_whoever_has_the_most() -> None:
    options = ServerOptions(max_bodies_bytes=16 * MIB, max_message_bytes=MIB)
    reads, context = Reads(Load(options), options), Silent()
    reads.patience_s = 0.05
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
        first = group.create_task(_refused(reads, context, "patient"))
        greedy = [group.create_task(_refused(reads, context, "greedy")) for _ in range(4)]
        await asyncio.wait(greedy, return_when=asyncio.FIRST_COMPLETED)
        assert not first.done()
        for one in (first, *greedy):
            one.cancel()


async def _refused(reads: Reads, context: Any, owner: str) -> None:
    with pytest.raises(UnavailableError):
        await reads.read(context, owner)
