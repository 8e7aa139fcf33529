"""A small web on loopback, and crawls of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crawlguide.crawler.options import CrawlOptions
from crawlguide.crawler.run import crawl
from crawlguide.lab.pages import Link, Page

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from crawlguide.crawler.run import Outcome
    from crawlguide.lab.pages import Task
    from crawlguide.lab.serving import Served


class Listener:
    """A view that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def start(self) -> None: ...
    def show(self, loop: Any) -> None: ...
    def stop(self) -> None: ...


@dataclass(frozen=True)
class Place:
    """A served web, and what is looked for there."""

    served: Served
    task: Task

    @property
    def proxy(self) -> str:
        return f"http://127.0.0.1:{self.served.port}"

    def options(self, out: Path, **more: Any) -> CrawlOptions:
        usual: dict[str, Any] = {
            "seeds": self.task.seeds["portal"],
            "topic": self.task.name,
            "delay_s": 0.0,
            "max_pages": 60,
        }
        return CrawlOptions(**(usual | {"out": out, "proxy": self.proxy} | more))

    def crawled(self, out: Path, **more: Any) -> Outcome:
        return asyncio.run(crawl(self.options(out, **more), Listener()))

    def requested(self) -> list[str]:
        """Pages that the web was asked for, one for each request."""
        return [request.url for request in self.served.log if not request.url.endswith("/robots.txt")]


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "pages.jsonl").read_text().splitlines()]


ROBOTS = "User-agent: *\nDisallow: /private\nCrawl-delay: 0\nSitemap: /all.xml\n"
FILES = {
    "robots.txt": ROBOTS,
    "all.xml": "<sitemapindex><sitemap><loc>/part.xml</loc></sitemap><sitemap><loc>/private.xml</loc></sitemap>"
    "</sitemapindex>",
    "part.xml": "<urlset><url><loc>/storage/btree-indexes</loc></url><url><loc>/about</loc></url></urlset>",
}


@dataclass(frozen=True)
class Site:
    """A host with a sitemap that names another one; without a name, every host is like that."""

    home: str = ""
    name: str = "site"

    def tasks(self) -> list[Task]:
        return []

    def fetch(self, url: str) -> Page:
        home = self.home or url[: url.index("/", 8) + 1]
        path = url.removeprefix(home)
        if path in FILES:
            return Page(url, 200, "", FILES[path])
        links = (Link(f"{home}x1", "A database index explained", 0), Link(f"{home}x2", "Imprint", 1))
        return Page(url, 200, "Home", "Welcome", links=links) if url == home else Page(url, 404)

    def is_relevant(self, task: Task, url: str) -> bool:
        return False

    def waste(self, url: str) -> str | None:
        return None

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        return frozenset(seeds)
