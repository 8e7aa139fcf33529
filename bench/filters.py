"""What every filter costs for 200 candidates on 40 hosts, in microseconds; and what a link costs when it is found.

    python bench/filters.py

Verdicts that are remembered are warm, as they are from the second ask on. `rules` without rules costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.config import Config
from crawlguide.core.crawls import Definition
from crawlguide.core.types import Ask, Batch, Budget, Crawl, Seed
from crawlguide.guide import intake
from crawlguide.guide.composition import filters
from crawlguide.policy.risk import Risk
from crawlguide.policy.traps import Traps
from crawlguide.store import memory

if TYPE_CHECKING:
    from collections.abc import Callable

CRAWL, NOW, CANDIDATES, TRIES = Crawl("bench", "bench"), 1_794_000_000.0, 200, 500
URLS = [f"https://host{number % 40}.example/part{number % 7}/a-story-of-{number}" for number in range(CANDIDATES)]


def main() -> None:
    batch, ask = asyncio.run(candidates()), Ask(CRAWL, "bench", NOW, Budget(30))
    batch.estimated_ms[:], batch.estimated_bytes[:] = 500.0, 65_536.0
    total = 0.0
    for rule in filters(Config().guide.filters, Definition()):
        cost = best(lambda rule=rule: rule.keep(batch, ask))  # type: ignore[misc]
        total += cost
        print(f"{rule.name:12} {cost:6.1f} µs")
    print(f"{'all':12} {total:6.1f} µs")
    queues, nowhere = [addresses.queue(url) for url in URLS], [""] * CANDIDATES
    for seer in filters(("traps", "risk"), Definition()):
        assert isinstance(seer, Traps | Risk)
        cost = best(lambda seer=seer: seer.sight(queues, URLS, nowhere))  # type: ignore[misc]
        print(f"{seer.name:12} {cost / CANDIDATES:6.2f} µs for a link")


async def candidates() -> Batch:
    store = memory.build(Config().store)
    await store.crawl_put(CRAWL, b"", NOW)
    rules = intake.Rules(judge=lambda _: float("nan"), verdict=lambda _: None)
    await store.discover(CRAWL, intake.seeded([Seed(url) for url in URLS], rules), None, NOW)
    return await store.look(CRAWL, np.array([addresses.identity(url) for url in URLS], np.uint64))


def best(step: Callable[[], object]) -> float:
    """The shortest of many tries: what it costs when nothing else is going on."""
    spent = []
    for _ in range(TRIES):
        start = time.perf_counter()
        step()
        spent.append(time.perf_counter() - start)
    return min(spent) * 1e6


if __name__ == "__main__":
    main()
