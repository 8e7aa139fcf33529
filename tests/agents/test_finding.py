"""find_pages over a served web: what it finds, its bounds, progress, cancellation, and where it may not go."""

from __future__ import annotations

import asyncio
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from crawlguide import AsyncGuide
from crawlguide.agents import finding, texts
from crawlguide.agents.calls import Call
from crawlguide.agents.finding import Searches, SearchOptions
from crawlguide.agents.messages import FindPages
from crawlguide.core.errors import CrawlGuideError
from crawlguide.crawler.fetch import FetchOptions
from tests.agents.common import (
    ERAS,
    SLOW_S,
    answer,
    cancelled_in_the_middle,
    in_process,
    refusal,
    search,
    searching,
    text,
    until,
)
from tests.crawler.strangers import LOOPBACK, stranger

if TYPE_CHECKING:
    from crawlguide.agents.messages import FoundPages
    from tests.crawler.crawling import Place


async def test_it_finds_pages_and_says_of_each_what_why_and_how_relevant(place: Place) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with in_process(place, delay_s=0.05) as (client, guide):
        found = await client.call_tool(
            "find_pages", search(place, max_pages=60, max_results=5), progress_callback=progressed
        )
        result = answer(found)
        stats = (await guide.stats(result["crawl_id"]))["crawls"][result["crawl_id"]]
        report = await client.read_resource(f"crawl://{result['crawl_id']}/report")
    assert (result["fetched"], len(result["pages"]), stats["leased"]) == (60, 5, 0)
    assert result["relevant"] >= 5
    assert result["ended"] == finding.ENDS["max-pages"]
    relevances = [page["relevance"] for page in result["pages"]]
    assert relevances == sorted(relevances, reverse=True)
    assert relevances[-1] >= 0.5
    for page in result["pages"]:
        assert page["title"]
        assert page["snippet"]
        assert page["why"].startswith("chosen for ")
    assert result["notice"] == texts.NOTICE
    assert len(text(found)) < 10_000
    assert result["pages"][0]["url"] in getattr(report.contents[0], "text", "")
    done = [step for step, _, _ in told]
    assert done == sorted(set(done))
    assert len(done) > 1
    assert {total for _, total, _ in told} == {60}


async def test_a_second_call_goes_on_where_the_first_ended(place: Place) -> None:
    async with in_process(place) as (client, guide):
        first = answer(await client.call_tool("find_pages", search(place, max_pages=20)))
        again = search(place, max_pages=20, crawl_id=first["crawl_id"])
        second = answer(await client.call_tool("find_pages", again))
        assert second["crawl_id"] == first["crawl_id"]
        assert (await guide.stats(first["crawl_id"]))["crawls"][first["crawl_id"]]["fetches"] >= 40
        other = refusal(await client.call_tool("find_pages", again | {"topic": "chess"}))
        assert (other["code"], other["field"]) == ("conflict", "crawl_id")


async def test_a_search_that_begins_is_not_said_to_be_over(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "crawlguide")
    async with in_process(place) as (client, _):
        await client.call_tool("find_pages", search(place, max_pages=5))
    assert "was created" in caplog.text
    assert "is exhausted" not in caplog.text


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_search_gives_back_what_it_holds_and_keeps_what_it_found(place: Place, era: str) -> None:
    async with in_process(place, SLOW_S, era) as (client, guide):
        await cancelled_in_the_middle(client, search(place, max_pages=500, max_seconds=600, crawl_id="cut"))

        async def is_free() -> bool:
            return not (await guide.stats("cut"))["crawls"]["cut"]["leased"]

        await until(is_free)
        numbers = (await guide.stats("cut"))["crawls"]["cut"]
        assert numbers["fetches"] > 0

        async def is_quiet() -> bool:
            """What was under way may come in late; a search that went on would never be quiet."""
            requested = len(place.requested())
            await asyncio.sleep(3 * SLOW_S)
            return len(place.requested()) == requested

        await until(is_quiet)
        report = await client.read_resource("crawl://cut/report")
        assert "## Pages found" in getattr(report.contents[0], "text", "")
        assert answer(await client.call_tool("find_pages", search(place, max_pages=3, crawl_id="cut")))["fetched"] == 3


async def test_a_page_that_is_not_there_is_a_problem_and_no_find(place: Place) -> None:
    async with in_process(place) as (client, _):
        found = answer(await client.call_tool("find_pages", search(place, start=["http://nowhere.example/"])))
    assert (found["fetched"], found["pages"], found["problems"]) == (1, [], ["once: status 404"])
    assert found["next"].startswith("No page could be fetched: see problems")


async def test_time_is_a_bound(place: Place) -> None:
    async with in_process(place, delay_s=SLOW_S) as (client, guide):
        found = answer(await client.call_tool("find_pages", search(place, max_pages=500, max_seconds=1)))
        assert found["ended"] == finding.ENDS["max-time"]
        assert (await guide.stats(found["crawl_id"]))["crawls"][found["crawl_id"]]["leased"] == 0


async def test_a_whole_host_is_a_starting_point_and_stays_one(place: Place) -> None:
    host = place.task.seeds["portal"][0].split("/")[2]
    async with in_process(place) as (client, _):
        found = answer(await client.call_tool("find_pages", search(place, start=[host], same_site=True, max_pages=30)))
    assert found["fetched"] > 1
    assert {page["url"].split("/")[2] for page in found["pages"]} <= {host}


async def test_so_many_searches_run_at_once_and_no_more(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MOST_OF_ONE", 1)
    async with AsyncGuide.open() as guide:
        searches = Searches(searching(place, SLOW_S))
        wanted = FindPages(**search(place, max_seconds=600, max_pages=500))
        running = await _begun(searches, guide, "a", wanted)
        with pytest.raises(CrawlGuideError, match="1 searches of yours"):
            await searches.find(Call(guide, "a"), wanted)
        await until(lambda: _has_fetched(guide))
        other = asyncio.create_task(searches.find(Call(guide, "b"), wanted))
        await asyncio.sleep(0)
        searches.stop()
        assert (await running).ended == finding.ENDS["stopping"]
        with pytest.raises(CrawlGuideError):
            await other
        with pytest.raises(CrawlGuideError, match="shutting down"):
            await searches.find(Call(guide, "c"), wanted)


async def test_keys_of_one_tenant_do_not_take_all_searches(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "MOST_OF_TENANT", 1)
    async with AsyncGuide.open() as guide:
        searches, wanted = Searches(searching(place, SLOW_S)), FindPages(**search(place, max_pages=500))
        running = await _begun(searches, guide, "acme/one", wanted)
        with pytest.raises(CrawlGuideError, match="0 searches of yours and 1 in all are running"):
            await searches.find(Call(guide, "acme/two"), wanted)
        other = await _begun(searches, guide, "other/one", wanted)
        searches.stop()
        await asyncio.gather(running, other, return_exceptions=True)


async def _begun(searches: Searches, guide: AsyncGuide, whose: str, wanted: FindPages) -> asyncio.Task[FoundPages]:
    begun = asyncio.Event()

    async def progress(*_: Any) -> None:
        begun.set()

    search = asyncio.create_task(searches.find(Call(guide, whose, progress), wanted))
    await begun.wait()
    return search


async def _has_fetched(guide: AsyncGuide) -> bool:
    return any(numbers["fetches"] for numbers in (await guide.stats())["crawls"].values())


async def test_it_ends_when_nobody_waits_any_more(place: Place) -> None:
    async with AsyncGuide.open() as guide:
        call = Call(guide)
        running = asyncio.create_task(
            Searches(searching(place, SLOW_S)).find(call, FindPages(**search(place, max_seconds=600, max_pages=500)))
        )
        await until(lambda: _has_fetched(guide))
        call.gone.set()
        assert (await running).ended == "cancelled"


async def test_what_a_page_says_to_the_name_of_the_operators_crawler_counts() -> None:
    async with stranger() as there, AsyncGuide.open() as guide:
        start = there.lay("/", b"<a href=/next>x</a>", Content_Type="text/html", X_Robots_Tag="mybot: nofollow")
        options = SearchOptions(FetchOptions(user_agent="MyBot/1.0", allow_networks=LOOPBACK), 0.0)
        found = await Searches(options).find(Call(guide), FindPages(topic="roses", start=[start]))
        assert found.fetched == 1


async def test_a_document_that_could_not_be_read_is_a_problem_and_no_failure() -> None:
    async with stranger() as there, AsyncGuide.open() as guide:
        start = there.lay("/paper", b"%PDF-1.7 and no more", Content_Type="application/pdf")
        searches = Searches(SearchOptions(FetchOptions(allow_networks=LOOPBACK), 0.0))
        found = await searches.find(Call(guide), FindPages(topic="roses", start=[start]))
        assert found.fetched == 1
        (problem,) = found.problems
        assert problem.startswith("once: cannot be read as pdf")
        assert not found.next.startswith("No page could be fetched")


class _Inside(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<title>secrets</title><p>secrets of the inside</p>")

    def log_message(self, *_: object) -> None:
        pass


async def test_what_is_inside_is_not_reached_unless_the_operator_allows_it() -> None:
    """By address, by a name that leads there, and as a host whose sitemap would be looked at."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Inside) as inside:
        inside.asked = []  # type: ignore[attr-defined]
        threading.Thread(target=inside.serve_forever, args=(0.01,), daemon=True).start()
        asked: list[str] = inside.asked  # type: ignore[attr-defined]
        url = f"http://127.0.0.1:{inside.server_port}/secrets"
        wanted: dict[str, Any] = {"topic": "secrets", "max_seconds": 20, "max_pages": 5}
        async with in_process() as (client, _):
            for start in (url, url.replace("127.0.0.1", "localhost"), f"127.0.0.1:{inside.server_port}"):
                result = await client.call_tool("find_pages", wanted | {"start": [start]})
                assert "no public address" in text(result), text(result)
        assert asked == []
        async with AsyncGuide.open() as guide:
            allowed = SearchOptions(FetchOptions(concurrency=8, allow_networks=("127.0.0.0/8",)), 0.0)
            found = await Searches(allowed).find(Call(guide), FindPages(**wanted, start=[url]))
        assert [page.title for page in found.pages] == ["secrets"]
        inside.shutdown()
