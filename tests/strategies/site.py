"""A site of sections for strategies to crawl: in one of them the pages are about the topic. And a crawler for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlguide import Guide
from crawlguide.testing import ManualClock
from tests.support import ask, fetched, tell

if TYPE_CHECKING:
    from pathlib import Path

HOME = "https://site.org/"
SECTIONS = ("birds", "cars", "food", "games", "music", "news", "parks", "trade")
GOOD = SECTIONS[0]
ITEMS = 40
POLICY = {"robots": "ignore", "default_delay_s": 0, "max_per_host": 0, "traps": False, "risk_threshold": 1}

Web = dict[str, list[str]]


def web(*, backwards: bool = False) -> Web:
    """What every page links to; `backwards` turns the order of links on every page around."""
    found: Web = {HOME: [f"{HOME}{section}/" for section in SECTIONS]}
    for section in SECTIONS:
        items = [f"{HOME}{section}/{number}.html" for number in range(ITEMS)]
        found[f"{HOME}{section}/"] = [HOME, *items[:10]]
        for number, item in enumerate(items):
            near = items[number + 1 : number + 4] + items[max(0, number - 3) : number]
            found[item] = [f"{HOME}{section}/", *near, *found[HOME]]
    return {page: links[::-1] if backwards else links for page, links in found.items()}


def relevant(url: str) -> float:
    return float(f"/{GOOD}/" in url)


def opened(strategy: dict[str, Any], folder: Path | str = ":memory:", seed: int = 1, **more: Any) -> Guide:
    """A guide with one crawl, as nearly without rules as can be."""
    guide = Guide.open(folder, clock=ManualClock(1_700_000_000.0), seed=seed)
    guide.define("default", {"strategy": strategy, "policy": POLICY, **more})
    return guide


def crawled(guide: Guide, site: Web, pages: int, batch: int = 5) -> list[str]:
    """What is fetched, in order, as long as it is worth anything."""
    order: list[str] = []
    while len(order) < pages:
        answer = ask(guide, max_urls=batch)["assigned_urls"]
        given = [one["url"] for one in answer if one["score"] >= 0.0]
        if not given:
            break
        order += given
        tell(guide, *(fetched(url, *site.get(url, ()), relevance=relevant(url)) for url in given))
    return order


def harvest(order: list[str]) -> float:
    return sum(map(relevant, order)) / len(order)
