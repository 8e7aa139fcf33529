"""Health and reflection: what anybody may know."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from tests.gateway.grpc_door.common import WITHIN_S, Opened, Raw, details, door_over, guarded_door, refused

from crawlguide import AsyncGuide
from crawlguide.core.config import Config, ServerOptions
from crawlguide.core.errors import ConfigError
from crawlguide.gateway.grpc.server import GrpcDoor
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING


def test_anybody_may_ask_whether_the_server_is_ready(door: Opened) -> None:
    stub = health_pb2_grpc.HealthStub(Raw(door.port).channel)
    for name in ("", "crawlguide.v1.Guide"):
        assert stub.Check(health_pb2.HealthCheckRequest(service=name)).status == SERVING
    assert dict(stub.List(health_pb2.HealthListRequest()).statuses).keys() == {"", "crawlguide.v1.Guide"}
    with refused(grpc.StatusCode.NOT_FOUND):
        stub.Check(health_pb2.HealthCheckRequest(service="other"))


async def test_whoever_watches_is_told_when_the_server_is_in_trouble_and_when_it_leaves() -> None:
    guide, trouble = AsyncGuide.open(":memory:"), ""
    looks: Callable[[], str] = lambda: trouble  # noqa: E731
    async with asyncio.timeout(30), door_over(guide._guide) as (service, port):
        service.trouble = looks
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            seen = stub.Watch(health_pb2.HealthCheckRequest())
            assert (await seen.read()).status == SERVING
            trouble = "no room"
            assert (await seen.read()).status == NOT_SERVING
            trouble = ""
            assert (await seen.read()).status == SERVING
            service.draining = True
            assert (await seen.read()).status == NOT_SERVING
            assert (await stub.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING
    await guide.close()


def test_reflection_lists_the_services_and_describes_their_messages(door: Opened) -> None:
    found = ProtoReflectionDescriptorDatabase(Raw(door.port).channel)
    assert {"crawlguide.v1.Guide", "grpc.health.v1.Health"} <= set(found.get_services())
    file = found.FindFileContainingSymbol("crawlguide.v1.Guide")
    assert {one.name for one in file.service[0].method} >= {"Next", "Report", "NextStream", "ReportStream"}
    assert any(message.name == "AskMessage" for message in file.message_type)


def informed(port: int, *questions: str) -> list[Any]:
    stub = reflection_pb2_grpc.ServerReflectionStub(Raw(port).channel)
    asked = [reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol) for symbol in questions]
    return list(stub.ServerReflectionInfo(iter(asked), timeout=WITHIN_S))


def test_questions_for_the_schema_count_for_their_address(tmp_path: Path) -> None:
    with guarded_door(tmp_path, CRAWLGUIDE_ACCESS_ADDRESS_REQUESTS_PER_S="5") as door:
        door.raw()
        assert len(informed(door.port, *["crawlguide.v1.Guide"] * 3)) == 3
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED) as problem:
            informed(door.port, *["crawlguide.v1.Guide"] * 50)
        assert details(problem.value)["ErrorInfo"].reason == "rate_limited"


def test_a_long_question_is_not_sent_back(door: Opened) -> None:
    assert informed(door.port, "x" * 1_000)[0].error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        informed(door.port, "x" * 1_100)


async def test_of_a_port_that_is_taken_nobody_speaks_but_us(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Config(server=ServerOptions(grpc=True, grpc_port=taken.getsockname()[1]))
        service = Service(open_guide(MEMORY, settings), settings)
        with pytest.raises(ConfigError, match=r"^server\.grpc_port: cannot listen on .*: Address already in use"):
            await GrpcDoor(service).open()
        await service.guide.close()
    assert capfd.readouterr().err == ""
