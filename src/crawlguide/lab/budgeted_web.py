"""A web as one crawl may see it: within its budget, and only pages that a seed or a fetched page led to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.errors import CrawlGuideError, UrlError
from crawlguide.core.urls import canonical, queue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crawlguide.lab.pages import Page, Task, Web

LETTERS = {"trap": "t", "duplicate": "u", "dead": "d", "error": "e"}


class LookAhead(CrawlGuideError):
    """Somebody wanted to see a page, or its label, that the crawl had not come to."""


class BudgetedWeb:
    """The only access to a web during a run. It records the columns of a run, one entry for each fetch."""

    def __init__(self, web: Web, task: Task, seeds: Iterable[str], budget: int) -> None:
        self._web, self._task, self._budget = web, task, budget
        self._discovered = {canonical(seed) for seed in seeds}
        self._unread: list[tuple[str, str]] = []  # links as pages say them, with their page: most are never asked for
        self._labels: dict[str, bool] = {}
        self._hosts: dict[str, int] = {}
        self.relevant: list[int] = []
        self.outcome: list[str] = []
        self.host: list[int] = []

    @property
    def left(self) -> int:
        return self._budget - len(self.relevant)

    def fetch(self, url: str) -> Page:
        """What a crawler gets there. Raises `LookAhead` for a URL that nothing led to, or when the budget is spent."""
        if not self._is_discovered(url):
            raise LookAhead(f"expected a seed or a link of a fetched page, got {url}")
        if self.left <= 0:
            raise LookAhead(f"expected at most {self._budget} fetches, got one more: {url}")
        page = self._web.fetch(url)
        relevant = self._web.is_relevant(self._task, url)
        self.relevant.append(int(relevant and url not in self._labels))
        self.outcome.append(self._outcome(url, page))
        self.host.append(self._hosts.setdefault(queue(url), len(self._hosts)))
        self._labels[url] = relevant
        targets = [link.url for link in page.links] + ([page.redirected_to] if page.redirected_to else [])
        self._unread += [(target, url) for target in targets]
        return page

    def label(self, url: str) -> float:
        """1 for a relevant page, 0 for another; only for what was fetched."""
        if url not in self._labels:
            raise LookAhead(f"expected a page that was fetched, got {url}")
        return float(self._labels[url])

    def _outcome(self, url: str, page: Page) -> str:
        if page.error:
            return "e"
        if page.redirected_to or 300 <= page.status < 400:
            return "r"
        return LETTERS.get(self._web.waste(url) or "", "p")

    def _is_discovered(self, url: str) -> bool:
        if url in self._discovered:
            return True
        for target, page in self._unread:
            try:
                self._discovered.add(canonical(target, page))
            except UrlError:
                continue  # nobody can fetch it
        self._unread.clear()
        return url in self._discovered
