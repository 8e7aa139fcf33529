"""Kinds of traps that neither the lab makes nor the filter was written for, put into webs that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlguide.lab.pages import Link, Page
from tests.policy.trapped import SHARE, number, vars_of

if TYPE_CHECKING:
    from crawlguide.lab.pages import Web

WORDS = [
    "red",
    "blue",
    "large",
    "small",
    "new",
    "old",
    "cheap",
    "fast",
    "light",
    "dark",
    "round",
    "flat",
    "soft",
    "loud",
]


class Facets:
    """Things found by words in the path, /find/red/large/new: each page has a title and a text of its own."""

    mark = "/find/"

    def __init__(self, web: Web) -> None:
        self.web = web

    def __getattr__(self, name: str) -> Any:
        return getattr(self.web, name)

    def waste(self, url: str) -> str | None:
        return "trap" if self.mark in url else self.web.waste(url)

    def fetch(self, url: str) -> Page:
        base, inside, rest = url.partition(self.mark)
        if inside:
            return self.page(base, rest)
        page = self.web.fetch(url)
        if page.status != 200 or number(url) % SHARE or not page.links:
            return page
        home = "/".join(url.split("/")[:3])
        way = Link(home + self.mark + self.first(url), "find more", len(page.links))
        return Page(**{**vars_of(page), "links": (*page.links, way)})

    def first(self, url: str) -> str:
        return WORDS[number(url) % len(WORDS)]

    def page(self, base: str, rest: str) -> Page:
        have, own = rest.split("/"), number(base + rest)
        more = [word for word in WORDS if word not in have]
        ways = tuple(Link(f"{base}{self.mark}{rest}/{word}", word, place) for place, word in enumerate(more))
        title, text = f"Things that are {' and '.join(have)}", f"{own % 97} things: {own} {own // 3} {own // 7}"
        return self.made(base + self.mark + rest, title, text, ways)

    def made(self, url: str, title: str, text: str, ways: tuple[Link, ...]) -> Page:
        own = number(url)
        return Page(url, 200, title, text, 1_200 + own % 999, "en", ways, content_hash=f"{own:x}")


class Mirror(Facets):
    """The whole site once more below a token that is another one in every link: /v/3f2a9c/..."""

    mark = "/v/"

    def first(self, url: str) -> str:
        return f"{_token(url)}/{'/'.join(url.split('/')[3:])}"

    def page(self, base: str, rest: str) -> Page:
        page = self.web.fetch(f"{base}/{rest.partition('/')[2]}")
        ways = [link.url.replace(f"{base}/", f"{base}/v/{_token(rest + link.url)}/", 1) for link in page.links]
        links = tuple(Link(way, link.anchor, link.position) for way, link in zip(ways, page.links, strict=True))
        return Page(**{**vars_of(page), "url": f"{base}/v/{rest}", "links": links})


class Feed(Facets):
    """News that go back for ever by a cursor, two ways at a time: /feed?after=..."""

    mark = "/feed?after="

    def first(self, url: str) -> str:
        return str(number(url) % 10**12)

    def page(self, base: str, rest: str) -> Page:
        own = number(base + rest)
        ways = tuple(
            Link(f"{base}{self.mark}{number(f'{own} {way}') % 10**12}", f"older {way}", way) for way in range(2)
        )
        title, text = f"News before {own % 10**6}", f"then {own} happened, and {own // 5}"
        return self.made(base + self.mark + rest, title, text, ways)


def _token(text: str) -> str:
    return f"{number(text) % 16**6:06x}"
