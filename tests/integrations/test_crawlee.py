"""A real Crawlee crawler gets its requests from a guide, and leaves nothing behind however it ends."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from crawlee import ConcurrencySettings, Request
from crawlee.crawlers import HttpCrawler, ParselCrawler
from crawlee.proxy_configuration import ProxyConfiguration
from crawlee.storage_clients import MemoryStorageClient

from crawlguide import AsyncClient, AsyncGuide
from crawlguide.core.errors import UnavailableError
from crawlguide.crawler.hops import MOST
from crawlguide.crawler.lines import ROBOTS_BYTES
from crawlguide.gateway.client.assignments import Assignment
from crawlguide.integrations.crawlee import GuidedHttpClient, GuideManager, _request, guided_crawler
from tests.crawler.strangers import stranger
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
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from crawlguide.lab.serving import Served
    from tests.gateway.conftest import Served as ServedGuide

QUIET = {"configure_logging": False, "statistics_log_format": "inline"}


def crawler_of(proxy: str, goal: Any = TOPIC, **options: Any) -> Any:
    plain = {
        "storage_client": MemoryStorageClient(),
        "proxy_configuration": ProxyConfiguration(proxy_urls=[proxy]),
        "policy": FREE,
        **QUIET,
    }
    return guided_crawler(ParselCrawler, goal, **(plain | options))


async def crawled(crawler: Any, handle: Callable[[Any], Awaitable[None]] | None = None, *seeds: str) -> list[str]:
    """The pages that the handler saw."""
    seen = []

    @crawler.router.default_handler  # type: ignore[untyped-decorator]
    async def handler(context: Any) -> None:
        seen.append(context.request.url)
        await (handler_of_the_test(context) if (handler_of_the_test := handle) else _all_links(context))

    await asyncio.wait_for(crawler.run(list(seeds) or [GARDEN]), 90)
    return seen


async def _all_links(context: Any) -> None:
    await context.enqueue_links(strategy="all")


@pytest.fixture(autouse=True)
def quiet() -> None:
    for name in ("crawlee", "ParselCrawler", "HttpCrawler"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


async def told(data: Path) -> dict[str, Any]:
    async with AsyncGuide.open(data) as guide:
        found: dict[str, Any] = (await guide.stats("default"))["crawls"]["default"]
        return found


async def explained(data: Path, url: str) -> dict[str, Any]:
    async with AsyncGuide.open(data) as guide:
        return await guide.explain("default", url)


async def test_all_that_may_be_fetched_is_fetched_once(web: Served, proxy: str) -> None:
    seen = await crawled(crawler_of(proxy))
    assert sorted(seen) == sorted(EVERY)
    assert sorted(requested(web)) == sorted([*EVERY, MOVED, GONE, BUSY])


async def test_robots_is_read_before_anything_of_its_host(web: Served, proxy: str) -> None:
    await crawled(crawler_of(proxy))
    assert sorted(requested(web, robots=True)) == [GARDEN + "robots.txt", HARBOUR + "robots.txt"]
    assert next(one.url for one in web.log if one.url.startswith(HARBOUR)) == HARBOUR + "robots.txt"
    assert PRIVATE not in requested(web)


async def test_the_delay_is_kept_where_requests_arrive(web: Served, proxy: str) -> None:
    crawler = crawler_of(proxy, policy=FREE | {"default_delay_s": DELAY_S}, max_requests_per_crawl=6)
    await crawled(crawler)
    assert paced(web, GARDEN)


async def test_a_crawl_is_said_to_be_over_once_at_its_end(proxy: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "crawlguide")
    await crawled(crawler_of(proxy))
    assert [record.getMessage() for record in caplog.records].count("crawl default is exhausted") == 1


async def test_every_outcome_is_in_the_data_folder_afterwards(proxy: str, tmp_path: Path) -> None:
    seen = await crawled(crawler_of(proxy, data=tmp_path))
    others = 5  # a redirect, two failures, two files of rules, of which one is missing
    numbers = await told(tmp_path)
    assert (numbers["state"], numbers["leased"], numbers["queued"]) == ("exhausted", 0, 0)
    assert (numbers["done"], numbers["failed"], numbers["dropped"]) == (len(seen) + others, 3, {"robots": 1})
    assert 0 < numbers["relevant"] < len(seen)


async def test_a_host_that_says_no_is_not_hammered(web: Served, proxy: str) -> None:
    await crawled(crawler_of(proxy))
    assert requested(web).count(BUSY) == 1
    assert requested(web).count(GONE) == 1


async def test_what_does_not_answer_is_told_as_such(tmp_path: Path) -> None:
    policy = FREE | {"robots": "ignore"}
    seen = await crawled(crawler_of(f"http://127.0.0.1:{free_port()}", policy=policy, data=tmp_path))
    assert seen == []
    assert (await explained(tmp_path, GARDEN))["state"] == "done"
    assert (await told(tmp_path))["failed"] == 1


@pytest.mark.parametrize("said", ["nofollow", "mybot: nofollow"])
async def test_what_a_header_says_to_robots_counts(said: str) -> None:
    async with stranger() as there:
        start = there.lay("/", b"<a href=/next>x</a>", Content_Type="text/html", X_Robots_Tag=said)
        policy = FREE | {"user_agent": "mybot"}
        crawler = guided_crawler(ParselCrawler, TOPIC, policy=policy, storage_client=MemoryStorageClient(), **QUIET)
        await crawled(crawler, _all_links, start)
        assert [request.split()[1] for request in there.requests] == [b"/robots.txt", b"/"]


async def test_a_robots_txt_is_told_with_what_its_host_wishes_and_without_error_pages() -> None:
    async with stranger() as there:
        there.lay("/robots.txt", b"<html>later", "503 Busy", Retry_After="3600")
        told = await GuideManager(TOPIC)._robots(there.url("/robots.txt"))
        assert (told["status"], told["retry_after_s"], told["text"]) == (503, 3600.0, None)
        assert told["elapsed_ms"] > 0
        there.lay("/robots.txt", b"", "301 Moved", Location="/rules.txt")
        there.lay("/rules.txt", b"User-agent: *")
        told = await GuideManager(TOPIC)._robots(there.url("/robots.txt"))
        assert (told["url"], told["status"], told["text"]) == (there.url("/robots.txt"), 200, "User-agent: *")


async def test_a_robots_txt_that_leads_nowhere_is_an_error_and_without_a_place_is_asked_for_once() -> None:
    async with stranger() as there:
        url = there.lay("/robots.txt", status="302 Found", Location="/robots.txt")
        told = await GuideManager(TOPIC)._robots(url)
        assert (told["error"], told["text"]) == ("other", None)
        before = len(there.requests)
        there.lay("/robots.txt", status="302 Found")
        await GuideManager(TOPIC)._robots(url)
        assert len(there.requests) == before + 1


def test_a_stranger_who_shares_the_guide_decides_nothing_about_a_request() -> None:
    said = {"headers": {"Host": "b.example", "Content-Length": "5", "cookie": "a=b", "X-Own": "kept"}}
    back = _request(Assignment(GARDEN, "page", 0.0, 0.0, "", 0.0, 0.0, {"crawlguide": said}))
    assert dict(back.headers) == {"x-own": "kept"}


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    while True:
        writer.write(packer.compress(b"Disallow: /x\n" * 100_000))
        await writer.drain()


async def test_of_a_robots_txt_without_an_end_the_beginning_counts() -> None:
    async with stranger() as there:
        told = await GuideManager(TOPIC)._robots(there.lay_raw("/robots.txt", endless))
        assert (told["status"], len(told["text"])) == (200, ROBOTS_BYTES)


async def test_links_carry_their_anchors_and_labels(proxy: str, tmp_path: Path) -> None:
    labels = {}
    crawler = crawler_of(proxy, data=tmp_path)

    @crawler.router.handler("rose")  # type: ignore[untyped-decorator]
    async def rose(context: Any) -> None:
        labels[context.request.url] = (context.request.label, context.request.user_data["from"])

    async def home(context: Any) -> None:
        await context.enqueue_links(selector="a[href*=roses]", label="rose", user_data={"from": "home"})

    await crawled(crawler, home)
    assert labels == dict.fromkeys(ROSES[:3], ("rose", "home"))
    assert (await explained(tmp_path, ROSES[1]))["links"] == [{"url": GARDEN, "anchor": "1"}]


async def test_a_label_goes_on_with_what_a_redirect_leads_to(proxy: str) -> None:
    labels = {}
    crawler = crawler_of(proxy)

    @crawler.router.handler("moved")  # type: ignore[untyped-decorator]
    async def moved(context: Any) -> None:
        labels[context.request.url] = context.request.user_data["from"]

    async def home(context: Any) -> None:
        await context.enqueue_links(selector="a[href*=old]", label="moved", user_data={"from": "home"})

    await crawled(crawler, home)
    assert labels == {NEW: "home"}


async def test_redirects_without_end_are_given_up() -> None:
    async with stranger() as there:
        for number in range(2 * MOST):
            there.lay(f"/{number}", status="302 Found", Location=f"/{number + 1}")
        plain: dict[str, Any] = {"policy": FREE | {"robots": "ignore"}, **QUIET}
        crawler = guided_crawler(HttpCrawler, storage_client=MemoryStorageClient(), **plain)
        await asyncio.wait_for(crawler.run([there.url("/0")]), 90)
        assert len(there.requests) == MOST + 1


async def test_a_handler_may_say_how_relevant_a_page_is(proxy: str, tmp_path: Path) -> None:
    async def judge(context: Any) -> None:
        context.request.user_data["relevance"] = float(context.request.url in SHIPS)
        await _all_links(context)

    await crawled(crawler_of(proxy, data=tmp_path), judge)
    assert (await told(tmp_path))["relevant"] == len(SHIPS)


@pytest.mark.parametrize("said", ["high", 7, -0.1, float("nan")])
async def test_a_relevance_that_is_none_is_named_and_the_page_is_told(
    proxy: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, said: Any
) -> None:
    async def judge(context: Any) -> None:
        context.request.user_data["relevance"] = said
        await _all_links(context)

    assert set(await crawled(crawler_of(proxy, data=tmp_path), judge)) == EVERY
    assert (await told(tmp_path))["leased"] == 0
    assert f'user_data["relevance"] of {GARDEN}: expected a number from 0 to 1, got {said!r}' in caplog.text


async def test_a_request_says_why_it_was_chosen(proxy: str) -> None:
    chances = []

    async def look(context: Any) -> None:
        chances.append(context.request.user_data["crawlguide"]["p"])

    await crawled(crawler_of(proxy), look)
    assert 0 <= chances[0] <= 1


async def test_a_handler_that_fails_costs_its_links_only(web: Served, proxy: str, tmp_path: Path) -> None:
    async def fail_at_the_harbour(context: Any) -> None:
        await _all_links(context)
        if context.request.url == HARBOUR:
            raise KeyError("tide")

    seen = await crawled(crawler_of(proxy, data=tmp_path), fail_at_the_harbour)
    assert set(seen) == EVERY - set(SHIPS)
    assert (await told(tmp_path))["leased"] == 0


async def test_a_form_is_sent_as_well(web: Served, proxy: str) -> None:
    """A guide knows URLs; what else makes a request stays with the crawler."""

    async def send(context: Any) -> None:
        if context.request.method == "GET":
            await context.add_requests([Request.from_url(GARDEN, method="POST", payload="a=1", unique_key="form")])

    await crawled(crawler_of(proxy), send)
    assert [one.status for one in web.log if one.method == "POST"] == [405]


async def test_stopping_gives_everything_back(proxy: str, tmp_path: Path) -> None:
    crawler = crawler_of(proxy, data=tmp_path)

    async def stop(context: Any) -> None:
        await _all_links(context)
        crawler.stop()

    await crawled(crawler, stop)
    numbers = await told(tmp_path)
    assert numbers["leased"] == 0
    assert numbers["queued"] > 0


async def test_it_goes_on_where_it_was_stopped(proxy: str, tmp_path: Path) -> None:
    first = await crawled(crawler_of(proxy, data=tmp_path, max_requests_per_crawl=4))
    second = await crawled(crawler_of(proxy, data=tmp_path))
    assert sorted(first + second) == sorted(EVERY)


async def test_a_cancelled_run_gives_everything_back(proxy: str, tmp_path: Path) -> None:
    crawler, seen = crawler_of(proxy, data=tmp_path), asyncio.Event()

    async def see(context: Any) -> None:
        seen.set()
        await asyncio.sleep(0.5)  # Crawlee waits for it

    run = asyncio.create_task(crawled(crawler, see))
    await seen.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert (await told(tmp_path))["leased"] == 0


async def test_a_served_guide_is_named_by_its_address(proxy: str, guide_server: ServedGuide) -> None:
    policy = FREE | {"robots": "crawler"}
    seen = await crawled(crawler_of(proxy, policy=policy, guide=guide_server.url, crawl_id="crawlee"))
    assert sorted(seen) == sorted(EVERY)
    async with AsyncClient(guide_server.url) as client:
        numbers = (await client.stats("crawlee"))["crawls"]["crawlee"]
    assert (numbers["state"], numbers["leased"]) == ("exhausted", 0)


async def test_the_manager_goes_into_a_crawler_of_your_own(proxy: str, tmp_path: Path) -> None:
    """Whose own client follows redirects: the content is told to belong to their target."""
    proxies = ProxyConfiguration(proxy_urls=[proxy])
    manager = GuideManager(TOPIC, proxies=proxies, policy=FREE, data=tmp_path)
    crawler = HttpCrawler(
        request_manager=manager,
        proxy_configuration=proxies,
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(desired_concurrency=2, max_concurrency=2),
        max_request_retries=0,
        retry_on_blocked=False,
        request_handler_timeout=timedelta(seconds=10),
        configure_logging=False,
    )
    manager.install(crawler)

    async def follow(context: Any) -> None:
        if context.request.url == GARDEN:
            await context.add_requests([MOVED])

    seen = await crawled(crawler, follow)
    assert sorted(seen) == [GARDEN, MOVED]
    assert (await explained(tmp_path, NEW))["state"] == "done"


async def test_depth_is_counted_by_the_guide(proxy: str) -> None:
    seen = await crawled(crawler_of(proxy, max_crawl_depth=1))
    assert not set(seen) & {*ROSES[3:], *SHIPS}
    assert ROSES[0] in seen


async def test_a_server_that_is_not_there_is_named(proxy: str) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(UnavailableError, match=f"{address} cannot be reached"):
        await crawled(crawler_of(proxy, guide=address))


async def test_a_misspelt_option_is_named(proxy: str) -> None:
    with pytest.raises(TypeError, match="dta"):
        crawler_of(proxy, dta="x")


async def test_what_kept_an_answer_from_coming_is_told_in_the_guides_words() -> None:
    client, manager = GuidedHttpClient(timeout=0.01), GuideManager(TOPIC)
    client.manager = manager
    request = manager._begun(Request.from_url(f"http://127.0.0.1:{free_port()}/", unique_key="it"))
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the client raises
        await client.crawl(request)
    assert manager._visits["it"].error in {"connect", "timeout"}


def test_a_missing_extra_is_named() -> None:
    program = "import sys; sys.modules['crawlee'] = None; import crawlguide.integrations.crawlee"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install '.[crawlee]'" in ended.stderr.splitlines()[-1]
