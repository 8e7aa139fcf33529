"""Streams, deadlines, and what becomes of leases when a client goes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from tests.gateway.access.common import until
from tests.gateway.grpc_door.common import (
    FREE,
    WITHIN_S,
    Opened,
    Raw,
    asking,
    door_over,
    guarded_door,
    speaking,
    telling,
)

from crawlguide import AsyncGuide
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import Unauthenticated, UnavailableError
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of
from crawlguide.gateway.access.entrance import Caller
from crawlguide.gateway.assigned import AssignedUrls, Holders
from crawlguide.gateway.grpc import guide_pb2 as wire
from crawlguide.gateway.grpc import transport
from crawlguide.gateway.opening import open_guide

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from crawlguide.gateway.service import Service
    from crawlguide.testing import ManualClock

URLS = [f"https://h{number}.example/" for number in range(9)]


class Sending:
    """A stream whose end the test decides."""

    def __init__(self, *messages: Any) -> None:
        self.messages, self.ended = list(messages), threading.Event()

    def __iter__(self) -> Iterator[Any]:
        yield from self.messages
        self.ended.wait(WITHIN_S)


def ask(name: str, most: int = 3, **more: Any) -> wire.NextStreamRequest:
    return wire.NextStreamRequest(id=name, ask=asking(most=most, **more))


@pytest.fixture
def crawled(raw: Raw) -> Raw:
    """With nine URLs that may be fetched at once."""
    raw.free()
    assert raw.seed(*URLS) == 9
    return raw


def test_answers_have_the_ids_of_their_asks_and_an_error_ends_nothing(crawled: Raw) -> None:
    asks = [ask("a", 2), ask("b", -1), wire.NextStreamRequest(id="c"), ask("d", 2)]
    answers = {one.id: one for one in crawled.call("NextStream", iter(asks))}
    assert answers.keys() == {"a", "b", "c", "d"}
    assert len(answers["a"].advice.assigned_urls) == len(answers["d"].advice.assigned_urls) == 2
    assert (answers["b"].error.code, answers["b"].error.field) == ("malformed_request", "budget.max_urls")
    assert answers["c"].error.message == "ask: required, but missing"


def test_reports_are_acknowledged_while_the_client_goes_on(crawled: Raw) -> None:
    sending = Sending(*(wire.ReportStreamRequest(id=url, report=telling(url)) for url in URLS[:2]))
    acks = crawled.call("ReportStream", iter(sending))
    assert {next(acks).id, next(acks).id} == set(URLS[:2])
    assert crawled.stats().done == 2
    sending.ended.set()
    assert list(acks) == []


@pytest.mark.parametrize("how", ["cancelled", "ended"])
def test_what_a_stream_was_given_and_did_not_report_returns_when_it_ends(crawled: Raw, how: str) -> None:
    sending = Sending(ask("1"))
    answers = crawled.call("NextStream", iter(sending))
    given = [one.url for one in next(answers).advice.assigned_urls]
    crawled.call("Report", telling(given[0]))
    assert crawled.stats().leased == 2
    if how == "cancelled":
        answers.cancel()
    sending.ended.set()
    assert until(lambda: crawled.stats().leased == 0)
    assert (crawled.stats().queued, crawled.stats().done) == (8, 1)


def test_what_was_asked_beside_a_stream_stays_leased_when_it_ends(crawled: Raw) -> None:
    crawled.ask(most=2)
    list(crawled.call("NextStream", iter([ask("1", 2)])))
    assert crawled.stats().leased == 2


def test_an_ask_that_comes_again_after_its_stream_ended_gets_urls_it_may_fetch(crawled: Raw) -> None:
    again = ask("1", 2, request_id="same")
    list(crawled.call("NextStream", iter([again])))
    assert crawled.stats().leased == 0
    advice = crawled.call("Next", again.ask)
    assert len(advice.assigned_urls) == crawled.stats().leased == 2


async def test_the_first_of_very_many_asks_of_a_stream_is_answered_anew_after_it_ended(guide: AsyncGuide) -> None:
    many = 1_100
    await guide.seed("default", [f"https://m{number}.example/" for number in range(many)])
    async with door_over(guide._guide) as (_, port), speaking(port) as stub:
        asks = [ask(str(number), 1, request_id=f"r-{number}") for number in range(many)]
        assert len([one async for one in stub.NextStream(iter(asks))]) == many
        await _settled(guide, leased=0)
        assert len((await stub.Next(asks[0].ask)).assigned_urls) == 1
        await _settled(guide, leased=1)


KILLED = """
import sys, grpc
from crawlguide.gateway.grpc import guide_pb2 as wire
from crawlguide.gateway.grpc.guide_pb2_grpc import GuideStub
from tests.gateway.grpc_door.common import asking
from threading import Event

def asks():
    yield wire.NextStreamRequest(id="1", ask=asking(most=5))
    Event().wait()

stub = GuideStub(grpc.insecure_channel(f"127.0.0.1:{sys.argv[1]}"))
for answer in stub.NextStream(asks(), metadata=(("authorization", f"Bearer {sys.argv[2]}"),)):
    print(len(answer.advice.assigned_urls), flush=True)
"""


def test_a_client_that_is_killed_in_the_middle_of_a_stream_leaves_no_lease(crawled: Raw) -> None:
    words = [sys.executable, "-c", KILLED, str(crawled.port), crawled.token]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "5\n"
        assert crawled.stats().leased == 5
        process.kill()
    assert until(lambda: crawled.stats().leased == 0)


def test_a_server_that_ends_answers_what_was_asked_and_returns_the_leases(tmp_path: Path) -> None:
    with guarded_door(tmp_path) as door:
        raw = door.raw(tenant="mine")
        raw.free()
        raw.seed(*URLS)
        sending = Sending(ask("1"))
        answers = raw.call("NextStream", iter(sending))
        assert len(next(answers).advice.assigned_urls) == 3
        door.guarded.server.process.terminate()
        with pytest.raises(grpc.RpcError) as ended:
            next(answers)
        assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
        assert "shutting down" in (ended.value.details() or "")
        sending.ended.set()
        assert door.guarded.server.process.wait(WITHIN_S) == 0
    with guarded_door(tmp_path) as door:
        assert door.raw(tenant="mine").stats().leased == 0


# over a guide in this process, whose pace the test knows


@pytest.fixture
async def guide() -> AsyncIterator[AsyncGuide]:
    found = AsyncGuide.open(":memory:")
    await found.define("default", FREE)
    await found.seed("default", URLS)
    yield found
    await found.close()


class Slow:
    """Asks that are answered when the test says so."""

    def __init__(self, guide: AsyncGuide, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came, self.go_on = asyncio.Event(), asyncio.Event()
        usual = guide._guide._answer

        async def answer(*words: Any) -> Any:
            self.came.set()
            await self.go_on.wait()
            return await usual(*words)

        monkeypatch.setattr(guide._guide, "_answer", answer)


@pytest.mark.parametrize("request_id", [None, "same"])
@pytest.mark.parametrize("how", ["expired", "cancelled"])
async def test_an_ask_for_which_nobody_waits_leaves_no_lease(
    guide: AsyncGuide, monkeypatch: pytest.MonkeyPatch, how: str, request_id: str | None
) -> None:
    slow = Slow(guide, monkeypatch)
    async with door_over(guide._guide) as (_, port), speaking(port) as stub:
        message = asking(most=4, request_id=request_id)
        call = stub.Next(message, timeout=0.3 if how == "expired" else WITHIN_S)
        await slow.came.wait()
        if how == "cancelled":
            call.cancel()
        with pytest.raises((grpc.aio.AioRpcError, asyncio.CancelledError)):
            await call
        again = asyncio.create_task(_sent(stub, message))
        await asyncio.sleep(0.2)  # the server hears of it, and the second ask waits behind the first
        slow.go_on.set()
        advice = await again
        assert len(advice.assigned_urls) == 4
        await _settled(guide, leased=4)


async def test_a_stream_remembers_no_more_than_is_held(clock: ManualClock) -> None:
    """However many crawlers come by, and whatever the order in which their leases end."""
    guide, assigned, crawl = open_guide(":memory:", Config(), clock), AssignedUrls(), Crawl("default", "default")
    holders = Holders(assigned)
    await guide.define(crawl, Definition(policy=Policy(robots="ignore", default_delay_s=0, max_per_host=0)))
    await guide.seed(crawl, SeedsMessage([f"https://a.org/{number}" for number in range(500)]))
    for number in range(500):
        timeout_ms = 1_000 if number else 60_000_000
        crawler_id = f"c-{number % 250}"
        advice = await guide.ask(AskMessage(VERSION, crawler_id, BudgetMessage(1, timeout_ms=timeout_ms)))
        holders.of(crawl, crawler_id, clock.now()).add(advice)
        clock.advance(2.0)
    assert sum(map(len, holders)) == 2  # the one that lasts, and the last
    assert len(holders) <= 101
    await guide.close()


async def _sent(stub: Any, message: Any) -> wire.Advice:
    found: wire.Advice = await stub.Next(message, timeout=WITHIN_S)
    return found


async def _settled(guide: AsyncGuide, leased: int) -> None:
    async with asyncio.timeout(WITHIN_S):
        while (await guide.stats("default"))["crawls"]["default"]["leased"] != leased:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


async def test_leases_of_a_stream_return_though_its_key_was_revoked_meanwhile(
    guide: AsyncGuide, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow, file = Slow(guide, monkeypatch), tmp_path / "keys.json"
    api_keys.create(file, grants_of(["read"]), "default")  # another one
    text, key = api_keys.create(file, grants_of(["ask"]), "default")
    async with door_over(guide._guide, str(file)) as (service, port), speaking(port) as stub:
        shown = (("authorization", f"Bearer {text}"),)
        call = stub.NextStream(_open(ask("1", 4)), metadata=shown)
        await slow.came.wait()
        api_keys.revoke(file, key.name)
        await _unknown(service, Caller("127.0.0.1", shown[0][1]))
        slow.go_on.set()
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await _read_all(call)
        assert ended.value.code() == grpc.StatusCode.UNAUTHENTICATED
        await _settled(guide, leased=0)


async def _open(message: Any) -> AsyncIterator[Any]:
    """A client that has more to say: what ends its stream is somebody else."""
    yield message
    await asyncio.Event().wait()


async def _read_all(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def _unknown(service: Service, caller: Caller) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                service.entrance.identify(caller)
            except Unauthenticated:
                return
            await asyncio.sleep(0.02)


async def test_a_stream_reads_no_more_than_it_may_have_in_work(
    guide: AsyncGuide, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, came = Slow(guide, monkeypatch), 0
    usual = guide._guide.ask

    async def counted(*words: Any, **more: Any) -> Any:
        nonlocal came
        came += 1
        return await usual(*words, **more)

    monkeypatch.setattr(guide._guide, "ask", counted)
    async with door_over(guide._guide, socket_in_flight=2) as (_, port), speaking(port) as stub:
        call = stub.NextStream()
        for number in range(5):
            await call.write(ask(str(number), 1))
        await slow.came.wait()
        await asyncio.sleep(0.2)
        assert came == 2
        slow.go_on.set()
        await call.done_writing()
        assert {one.id async for one in call} == {"0", "1", "2", "3", "4"}
        await _settled(guide, leased=0)


async def test_a_lease_of_a_stream_returns_over_a_door_in_this_process(guide: AsyncGuide) -> None:
    async with door_over(guide._guide) as (service, port), speaking(port) as stub:
        call = stub.NextStream()
        await call.write(ask("1", 3))
        assert len((await call.read()).advice.assigned_urls) == 3
        assert len(service.load.connections) == 1
        call.cancel()
        await _settled(guide, leased=0)
        assert len(service.load.connections) == 0


class Deaf:
    """A client that takes nothing, as gRPC shows it to whoever writes."""

    async def write(self, _: Any) -> None:
        await asyncio.Event().wait()


async def test_whoever_reads_nothing_loses_any_stream_as_unavailable() -> None:
    context: Any = Deaf()
    with pytest.raises(UnavailableError, match="nothing was read for too long"):
        await transport.write(context, wire.Json(), 0.01)
    assert transport.CODES[UnavailableError.code] is grpc.StatusCode.UNAVAILABLE


def test_streams_of_tenants_are_apart(door: Opened) -> None:
    one, other = door.raw(), door.raw()
    for raw in (one, other):
        raw.free()
        raw.seed(*URLS)
    sending = Sending(ask("1"))
    answers = one.call("NextStream", iter(sending))
    next(answers)
    list(other.call("NextStream", iter([ask("1")])))
    assert (one.stats().leased, other.stats().leased) == (3, 0)
    sending.ended.set()
