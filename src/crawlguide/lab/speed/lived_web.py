"""The web of a lived crawl: pages with titles, anchors and links, some relevant, made while they are fetched.

What a page is about stands in its address, and in most anchors that lead to it: three words, most of them of its
topic, as in the synthetic webs of the lab. How relevant it is follows from those words, with noise and disappointments,
so that a strategy has something to learn. Links lead to the home page, to pages seen lately and to new ones, mostly of
the same host and of the same topic; robots.txt forbids some.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from crawlguide.core.messages import VERSION
from crawlguide.lab.speed.frontier import OUTLINKS
from crawlguide.lab.synthetic.texts import COMMON, GENERAL, TOPICS

if TYPE_CHECKING:
    from collections.abc import Sequence

TOPIC = "garden-plants"
DEFINITION = {  # all else, politeness, robots.txt, traps and risk, as it is by default
    "goal": {"topic": "garden plants", "keywords": ["soil", "seed", "compost", "pruning", "mulch"]},
}
KNOWN_LINKS = 4  # of a page: to pages seen lately; one more leads home
NEAR, ALIKE = 0.6, 0.7  # of new links: to the same host, to the same topic
ON_TOPIC = 0.75  # of the words of a title
DEAD, DISAPPOINTING = 0.03, 0.3  # of pages; of those whose address promises something
NAMELESS, PRIVATE = 0.1, 0.02  # of new links: the anchor says nothing of its target, robots.txt forbids it
SEEN_LATELY = 2_000
RULES = "User-agent: *\nDisallow: /members/\nDisallow: /*?print=\n"


class LivedWeb:
    """Makes the page at an address. The same calls in the same order make the same web."""

    def __init__(self, hosts: int, seed: int = 0) -> None:
        self._hosts = hosts
        self._rng = random.Random(seed)  # noqa: S311
        self._words = {name: (*name.split("-"), *words) for name, words in TOPICS.items()}
        self._topics = list(TOPICS)
        self._made = 0  # pages that have an address
        self._lately: list[tuple[str, str]] = []  # addresses and titles

    def seeds(self, count: int) -> list[str]:
        """The home pages of the first hosts."""
        return [self._home(number) for number in range(min(count, self._hosts))]

    def robots_files(self) -> list[str]:
        """The robots.txt of every host; who tells them all makes sure that the server fetches none."""
        return [f"{self._home(number)}robots.txt" for number in range(self._hosts)]

    def report(self, urls: Sequence[str], name: str) -> dict[str, Any]:
        fetches = [self.fetch(url) for url in urls]
        return {"mcp_version": VERSION, "crawler_id": "c", "report_id": name, "fetches": fetches}

    def fetch(self, url: str) -> dict[str, Any]:
        """What a crawler tells of an address."""
        if url.endswith("/robots.txt"):
            return {"url": url, "status": 200, "elapsed_ms": 60, "text": RULES}
        if self._rng.random() < DEAD:
            return {"url": url, "status": 404, "elapsed_ms": 50, "bytes": 900}
        self._made += 1
        topic, title = _about(url), _title(url)
        self._remember(url, title)
        return {
            "url": url,
            "status": 200,
            "elapsed_ms": 40 + 400 * self._rng.random() ** 3,
            "bytes": 5_000 + int(60_000 * self._rng.random() ** 2),
            "content_type": "text/html",
            "content_hash": f"{self._made:016x}",
            "title": title,
            "relevance": self._relevance(url),
            "outlinks": self._links(url, topic),
        }

    def _relevance(self, url: str) -> float:
        """The share of the topic's words in the address, with noise."""
        words, chance = _slug(url), self._rng
        share = sum(word in self._words[TOPIC] for word in words) / max(1, len(words))
        kept = 0.0 if chance.random() < DISAPPOINTING else share
        return round(min(1.0, max(0.0, 0.05 + 0.85 * kept + chance.gauss(0.0, 0.08))), 3)

    def _links(self, url: str, topic: str) -> list[dict[str, str]]:
        host = url[: url.index("/", len("https://"))]
        links = [{"url": "/", "anchor": "home"}]
        known = min(KNOWN_LINKS, len(self._lately))
        links += [{"url": to, "anchor": title} for to, title in self._rng.sample(self._lately, known)]
        return links + [self._new_link(host, topic) for _ in range(OUTLINKS - len(links))]

    def _new_link(self, host: str, topic: str) -> dict[str, str]:
        chance = self._rng.random
        about = topic if topic and chance() < ALIKE else self._topics[int(chance() ** 2 * len(self._topics))]
        pool = self._words[about]
        source = [pool if chance() < ON_TOPIC else COMMON for _ in range(3)]
        words = [one[int(chance() * len(one))] for one in source]
        base = host if chance() < NEAR else self._home(int(chance() ** 1.5 * self._hosts))[:-1]
        self._made += 1
        section = about if chance() < 0.5 else GENERAL[int(chance() * len(GENERAL))]
        section = "members" if chance() < PRIVATE else section
        address = f"{base}/{section}/{'-'.join(words)}-{self._made}"
        return {"url": address, "anchor": "read more" if chance() < NAMELESS else " ".join(words)}

    def _home(self, number: int) -> str:
        return f"https://h{number:05d}.example/"

    def _remember(self, url: str, title: str) -> None:
        if len(self._lately) < SEEN_LATELY:
            self._lately.append((url, title))
        else:
            self._lately[self._made % SEEN_LATELY] = (url, title)


WORDS_OF = {word: name for name, words in reversed(TOPICS.items()) for word in (*name.split("-"), *words)}


def _slug(url: str) -> list[str]:
    """The words in the last part of an address; a home page has none."""
    return [word for word in url.rpartition("/")[2].split("-") if not word.isdecimal()] if url[-1] != "/" else []


def _about(url: str) -> str:
    """The topic that its address says, or nothing."""
    topics = [WORDS_OF[word] for word in _slug(url) if word in WORDS_OF]
    return max(topics, key=topics.count) if topics else ""


def _title(url: str) -> str:
    return " ".join(_slug(url)).capitalize() or f"Welcome to {url[len('https://') : -1]}"
