"""The door to a real NATS server."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import nats
import pytest
from tests.gateway.bus.common import (
    NatsCrawler,
    NatsServer,
    ask,
    config,
    fresh_prefix,
    key,
    nats_crawler,
    opened,
    report,
    seeds,
    until,
)
from tests.gateway.bus.failing import failing

from crawlguide.core.config import AccessOptions, BusOptions, ServerOptions
from crawlguide.core.errors import ConfigError
from crawlguide.core.types import Crawl
from crawlguide.gateway import serve, wire
from crawlguide.gateway.bus.messages import Names, header, token
from crawlguide.gateway.opening import MEMORY, open_guide
from crawlguide.gateway.service import Service
from crawlguide.gateway.websocket.sockets import Sockets
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.config import Config

PAGES = [f"https://h{number}.example/" for number in range(6)]


def options(server: NatsServer, prefix: str, **more: Any) -> BusOptions:
    return BusOptions(nats=server.url, prefix=prefix, redeliver_s=1.0, **more)


# the same answers as over HTTP

HISTORY: list[tuple[str, Any]] = [
    ("next", ask(**seeds(*PAGES))),
    ("report", report(PAGES[0], report_id="t-1")),
    ("report", report(PAGES[0], report_id="t-1")),
    ("report", report(PAGES[1], report_id="t-1")),
    ("next", ask(request_id="r-1")),
    ("next", ask(request_id="r-1")),
    ("next", ask(crawler_id="c-2", budget={"max_urls": -1})),
    ("next", {"mcp_version": "1999", "crawler_id": "c", "budget": {"max_urls": 1}}),
    ("report", {"fetches": []}),
    ("next", []),
]


def at_one_time(settings: Config) -> Service:
    return Service(open_guide(MEMORY, settings, ManualClock(), seed=7), settings)


async def test_asks_and_tells_are_answered_as_over_http(nats_server: NatsServer, prefix: str) -> None:
    settings = config(options(nats_server, prefix))
    other = at_one_time(settings)
    app = serve.checked(other, Sockets(other))
    transport = httpx.ASGITransport(app=app)
    async with opened(settings) as here, nats_crawler(nats_server.url, prefix) as crawler:
        await here.guide.close()
        here.service.guide = at_one_time(settings).guide
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            for verb, message in HISTORY:
                over_http = await http.post(f"/v1/{verb}", json=message)
                over_nats = await crawler.requested(verb, message)
                assert over_nats.data == over_http.content
                assert (over_nats.headers or {}).get("status", "200") == str(over_http.status_code)
        assert wire.encode((await here.guide.stats()).crawls) == wire.encode((await other.guide.stats()).crawls)
    await other.guide.close()


async def test_what_jetstream_keeps_is_answered_alike(nats_server: NatsServer, prefix: str) -> None:
    settings = config(options(nats_server, prefix, in_flight=1))
    other = at_one_time(settings)
    async with opened(settings) as here, nats_crawler(nats_server.url, prefix) as crawler:
        await here.guide.close()
        here.service.guide = at_one_time(settings).guide
        messages = [ask(request_id="a", **seeds(*PAGES)), report(PAGES[0], report_id="b"), ask(request_id="c")]
        for number, message in enumerate(messages):
            verb = "report" if "fetches" in message else "next"
            await crawler.put(verb, message, correlation_id=f"mine {number}")
            answers = await until(lambda: crawler.all_of("answers.default.c-1"))
            while len(answers) <= number:
                answers = await crawler.all_of("answers.default.c-1")
        said = [
            wire.encode(await other.guide.ask(wire.convert(messages[0], serve_kind("next")))),
            wire.encode(await other.guide.tell(wire.convert(messages[1], serve_kind("report")))),
            wire.encode(await other.guide.ask(wire.convert(messages[2], serve_kind("next")))),
        ]
        assert [one.data for one in answers] == said
        assert [(one.headers or {})["correlation-id"] for one in answers] == ["mine 0", "mine 1", "mine 2"]
        assert [(one.headers or {})["request-id"] for one in answers] == ["a", "b", "c"]
    await other.guide.close()


def serve_kind(verb: str) -> Any:
    from crawlguide.gateway.bus.answering import ROUTE_OF

    return ROUTE_OF[verb].takes


# exactly once in effect


async def test_a_message_that_comes_twice_counts_once(nats_server: NatsServer, prefix: str) -> None:
    async with opened(config(options(nats_server, prefix))) as here, nats_crawler(nats_server.url, prefix) as crawler:
        for _ in range(2):
            await crawler.put("report", report(PAGES[0], report_id="once"))
            await crawler.put("next", ask(request_id="once", **seeds(*PAGES[:3])))
        answers = await until(lambda: found_all(crawler, 4))
        assert len({one.data for one in answers}) == 2
        numbers = (await here.guide.stats()).crawls["default"]
        assert (numbers.fetches, numbers.asks) == (1, 1)


async def found_all(crawler: Any, number: int, place: str = "answers.>") -> Any:
    found = await crawler.all_of(place)
    return found if len(found) >= number else None


async def test_what_was_not_acknowledged_comes_again_and_is_answered_the_same(
    nats_server: NatsServer, prefix: str
) -> None:
    """The first guide loses its connection between the answer and the acknowledgement."""
    async with opened(config(options(nats_server, prefix))) as here, nats_crawler(nats_server.url, prefix) as crawler:
        answering = here.door.buses[0]._answering
        assert answering is not None
        forgotten: list[str] = []

        async def forget(received: Any) -> None:
            forgotten.append(received.delivery_id)

        done, answering._connection.done = answering._connection.done, forget  # type: ignore[method-assign]
        await crawler.put("next", ask(**seeds(*PAGES)))
        await until(lambda: forgotten)
        answering._connection.done = done  # type: ignore[method-assign]
        await until(lambda: emptied(crawler))
        (answer,) = await crawler.all_of("answers.>")  # the second has the same id
        assert len(json.loads(answer.data)["assigned_urls"]) == 3
        assert (await here.guide.stats()).crawls["default"].asks == 1


async def emptied(crawler: Any) -> bool:
    info = await crawler.stream.stream_info(f"{crawler.prefix}-queue")
    return bool(info.state.messages == 0)


KILLED = """
import asyncio, os, sys
from tests.gateway.bus.common import config, opened
from crawlguide.core.config import BusOptions
from crawlguide.gateway.bus.nats import NatsConnection

async def kill(self, received):
    os.kill(os.getpid(), 9)

NatsConnection.done = kill

async def main():
    bus = BusOptions(nats=sys.argv[1], prefix=sys.argv[2], redeliver_s=1.0)
    async with opened(config(bus, sys.argv[3])):
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_kill_9_before_the_acknowledgement_doubles_nothing(
    nats_server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    async with nats_crawler(nats_server.url, prefix) as crawler:
        command = [sys.executable, "-c", KILLED, nats_server.url, prefix, str(data)]
        process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL)

        async def is_kept() -> bool:
            try:
                await crawler.put("report", report(PAGES[0]))
            except nats.js.errors.NoStreamResponseError:
                return False
            return True

        await until(is_kept)
        assert await process.wait() == -9
        async with opened(config(options(nats_server, prefix), data)) as here:
            await until(lambda: emptied(crawler))
            (answer,) = await crawler.bodies("answers.>")
            assert answer["accepted"] == 1
            assert (await here.guide.stats()).crawls["default"].fetches == 1


async def test_two_guides_share_the_messages(nats_server: NatsServer, prefix: str) -> None:
    settings = config(options(nats_server, prefix, in_flight=4))
    async with (
        opened(settings) as one,
        opened(settings) as other,
        nats_crawler(nats_server.url, prefix) as crawler,
    ):
        for number in range(60):
            await crawler.put("report", report(f"https://a.example/{number}"))
        await until(lambda: found_all(crawler, 60))
        told = [(await here.guide.stats()).crawls["default"].fetches for here in (one, other)]
        assert sum(told) == 60
        assert min(told) > 0


# who may come in


async def test_every_guard_of_the_other_doors_is_here(nats_server: NatsServer, prefix: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    admin, asks = key(data, "admin"), key(data, "ask")
    some, other = key(data, "ask", "tell", crawl="mine"), key(data, "admin", tenant="other.one")
    bound = key(data, "ask", "tell", crawler_id="c-9")
    access = AccessOptions(address_failures_per_s=0)
    settings = config(options(nats_server, prefix), data, access, server=ServerOptions(max_message_bytes=10_000))
    async with opened(settings) as here, nats_crawler(nats_server.url, prefix) as crawler:

        async def code(verb: str, message: Any, authorization: str = "") -> str | None:
            shown = {"Authorization": authorization} if authorization else {}
            answer = await crawler.request(verb, message, **shown)
            found: str | None = answer.get("error", {}).get("code")
            return found

        assert await code("next", ask()) == "unauthenticated"
        assert await code("next", ask(), "Bearer cg_0123456789ab_wrong") == "unauthenticated"
        assert await code("report", report(PAGES[0]), asks) == "forbidden"
        assert await code("next", ask(**seeds(*PAGES)), asks) == "forbidden"
        assert await code("next", ask(), some) == "forbidden"
        assert await code("next", ask(crawl_id="mine"), some) is None
        assert await code("next", ask(), bound) == "forbidden"
        assert await code("next", b"\xff", admin) == "malformed_request"
        assert await code("next", b'{"a":1,"a":2}', admin) == "malformed_request"
        assert await code("next", b"[" * 5_000, admin) == "malformed_request"
        assert await code("report", report("https://a.example/" + "x" * 10_000), admin) == "too_large"
        assert await code("next", ask(**seeds(*PAGES)), admin) is None
        answer = await crawler.request("next", ask(), Authorization=other)
        assert answer["assigned_urls"] == []
        assert await here.guide.crawls.names("other.one") == [Crawl("other.one", "default")]


async def test_over_the_limit_a_request_is_refused_and_what_is_kept_waits(
    nats_server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    admin = key(data, "admin")
    settings = config(options(nats_server, prefix), data, AccessOptions(requests_per_s=5.0))
    async with opened(settings), nats_crawler(nats_server.url, prefix) as crawler:
        answers = [await crawler.request("next", ask(), authorization=admin) for _ in range(15)]
        refused = [one["error"] for one in answers if "error" in one]
        assert refused[0]["code"] == "rate_limited"
        assert refused[0]["retry_after_s"] > 0
        for number in range(15):
            await crawler.put("report", report(f"https://a.example/{number}"), authorization=admin)
        answers = await until(lambda: found_all(crawler, 15))
        assert all(json.loads(one.data)["accepted"] == 1 for one in answers)
        assert await crawler.all_of("dead") == []


async def test_a_tenant_over_its_limit_is_answered_when_too_much_of_it_waits(
    nats_server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    over, quiet = key(data, "ask", "tell", tenant="over"), key(data, "ask", "tell", tenant="quiet")
    access = AccessOptions(requests_per_s=5.0, address_requests_per_s=1.0)
    async with (
        opened(config(options(nats_server, prefix, in_flight=4), data, access)),
        nats_crawler(nats_server.url, prefix) as crawler,
    ):
        for number in range(40):
            await crawler.put("report", report(f"https://a.example/{number}"), authorization=over)
        answers = [await crawler.request("next", ask(), authorization=quiet) for _ in range(5)]
        assert not [one for one in answers if "error" in one]
        answers = [json.loads(one.data) for one in await until(lambda: found_all(crawler, 40, "answers.over.>"))]
        refused = [one["error"] for one in answers if "error" in one]
        assert {one["code"] for one in refused} == {"rate_limited"}
        assert len(refused) <= 40 - 10 - 4  # at once, and those that waited


async def test_tenants_have_places_of_their_own(nats_server: NatsServer, prefix: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    keys = {tenant: key(data, "admin", tenant=tenant) for tenant in ("a", "a.b")}
    settings = config(options(nats_server, prefix), data)
    async with opened(settings), nats_crawler(nats_server.url, prefix) as crawler:
        for tenant, shown in keys.items():
            await crawler.put("report", report(f"https://{tenant}.example/"), authorization=shown)
        await until(lambda: found_all(crawler, 2))
        await until(lambda: found_all(crawler, 4, "events.>"))
        for tenant, part in (("a", "a"), ("a.b", "aDOTb")):
            (answer,) = await crawler.bodies(f"answers.{part}.>")
            assert answer["results"][0]["url"] == f"https://{tenant}.example/"
            assert {event["tenant"] for event in await crawler.bodies(f"events.{part}.>")} == {tenant}


async def test_an_answer_goes_nowhere_but_to_its_own_tenant(
    nats_server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    mine = key(data, "admin", tenant="mine")
    async with (
        opened(config(options(nats_server, prefix), data)),
        nats_crawler(nats_server.url, prefix) as crawler,
    ):
        wrong = (f"{prefix}.answers.other.x", f"{prefix}.queue.report", "elsewhere", f"{prefix}.answers.mine.*")
        for place in wrong:
            await crawler.put("next", ask(), authorization=mine, reply_to=place)
        await crawler.put("next", ask(), authorization=mine, reply_to=f"{prefix}.answers.mine.box.1")
        answers = await until(lambda: found_all(crawler, 5))
        refused = [json.loads(one.data)["error"] for one in answers if one.subject == f"{prefix}.answers.mine.c-1"]
        assert [(one["code"], one["field"]) for one in refused] == [("forbidden", "reply-to")] * 4
        assert [one.subject for one in answers if "error" not in json.loads(one.data)] == [
            f"{prefix}.answers.mine.box.1"
        ]
        heard = await crawler.client.subscribe("elsewhere")
        await crawler.client.publish(f"{prefix}.next", json.dumps(ask()).encode(), reply="elsewhere")
        await crawler.request("next", ask())
        assert heard.pending_msgs == 0


# what cannot be answered


async def test_what_nobody_can_answer_becomes_a_dead_letter_and_blocks_nothing(
    nats_server: NatsServer, prefix: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    admin = key(data, "admin")
    settings = config(options(nats_server, prefix), data, server=ServerOptions(max_message_bytes=10_000))
    async with opened(settings), nats_crawler(nats_server.url, prefix) as crawler:
        await crawler.put("report", b"no JSON", authorization=admin, trace="t-1")
        await crawler.put("report", b'"' + b"x" * 20_000 + b'"', authorization=admin)
        await crawler.put("elsewhere", ask(), authorization=admin)
        await crawler.put("next", ask(), authorization="Bearer cg_0123456789ab_wrong")
        await crawler.put("report", report(PAGES[0]), authorization=admin)
        await crawler.put("next", ask(budget={"max_urls": 0}), authorization=admin)
        good, wrong = sorted(await until(lambda: found_all(crawler, 2)), key=lambda one: one.data)
        dead = await until(lambda: found_all(crawler, 4, "dead"))
        assert json.loads(good.data)["accepted"] == 1
        assert json.loads(wrong.data)["error"]["field"] == "budget.max_urls"
        found = {one.headers["code"]: one for one in dead}
        assert found.keys() == {"malformed_request", "too_large", "not_found", "unauthenticated"}
        letter = found["malformed_request"]
        assert letter.data == b"no JSON"
        assert letter.headers["subject"] == f"{prefix}.queue.report"
        assert letter.headers["error"].startswith("body: not JSON")
        assert letter.headers["trace"] == "t-1"
        assert not any("authorization" in name.lower() for one in dead for name in one.headers)


async def test_a_message_that_the_guide_fails_on_five_times_is_a_dead_letter_wherever_the_bus_was_meanwhile(
    nats_server: NatsServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlguide.gateway.bus.answering.FAULT_REST_S", 0.01)
    tried = 0

    async def cut_at_the_third() -> None:
        nonlocal tried
        tried += 1
        if tried == 3:
            bus = here.door.buses[0]
            assert bus._answering is not None
            await bus._answering._connection.close()

    settings = failing(options(nats_server, prefix), cut_at_the_third)
    async with opened(settings) as here, nats_crawler(nats_server.url, prefix) as crawler:
        await crawler.put("next", ask(**seeds(*PAGES)))
        await crawler.put("report", report(PAGES[0]))
        assert (await until(lambda: found_all(crawler, 1, "dead")))[0].headers["code"] == "internal"
        assert tried == 5
        assert len(await crawler.all_of("answers.>")) == 1


async def test_requests_are_bounded_and_those_beyond_are_refused_at_no_cost_to_the_queue(
    nats_server: NatsServer, prefix: str
) -> None:
    ended = asyncio.Event()
    async with opened(failing(options(nats_server, prefix, in_flight=4), ended.wait)) as here:
        answering = here.door.buses[0]._answering
        assert answering is not None
        async with nats_crawler(nats_server.url, prefix) as crawler:
            waiting = [asyncio.create_task(crawler.request("next", ask(**seeds(*PAGES)))) for _ in range(4)]
            await until(lambda: len(answering._requests) == 4)
            refused = await crawler.request("report", report(PAGES[0]))
            assert refused["error"]["code"] == "unavailable"
            assert not answering._working
            answering._refusals.update(waiting)  # as many as there may be
            with pytest.raises(nats.errors.TimeoutError):
                await crawler.client.request(f"{prefix}.next", json.dumps(ask()).encode(), 0.2)
            answering._refusals.clear()
            await crawler.put("report", report(PAGES[0]))
            assert (await until(lambda: crawler.bodies("answers.>")))[0]["accepted"] == 1
            ended.set()
            assert {one["error"]["code"] for one in await asyncio.gather(*waiting)} == {"internal"}


async def test_an_overloaded_guide_leaves_messages_with_the_bus(nats_server: NatsServer, prefix: str) -> None:
    async with opened(config(options(nats_server, prefix))) as here, nats_crawler(nats_server.url, prefix) as crawler:
        here.service.running = here.service.options.max_requests
        await crawler.put("report", report(PAGES[0]))
        refused = await crawler.request("next", ask())
        assert refused["error"]["code"] == "unavailable"
        assert await crawler.all_of("answers.>") == []
        here.service.running = 0
        assert (await until(lambda: crawler.bodies("answers.>")))[0]["accepted"] == 1


async def test_no_more_is_taken_than_fits(nats_server: NatsServer, prefix: str) -> None:
    async with opened(config(options(nats_server, prefix, in_flight=3))) as here:
        most, ended = 0, asyncio.Event()

        async def slow(*_: Any, **__: Any) -> None:
            nonlocal most
            bus = here.door.buses[0]
            assert bus._answering is not None
            most = max(most, len(bus._answering._working))
            await ended.wait()
            raise ZeroDivisionError

        async with nats_crawler(nats_server.url, prefix) as crawler:
            here.guide.tell = slow
            for number in range(20):
                await crawler.put("report", report(f"https://a.example/{number}"))
            await until(lambda: most == 3)
            info = await crawler.stream.consumer_info(f"{prefix}-queue", prefix)
            assert (info.num_ack_pending or 0) <= 3
            assert info.num_pending >= 17
            ended.set()


async def test_who_is_cut_off_in_the_middle_of_a_message_leaves_nothing(nats_server: NatsServer, prefix: str) -> None:
    async with opened(config(options(nats_server, prefix))) as here, nats_crawler(nats_server.url, prefix) as crawler:
        port = int(nats_server.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(b"CONNECT {}\r\nPUB " + prefix.encode() + b".report 500\r\n{")
        assert "assigned_urls" in await crawler.request("next", ask())
        assert (await here.guide.stats()).crawls["default"].fetches == 0


async def test_a_header_that_looks_like_a_word_of_jetstream_changes_nothing(
    nats_server: NatsServer, prefix: str
) -> None:
    async with opened(config(options(nats_server, prefix))) as here, nats_crawler(nats_server.url, prefix) as crawler:
        for number, status in enumerate(("503", "408", "404")):
            await crawler.put("report", report(f"https://a.example/{number}"), Status=status)
        assert len(await until(lambda: answers_of(crawler, 3))) == 3
        assert not here.door.buses[0].is_away


@pytest.mark.parametrize("head", [b"NATS/1.0", b"\r\n\r\n", b"NATS/1.0 \xff\xff\xff\r\n\r\n"])
async def test_a_head_that_cannot_be_read_ends_no_connection(nats_server: NatsServer, prefix: str, head: bytes) -> None:
    body = json.dumps(ask(request_id="r-1")).encode()
    async with opened(config(options(nats_server, prefix))) as here, nats_crawler(nats_server.url, prefix) as crawler:
        with socket.create_connection(("127.0.0.1", int(nats_server.url.rpartition(":")[2]))) as line:
            line.sendall(b'CONNECT {"headers":true}\r\n')
            for verb in ("next", "queue.next"):
                line.sendall(
                    f"HPUB {prefix}.{verb} {len(head)} {len(head + body)}\r\n".encode() + head + body + b"\r\n"
                )
            assert len(await until(lambda: answers_of(crawler, 1))) == 1
        assert "assigned_urls" in await crawler.request("next", ask())
        assert not here.door.buses[0].is_away


async def test_a_dead_letter_is_no_larger_than_the_bus_carries(nats_server: NatsServer, prefix: str) -> None:
    """Of long headers, which take thrice their length as they are written, the beginning is enough."""
    async with opened(config(options(nats_server, prefix))), nats_crawler(nats_server.url, prefix) as crawler:
        await crawler.put("report", b"{", about="\u00e9" * 25_000, correlation_id="x")
        (letter,) = await until(lambda: crawler.all_of("dead"))
        assert letter.headers["correlation-id"] == "x"
        assert letter.headers["about"].startswith("%C3%A9%C3%A9")
        assert await until(lambda: emptied(crawler))


async def answers_of(crawler: NatsCrawler, number: int) -> list[Any]:
    found = await crawler.all_of("answers.default.c-1")
    return found if len(found) == number else []


# names and settings


@pytest.mark.parametrize("name", ["a..b", "a.", ".a", "a%20", "x" * 250, "a b", "a.>"])
def test_no_answer_goes_to_what_is_no_name_of_a_place(name: str) -> None:
    names = Names("p")
    assert names.is_own("p.answers.mine.box-1.a", "mine")
    assert not names.is_own(f"p.answers.mine.{name}", "mine")


def test_no_text_leaves_its_level_of_a_subject() -> None:
    assert token("c-1") == "c-1"
    assert token("a.b > *\r\n~") == "a%2Eb%20%3E%20%2A%0D%0A%7E"
    assert token("") == "_"
    assert header("a b\r\nx: y\x00ü") == "a b%0D%0Ax: y%00%C3%BC"


@pytest.mark.parametrize("prefix", ["", "a b", "a.>", "a.", "x" * 101, "a*"])
def test_a_prefix_that_is_no_subject_is_refused(prefix: str) -> None:
    with pytest.raises(ConfigError, match=r"bus\.prefix: expected"):
        Names(prefix)


async def test_without_jetstream_requests_are_answered(tmp_path: Path) -> None:
    server, prefix = NatsServer(tmp_path / "plain", jetstream=False), fresh_prefix()
    try:
        async with opened(config(options(server, prefix))), nats_crawler(server.url, prefix) as crawler:
            assert "assigned_urls" in await crawler.request("next", ask())
    finally:
        server.stop()


async def test_a_user_and_a_password_are_shown(tmp_path: Path) -> None:
    more = 'authorization { user: "guide", password: "secret" }'
    server, prefix = NatsServer(tmp_path / "guarded", more=more), fresh_prefix()
    try:
        with_password = options(server, prefix, nats_user="guide", nats_password="secret")
        url = server.url.replace("://", "://guide:secret@")
        async with opened(config(with_password)), nats_crawler(url, prefix) as crawler:
            assert "assigned_urls" in await crawler.request("next", ask())
        async with opened(config(options(server, prefix)), wait=False) as here:
            await until(lambda: "uthorization" in here.door.buses[0]._last_problem)
    finally:
        server.stop()
