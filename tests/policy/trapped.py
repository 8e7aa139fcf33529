"""Crawls of made-up webs with traps in them, through the real guide; and a kind of trap the lab does not make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xxhash

from crawlguide import Guide
from crawlguide.lab.pages import Link, Page
from crawlguide.testing import ManualClock
from tests.support import ask, tell

if TYPE_CHECKING:
    from crawlguide.lab.pages import Task, Web

AT = 1_794_000_000.0  # in 2026
SHARE = 20  # every so many pages carry a link into the trap of our own


@dataclass
class Crawled:
    """What a crawl fetched, and the good pages that it dropped as traps."""

    fetched: list[str]
    trapped: list[str]
    withheld: list[str]
    reachable: int


class Endless:
    """A web whose hosts have a guest book as well: every entry leads to its replies, and those to theirs.

    Each entry has an address and a text of its own; the titles say which entry it is.
    """

    def __init__(self, web: Web) -> None:
        self.web = web

    def fetch(self, url: str) -> Page:
        base, _, entry = url.partition("/guestbook/entry")
        if entry:
            return self._entry(base, entry)
        page = self.web.fetch(url)
        if page.status != 200 or number(url) % SHARE or not page.links:
            return page
        way = Link(
            f"{'/'.join(url.split('/')[:3])}/guestbook/entry{number(url) % 10_000}.html", "guest book", len(page.links)
        )
        return Page(**{**vars_of(page), "links": (*page.links, way)})

    def waste(self, url: str) -> str | None:
        return "trap" if "/guestbook/entry" in url else self.web.waste(url)

    def _entry(self, base: str, entry: str) -> Page:
        own = number(base + entry)
        ways = [Link(f"{base}/guestbook/entry{(own + step) % 10**9}.html", f"reply {step}", step) for step in range(5)]
        text = f"somebody wrote {own} and {own // 7} about {own // 11}"
        return Page(
            f"{base}/guestbook/entry{entry}", 200, f"Entry {own}", text, 900, "en", tuple(ways), content_hash=f"{own:x}"
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.web, name)


def number(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())


def vars_of(page: Page) -> dict[str, Any]:
    return {name: getattr(page, name) for name in Page.__slots__}


def crawl(
    web: Any, task: Task, budget: int, *, traps: bool = True, judged: bool = False, kind: str = "random"
) -> Crawled:
    """Fetch so many pages, ten at a time, from the home pages on."""
    clock = ManualClock(AT)
    rules = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": traps, "risk_threshold": 1.0}
    with Guide.open(":memory:", clock=clock, seed=1) as guide:
        guide.define("default", {"goal": {"topic": task.name}, "policy": rules, "strategy": {"kind": kind}})
        guide.seed("default", list(task.seeds["portal"]))
        fetched: list[str] = []
        while len(fetched) < budget:
            given = [one["url"] for one in ask(guide, max_urls=min(10, budget - len(fetched)))["assigned_urls"]]
            if not given and ask(guide)["metadata"]["crawl_state"] == "exhausted":
                break
            clock.advance(1.0 if given else 60.0)
            fetched += given
            tell(guide, *(_told(web, task, url, judged) for url in given))
        dropped = [one["url"] for one in guide.urls("default", "dropped") if one["reason"] == "traps"]
    good = web.reachable(task.seeds["portal"])
    withheld = [url for url in dropped if web.waste(url) is None and url in good]
    return Crawled(fetched, [url for url in fetched if web.waste(url) == "trap"], withheld, len(good))


def _told(web: Any, task: Task, url: str, judged: bool) -> dict[str, Any]:
    page = web.fetch(url)
    said = {"url": url, "bytes": page.size, "title": page.title, "content_hash": page.content_hash}
    said |= {"error": page.error} if page.error else {"status": page.status, "redirected_to": page.redirected_to}
    said |= {"relevance": float(web.is_relevant(task, url))} if judged else {"text": page.text}
    return said | {"outlinks": [{"url": link.url, "anchor": link.anchor} for link in page.links]}
