"""What closes a socket: frames that are too large or no frames, and whoever does not read."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

from tests.gateway.conftest import Served
from tests.gateway.socket_door.common import (
    Line,
    ask,
    get,
    opened,
    prepare,
    states,
    tuned,
    urls_of,
    wish,
)
from websockets.asyncio.client import connect


async def test_a_message_that_is_too_large_closes_with_1009(tmp_path: Path) -> None:
    with tuned(tmp_path, max_message_bytes=20_000) as server:
        async with opened(server) as line:
            fits = json.dumps({"type": "ping", "id": 1, "x": ""})
            await line.socket.send(fits[:-2] + "y" * (20_000 - len(fits)) + '"}')
            assert (await line.hear())["type"] == "pong"
            await line.socket.send("x" * 20_001)
            assert await line.closed_with() == 1009
        async with opened(server) as line:
            await line.socket.send(["x" * 15_000, "x" * 15_000])
            assert await line.closed_with() == 1009
        async with opened(server) as line:
            await line.socket.send("x" * 3_000_000)  # most of it is on its way when the goodbye comes
            assert await line.closed_with() == 1009


async def test_a_binary_frame_closes_with_1003(served: Served) -> None:
    async with opened(served) as line:
        await line.socket.send(b'{"type": "ping", "id": 1}')
        assert await line.closed_with() == 1003


async def test_text_that_is_not_utf8_closes_with_1007(served: Served) -> None:
    async with opened(served) as line:
        await line.socket.send(b"\xff\xfe", text=True)
        assert await line.closed_with() == 1007


async def test_what_is_no_websocket_frame_closes_with_1002(served: Served) -> None:
    async with opened(served) as line:
        line.socket.transport.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await line.closed_with() == 1002


async def test_who_does_not_read_is_cut_and_its_leases_return(tmp_path: Path) -> None:
    with tuned(tmp_path, socket_buffer_bytes=65_536, socket_stall_s=1.0) as server:
        prepare(server, "held", 4)
        prepare(server, "large", 1_000)
        async with opened(server) as other, opened(server, max_queue=1) as deaf:
            assert len(urls_of(await deaf.call("subscribe", 1, **wish("held", 4)))) == 4
            assert states(server, "held") == (0, 4)
            deaf.socket.transport.pause_reading()
            for number in range(100):  # the same answer again and again, of some 400 kB
                await deaf.say("next", number, **ask("large", 1_000, request_id="same"))
            slowest = 0.0
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(20):
                while await asyncio.to_thread(states, server, "held") != (4, 0):
                    began = loop.time()
                    assert (await other.call("ping", 1))["type"] == "pong"
                    slowest = max(slowest, loop.time() - began)
                    await asyncio.sleep(0.02)
            assert slowest < 1.0
            deaf.socket.transport.abort()
        answered = re.search(r'route="/ws next",status="200"} (\d+)', get(server, "/metrics").text)
        assert answered is not None
        assert int(answered[1]) < 60  # it was not read any more when its buffer was full


async def test_two_hundred_idle_sockets_do_not_matter(served: Served, crawl: str) -> None:
    prepare(served, crawl, 500)
    idle = [await connect(f"ws://127.0.0.1:{served.port}/ws", proxy=None) for _ in range(200)]

    async def busy() -> int:
        async with opened(served) as line:
            answers = [await line.call("next", number, **ask(crawl, 2)) for number in range(20)]
        return sum(len(urls_of(answer)) for answer in answers)

    assert sum(await asyncio.gather(*(busy() for _ in range(10)))) == 400
    lines = [Line(one) for one in idle]
    assert {(await line.call("ping", 1))["type"] for line in lines} == {"pong"}
    await asyncio.gather(*(one.close() for one in idle))


def unfinished(size: int, declared: int) -> bytes:
    """The beginning of a text frame, with the mask zero."""
    return bytes((0x81, 0x80 | 127)) + declared.to_bytes(8, "big") + bytes(4) + b"x" * size


async def test_unfinished_messages_have_one_budget_with_all_bodies_and_it_comes_back(tmp_path: Path) -> None:
    with tuned(tmp_path, max_bodies_bytes=8_000_000) as server:
        lines = [await connect(f"ws://127.0.0.1:{server.port}/ws", proxy=None) for _ in range(20)]
        for line in lines:
            line.transport.write(unfinished(1_000_000, 2_000_000))
            await asyncio.sleep(0.02)
        ends = [await Line(line).closed_with() for line in lines[8:]]
        assert set(ends) == {1013}
        assert get(server, "/v1/stats").status_code == 200
        async with opened(server) as other:
            assert (await other.call("ping", 1))["type"] == "pong"  # small messages have room of their own
        for line in lines:
            line.transport.abort()
        await asyncio.sleep(0.2)
        async with opened(server) as other:
            await other.socket.send(json.dumps({"type": "ping", "id": 1, "x": "y" * 3_000_000}))
            assert (await other.hear())["type"] == "pong"
