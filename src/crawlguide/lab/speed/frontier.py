"""A frontier to measure on: many URLs with random priorities over many hosts, and the messages to measure with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    from pathlib import Path

    from crawlguide.core.clock import Clock
    from crawlguide.core.messages import Advice
    from crawlguide.guide.local import LocalGuide

Reporter = Callable[[Sequence[str], str], dict[str, Any]]  # what is told of these URLs, under this name
CRAWL = Crawl("default", "default")
POLICY = {"policy": {"robots": "ignore", "traps": False, "risk_threshold": 1}}  # bench/filters.py measures these
FILLED_AT_ONCE = 10_000
OUTLINKS, URLS_OUT = 20, 30
WARMING_S = 2  # and a quarter more: so long are leases of asks that only warm up


async def filled_guide(folder: Path | str, count: int, hosts: int, clock: Clock | None = None) -> LocalGuide:
    """A guide over a folder that holds `count` waiting URLs."""
    guide = open_guide(folder, Config(), clock)
    try:
        await _fill(guide, count, hosts)
    except BaseException:  # also at Ctrl-C: its threads must not outlive the program
        await guide.close()
        raise
    return guide


async def _fill(guide: LocalGuide, count: int, hosts: int) -> None:
    await guide.define(CRAWL, msgspec.convert(POLICY, Definition))
    rng = np.random.default_rng(0)
    for first in range(0, count, FILLED_AT_ONCE):
        links = waiting_links(first, min(FILLED_AT_ONCE, count - first), hosts, rng)
        await guide.store.discover(CRAWL, links, None, guide.clock.now())
        await guide.store.commit()


def waiting_links(first: int, count: int, hosts: int, rng: np.random.Generator) -> Links:
    """URLs numbered from `first` on, with random priorities."""
    numbers = rng.integers(0, hosts, count).tolist()
    names = [f"h{number:05d}.example" for number in numbers]
    urls = [f"https://{name}/docs/section-{n % 97}/page-{n:08d}.html" for n, name in enumerate(names, first)]
    return Links(
        parent=np.full(count, -1),
        url=texts(urls),
        id=np.array([addresses.identity(url) for url in urls], np.uint64),
        host=texts(names),
        anchor=texts([""] * count),
        position=np.zeros(count, np.int32),
        manual_priority=rng.random(count),
        max_depth=np.full(count, -1, np.int32),
        metadata=texts([None] * count),
        reason=texts([None] * count),
    )


def ask_body(name: str) -> dict[str, Any]:
    return {"mcp_version": VERSION, "crawler_id": "c", "request_id": name, "budget": {"max_urls": URLS_OUT}}


def warming_body(name: str) -> dict[str, Any]:
    """An ask that is not measured, and whose leases end by themselves soon."""
    return ask_body(name) | {"budget": {"max_urls": URLS_OUT, "timeout_ms": WARMING_S * 1_000}}


def report_body(urls: Sequence[str], name: str) -> dict[str, Any]:
    """A report of some pages, each with new links on it."""
    fetches = [fetch_body(url, f"{name}-{number}") for number, url in enumerate(urls)]
    return {"mcp_version": VERSION, "crawler_id": "c", "report_id": name, "fetches": fetches}


def fetch_body(url: str, name: str) -> dict[str, Any]:
    links = [{"url": f"/new/{name}-{n}.html", "anchor": f"page {n}"} for n in range(OUTLINKS)]
    return {"url": url, "status": 200, "elapsed_ms": 120, "bytes": 20_000, "relevance": 0.7, "outlinks": links}


def ask_message(name: str) -> AskMessage:
    return msgspec.convert(ask_body(name), AskMessage)


def report_message(advice: Advice, name: str, pages: int, report: Reporter = report_body) -> ReportMessage:
    """The report of the first pages of an answer."""
    return msgspec.convert(report([one.url for one in advice.assigned_urls[:pages]], name), ReportMessage)
