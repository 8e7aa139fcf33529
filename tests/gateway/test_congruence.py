"""Whatever is asked and told: library, HTTP and WebSocket give the same answers, to the byte.

Three guides with one seed and one time live through the same random history, each behind its own door.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import connect

from crawlguide import AsyncGuide
from crawlguide.core.config import Config, ServerOptions
from crawlguide.core.errors import CrawlGuideError
from crawlguide.core.messages import VERSION, AskMessage, Released, ReportMessage
from crawlguide.gateway import serve, wire
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service
from crawlguide.gateway.websocket.sockets import Sockets
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from crawlguide.guide.local import LocalGuide

CRAWL, SEED = "books", 7
CONFIG = Config(server=ServerOptions(port=0))
KINDS = ("layered", "relational", "best-first", "breadth-first", "depth-first", "random")
Step = tuple[str, Any]

# histories: few hosts, pages, crawlers and ids, so that they meet

pages = st.builds("https://h{}.example{}.org/{}".format, st.integers(0, 3), st.integers(0, 1), st.integers(0, 5))
crawlers = st.sampled_from(["c-1", "c-2", "gpu-1"])
unit = st.floats(0, 1)
fates = st.one_of(
    st.fixed_dictionaries({"status": st.sampled_from([200, 200, 200, 404, 429, 500, 301])}),
    st.fixed_dictionaries({"error": st.sampled_from(["timeout", "dns", "released"])}),
)
fetches = st.builds(
    lambda url, fate, links, more: {"url": url, "outlinks": [{"url": link} for link in links], **fate, **more},
    pages, fates, st.lists(pages, max_size=5),
    st.fixed_dictionaries(
        {}, optional={"relevance": unit, "elapsed_ms": st.floats(1, 9_000), "title": st.text(max_size=9)}
    ),
)  # fmt: skip
asks = st.fixed_dictionaries(
    {"mcp_version": st.just(VERSION), "crawl_id": st.just(CRAWL), "crawler_id": crawlers,
     "budget": st.fixed_dictionaries(
         {"max_urls": st.integers(-1, 6)}, optional={"timeout_ms": st.integers(1, 60_000)})},
    optional={"request_id": st.sampled_from(["r-1", "r-2"]), "context": st.fixed_dictionaries(
        {}, optional={"seed_urls": st.lists(pages, max_size=3), "recent_history": st.lists(fetches, max_size=2)})},
)  # fmt: skip
tells = st.fixed_dictionaries(
    {"mcp_version": st.just(VERSION), "crawl_id": st.just(CRAWL), "crawler_id": crawlers,
     "fetches": st.lists(fetches, max_size=4)},
    optional={"report_id": st.sampled_from(["t-1", "t-2"])},
)  # fmt: skip
named = st.fixed_dictionaries(
    {}, optional={"hosts": st.lists(st.sampled_from(["h0.example0.org", "h1.example1.org"]), max_size=2),
                  "patterns": st.lists(st.sampled_from(["/[0-2]$", "example1"]), max_size=2)}
)  # fmt: skip
rules = st.fixed_dictionaries(
    {}, optional={"ban": named, "unban": named,
                  "priority": st.fixed_dictionaries({"hosts": st.dictionaries(st.just("h2.example0.org"), unit)})}
)  # fmt: skip
steps = st.one_of(
    st.tuples(st.just("ask"), asks),
    st.tuples(st.just("ask"), asks),
    st.tuples(st.just("tell"), tells),
    st.tuples(st.just("release"), crawlers),
    st.tuples(st.just("rules"), rules),
    st.tuples(st.just("wait"), st.sampled_from([0.3, 2.0, 40.0, 700.0])),
)
definitions = st.fixed_dictionaries({
    "strategy": st.fixed_dictionaries({"kind": st.sampled_from(KINDS)}),
    "policy": st.fixed_dictionaries({
        "default_delay_s": st.sampled_from([0, 1.0]),
        "max_per_host": st.sampled_from([0, 2]),
        "crawlers": st.sampled_from([{}, {"gpu-*": {"max_leases": 2, "allow_domains": ["example1.org"]}}]),
    }),
})  # fmt: skip


class Library:
    """No wire at all."""

    def __init__(self, guide: LocalGuide) -> None:
        self.guide = guide
        self._library = AsyncGuide(guide)

    async def ask(self, message: dict[str, Any]) -> bytes:
        return await _encoded(self._library.ask(message))

    async def tell(self, message: dict[str, Any]) -> bytes:
        return await _encoded(self._library.tell(message))

    async def release(self, crawler_id: str) -> bytes:
        async def released() -> Any:
            return Released(await self._library.release(CRAWL, crawler_id))

        return await _encoded(released())

    async def rules(self, edit: dict[str, Any]) -> bytes:
        return await _encoded(self._library.edit_rules(CRAWL, edit))


class Http:
    def __init__(self, guide: LocalGuide, client: httpx.AsyncClient) -> None:
        self.guide = guide
        self._client = client

    async def _post(self, path: str, message: Any) -> bytes:
        return (await self._client.post(path, json=message)).content

    async def ask(self, message: dict[str, Any]) -> bytes:
        return await self._post("/v1/next", message)

    async def tell(self, message: dict[str, Any]) -> bytes:
        return await self._post("/v1/report", message)

    async def release(self, crawler_id: str) -> bytes:
        return await self._post(f"/v1/crawls/{CRAWL}/release", {"crawler_id": crawler_id})

    async def rules(self, edit: dict[str, Any]) -> bytes:
        return await self._post(f"/v1/crawls/{CRAWL}/rules", edit)


class Socket(Http):
    """Asks, tells and releases over a socket; rules, which have no message there, over HTTP."""

    def __init__(self, guide: LocalGuide, client: httpx.AsyncClient, line: Any) -> None:
        super().__init__(guide, client)
        self._line, self._number = line, 0

    async def _say(self, kind: str, message: dict[str, Any]) -> bytes:
        self._number += 1
        await self._line.send(json.dumps({"type": kind, "id": self._number, **message}))
        heard: bytes = (await self._line.recv()).encode()
        for word in (kind, "error"):
            beginning = b'{"type":"%b","id":%d,' % (word.encode(), self._number)
            if heard.startswith(beginning):
                return b"{" + heard.removeprefix(beginning)
        raise AssertionError(heard)

    async def ask(self, message: dict[str, Any]) -> bytes:
        return await self._say("next", message)

    async def tell(self, message: dict[str, Any]) -> bytes:
        return await self._say("report", message)

    async def release(self, crawler_id: str) -> bytes:
        return await self._say("release", {"crawler_id": crawler_id, "crawl_id": CRAWL})


async def _encoded(answer: Awaitable[Any]) -> bytes:
    try:
        return msgspec.json.encode(await answer)
    except CrawlGuideError as problem:
        return wire.error(problem)


class Doors:
    """A server for HTTP and one for sockets, whose guides are replaced for each history."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._services: list[Service] = []
        self._served: list[tuple[Any, asyncio.Task[None]]] = []
        self.runner.run(self._open())

    async def _open(self) -> None:
        self._clients = [await self._client(await self._server()) for _ in range(2)]
        port = self._clients[1].base_url.port
        self._line = await self._stack.enter_async_context(connect(f"ws://127.0.0.1:{port}/ws", proxy=None))

    async def _server(self) -> int:
        ready, service = asyncio.Event(), Service(open_guide(MEMORY, CONFIG), CONFIG)
        listener = serve.bound(CONFIG.server.host, 0)
        server = serve.Server(
            serve._uvicorn(serve.checked(service, Sockets(service)), CONFIG), ready.set, load=service.load
        )
        self._services.append(service)
        self._served.append((server, asyncio.create_task(server.serve([listener]))))
        await ready.wait()
        return int(listener.getsockname()[1])

    async def _client(self, port: int) -> httpx.AsyncClient:
        client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30.0)
        return await self._stack.enter_async_context(client)

    def fresh(self, clock: ManualClock) -> list[Library | Http]:
        guides = [open_guide(MEMORY, CONFIG, clock, SEED) for _ in range(3)]
        for service, guide in zip(self._services, guides[1:], strict=True):
            service.guide = guide
        return [
            Library(guides[0]),
            Http(guides[1], self._clients[0]),
            Socket(guides[2], self._clients[1], self._line),
        ]

    def close(self) -> None:
        self.runner.run(self._close())
        self.runner.close()

    async def _close(self) -> None:
        await self._stack.aclose()
        for server, task in self._served:
            server.should_exit = True
            await task


@pytest.fixture(scope="module")
def doors() -> Iterator[Doors]:
    opened = Doors()
    yield opened
    opened.close()


async def lived_through(doors: Doors, definition: dict[str, Any], history: list[Step]) -> list[bytes]:
    """All answers, which must be the same behind each door."""
    clock = ManualClock()
    three, heard = doors.fresh(clock), []
    for one in three:
        await AsyncGuide(one.guide).define(CRAWL, definition)
    for kind, word in history:
        if kind == "wait":
            clock.advance(word)
            continue
        answers = [await getattr(one, kind)(word) for one in three]
        assert answers[1] == answers[0], "HTTP and library"
        assert answers[2] == answers[0], "WebSocket and library"
        heard.append(answers[0])
    numbers = [wire.encode((await one.guide.stats()).crawls) for one in three]
    assert numbers == [numbers[0]] * 3
    for one in three:
        await one.guide.close()
    return heard


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(definition=definitions, history=st.lists(steps, min_size=1, max_size=30))
def test_any_history_reads_the_same_through_every_door(
    doors: Doors, definition: dict[str, Any], history: list[Step]
) -> None:
    doors.runner.run(lived_through(doors, definition, history))


def test_a_history_in_which_something_happens(doors: Doors) -> None:
    """So that the above is known to compare more than refusals."""
    me = {"mcp_version": VERSION, "crawl_id": CRAWL, "crawler_id": "c-1"}
    seeds = [f"https://h{number}.example0.org/1" for number in range(4)]
    found = {"url": seeds[0], "status": 200, "relevance": 0.9, "outlinks": [{"url": "/2"}]}
    history: list[Step] = [
        ("ask", {**me, "budget": {"max_urls": 3}, "context": {"seed_urls": seeds}}),
        ("tell", {**me, "fetches": [found]}),
        ("rules", {"ban": {"hosts": ["h1.example0.org"]}}),
        ("release", "c-1"),
        ("wait", 40.0),
        ("ask", {**me, "budget": {"max_urls": 9}}),
        ("ask", {**me, "budget": {"max_urls": -1}}),
    ]
    answers = list(map(json.loads, doors.runner.run(lived_through(doors, {"policy": {"default_delay_s": 0}}, history))))
    first, told, _, released, again, wrong = answers
    assert (len(first["assigned_urls"]), told["accepted"], released) == (3, 1, {"released": 2})
    assert sorted(one["url"] for one in again["assigned_urls"]) == [
        "https://h0.example0.org/2", "https://h2.example0.org/1", "https://h3.example0.org/1",
    ]  # fmt: skip
    assert wrong["error"]["field"] == "budget.max_urls"


def test_a_message_and_a_dictionary_are_answered_alike() -> None:
    async def both() -> None:
        clock = ManualClock()
        one, other = (AsyncGuide.open(clock=clock, seed=SEED) for _ in range(2))
        ask = {"mcp_version": VERSION, "crawler_id": "c-1", "budget": {"max_urls": 3}}
        ask["context"] = {"seed_urls": ["https://a.example/", "https://b.example/"]}
        tell = {"mcp_version": VERSION, "crawler_id": "c-1", "fetches": [{"url": "https://a.example/", "status": 200}]}
        assert await one.ask(ask) == msgspec.to_builtins(await other.ask(wire.convert(ask, AskMessage)))
        assert await one.tell(tell) == msgspec.to_builtins(await other.tell(wire.convert(tell, ReportMessage)))
        await one.close()
        await other.close()

    asyncio.run(both())
