"""docs/bus.md: its programs run as they stand, and its event is one."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec
from tests.cli.test_crawling import free_port
from tests.docs.blocks import of_page
from tests.gateway.bus.common import KafkaMock, NatsServer, config, opened

from crawlguide.core.config import BusOptions
from crawlguide.gateway.bus.events import Event

PAGE = "docs/bus.md"
PROGRAMS = {block.title: block.text for block in of_page(PAGE, "python")}


async def printed(title: str, old: str, new: str) -> str:
    return await said_by(PROGRAMS[title].replace(old, new))


async def said_by(text: str) -> str:
    run = asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    ended = await run
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


async def test_the_programs_for_nats_run(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats")
    try:
        async with opened(config(BusOptions(nats=server.url))):
            assert await printed("ask.py", "nats://127.0.0.1:4222", server.url) == "https://example.com/ 1\n"
            assert await printed("tell_by_queue.py", "nats://127.0.0.1:4222", server.url) == "c-2-r-1 1\n"
    finally:
        server.stop()


def test_a_request_says_within_seconds_that_nobody_is_there() -> None:
    text = PROGRAMS["ask.py"].replace(":4222", f":{free_port()}")
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert "NATS: " in ended.stdout
    assert ended.stderr.splitlines()[-1].startswith("nats.errors.NoServersError")


async def test_the_program_for_kafka_runs() -> None:
    mock = KafkaMock()
    try:
        async with opened(config(BusOptions(kafka=mock.address))):
            assert await printed("ask_by_kafka.py", "127.0.0.1:9092", mock.address) == "first 1\n"
    finally:
        mock.stop()


def test_the_program_for_kafka_says_within_seconds_that_no_broker_is_there() -> None:
    text = PROGRAMS["ask_by_kafka.py"].replace(":9092", f":{free_port()}")
    ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=40, check=False)
    assert ended.returncode == 1
    assert "the broker does not take it: is it there?" in ended.stderr


async def test_the_program_for_kafka_shows_a_refusal() -> None:
    mock = KafkaMock()
    try:
        async with opened(config(BusOptions(kafka=mock.address))):
            wrong = PROGRAMS["ask_by_kafka.py"].replace('"max_urls": 5', '"max_urls": -5')
            assert "budget.max_urls" in await said_by(wrong.replace("127.0.0.1:9092", mock.address))
    finally:
        mock.stop()


def test_the_event_is_one() -> None:
    (block,) = of_page(PAGE, "json")
    event = msgspec.json.decode(block.text, type=Event)
    assert event.event == "fetches"
    assert event.fetches is not None


def test_every_field_of_an_event_is_on_the_page() -> None:
    words = Path(__file__).resolve().parents[3].joinpath(PAGE).read_text()
    assert all(f"`{name}`" in words for name in Event.__struct_fields__)
