"""Who may come in, what is refused, and what strange clients cannot do."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import grpc
import httpx
import pytest
from tests.gateway.access.common import audited
from tests.gateway.access.tokens import FORGED, GOOD, ISSUER, jwks
from tests.gateway.test_tls import Authority, trusting
from tests.gateway.urlfrontier.common import (
    FAIL,
    OK,
    SKIPPED,
    WITHIN_S,
    Frontier,
    Raw,
    door_here,
    eventually,
    found,
    guarded_frontier,
    info,
    known,
    refused,
    until,
)
from tests.gateway.waiting import MOST_S, others_wait

from crawlguide.core.errors import Unauthenticated
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of
from crawlguide.gateway.client.urlfrontier import UrlFrontierClient
from crawlguide.gateway.doctor import frontier_answers
from crawlguide.gateway.urlfrontier import urlfrontier_pb2 as wire
from crawlguide.gateway.urlfrontier.calls import SERVED
from crawlguide.guide.queues import NamedQueues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ASK = {"mcp_version": "2025-11", "crawler_id": "c", "budget": {"max_urls": 1}}
REQUESTS: dict[str, Any] = {
    "ListNodes": wire.Empty(),
    "ListCrawls": wire.Local(),
    "DeleteCrawl": wire.DeleteCrawlMessage(),
    "ListQueues": wire.Pagination(),
    "GetURLs": wire.GetParams(crawlID="DEFAULT"),
    "PutURLs": [found("https://a.example/")],
    "PutDiscovered": [wire.DiscoveredBatch(items=[info("https://a.example/")])],
    "GetStats": wire.QueueWithinCrawlParams(),
    "DeleteQueue": wire.QueueWithinCrawlParams(key="a.example"),
    "BlockQueueUntil": wire.BlockQueueParams(key="a.example"),
    "SetActive": wire.Active(state=True),
    "GetActive": wire.Local(),
    "SetDelay": wire.QueueDelayParams(key="a.example"),
    "SetLogLevel": wire.LogLevelParams(package="elsewhere"),
    "SetCrawlLimit": wire.CrawlLimitParams(key="a.example"),
    "GetURLStatus": wire.URLStatusRequest(url="https://a.example/"),
    "ListURLs": wire.ListUrlParams(),
    "CountURLs": wire.CountUrlParams(),
    "PurgeURLs": wire.PurgeUrlParams(days=9),
}
STREAMED = ("GetURLs", "PutURLs", "PutDiscovered", "ListURLs")


def called(raw: Raw, name: str) -> Any:
    request = REQUESTS[name]
    answer = raw.call(name, iter(request) if isinstance(request, list) else request)
    return list(answer) if name in STREAMED else answer


def test_every_call_is_tried_here() -> None:
    assert REQUESTS.keys() == SERVED.keys()
    assert len(REQUESTS) == 19


@pytest.mark.parametrize("token", ["", "wrong", "cg_0123456789abcdef_x"])
def test_nobody_comes_in_without_a_credential(frontier: Frontier, token: str) -> None:
    raw = Raw(frontier.port, token)
    for name in REQUESTS:
        with refused(grpc.StatusCode.UNAUTHENTICATED):
            called(raw, name)


def test_no_forged_token_comes_in(tmp_path: Path) -> None:
    (tmp_path / "jwks.json").write_text(json.dumps(jwks()))
    trusted = {"CRAWLGUIDE_ACCESS_JWT_KEYS": str(tmp_path / "jwks.json"), "CRAWLGUIDE_ACCESS_JWT_ISSUER": ISSUER}
    with guarded_frontier(tmp_path, **trusted) as frontier:
        for name, forged in FORGED.items():
            with pytest.raises(grpc.RpcError) as problem:
                Raw(frontier.port, forged).put(found("https://a.example/"))
            long = name == "very long" and problem.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert long or problem.value.code() is grpc.StatusCode.UNAUTHENTICATED, name
        assert Raw(frontier.port, GOOD["RS256"]).get() == []


@pytest.mark.parametrize("scope", ["ask", "tell", "read"])
def test_a_scope_reaches_as_far_as_it_says(frontier: Frontier, scope: str) -> None:
    raw = frontier.raw(scope)
    for name, (wanted, _) in SERVED.items():
        if wanted != scope:
            with refused(grpc.StatusCode.PERMISSION_DENIED):
                called(raw, name)
        elif name != "GetURLStatus":
            called(raw, name)


def test_a_grant_for_some_crawls_reaches_those_alone(frontier: Frontier) -> None:
    everybody = frontier.raw(tenant="shared")
    everybody.put(found("https://a.example/", crawl="mine"), found("https://b.example/", crawl="other"))
    raw = frontier.raw("ask", "tell", "read", tenant="shared", crawl="mine")
    assert list(raw.call("ListCrawls", wire.Local()).values) == ["mine"]
    assert raw.get() == ["https://a.example/"]
    with refused(grpc.StatusCode.PERMISSION_DENIED):
        raw.get(crawlID="other")
    with refused(grpc.StatusCode.PERMISSION_DENIED):
        raw.put(found("https://c.example/", crawl="other"))
    some_admin = frontier.raw("admin", tenant="shared", crawl="mine")
    for name in ("SetActive", "SetLogLevel"):
        with refused(grpc.StatusCode.PERMISSION_DENIED):
            called(some_admin, name)
    with refused(grpc.StatusCode.PERMISSION_DENIED):
        some_admin.call("SetDelay", wire.QueueDelayParams(delay_requestable=5))


def test_tenants_see_nothing_of_each_other(frontier: Frontier) -> None:
    one, other = frontier.raw(), frontier.raw()
    one.put(found("https://a.example/"))
    one.call("SetActive", wire.Active(state=False))
    one.call("SetDelay", wire.QueueDelayParams(delay_requestable=900))
    one.call("BlockQueueUntil", wire.BlockQueueParams(key="a.example", time=4_000_000_000))
    assert other.get() == []
    assert other.stats().numberOfQueues == 0
    assert other.put(found("https://a.example/")) == {"https://a.example/": [OK]}
    assert other.call("GetActive", wire.Local()).state
    assert other.get(delay_requestable=1) == ["https://a.example/"]
    assert until(lambda: other.get(delay_requestable=1)) == ["https://a.example/"]  # its delay is a second still
    assert other.call("DeleteCrawl", wire.DeleteCrawlMessage()).value == 1
    assert one.stats().size == 1


def test_what_an_admin_does_is_audited(frontier: Frontier) -> None:
    raw = frontier.raw(tenant="audited")
    raw.put(found("https://a.example/"))
    raw.call("BlockQueueUntil", wire.BlockQueueParams(key="a.example"))
    lines = until(lambda: [line for line in audited(frontier.guarded.data) if line["tenant"] == "audited"])
    assert "urlfrontier BlockQueueUntil crawl_id=DEFAULT key=a.example" in json.dumps(lines)


def test_a_crawl_of_another_door_is_left_alone(frontier: Frontier) -> None:
    token = frontier.guarded.key("admin", "robots:override", tenant="both-doors")
    with frontier.guarded.client(token) as http:
        http.post("/v1/crawls/mine/seeds", json={"urls": ["https://a.example/"]}).raise_for_status()
    raw = Raw(frontier.port, token)
    with refused(grpc.StatusCode.ALREADY_EXISTS):
        raw.put(found("https://a.example/x", crawl="mine"))
    assert list(raw.call("ListCrawls", wire.Local()).values) == []
    assert raw.get(crawlID="mine") == raw.listed(crawlID="mine") == []
    assert raw.call("DeleteCrawl", wire.DeleteCrawlMessage(value="mine")).value == 0
    with frontier.guarded.client(token) as http:
        assert http.get("/v1/crawls/mine").status_code == 200


def test_who_may_not_ignore_robots_txt_makes_no_crawl_that_does(frontier: Frontier) -> None:
    for scopes, policy in ((["tell", "read"], "obey"), (["tell", "read", "robots:override"], "ignore")):
        token = frontier.guarded.key(*scopes, tenant=f"robots-{policy}")
        Raw(frontier.port, token).put(found("https://a.example/"))
        with frontier.guarded.client(token) as http:
            assert http.get("/v1/crawls/DEFAULT").json()["definition"]["policy"]["robots"] == policy


TRAPS = (  # what no filter of a guide's own lets through: paths that go round, sessions, calendars, endless queries
    *(f"https://a.example/{'x/y/' * depth}" for depth in range(1, 40)),
    *(f"https://a.example/page?sessionid={number:032x}" for number in range(40)),
    *(f"https://a.example/calendar/{year}/{month}/" for year in range(1900, 1910) for month in range(1, 13)),
    *(f"https://a.example/list?a={number}&b={number}&c={number}&d={number}&sort=x" for number in range(40)),
)


def test_a_crawl_that_begins_here_obeys_its_clients_alone(frontier: Frontier) -> None:
    """Nothing is kept from them for politeness to a host, diversity, traps or risk; another door's crawl keeps some."""
    token = frontier.guarded.key("admin", "robots:override", tenant="obeyed")
    raw = Raw(frontier.port, token)
    raw.put(*(found(url) for url in TRAPS))
    with frontier.guarded.client(token) as http:
        policy = http.get("/v1/crawls/DEFAULT").json()["definition"]["policy"]
        assert (policy["robots"], policy["max_per_host"], policy["traps"], policy["risk_threshold"]) == (
            "ignore",
            0,
            False,
            1,
        )
        http.put("/v1/crawls/usual", json={"policy": {"robots": "ignore", "default_delay_s": 0}}).raise_for_status()
        http.post("/v1/crawls/usual/seeds", json={"urls": ["https://a.example/"]}).raise_for_status()
        links = [{"url": url} for url in TRAPS]
        told = {"mcp_version": "2025-11", "crawler_id": "c", "crawl_id": "usual",
                "fetches": [{"url": "https://a.example/", "status": 200, "outlinks": links}]}  # fmt: skip
        http.post("/v1/report", json=told).raise_for_status()
        ask = ASK | {"crawl_id": "usual", "budget": {"max_urls": 1_000}}
        assert len(http.post("/v1/next", json=ask).json()["assigned_urls"]) < len(TRAPS)
    assert sorted(raw.get(key="a.example", crawlID="DEFAULT")) == sorted(TRAPS)


def test_the_crawl_is_seen_through_other_doors(frontier: Frontier) -> None:
    token = frontier.guarded.key("admin", tenant="seen")
    Raw(frontier.port, token).put(found("https://a.example/x"), known("https://a.example/y"))
    with frontier.guarded.client(token) as http:
        urls = http.get("/v1/urls", params={"crawl_id": "DEFAULT"}).json()["urls"]
        assert {one["url"]: one["state"] for one in urls} == {
            "https://a.example/x": "queued",
            "https://a.example/y": "done",
        }
        explained = http.get("/v1/explain", params={"crawl_id": "DEFAULT", "url": "https://a.example/x"}).json()
        assert explained["state"] == "queued"


# sizes and shapes


def test_too_large_a_message_is_refused(raw: Raw) -> None:
    huge = wire.DiscoveredBatch(items=[info("https://a.example/", x=["y" * 5_000_000])])
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        list(raw.call("PutDiscovered", iter([huge])))
    assert raw.get() == []


@pytest.mark.parametrize("crawl", ["a/b", "x" * 201])
def test_a_crawl_id_that_no_crawl_can_have_is_refused(raw: Raw, crawl: str) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        raw.stats(crawl=crawl)
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        raw.put(found("https://a.example/", crawl=crawl))


@pytest.mark.parametrize(("crawl", "code"), [("a/b", "INVALID_ARGUMENT"), ("theirs", "ALREADY_EXISTS")])
def test_a_crawl_that_is_refused_keeps_nothing_from_others(frontier: Frontier, crawl: str, code: str) -> None:
    token = frontier.guarded.key("admin", tenant=f"refused-{code.replace('_', '-').lower()}")
    with frontier.guarded.client(token) as http:
        http.post("/v1/crawls/theirs/seeds", json={"urls": ["https://a.example/"]}).raise_for_status()
    raw, acks = Raw(frontier.port, token), dict[str, int]()
    put = [found("https://a.example/", crawl=name) for name in ("one", crawl, "other")]
    for number, item in enumerate(put):
        item.ID = str(number)
    with refused(grpc.StatusCode[code]):
        for ack in raw.call("PutURLs", iter(put)):
            acks[ack.ID] = ack.status
    assert acks == {"0": OK, "2": OK}
    assert sorted(raw.call("ListCrawls", wire.Local()).values) == ["one", "other"]


def test_no_room_for_a_crawl_keeps_nothing_from_others(tmp_path: Path) -> None:
    with guarded_frontier(tmp_path, CRAWLGUIDE_CRAWLS_MAX_AUTO_CREATED="1") as full:
        raw = full.raw()
        some = [found(f"https://{name}.example/", crawl=name) for name in ("one", "two", "one")]
        assert raw.put(*some) == {"https://one.example/": [OK, SKIPPED], "https://two.example/": [FAIL]}


def test_crawls_that_nobody_defined_count_together_whatever_door_they_came_through(tmp_path: Path) -> None:
    with guarded_frontier(tmp_path, CRAWLGUIDE_CRAWLS_MAX_AUTO_CREATED="2") as full:
        raw = full.raw()
        with full.guarded.client(raw.token) as http:
            for name in ("mine", "yours"):  # somebody defined these
                http.put(f"/v1/crawls/{name}", json={"goal": {"topic": "books"}}).raise_for_status()
            http.post("/v1/next", json=ASK | {"crawl_id": "a"}).raise_for_status()
            put = [found(f"https://{name}.example/", crawl=name) for name in ("one", "two")]
            assert raw.put(*put) == {"https://one.example/": [OK], "https://two.example/": [FAIL]}
            assert http.post("/v1/next", json=ASK | {"crawl_id": "b"}).status_code == 429


def test_very_many_crawls_for_which_there_is_no_room_keep_nobody_waiting(tmp_path: Path) -> None:
    with guarded_frontier(tmp_path, CRAWLGUIDE_CRAWLS_MAX_AUTO_CREATED="400") as full:
        raw = full.raw(tenant="theirs")
        raw.batch(info("https://a.example/", crawl="mine"))
        with full.guarded.client(raw.token) as http:
            for number in range(399):
                http.post("/v1/next", json=ASK | {"crawl_id": f"c-{number}"}).raise_for_status()
        names = [f"other-{number}" for number in range(20_000)] + ["mine"]
        batch = wire.DiscoveredBatch(items=[info("https://a.example/", crawl=name) for name in names])
        with others_wait(full.guarded.server) as wait:
            (ack,) = raw.call("PutDiscovered", iter([batch]))
        assert list(ack.statuses) == [FAIL] * 20_000 + [SKIPPED]
        assert wait.longest_s < MOST_S, wait


SPELLED = (
    "http://a.example", "http://a.example?b/c", "HTTP://A.example/d", "nourl", "mailto:a@b/", "http://[", "/robots.txt",
    "://", "http://a\nb/c\nd", "\0", "",
)  # fmt: skip


def test_whatever_a_client_takes_for_a_url_other_doors_answer(frontier: Frontier) -> None:
    raw = frontier.raw(tenant="spelled")
    spelled = [info(url, key=f"k{number}", crawl="odd") for number, url in enumerate(SPELLED)]
    raw.batch(*spelled, *(info(url, crawl="odd") for url in SPELLED))
    with frontier.guarded.client(raw.token) as http:
        ask = ASK | {"crawl_id": "odd", "request_id": "r-1", "budget": {"max_urls": 100}}
        given = [http.post("/v1/next", json=ask).raise_for_status().json() for _ in range(2)]
        assert "nourl" in [one["url"] for one in given[0]["assigned_urls"]]
        assert given[0] == given[1]
        changes = {"goal": {"topic": "gardens"}, "policy": {"traps": True, "risk_threshold": 0.8}}
        for change in (changes, {"rules": {"ban": {"hosts": ["a.example"]}}}, {"policy": {"max_per_host": 1}}):
            http.patch("/v1/crawls/odd", json=change).raise_for_status()
            http.post("/v1/next", json=ASK | {"crawl_id": "odd"}).raise_for_status()
        for page in ("/crawls/odd", "/v1/crawls/odd/export", "/v1/urls?crawl_id=odd"):
            http.get(page).raise_for_status()


def test_dates_that_an_import_has_made_up_are_listed(frontier: Frontier) -> None:
    raw = frontier.raw(tenant="imported")
    raw.batch(info("https://a.example/", crawl="far"))
    line = {"url": "https://b.example/", "state": "queued", "given": 1e6}
    with frontier.guarded.client(raw.token) as http:
        http.post("/v1/crawls/far/import", content=json.dumps(line)).raise_for_status()
    listed = raw.listed(crawlID="far")
    assert [item.known.info.url for item in listed] == ["https://a.example/", "https://b.example/"]


def test_a_full_tenant_hears_of_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "crawlguide.toml").write_text('[[tenant]]\nname = "small"\nmax_urls = 3\n')
    with guarded_frontier(tmp_path) as small:
        raw = small.raw(tenant="small")
        old, new = [f"https://a.example/{number}" for number in range(3)], "https://a.example/new"
        raw.put(*map(found, old))
        assert raw.put(known(new), known(new, 5), found(new)) == {new: [FAIL] * 3}
        assert raw.put(found(new), known(old[0]), found(old[1])) == {new: [FAIL], old[0]: [OK], old[1]: [SKIPPED]}
        assert (raw.stats().size, raw.stats().counts["completed"]) == (2, 1)


def test_bytes_that_are_no_message_are_refused(frontier: Frontier) -> None:
    shown = (("authorization", f"Bearer {frontier.guarded.key('admin', tenant='garbled')}"),)
    with grpc.insecure_channel(f"127.0.0.1:{frontier.port}") as channel:
        for name in REQUESTS:
            kind: Any = channel.stream_stream if name.startswith("Put") else channel.unary_stream
            send = kind(f"/urlfrontier.URLFrontier/{name}", lambda data: data, lambda data: data)
            garbled = b"\xff\xff\xff"
            with refused(grpc.StatusCode.INVALID_ARGUMENT):
                list(send(iter([garbled]) if name.startswith("Put") else garbled, metadata=shown, timeout=WITHIN_S))
        other = channel.unary_unary("/urlfrontier.URLFrontier/NoSuchCall", lambda data: data, lambda data: data)
        with refused(grpc.StatusCode.UNIMPLEMENTED):
            other(b"", timeout=WITHIN_S)


def test_what_is_no_grpc_disturbs_nobody(frontier: Frontier, raw: Raw) -> None:
    for words in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 50):
        with socket.create_connection(("127.0.0.1", frontier.port), timeout=WITHIN_S) as bare:
            bare.sendall(words)
    assert raw.stats().size == 0


# strange clients


class Sending:
    """A stream whose end the test decides."""

    def __init__(self, *items: Any) -> None:
        self.items, self.ended = list(items), threading.Event()

    def __iter__(self) -> Iterator[Any]:
        yield from self.items
        self.ended.wait(WITHIN_S)


def test_acknowledgements_come_while_the_client_goes_on(raw: Raw) -> None:
    sending = Sending(found("https://a.example/1"), found("https://a.example/2"))
    acks = raw.call("PutURLs", iter(sending))
    assert {next(acks).ID, next(acks).ID} == {"https://a.example/1", "https://a.example/2"}
    sending.ended.set()
    assert list(acks) == []


def test_a_client_that_is_cut_off_leaves_what_was_acknowledged(raw: Raw) -> None:
    sending = Sending(found("https://a.example/1"))
    acks = raw.call("PutURLs", iter(sending))
    assert next(acks).status == OK
    acks.cancel()
    sending.ended.set()
    assert raw.put(found("https://a.example/1")) == {"https://a.example/1": [SKIPPED]}


def test_a_revoked_key_ends_its_streams(frontier: Frontier) -> None:
    """Also those on which nothing is said any more: a client of URLFrontier keeps its stream open for ever."""
    text, key = api_keys.create(frontier.guarded.keys, grants_of(["admin"]), "revoked")
    sending = Sending(found("https://a.example/"))
    acks = Raw(frontier.port, text).call("PutURLs", iter(sending))
    assert next(acks).status == OK
    api_keys.revoke(frontier.guarded.keys, key.name)
    with refused(grpc.StatusCode.UNAUTHENTICATED):
        next(acks)
    sending.ended.set()


def test_a_server_that_ends_waits_for_no_stream_and_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    with guarded_frontier(tmp_path, CRAWLGUIDE_SERVER_DRAIN_S="600") as frontier:
        raw, sending = frontier.raw(tenant="mine"), Sending(found("https://a.example/"))
        acks = raw.call("PutURLs", iter(sending))
        assert next(acks).status == OK
        frontier.guarded.server.process.terminate()
        with refused(grpc.StatusCode.UNAVAILABLE) as problem:
            next(acks)
        assert "shutting down" in problem.value.details()
        sending.ended.set()
        assert frontier.guarded.server.process.wait(WITHIN_S) == 0
    with guarded_frontier(tmp_path) as frontier:
        assert frontier.raw(tenant="mine").get() == ["https://a.example/"]


async def test_what_came_in_before_the_server_ends_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    came, goes_on, discovered = asyncio.Event(), asyncio.Event(), NamedQueues.discovered

    async def slowly(*args: Any) -> Any:
        came.set()
        await goes_on.wait()
        return await discovered(*args)

    monkeypatch.setattr(NamedQueues, "discovered", slowly)
    async with asyncio.timeout(WITHIN_S), door_here() as (door, _, stub):
        put = stub.PutURLs()
        await put.write(found("https://a.example/"))
        await came.wait()
        closing = asyncio.create_task(door.close())
        await asyncio.sleep(0)  # it has begun to close
        goes_on.set()
        assert (await put.read()).status == OK
        with pytest.raises(grpc.aio.AioRpcError, match="shutting down"):
            await put.read()
        await closing


def test_a_client_that_never_reads_is_held_up_and_others_are_not(frontier: Frontier, raw: Raw) -> None:
    sent = 0

    def endless() -> Iterator[wire.URLItem]:
        nonlocal sent
        while sent < 1_000_000:
            sent += 1
            yield found(f"https://a.example/{sent}", name="x" * 2_000)

    with others_wait(frontier.guarded.server) as wait:
        acks = raw.call("PutURLs", endless())
        until(lambda: sent > 2_000)
        before = -1
        while sent != before:  # flow control holds it up
            before = sent
            time.sleep(0.5)
        assert frontier.raw().stats().size == 0
        acks.cancel()
    assert sent < 1_000_000
    assert wait.longest_s < MOST_S, wait


def test_what_a_client_did_not_take_waits_again(frontier: Frontier, raw: Raw) -> None:
    big = ["x" * 60_000]
    raw.batch(*(info(f"https://h{number}.example/", big=big) for number in range(50)))
    raw.batch(*(info(f"https://i{number}.example/", big=big) for number in range(50)))
    raw.batch(*(info(f"https://j{number}.example/", big=big) for number in range(50)))
    stream = raw.call("GetURLs", wire.GetParams(max_queues=1_000, delay_requestable=600))
    next(stream)
    stream.cancel()
    until(lambda: 0 < raw.stats().inProcess < 150 or raw.stats().inProcess == 0)
    assert raw.stats().size == 150


async def test_what_is_taken_while_its_client_goes_waits_again(monkeypatch: pytest.MonkeyPatch) -> None:
    took, goes_on, take = asyncio.Event(), asyncio.Event(), NamedQueues.take

    async def slowly(*args: Any) -> Any:
        taken = await take(*args)
        took.set()
        await goes_on.wait()
        return taken

    async with asyncio.timeout(WITHIN_S), door_here() as (_, service, stub):
        await stub.SetDelay(wire.QueueDelayParams(delay_requestable=0))
        put = stub.PutURLs(iter([found("https://a.example/")]))
        assert [ack.status async for ack in put] == [OK]
        monkeypatch.setattr(NamedQueues, "take", slowly)
        lost = stub.GetURLs(wire.GetParams(delay_requestable=600))
        await took.wait()
        lost.cancel()
        await eventually(lambda: not len(service.load.connections))
        goes_on.set()
        while not (seen := [info.url async for info in stub.GetURLs(wire.GetParams())]):
            pass
        assert seen == ["https://a.example/"]


def test_a_long_batch_keeps_nobody_waiting(frontier: Frontier, raw: Raw) -> None:
    with others_wait(frontier.guarded.server) as wait:
        raw.batch(*(info(f"https://h{number % 400}.example/{number}", note=["x"]) for number in range(20_000)))
        assert len(raw.get()) == 20_000
        assert len(raw.listed(size=2**31 - 1)) == 20_000
        assert raw.call("CountURLs", wire.CountUrlParams(filter="9")).value > 0
        assert raw.call("DeleteCrawl", wire.DeleteCrawlMessage()).value == 20_000
    assert wait.longest_s < MOST_S, wait


# TLS, and what the operator bounds


def test_the_door_speaks_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority("authority")
    trusted = authority.write(tmp_path)
    certificate, key = authority.issue(tmp_path, "server")
    own = authority.issue(tmp_path, "c-1", "acme")
    files = {"TLS_CERTIFICATE": certificate, "TLS_KEY": key, "TLS_CLIENT_CA": trusted}
    settings = {f"CRAWLGUIDE_SERVER_{name}": str(file) for name, file in files.items()}
    with guarded_frontier(tmp_path, **settings, CRAWLGUIDE_ACCESS_CERTIFICATE_SCOPES="ask,tell,read") as frontier:
        pair = (str(own[0]), str(own[1]))
        with UrlFrontierClient(f"localhost:{frontier.port}", ca=str(trusted), certificate=pair) as client:
            client.discover(["https://a.example/"])
            assert [page.url for page in client.get()] == ["https://a.example/"]
        shown = {"CA": trusted, "CERTIFICATE": own[0], "CERTIFICATE_KEY": own[1]}
        with monkeypatch.context() as environment:
            for name, file in shown.items():
                environment.setenv(f"CRAWLGUIDE_{name}", str(file))
            assert frontier_answers(f"localhost:{frontier.port}", tls=True).state == "ok"
        assert frontier_answers(f"localhost:{frontier.port}", tls=True).state == "wrong"  # nobody says whom to trust
        page = httpx.get(
            f"https://localhost:{frontier.guarded.server.port}/v1/crawls",
            verify=trusting(trusted, *own),
            headers={"authorization": f"Bearer {frontier.guarded.key('read', tenant='acme')}"},
            trust_env=False,
        )
        assert [crawl["crawl_id"] for crawl in page.json()["crawls"]] == ["DEFAULT"]  # of the tenant in the certificate


def test_who_is_too_fast_is_made_to_wait_and_told_to_come_again(tmp_path: Path) -> None:
    limits = {"CRAWLGUIDE_ACCESS_REQUESTS_PER_S": "2", "CRAWLGUIDE_CRAWLS_MAX_AUTO_CREATED": "2"}
    with guarded_frontier(tmp_path, **limits) as frontier:
        raw = frontier.raw()
        for number in range(6):  # a put waits for its turn
            assert raw.put(found(f"https://a.example/{number}")) == {f"https://a.example/{number}": [OK]}
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED) as problem:
            for _ in range(20):
                raw.stats()
        assert dict(problem.value.trailing_metadata())["retry-after-ms"]
        with pytest.raises(Unauthenticated):
            UrlFrontierClient(f"127.0.0.1:{frontier.port}", token="wrong").stats()


def test_calls_for_which_nothing_is_done_count_too(tmp_path: Path) -> None:
    with guarded_frontier(tmp_path, CRAWLGUIDE_ACCESS_REQUESTS_PER_S="2") as frontier:
        raw = frontier.raw()
        of_nothing: list[Callable[[], Any]] = [
            lambda: list(raw.call("PutURLs", iter([]))),
            lambda: list(raw.call("GetURLs", wire.GetParams(key="a.example"))),
        ]
        for call in of_nothing:
            with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
                for _ in range(20):
                    call()


def test_one_credential_does_not_take_all_streams(tmp_path: Path) -> None:
    with guarded_frontier(tmp_path, CRAWLGUIDE_ACCESS_MAX_SOCKETS="1") as frontier:
        raw, sending = frontier.raw(tenant="mine"), Sending(found("https://a.example/"))
        acks = raw.call("PutURLs", iter(sending))
        next(acks)
        others: list[Callable[[], Any]] = [lambda: raw.put(known("https://a.example/")), raw.batch, raw.get, raw.listed]
        for other in others:
            with refused(grpc.StatusCode.RESOURCE_EXHAUSTED) as problem:
                other()
            assert problem.value.details() == "your credential: expected at most 1 sockets and streams at once"
        assert frontier.raw(tenant="mine").get() == ["https://a.example/"]
        sending.ended.set()
        assert list(acks) == []
        for other in others:
            other()


@pytest.mark.parametrize("name", ["PutURLs", "GetURLs"])
def test_whoever_guesses_by_opening_streams_waits(tmp_path: Path, name: str) -> None:
    with guarded_frontier(tmp_path, CRAWLGUIDE_ACCESS_ADDRESS_FAILURES_PER_S="0.001") as frontier:
        frontier.raw()  # there is a key
        codes = []
        for number in range(4):
            nobody = Raw(frontier.port, f"cg_000000000000_{number:043}")
            with pytest.raises(grpc.RpcError) as problem:
                nobody.put(found("https://a.example/")) if name == "PutURLs" else nobody.get()
            codes.append(problem.value.code())
        assert codes[0] == grpc.StatusCode.UNAUTHENTICATED
        assert codes[-1] == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_nothing_is_read_of_a_stream_of_somebody_unknown(frontier: Frontier) -> None:
    """Batches of a million empty URLs, which a parser would take gigabytes for."""
    raw = Raw(frontier.port)
    with others_wait(frontier.guarded.server) as wait, refused(grpc.StatusCode.UNAUTHENTICATED):
        list(_put_bytes(raw, b"\x12\x00" * 1_000_000, ()))
    assert wait.longest_s < MOST_S, wait


def test_a_batch_of_very_many_urls_is_refused_and_many_batches_keep_nobody_waiting(
    frontier: Frontier, raw: Raw
) -> None:
    shown = (("authorization", f"Bearer {raw.token}"),)
    number = wire.DiscoveredBatch.DESCRIPTOR.fields_by_name["items"].number
    empty = bytes((number << 3 | 2, 0))
    with others_wait(frontier.guarded.server) as wait:
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
            list(_put_bytes(raw, empty * 1_000_000, shown))
        acks = list(_put_bytes(raw, empty * 50_000, shown, times=4))
    assert [len(wire.BatchAck.FromString(ack).statuses) for ack in acks] == [50_000] * 4
    assert wait.longest_s < MOST_S, wait


def test_a_url_with_very_much_metadata_is_of_no_use(raw: Raw) -> None:
    many = {f"{number:x}": wire.StringList(values=["v"]) for number in range(30_000)}
    item = wire.URLItem(discovered=wire.DiscoveredURLItem(info=wire.URLInfo(url="https://a.example/", metadata=many)))
    assert raw.put(item) == {"https://a.example/": [SKIPPED]}


def _put_bytes(raw: Raw, body: bytes, shown: Any, times: int = 1) -> Any:
    """Bytes as they are, where a generated client would build a message."""
    call: Any = raw.channel.stream_stream("/urlfrontier.URLFrontier/PutDiscovered")
    return call(iter([body] * times), timeout=WITHIN_S, metadata=shown)
