"""A frontier to measure on: so many URLs with random priorities over so many hosts, in a folder of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.columns import texts
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition
from crawlguide.core.messages import VERSION, AskMessage, ReportMessage
from crawlguide.core.types import Crawl, Links
from crawlguide.gateway.opening import open_guide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crawlguide.core.clock import Clock
    from crawlguide.core.messages import Advice
    from crawlguide.guide.local import LocalGuide

CRAWL = Crawl("default", "default")
POLICY = {"policy": {"robots": "ignore", "traps": False, "risk_threshold": 1}}  # bench/filters.py measures these
FILLED_AT_ONCE = 10_000
OUTLINKS, URLS_OUT = 20, 30


async def filled(folder: Path | str, count: int, hosts: int, clock: Clock | None = None) -> LocalGuide:
    """A guide over a folder that holds `count` waiting URLs."""
    guide = open_guide(folder, Config(), clock)
    await guide.define(CRAWL, msgspec.convert(POLICY, Definition))
    chance = np.random.default_rng(0)
    for first in range(0, count, FILLED_AT_ONCE):
        links = waiting(first, min(FILLED_AT_ONCE, count - first), hosts, chance)
        await guide.store.discover(CRAWL, links, None, guide.clock.now())
        await guide.store.commit()
    return guide


def waiting(first: int, count: int, hosts: int, chance: np.random.Generator) -> Links:
    """URLs numbered from `first` on, with random priorities."""
    numbers = chance.integers(0, hosts, count).tolist()
    names = [f"h{number:05d}.example" for number in numbers]
    found = [f"https://{name}/docs/section-{n % 97}/page-{n:08d}.html" for n, name in enumerate(names, first)]
    return Links(
        parent=np.full(count, -1),
        url=texts(found),
        id=np.array([addresses.identity(url) for url in found], np.uint64),
        host=texts(names),
        anchor=texts([""] * count),
        position=np.zeros(count, np.int32),
        manual_priority=chance.random(count),
        max_depth=np.full(count, -1, np.int32),
        metadata=texts([None] * count),
        reason=texts([None] * count),
    )


def question(name: str) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c", "request_id": name, "budget": {"max_urls": URLS_OUT}}


def story(urls: Sequence[str], name: str) -> dict[str, Any]:
    """Some pages came well, each with new links on it."""
    fetches = [fetched(url, f"{name}-{number}") for number, url in enumerate(urls)]
    return {"mcp_version": VERSION, "crawler_id": "c", "report_id": name, "fetches": fetches}


def fetched(url: str, name: str) -> dict[str, Any]:
    links = [{"url": f"/new/{name}-{n}.html", "anchor": f"page {n}"} for n in range(OUTLINKS)]
    return {"url": url, "status": 200, "elapsed_ms": 120, "bytes": 20_000, "relevance": 0.7, "outlinks": links}


def ask_message(name: str) -> AskMessage:
    return msgspec.convert(question(name), AskMessage)


def report_message(advice: Advice, name: str, pages: int) -> ReportMessage:
    """The first pages of an answer came."""
    return msgspec.convert(story([given.url for given in advice.assigned_urls[:pages]], name), ReportMessage)
