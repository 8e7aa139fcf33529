"""Tenants share the pace of hosts, and nothing else: each finds what it would find alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crawlguide.core.clock import ManualClock
from crawlguide.core.config import Config, CrawlsOptions, TenantOptions
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.errors import MalformedRequest, NotFound, RateLimited, TooLarge
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, Outlink, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl, Usage
from crawlguide.gateway.opening import MEMORY, counts, open_guide, title
from crawlguide.guide import local
from crawlguide.guide.crawl import crawls as crawls_module

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from crawlguide.guide.local import LocalGuide

POLICY = Policy(default_delay_s=0.0, max_per_host=0, robots="ignore")
ALIKE = [("a", "b/c"), ("a/b", "c"), ("a", "b"), ("a\0b", "c"), ("a", "b\0c"), ("A", "b"), ("é", "b"), ("e\u0301", "b"),
         ("default", "default"), ("default/default", ""), ("default", "default/")]  # fmt: skip


@pytest.fixture(params=["memory", "folder"])
async def guide(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LocalGuide]:
    found = open_guide(MEMORY if request.param == "memory" else tmp_path / "data", Config(), ManualClock())
    yield found
    await found.close()


async def asked(guide: LocalGuide, crawl: Crawl, many: int = 3) -> list[str]:
    answer = await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(many), crawl_id=crawl.name), crawl.tenant)
    return [one.url for one in answer.assigned_urls]


async def test_crawls_whose_names_look_alike_have_nothing_in_common(tmp_path: Path) -> None:
    guide, crawls = open_guide(tmp_path / "data", Config(), ManualClock()), [Crawl(*names) for names in ALIKE]
    for number, crawl in enumerate(crawls):
        await guide.define(crawl, Definition(policy=POLICY))
        await guide.seed(crawl, SeedsMessage([f"https://h{number}.org/{page}" for page in range(number + 1)]))
        page = Fetch(f"https://h{number}.org/told", 200, outlinks=[Outlink(f"https://h{number}.org/found")])
        await guide.tell(ReportMessage(VERSION, "c-1", [page], crawl.name, "same id"), crawl.tenant)
    await guide.close()
    guide = open_guide(tmp_path / "data", Config(), ManualClock())
    for number, crawl in enumerate(crawls):
        records, _ = await guide.store.scan(crawl, None, None, 100, None)
        assert {record.url.split("/")[2] for record in records} == {f"h{number}.org"}
        assert len(records) == number + 3
    await guide.delete(crawls[0])
    assert [len(await asked(guide, crawl, 100)) for crawl in crawls[1:]] == [
        number + 2 for number in range(1, len(crawls))
    ]
    assert not await asked(guide, crawls[0], 100)
    await guide.close()


async def test_a_crawl_of_another_tenant_is_not_there(guide: LocalGuide) -> None:
    await guide.define(Crawl("one", "secret"), Definition(policy=POLICY))
    with pytest.raises(NotFound) as refusal:
        await guide.stats("two", "secrets")
    assert "did you mean" not in refusal.value.message
    assert (await guide.stats("two")).crawls == {}
    assert await guide.crawls.names("two") == []


async def test_a_crawl_begins_with_what_one_of_its_own_tenant_has_learned_only(guide: LocalGuide) -> None:
    await guide.define(Crawl("one", "old"), Definition(policy=POLICY))
    new = Definition(policy=POLICY, strategy={"kind": "layered", "warm_start": "old"})
    with pytest.raises(MalformedRequest, match="none is named 'old'"):
        await guide.define(Crawl("two", "new"), new)
    assert await guide.define(Crawl("one", "new"), new)


async def test_each_tenant_is_told_how_many_of_its_own_asks_were_answered(guide: LocalGuide) -> None:
    for tenant, times in (("one", 3), ("two", 5)):
        for _ in range(times):
            await asked(guide, Crawl(tenant, "main"))
    numbers = [(await guide.stats(tenant)).num_queries_completed for tenant in ("one", "two", "three")]
    assert numbers == [3, 5, 0]


async def test_upkeep_serves_every_tenant(guide: LocalGuide) -> None:
    crawls = [Crawl(tenant, "main") for tenant in ("one", "two", "default")]
    for number, crawl in enumerate(crawls):
        await guide.define(crawl, Definition(policy=POLICY))
        await guide.seed(crawl, SeedsMessage([f"https://h{number}.org/"]))
        assert await asked(guide, crawl)
    guide.clock.advance(1_000.0)  # type: ignore[attr-defined]
    await guide.upkeep()
    assert [(await guide.store.stats(crawl))["queued"] for crawl in crawls] == [1, 1, 1]


async def test_upkeep_serves_very_many_crawls_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "KEPT_UP", 4)
    guide, served = open_guide(MEMORY, Config(), ManualClock()), list[Crawl]()
    crawls = [Crawl(f"t{number % 3}", f"c{number}") for number in range(10)]
    for crawl in crawls:
        await guide.define(crawl, Definition(policy=POLICY))
    real = guide.store.expire

    async def expire(crawl: Crawl, at: float) -> int:
        served.append(crawl)
        return await real(crawl, at)

    monkeypatch.setattr(guide.store, "expire", expire)
    for _ in range(3):
        await guide.upkeep()
    assert sorted(served) == sorted(crawls)
    await guide.delete(crawls[0])
    for _ in range(3):
        await guide.upkeep()
    assert sorted(served[10:]) == sorted(crawls[1:])
    await guide.close()


async def test_usage_counts_what_a_tenant_keeps_and_nobody_else(guide: LocalGuide) -> None:
    assert await guide.store.usage("one") == Usage(0, 0, 0)
    small, large = Crawl("one", "small"), Crawl("two", "large")
    for crawl, many in ((small, 10), (large, 500)):
        await guide.define(crawl, Definition(policy=POLICY))
        await guide.seed(crawl, SeedsMessage([f"https://h.org/{'x' * 500}{page}" for page in range(many)]))
    one, two = await guide.store.usage("one"), await guide.store.usage("two")
    assert (one[:2], two[:2]) == ((1, 10), (1, 500))
    assert two.bytes - one.bytes > 490 * 600
    await guide.store.purge(large, None, None)
    assert (await guide.store.usage("two")).bytes < two.bytes - 490 * 500
    await guide.delete(large)
    assert await guide.store.usage("two") == Usage(0, 0, 0)


async def test_what_is_said_on_opening_is_of_all_tenants(guide: LocalGuide) -> None:
    for crawl in (Crawl("one", "main"), Crawl("default", "main")):
        await guide.seed(crawl, SeedsMessage(["https://a.org/"]))
    assert [title(crawl) for crawl in await counts(guide)] == ["main", "main of tenant one"]


class Alone:
    """Random work of one tenant on hosts of its own; `told` is all that it was answered."""

    def __init__(self, guide: LocalGuide, tenant: str, seed: int) -> None:
        self.guide, self.tenant, self.chance, self.told = guide, tenant, np.random.default_rng(seed), list[Any]()

    async def step(self) -> None:
        crawl = Crawl(self.tenant, f"crawl {self.chance.integers(3)}")
        action = self.chance.integers(6)
        urls = [
            f"https://{self.tenant}{number % 5}.org/{number}" for number in self.chance.integers(0, 200, 5).tolist()
        ]
        if action == 0:
            self.told.append(await self.guide.seed(crawl, SeedsMessage([*urls])))
        elif action == 1:
            self.told.append((await self.guide.stats(self.tenant)).crawls)
        elif action == 2 and self.chance.random() < 0.1:
            if crawl in await self.guide.crawls.names(self.tenant):
                await self.guide.delete(crawl)
        elif action == 3:
            pages = [Fetch(url, 200, relevance=0.5, outlinks=[Outlink(other) for other in urls]) for url in urls[:2]]
            self.told.append(await self.guide.tell(ReportMessage(VERSION, "c-1", pages, crawl.name), self.tenant))
        else:
            self.told.append(await asked(self.guide, crawl))


async def test_two_tenants_behave_as_if_alone() -> None:
    def opened() -> LocalGuide:
        return open_guide(MEMORY, Config(crawls=CrawlsOptions(max_loaded=2)), ManualClock(), seed=3)

    alone = []
    for tenant in ("one", "two"):
        worker = Alone(opened(), tenant, len(tenant) + ord(tenant[0]))
        for _ in range(150):
            await worker.step()
            worker.guide.clock.advance(1.0)  # type: ignore[attr-defined]
        alone.append(worker.told)
    shared = opened()
    workers = [Alone(shared, tenant, len(tenant) + ord(tenant[0])) for tenant in ("one", "two")]
    for _ in range(150):
        for worker in workers:
            await worker.step()
        shared.clock.advance(1.0)  # type: ignore[attr-defined]
    for worker, told in zip(workers, alone, strict=True):
        for here, there in zip(worker.told, told, strict=True):
            assert here == there


async def test_what_a_tenant_makes_up_about_a_host_changes_nothing_for_others(guide: LocalGuide) -> None:
    mine, theirs = Crawl("mine", "a"), Crawl("theirs", "a")
    await guide.define(mine, Definition(policy=POLICY))
    await guide.seed(mine, SeedsMessage([f"https://h.org/{page}" for page in range(5)]))
    lies = [Fetch(f"https://h.org/lie-{n}", 429, elapsed_ms=60_000, bytes=1e9, retry_after_s=9e4) for n in range(9)]
    await guide.tell(ReportMessage(VERSION, "c-1", lies, "a"), theirs.tenant, trains=False)
    sizes = [Fetch(f"https://h.org/size-{n}", 200, bytes=1e9) for n in range(9)]
    await guide.tell(ReportMessage(VERSION, "c-1", sizes, "a"), theirs.tenant)
    budget = BudgetMessage(3, max_bytes=50_000_000)
    answer = await guide.ask(AskMessage(VERSION, "c-1", budget, crawl_id="a"), mine.tenant)
    assert [one.estimated_bytes for one in answer.assigned_urls] == [65_536] * 3
    assert max(one.estimated_fetch_ms for one in answer.assigned_urls) < 1_000


@pytest.mark.parametrize("at_once", [1, 4])
async def test_a_quota_of_urls_holds_within_a_long_request(at_once: int) -> None:
    config = Config(tenant=(TenantOptions(name="small", max_urls=100),))
    guide, crawl = open_guide(MEMORY, config, ManualClock()), Crawl("small", "a")
    await guide.define(crawl, Definition(policy=POLICY))
    seeds = [SeedsMessage([f"https://h{n}.org/{page}" for page in range(5_000)]) for n in range(at_once)]
    refusals = await asyncio.gather(*(guide.seed(crawl, some) for some in seeds), return_exceptions=True)
    assert {type(refusal) for refusal in refusals} == {TooLarge}
    assert (await guide.store.usage("small")).urls <= 100 + at_once * local.SEEDS_AT_ONCE
    await guide.close()


async def test_of_very_many_tenants_those_that_came_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens may name any number of them; the bound on crawls that nobody defined holds for each all the same."""
    monkeypatch.setattr(local, "TENANTS_COUNTED", 3)
    monkeypatch.setattr(crawls_module, "TENANTS_NOTED", 2)
    guide = open_guide(MEMORY, Config(crawls=CrawlsOptions(max_auto_created=1)), ManualClock())
    for number in range(5):
        await asked(guide, Crawl(f"t{number}", "first"))
    assert (len(guide._queries), len(guide.crawls._undefined)) == (3, 2)
    assert [guide.totals(f"t{number}").num_queries_completed for number in range(5)] == [0, 0, 1, 1, 1]
    for number in range(5):
        with pytest.raises(RateLimited, match="max_auto_created"):
            await asked(guide, Crawl(f"t{number}", "second"))
    await guide.close()
