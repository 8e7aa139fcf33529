"""Add and next, as other frontiers are measured: URLs in by the hundred, each on the disk; then all out again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.config import Config, GuideOptions
from crawlguide.core.definition import Definition
from crawlguide.core.messages import VERSION, AskMessage, SeedsMessage
from crawlguide.gateway.opening import open_guide
from crawlguide.lab.speed.frontier import CRAWL

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide

BATCH = 100
DEFINITION = {
    "policy": {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0},
    "strategy": {"kind": "breadth-first"},
}


async def measure_add_next(folder: Path, count: int, hosts: int) -> dict[str, Any]:
    guide = open_guide(folder, Config(guide=GuideOptions()))
    await guide.define(CRAWL, msgspec.convert(DEFINITION, Definition))
    urls = [f"https://h{n % hosts:05d}.example/docs/section-{n % 97}/page-{n:08d}.html" for n in range(count)]
    cpu, began = time.process_time(), time.perf_counter()
    for first in range(0, count, BATCH):
        await guide.seed(CRAWL, SeedsMessage([*urls[first : first + BATCH]]))
    added = time.perf_counter()
    out = await take_all(guide, count)
    ended = time.perf_counter()
    if sorted(out) != sorted(urls):
        raise RuntimeError("not every URL came out exactly once")
    spent = time.process_time() - cpu
    await guide.close()
    return {
        "peer": "crawlguide",
        "count": count,
        "add_per_s": count / (added - began),
        "next_per_s": count / (ended - added),
        "add_next_per_s": count / (ended - began),
        "cpu_us_per_url": spent / count * 1e6,
        "lacks": "nothing of these: each add is on the disk, each next is a lease that survives a crash",
    }


async def take_all(guide: LocalGuide, count: int) -> list[str]:
    out: list[str] = []
    message = {"mcp_version": VERSION, "crawler_id": "c", "budget": {"max_urls": BATCH, "timeout_ms": 3_600_000}}
    while len(out) < count:
        assigned = (await guide.ask(msgspec.convert(message, AskMessage))).assigned_urls
        if not assigned:
            break
        out += [one.url for one in assigned]
    return out
