"""Connections to the port for gRPC: how many there are, and how long those may be silent that say nothing."""

from __future__ import annotations

import asyncio
import resource
import socket
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest
from tests.gateway.grpc_door.common import FREE, WITHIN_S, asking, door_over, guarded_door, speaking
from tests.gateway.grpc_door.frames import DATA, END_HEADERS, HEADERS, PING, PREFACE, SETTINGS, frame, headers
from tests.gateway.urlfrontier.common import guarded_frontier

from crawlguide import AsyncGuide
from crawlguide.core.config import ServerOptions
from crawlguide.gateway.grpc import guide_pb2 as wire
from crawlguide.gateway.grpc import transport
from crawlguide.gateway.load import FILES_OF_OUR_OWN, most_connections

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.access.common import Guarded

BEGINNING = PREFACE + frame(SETTINGS, 0, 0)
FEW = {"CRAWLGUIDE_SERVER_MAX_CONNECTIONS": "20"}


@pytest.mark.parametrize(("grpc", "frontier", "most"), [(False, False, 144), (True, False, 72), (True, True, 48)])
def test_all_ports_together_leave_files_to_the_store(
    monkeypatch: pytest.MonkeyPatch, grpc: bool, frontier: bool, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (FILES_OF_OUR_OWN + 144,) * 2)
    assert most_connections(ServerOptions(grpc=grpc, frontier=frontier)) == most
    assert most_connections(ServerOptions(grpc=grpc, frontier=frontier, max_connections=7)) == 7


def test_connections_are_bounded(tmp_path: Path) -> None:
    with guarded_door(tmp_path, **FEW) as door:
        assert still_open(door.port) == 20
        answers(door.guarded)


def test_connections_of_clients_of_urlfrontier_are_bounded(tmp_path: Path) -> None:
    with guarded_frontier(tmp_path, **FEW) as frontier:
        assert still_open(frontier.port) == 20
        answers(frontier.guarded)


def still_open(port: int) -> int:
    """Of 50 connections on which nothing is called, as soon as the server has ended the others."""
    with ExitStack() as stack:
        lines = [stack.enter_context(socket.create_connection(("127.0.0.1", port), WITHIN_S)) for _ in range(50)]
        ends, ended = time.monotonic() + 5.0, 0
        for line in lines:
            begin(line)
        while ended < 30 and time.monotonic() < ends:
            time.sleep(0.05)
            ended = sum(is_ended(line) for line in lines)
        return len(lines) - ended


def begin(line: socket.socket) -> None:
    with suppress(OSError):  # it may be one of those that are too many
        line.sendall(BEGINNING)


def is_ended(line: socket.socket) -> bool:
    line.setblocking(False)
    try:
        while line.recv(1_000):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def answers(guarded: Guarded) -> None:
    with guarded.client(guarded.key("read")) as http:
        assert http.get("/v1/crawls").status_code == 200


@pytest.mark.parametrize("begins", [b"", PREFACE[:5], BEGINNING])
async def test_a_connection_that_calls_nothing_is_closed(monkeypatch: pytest.MonkeyPatch, begins: bytes) -> None:
    monkeypatch.setattr(transport, "HANDSHAKE_MS", 500)
    guide = AsyncGuide.open(":memory:")
    async with asyncio.timeout(WITHIN_S), door_over(guide._guide, keep_alive_s=1) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(begins)
        while await reader.read(1_000):
            pass
        writer.close()
    await guide.close()


async def test_who_pings_without_end_is_cut() -> None:
    guide = AsyncGuide.open(":memory:")
    async with asyncio.timeout(WITHIN_S), door_over(guide._guide) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(BEGINNING + frame(PING, 0, 0, bytes(8)) * 10)
        assert b"too_many_pings" in await reader.read(-1)
        writer.close()
    await guide.close()


async def test_who_answers_no_ping_in_the_middle_of_a_call_is_cut_and_its_leases_return(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a crawler whose machine or network is gone without a word."""
    monkeypatch.setattr(transport, "PING_MS", 500)
    monkeypatch.setattr(transport, "PONG_MS", 500)
    guide = AsyncGuide.open(":memory:")
    await guide.define("default", FREE)
    await guide.seed("default", ["https://a.example/"])
    asked = wire.NextStreamRequest(id="1", ask=asking()).SerializeToString()
    async with asyncio.timeout(WITHIN_S), door_over(guide._guide) as (service, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        call = frame(HEADERS, END_HEADERS, 1, headers(path="/crawlguide.v1.Guide/NextStream"))
        writer.write(BEGINNING + call + frame(DATA, 0, 1, b"\0" + len(asked).to_bytes(4, "big") + asked))
        await leased(guide, 1)
        await reader.read(-1)  # to the end that the server makes
        await leased(guide, 0)
        assert len(service.load.connections) == 0
        writer.close()
    await guide.close()


async def leased(guide: AsyncGuide, count: int) -> None:
    while (await guide.stats("default"))["crawls"]["default"]["leased"] != count:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.02)


async def test_a_client_that_was_silent_for_long_goes_on() -> None:
    guide = AsyncGuide.open(":memory:")
    async with asyncio.timeout(WITHIN_S), door_over(guide._guide, keep_alive_s=1) as (_, port), speaking(port) as stub:
        for _ in range(2):
            await stub.Next(asking())
            await asyncio.sleep(1.5)
        await stub.Next(asking())
    await guide.close()
