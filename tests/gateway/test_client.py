"""`Client` and `AsyncClient` in the place of `Guide`: the same answers, the same errors, and nothing done twice."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, assert_type

import httpx
import msgspec
import pytest
from tests.gateway.conftest import SCRIPT, Served, _port

import crawlguide
from crawlguide import AsyncClient, AsyncGuide, Client, Guide
from crawlguide.core import errors
from crawlguide.core.crawls import Definition, Policy
from crawlguide.core.errors import CrawlGuideError, NotFound, RateLimited, StorageFull, UnavailableError
from crawlguide.core.messages import VERSION, Ack, Advice, AskMessage, BudgetMessage, Fetch, ReportMessage
from crawlguide.gateway import client_calls as calls
from crawlguide.gateway.client_http import heard
from crawlguide.gateway.client_tries import Patience, Tries
from crawlguide.gateway.http import STATUS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FREE = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0}
GONE_WITHIN_S = 30.0
SHORT = {"retries": 1, "deadline_s": 5.0}
Kind = type[Any]


class Awaited:
    """An `AsyncClient` whose methods are awaited for us, so that one test holds both clients to the same facts."""

    def __init__(self, url: str, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self._client = AsyncClient(url, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        def call(*words: Any, **more: Any) -> Any:
            given = method(*words, **more)
            return self._each(given) if inspect.isasyncgen(given) else self._runner.run(given)

        return call

    def _each(self, given: Any) -> Iterator[Any]:
        nothing = object()

        async def following() -> Any:
            return await anext(given, nothing)

        try:
            while (one := self._runner.run(following())) is not nothing:
                yield one
        finally:
            self._runner.run(given.aclose())

    def __enter__(self) -> Awaited:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._client.close())
        self._runner.close()


@pytest.fixture(params=[Client, Awaited], ids=["Client", "AsyncClient"])
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def guide(served: Served, kind: Kind) -> Iterator[Any]:
    """A client of the server that all tests share."""
    with kind(served.url) as opened:
        yield opened


def asking(crawl: str, max_urls: int = 1, **more: Any) -> dict[str, Any]:
    budget = {"max_urls": max_urls}
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "budget": budget} | more


def telling(crawl: str, *urls: str, **more: Any) -> dict[str, Any]:
    fetches = [{"url": url, "status": 200, "outlinks": [{"url": "/next"}]} for url in urls]
    return {"mcp_version": VERSION, "crawler_id": "c-1", "crawl_id": crawl, "fetches": fetches} | more


def pages(count: int) -> list[str]:
    return [f"https://h{number % 7}.example/{number}" for number in range(count)]


def given(advice: Any) -> list[str]:
    return [one["url"] for one in advice["assigned_urls"]]


def numbers(guide: Any, crawl: str) -> dict[str, Any]:
    found: dict[str, Any] = guide.stats(crawl)["crawls"][crawl]
    return found


# The same as a guide of one's own


def scrubbed(answer: Any) -> Any:
    """Without what differs from guide to guide: ids, instants and what is counted over all crawls."""
    text = answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True)
    text = re.sub(r'"(request_id|lease_expires|uptime_s|num_queries_completed)": ("[^"]*"|null|[\d.e+-]+)', "", text)
    return re.sub(r"crawl-\d+", "crawl", text)


def page(crawl: str, host: str) -> str:
    """Of hosts that no other crawl knows: their pace is kept for all crawls together."""
    return f"https://{host}.{crawl}.example/"


SCRIPT_OF_A_CRAWL: list[Callable[[Any, str], Any]] = [
    lambda guide, crawl: guide.ask(asking(crawl, 3, context={"seed_urls": [page(crawl, "first")]})),
    lambda guide, crawl: guide.define(crawl, {"policy": FREE, "goal": {"keywords": ["sql"]}}),
    lambda guide, crawl: guide.define(crawl, Definition(policy=Policy(robots="ignore", default_delay_s=0))),
    lambda guide, crawl: guide.seed(crawl, [page(crawl, "a"), {"url": page(crawl, "b"), "priority": 0.9}]),
    lambda guide, crawl: guide.seed(crawl, (page(crawl, "a"),)),
    lambda guide, crawl: guide.seed(crawl, [{"url": page(crawl, "c"), "metadata": {"shelf": [1, "ä", None]}}]),
    lambda guide, crawl: guide.ask(asking(crawl, 2)),
    lambda guide, crawl: guide.tell(telling(crawl, page(crawl, "a"), page(crawl, "b"), "nonsense")),
    lambda guide, crawl: guide.tell(telling(crawl, page(crawl, "c"), report_id="one")),
    lambda guide, crawl: guide.tell(telling(crawl, page(crawl, "c"), report_id="one")),
    lambda guide, crawl: guide.ask(asking(crawl, 10, request_id="r")),
    lambda guide, crawl: guide.ask(asking(crawl, 10, request_id="r")),
    lambda guide, crawl: guide.ask(asking(crawl, 10)),
    lambda guide, crawl: guide.pause(crawl),
    lambda guide, crawl: guide.ask(asking(crawl)),
    lambda guide, crawl: guide.resume(crawl),
    lambda guide, crawl: guide.stats(crawl),
]


@pytest.mark.parametrize("strategy", ["layered", "breadth-first", "random"])
def test_a_crawl_goes_as_it_goes_with_a_guide_of_ones_own(guide: Any, crawl: str, strategy: str) -> None:
    with Guide.open(":memory:") as own:
        definition = {"strategy": {"kind": strategy}, "policy": {"robots": "ignore"}}
        assert guide.define(crawl, definition) is own.define(crawl, definition)
        for step in SCRIPT_OF_A_CRAWL:
            assert scrubbed(step(guide, crawl)) == scrubbed(step(own, crawl))


WRONG: list[Callable[[Any, str], Any]] = [
    lambda guide, crawl: guide.ask(asking(crawl, -3)),
    lambda guide, crawl: guide.ask(asking(crawl) | {"mcp_version": "1999-01"}),
    lambda guide, _: guide.ask({"crawler_id": "c-1"}),
    lambda guide, _: guide.ask([1, 2]),
    lambda guide, crawl: guide.ask(asking(crawl) | {"request_timestamp": {1, 2}}),
    lambda guide, crawl: guide.ask(asking(crawl, crawler_id="\ud800")),
    lambda guide, crawl: [guide.ask(asking(crawl, most, request_id="r")) for most in (1, 2)],
    lambda guide, crawl: guide.tell(telling(crawl) | {"fetches": 3}),
    lambda guide, crawl: [guide.tell(telling(crawl, *urls, report_id="r")) for urls in (pages(1), pages(2))],
    lambda guide, crawl: guide.define(crawl, {"police": {}}),
    lambda guide, _: guide.define("a/b", {}),
    lambda guide, _: guide.define("", {}),
    lambda guide, _: guide.define("x" * 201, {}),
    lambda guide, _: guide.define(7, {}),
    lambda guide, crawl: guide.seed(crawl, ["https://a.example/", "mailto:nobody@example.com"]),
    lambda guide, crawl: guide.seed(crawl, iter(["https://a.example/"])),
    lambda guide, _: guide.pause("nobody-made-this"),
    lambda guide, _: guide.resume("nobody-made-this"),
    lambda guide, _: guide.stats("nobody-made-this"),
]


@pytest.mark.parametrize("step", WRONG)
def test_what_is_wrong_is_raised_as_by_a_guide_of_ones_own(
    guide: Any, crawl: str, step: Callable[[Any, str], Any]
) -> None:
    with Guide.open(":memory:") as own, pytest.raises(CrawlGuideError) as expected:
        step(own, crawl)
    with pytest.raises(CrawlGuideError) as raised:
        step(guide, crawl)
    assert raised.type is expected.type
    assert scrubbed(raised.value.message) == scrubbed(expected.value.message)
    assert raised.value.field == expected.value.field


@pytest.mark.parametrize(("ours", "theirs"), [(Client, Guide), (AsyncClient, AsyncGuide)])
def test_every_method_of_a_guide_is_there_with_the_same_parameters(ours: Kind, theirs: Kind) -> None:
    for name, method in inspect.getmembers(theirs, inspect.isfunction):
        if not name.startswith("_") or name in {"__enter__", "__exit__", "__aenter__", "__aexit__"}:
            assert inspect.signature(getattr(ours, name)) == inspect.signature(method), name


def test_both_clients_have_the_same_methods() -> None:
    public = [{name for name in dir(one) if not name.startswith("_")} for one in (Client, AsyncClient)]
    assert public[0] == public[1]
    assert {"ask", "tell", "delete", "explain", "urls", "export"} <= public[0]


@pytest.mark.parametrize("name", ["..", ".", "a b:c%2F?#", "ü", "x" * 200])
def test_a_crawl_may_have_any_name_that_a_guide_takes(guide: Any, name: str) -> None:
    assert guide.define(name, {})
    assert guide.seed(name, ["https://a.example/"]) == 1
    assert [one["url"] for one in guide.urls(name)] == ["https://a.example/"]
    assert json.loads(next(iter(guide.export(name))))["crawl"] == name
    assert numbers(guide, name)["queued"] == 1
    guide.delete(name)


def test_a_message_gives_a_message(served: Served, crawl: str) -> None:
    with Client(served.url) as guide:
        guide.seed(crawl, [{"url": "https://a.example/", "metadata": {"a": 1}}])
        advice = guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(5), crawl_id=crawl))
        ack = guide.tell(ReportMessage(VERSION, "c-1", [Fetch("https://a.example/", 200)], crawl))
        assert_type(advice, Advice)
        assert_type(ack, Ack)
        assert_type(guide.ask(asking(crawl)), dict[str, Any])
    assert [(one.url, msgspec.json.encode(one.metadata)) for one in advice.assigned_urls] == [
        ("https://a.example/", b'{"a":1}')
    ]
    assert (ack.accepted, ack.results[0].status) == (1, "ok")


async def test_a_message_gives_a_message_in_an_asyncio_program(served: Served, crawl: str) -> None:
    async with AsyncClient(served.url) as guide:
        await guide.seed(crawl, ["https://a.example/"])
        advice = await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(5), crawl_id=crawl))
        ack = await guide.tell(ReportMessage(VERSION, "c-1", [Fetch("https://a.example/", 200)], crawl))
        assert_type(advice, Advice)
        assert_type(ack, Ack)
        assert_type(await guide.tell(telling(crawl)), dict[str, Any])
    assert (len(advice.assigned_urls), ack.accepted) == (1, 1)


def test_a_message_and_a_dictionary_that_are_given_stay_as_they_were(guide: Any, crawl: str) -> None:
    question, report = asking(crawl), ReportMessage(VERSION, "c-1", [], crawl)
    guide.ask(question)
    guide.tell(report)
    assert question == asking(crawl)
    assert report.report_id is None


def test_an_id_of_ones_own_is_kept(guide: Any, crawl: str) -> None:
    assert guide.ask(asking(crawl, request_id="mine"))["metadata"]["request_id"] == "mine"


# Looking in


@pytest.fixture
def large(guide: Any, crawl: str) -> str:
    """A crawl whose URLs fill three pages."""
    guide.define(crawl, {"policy": FREE})
    assert guide.seed(crawl, pages(2_500)) == 2_500
    return crawl


def test_urls_come_from_all_pages(guide: Any, large: str) -> None:
    found = [one["url"] for one in guide.urls(large)]
    assert len(found) == 2_500
    assert set(found) == set(pages(2_500))


def test_urls_of_a_state_or_a_host_come_alone(guide: Any, large: str) -> None:
    held = given(guide.ask(asking(large, 40)))
    assert {one["url"] for one in guide.urls(large, "leased")} == set(held)
    assert {one["crawler_id"] for one in guide.urls(large, state="leased")} == {"c-1"}
    of_host = [one["url"] for one in guide.urls(large, host="h3.example")]
    assert set(of_host) == {url for url in pages(2_500) if "//h3." in url}
    assert list(guide.urls(large, "dropped")) == []


def test_urls_need_not_be_read_to_the_end(guide: Any, large: str) -> None:
    found = guide.urls(large)
    assert next(found)["state"] == "queued"
    found.close()
    assert numbers(guide, large)["queued"] == 2_500


def test_an_export_is_lines_of_json(guide: Any, large: str, client: httpx.Client) -> None:
    lines = list(guide.export(large))
    assert b"\n".join([*lines, b""]) == client.get(f"/v1/crawls/{large}/export").content
    assert json.loads(lines[0])["crawl"] == large
    assert {json.loads(line)["url"] for line in lines[1:]} == set(pages(2_500))


def test_a_line_of_an_export_holds_whatever_its_text_holds(guide: Any, crawl: str) -> None:
    strange = "a\u2028b\u2029c\x85d\x0be\x1cf"
    guide.seed(crawl, [{"url": "https://a.example/", "metadata": {"text": strange}}])
    _, line = guide.export(crawl)
    assert json.loads(line)["metadata"] == {"text": strange}


def test_an_export_need_not_be_read_to_the_end(guide: Any, large: str) -> None:
    lines = guide.export(large)
    next(lines)
    lines.close()
    assert numbers(guide, large)["queued"] == 2_500


def test_lines_are_put_together_from_any_pieces() -> None:
    lines, text = calls.Lines(), b'{"a": 1}\n{"b": 2}\n{"c": 3}'
    found = [line for at in range(len(text)) for line in lines.of(text[at : at + 1])]
    assert [*found, *lines.rest()] == text.split(b"\n")
    assert list(calls.Lines().rest()) == []


def test_a_url_is_explained(guide: Any, crawl: str) -> None:
    guide.seed(crawl, ["https://a.example/?b=c&d=ä#e"])
    found = guide.explain(crawl, "https://a.example/?b=c&d=ä#e")
    assert (found["state"], found["canonical"]) == ("queued", "https://a.example/?b=c&d=%C3%A4")
    assert found["words"]


def test_a_crawl_is_deleted(guide: Any, crawl: str) -> None:
    guide.define(crawl, {})
    guide.delete(crawl)
    with pytest.raises(NotFound):
        guide.stats(crawl)


@pytest.mark.parametrize(
    "step",
    [
        lambda guide: guide.delete("nobody-made-this"),
        lambda guide: guide.explain("nobody-made-this", "https://a.example/"),
        lambda guide: list(guide.urls("nobody-made-this")),
        lambda guide: list(guide.export("nobody-made-this")),
    ],
)
def test_looking_into_a_crawl_that_is_not_there_says_so(guide: Any, step: Callable[[Any], Any]) -> None:
    with pytest.raises(NotFound, match="nobody-made-this"):
        step(guide)


def test_text_that_cannot_be_sent_is_refused_by_name(guide: Any) -> None:
    with pytest.raises(errors.MalformedRequest, match=r"^url: ") as refused:
        guide.explain("default", "https://a.example/\ud800")
    assert refused.value.field == "url"
    with pytest.raises(errors.MalformedRequest, match=r"^crawl_id: "):
        guide.pause("\ud800")


# A server that answers as it is told


@dataclass
class Told:
    """An answer that is to be given: `drops_s` between two bytes of it; one that `breaks` never comes to its end."""

    status: int
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    drops_s: float = 0.0
    breaks: bool = False


BROKEN = Told(0, breaks=True)


@dataclass
class Heard:
    """A request that came, and when."""

    at: float
    method: str
    path: str
    body: Any
    headers: dict[str, str]


class Answering:
    """A real HTTP server that gives these answers one after the other, the last of them for ever."""

    def __init__(self, *answers: Told) -> None:
        self.answers, self.heard = list(answers), list[Heard]()
        self.listening = Listening(self.answer)
        self.url = f"http://127.0.0.1:{self.listening.server_port}"

    def __enter__(self) -> Answering:
        threading.Thread(target=self.listening.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listening.shutdown()
        self.listening.server_close()

    def answer(self, request: Heard) -> Told:
        self.heard.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Listening(ThreadingHTTPServer):
    def __init__(self, answer: Callable[[Heard], Told]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer, self.connections = answer, 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listening

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        words = {name.lower(): value for name, value in self.headers.items()}
        told = self.server.answer(Heard(time.monotonic(), self.command, self.path, body, words))
        self.close_connection = told.breaks
        if told.status:  # else the connection breaks without a word
            self.send_response(told.status)
            for name, value in ({"content-length": str(len(told.body) + told.breaks)} | told.headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.write(told)

    do_POST, do_PUT, do_DELETE = do_GET, do_GET, do_GET  # noqa: N815

    def write(self, told: Told) -> None:
        pieces = [told.body[at : at + 1] for at in range(len(told.body))] if told.drops_s else [told.body]
        try:
            for piece in pieces:
                self.wfile.write(piece)
                time.sleep(told.drops_s)
        except OSError:  # nobody listens any more
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def unavailable(named: str) -> pytest.RaisesExc[UnavailableError]:
    return pytest.raises(UnavailableError, match=named)


def error(code: str, **more: Any) -> bytes:
    return json.dumps({"error": {"code": code, "message": f"{code} it is", **more}}).encode()


ADVICE = json.dumps({"assigned_urls": []}).encode()


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
    with pytest.raises(CrawlGuideError, match="cannot be trusted") as raised, heard("https://guide.example"):
        raise httpx.ConnectError("self-signed") from ssl.SSLCertVerificationError()
    assert not isinstance(raised.value, UnavailableError)


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


# How long


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def waits(patience: Patience, problem: CrawlGuideError, clock: Clock) -> list[float]:
    """All waits until it is given up."""
    tries, found = Tries(patience), list[float]()
    try:
        while True:
            found.append(tries.wait_s(problem))
            clock.at += found[-1]
    except CrawlGuideError:
        return found


def test_waits_double_up_to_ten_seconds() -> None:
    clock = Clock()
    patience = Patience(retries=8, deadline_s=1_000, clock=clock, chance=lambda: 1.0)
    assert waits(patience, UnavailableError("busy"), clock) == [0.5, 1, 2, 4, 8, 10, 10, 10]


def test_chance_takes_up_to_half_of_a_wait() -> None:
    clock = Clock()
    patience = Patience(retries=3, deadline_s=1_000, clock=clock, chance=lambda: 0.0)
    assert waits(patience, UnavailableError("busy"), clock) == [0.25, 0.5, 1]


def test_what_the_guide_asks_for_comes_on_top() -> None:
    clock = Clock()
    patience = Patience(retries=2, deadline_s=1_000, clock=clock, chance=lambda: 1.0)
    assert waits(patience, RateLimited("slow down", retry_after_s=30), clock) == [30.5, 31]
    assert waits(patience, RateLimited("slow down", retry_after_s=-30), clock) == [0.5, 1]


def test_no_wait_ends_after_the_deadline() -> None:
    clock = Clock()
    patience = Patience(retries=100, deadline_s=60, clock=clock, chance=lambda: 1.0)
    assert sum(waits(patience, UnavailableError("busy"), clock)) < 60


def test_no_try_may_last_beyond_the_deadline() -> None:
    clock = Clock()
    tries = Tries(Patience(timeout_s=30, deadline_s=60, clock=clock))
    assert (tries.timeout.read, tries.timeout.connect) == (30, 5)
    clock.at = 57.0
    assert (tries.timeout.read, tries.timeout.connect) == (3, 3)


@pytest.mark.parametrize(
    ("text", "seconds"), [("3", 3.0), (" 0 ", 0.0), (None, None), ("", None), ("-3", None), ("soon", None)]
)
def test_retry_after_is_read(text: str | None, seconds: float | None) -> None:
    assert calls.seconds(text) == seconds


def test_retry_after_may_be_a_date() -> None:
    assert calls.seconds(formatdate(time.time() + 100, usegmt=True)) == pytest.approx(100, abs=5)
    assert calls.seconds(formatdate(time.time() - 100)) == 0.0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"url": "127.0.0.1:8080"}, "^url: expected one such as http"),
        ({"url": "ftp://a.example"}, "^url: "),
        ({"retries": -1}, "^retries: "),
        ({"timeout_s": 0}, "^timeout_s: "),
        ({"deadline_s": float("nan")}, "^deadline_s: "),
    ],
)
def test_an_option_that_cannot_work_is_named(options: dict[str, Any], named: str) -> None:
    for client in (Client, AsyncClient):
        with pytest.raises(errors.ConfigError, match=named):
            client(**{"url": "http://127.0.0.1:8080"} | options)


# Closing


def test_a_closed_client_says_so(served: Served) -> None:
    with Client(served.url) as guide:
        found = guide.urls("default")
    guide.close()
    with pytest.raises(RuntimeError, match="this client is closed"):
        guide.stats()
    with pytest.raises(RuntimeError, match="this client is closed"):
        next(found)


async def test_a_closed_client_says_so_in_an_asyncio_program(served: Served) -> None:
    async with AsyncClient(served.url) as guide:
        await guide.stats()
    await guide.close()
    with pytest.raises(RuntimeError, match="this client is closed"):
        await guide.stats()


def test_a_client_that_waits_is_ended_by_closing_it() -> None:
    with Answering(Told(503)) as server, ThreadPoolExecutor(1) as pool, Client(server.url) as guide:
        asked = pool.submit(guide.stats)
        while not server.heard:
            time.sleep(0.01)
        guide.close()
        with pytest.raises((RuntimeError, UnavailableError)):
            asked.result(GONE_WITHIN_S)


# Nothing is done twice


class Losing:
    """Stands before a guide, and of every call the first answer is lost on its way back."""

    def __init__(self, guide: str) -> None:
        self._guide = httpx.Client(base_url=guide, trust_env=False)
        self._seen = set[tuple[str, str, bytes]]()
        self._server = Answering(BROKEN)
        self._server.listening.answer = self._answer
        self.url = self._server.url

    def __enter__(self) -> Losing:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()
        self._guide.close()

    def _answer(self, request: Heard) -> Told:
        answer = self._guide.request(request.method, request.path, content=request.body)
        call = (request.method, request.path, request.body)
        if call in self._seen:
            return Told(answer.status_code, answer.content, {"content-type": answer.headers["content-type"]})
        self._seen.add(call)
        return BROKEN


def test_lost_answers_change_nothing(served: Served, kind: Kind, crawl: str) -> None:
    with Losing(served.url) as lossy, kind(lossy.url) as guide:
        guide.define(crawl, {"policy": FREE})
        guide.seed(crawl, pages(20))
        first, second = (given(guide.ask(asking(crawl, 5))) for _ in range(2))
        assert guide.tell(telling(crawl, *first))["accepted"] == 5
        assert len({*first, *second}) == 10
        counted = numbers(guide, crawl)
        assert (counted["asks"], counted["assigned"], counted["fetches"]) == (2, 10, 5)
        assert (counted["leased"], counted["done"], counted["failed"]) == (5, 5, 0)
        guide.pause(crawl)
        assert numbers(guide, crawl)["state"] == "paused"


def test_a_crawl_whose_deletion_was_not_heard_of_is_deleted_all_the_same(
    served: Served, kind: Kind, crawl: str
) -> None:
    with Losing(served.url) as lossy, kind(lossy.url) as guide:
        guide.define(crawl, {})
        guide.delete(crawl)
        with pytest.raises(NotFound):
            guide.stats(crawl)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def serving(folder: Path, port: int) -> Iterator[Served]:
    """A server that remembers in this folder, on this port."""
    ready, stderr = folder / "ready.json", folder / "stderr.txt"
    ready.unlink(missing_ok=True)
    command = [str(SCRIPT), "serve", "--data", str(folder / "data"), "--port", str(port), "--ready-file", str(ready)]
    with stderr.open("w") as said, subprocess.Popen(command, stderr=said, text=True, cwd=folder) as process:
        try:
            yield Served(process, _port(process, ready, stderr), stderr)
        finally:
            if process.poll() is None:
                process.kill()


@dataclass
class Fleet:
    """Three crawlers that go on asking and telling until they are stopped."""

    kind: Kind
    url: str
    told: list[str] = field(default_factory=list)
    stopped: bool = False

    def crawled(self, name: str) -> None:
        with self.kind(self.url, retries=100) as guide:
            while not self.stopped:
                urls = given(guide.ask(asking("default", 3, crawler_id=name)))
                ack = guide.tell(telling("default", *urls, crawler_id=name))
                assert [result["status"] for result in ack["results"]] == ["ok"] * 3
                self.told += urls

    def gets_on(self) -> None:
        until, more = time.monotonic() + GONE_WITHIN_S, len(self.told) + 60
        while len(self.told) < more:
            assert time.monotonic() < until, "no crawler gets on"
            time.sleep(0.01)

    @contextmanager
    def running(self) -> Iterator[None]:
        with ThreadPoolExecutor(3) as pool:
            crawlers = [pool.submit(self.crawled, f"c-{number}") for number in range(3)]
            try:
                yield
            finally:
                self.stopped = True
            for crawler in crawlers:
                crawler.result(GONE_WITHIN_S)


def test_a_guide_that_is_killed_and_started_again_is_not_noticed(tmp_path: Path, kind: Kind) -> None:
    port = free_port()
    with ExitStack() as servers, Client(f"http://127.0.0.1:{port}") as guide:
        first = servers.enter_context(serving(tmp_path, port))
        guide.define("default", {"policy": FREE})
        guide.seed("default", pages(5_000))
        fleet = Fleet(kind, first.url)
        with fleet.running():
            fleet.gets_on()
            first.stop(signal.SIGKILL)
            servers.enter_context(serving(tmp_path, port))
            fleet.gets_on()
        counted = numbers(guide, "default")
    assert len(set(fleet.told)) == len(fleet.told)
    assert (counted["fetches"], counted["done"], counted["leased"]) == (len(fleet.told), len(fleet.told), 0)


def test_eight_threads_share_a_client(served: Served, crawl: str) -> None:
    with Client(served.url) as guide:
        guide.define(crawl, {"policy": FREE})
        guide.seed(crawl, pages(400))

        def crawled(number: int) -> list[str]:
            name, found = f"c-{number}", list[str]()
            while urls := given(guide.ask(asking(crawl, 5, crawler_id=name))):
                if urls[0].endswith("next"):
                    break
                found += urls
                fetches = [{"url": url, "status": 200} for url in urls]
                assert guide.tell(telling(crawl, crawler_id=name, fetches=fetches))["accepted"] == len(urls)
            return found

        with ThreadPoolExecutor(8) as pool:
            found = [url for urls in pool.map(crawled, range(8)) for url in urls]
        assert sorted(found) == sorted(pages(400))
        assert numbers(guide, crawl)["done"] == 400


async def test_tasks_share_a_client(served: Served, crawl: str) -> None:
    async with AsyncClient(served.url) as guide:
        await guide.define(crawl, {"policy": FREE})
        await guide.seed(crawl, pages(100))
        found = await asyncio.gather(*(guide.ask(asking(crawl, 5, crawler_id=f"c-{n}")) for n in range(20)))
    assert sorted(url for advice in found for url in given(advice)) == sorted(pages(100))


async def test_a_call_can_be_cancelled(served: Served) -> None:
    with Answering(Told(503)) as server:
        async with AsyncClient(server.url) as guide:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(guide.stats(), 0.1)


def test_who_only_speaks_to_a_guide_loads_none() -> None:
    program = (
        "import sys; from crawlguide import AsyncClient, Client; Client('http://127.0.0.1:1').close();"
        "print([name for name in ('numba', 'numpy', 'uvicorn', 'rocksdict', 'starlette') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert printed.stdout.strip() == "[]"
