"""A real Crawl4AI crawler with the guide as its deep-crawl strategy. Run by `test_crawl4ai.py` in an environment of its
own, which has Crawl4AI."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from crawl4ai import AsyncWebCrawler, CrawlerRunConfig, HTTPCrawlerConfig, ProxyConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy

from crawlguide import AsyncClient, AsyncGuide
from crawlguide.core.errors import ConfigError, UnavailableError
from crawlguide.integrations.crawl4ai import GuidedCrawlStrategy
from tests.gateway.clients.common import free_port
from tests.integrations.web import (
    BUSY,
    DELAY_S,
    EVERY,
    FREE,
    GARDEN,
    GONE,
    HARBOUR,
    MOVED,
    NEW,
    PRIVATE,
    ROSES,
    SHIPS,
    TOPIC,
    paced,
    requested,
)

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.lab.serving import Served
    from tests.gateway.conftest import Served as ServedGuide

SEEN = (EVERY - {NEW}) | {MOVED}  # the crawler follows the redirect by itself


def crawler() -> Any:
    client = AsyncHTTPCrawlerStrategy(HTTPCrawlerConfig(headers={"User-Agent": "rosebot/1.0"}))
    return AsyncWebCrawler(crawler_strategy=client, verbose=False)


def config(proxy: str, strategy: Any, stream: bool = True) -> Any:
    return CrawlerRunConfig(
        deep_crawl_strategy=strategy, stream=stream, proxy_config=ProxyConfig(server=proxy), verbose=False
    )


async def crawled(proxy: str, stream: bool = True, **options: Any) -> list[Any]:
    strategy = GuidedCrawlStrategy(options.pop("goal", TOPIC), **({"policy": FREE} | options))
    async with crawler() as opened:
        results = await opened.arun(GARDEN, config=config(proxy, strategy, stream))
        return [result async for result in results] if stream else list(results)


def good(results: list[Any]) -> list[str]:
    return [result.url for result in results if result.success]


async def told(data: Path) -> dict[str, Any]:
    async with AsyncGuide.open(data) as guide:
        found: dict[str, Any] = (await guide.stats("default"))["crawls"]["default"]
        return found


@pytest.mark.parametrize("stream", [True, False])
async def test_all_that_may_be_fetched_is_fetched_once(stream: bool, web: Served, proxy: str) -> None:
    results = await crawled(proxy, stream)
    assert set(good(results)) >= SEEN - {NEW}
    assert {result.url for result in results if not result.success} == {GONE, BUSY}
    assert len(requested(web)) == len(set(requested(web))) + requested(web).count(NEW) - 1


async def test_robots_is_read_before_anything_of_its_host(web: Served, proxy: str) -> None:
    await crawled(proxy)
    assert sorted(requested(web, robots=True)) == [GARDEN + "robots.txt", HARBOUR + "robots.txt"]
    assert web.log[0].url == GARDEN + "robots.txt"
    assert PRIVATE not in requested(web)
    assert {one.agent for one in web.log} == {"rosebot/1.0"}


async def test_the_delay_is_kept_where_requests_arrive(web: Served, proxy: str) -> None:
    await crawled(proxy, policy=FREE | {"default_delay_s": DELAY_S, "deny_domains": ["harbour.example"]}, max_pages=4)
    assert paced(web, GARDEN)


async def test_every_outcome_is_in_the_data_folder_afterwards(proxy: str, tmp_path: Path) -> None:
    results = await crawled(proxy, data=tmp_path)
    numbers = await told(tmp_path)
    assert (numbers["state"], numbers["leased"], numbers["queued"]) == ("exhausted", 0, 0)
    assert (numbers["fetches"], numbers["failed"]) == (len(results) + 2, 3)  # and two files of rules, one missing
    assert 0 < numbers["relevant"] < len(results)


async def test_no_more_pages_are_requested_than_wanted(web: Served, proxy: str) -> None:
    assert len(await crawled(proxy, max_pages=3)) == 3
    assert len(requested(web)) == 3


async def test_a_result_says_why_it_was_chosen_and_keeps_what_crawl4ai_made(proxy: str) -> None:
    (result,) = await crawled(proxy, max_pages=1)
    assert 0 <= result.metadata["p"] <= 1
    assert result.metadata["title"] == "Garden"
    assert "tulips" in result.markdown


async def test_a_function_says_how_relevant_a_result_is(proxy: str, tmp_path: Path) -> None:
    await crawled(proxy, data=tmp_path, relevance=lambda result: float(result.url in SHIPS))
    assert (await told(tmp_path))["relevant"] == len(SHIPS)


async def test_breaking_off_gives_everything_back(proxy: str, tmp_path: Path) -> None:
    strategy = GuidedCrawlStrategy(TOPIC, policy=FREE, data=tmp_path)
    async with crawler() as opened:
        results = await opened.arun(GARDEN, config=config(proxy, strategy))
        async for result in results:
            if result.url == ROSES[0]:
                break
        await strategy.shutdown()
    numbers = await told(tmp_path)
    assert numbers["leased"] == 0
    assert numbers["done"] >= 1


async def test_a_cancelled_crawl_gives_everything_back(proxy: str, tmp_path: Path) -> None:
    run = asyncio.create_task(crawled(proxy, stream=False, data=tmp_path, policy=FREE | {"default_delay_s": 0.5}))
    await asyncio.sleep(2)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (await told(tmp_path))["leased"] == 0


async def test_a_served_guide_is_named_by_its_address(proxy: str, guide_server: ServedGuide) -> None:
    policy = FREE | {"robots": "crawler"}
    await crawled(proxy, policy=policy, guide=guide_server.url, crawl_id="crawl4ai")
    async with AsyncClient(guide_server.url) as client:
        numbers = (await client.stats("crawl4ai"))["crawls"]["crawl4ai"]
    assert (numbers["state"], numbers["leased"]) == ("exhausted", 0)


async def test_what_cannot_be_reached_is_told_as_such(tmp_path: Path) -> None:
    results = await crawled(f"http://127.0.0.1:{free_port()}", policy=FREE | {"robots": "ignore"}, data=tmp_path)
    assert [result.success for result in results] == [False]
    assert (await told(tmp_path))["failed"] == 1


async def test_what_cannot_work_is_said_at_once(proxy: str) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(UnavailableError, match=f"{address} cannot be reached"):
        await crawled(proxy, guide=address)
    with pytest.raises(ConfigError, match="max_pages: expected an integer from 0, got -1"):
        GuidedCrawlStrategy(TOPIC, max_pages=-1)
    with pytest.raises(ConfigError, match="relevance: expected a function"):
        GuidedCrawlStrategy(TOPIC, relevance=0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="max_depth"):
        GuidedCrawlStrategy(TOPIC, max_depth=2)  # type: ignore[call-arg]
