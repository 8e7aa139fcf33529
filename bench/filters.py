"""What every filter costs for 200 candidates on 40 hosts, in microseconds of CPU; and what a link costs when found.

    python bench/filters.py

`known`: all 200 were looked at before, as most are from the second ask on. `30 new`: 30 of them were not, and their
texts are read. `rules` without rules costs nothing, and `robots` without a file.
"""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.columns import texts
from crawlguide.core.config import Config
from crawlguide.core.crawls import Definition
from crawlguide.core.messages import Fetch, Outlink
from crawlguide.core.types import Ask, Batch, Budget, Crawl, Lesson, Seed
from crawlguide.guide import intake
from crawlguide.guide.composition import filters
from crawlguide.policy.risk import Risk
from crawlguide.policy.traps import Traps
from crawlguide.store import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CRAWL, NOW, CANDIDATES, NEW, TRIES = Crawl("bench", "bench"), 1_794_000_000.0, 200, 30, 200
RULES = intake.Rules(judge=lambda _: float("nan"), verdict=lambda _: None)


def main() -> None:
    batches, ask = asyncio.run(candidates()), Ask(CRAWL, "bench", NOW, Budget(30))
    totals = [0.0, 0.0]
    print(f"{'':12} {'known':>8} {'30 new':>8}")
    for rule in filters(Config().guide.filters, Definition()):
        rule.keep(batches[0], ask)
        known = usual(lambda batch, rule=rule: rule.keep(batch, ask), batches[:1] * TRIES)  # type: ignore[misc]
        new = usual(lambda batch, rule=rule: rule.keep(batch, ask), batches[1:])  # type: ignore[misc]
        totals = [totals[0] + known, totals[1] + new]
        print(f"{rule.name:12} {known:8.1f} {new:8.1f}")
    print(f"{'all':12} {totals[0]:8.1f} {totals[1]:8.1f}")
    for size in (20, 200):
        for name, cost in links(size):
            print(f"{name:12} {cost / size:8.2f} for each of {size} links")


def url(number: int) -> str:
    return f"https://host{number % 40}.example/part{number % 7}/a-story-of-{number}"


async def candidates() -> list[Batch]:
    """One batch, and others that hold other URLs in its last rows."""
    store, count = memory.build(Config().store), CANDIDATES + TRIES * NEW
    await store.crawl_put(CRAWL, b"", NOW)
    await store.discover(CRAWL, intake.seeded([Seed(url(number)) for number in range(count)], RULES), None, NOW)
    ids = np.array([addresses.identity(url(number)) for number in range(count)], np.uint64)
    others = np.split(ids[CANDIDATES:], TRIES)
    found = [await store.look(CRAWL, np.concatenate([ids[: CANDIDATES - len(new)], new])) for new in [ids[:0], *others]]
    for batch in found:
        batch.estimated_ms[:], batch.estimated_bytes[:], batch.depth[:] = 500.0, 65_536.0, 1.0
    return found


def links(size: int) -> Iterator[tuple[str, float]]:
    """What filters do when a page with so many new links is told: half of them lead to other domains."""
    reports = [report(size, number) for number in range(TRIES)]
    for seer in filters(("traps", "risk"), Definition()):
        assert isinstance(seer, Traps | Risk)
        yield f"{seer.name} sees", usual(lambda columns, seer=seer: seer.sight(*columns[0]), reports)  # type: ignore[misc]
        if isinstance(seer, Traps):
            yield f"{seer.name} learns", usual(lambda columns, seer=seer: seer.learn(columns[1]), reports)  # type: ignore[misc]


def report(size: int, number: int) -> tuple[tuple[list[str], list[str], list[str]], Lesson]:
    page = f"https://host{number % 40}.example/"
    found = [url(CANDIDATES + size * number + link) if link % 2 else f"/new/{number}-{link}" for link in range(size)]
    fetch = Fetch(url=page, status=200, outlinks=[Outlink(url=one, anchor=f"page {one}") for one in found])
    told = intake.reported([fetch], CRAWL, "bench", NOW, RULES)
    empty = texts([""])
    lesson = Lesson(NOW, told.fetches, empty, empty, told.links, np.ones(len(told.links), np.bool_))
    seen = told.links.host.tolist(), told.links.url.tolist(), [addresses.queue(page)] * len(told.links)
    return seen, lesson


def usual(step: Callable[[Any], object], given: list[Any]) -> float:
    """Half of the tries are faster."""
    spent = []
    for one in given:
        start = time.thread_time_ns()
        step(one)
        spent.append(time.thread_time_ns() - start)
    return median(spent) / 1e3


if __name__ == "__main__":
    main()
