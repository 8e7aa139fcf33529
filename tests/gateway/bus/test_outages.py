"""A bus that is away stops nothing else, and misses nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.gateway.access.common import guarding
from tests.gateway.access.common import until as until_true
from tests.gateway.bus import trial
from tests.gateway.bus.common import NatsServer, ask, config, fresh_prefix, nats_crawler, opened, report, until

from crawlguide.core.config import BusOptions
from crawlguide.core.messages import ReportMessage
from crawlguide.gateway import wire

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "nats://127.0.0.1:9"  # nobody listens
AWAY = "nats cannot be reached, and is tried again and again: "


async def tell(here: Any, number: int | str) -> None:
    await here.guide.tell(wire.convert(report(f"https://a.example/{number}"), ReportMessage))


def counted(here: Any, outcome: str) -> float:
    """Events, as the page of metrics has them."""
    start = f'crawlguide_bus_events_total{{outcome="{outcome}"}} '
    lines = here.service.metrics.page({}, {}).decode().splitlines()
    return sum(float(line.removeprefix(start)) for line in lines if line.startswith(start))


async def test_a_bus_that_is_stopped_under_load_loses_and_doubles_nothing(tmp_path: Path) -> None:
    found = await trial.run(tmp_path, seconds=6.0, away_s=2.0)
    assert found.verdict() == []
    assert found.told_away > 20
    assert len(found.put) > 50


def test_a_trial_that_lost_or_doubled_something_says_so() -> None:
    found = trial.Trial(put={"report-1", "next-2"}, told=1, taken=3)
    found.answers.update(["report-1", "report-1"])
    found.events.update(["a", "b", "b"])
    assert len(found.verdict()) == 4


async def test_a_guide_begins_without_its_bus_and_joins_when_it_comes(tmp_path: Path) -> None:
    server, prefix = NatsServer(tmp_path / "nats"), fresh_prefix()
    server.stop()
    try:
        async with opened(config(BusOptions(nats=server.url, prefix=prefix)), wait=False) as here:
            await tell(here, 1)
            assert here.service.buses_away() == ["bus nats"]
            await until(lambda: here.service.bus_figures()["bus_spool_bytes"] > 0)
            server.start()
            await here.joined()
            assert here.service.buses_away() == []
            async with nats_crawler(server.url, prefix) as crawler:
                assert "assigned_urls" in await crawler.request("next", ask())
                event = (await until(lambda: crawler.bodies("events.default.fetches")))[0]
                assert event["fetches"] == [{"url": "https://a.example/1", "taken": "ok", "status": 200}]
    finally:
        server.stop()


async def test_events_outlive_the_guide(nats_server: NatsServer, prefix: str, tmp_path: Path) -> None:
    async with opened(config(BusOptions(nats=NOWHERE, prefix=prefix), tmp_path / "data"), wait=False) as here:
        for number in range(3):
            await tell(here, number)
    there = config(BusOptions(nats=nats_server.url, prefix=prefix), tmp_path / "data")
    async with opened(there) as here, nats_crawler(nats_server.url, prefix) as crawler:
        await until(lambda: not here.door.buses[0].spool.waiting)
        urls = [event["fetches"][0]["url"] for event in await crawler.bodies("events.default.fetches")]
        assert urls == [f"https://a.example/{number}" for number in range(3)]


async def test_what_the_spool_cannot_hold_is_counted(prefix: str, tmp_path: Path) -> None:
    small = BusOptions(nats=NOWHERE, prefix=prefix, spool_bytes=1_048_576)
    async with opened(config(small, tmp_path / "data"), wait=False) as here:
        for number in range(700):
            message = report(f"https://a.example/{number}/{'x' * 2_000}")
            await here.guide.tell(wire.convert(message, ReportMessage))
        await until(lambda: counted(here, "lost") > 0)
        assert here.service.bus_figures()["bus_spool_bytes"] <= 1_048_576


async def test_an_event_that_the_bus_does_not_carry_is_lost_and_not_delivered(tmp_path: Path) -> None:
    server, prefix = NatsServer(tmp_path / "nats", more="max_payload: 5000"), fresh_prefix()
    try:
        async with opened(config(BusOptions(nats=server.url, prefix=prefix))) as here:
            for number in ("1", "x" * 6_000, "2"):
                await tell(here, number)
            await until(lambda: counted(here, "lost") + counted(here, "delivered") >= 4)
            assert (counted(here, "lost"), counted(here, "delivered")) == (1, 3)  # one says that there is a crawl
    finally:
        server.stop()


async def test_events_can_be_switched_off(nats_server: NatsServer, prefix: str) -> None:
    settings = config(BusOptions(nats=nats_server.url, prefix=prefix, events=False))
    async with opened(settings) as here, nats_crawler(nats_server.url, prefix) as crawler:
        await crawler.request("report", report("https://a.example/"))
        here.door._events.write()
        assert not here.door.buses[0].spool.waiting
        assert await crawler.all_of("events.>") == []


async def test_events_say_what_happened(nats_server: NatsServer, prefix: str) -> None:
    settings = config(BusOptions(nats=nats_server.url, prefix=prefix))
    async with opened(settings) as here, nats_crawler(nats_server.url, prefix) as crawler:
        seeds = {"context": {"seed_urls": ["https://a.example/"]}}
        await crawler.request("next", ask(request_id="r", **seeds))
        await crawler.request("next", ask(request_id="r", **seeds))  # the same: no second event
        history = {"context": {"recent_history": [{"url": "https://a.example/", "error": "timeout"}]}}
        await crawler.request("next", ask(**history))
        crawl = (await here.guide.crawls.names("default"))[0]
        await here.guide.pause(crawl, paused=True)
        await here.guide.pause(crawl, paused=False)
        await here.guide.delete(crawl)

        async def all_there() -> Any:
            found = await crawler.bodies("events.>")
            return found if found[-1:] and found[-1].get("change") == "deleted" else None

        events = await until(all_there)
        assert [event.get("change") or event["event"] for event in events] == [
            "created", "decision", "fetches", "decision", "paused", "resumed", "deleted",
        ]  # fmt: skip
        decision, fetches = events[1], events[2]
        assert decision["request_id"] == "r"
        assert [one["url"] for one in decision["assigned"]] == ["https://a.example/"]
        assert fetches["fetches"] == [{"url": "https://a.example/", "taken": "ok", "error": "timeout"}]
        assert all(event["tenant"] == "default" and event["crawl_id"] == "default" for event in events)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("NATS", "127.0.0.1", "bus.nats: expected nats://HOST:PORT, got '127.0.0.1'"),
        ("NATS", "nats://127.0.0.1:port", "bus.nats: expected nats://HOST:PORT, got 'nats://127.0.0.1:port'"),
        ("NATS", "nats://[::1", "bus.nats: expected nats://HOST:PORT, got 'nats://[::1'"),
        ("KAFKA", "127.0.0.1:99999", "bus.kafka: expected HOST:PORT, several with commas between"),
        ("KAFKA", "kafka://x", "bus.kafka: expected HOST:PORT, several with commas between, got 'kafka://x'"),
        ("TLS_CA", "missing.pem", "bus.tls_ca: no such file: missing.pem"),
        ("PREFIX", "a b", "bus.prefix: expected up to 100 letters"),
    ],
)
def test_a_wrong_setting_is_said_before_anything_is_opened(
    here: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, text: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAWLGUIDE_BUS_NATS", NOWHERE)
    monkeypatch.setenv(f"CRAWLGUIDE_BUS_{name}", text)
    ended = here("config", "check", "--data", tmp_path / "data")
    assert ended.returncode == 2
    assert said in ended.stderr


def test_passwords_are_not_shown(here: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAWLGUIDE_BUS_NATS", "nats://me:hidden-1@127.0.0.1:4222")
    monkeypatch.setenv("CRAWLGUIDE_BUS_KAFKA_PASSWORD", "hidden-2")
    for words in (["config", "show"], ["config", "show", "--json"]):
        ended = here(*words)
        assert "hidden" not in ended.stdout
        assert "nats://127.0.0.1:4222" in ended.stdout


def test_a_server_answers_over_http_while_its_bus_is_away(tmp_path: Path) -> None:
    with guarding(tmp_path, CRAWLGUIDE_BUS_NATS=NOWHERE) as guarded:
        token = guarded.key("admin")
        with guarded.client(token) as http:
            assert http.post("/v1/next", json=ask()).status_code == 200
            ready = http.get("/readyz")
            assert (ready.status_code, ready.json()) == (200, {"status": "degraded", "not_running": ["bus nats"]})
            page = http.get("/metrics").text
            assert "crawlguide_buses_away 1.0" in page
            assert "crawlguide_bus_spool_bytes" in page
        assert until_true(lambda: AWAY in guarded.server.said())
        assert json.loads((tmp_path / "ready.json").read_text())["bus"] == ["nats"]
        assert guarded.server.stop() == 0
        assert "Traceback" not in guarded.server.said()
