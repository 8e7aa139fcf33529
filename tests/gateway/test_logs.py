"""The log: one line per event whatever comes in, no secrets, bounded, and nobody waits for whoever reads it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import subprocess
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, get_args

import httpx
import pytest
from tests.gateway.conftest import Served, serving
from tests.store.faults import Fault
from tests.support import ask, fetched, tell

from crawlguide import Guide
from crawlguide.core.config import Config, ServerOptions
from crawlguide.core.errors import CrawlGuideError, StorageFull
from crawlguide.core.messages import SeedsMessage
from crawlguide.core.telemetry import ERROR, LOGGER, Event, happened
from crawlguide.core.types import Crawl
from crawlguide.gateway import logs, service
from crawlguide.gateway.http import Door
from crawlguide.gateway.logs import AT_MOST, WINDOW_S, Lines, as_json, as_text
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.service import Service
from crawlguide.gateway.upkeep import Upkeep
from crawlguide.store.embedded import writer
from crawlguide.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

NAUGHTY = Path(__file__).resolve().parents[3] / "shared" / "corpora" / "naughty_strings.jsonl"
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "logs.md").read_text()
NASTY = ["a\nb", "\r\n{}", "\x1b[31m", "\x7f\x85\u2028\u2029", "\u202egnp", 'quote " and \\', "{crawl}%s%d", "\ud800"]


def strings() -> list[str]:
    if not NAUGHTY.exists():
        return NASTY
    return [*NASTY, *(json.loads(line)["s"] for line in NAUGHTY.read_text().splitlines())]


class Heard(logging.Handler):
    """Keeps every record."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def events(self) -> list[str]:
        return [record.__dict__["event"] for record in self.records]


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler = Heard()
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    yield handler
    LOGGER.setLevel(logging.NOTSET)
    LOGGER.removeHandler(handler)


def check_lines(records: list[logging.LogRecord]) -> None:
    for record in records:
        line = as_json(record)
        assert line.endswith("\n")
        assert line[:-1].isascii()
        assert line[:-1].isprintable()
        assert json.loads(line)["event"] == record.__dict__["event"]
        text = as_text(record)
        assert text.endswith("\n")
        assert text[:-1].isprintable()


@pytest.mark.parametrize("field", ["crawl", "problem", "field", "route", "data"])
def test_whatever_a_field_holds_is_one_line(heard: Heard, field: str) -> None:
    for text in strings():
        happened("request_refused", f"{{{field}}} was refused", **{field: text})
    assert len(heard.records) == len(strings())
    check_lines(heard.records)


def test_names_of_crawls_from_outside_make_one_line_each(heard: Heard) -> None:
    with Guide.open(":memory:") as guide:
        for text in strings():
            with suppress(CrawlGuideError):  # some cannot be the name of a crawl
                guide.define(text, {})
                guide.define(text, {"limits": {"max_pages": 1}})
                guide.pause(text)
                guide.resume(text)
                guide.ask(
                    {"mcp_version": "2025-11", "crawler_id": text or "-", "crawl_id": text, "budget": {"max_urls": 1}}
                )
    assert {"crawl_created", "crawl_changed", "crawl_paused", "crawl_resumed", "crawl_finished"} <= set(heard.events)
    check_lines(heard.records)


async def test_whatever_a_request_says_makes_one_line(heard: Heard) -> None:
    door = Door(Service(open_guide(":memory:", Config()), Config()))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(door.app()), base_url="http://here") as client:
        for text in strings():
            if "\ud800" in text:
                continue
            body: dict[str, Any] = {"mcp_version": text, "crawler_id": text, "budget": {"max_urls": text}}
            await client.post("/v1/next", json=body)
            report = {"mcp_version": "2025-11", "crawler_id": "c", "fetches": [{"url": 1, text: text}]}
            await client.post("/v1/report", json=report)
            await client.get("/v1/explain", params={"crawl_id": text, "url": text})
            await client.put("/v1/crawls/naughty", json={text: text, "policy": {text: text}})
            await client.get(httpx.URL("http://here", raw_path=b"/no/" + text.encode().hex().encode()))
    assert len(heard.events) > 4 * (len(strings()) - 1)
    assert set(heard.events) >= {"request_refused"}
    check_lines(heard.records)


def test_a_line_is_never_long(heard: Heard) -> None:
    happened("request_refused", "{problem}", problem="long " * 10_000)
    assert len(as_json(heard.records[0])) < 2_000
    assert len(as_text(heard.records[0])) < 2_000


def test_names_and_passwords_in_urls_are_left_out(heard: Heard) -> None:
    happened("request_refused", "{problem}", problem="no such URL: https://me:secret@example.com/?q=a@b.c")
    for line in (as_json(heard.records[0]), as_text(heard.records[0])):
        assert "https://example.com/?q=a@b.c" in line
        assert "secret" not in line


def test_a_traceback_is_one_line_of_json_and_set_in_as_text(heard: Heard) -> None:
    try:
        int("no\n2026-11-15T00:00:00.000Z info forged")
    except ValueError:
        LOGGER.exception("a fault")
    said = json.loads(as_json(heard.records[0]))
    assert (said["level"], said["event"]) == ("error", "crawlguide")
    assert "ValueError" in said["traceback"]
    first, *rest = as_text(heard.records[0]).splitlines()
    assert first.endswith(" error a fault")
    assert all(line.startswith("    ") for line in rest)


# how much


def record(event: str, at: float, **fields: Any) -> logging.LogRecord:
    made = logging.makeLogRecord({"levelname": "WARNING", "msg": event, "created": at})
    made.__dict__.update(event=event, fields=fields)
    return made


def lines_of(*records: logging.LogRecord) -> list[dict[str, Any]]:
    stream = io.StringIO()
    handler = Lines(stream, "json")
    for one in records:
        handler.emit(one)
    handler.close()
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_the_same_failure_again_and_again_is_bounded_and_counted() -> None:
    said = lines_of(*(record("request_failed", 1_000.0, code="unavailable") for _ in range(1_000)))
    assert len(said) == AT_MOST + 1
    assert (said[-1]["event"], said[-1]["of"], said[-1]["code"]) == ("left_out", "request_failed", "unavailable")
    assert said[-1]["count"] == 1_000 - AT_MOST


def test_another_failure_is_said_all_the_same() -> None:
    many = [record("request_failed", 1_000.0, code="unavailable") for _ in range(100)]
    said = lines_of(*many, record("request_failed", 1_000.0, code="storage_full"))
    assert [one for one in said if one.get("code") == "storage_full"]


def test_after_a_while_it_is_said_again_with_what_was_left_out() -> None:
    many = [record("request_failed", 1_000.0, code="unavailable") for _ in range(100)]
    later = [record("request_failed", 1_000.0 + WINDOW_S, code="unavailable") for _ in range(2)]
    said = lines_of(*many, *later)
    assert [one["event"] for one in said[AT_MOST:]] == ["left_out", "request_failed", "request_failed"]
    assert said[AT_MOST]["count"] == 100 - AT_MOST


def test_nobody_waits_for_whoever_does_not_read_the_log() -> None:
    reads, writes = os.pipe()
    with open(reads, "rb") as reader:  # noqa: PTH123 - a pipe has no path
        with open(writes, "w") as pipe:  # noqa: PTH123
            handler = Lines(pipe, "json")
            records = [record(f"event {number}", 1_000.0, problem="x" * 400) for number in range(3_000)]
            writing = Thread(target=lambda: deque(map(handler.emit, records)), daemon=True)
            writing.start()
            writing.join(60.0)
            waits = writing.is_alive()
            reading = Thread(target=reader.read)  # so that the handler gets on, and the pipe can be closed
            reading.start()
            handler.close()
        reading.join()
    assert not waits


def test_a_level_says_what_is_left_out() -> None:
    stream = io.StringIO()
    with logs.kept(ServerOptions(log_level="error", log_format="json"), stream):
        happened("crawl_created", "crawl {crawl}", crawl="a")
        happened("storage_full", "full", ERROR)
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["storage_full"]


def test_what_others_log_is_a_line_too() -> None:
    stream = io.StringIO()
    with logs.kept(ServerOptions(log_format="json"), stream):
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request %s", "received\n")
        logging.getLogger("uvicorn.error").info("not worth a line")
    said = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(one["event"], one["message"]) for one in said] == [("uvicorn.error", "Invalid HTTP request received\n")]


def test_a_library_says_nothing_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    with Guide.open(":memory:") as guide:
        guide.define("quiet", {})
    assert capfd.readouterr() == ("", "")


# what


def test_the_life_of_a_crawl_is_told(heard: Heard) -> None:
    with Guide.open(":memory:", clock=ManualClock()) as guide:
        guide.seed("default", ["https://example.com/"])
        ask(guide)
        tell(guide, fetched("https://example.com/"))
        ask(guide)
        ask(guide)
        guide.define("default", {"limits": {"max_pages": 1}})
        ask(guide)
    finished = [one.__dict__["fields"] for one in heard.records if one.__dict__["event"] == "crawl_finished"]
    assert heard.events == ["crawl_created", "crawl_finished", "crawl_changed", "crawl_finished"]
    assert [one["state"] for one in finished] == ["exhausted", "finished"]


def test_what_is_forgotten_is_told(heard: Heard, tmp_path: Path) -> None:
    clock = ManualClock()
    with Guide.open(tmp_path / "data", clock=clock) as guide:
        tell(guide, fetched("https://example.com/"))
        clock.advance(200 * 86_400.0)
        guide._run(guide._guide._guide.upkeep())
    swept = [one.__dict__["fields"] for one in heard.records if one.__dict__["event"] == "sweep"]
    assert swept == [{"tenant": "default", "crawl": "default", "urls": 1}]


async def test_a_full_disk_is_told_once_and_so_is_its_end(
    heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = open_guide(tmp_path / "data", Config())
    await guide.seed(Crawl("default", "books"), SeedsMessage(["https://example.com/"]))
    with monkeypatch.context() as patch:
        Fault(tmp_path / "data", ["write"], 1, times=4).arm(patch)
        with pytest.raises(StorageFull):
            await guide.seed(Crawl("default", "books"), SeedsMessage(["https://example.com/2"]))
        upkeep = asyncio.create_task(Upkeep(guide, 0.001).run())
        async with asyncio.timeout(30):
            while "storage_recovered" not in heard.events:  # noqa: ASYNC110 - the log is all there is to look at
                await asyncio.sleep(0.001)
        upkeep.cancel()
    await guide.close()
    assert heard.events[1:] == ["storage_full", "storage_recovered"]


def test_a_snapshot_is_told(heard: Heard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 0)
    with Guide.open(tmp_path / "data") as guide:
        for number in range(1_000):
            tell(guide, fetched(f"https://example.com/{number}", f"https://example.org/{number}"))
            if "snapshot" in heard.events:
                return
    raise AssertionError("no snapshot was made, or nobody was told")


async def test_a_request_that_took_long_is_told(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SLOW_S", 0.0)
    await answered(Door(Service(open_guide(":memory:", Config()), Config())))
    (slow,) = heard.records
    assert (slow.levelname, slow.__dict__["event"]) == ("WARNING", "request_slow")
    assert slow.__dict__["fields"]["route"] == "/v1/stats"


async def test_a_request_that_failed_for_our_sake_is_a_warning(heard: Heard) -> None:
    await answered(Door(Service(open_guide(":memory:", Config()), Config(), draining=True)))
    (failed,) = heard.records
    assert (failed.levelname, failed.__dict__["event"]) == ("WARNING", "request_failed")
    assert (failed.__dict__["fields"]["status"], failed.__dict__["fields"]["code"]) == (503, "unavailable")


async def answered(door: Door) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(door.app()), base_url="http://here") as client:
        await client.get("/v1/stats")


@pytest.fixture
def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("CRAWLGUIDE_SERVER_LOG_FORMAT", "json")
    with serving(tmp_path) as server:
        yield server


def test_a_server_writes_lines_of_json_and_nothing_else(logged: Served) -> None:
    with httpx.Client(base_url=logged.url, trust_env=False, headers={"Authorization": "Bearer s3cret"}) as client:
        client.put("/v1/crawls/books\u202e", json={})
        client.post("/v1/crawls/books\u202e/pause")
        client.get("/v1/crawls/nowhere?token=s3cret")
        client.get("/no/such/page?token=s3cret")
        client.delete("/v1/crawls/books\u202e")
    assert logged.stop() == 0
    said = [json.loads(line) for line in logged.said().splitlines()]
    assert [one["event"] for one in said] == [
        "opened", "start", "crawl_created", "audit", "crawl_paused", "audit", "request_refused", "request_refused",
        "crawl_deleted", "audit", "stopping", "stop",
    ]  # fmt: skip
    start = said[1]
    assert (start["port"], start["data"], start["version"]) == (logged.port, ":memory:", start["version"])
    assert start["opened_s"] >= 0
    refused = said[6]
    assert (refused["route"], refused["status"], refused["code"]) == ("/v1/crawls/{crawl_id}", 404, "not_found")
    assert "s3cret" not in logged.said()


def test_the_first_start_says_why_it_takes_long(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crawlguide", "serve", "--data", ":memory:", "--port", "0"]
    nothing_kept = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=nothing_kept, stderr=subprocess.PIPE, text=True) as starting:
        assert starting.stderr is not None
        try:
            assert "compiling for this machine" in starting.stderr.readline()
        finally:
            starting.kill()


def test_the_page_names_every_event() -> None:
    assert set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.MULTILINE)) == {*get_args(Event), "left_out"}
