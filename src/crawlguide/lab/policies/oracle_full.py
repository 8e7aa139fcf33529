"""A reference, not a policy: it follows the greedy order of somebody who knows the whole web and its labels.

`best_order` computes that order before the run; the plug only follows it. No policy is ever shown any of this.
"""

from __future__ import annotations

from collections import defaultdict, deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from crawlguide.core import urls
from crawlguide.core.definition import Fixed
from crawlguide.core.errors import UrlError
from crawlguide.core.urls import canonical
from crawlguide.lab.pages import MOST_LINKS
from crawlguide.lab.policies._shared import Policy, Ranking
from crawlguide.lab.recorded import RecordedWeb

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.types import Lesson
    from crawlguide.lab.pages import Page, Task, Web

Graph = dict[str, tuple[str, ...]]
_GRAPHS: WeakKeyDictionary[Any, Graph] = WeakKeyDictionary()


class Options(Fixed, frozen=True):
    kind: str = ""
    order: tuple[str, ...] = ()  # URLs, best first


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Policy(InOrder(options.order))


class InOrder(Ranking):
    """A URL that is not in the order is worth nothing."""

    def __init__(self, order: tuple[str, ...]) -> None:
        super().__init__()
        self.place = {urls.identity(url): place for place, url in enumerate(order)}

    def learn(self, lesson: Lesson) -> None:
        number, last = self.columns.numbers(lesson.links.id), len(self.place)
        places = np.array([self.place.get(one, last) for one in lesson.links.id.tolist()])
        self.columns["value"][number] = 1.0 - places / max(last, 1)


def best_order(web: Web, task: Task, seeds: Sequence[str], budget: int) -> list[str]:
    """The URLs to fetch, in order; it may end before the budget, when all that can be found is found."""
    return Foresight(graph(web), task.relevant).order(seeds, budget)


class Foresight:
    """The greedy crawl of somebody who knows everything: relevant pages first; else the page with most links to
    relevant pages that are not found yet, its gain; else the shortest way to such a page."""

    def __init__(self, web: Graph, relevant: frozenset[str]) -> None:
        self._web = web
        self._relevant = {url for url in web if url in relevant}
        self._parents: dict[str, list[str]] = defaultdict(list)
        self._gain: dict[str, int] = defaultdict(int)
        for page, links in web.items():
            for link in links:
                self._parents[link].append(page)
                self._gain[page] += link in self._relevant
        self._found: set[str] = set()
        self._fetched: set[str] = set()
        self._good: deque[str] = deque()
        self._hubs: list[tuple[int, str]] = []

    def order(self, seeds: Sequence[str], budget: int) -> list[str]:
        order: list[str] = []
        self._discover(seed for seed in seeds if seed in self._web)
        while len(order) < budget:
            steps = self._next()
            if not steps:
                break
            for url in steps[: budget - len(order)]:
                order.append(url)
                self._fetched.add(url)
                self._discover(self._web[url])
        return order

    def _next(self) -> list[str]:
        while self._good:
            url = self._good.popleft()
            if url not in self._fetched:
                return [url]
        while self._hubs:
            gain, url = heappop(self._hubs)
            if url in self._fetched or self._gain[url] == 0:
                continue
            if -gain == self._gain[url]:
                return [url]
            heappush(self._hubs, (-self._gain[url], url))
        return self._shortest_way()

    def _discover(self, urls: Iterable[str]) -> None:
        for url in urls:
            if url in self._found:
                continue
            self._found.add(url)
            heappush(self._hubs, (-self._gain[url], url))
            if url in self._relevant:
                self._good.append(url)
                for parent in self._parents[url]:
                    self._gain[parent] -= 1

    def _shortest_way(self) -> list[str]:
        """From the pages that are found to the nearest one with a gain, without those that were fetched."""
        came: dict[str, str | None] = dict.fromkeys(sorted(self._found))
        queue = deque(came)
        while queue:
            url = queue.popleft()
            if url not in self._fetched and self._gain[url] > 0:
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
        return [step for step in reversed(path) if step not in self._fetched]


def graph(web: Web) -> Graph:
    """Where the links of every page lead; made once for a web."""
    if web not in _GRAPHS:
        _GRAPHS[web] = _graph(web)
    return _GRAPHS[web]


def _graph(web: Web) -> Graph:
    """Every page that is reachable from any seed of any task, and where its links lead: to pages of the web only."""
    inside = web.reachable({url for task in web.tasks() for urls in task.seeds.values() for url in urls})
    return web.link_targets(inside, MOST_LINKS) if isinstance(web, RecordedWeb) else by_fetching(web, inside)


def by_fetching(web: Web, inside: frozenset[str]) -> Graph:
    """The same for any web, page by page."""
    page_of: dict[str, str | None] = {url: url for url in inside}  # most links say a page's own name
    return {url: tuple(dict.fromkeys(_targets(web.fetch(url), page_of))) for url in inside}


def _targets(page: Page, page_of: dict[str, str | None]) -> Iterator[str]:
    """The pages that a page leads to; a spelling is read once, if it says the same wherever it stands."""
    links = [link.url for link in page.links[:MOST_LINKS]] + ([page.redirected_to] if page.redirected_to else [])
    for link in links:
        target = page_of[link] if link in page_of else _page_of_link(link, page.url, page_of)
        if target is not None:
            yield target


def _page_of_link(link: str, base: str, page_of: dict[str, str | None]) -> str | None:
    try:
        target = page_of.get(canonical(link, base))
    except UrlError:
        target = None
    if link.startswith(("http://", "https://")):
        page_of[link] = target
    return target
