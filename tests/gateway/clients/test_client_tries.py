"""What a client makes of errors, of somebody else at the address and of silence."""

from __future__ import annotations

import json
import re
import socket
import ssl
import time

import httpx
import pytest
from tests.gateway.clients.answering import (
    ADVICE,
    BROKEN,
    Answering,
    Told,
    error,
    unavailable,
)
from tests.gateway.clients.common import (
    SHORT,
    Kind,
    asking,
    free_port,
    telling,
)

import crawlguide
from crawlguide.core import errors
from crawlguide.core.errors import CrawlGuideError, RateLimited, StorageFull, UnavailableError
from crawlguide.gateway.client.over_http import http_errors_as_ours
from crawlguide.gateway.client.transport import untrusted
from crawlguide.gateway.responses import STATUS


@pytest.mark.parametrize("code", sorted(STATUS))
def test_an_error_of_the_wire_comes_back_as_what_it_was(kind: Kind, code: str) -> None:
    told = Told(STATUS[code], error(code, field="budget", retry_after_s=2.5))
    raised = {one.code: one for one in _all_errors() if "code" in vars(one)}
    with Answering(told) as server, kind(server.url, retries=0) as guide, pytest.raises(CrawlGuideError) as problem:
        guide.ask(asking("default"))
    assert problem.type is raised[code]
    assert (problem.value.message, problem.value.field, problem.value.retry_after_s) == (f"{code} it is", "budget", 2.5)


def _all_errors() -> list[type[CrawlGuideError]]:
    found = [CrawlGuideError]
    for one in found:
        found += one.__subclasses__()
    return [one for one in found if one.__module__ == errors.__name__]


@pytest.mark.parametrize("code", sorted(STATUS.keys() - {"unavailable", "rate_limited"}))
def test_what_another_try_cannot_mend_is_raised_at_once(kind: Kind, code: str) -> None:
    with Answering(Told(STATUS[code], error(code), {"retry-after": "0"})) as server, kind(server.url) as guide:
        with pytest.raises(CrawlGuideError):
            guide.tell(telling("default", "https://a.example/"))
        assert len(server.heard) == 1


def test_a_full_disk_is_raised_at_once(kind: Kind) -> None:
    with Answering(Told(507, error("storage_full"))) as server, kind(server.url) as guide:
        with pytest.raises(StorageFull):
            guide.seed("default", ["https://a.example/"])
        assert len(server.heard) == 1


def test_a_code_of_a_newer_guide_is_an_error_all_the_same(kind: Kind) -> None:
    told = Told(418, error("teapot"))
    with Answering(told) as server, kind(server.url) as guide, pytest.raises(CrawlGuideError, match="teapot it is"):
        guide.pause("default")


@pytest.mark.parametrize(
    "busy",
    [
        Told(503, error("unavailable", retry_after_s=1.0), {"retry-after": "7"}),
        Told(503, error("unavailable"), {"retry-after": "1"}),
        Told(429, error("rate_limited", retry_after_s=1.0)),
        Told(503, b"<h1>Service Unavailable</h1>", {"retry-after": "1"}),
        Told(429, b"", {"retry-after": "1"}),
    ],
    ids=["said in the message", "said in the header", "rate limited", "in words of others", "without a word"],
)
def test_who_is_told_to_come_back_later_comes_back_later(kind: Kind, busy: Told) -> None:
    with Answering(busy, Told(200, ADVICE)) as server, kind(server.url) as guide:
        assert guide.ask(asking("default")) == {"assigned_urls": []}
        first, second = server.heard
    assert 1.0 <= second.at - first.at < 6.0


@pytest.mark.parametrize("passing", [BROKEN, Told(502), Told(503), Told(504), Told(200, ADVICE, breaks=True)])
@pytest.mark.parametrize(("verb", "name"), [("ask", "request_id"), ("tell", "report_id")])
def test_a_second_try_says_the_same_under_the_same_id(kind: Kind, passing: Told, verb: str, name: str) -> None:
    message = asking("default") if verb == "ask" else telling("default")
    with Answering(passing, Told(200, ADVICE)) as server, kind(server.url) as guide:
        assert getattr(guide, verb)(message) == {"assigned_urls": []}
        first, second = server.heard
    assert first.body == second.body
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", json.loads(first.body).pop(name))
    assert {key: value for key, value in json.loads(first.body).items() if key != name} == message


def test_every_call_has_an_id_of_its_own(kind: Kind) -> None:
    with Answering(Told(200, ADVICE)) as server, kind(server.url) as guide:
        for _ in range(3):
            guide.ask(asking("default"))
        assert len({json.loads(request.body)["request_id"] for request in server.heard}) == 3


def test_after_the_last_try_the_error_is_raised_with_a_note_of_the_tries(kind: Kind) -> None:
    with Answering(Told(503, error("unavailable", field="store"))) as server, kind(server.url, **SHORT) as guide:
        with pytest.raises(UnavailableError, match="unavailable it is") as problem:
            guide.stats()
        assert len(server.heard) == 2
    assert problem.value.field == "store"
    assert re.fullmatch(r"given up after 2 tries in \d\.\d s", problem.value.__notes__[0])


def test_who_is_told_to_come_back_after_the_deadline_does_not_wait(kind: Kind) -> None:
    busy = Told(429, error("rate_limited"), {"retry-after": "3600"})
    began = time.monotonic()
    with Answering(busy) as server, kind(server.url) as guide, pytest.raises(RateLimited) as problem:
        guide.stats()
    assert problem.value.retry_after_s == 3_600
    assert time.monotonic() - began < 5


def test_somebody_else_at_the_address_is_named(kind: Kind) -> None:
    for status in (200, 404, 301, 500):
        with Answering(Told(status, b"<h1>hello</h1>")) as server, kind(server.url) as guide:
            with pytest.raises(CrawlGuideError, match=f"{server.url} is no crawlguide server: it answers {status}"):
                guide.stats()
            with pytest.raises(CrawlGuideError, match=f"{server.url} is no crawlguide server: it answers {status}"):
                list(guide.export("default"))
            assert len(server.heard) == 2


def test_an_answer_of_another_shape_is_no_answer(kind: Kind) -> None:
    for body in (b"[]", b'{"discovered": "many"}', b"\xff", b""):
        with (
            Answering(Told(200, body)) as server,
            kind(server.url) as guide,
            pytest.raises(CrawlGuideError, match="is no crawlguide server"),
        ):
            guide.seed("default", [])


def test_an_export_that_breaks_before_its_first_line_is_tried_again(kind: Kind) -> None:
    lines = Told(200, b'{"crawl":"x"}\n', {"content-type": "application/x-ndjson"})
    with Answering(Told(503), BROKEN, lines) as server, kind(server.url) as guide:
        assert list(guide.export("x")) == [b'{"crawl":"x"}']
        assert len(server.heard) == 3


def test_an_export_that_breaks_in_the_middle_is_an_error(kind: Kind) -> None:
    lines = Told(200, b'{"crawl":"x"}\n{"url', {"content-type": "application/x-ndjson"}, breaks=True)
    with Answering(lines) as server, kind(server.url) as guide:
        found = guide.export("x")
        assert next(found) == b'{"crawl":"x"}'
        with pytest.raises(UnavailableError, match=f"{server.url} broke off"):
            next(found)
        assert len(server.heard) == 1


def test_an_answer_that_comes_drop_by_drop_ends_with_the_deadline(kind: Kind) -> None:
    began = time.monotonic()
    slow = Told(200, ADVICE + b" " * 1_000, drops_s=0.05)
    with Answering(slow) as server, kind(server.url, deadline_s=0.5) as guide, unavailable("does not answer in time"):
        guide.ask(asking("default"))
    assert 0.4 < time.monotonic() - began < 5


def test_a_server_that_says_nothing_is_given_up(kind: Kind) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with kind(url, timeout_s=0.2, retries=1) as guide, unavailable(f"{url} does not answer in time") as problem:
            guide.stats()
    assert "2 tries" in problem.value.__notes__[0]


def test_where_no_server_runs_it_is_tried_until_the_deadline(kind: Kind) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    with kind(url, retries=1_000, deadline_s=2.0) as guide, unavailable(f"{url} cannot be reached") as problem:
        guide.ask(asking("default"))
    assert 0.7 < time.monotonic() - began < 10
    assert re.match(r"given up after [2-6] tries", problem.value.__notes__[0])


def test_a_certificate_that_is_not_trusted_is_not_tried_again() -> None:
    with (
        pytest.raises(CrawlGuideError, match="cannot be trusted") as raised,
        http_errors_as_ours("https://guide.example"),
    ):
        raise httpx.ConnectError("self-signed") from ssl.SSLCertVerificationError()
    assert not isinstance(raised.value, UnavailableError)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("unable to get local issuer certificate", "name the authority that signed its certificate with --ca"),
        ("IP address mismatch, certificate is not valid for '10.0.0.1'", "its certificate is for another name"),
        ("Hostname mismatch, certificate is not valid for 'a.example'", "its certificate is for another name"),
        ("Peer name a.example is not in peer certificate", "its certificate is for another name"),
        ("certificate has expired", "it needs a new certificate"),
        ("certificate is not yet valid", "compare the clocks"),
    ],
)
def test_what_is_wrong_with_a_certificate_says_what_to_do(words: str, remedy: str) -> None:
    with pytest.raises(CrawlGuideError, match=re.escape(f"https://guide.example cannot be trusted ({remedy}")):
        raise untrusted("https://guide.example", f"certificate verify failed: {words}")


def test_a_header_that_cannot_be_sent_is_not_tried_again(kind: Kind) -> None:
    with Answering(Told(200)) as server, kind(server.url, headers={"x-team": "a\nb"}) as guide:
        with pytest.raises(CrawlGuideError, match="header") as raised:
            guide.stats()
        assert not isinstance(raised.value, UnavailableError)
        assert server.heard == []


def test_headers_are_sent_and_connections_are_used_again(kind: Kind) -> None:
    with Answering(Told(200)) as server, kind(server.url, headers={"authorization": "Bearer b"}) as guide:
        for _ in range(5):
            guide.stats()
        assert {request.headers["authorization"] for request in server.heard} == {"Bearer b"}
        assert server.heard[0].headers["user-agent"] == f"crawlguide/{crawlguide.__version__}"
        assert server.listening.connections == 1


def test_a_guide_may_lie_below_a_path(kind: Kind) -> None:
    with Answering(Told(200)) as server, kind(server.url + "/guides/one/") as guide:
        guide.define("..", {})
        assert server.heard[0].path == "/guides/one/v1/crawls/%2E%2E"


def test_a_password_is_not_shown(kind: Kind) -> None:
    url = f"http://me:secret@127.0.0.1:{free_port()}"
    with kind(url, retries=0) as guide, unavailable("^http://127.0.0.1:") as problem:
        guide.stats()
    assert "secret" not in str(problem.value)
