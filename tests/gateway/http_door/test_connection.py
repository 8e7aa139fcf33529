"""What one connection may do: how long its heads and bodies are and take, how many requests it sends at once.

The server runs in this process, with an application that answers with the length of the body. Times are shortened.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
import uvloop

from crawlguide.core.config import ServerOptions
from crawlguide.core.errors import CrawlGuideError
from crawlguide.gateway import bodies, http_connection, load
from crawlguide.gateway.bodies import BodyLimits
from crawlguide.gateway.http_connection import MOST_DISCARDED_BYTES, MOST_HEAD_BYTES, HttpConnection
from crawlguide.gateway.listener import bound
from crawlguide.gateway.load import Load
from crawlguide.gateway.responses import problem_response
from crawlguide.gateway.serve import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from starlette.types import ASGIApp, Receive, Scope, Send

SOON_S = 10.0
GET = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def on_uvloop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """As `crawlguide serve` runs."""

    @wraps(test)
    def run(*args: Any, **options: Any) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(test(*args, **options))

    return run


class Echo:
    """Answers with the number of bytes in the body.

    Paths: /slow waits until it is let go, /deaf reads no body, /large says much.
    """

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.running = self.most_running = self.answered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            answer = await self._answer(scope, receive)
        except CrawlGuideError as problem:
            await problem_response(problem)(scope, receive, send)
            return
        finally:
            self.running -= 1
        head = [(b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": answer})
        self.answered += 1

    async def _answer(self, scope: Scope, receive: Receive) -> bytes:
        if scope["path"] == "/deaf":
            return b"deaf"
        if scope["path"] == "/large":
            return bytes(50_000_000)
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return b"gone"
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        if scope["path"] == "/slow":
            await self.go.wait()
        return f"{size} {dict(scope['headers']).get(b'x-late', b'').decode()}".encode()


class Door:
    """A server, its load, its application, and lines to it."""

    def __init__(self, port: int, bounds: Load, app: Echo) -> None:
        self.port, self.load, self.app = port, bounds, app
        self._lines: list[Line] = []

    async def line(self, **options: Any) -> Line:
        self._lines.append(await asyncio.open_connection("127.0.0.1", self.port, **options))
        return self._lines[-1]

    async def said(self, *pieces: bytes) -> bytes:
        """All that is answered until the server closes."""
        reader, writer = await self.line()
        for piece in pieces:
            writer.write(piece)
        answer = await everything(reader)
        writer.transport.abort()
        return answer

    def hang_up(self) -> None:
        for _, writer in self._lines:
            writer.transport.abort()


async def everything(reader: asyncio.StreamReader) -> bytes:
    heard = b""
    async with asyncio.timeout(SOON_S):
        try:
            while piece := await reader.read(65_536):
                heard += piece
        except ConnectionResetError:
            pass
    return heard


async def heard(reader: asyncio.StreamReader) -> tuple[int, str]:
    """One answer: its status and its body."""
    async with asyncio.timeout(SOON_S):
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        return int(head.split()[1]), (await reader.readexactly(int(length[1]) if length else 0)).decode()


def error(answer: bytes) -> tuple[int, str]:
    """Status and code of an answer in the one shape of errors."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head, answer
    return int(head.split()[1]), json.loads(body)["error"]["code"]


@asynccontextmanager
async def running(app: ASGIApp, settings: ServerOptions) -> AsyncIterator[tuple[int, Load]]:
    """A server in this process: its port and its load."""
    bounds, ready = Load(settings), asyncio.Event()
    config = uvicorn.Config(
        BodyLimits(app, bounds, settings.max_message_bytes), loop="none", http=HttpConnection, ws="none",
        log_config=None, lifespan="off", timeout_keep_alive=settings.keep_alive_s, timeout_graceful_shutdown=0,
    )  # fmt: skip
    listener = bound("127.0.0.1", 0)
    server = Server(config, ready.set, settings, bounds)
    task = asyncio.create_task(server.serve([listener]))
    await ready.wait()
    try:
        yield listener.getsockname()[1], bounds
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[Door]:
    app = Echo()
    async with running(app, ServerOptions(**options)) as (port, bounds):
        door = Door(port, bounds, app)
        try:
            yield door
        finally:
            door.hang_up()


# heads


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"GET /" + b"a" * 70_000], id="a request line without end"),
        pytest.param([GET[:-2], *([b"x: " + b"a" * 10_000 + b"\r\n"] * 8)], id="long headers"),
        pytest.param([GET[:-2] + b"x: ", *([b"a" * 10_000] * 8)], id="one header without end"),
        pytest.param([GET[:-2], b"x: y\r\n" * 12_000], id="many headers"),
        pytest.param([b"\r\n" * 40_000], id="empty lines"),
        pytest.param([GET[:-2] + b"a" * 70_000], id="a name without end"),
        pytest.param([GET[:-2], b"x: y\r\n" * 101, b"\r\n"], id="more headers than anybody needs"),
        pytest.param([CHUNKED, b"1;", *([b"x" * 10_000] * 8)], id="a chunk extension without end"),
        pytest.param([CHUNKED, *([b"1;" + b"x" * 1_000 + b"\r\ny\r\n"] * 80)], id="many chunk extensions"),
        pytest.param([CHUNKED, b"0\r\nx: ", *([b"a" * 10_000] * 8)], id="a trailer without end"),
        pytest.param([CHUNKED, b"0\r\n", *([b"x: y\r\n"] * 12_000)], id="many trailers"),
        pytest.param([CHUNKED, *([b"1\r\nx\r\n" * 1_000] * 40)], id="chunks of a byte"),
    ],
)
@on_uvloop
async def test_a_head_over_64_kib_is_refused_and_so_are_chunks_that_are_mostly_frame(pieces: list[bytes]) -> None:
    async with opened() as door:
        assert error(await door.said(*pieces)) == (413, "too_large")
        await until(lambda: len(door.load.connections) == 0)


@on_uvloop
async def test_a_head_of_just_64_kib_is_read() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        head = GET[:-2] + b"x: "
        writer.write(head + b"a" * (MOST_HEAD_BYTES - len(head) - 4) + b"\r\n\r\n")
        assert (await heard(reader))[0] == 200


@pytest.mark.parametrize("first", [b"G", GET[:-1], b"\r\n", POST + b"Content-Le"])
@on_uvloop
async def test_a_slow_head_is_refused_however_it_trickles(monkeypatch: pytest.MonkeyPatch, first: bytes) -> None:
    monkeypatch.setattr(http_connection, "HEAD_WITHIN_S", 0.3)
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(first)
        for _ in range(8):
            await asyncio.sleep(0.05)
            writer.write(b"a" if first != GET[:-1] else b"")
        assert error(await everything(reader)) == (400, "malformed_request")


@on_uvloop
async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with opened(keep_alive_s=1) as door:
        assert await door.said() == b""
        assert (await door.said(GET)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "text",
    [
        POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: +1\r\n\r\na",
        POST + b"Content-Length: 1,1\r\n\r\na",
        POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
        POST + b"Content-Length : 1\r\n\r\na",
        POST + b"Host: other\r\n\r\n",
        b"GET /a HTTP/1.1\nHost: localhost\n\n",
        b"GET /a HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n",
        b"GET /a HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"ffffffffffffffffff\r\n",
        CHUNKED + b"1\r\nxyz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
@on_uvloop
async def test_what_is_no_strict_http_is_refused_in_the_one_shape_of_errors(text: bytes) -> None:
    async with opened() as door:
        assert error(await door.said(text)) == (400, "malformed_request")


@on_uvloop
async def test_trailers_are_no_headers() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(CHUNKED + b"2\r\nab\r\n0\r\nX-Late: evil\r\n\r\n")
        assert await heard(reader) == (200, "2 ")


# bodies


@on_uvloop
async def test_a_body_that_does_not_come_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "FIRST_WITHIN_S", 0.3)
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(POST + b"Content-Length: 100000\r\n\r\nabc")
        for _ in range(10):
            await asyncio.sleep(0.05)
            writer.write(b"d")  # slower than a kibibyte a second
        assert (await heard(reader))[0] == 400
        assert door.load.bodies.held_bytes == 0


@on_uvloop
async def test_a_body_that_is_slow_but_not_too_slow_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "FIRST_WITHIN_S", 0.5)
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(CHUNKED)
        for _ in range(12):
            writer.write(b"400\r\n" + b"a" * 1_024 + b"\r\n")
            await asyncio.sleep(0.1)
        writer.write(b"0\r\n\r\n")
        assert await heard(reader) == (200, f"{12 * 1_024} ")


@on_uvloop
async def test_a_declared_length_over_the_limit_is_refused_and_gigabytes_are_not_read() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(POST + b"Content-Length: 4000000000\r\n\r\n")
        assert (await heard(reader))[0] == 413
        with pytest.raises(ConnectionError):
            await send(writer, 50 * MOST_DISCARDED_BYTES)


@on_uvloop
async def test_after_a_small_body_that_nobody_reads_the_connection_goes_on() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(POST.replace(b"/a", b"/deaf") + b"Content-Length: 10\r\n\r\n")
        assert await heard(reader) == (200, "deaf")
        writer.write(b"0123456789" + GET)
        assert await heard(reader) == (200, "0 ")


@on_uvloop
async def test_who_was_not_told_to_go_on_and_does_not_is_closed() -> None:
    async with opened() as door:
        head = POST.replace(b"/a", b"/deaf") + b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n"
        assert (await door.said(head)).endswith(b"deaf")


@on_uvloop
async def test_whoever_waits_to_be_told_to_go_on_and_sends_nonsense_is_refused_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened() as door:
        said = await door.said(POST + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n")
        assert said.startswith(b"HTTP/1.1 400 ")
    assert not any(record.exc_info for record in caplog.records)


@on_uvloop
async def test_one_budget_holds_for_all_bodies_and_comes_back() -> None:
    async with opened(max_bodies_bytes=200_000) as door:
        lines = [await door.line() for _ in range(3)]
        for _, writer in lines[:2]:
            writer.write(POST + b"Content-Length: 80000\r\n\r\n" + b"a" * 74_000)
        await until(lambda: door.load.bodies.held_bytes == 148_000)
        reader, writer = lines[2]
        writer.write(POST + b"Content-Length: 80000\r\n\r\n" + b"a" * 80_000)
        assert (await heard(reader))[0] == 503
        writer.write(POST + b"Content-Length: 20000\r\n\r\n" + b"a" * 20_000)
        assert await heard(reader) == (200, "20000 ")  # small ones have room of their own
        lines[0][1].transport.abort()
        await until(lambda: door.load.bodies.held_bytes == 74_000)
        lines[1][1].write(b"a" * 6_000)
        assert await heard(lines[1][0]) == (200, "80000 ")
        await until(lambda: door.load.bodies.held_bytes == 0)
        writer.write(POST + b"Content-Length: 80000\r\n\r\n" + b"a" * 80_000)
        assert await heard(reader) == (200, "80000 ")


async def send(writer: asyncio.StreamWriter, size: int) -> None:
    for _ in range(0, size, 1_000_000):
        writer.write(bytes(1_000_000))
        await writer.drain()
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not condition():  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(0.01)


# many requests


@on_uvloop
async def test_ten_thousand_requests_at_once_on_one_line_are_answered_one_after_the_other() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(GET * 10_000)
        for _ in range(10_000):
            assert await heard(reader) == (200, "0 ")
        assert door.app.most_running == 1


@on_uvloop
async def test_requests_that_wait_for_one_before_them_are_not_read() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(GET.replace(b"/a", b"/slow"))
        sent = 0
        try:
            async with asyncio.timeout(1.0):
                while True:
                    writer.write(GET * 10_000)
                    await writer.drain()
                    sent += len(GET) * 10_000
        except TimeoutError:
            pass
        assert sent < 30_000_000  # the buffers of the system
        assert (door.app.running, door.app.most_running) == (1, 1)
        door.app.go.set()
        assert await heard(reader) == (200, "0 ")


@pytest.mark.parametrize(
    "body", [b"Content-Length: 4\r\n\r\n\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n"]
)
@on_uvloop
async def test_requests_with_bodies_may_follow_each_other(body: bytes) -> None:
    async with opened() as door:
        reader, writer = await door.line()
        for piece in (POST + body, GET, POST + body, GET):
            writer.write(piece)
            assert (await heard(reader))[0] == 200


@on_uvloop
async def test_requests_with_bodies_may_come_at_once() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        writer.write((POST + b"Content-Length: 4\r\n\r\n\r\n\r\n" + GET) * 50)
        assert [(await heard(reader))[1] for _ in range(100)] == ["4 ", "0 "] * 50


@on_uvloop
async def test_after_a_chunked_request_one_waits_for_its_answer() -> None:
    async with opened() as door:
        door.app.go.set()
        answer = await door.said(CHUNKED.replace(b"/a", b"/slow") + b"1\r\nx\r\n0\r\n\r\n" + GET * 1_000)
        assert answer.count(b"HTTP/1.1 200 ") == 1
        assert b"connection: close" in answer


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 50])
@on_uvloop
async def test_it_does_not_matter_how_what_is_said_is_cut(size: int) -> None:
    text = POST + b"Content-Length: 4\r\n\r\n\r\n\r\n" + GET + CHUNKED + b"3\r\nabc\r\n0\r\n\r\n"
    async with opened() as door:
        reader, writer = await door.line()
        for start in range(0, len(text), size):
            writer.write(text[start : start + size])
            await asyncio.sleep(0)
        assert [(await heard(reader))[1] for _ in range(3)] == ["4 ", "0 ", "3 "]


@on_uvloop
async def test_an_upgrade_to_something_unknown_is_passed_over() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(GET[:-2] + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n" + GET)
        assert [(await heard(reader))[0] for _ in range(2)] == [200, 200]


# many connections


@on_uvloop
async def test_connections_over_the_limit_are_told_so_and_closed() -> None:
    async with opened(max_connections=3) as door:
        lines = [await door.line() for _ in range(3)]
        await until(lambda: len(door.load.connections) == 3)
        for _ in range(100):
            answer = await door.said()
            assert error(answer) == (503, "unavailable")
            assert b"retry-after: 1" in answer
        lines[0][1].transport.abort()
        await until(lambda: len(door.load.connections) == 2)
        reader, writer = await door.line()
        writer.write(GET)
        assert (await heard(reader))[0] == 200


@on_uvloop
async def test_one_address_may_have_fewer_than_all() -> None:
    async with opened(max_connections_per_address=2) as door:
        for _ in range(2):
            await door.line()
        await until(lambda: len(door.load.connections) == 2)
        assert error(await door.said(GET)) == (503, "unavailable")
        reader, writer = await door.line(local_addr=("127.0.0.2", 0))
        writer.write(GET)
        assert (await heard(reader))[0] == 200


def test_addresses_of_one_ipv6_network_count_as_one() -> None:
    connections = load.Connections(10, 1)
    connections.enter("2001:db8:1:2::1")
    with pytest.raises(CrawlGuideError):
        connections.enter("2001:db8:1:2:3:4:5:6%eth0")
    connections.enter("2001:db8:1:3::1")
    connections.enter("::ffff:10.0.0.1")
    with pytest.raises(CrawlGuideError):
        connections.enter("10.0.0.1")
    connections.leave("10.0.0.1")
    connections.enter("10.0.0.1")
    assert len(connections) == 3


@pytest.mark.parametrize(
    ("most", "address", "may_have"),
    [(20_000, "10.0.0.1", 2_000), (20_000, "2001:db8::1", 2_000), (400, "10.0.0.1", 100), (20_000, "::1", 12_000)],
)
def test_an_address_that_is_not_this_machine_has_few_of_all_connections(most: int, address: str, may_have: int) -> None:
    connections = load.Connections(most)
    for _ in range(may_have):
        connections.enter(address)
    with pytest.raises(CrawlGuideError, match=f"more than {may_have} connections at once from"):
        connections.enter(address)
    connections.enter("10.0.0.2")


@pytest.mark.parametrize("path", [b"/v1/next", b"/a"])  # refused without being parsed, and parsed
@on_uvloop
async def test_who_would_wait_too_long_is_sent_away_and_later_served(path: bytes) -> None:
    async with opened() as door:
        turns = door.load.turns
        turns._each_s = 0.1  # what one costs: more than a few are too many
        lines = [await door.line() for _ in range(200)]
        await until(lambda: len(door.load.connections) == 200)
        for _, writer in lines:
            writer.write(POST.replace(b"/a", path) + b"Content-Length: 3\r\n\r\nabc")
        statuses = [(await heard(reader))[0] for reader, _ in lines]
        assert set(statuses) == {200, 503}
        assert statuses.count(200) > load.FEW_WAITING
        for reader, writer in lines:  # nobody was cut
            writer.write(GET)
            assert (await heard(reader))[0] == 200


@pytest.mark.parametrize("usual", [True, False])  # refused without being parsed, and parsed
@on_uvloop
async def test_where_reports_wait_long_more_of_them_are_sent_away_and_asks_are_served(usual: bool) -> None:
    async with opened() as door:
        door.load.are_tells_crowded = lambda: True
        reader, writer = await door.line()
        head = POST if usual else POST + b"Expect: nothing\r\n"
        for path, status in ((b"/v1/report", 503), (b"/v1/next", 200), (b"/v1/report", 503)):
            writer.write(head.replace(b"/a", path) + b"Content-Length: 3\r\n\r\nabc")
            assert (await heard(reader))[0] == status


@on_uvloop
async def test_who_pipelines_what_is_refused_keeps_nobody_waiting_and_is_answered_to_the_end() -> None:
    async with opened() as door:
        door.load.turns.is_crowded = lambda: True  # type: ignore[method-assign]
        (reader, writer), loop = await door.line(), asyncio.get_running_loop()
        longest = 0.0

        async def watch() -> None:
            nonlocal longest
            while True:
                before = loop.time()
                await asyncio.sleep(0)
                longest = max(longest, loop.time() - before)

        watching = asyncio.create_task(watch())
        writer.write(GET * 5_000)
        for _ in range(5_000):
            assert (await heard(reader))[0] == 503
        watching.cancel()
        assert longest < 0.2
        door.load.turns = load.Turns()
        writer.write(GET)
        assert (await heard(reader))[0] == 200


@on_uvloop
async def test_who_is_sent_away_and_does_not_listen_is_not_heard() -> None:
    async with opened() as door:
        door.load.turns.is_crowded = lambda: True  # type: ignore[method-assign]
        refused = 0

        def count(_: Any) -> None:
            nonlocal refused
            refused += 1

        door.load.on_refusal = count
        _, writer = await door.line()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(20):
            writer.write(GET * 5_000)
            await asyncio.sleep(0.05)
        before = refused
        await asyncio.sleep(0.2)
        assert before == refused < 100_000


@on_uvloop
async def test_who_is_sent_away_again_and_again_is_not_idle() -> None:
    async with opened(keep_alive_s=1) as door:
        door.load.are_tells_crowded = lambda: True
        reader, writer = await door.line()
        for _ in range(4):
            writer.write(POST.replace(b"/a", b"/v1/report") + b"Content-Length: 3\r\n\r\nabc")
            assert (await heard(reader))[0] == 503
            await asyncio.sleep(0.4)
        await until(lambda: len(door.load.connections) == 0)  # and then it is


ASK = b"POST /v1/next HTTP/1.1\r\nHost: localhost\r\ncontent-LENGTH: 4\r\n"


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (ASK + b"\r\n{   ", True),
        (ASK + b"Connection: keep-alive\r\n\r\n\r\n\r\n", True),
        (ASK + b"\r\n{  ", False),
        (ASK + b"\r\n{    ", False),
        (ASK, False),
        (ASK + b"Content-Length: 4\r\n\r\n{   ", False),
        (ASK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n ", False),
        (ASK + b"Upgrade: websocket\r\n\r\n{   ", False),
        (ASK + b"Expect: 100-continue\r\n\r\n{   ", False),
        (ASK + b" Transfer-Encoding: chunked\r\n\r\n{   ", False),
        (ASK.replace(b"1.1", b"1.0") + b"\r\n{   ", False),
        (GET, False),
    ],
)
def test_only_one_plain_whole_request_may_be_refused_without_being_parsed(text: bytes, is_one: bool) -> None:
    assert http_connection.is_whole(text) is is_one


@on_uvloop
async def test_who_takes_nothing_of_an_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "STALLED_S", 0.2)
    async with opened() as door:
        _, writer = await door.line()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(GET.replace(b"/a", b"/large"))
        await until(lambda: len(door.load.connections) == 1)
        await until(lambda: len(door.load.connections) == 0)


@on_uvloop
async def test_where_too_much_waits_to_be_read_who_has_read_nothing_for_the_longest_is_cut() -> None:
    async with opened(max_bodies_bytes=120_000_000) as door:
        for number in range(5):
            _, writer = await door.line()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(GET.replace(b"/a", b"/large"))
            left = min(number + 1, 2)  # there is no room for the answers of three
            await until(lambda number=number: door.app.answered == number + 1)  # type: ignore[misc]
            await until(lambda left=left: len(door.load.connections) == left)  # type: ignore[misc]
        reader, writer = await door.line()
        writer.write(GET.replace(b"/a", b"/large"))
        async with asyncio.timeout(SOON_S):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(50_000_000) == bytes(50_000_000)


@on_uvloop
async def test_a_request_of_http_1_1_without_a_host_is_refused() -> None:
    async with opened() as door:
        assert error(await door.said(b"GET /a HTTP/1.1\r\n\r\n")) == (400, "malformed_request")
        assert (await door.said(b"GET /a HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("size", [100_000, MOST_DISCARDED_BYTES - 100_000])
@on_uvloop
async def test_the_last_request_is_answered_although_its_body_is_not_read(size: int) -> None:
    async with opened() as door:
        head = POST.replace(b"/a", b"/deaf") + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % size
        reader, writer = await door.line()
        writer.write(head)
        for _ in range(size // 10_000):
            writer.write(bytes(10_000))
            await writer.drain()
        async with asyncio.timeout(SOON_S):
            answer = await reader.read()  # raises where the connection was reset
        assert answer.endswith(b"deaf")
        assert b"connection: close" in answer


@on_uvloop
async def test_the_body_of_a_last_request_is_asked_for() -> None:
    async with opened() as door:
        reader, writer = await door.line()
        writer.write(POST + b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert (await heard(reader))[0] == 100
        writer.write(b"abc")
        assert await heard(reader) == (200, "3 ")
