"""What every filter costs for 200 candidates on 40 hosts, in microseconds of CPU; and what a link costs when found.

    python bench/filters.py

`known`: all 200 were looked at before, as most are from the second ask on. `30 found`: 30 of them were found by links
since, as most new ones are. `30 strange`: 30 of them came by an import, so their texts are read. Each host has a
robots.txt of 20 rules. `rules` without rules costs nothing.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.columns import texts
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition
from crawlguide.core.messages import Fetch, Outlink
from crawlguide.core.protocols import JudgesLinks, LearnsFromFetches
from crawlguide.core.types import Ask, Batch, Budget, Crawl, Lesson, Seed
from crawlguide.guide.crawl.composition import filters
from crawlguide.guide.tell.intake import IntakeRules, reported, seeded
from crawlguide.policy.risk import Risk
from crawlguide.policy.robots import Robots
from crawlguide.policy.robots.cache import CachedRobots, RobotsCache, RobotsRules
from crawlguide.policy.traps import Traps
from crawlguide.store import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crawlguide.core.protocols import Filter
    from crawlguide.core.tables import U64

CRAWL, NOW, HOSTS = Crawl("bench", "bench"), 1_794_000_000.0, 40
CANDIDATES, NEW, TRIES = 200, 30, 40
RULES = IntakeRules(judge=lambda _: float("nan"), verdict=lambda _: None)


def main() -> None:
    batches, ask = asyncio.run(candidates()), Ask(CRAWL, "bench", NOW, Budget(30))
    totals = [0.0, 0.0, 0.0]
    print(f"{'':12} {'known':>8} {'30 found':>8} {'30 strange':>10}")
    for rule in filters(Config().guide.filters, Definition()):
        judge = replace(rule, cache=files(rule)) if isinstance(rule, Robots) else rule
        costs = spent(judge, batches, ask)
        totals = [total + cost for total, cost in zip(totals, costs, strict=True)]
        print(f"{rule.name:12} {costs[0]:8.1f} {costs[1]:8.1f} {costs[2]:10.1f}")
    print(f"{'all':12} {totals[0]:8.1f} {totals[1]:8.1f} {totals[2]:10.1f}")
    for size in (20, 200):
        for name, cost in links(size):
            print(f"{name:12} {cost / size:8.2f} for each of {size} links")


def spent(rule: Filter, batches: list[Batch], ask: Ask) -> list[float]:
    """What the filter costs for a batch it knows; with rows that were found since; with rows nobody has looked at."""

    def keep(batch: Batch) -> None:
        rule.keep(batch, ask)

    keep(batches[0])
    again = [batches[0].take(np.arange(CANDIDATES)) for _ in range(TRIES)]  # an ask never sees the same batch twice
    known, strange = usual(keep, again), usual(keep, batches[1 : 1 + TRIES])
    for batch in batches[1 + TRIES :]:
        find(rule, batch.take(np.arange(CANDIDATES - NEW, CANDIDATES)))
    return [known, usual(keep, batches[1 + TRIES :]), strange]


def find(rule: Filter, new: Batch) -> None:
    """A page of each URL's host links to it."""
    found = new.url.tolist()
    pages = [addresses.canonical("/", one) for one in found]
    fetches = [Fetch(url=page, status=200, outlinks=[Outlink(url=one)]) for page, one in zip(pages, found, strict=True)]
    told = asyncio.run(reported(fetches, CRAWL, "bench", NOW, RULES))
    queues = [addresses.queue(page) for page in pages]
    if isinstance(rule, JudgesLinks):
        rule.judge_links(told.links.host.tolist(), told.links.url.tolist(), queues, told.links.id)
    if isinstance(rule, LearnsFromFetches):
        empty = texts([""] * len(fetches))
        rule.learn(Lesson(NOW, told.fetches, empty, empty, told.links, np.ones(len(told.links), np.bool_)))


def files(rule: Robots) -> RobotsCache:
    """Each host has a robots.txt."""
    known, body = RobotsCache(fetched=True), b"User-agent: *\n" + b"".join(b"Disallow: /no%d/\n" % n for n in range(20))
    for host in range(HOSTS):
        known.put(f"https://host{host}.example", CachedRobots(body, NOW, NOW, 0, 1))
        known.compiled(f"https://host{host}.example", rule.agent, RobotsRules.read(body, rule.agent))
    return known


def url(number: int) -> str:
    return f"https://host{number % HOSTS}.example/part{number % 7}/a-story-of-{number}"


async def candidates() -> list[Batch]:
    """One batch, and others that hold other URLs in its last rows."""
    store, count = memory.build(Config().store), CANDIDATES + 2 * TRIES * NEW
    await store.crawl_put(CRAWL, b"", NOW)
    await store.discover(CRAWL, seeded([Seed(url(number)) for number in range(count)], RULES), None, NOW)
    ids = np.array([addresses.identity(url(number)) for number in range(count)], np.uint64)
    others = np.split(ids[CANDIDATES:], 2 * TRIES)
    found = [await store.look(CRAWL, np.concatenate([ids[: CANDIDATES - len(new)], new])) for new in [ids[:0], *others]]
    for batch in found:
        batch.estimated_ms[:], batch.estimated_bytes[:], batch.depth[:] = 500.0, 65_536.0, 1.0
    return found


def links(size: int) -> Iterator[tuple[str, float]]:
    """What filters do when a page with so many new links is told: half of them lead to other domains."""
    reports = [report(size, number) for number in range(TRIES)]
    for seer in filters(("traps", "risk"), Definition()):
        assert isinstance(seer, Traps | Risk)
        yield f"{seer.name} sees", usual(lambda columns, seer=seer: seer.judge_links(*columns[0]), reports)  # type: ignore[misc]
        if isinstance(seer, Traps):
            yield f"{seer.name} learns", usual(lambda columns, seer=seer: seer.learn(columns[1]), reports)  # type: ignore[misc]


def report(size: int, number: int) -> tuple[tuple[list[str], list[str], list[str], U64], Lesson]:
    page = f"https://host{number % HOSTS}.example/"
    found = [url(CANDIDATES + size * number + link) if link % 2 else f"/new/{number}-{link}" for link in range(size)]
    fetch = Fetch(url=page, status=200, outlinks=[Outlink(url=one, anchor=f"page {one}") for one in found])
    told = asyncio.run(reported([fetch], CRAWL, "bench", NOW, RULES))
    empty = texts([""])
    lesson = Lesson(NOW, told.fetches, empty, empty, told.links, np.ones(len(told.links), np.bool_))
    pages = [addresses.queue(page)] * len(told.links)
    seen = told.links.host.tolist(), told.links.url.tolist(), pages, told.links.id
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
