"""Where to begin, made of what a person types: URLs are taken as they are; of a host its home page, sitemaps and feeds
are looked at, and the pages they name are ranked by the words of the topic."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.definition import Goal
from crawlguide.core.errors import ConfigError, CrawlGuideError, DataError, NotFound, UrlError
from crawlguide.core.outcomes import is_retryable, is_success
from crawlguide.core.urls import canonical, domain_of, parts
from crawlguide.crawler.fetched import Fetched
from crawlguide.crawler.lines import ROBOTS_BYTES
from crawlguide.crawler.parse import parse
from crawlguide.features.embedding import words_of
from crawlguide.features.relevance.words import Matcher, topic_words
from crawlguide.gateway.readers import sitemap
from crawlguide.gateway.readers._bytes import Held
from crawlguide.policy.robots import allowed, parser

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from crawlguide.crawler.fetch import Fetcher

MOST_SITEMAPS, MOST_FEEDS = 5, 2  # files of a site that are looked at
MOST_ENTRIES = 50_000  # pages that are looked at
MOST_WORDS = 300  # characters about one of them
MOST_OF_SITE = 30  # that become seeds, besides the home page
PAUSE_S, LONGEST_PAUSE_S = 1.0, 10.0  # between two requests to a host
REFERENCE_CHARACTERS = 20_000
NAMES_AT_ONCE = 32  # that are looked up: fewer than a resolver takes for one domain
NAMES_WITHIN_S = 30.0  # all names of seeds
SILENT_S, MOST_NAMED = 2.0, 5  # before it is said what is waited for, and so many hosts
HTML = ("content-type", "text/html")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass
class Named:
    """Pages that a site itself names, with the words it says about them. It speaks for its own domain alone."""

    domain: str
    words: dict[str, str] = field(default_factory=dict)

    def add(self, url: str, words: str = "") -> None:
        known = self.words.get(url)
        if (known is None and len(self.words) >= MOST_ENTRIES) or domain_of(parts(url).host) != self.domain:
            return
        if known is None or len(known) < MOST_WORDS:
            self.words[url] = f"{known or ''} {words[:MOST_WORDS]}".strip()

    def best(self, goal: Goal, most: int) -> list[str]:
        """Those that have words of the goal, most of them first; without a goal, the first."""
        if not goal:
            return list(self.words)[:most]
        matcher = Matcher(topic_words(goal))
        shares = {url: matcher.share(f"{words_of(url)} {words}") for url, words in self.words.items()}
        return sorted((url for url in shares if shares[url] > 0), key=lambda url: -shares[url])[:most]


async def found(  # noqa: PLR0913 - what is sought, and by what means
    given: Sequence[str],
    goal: Mapping[str, Any],
    fetcher: Fetcher,
    agent: str,
    say: Callable[[str], object],
    pause_s: float = PAUSE_S,
    *,
    within_s: float = inf,
) -> list[str]:
    """The seeds, as far as they are found in that time.

    Raises `ConfigError` for what is none, `NotFound` where no host answers.
    """
    until = asyncio.get_running_loop().time() + within_s
    if not all(text.strip() for text in given):
        raise ConfigError("SEED: expected a URL or a host, got nothing: is a variable of your shell empty?")
    urls = [text if SCHEME.match(text) else "" if _is_host(text) else f"https://{text}" for text in given]
    plain = [_checked(url) for url in urls if url]
    hosts = {parts(url).host: url for url in plain}
    refused = await _refusals(hosts, fetcher, say, min(NAMES_WITHIN_S, within_s))
    is_lost = len(refused) == len(hosts)  # so far: sites may be reached
    if plain and is_lost and len(plain) == len(given):
        raise _unreached(refused)
    for words in refused[:5]:
        say(words)
    named = [_host(text) for text, url in zip(given, urls, strict=True) if not url]
    sites = [Site(host, fetcher, agent, say, pause_s, until) for host in named]
    aim = msgspec.convert(dict(goal), Goal)
    of_sites = await asyncio.gather(*(site.seeds(aim) for site in sites))
    if sites and is_lost and not any(of_sites):
        raise _unreached([*refused, *(site.problem for site in sites)])
    return [*dict.fromkeys([*plain, *(url for some in of_sites for url in some)])]


async def _refusals(
    hosts: Mapping[str, str], fetcher: Fetcher, say: Callable[[str], object], within_s: float
) -> list[str]:
    """Why hosts cannot be reached. Name servers that say nothing take a while: all together no longer than one."""
    slots, waiting = asyncio.Semaphore(NAMES_AT_ONCE), dict.fromkeys(hosts)

    async def refusal(host: str, url: str) -> str:
        try:
            async with asyncio.timeout(within_s), slots:
                return await fetcher.refusal(url)
        except TimeoutError:
            return f"{host[:100]}: no name server has answered within {within_s:.2g} s"
        finally:
            del waiting[host]

    loop = asyncio.get_running_loop()
    timer = loop.call_later(SILENT_S, lambda: say(f"waiting for the addresses of {_few(waiting)}"))
    try:
        return [words for words in await asyncio.gather(*map(refusal, hosts, hosts.values())) if words]
    finally:
        timer.cancel()


def _few(hosts: Collection[str]) -> str:
    named = ", ".join(host[:100] for host in islice(hosts, MOST_NAMED))
    return f"{named} and {len(hosts) - MOST_NAMED:,} more" if len(hosts) > MOST_NAMED else named


def _unreached(problems: Sequence[str]) -> NotFound:
    """A crawl whose every seed lies where it may not go, or where nobody is, would wait for ever."""
    how = "; --allow-network permits such" if any("no public address" in words for words in problems) else ""
    return NotFound(f"no seed can be reached: {'; '.join(problems[:5])}{how}")


def checked(text: str) -> str:
    """A URL, or the home page of a host; `ConfigError` for what is neither."""
    return _checked(text if SCHEME.match(text) else f"https://{text}")


@dataclass
class Site:
    """One host, asked politely: one request after the other."""

    host: str
    fetcher: Fetcher
    agent: str
    say: Callable[[str], object]
    pause_s: float
    until: float = inf  # as the event loop counts
    problem: str = ""
    rules: bytes = b""
    home: str = ""

    async def seeds(self, goal: Goal) -> list[str]:
        """Its home page, and the pages that fit the goal best."""
        robots = await self._reached()
        if robots is None:
            return []
        self.home = home = _home_of(robots)
        if _is_unread(robots):
            return [home]  # nobody may look around there now; the guide waits until its rules are known
        named = await self._named(home, robots)
        named.words.pop(home, None)
        best = await asyncio.to_thread(named.best, goal, MOST_OF_SITE)  # of tens of thousands, which takes a second
        none = ", none has words of the topic: the home page is the only seed"
        which = f", {len(best)} of them are seeds" if best else none if named.words else ""
        self.say(f"{self.host}: {len(named.words):,} pages named by sitemaps and feeds{which}")
        return [home, *best]

    async def _named(self, home: str, robots: Fetched) -> Named:
        """What its home page, sitemaps and feeds name until the time is over."""
        named = Named(domain_of(parts(home).host))
        group, sitemaps = parser.parse(self._take_rules(robots), self.agent)
        self.pause_s = min(max(self.pause_s, group.pause_s or 0.0), LONGEST_PAUSE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self.until):
                feeds = await self._home(home, named)
                await self._read_sitemaps(_resolved(sitemaps, home) or [canonical("/sitemap.xml", home)], named)
                await self._read_feeds(feeds[:MOST_FEEDS], named)
        return replace(named, words=dict(named.words))  # a thread may still be adding to what it was given

    def _take_rules(self, robots: Fetched) -> bytes:
        self.rules = robots.body if robots.status is not None and is_success(robots.status) else b""
        return self.rules

    async def _reached(self) -> Fetched | None:
        """Its robots.txt, by the scheme by which it answers; None: by none."""
        try:
            async with asyncio.timeout_at(self.until):
                for scheme in ("https", "http"):
                    url = _checked(f"{scheme}://{self.host}/robots.txt")
                    answer = await self.fetcher.fetch(url, enough=ROBOTS_BYTES)
                    if answer.status is not None:
                        return answer
                    self.problem = f"{self.host}: {answer.problem or answer.error}"
        except TimeoutError:
            self.problem = f"{self.host}: its robots.txt has not come in time"
        self.say(self.problem)
        return None

    async def _get(self, url: str) -> Fetched:
        """Politely, and if its rules permit it; they say nothing of other hosts."""
        if not url.startswith(self.home):
            return Fetched(url, error="blocked", problem="it is on another host")
        if not allowed(self.rules, self.agent, url):
            return Fetched(url, error="blocked", problem="its robots.txt forbids it")
        await asyncio.sleep(self.pause_s)
        return await self.fetcher.fetch(url)

    async def _home(self, home: str, named: Named) -> list[str]:
        """Its links count as named, in their own words; returns its feeds."""
        page = await asyncio.to_thread(parse, await self._get(home), self.agent)
        for link in page.links:
            if link.url.startswith(home):
                named.add(link.url, link.anchor)
        return _resolved(page.feeds, home)

    async def _read_sitemaps(self, urls: Iterable[str], named: Named) -> None:
        """The first few that are named, each once: an index may name any number, and itself."""
        known = [*islice(dict.fromkeys(urls), MOST_SITEMAPS)]
        for url in known:  # which grows
            answer = await self._get(url)
            if not answer.error and answer.status == 200:
                nested = await asyncio.to_thread(_sitemap_pages, answer, named)
                known += islice((one for one in dict.fromkeys(nested) if one not in known), MOST_SITEMAPS - len(known))

    async def _read_feeds(self, urls: Iterable[str], named: Named) -> None:
        for url in urls:
            answer = await self._get(url)
            if not answer.error and answer.status == 200:
                for link in (await asyncio.to_thread(parse, answer, self.agent)).links:
                    named.add(link.url, link.anchor)


async def reference(text: str, fetcher: Fetcher) -> str:
    """A sample page: the text of a file or of a URL. Raises `CrawlGuideError` where there is none."""
    if SCHEME.match(text):
        answer = await fetcher.fetch(_checked(text))
        if answer.error or not is_success(answer.status or 0):
            raise CrawlGuideError(f"--reference: {text}: {answer.problem or answer.status}")
    else:
        try:
            body = await asyncio.to_thread(Path(text).read_bytes)
        except OSError as problem:
            raise ConfigError(f"--reference: {text} cannot be read: {problem.strerror}") from None
        is_html = text.lower().endswith((".html", ".htm"))  # else its first bytes say what it is
        answer = Fetched("file:///reference", 200, headers=(HTML,) if is_html else (), body=body)
    page = await asyncio.to_thread(parse, answer, fetcher.options.user_agent)
    words = f"{page.title}\n{page.text}".strip()
    if page.problem or not words:
        raise CrawlGuideError(f"--reference: {text}: {page.problem or 'no text was found in it'}")
    return words[:REFERENCE_CHARACTERS]


def _home_of(robots: Fetched) -> str:
    """A robots.txt may lead to another host of its site (to www.), which then is the one that was meant."""
    own, final = domain_of(parts(robots.url).host), domain_of(parts(robots.final_url).host)
    return canonical("/", robots.final_url if final == own else robots.url)


def _is_unread(robots: Fetched) -> bool:
    """Whether nobody knows its rules: it did not come whole, its host is in trouble, or it leads nowhere."""
    status = robots.status or 0
    return bool(robots.error) or is_retryable(status) or 300 <= status < 400


def _sitemap_pages(answer: Fetched, named: Named) -> list[str]:
    """Its pages are named; returns the sitemaps that it names."""
    nested: list[str] = []
    try:
        for entry in sitemap.entries(Held("it", answer.body)):
            for url in _resolved([entry.text("loc")], answer.final_url):
                if entry.nested:
                    nested.append(url)
                else:
                    named.add(url)
    except DataError:  # what came before the fault counts
        pass
    return nested


def _resolved(texts: Iterable[str], base: str) -> list[str]:
    urls = []
    for text in texts:
        try:
            urls.append(canonical(text.strip(), base))
        except UrlError:
            continue
    return urls


def _is_host(text: str) -> bool:
    return "/" not in text.removesuffix("/")


def _host(text: str) -> str:
    return text.removesuffix("/")


def _checked(url: str) -> str:
    try:
        return canonical(url)
    except UrlError as wrong:
        raise ConfigError(f"SEED: {wrong.message}") from None
