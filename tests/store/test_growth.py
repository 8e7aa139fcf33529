"""A crawl of many months stays as large as its quotas say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from crawlguide.core.clock import ManualClock
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, Outlink, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.guide.local import LocalGuide
from crawlguide.store.embedded import EmbeddedStore, writer
from crawlguide.store.embedded import keyspaces as embedded_keyspaces
from crawlguide.store.embedded.disk import FAMILIES
from crawlguide.store.moves.rank import Quota
from crawlguide.store.tables import keyspace

from .builders import CRAWL, fetches, ids, links
from .conftest import KINDS, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from crawlguide.core.protocols import Store

DAY_S = 86_400.0
MONTHS = 10
QUOTA = Quota(urls=200, urls_per_host=50, links=1_500, done=150, keep_done_s=60 * DAY_S)
MAIN = Crawl("default", "main")
DEFINITION = Definition(policy=Policy(default_delay_s=0.0, traps=False), strategy={"kind": "relational"})
SHELVES = {"answers": b"a", "their ends": b"A", "told": b"t", "told's ends": b"T", "leases": b"e", "metadata": b"m"}


@dataclass
class Months:
    """A crawler that finds new pages on new hosts for ever."""

    folder: Path
    clock: ManualClock = field(default_factory=ManualClock)
    calls: int = 0
    found: int = 0

    def open(self) -> None:
        self.store = EmbeddedStore(self.folder, QUOTA)
        self.guide = LocalGuide(self.store, Config(), self.clock)

    async def day(self) -> None:
        """A snapshot that was written is on the disk by the next day, however busy this machine is."""
        for _ in range(3):
            await self.fetch_some()
            self.clock.advance(DAY_S / 4)
            await self.guide.upkeep()
        self.clock.advance(DAY_S / 4)
        self.store._writer._snapshot.join()

    async def fetch_some(self) -> None:
        self.calls += 1
        budget, name = BudgetMessage(5), f"call {self.calls}"
        advice = await self.guide.ask(AskMessage(VERSION, "c-1", budget, request_id=name, crawl_id=MAIN.name))
        given = advice.assigned_urls
        told = [self.fetched(one.url) for one in given[len(given) // 5 :]]  # of five one is never heard of again
        await self.guide.tell(ReportMessage(VERSION, "c-1", told, MAIN.name, report_id=name))

    def fetched(self, url: str) -> Fetch:
        """Every page leads to three new ones, on a host that is new every thirty pages, and to one that is known."""
        new = range(self.found, self.found + 3)
        self.found += 3
        outlinks = [Outlink(f"https://h{number // 30}.org/{number}", metadata={"number": number}) for number in new]
        known = Outlink(f"https://h{new.start // 60}.org/{new.start // 2}")
        return Fetch(url, status=200, fetch_time=f"{self.calls}", relevance=0.5, outlinks=[*outlinks, known])

    def sizes(self) -> dict[str, int]:
        frontier, disk = self.store.frontier(MAIN), self.store._disk
        owner = self.store._owners[MAIN].to_bytes(4, "big")
        kept = {name: _count(disk.items("default", owner + kind)) for name, kind in SHELVES.items()}
        return kept | {
            **{f"bytes of {family}": _bytes(disk.items(family, b"")) for family in ("default", *FAMILIES)},
            "urls": _count(disk.items("urls", owner)),
            "runs of links": _count(disk.items("links", owner)),
            "rows": frontier.index.rows,
            "hosts": len(frontier.hosts),
            "host rows": frontier.hosts.end,
            "domains": len(frontier.hosts.domain_pages),
            "queues": len(self.store.politeness),
            "queue rows": self.store.politeness.end,
            "links": frontier.links_kept,
        }

    def tidy(self) -> None:
        """RocksDB does so by itself, when it has time."""
        disk = self.store._disk
        disk.flush_all()
        for family in ("default", *FAMILIES):
            disk._families[family].compact_range(None, None)

    async def close(self) -> int:
        """Returns how much the folder holds then, but for RocksDB's diary, of which there are never more than three."""
        await self.guide.close()
        return sum(path.stat().st_size for path in self.folder.iterdir() if not path.name.startswith("LOG"))


def _count(items: Iterable[object]) -> int:
    return len(list(items))


def _bytes(items: Iterable[tuple[bytes, bytes]]) -> int:
    return sum(len(key) + len(value) for key, value in items)


async def test_a_crawl_of_many_months_stays_within_its_quotas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LOG_AT_LEAST", 200_000)
    months, sizes = Months(tmp_path), []
    months.open()
    await months.guide.define(MAIN, DEFINITION)
    await months.guide.seed(MAIN, SeedsMessage(["https://h0.org/"]))
    for _ in range(4):
        for _ in range(MONTHS * 30 // 4):
            await months.day()
        sizes.append(months.sizes())
        await months.close()
        months.open()
    stats = (await months.guide.stats()).crawls[MAIN.name]
    months.tidy()
    held = await months.close()
    assert stats.fetches > 8 * (QUOTA.urls + QUOTA.done)  # it was long enough to say something
    journal = max(size.pop("bytes of log") for size in sizes)  # it begins anew when it has outgrown the tables
    half, end = sizes[1], sizes[3]
    assert end["rows"] < 1.5 * (QUOTA.urls + QUOTA.done)
    assert end["links"] <= QUOTA.links
    assert {name: (half[name], size) for name, size in end.items() if size > 1.2 * half[name] + 5} == {}
    assert journal < 2 * end["bytes of rows"]
    assert held < journal + sum(size for name, size in end.items() if name.startswith("bytes of "))


# what goes, and what stays


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store that keeps five pages that are done, for a hundred seconds."""
    found = opened(request.param, Quota(urls=100, urls_per_host=100, links=100, done=5, keep_done_s=100.0), tmp_path)
    await found.crawl_put(CRAWL, b"{}", 0.0)
    yield found
    await found.close()


PAGES = [f"https://h{number % 3}.org/{number}" for number in range(8)]


async def fetched(store: Store, *pages: str, at: float, to: str | None = None) -> None:
    """Pages that all lead to one other."""
    told = fetches(*pages)
    await store.record(CRAWL, told, at, 3)
    if to:
        await store.discover(CRAWL, links(*[to] * len(pages), parent=list(range(len(pages)))), told, at)


async def known_pages(store: Store) -> list[str]:
    found = await store.find(CRAWL, ids(*PAGES))
    return [record.url for record in found if record]


async def test_over_quota_the_pages_fetched_longest_ago_go_first(store: Store) -> None:
    order = [3, 1, 7, 0, 5, 2, 6, 4]
    for at, number in enumerate(order):
        await fetched(store, PAGES[number], at=float(at))
    assert await store.forget_old(CRAWL, 10.0) == 3
    assert sorted(await known_pages(store)) == sorted(PAGES[number] for number in order[3:])
    assert (await store.stats(CRAWL))["forgotten"] == 3


async def test_what_was_fetched_too_long_ago_goes_whatever_the_quota(store: Store) -> None:
    await fetched(store, PAGES[0], at=0.0)
    await fetched(store, PAGES[1], at=50.0)
    await store.discover(CRAWL, links(PAGES[2], reason="scope"), None, 0.0)
    assert await store.forget_old(CRAWL, 101.0) == 2
    assert await known_pages(store) == [PAGES[1]]
    assert (await store.stats(CRAWL))["dropped"] == {}


async def test_a_page_that_waits_or_will_be_fetched_again_is_not_forgotten(store: Store) -> None:
    await fetched(store, *PAGES[:7], at=0.0)
    await store.schedule(CRAWL, ids(*PAGES[:7]), np.full(7, 5_000.0))
    await store.discover(CRAWL, links(PAGES[7]), None, 0.0)
    assert await store.forget_old(CRAWL, 1_000.0) == 0
    assert await known_pages(store) == PAGES


async def test_a_forgotten_page_that_is_linked_again_is_new_again(store: Store) -> None:
    await fetched(store, PAGES[0], at=0.0)
    await store.forget_old(CRAWL, 200.0)
    told = fetches(PAGES[1])
    await store.record(CRAWL, told, 201.0, 3)
    assert (await store.discover(CRAWL, links(PAGES[0], parent=0), told, 201.0)).new == 1
    found = (await store.find(CRAWL, ids(PAGES[0])))[0]
    assert found is not None
    assert (found.state, found.fetched) == ("queued", None)


async def test_links_of_forgotten_pages_make_room_for_others(store: Store) -> None:
    await fetched(store, *PAGES[:4], at=0.0, to=PAGES[7])
    assert store.frontier(CRAWL).links_kept == 4  # type: ignore[attr-defined]
    await store.forget_old(CRAWL, 200.0)
    assert store.frontier(CRAWL).links_kept == 0  # type: ignore[attr-defined]
    assert len(await store.parents(CRAWL, ids(PAGES[7]))) == 0


async def test_a_page_that_was_forgotten_and_came_back_is_one_parent(store: Store) -> None:
    for at in (0.0, 200.0):
        await fetched(store, PAGES[0], PAGES[1], at=at, to=PAGES[7])
        await store.forget_old(CRAWL, at + 150.0)
    await fetched(store, PAGES[0], at=400.0, to=PAGES[7])
    frontier = store.frontier(CRAWL)  # type: ignore[attr-defined]
    row = int(frontier.index.find(ids(PAGES[7]))[0])
    assert frontier.parents(row, 10).parent.tolist() == ids(PAGES[0]).tolist()


async def test_hosts_of_which_nothing_is_left_and_queues_nobody_knows_are_forgotten(store: Store) -> None:
    await fetched(store, *PAGES[:3], at=0.0)
    await store.forget_old(CRAWL, 200.0)
    assert (await store.stats(CRAWL))["hosts"] == 0
    await store.forget_old(CRAWL, 2 * DAY_S)
    assert len(store.politeness) == 0  # type: ignore[attr-defined]


async def test_of_too_many_answers_in_a_folder_those_that_end_first_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyspace, "MOST_ANSWERS", 50)
    for half in range(2):  # a restart goes on counting
        store = EmbeddedStore(tmp_path, QUOTA)
        await store.crawl_put(CRAWL, b"{}", 0.0)
        for number in range(250 * half, 250 * half + 250):
            await store.answer_put(CRAWL, f"a{number}", b"x", 1e9 + number)
            await store.answer_get(CRAWL, "none", 1.0)
            await store.commit(durable=False)
        await store.expire(CRAWL, 1.0)
        kept = [number for number in range(500) if await store.answer_get(CRAWL, f"a{number}", 1.0)]
        assert kept == list(range(250 * half + 200, 250 * half + 250))
        await store.close()


async def test_a_crawler_that_asks_for_long_and_reports_at_once_leaves_no_leases_behind(tmp_path: Path) -> None:
    store, clock = EmbeddedStore(tmp_path, QUOTA), ManualClock()
    guide = LocalGuide(store, Config(), clock)
    await guide.define(MAIN, DEFINITION)
    await guide.seed(MAIN, SeedsMessage([f"https://h{number}.org/" for number in range(100)]))
    for number in range(50):
        ask = AskMessage(VERSION, f"c-{number % 3}", BudgetMessage(2, timeout_ms=604_800_000), crawl_id=MAIN.name)
        given = [url.url for url in (await guide.ask(ask)).assigned_urls]
        await guide.tell(ReportMessage(VERSION, ask.crawler_id, [Fetch(url, 200) for url in given], MAIN.name))
        clock.advance(1.0)
    assert (await store.stats(MAIN))["done"] == 100
    leases = store.frontier(MAIN).leases
    assert not list(embedded_keyspaces.of_crawl(store._disk, store._owners[MAIN]).leases.items())
    assert not any([leases._numbers, leases._held])
    await store.close()
