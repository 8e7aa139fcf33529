"""What comes into a crawl: the fetches and links of a tell, and seeds, each converted once into columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.errors import UrlError
from crawlguide.core.messages import MAX_METADATA_BYTES, MAX_OUTLINKS
from crawlguide.core.turns import in_turns, let_others
from crawlguide.core.types import READ_ANCHOR, Fetches, Links, Report, Seed
from crawlguide.guide.tell.pages import told_relevance
from crawlguide.policy.robots.cache import is_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from crawlguide.core.messages import Fetch, Outlink, SeedMessage
    from crawlguide.core.patterns import Patterns
    from crawlguide.core.protocols import JudgesLinks
    from crawlguide.core.tables import F64, U64, Text
    from crawlguide.core.types import Crawl

LINKS_AT_ONCE, JUDGED_AT_ONCE = 500, 5
NAN = float("nan")


@dataclass(frozen=True)
class IntakeRules:
    """What a crawl's definition says about all that comes in: who judges a page, what is refused, how deep it goes."""

    judge: Callable[[Fetch], float]
    verdict: Callable[[str], str | None]  # why a host is refused
    max_depth: int = -1
    bans: Callable[[str, str], str | None] | None = None  # the rule that bans a URL on a host, if any are banned
    priorities: Mapping[str, float] = field(default_factory=dict)  # manual priorities of single URLs
    follows: Callable[[Fetch, str], bool] | None = None  # whether the links of a page at a URL may be followed
    keeps: Callable[[Fetch, str], bool] | None = None  # whether a page at a URL may be kept, else its relevance is 0
    link_judges: Sequence[JudgesLinks] = ()  # filters that judge a URL by itself
    seeded: Callable[[str], None] | None = None  # called with the host of each seed
    revivable: frozenset[str] = frozenset()  # filters whose refusals may cease to hold
    patterns: Sequence[Patterns] = ()  # all that are searched in URLs, by whomever

    async def search_ahead(self, urls: Callable[[], Sequence[str]]) -> None:
        """Before URLs are judged or valued: long searches of patterns keep nobody waiting."""
        if self.patterns:
            texts = urls()
            for patterns in self.patterns:
                await patterns.search_ahead(texts)

    def relevance(self, fetch: Fetch, url: str, target: str) -> float:
        """NaN for robots.txt and the like: nobody looks for it."""
        if is_file(url):
            return NAN
        return self.judge(fetch) if self.keeps is None or self.keeps(fetch, target) else 0.0

    def outlinks(self, fetch: Fetch, target: str) -> Sequence[Outlink]:
        """The links of a page that may be followed."""
        links = fetch.outlinks or ()
        return links if not links or self.follows is None or self.follows(fetch, target) else ()

    def reason(self, url: str, host: str) -> str | None:
        """Why a URL is dropped on sight; None: it is not."""
        banned = self.verdict(host) or ("banned" if self.bans and self.bans(url, host) else None)
        if banned or not self.link_judges:
            return banned
        key = np.array([urls.identity(url, host)], np.uint64)
        return next(
            (link_judge.name for link_judge in self.link_judges if link_judge.judge_links([host], [url], [""], key)[0]),
            None,
        )


class Placed(NamedTuple):
    """URLs as columns, with the queues they wait in."""

    url: Text
    id: U64
    host: Text


# a tell


async def reported(
    messages: Sequence[Fetch], crawl: Crawl, teller: str | Sequence[str], at: float, intake: IntakeRules
) -> Report:
    """The fetches and links of tells as columns; what cannot be used is skipped with its reason.

    `teller` is who tells all of it, or each of the fetches.

    Others are served between very many links.
    """
    items: list[int] = []
    pages: list[str] = []
    targets: list[str] = []
    links, skips, truncated = LinksInTurns(intake), dict[int, str](), dict[int, int]()
    for item, fetch in enumerate(messages):
        try:
            _check(fetch)
            url = urls.canonical(fetch.url)
            target = urls.canonical(fetch.redirected_to, url) if fetch.redirected_to else url
        except UrlError as wrong:
            skips[item] = wrong.message
            continue
        outlinks = intake.outlinks(fetch, target)
        if len(outlinks) > MAX_OUTLINKS:
            truncated[item] = len(outlinks) - MAX_OUTLINKS
        await links.add(outlinks[:MAX_OUTLINKS], len(items), target)
        items.append(item)
        pages.append(url)
        targets.append(target)
    used = [messages[item] for item in items]
    relevance = await _judged(intake, list(zip(used, pages, targets, strict=True)))
    tellers = teller if isinstance(teller, str) else [teller[item] for item in items]
    fetches = fetch_columns(items, used, pages, targets, relevance, tellers)
    return Report(crawl, at, fetches, await links.columns(), [fetch.url for fetch in messages], skips, truncated)


async def _judged(intake: IntakeRules, pages: Sequence[tuple[Fetch, str, str]]) -> F64:
    """How relevant each page is. A judge may take some milliseconds for one, so others are served in between."""
    at_once = JUDGED_AT_ONCE if any(fetch.title or fetch.text for fetch, _, _ in pages) else max(len(pages), 1)
    return _numbers([intake.relevance(*page) async for some in in_turns(pages, at_once) for page in some])


def _check(fetch: Fetch) -> None:
    if fetch.status is None and fetch.error is None and fetch.reward is None:
        raise UrlError("status: expected a status or an error (or a reward as late feedback), got none of them")


def fetch_columns(
    items: Sequence[int],
    messages: Sequence[Fetch],
    pages: Sequence[str],
    targets: Sequence[str],
    relevance: F64,
    teller: str | Sequence[str],
) -> Fetches:
    """Messages as columns; `pages` and `targets` are their canonical URLs, before and after redirects."""
    return columns_of(messages, _placed(pages), _placed(targets), relevance, teller).attach(
        item=np.array(items, np.int64)
    )


def columns_of(
    messages: Sequence[Fetch], page: Placed, target: Placed, relevance: F64, teller: str | Sequence[str]
) -> Fetches:
    """The same for whoever knows where the URLs belong."""
    return Fetches(
        item=np.arange(len(messages)),
        url=page.url,
        id=page.id,
        host=page.host,
        target_url=target.url,
        target_id=target.id,
        target_host=target.host,
        status=np.array([_status(fetch) for fetch in messages], np.int32),
        error=texts(_error(fetch) for fetch in messages),
        elapsed_ms=_numbers(fetch.elapsed_ms for fetch in messages),
        bytes=_numbers(fetch.bytes for fetch in messages),
        relevance=relevance,
        reward=_numbers(fetch.reward for fetch in messages),
        retry_after_s=_numbers(fetch.retry_after_s for fetch in messages),
        fetch_time=texts(fetch.fetch_time or "" for fetch in messages),
        content_hash=texts(fetch.content_hash or "" for fetch in messages),
        crawler_id=texts([teller] * len(messages) if isinstance(teller, str) else teller),
        labelled=np.array([told_relevance(fetch) is not None for fetch in messages], np.bool_),
    )


def _placed(canonical: Sequence[str]) -> Placed:
    hosts = [urls.queue(url) for url in canonical]
    return Placed(texts(canonical), _ids(canonical, hosts), texts(hosts))


def no_fetches() -> Fetches:
    return fetch_columns([], [], [], [], np.zeros(0), "")


def _status(fetch: Fetch) -> int:
    """-1 for late feedback, which says nothing about a fetch; 0 where there was no answer."""
    return -1 if fetch.status is None and fetch.error is None else fetch.status or 0


def _error(fetch: Fetch) -> str:
    return fetch.error or ("other" if fetch.status == 0 else "")  # a status of 0 is what many call no answer


def _ids(canonical: Sequence[str], hosts: Sequence[str]) -> U64:
    return np.array(list(map(urls.identity, canonical, hosts)), np.uint64)


def _numbers(values: Iterable[float | None]) -> F64:
    return np.array([NAN if value is None else value for value in values], np.float64)


# links


@dataclass
class ReportedLinks:
    """Collects links column by column; what the crawl refuses on sight is marked with the reason."""

    intake: IntakeRules
    parent: list[int] = field(default_factory=list)
    url: list[str] = field(default_factory=list)
    host: list[str] = field(default_factory=list)
    page: list[str] = field(default_factory=list)  # the queue of the page it stands on
    anchor: list[str] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    metadata: list[bytes | None] = field(default_factory=list)
    seeds: dict[int, Seed] = field(default_factory=dict)

    def add(self, outlinks: Sequence[Outlink], parent: int, base: str, first: int = 0) -> None:
        """Links of one page in their order, from the `first` on.

        One that nobody can fetch, or to the page itself, says nothing.
        """
        base_queue = urls.queue(base)
        for number, link in enumerate(outlinks, first):
            try:
                url, host = urls.resolved(link.url, base, base_queue)
            except UrlError:
                continue
            if url != base:
                self.parent.append(parent)
                self.url.append(url)
                self.host.append(host)
                self.page.append(base_queue)
                self.anchor.append(link.anchor[:READ_ANCHOR])
                self.position.append(number if link.position is None else link.position)
                self.metadata.append(_packed_or_none(link.metadata) if link.metadata else None)

    def seed(self, seed: Seed) -> None:
        """A seed is a link that stands on no page."""
        self.seeds[len(self.url)] = seed
        self.parent.append(-1)
        self.url.append(seed.url)
        self.host.append(urls.queue(seed.url))
        if self.intake.seeded:
            self.intake.seeded(self.host[-1])
        self.page.append("")
        self.anchor.append("")
        self.position.append(0)
        self.metadata.append(seed.metadata)

    def columns(self) -> Links:
        ids, max_depth = _ids(self.url, self.host), np.full(len(self.url), -1, np.int32)
        for row, seed in self.seeds.items():
            max_depth[row] = -1 if seed.max_depth is None else seed.max_depth
        return Links(
            parent=np.array(self.parent, np.int64),
            url=texts(self.url),
            id=ids,
            host=texts(self.host),
            anchor=texts(self.anchor),
            position=np.array(self.position, np.int32),
            manual_priority=self._manual_priority(),
            max_depth=max_depth,
            metadata=texts(self.metadata),
            reason=texts(self._reasons(ids)),
            deepest=self.intake.max_depth,
            revivable=self.intake.revivable,
        )

    def _manual_priority(self) -> F64:
        """What the crawl's definition sets for a URL goes before what its seed says; NaN: nobody sets one."""
        priority = np.full(len(self.url), np.nan)
        for row, seed in self.seeds.items():
            priority[row] = NAN if seed.priority is None else seed.priority
        if self.intake.priorities:
            priority[:] = list(map(self.intake.priorities.get, self.url, priority))
        return priority

    def _reasons(self, ids: U64) -> list[str | None]:
        verdicts = {host: self.intake.verdict(host) for host in set(self.host)}
        reasons = [verdicts[host] for host in self.host]
        if bans := self.intake.bans:
            banned = (bans(url, host) for url, host in zip(self.url, self.host, strict=True))
            reasons = [reason or ("banned" if rule else None) for reason, rule in zip(reasons, banned, strict=True)]
        for link_judge in self.intake.link_judges:
            self._refuse(link_judge, reasons, ids)
        return reasons

    def _refuse(self, link_judge: JudgesLinks, reasons: list[str | None], ids: U64) -> None:
        """What a filter refuses on sight, except seeds: people vouch for them."""
        rows: Sequence[int] = range(len(reasons))
        hosts, links, pages = self.host, self.url, self.page
        if self.seeds or any(reasons):
            rows = [row for row in rows if reasons[row] is None and row not in self.seeds]
            hosts, links, pages = ([column[row] for row in rows] for column in (hosts, links, pages))
            ids = ids[np.array(rows, np.int64)]
        for row, why in zip(rows, link_judge.judge_links(hosts, links, pages, ids), strict=True):
            if why is not None:
                reasons[row] = link_judge.name


class LinksInTurns:
    """The links of pages with however many, made into columns some at a time."""

    def __init__(self, intake: IntakeRules) -> None:
        self._intake = intake
        self._done: list[Links] = []
        self._links = ReportedLinks(intake)

    async def add(self, outlinks: Sequence[Outlink], parent: int, base: str) -> None:
        for first in range(0, len(outlinks), LINKS_AT_ONCE):
            if len(self._links.url) >= LINKS_AT_ONCE:
                self._done.append(await self._columns())
                self._links = ReportedLinks(self._intake)
                await let_others()
            self._links.add(outlinks[first : first + LINKS_AT_ONCE], parent, base, first)

    async def columns(self) -> Links:
        first, *more = (*self._done, await self._columns())
        return first.extended(more)

    async def _columns(self) -> Links:
        links = self._links
        await self._intake.search_ahead(lambda: links.url)
        return links.columns()


def _packed_or_none(metadata: Mapping[str, Any] | None) -> bytes | None:
    """Metadata that is too large is left out; the link it came with is worth more."""
    packed = msgspec.json.encode(metadata) if metadata else b""
    return packed if 0 < len(packed) <= MAX_METADATA_BYTES else None


# seeds


def seed_of(message: str | SeedMessage) -> Seed:
    """A seed as a person wrote it; raises `UrlError` for one nobody can fetch."""
    if isinstance(message, str):
        return Seed(urls.canonical(message))
    metadata = _packed(message.metadata) if message.metadata else None
    return Seed(urls.canonical(message.url), message.priority, message.max_depth, metadata)


def _packed(metadata: Mapping[str, Any]) -> bytes:
    packed = msgspec.json.encode(metadata)
    if len(packed) > MAX_METADATA_BYTES:
        raise UrlError(f"metadata: expected at most {MAX_METADATA_BYTES} bytes, got {len(packed)}")
    return packed


def seeded(seeds: Sequence[Seed], intake: IntakeRules) -> Links:
    """Seeds as links that stand on no page."""
    links = ReportedLinks(intake)
    for seed in seeds:
        links.seed(seed)
    return links.columns()
