"""The WebSocket door, over real sockets: the answers of the other doors, pushes, and nobody who disturbs the others."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.gateway.conftest import SCRIPT, Served, _port, serving
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from crawlguide import Guide
from crawlguide.core.errors import CrawlGuideError
from crawlguide.core.messages import VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

FREE = {"policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}}
SOON_S, QUIET_S = 10.0, 0.4
PAGE = Path(__file__).resolve().parents[2] / "docs" / "websocket.md"
Message = dict[str, Any]


class Line:
    """One socket, speaking dictionaries."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def say(self, kind: str, name: object, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, "id": name, **fields}))

    async def hear(self, within_s: float = SOON_S) -> Message:
        async with asyncio.timeout(within_s):
            heard: Message = json.loads(await self.socket.recv())
        return heard

    async def call(self, kind: str, name: object, **fields: Any) -> Message:
        await self.say(kind, name, **fields)
        return await self.hear()

    async def is_quiet(self) -> bool:
        try:
            await self.hear(QUIET_S)
        except TimeoutError:
            return True
        return False

    async def until_closed(self) -> tuple[list[Message], int | None]:
        """Hear all there is, until the end; and the code of the goodbye."""
        heard = []
        try:
            while True:
                heard.append(await self.hear())
        except ConnectionClosed as end:
            return heard, end.rcvd.code if end.rcvd else None

    async def closed_with(self) -> int | None:
        return (await self.until_closed())[1]


@asynccontextmanager
async def opened(server: Served, **options: Any) -> AsyncIterator[Line]:
    async with connect(f"ws://127.0.0.1:{server.port}/ws", proxy=None, **options) as door:
        yield Line(door)


@contextmanager
def tuned(folder: Path, data: str = ":memory:", **options: float) -> Iterator[Served]:
    """A server of its own with these options."""
    lines = "\n".join(f"{name} = {value}" for name, value in options.items())
    (folder / "crawlguide.toml").write_text(f"[server]\n{lines}\n")
    ready, stderr = folder / "ready.json", folder / "stderr.txt"
    ready.unlink(missing_ok=True)
    command = [str(SCRIPT), "serve", "--data", data, "--port", "0", "--ready-file", str(ready)]
    with stderr.open("w") as said, subprocess.Popen(command, stderr=said, text=True, cwd=folder) as process:
        try:
            yield Served(process, _port(process, ready, stderr), stderr)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(20)
    assert "Traceback" not in stderr.read_text(), stderr.read_text()


def ask(crawl: str, max_urls: int = 1, **more: Any) -> Message:
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": max_urls}} | more


def tell(crawl: str, *urls: str, **more: Any) -> Message:
    fetches = [{"url": url, "status": 200} for url in urls]
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": fetches} | more


def wish(crawl: str, max_urls: int, **budget: Any) -> Message:
    return {"crawler_id": "c-1", "crawl_id": crawl, "budget": {"max_urls": max_urls, **budget}}


def prepare(
    server: Served, crawl: str, count: int, definition: Message = FREE, url: str = "https://h{}.example/"
) -> None:
    """A crawl, without politeness unless it says otherwise, and so many seeds."""
    urls = [url.format(number) for number in range(count)]
    with httpx.Client(base_url=server.url, trust_env=False, timeout=30.0) as door:
        assert door.put(f"/v1/crawls/{crawl}", json=definition).status_code == 201
        assert door.post(f"/v1/crawls/{crawl}/seeds", json={"urls": urls}).status_code == 200


def post(server: Served, path: str, message: Message) -> httpx.Response:
    return httpx.post(server.url + path, json=message, trust_env=False, timeout=30.0)


def get(server: Served, path: str) -> httpx.Response:
    return httpx.get(server.url + path, trust_env=False, timeout=30.0)


def states(server: Served, crawl: str) -> tuple[int, int]:
    """How many are queued, how many leased."""
    answer = get(server, f"/v1/stats?crawl_id={crawl}").json()
    return answer["crawls"][crawl]["queued"], answer["crawls"][crawl]["leased"]


async def comes_to(server: Served, crawl: str, expected: tuple[int, int]) -> None:
    async with asyncio.timeout(SOON_S):
        while (found := await asyncio.to_thread(states, server, crawl)) != expected:
            await asyncio.sleep(0.05)
            assert found


def urls_of(assignment: Message) -> list[str]:
    assert assignment["type"] in {"assignment", "next"}, assignment
    return [one["url"] for one in assignment["assigned_urls"]]


# the same answers as the other doors


STORY: list[tuple[str, Message]] = [
    ("next", ask("books", 3, context={"seed_urls": ["https://a.example/"]})),
    ("next", ask("books", 3, context={"seed_urls": ["https://b.example/x?y=1#z"]})),
    ("report", tell("books", "https://a.example/")),
    ("next", ask("books", 5, request_id="r-1")),
    ("next", ask("books", 5, request_id="r-1")),
    ("next", ask("books", 6, request_id="r-1")),
    ("next", ask("books", -3)),
    ("next", {"crawler_id": "c-1"}),
    ("next", ask("books", mcp_version="1999-01")),
    ("report", tell("books", "https://b.example/x?y=1", "not a url", report_id="t-1")),
    ("report", tell("books", "https://b.example/x?y=1", "not a url", report_id="t-1")),
    ("report", {**tell("books"), "fetches": [
        {"url": "https://c.example/", "status": 200, "title": "tea", "outlinks": [{"url": "/d"}, {"url": "https://e.example/"}]},
        {"url": "https://c.example/f", "error": "timeout"},
    ]}),
    ("next", ask("books", 10, context={"recent_history": [{"url": "https://c.example/d", "status": 404}]})),
    ("next", ask("books", 10)),
]  # fmt: skip
TIMES = {"lease_expires", "uptime_s"}


def timeless(value: Any) -> Any:
    """Without instants, and numbers that age a little from run to run to three digits."""
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if key not in TIMES}
    if isinstance(value, list):
        return [timeless(inner) for inner in value]
    return round(value, 3) if isinstance(value, float) else value


def through_the_library() -> list[Any]:
    told = []
    with Guide.open(":memory:", seed=0) as guide:
        guide.define("books", FREE)
        for kind, message in STORY:
            try:
                told.append(timeless(guide.ask(message) if kind == "next" else guide.tell(message)))
            except CrawlGuideError as problem:
                told.append((problem.code, problem.message, problem.field))
    return told


def refusal(answer: Message) -> tuple[str, str, str | None]:
    problem = answer["error"]
    return problem["code"], problem["message"], problem["field"]


def through_http(server: Served) -> list[Any]:
    prepare(server, "books", 0)
    answers = [post(server, f"/v1/{kind}", message).json() for kind, message in STORY]
    return [refusal(answer) if "error" in answer else timeless(answer) for answer in answers]


async def through_a_socket(server: Served) -> list[Any]:
    prepare(server, "books", 0)
    told: list[Any] = []
    async with opened(server) as line:
        for number, (kind, message) in enumerate(STORY):
            answer = await line.call(kind, number, **message)
            assert answer.pop("id") == number
            told.append(refusal(answer) if answer.pop("type") == "error" else timeless(answer))
    return told


async def test_library_http_and_socket_give_the_same_answers(tmp_path: Path) -> None:
    for name in ("http", "socket"):
        (tmp_path / name).mkdir()
    with serving(tmp_path / "http") as one, serving(tmp_path / "socket") as other:
        over_http, over_a_socket = through_http(one), await through_a_socket(other)
    assert over_a_socket == over_http
    assert over_a_socket == await asyncio.to_thread(through_the_library)
    assert sum(isinstance(answer, dict) for answer in over_a_socket) == 10


# messages and their ids


@pytest.mark.parametrize("name", [1, -7, 2**63 - 1, "a", 'ü"\\\n\u2028', "x" * 200])
async def test_an_id_comes_back_as_it_went(served: Served, name: object) -> None:
    async with opened(served) as line:
        assert await line.call("ping", name) == {"type": "pong", "id": name}


@pytest.mark.parametrize(
    ("text", "name", "field"),
    [
        ("nonsense", None, None), ("", None, None), ("[]", None, None), ("null", None, None), ("1", None, None),
        ('{"type": "ping"}', None, "id"), ('{"id": 7}', 7, "type"), ('{"type": "dance", "id": 7}', 7, "type"),
        ('{"type": 1, "id": 7}', 7, "type"), ('{"type": "ping", "id": null}', None, "id"),
        ('{"type": "ping", "id": 1.5}', None, "id"), ('{"type": "ping", "id": true}', None, "id"),
        ('{"type": "ping", "id": ""}', None, "id"), ('{"type": "ping", "id": 7, "x": NaN}', None, None),
        ('{"type": "ping", "id": 7, "id": 7}', 7, None), ('{"type": "next", "id": 7, "a": 1, "a": 1}', 7, None),
        ('{"type": "next", "id": 7, "a": ' + "[" * 40 + "]" * 40 + "}", 7, None),
        ('{"type": "next", "id": 7}', 7, "mcp_version"),
        ('{"type": "stats", "id": 7, "every_s": 0.01}', 7, "every_s"),
        ('{"type": "subscribe", "id": 7, "crawler_id": "c"}', 7, "budget"),
        ('{"type": "subscribe", "id": 7, "crawler_id": "c", "budget": {"max_urls": 0}}', 7, "budget.max_urls"),
    ],
)  # fmt: skip
async def test_what_is_malformed_is_said_and_the_socket_goes_on(
    served: Served, text: str, name: object, field: str | None
) -> None:
    async with opened(served) as line:
        await line.socket.send(text)
        answer = await line.hear()
        assert (answer["type"], answer["id"]) == ("error", name)
        assert answer["error"].keys() == {"code", "message", "field", "retry_after_s"}
        assert (answer["error"]["code"], answer["error"]["field"]) == ("malformed_request", field)
        assert (await line.call("ping", 8))["type"] == "pong"


async def test_a_message_in_several_frames_is_one_message(served: Served) -> None:
    async with opened(served) as line:
        await line.socket.send(['{"type": "pi', "", 'ng", "id"', ": 5}"])
        assert await line.hear() == {"type": "pong", "id": 5}


async def test_a_thousand_at_once_are_all_answered(served: Served, crawl: str) -> None:
    prepare(served, crawl, 300)
    async with opened(served) as line:
        for number in range(1_000):
            await (line.say("next", number, **ask(crawl)) if number % 4 == 0 else line.say("ping", number))
        heard = [await line.hear() for _ in range(1_000)]
    assert sorted(answer["id"] for answer in heard) == list(range(1_000))
    given = [url for answer in heard if answer["type"] == "next" for url in urls_of(answer)]
    assert len(given) == len(set(given)) == 250


async def test_an_answer_that_needs_the_disk_is_overtaken_by_those_that_do_not(tmp_path: Path) -> None:
    with tuned(tmp_path, data="data", socket_in_flight=8) as server:
        async with opened(server) as line:
            for number in range(20):
                await line.say("report", f"r{number}", **tell("x", f"https://h{number}.example/"))
                await line.say("ping", f"p{number}")
            heard = [(await line.hear())["id"] for _ in range(40)]
    assert sorted(heard) == sorted([f"r{n}" for n in range(20)] + [f"p{n}" for n in range(20)])
    assert any(heard.index(f"p{number}") < heard.index(f"r{number}") for number in range(20))


# subscriptions


async def test_a_subscription_fills_its_places_and_a_report_frees_them(served: Served, crawl: str) -> None:
    prepare(served, crawl, 5)
    async with opened(served) as line:
        given = urls_of(await line.call("subscribe", "s", **wish(crawl, 2)))
        assert len(given) == 2
        assert await line.is_quiet()
        assert (await line.call("report", 1, **tell(crawl, given[0])))["type"] == "report"
        given += urls_of(await line.hear())
        assert len(given) == 3
        await asyncio.to_thread(post, served, "/v1/report", tell(crawl, given[1]))
        given += urls_of(await line.hear())
        assert await line.is_quiet()
        elsewhere = given[2].upper().replace("HTTPS", "https") + "#top"  # the same page, otherwise spelled
        assert (await line.call("report", 2, **tell(crawl, elsewhere)))["results"][0]["status"] == "ok"
        given += urls_of(await line.hear())
    assert len(set(given)) == 5


async def test_a_release_frees_places_through_whatever_door(served: Served, crawl: str) -> None:
    prepare(served, crawl, 4)
    async with opened(served) as line:
        first = urls_of(await line.call("subscribe", "s", **wish(crawl, 4)))
        assert len(first) == 4
        path, message = f"/v1/crawls/{crawl}/release", {"crawler_id": "c-1"}
        assert (await asyncio.to_thread(post, served, path, message)).json() == {"released": 4}
        assert sorted(urls_of(await line.hear())) == sorted(first)
        await line.say("release", 7, crawler_id="c-1", crawl_id=crawl)
        answers = [await line.hear(), await line.hear()]
        assert {"type": "release", "id": 7, "released": 4} in answers
        (assignment,) = [answer for answer in answers if answer["type"] == "assignment"]
        assert sorted(urls_of(assignment)) == sorted(first)


async def test_a_release_for_a_crawl_that_is_not_there_is_not_found(served: Served, crawl: str) -> None:
    async with opened(served) as line:
        answer = await line.call("release", 7, crawler_id="c-1", crawl_id=crawl)
        assert (answer["type"], answer["error"]["code"]) == ("error", "not_found")
        answer = await line.call("release", 8, crawl_id=crawl)
        assert (answer["error"]["code"], answer["error"]["field"]) == ("malformed_request", "crawler_id")


async def test_history_in_an_ask_frees_places_too(served: Served, crawl: str) -> None:
    prepare(served, crawl, 5)
    async with opened(served) as line:
        (first,) = urls_of(await line.call("subscribe", "s", **wish(crawl, 1)))
        history = {"recent_history": [{"url": first, "status": 200}]}
        assert len(urls_of(await line.call("next", 1, **ask(crawl, context=history)))) == 1
        (second,) = urls_of(await line.hear())
        history = {"recent_history": [{"url": second, "status": 200}]}
        await asyncio.to_thread(post, served, "/v1/next", ask(crawl, context=history))
        assert len(urls_of(await line.hear())) == 1


async def test_the_end_is_said_once_and_so_is_a_new_beginning(served: Served, crawl: str) -> None:
    prepare(served, crawl, 1)
    async with opened(served) as line:
        (only,) = urls_of(await line.call("subscribe", 3, **wish(crawl, 9)))
        assert await line.is_quiet()
        await line.call("report", 4, **tell(crawl, only))
        assert await line.hear() == {"type": "state", "id": 3, "crawl_state": "exhausted"}
        await asyncio.sleep(1.2)  # it asks again meanwhile
        assert await line.is_quiet()
        seeds = {"urls": ["https://more.example/"]}
        await asyncio.to_thread(post, served, f"/v1/crawls/{crawl}/seeds", seeds)
        assert await line.hear() == {"type": "state", "id": 3, "crawl_state": "running"}
        assert urls_of(await line.hear()) == ["https://more.example/"]


async def test_politeness_paces_what_is_pushed(served: Served, crawl: str) -> None:
    polite = {"policy": {"robots": "ignore", "default_delay_s": 0.5, "horizon_s": 0.1}}
    prepare(served, crawl, 3, polite, "https://slow.example/{}")
    loop = asyncio.get_running_loop()
    starts: list[float] = []
    async with opened(served) as line:
        await line.say("subscribe", 1, **wish(crawl, 9))
        while len(starts) < 3:
            given = (await line.hear())["assigned_urls"]
            starts += [loop.time() + one["not_before_ms"] / 1_000 for one in given]
    assert all(later - earlier > 0.4 for earlier, later in pairwise(starts)), starts


async def test_a_lease_that_ends_frees_its_place(served: Served, crawl: str) -> None:
    prepare(served, crawl, 1)
    async with opened(served) as line:
        first = urls_of(await line.call("subscribe", 1, **wish(crawl, 1, timeout_ms=400)))
        assert urls_of(await line.hear()) == first


async def test_after_unsubscribing_nothing_comes_but_what_was_given_stays_given(served: Served, crawl: str) -> None:
    prepare(served, crawl, 4)
    async with opened(served) as line:
        first = urls_of(await line.call("subscribe", 1, **wish(crawl, 2)))
        assert await line.call("unsubscribe", 1) == {"type": "unsubscribe", "id": 1}
        await line.call("report", 2, **tell(crawl, first[0]))
        assert await line.is_quiet()
        assert states(served, crawl) == (2, 1)
        answer = await line.call("unsubscribe", 1)
        assert (answer["type"], answer["error"]["code"]) == ("error", "not_found")
    await comes_to(served, crawl, (3, 0))


async def test_an_id_carries_one_subscription(served: Served, crawl: str) -> None:
    prepare(served, crawl, 2)
    async with opened(served) as line:
        await line.call("subscribe", 1, **wish(crawl, 1))
        answer = await line.call("stats", 1)
        assert (answer["type"], answer["id"], answer["error"]["code"]) == ("error", 1, "conflict")
        assert len(urls_of(await line.call("subscribe", "1", **wish(crawl, 1)))) == 1


async def test_a_subscription_that_cannot_be_served_ends_with_an_error(served: Served, crawl: str) -> None:
    async with opened(served) as line:
        answer = await line.call("subscribe", 1, **wish(crawl, 1), mcp_version="1999-01")
        assert (answer["id"], answer["error"]["code"]) == (1, "unsupported_version")
        answer = await line.call("unsubscribe", 1)
        assert answer["error"]["code"] == "not_found"


async def test_a_lost_socket_returns_what_it_was_given_and_no_more(served: Served, crawl: str) -> None:
    prepare(served, crawl, 12)
    post(served, "/v1/next", ask(crawl, 2))  # the same crawler, by another door
    async with opened(served) as line, opened(served) as other:
        assert len(urls_of(await line.call("subscribe", 1, **wish(crawl, 5)))) == 5
        assert len(urls_of(await other.call("subscribe", 1, **wish(crawl, 3)))) == 3
        assert states(served, crawl) == (2, 10)
        line.socket.transport.abort()
        await comes_to(served, crawl, (7, 5))
        assert (await other.call("ping", 2))["type"] == "pong"
    await comes_to(served, crawl, (10, 2))


# statistics


async def test_statistics_come_now_and_then_until_unsubscribed(served: Served, crawl: str) -> None:
    prepare(served, crawl, 3)
    async with opened(served) as line:
        first = await line.call("stats", 4, every_s=0.1, crawl_id=crawl)
        assert (first["type"], first["id"]) == ("stats", 4)
        assert first["crawls"][crawl]["queued"] == 3
        await line.hear()
        last = await line.hear()
        assert last["uptime_s"] - first["uptime_s"] > 0.15
        await line.say("unsubscribe", 4)
        while (heard := await line.hear())["type"] == "stats":
            pass
        assert heard == {"type": "unsubscribe", "id": 4}
        assert await line.is_quiet()


async def test_statistics_of_a_crawl_that_is_not_there(served: Served) -> None:
    async with opened(served) as line:
        answer = await line.call("stats", 4, crawl_id="nobody-made-this")
        assert (answer["id"], answer["error"]["code"]) == (4, "not_found")


# who may come in


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null", "https://[", ""])
async def test_pages_of_other_sites_are_refused(served: Served, origin: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with opened(served, additional_headers={"Origin": origin}):
            pass
    assert refused.value.response.status_code == 403
    assert json.loads(refused.value.response.body or b"")["error"]["code"] == "forbidden"


async def test_our_own_page_may_open_a_socket(served: Served) -> None:
    async with opened(served, origin=f"http://127.0.0.1:{served.port}") as line:
        assert (await line.call("ping", 1))["type"] == "pong"


async def test_sockets_are_opened_at_one_path(served: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with connect(f"ws://127.0.0.1:{served.port}/v1/next", proxy=None):
            pass
    assert refused.value.response.status_code == 404


async def test_the_socket_after_the_last_is_refused_before_the_handshake(tmp_path: Path) -> None:
    with tuned(tmp_path, max_sockets=2) as server:
        async with opened(server) as line:
            async with opened(server):
                with pytest.raises(InvalidStatus) as refused:
                    async with opened(server):
                        pass
                assert refused.value.response.status_code == 503
                assert json.loads(refused.value.response.body or b"")["error"]["code"] == "unavailable"
                assert (await line.call("ping", 1))["type"] == "pong"
            async with asyncio.timeout(SOON_S), opened(server) as again:
                assert (await again.call("ping", 1))["type"] == "pong"


HANDSHAKE = (
    "{method} /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{version}{key}\r\n"
)  # fmt: skip
KEY, THIRTEEN = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "Sec-WebSocket-Version: 13\r\n"


@pytest.mark.parametrize(
    "request_text",
    [
        HANDSHAKE.format(method="GET", version=THIRTEEN, key=""),
        HANDSHAKE.format(method="GET", version="", key=KEY),
        HANDSHAKE.format(method="GET", version="Sec-WebSocket-Version: 8\r\n", key=KEY),
        HANDSHAKE.format(method="GET", version=THIRTEEN, key="Sec-WebSocket-Key: short\r\n"),
        HANDSHAKE.format(method="GET", version=THIRTEEN, key=KEY + KEY),
        HANDSHAKE.format(method="POST", version=THIRTEEN, key=KEY),
    ],
)
def test_a_bad_handshake_is_refused_and_disturbs_nobody(served: Served, request_text: str) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=SOON_S) as bare:
        bare.sendall(request_text.encode())
        answer = bare.recv(65_536)
    assert not answer or re.match(rb"HTTP/1.1 4\d\d ", answer), answer


# limits


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


# the end


async def test_a_server_that_ends_answers_what_it_has_begun_and_says_goodbye(tmp_path: Path) -> None:
    with tuned(tmp_path, data="data") as server:
        async with opened(server) as line, opened(server) as idle:
            for number in range(60):
                await line.say("report", number, **tell("x", f"https://h{number}.example/"))
            first = await line.hear()
            server.process.send_signal(signal.SIGTERM)
            heard, code = await line.until_closed()
            assert code == 1001
            said = await idle.hear()
            assert (said["type"], said["id"], said["error"]["code"]) == ("error", None, "unavailable")
            assert await idle.closed_with() == 1001
        assert server.process.wait(20) == 0
    answered = [answer for answer in (first, *heard) if answer["type"] == "report"]
    assert [answer["error"]["code"] for answer in heard if answer["type"] == "error"] == ["unavailable"]
    with tuned(tmp_path, data="data") as server:
        stats = get(server, "/v1/stats").json()
    assert stats["crawls"]["x"]["fetches"] == len(answered)


async def test_the_end_returns_what_was_pushed(tmp_path: Path) -> None:
    with tuned(tmp_path, data="data") as server:
        prepare(server, "x", 3)
        async with opened(server) as line:
            assert len(urls_of(await line.call("subscribe", 1, **wish("x", 3)))) == 3
            server.process.send_signal(signal.SIGTERM)
            assert await line.closed_with() == 1001
        assert server.process.wait(20) == 0
    with tuned(tmp_path, data="data") as server:
        assert states(server, "x") == (3, 0)


# the page


async def test_the_conversation_in_the_documentation_is_true(own_server: Served) -> None:
    (talk,) = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    async with opened(own_server) as line:
        for said in talk.splitlines():
            if said.startswith("> "):
                await line.socket.send(said[2:])
                continue
            heard = json.dumps(await line.hear(), separators=(",", ":"), ensure_ascii=False)
            pattern = ".+?".join(re.escape(part) for part in said.removeprefix("< ").split("…"))
            assert re.fullmatch(pattern, heard), f"heard    {heard}\nexpected {said}"
