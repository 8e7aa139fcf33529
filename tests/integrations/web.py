"""A small web of two hosts over loopback HTTP: rules, a pace, redirects, failures, and pages worth finding."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from crawlguide import lab
from crawlguide.lab.pages import Link, Page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from crawlguide.lab.pages import Task
    from crawlguide.lab.serving import Served

GARDEN, HARBOUR = "http://garden.example/", "http://harbour.example/"
TOPIC = "roses and garden plants"
FREE = {"default_delay_s": 0, "max_retries": 0}
DELAY_S = 0.3
ROSES = [f"{GARDEN}roses/{number}" for number in range(6)]
SHIPS = [f"{HARBOUR}ships/{number}" for number in range(6)]
PRIVATE, MOVED, NEW, GONE, BUSY = (GARDEN + path for path in ("private/diary", "old", "new", "gone", "busy"))
EVERY = {GARDEN, HARBOUR, *ROSES, *SHIPS, NEW}
ABOUT = "Roses, tulips and other garden plants: pruning, compost, seeds and soil for every flower bed in the garden. "
ELSE = "Ships, cranes and containers in the harbour: tides, pilots, freight and customs for every vessel at the quay. "


def _page(url: str, title: str, text: str, *links: str) -> Page:
    found = tuple(Link(link, link.rpartition("/")[2] or "home", at) for at, link in enumerate(links))
    return Page(url, 200, title, text * 5, language="en", links=found)


def _pages() -> dict[str, Page]:
    pages = [
        _page(GARDEN, "Garden", ABOUT, *ROSES[:3], PRIVATE, MOVED, GONE, BUSY, HARBOUR),
        _page(HARBOUR, "Harbour", ELSE, *SHIPS),
        *(_page(url, f"Roses {at}", ABOUT, *ROSES[3:]) for at, url in enumerate(ROSES)),
        *(_page(url, f"Ships {at}", ELSE, GARDEN) for at, url in enumerate(SHIPS)),
        _page(NEW, "A new place", ABOUT, GARDEN),
        _page(PRIVATE, "Diary", ABOUT),
        Page(GARDEN + "robots.txt", 200, text="User-agent: *\nDisallow: /private\n"),
        Page(MOVED, 301, redirected_to=NEW),
        Page(BUSY, 503),
    ]
    return {page.url: page for page in pages}


class SmallWeb:
    name = "small"

    def __init__(self) -> None:
        self.pages = _pages()

    def tasks(self) -> list[Task]:
        return []

    def fetch(self, url: str) -> Page:
        return self.pages.get(url) or Page(url, 404)

    def is_relevant(self, task: Task, url: str) -> bool:
        return url in task.relevant

    def waste(self, url: str) -> str | None:
        return None

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        return frozenset(seeds)


@contextmanager
def small_web() -> Iterator[Served]:
    with lab.served(SmallWeb(), slowest_s=0) as server:
        yield server


def requested(server: Served, *, robots: bool = False) -> list[str]:
    """The pages that were asked for, in this order, or the files with rules."""
    return [one.url for one in server.log if one.url.endswith("/robots.txt") == robots]


def paced(server: Served, host: str) -> bool:
    """Did requests of a host arrive no faster than permitted? One that the machine held up comes near its successor."""
    at = [one.at for one in server.log if one.url.startswith(host)]
    gaps = [later - earlier for earlier, later in pairwise(at)]
    return len(gaps) >= 3 and (at[-1] - at[0]) / len(gaps) > 0.8 * DELAY_S and sorted(gaps)[1] > DELAY_S / 2


def settled(stats: dict[str, Any], crawl: str = "default") -> dict[str, int]:
    numbers = stats["crawls"][crawl]
    return {name: numbers[name] for name in ("leased", "done", "queued", "fetches", "failed")}
