"""Servers for agents as tests reach them with the official client: in process, as a process, over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from crawlguide import AsyncGuide
from crawlguide.agents.calls import OneGuide
from crawlguide.agents.finding import Searches, SearchOptions
from crawlguide.agents.server import Desk
from crawlguide.core.config import Config, GuideOptions, ServerOptions, StoreOptions
from crawlguide.crawler.fetch import FetchOptions
from tests.gateway.conftest import NO_ROBOTS, SCRIPT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from mcp.types import CallToolResult

    from tests.crawler.crawling import Place

ERAS = ("auto", "legacy")  # both revisions of their protocol that clients speak
WITHIN_S = 60.0
SLOW_S = 0.25  # between two requests to a host: a search lasts for a while
READY_WITHIN_S = 180.0


def searching(place: Place | None = None, delay_s: float = 0.0) -> SearchOptions:
    """Only a proxy leads to the web of a test."""
    return SearchOptions(FetchOptions(concurrency=8, proxy=place.proxy if place else None), delay_s)


@asynccontextmanager
async def in_process(
    place: Place | None = None, delay_s: float = 0.0, era: str = "auto"
) -> AsyncIterator[tuple[Client, AsyncGuide]]:
    async with AsyncGuide.open() as guide:
        desk = Desk(OneGuide(guide), Searches(searching(place, delay_s)))
        async with Client(desk.server(), mode=era) as client:
            yield client, guide


@asynccontextmanager
async def over_http(port: int, token: str | None = None, era: str = "auto") -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60.0, trust_env=False) as http,
        Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http), mode=era) as client,
    ):
        yield client


def answer(result: CallToolResult) -> dict[str, Any]:
    """What a tool gave; the text says the same."""
    assert not result.is_error, result.content
    assert result.structured_content is not None
    assert json.loads(text(result)) == result.structured_content
    found: dict[str, Any] = result.structured_content
    return found


def refusal(result: CallToolResult) -> dict[str, Any]:
    assert result.is_error, result.content
    assert result.structured_content is not None
    error: dict[str, Any] = result.structured_content["error"]
    assert text(result).startswith(f"{error['code']}: {error['message']}")
    return error


def text(result: CallToolResult) -> str:
    (part,) = result.content
    return str(getattr(part, "text", ""))


async def until(happens: Callable[[], Awaitable[bool]]) -> None:
    ends = time.monotonic() + WITHIN_S
    while not await happens():
        assert time.monotonic() < ends, "it did not happen"
        await asyncio.sleep(0.05)


def search(place: Place, **more: Any) -> dict[str, Any]:
    return {"topic": place.task.name, "start": list(place.task.seeds["portal"]), **more}


async def cancelled_in_the_middle(client: Client, arguments: dict[str, Any]) -> float:
    """Cancel a search when its first pages have come; how long that took."""
    begun = asyncio.Event()

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        if progress:
            begun.set()

    call = asyncio.create_task(client.call_tool("find_pages", arguments, progress_callback=progressed))
    async with asyncio.timeout(WITHIN_S):
        await begun.wait()
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    return time.monotonic() - began


def configured(data: Path | str = ":memory:", **more: Any) -> Config:
    """Nobody reads robots.txt: the hosts of most tests do not exist."""
    filters = tuple(NO_ROBOTS["CRAWLGUIDE_GUIDE_FILTERS"].split(","))
    usual = {
        "server": ServerOptions(port=0),
        "store": StoreOptions(data=str(data)),
        "guide": GuideOptions(filters=filters),
    }
    return Config(**(usual | more))


@dataclass(frozen=True)
class Process:
    """`crawlguide agents --http` in a process of its own."""

    process: subprocess.Popen[str]
    port: int
    stderr: Path


@contextmanager
def process_over_http(folder: Path, *options: str) -> Iterator[Process]:
    ready, stderr = folder / "ready.json", folder / "stderr.txt"
    command = [str(SCRIPT), "agents", "--http", "--port", "0", "--ready-file", str(ready), *options]
    with (
        stderr.open("w") as said,
        subprocess.Popen(command, stderr=said, text=True, cwd=folder, env=os.environ | NO_ROBOTS) as process,
    ):
        try:
            until_ready = time.monotonic() + READY_WITHIN_S
            while not ready.exists():
                assert process.poll() is None, stderr.read_text()
                assert time.monotonic() < until_ready, stderr.read_text()
                time.sleep(0.02)
            yield Process(process, int(json.loads(ready.read_text())["port"]), stderr)
        finally:
            if process.poll() is None:
                process.kill()
