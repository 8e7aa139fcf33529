"""What references are shown: the whole graph of a web, and an order that makes the most of it.

Nothing here is ever shown to a policy.
"""

from __future__ import annotations

from collections import defaultdict, deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from crawlguide.core.errors import UrlError
from crawlguide.core.urls import canonical
from crawlguide.lab.recorded import RecordedWeb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from crawlguide.lab.pages import Page, Web

MOST_LINKS = 2_000  # of a page are told, by the lab's rules
Graph = dict[str, tuple[str, ...]]
_GRAPHS: WeakKeyDictionary[Any, Graph] = WeakKeyDictionary()


def graph(web: Web) -> Graph:
    """Where the links of every page lead; made once for a web."""
    if web not in _GRAPHS:
        _GRAPHS[web] = _graph(web)
    return _GRAPHS[web]


def _graph(web: Web) -> Graph:
    """Every page that is reachable from any seed of any task, and where its links lead: to pages of the web only."""
    inside = web.reachable({url for task in web.tasks() for urls in task.seeds.values() for url in urls})
    return web.leads(inside, MOST_LINKS) if isinstance(web, RecordedWeb) else by_fetching(web, inside)


def by_fetching(web: Web, inside: frozenset[str]) -> Graph:
    """The same for any web, page by page."""
    page_of: dict[str, str | None] = {url: url for url in inside}  # most links say a page's own name
    return {url: tuple(dict.fromkeys(_targets(web.fetch(url), page_of))) for url in inside}


def _targets(page: Page, page_of: dict[str, str | None]) -> Iterator[str]:
    """The pages that a page leads to; a spelling is read once, if it says the same wherever it stands."""
    links = [link.url for link in page.links[:MOST_LINKS]] + ([page.redirected_to] if page.redirected_to else [])
    for link in links:
        target = page_of[link] if link in page_of else _read(link, page.url, page_of)
        if target is not None:
            yield target


def _read(link: str, base: str, page_of: dict[str, str | None]) -> str | None:
    try:
        found = page_of.get(canonical(link, base))
    except UrlError:
        found = None
    if link.startswith(("http://", "https://")):
        page_of[link] = found
    return found


class Foresight:
    """The greedy crawl of somebody who knows everything: relevant pages first; else the page that most of them hang on
    which are not found yet; else the shortest way to such a page."""

    def __init__(self, web: Graph, relevant: frozenset[str]) -> None:
        self._web = web
        self._relevant = {url for url in web if url in relevant}
        self._parents: dict[str, list[str]] = defaultdict(list)
        self._gain: dict[str, int] = defaultdict(int)
        for page, links in web.items():
            for link in links:
                self._parents[link].append(page)
                self._gain[page] += link in self._relevant
        self._known: set[str] = set()
        self._done: set[str] = set()
        self._good: deque[str] = deque()
        self._hubs: list[tuple[int, str]] = []

    def order(self, seeds: Sequence[str], budget: int) -> list[str]:
        """The URLs to fetch, in order; it may end before the budget, when all that can be found is found."""
        found: list[str] = []
        self._find(seed for seed in seeds if seed in self._web)
        while len(found) < budget:
            steps = self._next()
            if not steps:
                break
            for url in steps[: budget - len(found)]:
                found.append(url)
                self._done.add(url)
                self._find(self._web[url])
        return found

    def _next(self) -> list[str]:
        while self._good:
            url = self._good.popleft()
            if url not in self._done:
                return [url]
        while self._hubs:
            gain, url = heappop(self._hubs)
            if url in self._done or self._gain[url] == 0:
                continue
            if -gain == self._gain[url]:
                return [url]
            heappush(self._hubs, (-self._gain[url], url))
        return self._way()

    def _find(self, urls: Iterable[str]) -> None:
        for url in urls:
            if url in self._known:
                continue
            self._known.add(url)
            heappush(self._hubs, (-self._gain[url], url))
            if url in self._relevant:
                self._good.append(url)
                for parent in self._parents[url]:
                    self._gain[parent] -= 1

    def _way(self) -> list[str]:
        """From the pages that are found to the nearest one that most gain hangs on, without the first if it is done."""
        came: dict[str, str | None] = dict.fromkeys(sorted(self._known))
        queue = deque(came)
        while queue:
            url = queue.popleft()
            if url not in self._done and self._gain[url] > 0:
                return self._path(came, url)
            for link in self._web[url]:
                if link not in came:
                    came[link] = url
                    queue.append(link)
        return []

    def _path(self, came: dict[str, str | None], url: str) -> list[str]:
        path: list[str] = []
        step: str | None = url
        while step is not None:
            path.append(step)
            step = came[step]
        return [step for step in reversed(path) if step not in self._done]
