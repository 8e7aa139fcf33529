"""What one ask costs when the frontier grows: 200 candidates through the whole corridor, 30 URLs out.

    .venv/bin/python bench/corridor.py [--urls 1000000 5000000] [--json FILE]

CPU time of this process. Machines differ, and one machine differs from minute to minute, so each ask is measured
beside a peer: a plain Python heap of as many URLs that pops 200 entries and pushes them back, which has neither
hosts nor politeness, leases, scores or reasons. The two ratios, to the peer and to the smaller frontier, are what
counts.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import heapq
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from crawlguide.core import urls as url_words
from crawlguide.core.columns import texts
from crawlguide.core.config import Config
from crawlguide.core.crawls import Definition
from crawlguide.core.messages import AskMessage, ReportMessage
from crawlguide.core.types import Crawl, Links
from crawlguide.guide.local import LocalGuide
from crawlguide.store import memory
from crawlguide.testing import ManualClock

CRAWL = Crawl("default", "default")
ASKS, WARM_UP, OUTLINKS, CANDIDATES, BLOCK = 400, 50, 20, 200, 25


def frontier_links(first: int, count: int, hosts: int, chance: np.random.Generator) -> Links:
    """`count` URLs with random priorities over `hosts` hosts."""
    numbers = chance.integers(0, hosts, count)
    names = [f"h{number:05d}.example" for number in numbers.tolist()]
    found = [f"https://{name}/docs/section-{n % 97}/page-{n:08d}.html" for n, name in enumerate(names, first)]
    return Links(
        parent=np.full(count, -1),
        url=texts(found),
        id=np.array([url_words.identity(url) for url in found], np.uint64),
        host=texts(names),
        anchor=texts([""] * count),
        position=np.zeros(count, np.int32),
        given=chance.random(count),
        max_depth=np.full(count, -1, np.int32),
        metadata=texts([None] * count),
        reason=texts([None] * count),
    )


async def filled(count: int, hosts: int) -> LocalGuide:
    config = Config()
    guide = LocalGuide(memory.build(config.store), config, ManualClock())
    await guide.define(CRAWL, msgspec.convert({"policy": {"robots": "ignore"}}, Definition))
    chance = np.random.default_rng(0)
    for first in range(0, count, 100_000):
        await guide.store.discover(CRAWL, frontier_links(first, min(100_000, count - first), hosts, chance), None, 0.0)
    return guide


def ask_message(number: int) -> AskMessage:
    return msgspec.convert(
        {"mcp_version": "2025-11", "crawler_id": "c", "request_id": str(number), "budget": {"max_urls": 30}}, AskMessage
    )


def report(advice: Any, number: int) -> ReportMessage:
    """One assigned page came well, with new links on it."""
    url = advice.assigned_urls[0].url
    links = [{"url": f"/new/{number}-{n}.html", "anchor": f"page {n}"} for n in range(OUTLINKS)]
    fetch = {"url": url, "status": 200, "elapsed_ms": 120, "bytes": 20_000, "relevance": 0.7, "outlinks": links}
    return msgspec.convert({"mcp_version": "2025-11", "crawler_id": "c", "fetches": [fetch]}, ReportMessage)


def plain_heap(count: int) -> list[tuple[float, int]]:
    """The peer: priorities and numbers of as many URLs."""
    priorities = np.random.default_rng(1).random(count).tolist()
    heap = list(zip(priorities, range(count), strict=True))
    heapq.heapify(heap)
    return heap


def looked_at(heap: list[tuple[float, int]]) -> int:
    """Look at the best candidates and put them back; returns the CPU time it took."""
    began = time.process_time_ns()
    taken = [heapq.heappop(heap) for _ in range(CANDIDATES)]
    for priority, number in taken:
        heapq.heappush(heap, (1.0 - priority, number))
    return time.process_time_ns() - began


@dataclass
class Subject:
    """One size of frontier with its peer, and the times measured so far."""

    count: int
    guide: LocalGuide
    heap: list[tuple[float, int]]
    number: int = 0
    asks: list[int] = field(default_factory=list)
    tells: list[int] = field(default_factory=list)
    peers: list[int] = field(default_factory=list)

    async def block(self) -> None:
        """Some asks and tells, then as many looks at the peer, so that neither works with the other's caches."""
        clock = self.guide.clock
        assert isinstance(clock, ManualClock)
        for _ in range(BLOCK):
            clock.advance(0.05)
            self.number += 1
            message = ask_message(self.number)
            began = time.process_time_ns()
            advice = await self.guide.ask(message)
            self.asks.append(time.process_time_ns() - began)
            assert len(advice.assigned_urls) == 30
            told = report(advice, self.number)
            began = time.process_time_ns()
            await self.guide.tell(told)
            self.tells.append(time.process_time_ns() - began)
        self.peers += [looked_at(self.heap) for _ in range(BLOCK)]

    def figures(self) -> dict[str, float]:
        ask, tell, peer = (np.array(times[WARM_UP:]) / 1e3 for times in (self.asks, self.tells, self.peers))
        return {
            "urls": self.count,
            "ask_us_mean": float(ask.mean()),
            "ask_us_p50": float(np.median(ask)),
            "ask_us_p99": float(np.quantile(ask, 0.99)),
            "peer_us_p50": float(np.median(peer)),
            "to_peer": float(np.median(ask) / np.median(peer)),
            "tell_us_mean": float(tell.mean()),
            "link_us_mean": float(tell.mean() / OUTLINKS),
        }


async def measured(counts: list[int], hosts: int) -> list[dict[str, float]]:
    """All sizes in turns, block by block: a slow minute of the machine hits them alike."""
    subjects = [Subject(count, await filled(count, hosts), plain_heap(count)) for count in counts]
    gc.collect()
    gc.freeze()
    for _ in range((WARM_UP + ASKS) // BLOCK):
        for subject in subjects:
            await subject.block()
    return [subject.figures() for subject in subjects]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--urls", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000])
    arguments.add_argument("--hosts", type=int, default=10_000)
    arguments.add_argument("--json", type=Path)
    given = arguments.parse_args()
    rows = asyncio.run(measured(given.urls, given.hosts))
    print("     urls  ask µs    p50    p99  to first  peer µs  to peer  tell µs  µs/link")
    for row in rows:
        growth = row["ask_us_p50"] / rows[0]["ask_us_p50"]
        print(
            f"{row['urls']:>9.0f} {row['ask_us_mean']:>7.0f} {row['ask_us_p50']:>6.0f} {row['ask_us_p99']:>6.0f} "
            f"{growth:>9.2f} {row['peer_us_p50']:>8.0f} {row['to_peer']:>8.2f} "
            f"{row['tell_us_mean']:>8.0f} {row['link_us_mean']:>8.1f}"
        )
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
