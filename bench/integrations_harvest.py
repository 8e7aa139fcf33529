"""What other people's crawlers find with and without the guide: the same web, seeds, budget and crawler.

    .venv/bin/python -m bench.integrations_harvest --webs ../shared/data/webs/docsweb --tasks 2 --budget 500

The web is served on loopback, and what counts is its log: of the first requests for pages, how many were for a relevant
page that had not been requested before. The guide is told pages and links as the crawler sees them; labels only count.
"Without" is the crawler's own order: a queue for scripts and Crawlee, breadth-first for Crawl4AI.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import deque
from typing import TYPE_CHECKING, Any

import httpx
from bench.peers import environments

from crawlguide import lab
from crawlguide.core.errors import UrlError
from crawlguide.core.urls import canonical
from crawlguide.integrations._pages import read
from crawlguide.lab.pages import Link, Page
from crawlguide.lab.run import seeds_of
from crawlguide.lab.serving import plain_http

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from crawlguide.lab.pages import Task, Web
    from crawlguide.lab.serving import Served

START = "http://start.example/"
POLICY = {"default_delay_s": 0, "max_retries": 0}
CONCURRENCY = 8
TIMEOUT_S = 60.0  # the machine may be busy with other things
RUN_LIMIT_S = 1_800


# the crawlers: each requests pages through the proxy until the budget is spent


async def httpx_guided(proxy: str, seeds: Sequence[str], topic: str, budget: int) -> None:
    from crawlguide.integrations.guided import guided

    async with httpx.AsyncClient(proxy=proxy, timeout=TIMEOUT_S) as client:
        async for _ in guided(client, seeds, topic, max_pages=budget, concurrency=CONCURRENCY, policy=POLICY):
            pass


async def httpx_alone(proxy: str, seeds: Sequence[str], topic: str, budget: int) -> None:
    """First come, first served, as most scripts do it."""
    waiting, seen = deque(seeds), set(seeds)
    async with httpx.AsyncClient(proxy=proxy, timeout=TIMEOUT_S, follow_redirects=True) as client:
        while waiting and budget > 0:
            some = [waiting.popleft() for _ in range(min(CONCURRENCY, len(waiting), budget))]
            budget -= len(some)
            for answer in await asyncio.gather(*map(client.get, some)):
                links = [link.url for link in read(answer.text, str(answer.url), (), "crawlguide").links]
                waiting += [url for url in dict.fromkeys(links) if url not in seen]
                seen.update(links)


async def requests_guided(proxy: str, seeds: Sequence[str], topic: str, budget: int) -> None:
    import requests

    from crawlguide.integrations.guided import guided_sync

    def crawl() -> None:
        with requests.Session() as session:
            session.proxies = {"http": proxy}
            for _ in guided_sync(session, seeds, topic, max_pages=budget, policy=POLICY):
                pass

    await asyncio.to_thread(crawl)


async def crawlee_guided(proxy: str, seeds: Sequence[str], topic: str, budget: int) -> None:
    from crawlee.crawlers import ParselCrawler

    from crawlguide.integrations.crawlee import guided_crawler

    options = _crawlee(proxy, budget)
    await _crawled_by_crawlee(guided_crawler(ParselCrawler, topic, policy=POLICY, **options), seeds)


async def crawlee_alone(proxy: str, seeds: Sequence[str], topic: str, budget: int) -> None:
    from crawlee.crawlers import ParselCrawler

    await _crawled_by_crawlee(ParselCrawler(**_crawlee(proxy, budget), max_request_retries=0), seeds)


def _crawlee(proxy: str, budget: int) -> dict[str, Any]:
    from crawlee import ConcurrencySettings
    from crawlee.proxy_configuration import ProxyConfiguration
    from crawlee.storage_clients import MemoryStorageClient

    return {
        "proxy_configuration": ProxyConfiguration(proxy_urls=[proxy]),
        "storage_client": MemoryStorageClient(),
        "concurrency_settings": ConcurrencySettings(desired_concurrency=CONCURRENCY, max_concurrency=CONCURRENCY),
        "max_requests_per_crawl": budget,
        "configure_logging": False,
    }


async def _crawled_by_crawlee(crawler: Any, seeds: Sequence[str]) -> None:
    @crawler.router.default_handler  # type: ignore[untyped-decorator]
    async def handler(context: Any) -> None:
        await context.enqueue_links(strategy="all")

    await crawler.run(list(seeds))


async def crawl4ai_guided(proxy: str, seeds: Sequence[str], topic: str, budget: int) -> None:
    from crawlguide.integrations.crawl4ai import GuidedCrawlStrategy

    await _crawled_by_crawl4ai(proxy, seeds, GuidedCrawlStrategy(topic, max_pages=budget + 1, policy=POLICY))


async def crawl4ai_alone(proxy: str, seeds: Sequence[str], topic: str, budget: int) -> None:
    from crawl4ai.deep_crawling import BFSDeepCrawlStrategy

    strategy = BFSDeepCrawlStrategy(max_depth=20, include_external=True, max_pages=budget + 1)
    await _crawled_by_crawl4ai(proxy, seeds, strategy)


async def _crawled_by_crawl4ai(proxy: str, seeds: Sequence[str], strategy: Any) -> None:
    """A deep crawl of Crawl4AI has one start: a page that leads to all of them."""
    from crawl4ai import AsyncWebCrawler, CrawlerRunConfig, HTTPCrawlerConfig, ProxyConfig
    from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy

    config = CrawlerRunConfig(
        deep_crawl_strategy=strategy, stream=True, proxy_config=ProxyConfig(server=proxy), verbose=False
    )
    async with AsyncWebCrawler(
        crawler_strategy=AsyncHTTPCrawlerStrategy(HTTPCrawlerConfig()), verbose=False
    ) as crawler:
        async for _ in await crawler.arun(START, config=config):
            pass


CRAWLERS: dict[str, dict[str, Callable[..., Coroutine[Any, Any, None]]]] = {
    "httpx": {"with": httpx_guided, "without": httpx_alone},
    "requests": {"with": requests_guided, "without": httpx_alone},
    "crawlee": {"with": crawlee_guided, "without": crawlee_alone},
    "crawl4ai": {"with": crawl4ai_guided, "without": crawl4ai_alone},
}


class Started:
    """A web with one page more, which leads to where crawls start."""

    def __init__(self, web: Web, seeds: Sequence[str]) -> None:
        self._web, self.name = web, web.name
        text = "These are the pages with which a crawl begins. " * 20  # Crawl4AI takes short pages for a refusal
        self._start = Page(START, 200, "Start", text, links=tuple(Link(url, url, at) for at, url in enumerate(seeds)))

    def fetch(self, url: str) -> Page:
        return self._start if plain_http(url) == START else self._web.fetch(url)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._web, name)


# counting


def harvest(web: Web, task: Task, served: Served, budget: int) -> int:
    """How many relevant pages the first requests for pages found, each counted once."""
    pages = [one.url for one in served.log if one.url != START and not one.url.endswith("/robots.txt")][:budget]
    return len({url for url in map(_known, pages) if url and _is_relevant(web, task, url)})


def _known(url: str) -> str | None:
    try:
        return canonical(url)
    except UrlError:
        return None


def _is_relevant(web: Web, task: Task, url: str) -> bool:
    """Recorded pages may be known by HTTPS, and are served by HTTP."""
    return web.is_relevant(task, url) or web.is_relevant(task, url.replace("http://", "https://", 1))


def row(web: Web, task: Task, kind: str, budget: int) -> dict[str, Any]:
    seeds = [plain_http(url) for url in seeds_of(web, task, "auto")[1]]
    started: Any = Started(web, seeds)
    found: dict[str, Any] = {"web": web.name, "task": task.name, "crawler": kind, "budget": budget}
    for how, crawl in CRAWLERS[kind].items():
        with lab.served(started, slowest_s=0) as served:
            asyncio.run(crawl(f"http://127.0.0.1:{served.port}", seeds, task.name, budget))
            found[how] = harvest(web, task, served, budget)
            found[f"requests_{how}"] = len(served.log)
    return found


def elsewhere(kind: str, where: str, task: str, budget: int) -> dict[str, Any]:
    """A row, in a process of its own, as Crawlee keeps its queues for the next crawl; Crawl4AI needs more than that."""
    python = environments.python("crawl4ai", beside_ours=True) if kind == "crawl4ai" else sys.executable
    command = [str(python), "-m", "bench.integrations_harvest", "--webs", where, "--budget", str(budget)]
    with tempfile.TemporaryDirectory() as folder:
        own = {"CRAWL4_AI_BASE_DIRECTORY": folder, "CRAWL4AI_NO_CLOUD_NOTICE": "1"}
        ended = subprocess.run(
            [*command, "--crawlers", kind, "--here", task],
            env=os.environ | own,
            stdout=subprocess.PIPE,
            text=True,
            timeout=RUN_LIMIT_S,
            check=True,
        )
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def line(one: dict[str, Any]) -> str:
    ratio = one["with"] / one["without"] if one["without"] else float("inf")
    return (
        f"{one['crawler']:<10} {one['web'][:12]:<12} {one['task'][:28]:<28} {one['budget']:>8} {one['with']:>5} "
        f"{one['without']:>8} {ratio:>6.1f}"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--webs", nargs="+", default=["synthetic:pages=300"])
    arguments.add_argument("--tasks", type=int, default=1, help="of each web")
    arguments.add_argument("--budget", type=int, default=500, help="requests for pages")
    arguments.add_argument("--crawlers", nargs="+", default=list(CRAWLERS), choices=CRAWLERS)
    arguments.add_argument("--here", help=argparse.SUPPRESS)  # a task: one row, in this process
    given = arguments.parse_args()
    if given.here:
        logging.disable(logging.CRITICAL)  # pages that are missing are no news
        web = lab.web.open(given.webs[0])
        task = next(task for task in web.tasks() if task.name == given.here)
        print(json.dumps(row(web, task, given.crawlers[0], given.budget)))
        return
    print("crawler    web          task                         requests  with  without  ratio")
    tasks = [(where, task.name) for where in given.webs for task in list(lab.web.open(where).tasks())[: given.tasks]]
    for kind in given.crawlers:
        for where, name in tasks:
            print(line(elsewhere(kind, where, name, given.budget)), flush=True)


if __name__ == "__main__":
    main()
