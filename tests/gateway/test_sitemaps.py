"""Sitemaps that robots.txt files name: read once and politely, followed, bounded, and judged like any page's links."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawlguide.core import urls
from crawlguide.core.config import Config
from crawlguide.core.definition import Definition, Policy
from crawlguide.core.messages import VERSION, AskMessage, BudgetMessage, Fetch, ReportMessage, SeedsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import sitemaps
from crawlguide.gateway.opening import open_guide
from crawlguide.gateway.sitemaps import Sitemaps, read
from crawlguide.guide.explain import explain
from crawlguide.guide.local import LocalGuide
from crawlguide.guide.robots.keeper import Named
from crawlguide.guide.robots.outgoing import Answer
from crawlguide.testing import ManualClock

CRAWL = Crawl("default", "default")
MAP = "https://a.org/map.xml"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


class Web:
    """Answers with what was laid there, and remembers when it was asked."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.files: dict[str, Answer] = {}
        self.asked: list[str] = []

    async def get(self, url: str, agent: str, most_bytes: int) -> Answer:
        self.asked.append(url)
        found = self.files.get(url, Answer(404))
        return Answer(found.status, found.body[:most_bytes], cut=len(found.body) > most_bytes)


def urlset(*entries: str) -> bytes:
    return f"<urlset {NAMESPACE}>{''.join(f'<url>{one}</url>' for one in entries)}</urlset>".encode()


def index(*locations: str) -> bytes:
    nested = "".join(f"<sitemap><loc>{one}</loc></sitemap>" for one in locations)
    return f"<sitemapindex {NAMESPACE}>{nested}</sitemapindex>".encode()


@pytest.fixture
def web(clock: ManualClock) -> Web:
    found = Web(clock)
    found.files["https://a.org/robots.txt"] = Answer(200, f"Sitemap: {MAP}\nUser-agent: *\nDisallow: /private".encode())
    return found


@pytest.fixture
def guide(clock: ManualClock) -> LocalGuide:
    opened = open_guide(":memory:", Config(), clock)
    opened.robots.cache.fetched = True
    return opened


async def crawled(guide: LocalGuide, web: Web, **policy: Any) -> None:
    """A crawl that has read the robots.txt and whatever sitemaps that led to."""
    policy = {"sitemaps": True, "default_delay_s": 0, **policy}
    await guide.define(CRAWL, Definition(policy=Policy(**policy)))
    await guide.seed(CRAWL, SeedsMessage(["https://a.org/"]))
    await ask(guide)
    await guide.robots.errand(web)
    await ask(guide)
    reader = Sitemaps(guide, web)
    while not guide.robots.sitemaps.empty():
        await reader.errand()


async def ask(guide: LocalGuide) -> list[Any]:
    return list((await guide.ask(AskMessage(VERSION, "c-1", BudgetMessage(10)))).assigned_urls)


async def states(guide: LocalGuide, *found: str) -> list[str]:
    records = await guide.store.find(CRAWL, np.array([urls.identity(url) for url in found], np.uint64))
    return ["unknown" if record is None else record.state for record in records]


async def test_the_entries_of_a_sitemap_become_links(guide: LocalGuide, web: Web) -> None:
    entry = "<loc>https://a.org/one</loc><lastmod>2026-01-02</lastmod><priority>0.7</priority>"
    web.files[MAP] = Answer(200, urlset(entry, "<loc>/private/two</loc>", "<loc>http://[</loc>"))
    await crawled(guide, web)
    assert await states(guide, "https://a.org/one", "https://a.org/private/two", MAP) == ["queued", "dropped", "done"]
    (given,) = await ask(guide)
    assert (given.url, bytes(given.metadata)) == ("https://a.org/one", b'{"lastmod":"2026-01-02","priority":"0.7"}')


async def test_pages_that_changed_after_they_were_fetched_are_due_in_a_crawl_that_fetches_again(
    guide: LocalGuide, web: Web, clock: ManualClock
) -> None:
    clock.advance(1_767_312_000.0 - clock.now())  # 2026-01-02
    pages = [f"https://a.org/{name}" for name in ("before", "after", "ahead", "unsaid")]
    await guide.tell(ReportMessage(VERSION, "c-1", [Fetch(page, 200) for page in pages]))
    clock.advance(86_400.0)
    days = ("2026-01-01", "2026-01-02T20:00:00+01:00", "2093-01-01", "soon")
    entries = (f"<loc>{page}</loc><lastmod>{day}</lastmod>" for page, day in zip(pages, days, strict=True))
    web.files[MAP] = Answer(200, urlset(*entries))
    await crawled(guide, web, recrawl=True)
    assert [given.url for given in await ask(guide)] == ["https://a.org/after"]


async def test_a_page_that_waits_to_be_fetched_again_is_due_at_once_when_it_was_changed(
    guide: LocalGuide, web: Web, clock: ManualClock
) -> None:
    clock.advance(1_767_312_000.0 - clock.now())  # 2026-01-02
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc><lastmod>2026-01-01</lastmod>"))
    await crawled(guide, web, recrawl=True)
    (given,) = await ask(guide)
    await guide.tell(ReportMessage(VERSION, "c-1", [Fetch(given.url, 200)]))  # and again in a week, by itself
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc><lastmod>2026-01-03</lastmod>"))
    clock.advance(86_400.0 * 1.5)
    await ask(guide)
    await guide.robots.errand(web)  # the robots.txt is old by now
    assert [found.url for found in await ask(guide)] == ["https://a.org/"]
    guide.robots.sitemaps.put_nowait(Named(CRAWL, "https://a.org", MAP))
    await Sitemaps(guide, web).errand()
    assert [found.url for found in await ask(guide)] == ["https://a.org/one"]


@pytest.mark.parametrize(("recrawl", "days", "reads"), [(True, 0.5, 1), (True, 1.5, 2), (False, 30.0, 1)])
async def test_a_sitemap_is_read_again_after_a_day_in_a_crawl_that_fetches_again(
    guide: LocalGuide, web: Web, clock: ManualClock, recrawl: bool, days: float, reads: int
) -> None:
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc>"))
    await crawled(guide, web, recrawl=recrawl)
    clock.advance(86_400.0 * days)
    guide.robots.sitemaps.put_nowait(Named(CRAWL, "https://a.org", MAP))
    await Sitemaps(guide, web).errand()
    assert web.asked.count(MAP) == reads


async def test_what_a_sitemap_says_of_a_page_counts_for_its_score(guide: LocalGuide, web: Web) -> None:
    said = ("<priority>1.0</priority>", "<priority>0.1</priority>", "", "<priority>much</priority>")
    pages = [f"https://a.org/{number}" for number in range(4)]
    entries = (f"<loc>{page}</loc>{priority}" for page, priority in zip(pages, said, strict=True))
    web.files[MAP] = Answer(200, urlset(*entries))
    await crawled(guide, web)
    found = {given.url: given.terms.authority for given in await ask(guide)}
    most, least, unsaid, wrong = (found[page] for page in pages)
    assert most > unsaid > least > 0
    assert unsaid == wrong
    told = await explain(guide, CRAWL, pages[0])
    assert told.features["sitemap_priority"] == 1.0
    assert "sitemap_priority" not in (await explain(guide, CRAWL, "https://a.org/")).features


async def test_it_counts_after_a_restart_and_a_new_definition_too(web: Web, clock: ManualClock, tmp_path: Path) -> None:
    entry = "<loc>https://a.org/one</loc><lastmod>2020-01-02</lastmod><priority>0.7</priority>"
    web.files[MAP] = Answer(200, urlset(entry))
    first = open_guide(tmp_path, Config(), clock)
    first.robots.cache.fetched = True
    await crawled(first, web)
    await first.define(CRAWL, Definition(policy=Policy(max_retries=1)))
    await first.close()
    again = open_guide(tmp_path, Config(), clock)
    told = (await explain(again, CRAWL, "https://a.org/one")).features
    await again.close()
    assert (told["sitemap_priority"], told["sitemap_modified"]) == (0.7, 1_577_923_200.0)


SEEDED = "https://a.org/news-sitemap.xml"


async def seeded(guide: LocalGuide, web: Web, **policy: Any) -> list[str]:
    """What crawlers are given of a crawl whose only seed is a sitemap, before and after its robots.txt is known."""
    policy = {"sitemaps": True, "default_delay_s": 0, **policy}
    await guide.define(CRAWL, Definition(policy=Policy(**policy)))
    await guide.seed(CRAWL, SeedsMessage([SEEDED]))
    given = await ask(guide)
    await guide.robots.errand(web)
    return [one.url for one in given + await ask(guide)]


async def test_a_seed_that_is_a_sitemap_is_read_by_the_server_and_by_no_crawler(guide: LocalGuide, web: Web) -> None:
    web.files["https://a.org/robots.txt"] = Answer(404)
    web.files[SEEDED] = Answer(200, urlset("<loc>https://a.org/one</loc>"))
    assert await seeded(guide, web) == []
    assert await states(guide, SEEDED) == ["leased"]
    await Sitemaps(guide, web).errand()
    assert await states(guide, SEEDED) == ["done"]
    assert [one.url for one in await ask(guide)] == ["https://a.org/one"]


async def test_one_that_robots_txt_forbids_is_not_read(guide: LocalGuide, web: Web) -> None:
    web.files["https://a.org/robots.txt"] = Answer(200, b"User-agent: *\nDisallow: /")
    assert await seeded(guide, web) == []
    assert guide.robots.sitemaps.empty()
    assert await states(guide, SEEDED) == ["dropped"]


async def test_one_that_nobody_came_to_read_waits_again(guide: LocalGuide, web: Web, clock: ManualClock) -> None:
    web.files["https://a.org/robots.txt"] = Answer(404)
    assert await seeded(guide, web) == []
    guide.robots.sitemaps.get_nowait()  # as if the server had been killed
    clock.advance(151.0)
    assert await ask(guide) == []
    assert not guide.robots.sitemaps.empty()


async def test_a_crawl_that_wants_no_sitemaps_fetches_such_a_seed_like_any_page(guide: LocalGuide, web: Web) -> None:
    web.files["https://a.org/robots.txt"] = Answer(404)
    assert await seeded(guide, web, sitemaps=False) == [SEEDED]


async def test_indexes_are_followed_and_gzip_is_unpacked(guide: LocalGuide, web: Web) -> None:
    web.files[MAP] = Answer(200, index("https://a.org/1.xml.gz", "/2.xml"))
    web.files["https://a.org/1.xml.gz"] = Answer(200, gzip.compress(urlset("<loc>https://a.org/x</loc>")))
    web.files["https://a.org/2.xml"] = Answer(200, index(MAP) + b"\n")
    await crawled(guide, web)
    assert web.asked[1:] == [MAP, "https://a.org/1.xml.gz", "https://a.org/2.xml"]  # and not the first one again
    assert await states(guide, "https://a.org/x") == ["queued"]


async def test_a_crawl_that_does_not_want_them_is_spared(guide: LocalGuide, web: Web) -> None:
    await crawled(guide, web, sitemaps=False)
    assert web.asked == ["https://a.org/robots.txt"]


async def test_a_sitemap_out_of_scope_is_not_fetched(guide: LocalGuide, web: Web) -> None:
    web.files["https://a.org/robots.txt"] = Answer(200, b"Sitemap: https://elsewhere.org/map.xml")
    await crawled(guide, web, allow_domains=["a.org"])
    assert web.asked == ["https://a.org/robots.txt"]


async def test_a_sitemap_waits_for_its_host(
    guide: LocalGuide, web: Web, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemaps, "AGAIN_S", 0.0)
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc>"))
    await crawled(guide, web, default_delay_s=60.0)
    clock.advance(60.0)
    assert [given.url for given in await ask(guide)] == ["https://a.org/"]
    await Sitemaps(guide, web).errand()
    assert web.asked == ["https://a.org/robots.txt"]
    assert await states(guide, MAP) == ["queued"]
    clock.advance(60.0)
    await Sitemaps(guide, web).errand()
    assert web.asked == ["https://a.org/robots.txt", MAP]
    assert [given.url for given in await ask(guide)] == []  # the host rests after it, too


@pytest.mark.parametrize(
    "answer",
    [
        Answer(503),
        Answer(problem="nobody answers"),
        Answer(200, b"<html>"),
        Answer(200, b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + urlset("<loc>&a;</loc>")),
        Answer(200, urlset("<loc>https://a.org/1</loc>"), cut=True),
    ],
)
async def test_what_is_no_sitemap_leads_nowhere(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert await asyncio.to_thread(read, MAP, answer) == ([], [])
    assert "was not read" in caplog.text


def test_more_entries_than_there_may_be_are_left() -> None:
    found = read(MAP, Answer(200, urlset(*(f"<loc>https://a.org/{number}</loc>" for number in range(50_010)))))
    assert len(found.links) == 50_000


async def test_more_links_than_a_page_may_have_are_told_in_parts(guide: LocalGuide, web: Web) -> None:
    web.files[MAP] = Answer(200, urlset(*(f"<loc>https://a.org/{number}</loc>" for number in range(10_001))))
    await crawled(guide, web)
    assert await states(guide, "https://a.org/0", "https://a.org/10000") == ["queued", "queued"]


# crawls that are deleted


async def test_a_deleted_crawl_does_not_come_back_through_its_sitemaps(guide: LocalGuide, web: Web) -> None:
    web.files["https://a.org/robots.txt"] = Answer(200, f"Sitemap: {MAP}\nSitemap: /two.xml".encode())
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc>"))
    await named(guide, web)
    reader = Sitemaps(guide, Deleting(guide, web))
    await reader.errand()  # the crawl is deleted while it is read
    assert guide.robots.sitemaps.empty()
    guide.robots.sitemaps.put_nowait(Named(CRAWL, "https://a.org", MAP))
    await reader.errand()
    assert await guide.crawls.names("default") == []


async def test_one_of_the_same_name_gets_nothing_of_it_and_its_own_sitemaps_are_read(
    guide: LocalGuide, web: Web
) -> None:
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc>"))
    await named(guide, web)
    await Sitemaps(guide, Deleting(guide, web, again=True)).errand()
    assert await states(guide, "https://a.org/one", MAP) == ["unknown", "unknown"]
    await named(guide, web)
    await Sitemaps(guide, web).errand()
    assert await states(guide, "https://a.org/one", MAP) == ["queued", "done"]


async def test_sitemaps_are_read_of_a_crawl_that_wants_them_from_now_on(guide: LocalGuide, web: Web) -> None:
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc>"))
    await named(guide, web, sitemaps=False)
    assert guide.robots.sitemaps.empty()
    await guide.define(CRAWL, Definition(policy=Policy(sitemaps=True, default_delay_s=0)))
    await guide.seed(CRAWL, SeedsMessage(["https://a.org/2"]))
    await ask(guide)
    await Sitemaps(guide, web).errand()
    assert await states(guide, "https://a.org/one") == ["queued"]


class Deleting:
    """Fetches, and meanwhile the crawl is deleted; and defined again."""

    def __init__(self, guide: LocalGuide, web: Web, again: bool = False) -> None:
        self.guide, self.web, self.again = guide, web, again

    async def get(self, url: str, agent: str, most_bytes: int) -> Answer:
        await self.guide.delete(CRAWL)
        if self.again:
            await self.guide.define(CRAWL, Definition())
        return await self.web.get(url, agent, most_bytes)


async def named(guide: LocalGuide, web: Web, **policy: Any) -> None:
    """A crawl whose sitemaps are named, and not read yet."""
    policy = {"sitemaps": True, "default_delay_s": 0, **policy}
    await guide.define(CRAWL, Definition(policy=Policy(**policy)))
    await guide.seed(CRAWL, SeedsMessage(["https://a.org/"]))
    await ask(guide)
    if not guide.robots.idle:
        await guide.robots.errand(web)
    await ask(guide)


# what goes wrong, and what is too much


@pytest.mark.parametrize("fault", [OSError(28, "No space"), MemoryError(), RecursionError(), ValueError()])
async def test_a_fault_of_ours_is_tried_again_later_and_ends_nothing(
    guide: LocalGuide, web: Web, clock: ManualClock, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc>"))
    await named(guide, web)
    fetch, web.get = web.get, failing(fault)  # type: ignore[method-assign]
    reader = Sitemaps(guide, web)
    await reader.errand()
    assert "by a fault of the guide" in caplog.text
    assert guide.robots.sitemaps.empty()
    web.get = fetch  # type: ignore[method-assign]
    clock.advance(200.0)  # its lease has ended, too
    await reader.errand()
    assert await states(guide, "https://a.org/one") == ["queued"]


def failing(fault: Exception) -> Any:
    async def get(*_: object) -> Answer:
        raise fault

    return get


async def test_one_host_with_thousands_of_sitemaps_does_not_keep_another_crawl_waiting(
    guide: LocalGuide, web: Web, clock: ManualClock
) -> None:
    lines = "\n".join(f"Sitemap: https://a.org/{number}.xml" for number in range(3_000))
    web.files["https://a.org/robots.txt"] = Answer(200, lines.encode())
    await named(guide, web)
    assert len(guide.robots.sitemaps) == 1_000
    other = Named(Crawl("default", "other"), "https://b.org", "https://b.org/map.xml")
    guide.robots.sitemaps.put_nowait(other)
    first = [guide.robots.sitemaps.get_nowait() for _ in range(8)]
    assert other in first
    assert sum(one is not None and one.domain == "a.org" for one in first) == 1


async def test_a_sitemap_of_a_host_that_rests_for_long_holds_no_place(
    guide: LocalGuide, web: Web, clock: ManualClock
) -> None:
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc>"))
    await named(guide, web, default_delay_s=3_000.0, horizon_s=3_600.0)
    clock.advance(3_000.0)
    await ask(guide)
    reader = Sitemaps(guide, web)
    await asyncio.wait_for(reader.errand(), 10)
    assert web.asked == ["https://a.org/robots.txt"]
    clock.advance(3_000.0)
    await asyncio.wait_for(reader.errand(), 10)
    assert web.asked[1:] == [MAP]


async def test_a_sitemap_needs_no_file_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    monkeypatch.setattr("tempfile.tempdir", None)
    packed = gzip.compress(urlset("<loc>https://a.org/1</loc>"))
    assert [link.url for link in read(MAP, Answer(200, packed)).links] == ["https://a.org/1"]


async def test_a_large_sitemap_is_fetched_again_when_no_other_large_one_is_read(
    guide: LocalGuide, web: Web, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sitemaps, "LARGE_BYTES", 100)
    web.files[MAP] = Answer(200, urlset("<loc>https://a.org/one</loc>" + " " * 100))
    await crawled(guide, web)
    assert await states(guide, "https://a.org/one") == ["unknown"]
    clock.advance(60.0)
    await Sitemaps(guide, web).errand()
    assert web.asked.count(MAP) == 2
    assert await states(guide, "https://a.org/one", MAP) == ["queued", "done"]
