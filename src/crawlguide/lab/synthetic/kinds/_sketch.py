"""A web that is drawn page by page and held whole: small, and the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import xxhash

from crawlguide.core.errors import UrlError
from crawlguide.core.urls import canonical, queue
from crawlguide.lab.pages import Link, Page, Task
from crawlguide.lab.synthetic.texts import COMMON, TOPICS, draw, generator, page_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NAMES = tuple(TOPICS)
TITLE_ON_TOPIC = 0.75  # of the words of a title
SAYS_NOTHING = 0.15  # of anchors: "read more"


@dataclass
class Drawn:
    title: str
    topic: int = -1  # of its text; -1: none
    text: str = ""  # instead of one that is made up about the topic
    links: dict[str, str] = field(default_factory=dict)  # URLs with their anchors


class Sketch:
    """A web while it is drawn."""

    def __init__(self, kind: str, seed: int) -> None:
        self.seed = seed
        self.random = generator("kind", kind, seed)
        self.pages: dict[str, Drawn] = {}

    def page(self, url: str, title: str, topic: int = -1, text: str = "") -> str:
        self.pages[canonical(url)] = Drawn(title, topic, text)
        return canonical(url)

    def link(self, page: str, to: str, anchor: str | None = None) -> None:
        """Without an anchor it is the title of the page it leads to, or sometimes one that says nothing."""
        if anchor is None:
            dumb = draw("dumb", self.seed, page, to) < SAYS_NOTHING
            anchor = "read more" if dumb else self.pages[to].title
        self.pages[page].links.setdefault(to, anchor)

    def title(self, topic: int) -> str:
        """Three words, most of them of the topic."""
        words = (*NAMES[topic].split("-"), *TOPICS[NAMES[topic]]) if topic >= 0 else COMMON
        return " ".join(
            self.random.choice(words if self.random.random() < TITLE_ON_TOPIC else COMMON) for _ in range(3)
        ).capitalize()

    def some(self, urls: Sequence[str], count: int) -> list[str]:
        return self.random.sample(urls, min(count, len(urls)))

    def task(self, name: str, seeds: Iterable[str], relevant: Iterable[str], goal: str | None = None) -> Task:
        return Task(name, {"portal": tuple(seeds)}, frozenset(relevant), goal)


def slug(title: str) -> str:
    return title.lower().replace(" ", "-")


class DrawnWeb:
    """A sketch as a web; what it does not hold is a 404."""

    def __init__(self, name: str, sketch: Sketch, tasks: Sequence[Task]) -> None:
        self.name, self._sketch, self._tasks = name, sketch, list(tasks)

    def __len__(self) -> int:
        return len(self._sketch.pages)

    @property
    def hosts(self) -> list[str]:
        return sorted({queue(url) for url in self._sketch.pages})

    def tasks(self) -> Sequence[Task]:
        return self._tasks

    def fetch(self, url: str) -> Page:
        page = self._sketch.pages.get(_plain(url))
        if page is None:
            return Page(url, 404, elapsed_ms=50.0)
        text = page.text or page_text(page.topic, self._sketch.seed, _plain(url))
        links = tuple(Link(to, anchor, number) for number, (to, anchor) in enumerate(page.links.items()))
        return Page(
            url, 200, page.title, text, size=len(text) + 80 * len(links) + 500, links=links, elapsed_ms=100.0,
            content_hash=xxhash.xxh3_64_hexdigest(f"{page.title}\n{text}".encode()),
        )  # fmt: skip

    def is_relevant(self, task: Task, url: str) -> bool:
        return _plain(url) in task.relevant

    def waste(self, url: str) -> str | None:
        return None if _plain(url) in self._sketch.pages else "dead"

    def reachable(self, seeds: Iterable[str]) -> frozenset[str]:
        reached: set[str] = set()
        frontier = {_plain(seed) for seed in seeds}
        while frontier:
            reached |= frontier & self._sketch.pages.keys()
            frontier = {to for page in frontier & reached for to in self._sketch.pages[page].links} - reached
            frontier &= self._sketch.pages.keys()
        return frozenset(reached)


def _plain(url: str) -> str:
    try:
        return canonical(url)
    except UrlError:
        return url
