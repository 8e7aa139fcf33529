"""Who may come in, what is refused, and what strange clients cannot do."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from tests.gateway.access.common import audited, until
from tests.gateway.grpc_door.common import (
    WITHIN_S,
    Opened,
    Raw,
    asking,
    called,
    details,
    guarded_door,
    refused,
    telling,
)
from tests.gateway.test_tls import Authority
from tests.gateway.waiting import MOST_S, others_wait

from crawlguide import Client
from crawlguide.core.errors import CrawlGuideError, UnavailableError
from crawlguide.core.messages import VERSION
from crawlguide.gateway.access import api_keys
from crawlguide.gateway.access.credential import grants_of
from crawlguide.gateway.grpc import guide_pb2 as wire
from crawlguide.gateway.grpc.methods import METHODS, SERVICE
from crawlguide.gateway.grpc.streams import STREAMS
from crawlguide.gateway.routes import BY_ENDPOINT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCOPES = {one.name: BY_ENDPOINT[one.method, one.path].scope for one in METHODS} | {
    one.name: one.route.scope for one in STREAMS
}


@pytest.mark.parametrize("token", ["", "wrong", "cg_0123456789abcdef_x"])
def test_nobody_comes_in_without_a_credential(door: Opened, token: str) -> None:
    raw = Raw(door.port, token)
    for name in SCOPES:
        with refused(grpc.StatusCode.UNAUTHENTICATED) as problem:
            called(raw, name)
        assert details(problem.value)["ErrorInfo"].reason == "unauthenticated"


@pytest.mark.parametrize("scope", ["ask", "tell", "read"])
def test_a_scope_reaches_as_far_as_it_says(door: Opened, scope: str) -> None:
    raw = door.raw(scope)
    for name, wanted in SCOPES.items():
        if wanted != scope:
            with refused(grpc.StatusCode.PERMISSION_DENIED):
                called(raw, name)


def test_tenants_see_nothing_of_each_other(door: Opened) -> None:
    one, other = door.raw(), door.raw()
    assert one.seed("https://a.example/", crawl="mine") == 1
    assert not other.call("Stats", wire.StatsRequest()).crawls
    with refused(grpc.StatusCode.NOT_FOUND):
        other.call("GetCrawl", wire.CrawlName(crawl_id="mine"))
    assert other.seed("https://a.example/", crawl="mine") == 1


def test_a_grant_for_some_crawls_reaches_those_alone(door: Opened) -> None:
    raw = door.raw("ask", "tell", "read", crawl="mine")
    raw.seed("https://a.example/", crawl="mine")
    for name, request in (("Next", asking("other")), ("Report", telling("https://a.example/", crawl="other"))):
        with refused(grpc.StatusCode.PERMISSION_DENIED):
            raw.call(name, request)
    assert raw.call("ListCrawls", wire.ListCrawlsRequest()).crawls[0].crawl_id == "mine"


def test_what_an_admin_does_is_audited(door: Opened) -> None:
    raw = door.raw(tenant="audited-grpc")
    raw.free("mine")
    assert until(
        lambda: any(
            line["tenant"] == "audited-grpc" and "grpc PutCrawl crawl_id=mine" in str(line)
            for line in audited(door.guarded.data)
        )
    )


# sizes and shapes


def test_too_large_a_message_is_refused(raw: Raw) -> None:
    huge = wire.ReportMessage(mcp_version=VERSION, crawler_id="c-1", fetches=[wire.Fetch(url="x" * 5_000_000)])
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        raw.call("Report", huge)
    with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
        list(raw.call("ReportStream", iter([wire.ReportStreamRequest(id="1", report=huge)])))


def test_bytes_that_are_no_message_are_refused(raw: Raw) -> None:
    for name in SCOPES:
        streams = SERVICE.methods_by_name[name].client_streaming
        kind: Any = raw.channel.stream_stream if streams else raw.channel.unary_stream
        send = kind(f"/{SERVICE.full_name}/{name}", lambda data: data, lambda data: data)
        garbled = b"\xff\xff\xff"
        with refused(grpc.StatusCode.INVALID_ARGUMENT):
            list(send(iter([garbled]) if streams else garbled, metadata=raw.shown, timeout=WITHIN_S))
    other = raw.channel.unary_unary(f"/{SERVICE.full_name}/NoSuchCall", lambda data: data, lambda data: data)
    with refused(grpc.StatusCode.UNIMPLEMENTED):
        other(b"", timeout=WITHIN_S)


MISTAKES = [
    (asking(most=-3), "budget.max_urls", "budget.max_urls: expected an integer from 1 to 10000, got -3"),
    (wire.AskMessage(crawler_id="c-1"), "mcp_version", "mcp_version: required, but missing"),
    (asking("a/b"), "crawl_id", 'crawl_id: expected text of 1 to 200 characters without slash, got "a/b"'),
    (
        asking(context=wire.Context(recent_history=[wire.Fetch(url="https://a.example/", relevance=float("nan"))])),
        "context.recent_history[0].relevance",
        "context.recent_history[0].relevance: expected a number, got nan",
    ),
    (
        asking(context=wire.Context(metadata=wire.Json(text="[1]"))),
        "context.metadata",
        "context.metadata: expected a JSON object, got [1]",
    ),
    (
        asking(context=wire.Context(metadata=wire.Json(text="{"))),
        "context.metadata",
        "context.metadata: expected JSON as text: Input data was truncated",
    ),
    (
        asking(context=wire.Context(metadata=wire.Json(text='{"a":' * 31 + "1" + "}" * 31))),
        "context.metadata",
        "context.metadata: expected at most 32 levels, got more",
    ),
]


@pytest.mark.parametrize(("request_", "field", "words"), MISTAKES, ids=[field for _, field, _ in MISTAKES])
def test_a_mistake_is_named_by_its_field(raw: Raw, request_: Any, field: str, words: str) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT) as problem:
        raw.call("Next", request_)
    assert problem.value.details() == words
    assert details(problem.value)["BadRequest"].field_violations[0].field == field


def test_the_name_of_a_crawl_is_required_where_one_is_meant(raw: Raw) -> None:
    with refused(grpc.StatusCode.INVALID_ARGUMENT) as problem:
        raw.call("GetCrawl", wire.CrawlName())
    assert problem.value.details() == "crawl_id: required, but missing"


def test_what_is_no_grpc_disturbs_nobody(door: Opened, raw: Raw) -> None:
    for words in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 50):
        with socket.create_connection(("127.0.0.1", door.port), timeout=WITHIN_S) as bare:
            bare.sendall(words)
    assert not raw.call("Stats", wire.StatsRequest()).crawls


# strange clients


def test_a_client_that_never_reads_is_held_up_and_others_are_not(door: Opened, raw: Raw) -> None:
    sent, ended = 0, threading.Event()

    def endless() -> Iterator[wire.NextStreamRequest]:
        nonlocal sent
        while sent < 1_000_000 and not ended.is_set():
            sent += 1
            yield wire.NextStreamRequest(id="x" * 2_000, ask=asking(most=-1))

    with others_wait(door.guarded.server) as wait:
        answers = raw.call("NextStream", endless())
        seen: list[int] = []
        while len(seen) < 3 or len({*seen[-3:]}) > 1:  # flow control holds it up
            seen.append(sent)
            ended.wait(0.5)
        assert not door.raw().call("Stats", wire.StatsRequest()).crawls
        ended.set()
        answers.cancel()
    assert sent < 1_000_000
    assert wait.longest_s < MOST_S, wait


def test_a_long_report_keeps_nobody_waiting(door: Opened, raw: Raw) -> None:
    links = [wire.Outlink(url=f"https://h{number % 400}.example/{number}") for number in range(10_000)]
    fetches = [wire.Fetch(url=f"https://a.example/{number}", status=200, outlinks=links) for number in range(3)]
    with others_wait(door.guarded.server) as wait:
        ack = raw.call("Report", wire.ReportMessage(mcp_version=VERSION, crawler_id="c-1", fetches=fetches))
    assert ack.accepted == 3
    assert wait.longest_s < MOST_S, wait


# limits of the operator


def test_who_comes_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    with guarded_door(tmp_path, CRAWLGUIDE_ACCESS_REQUESTS_PER_S="2") as door:
        raw = door.raw()
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED) as problem:
            for _ in range(20):
                raw.call("Stats", wire.StatsRequest())
        said = details(problem.value)
        assert said["ErrorInfo"].reason == "rate_limited"
        assert said["RetryInfo"].retry_delay.ToMilliseconds() > 0
        assert dict(problem.value.trailing_metadata())["retry-after-ms"]
        asks = [wire.NextStreamRequest(id=str(number), ask=asking()) for number in range(10)]
        with Client(f"grpc://127.0.0.1:{door.port}", token=raw.token) as patient:
            assert patient.stats()["crawls"] == {}  # it comes back when it may
        answers = list(door.raw().call("NextStream", iter(asks)))
        assert {one.error.code for one in answers if one.HasField("error")} == {"rate_limited"}
        assert len(answers) == 10


def test_one_credential_does_not_take_all_streams(tmp_path: Path) -> None:
    with guarded_door(tmp_path, CRAWLGUIDE_ACCESS_MAX_SOCKETS="2") as door:
        raw, ended = door.raw(tenant="mine"), threading.Event()

        def asks() -> Iterator[Any]:
            yield wire.NextStreamRequest(id="1", ask=asking())
            ended.wait(WITHIN_S)

        streams = [raw.call("NextStream", asks()) for _ in range(2)]
        for stream in streams:
            next(stream)
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED) as problem:
            called(raw, "ReportStream")
        assert problem.value.details() == "your credential: expected at most 2 sockets and streams at once"
        assert called(door.raw(tenant="mine"), "ReportStream")
        ended.set()
        assert [list(stream) for stream in streams] == [[], []]
        assert called(raw, "ReportStream")


def test_a_revoked_key_ends_its_streams(door: Opened) -> None:
    text, key = api_keys.create(door.guarded.keys, grants_of(["admin"]), "revoked")
    raw, ended = Raw(door.port, text), threading.Event()

    def silent() -> Iterator[wire.NextStreamRequest]:
        yield wire.NextStreamRequest(id="1", ask=asking())
        ended.wait(WITHIN_S)

    answers = raw.call("NextStream", silent())
    assert next(answers).HasField("advice")
    api_keys.revoke(door.guarded.keys, key.name)
    with refused(grpc.StatusCode.UNAUTHENTICATED):
        next(answers)
    ended.set()


# TLS


def test_the_door_speaks_tls_and_knows_who_shows_a_certificate(tmp_path: Path) -> None:
    authority, stranger = Authority("authority"), Authority("stranger")
    trusted = authority.write(tmp_path)
    certificate, key = authority.issue(tmp_path, "server")
    own, own_key = authority.issue(tmp_path, "c-1", "acme")
    (tmp_path / "strange").mkdir()
    strange = stranger.write(tmp_path / "strange")
    files = {"TLS_CERTIFICATE": certificate, "TLS_KEY": key, "TLS_CLIENT_CA": trusted}
    settings = {f"CRAWLGUIDE_SERVER_{name}": str(file) for name, file in files.items()}
    with guarded_door(tmp_path, **settings, CRAWLGUIDE_ACCESS_CERTIFICATE_SCOPES="ask,tell,read") as door:
        url = f"grpcs://localhost:{door.port}"
        shown: Any = {"ca": str(trusted), "certificate": str(own), "certificate_key": str(own_key)}
        with Client(url, retries=0, **shown) as guide:
            assert guide.seed("mine", ["https://a.example/"]) == 1
        with Client(url, retries=0, ca=str(trusted)) as guide, pytest.raises(UnavailableError):
            guide.stats()
        with Client(url, retries=0, **{**shown, "ca": str(strange)}) as guide, pytest.raises(CrawlGuideError) as no:
            guide.stats()
        assert "cannot be trusted" in str(no.value)
