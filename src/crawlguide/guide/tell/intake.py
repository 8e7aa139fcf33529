"""Messages to columns: the fetches and links of a report, and seeds, with what the crawl refuses on sight."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.errors import UrlError
from crawlguide.core.messages import MAX_METADATA_BYTES, MAX_OUTLINKS
from crawlguide.core.types import Fetches, Links, Report, Seed
from crawlguide.policy.robots.copies import is_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from crawlguide.core.messages import Fetch, Outlink, SeedMessage
    from crawlguide.core.protocols import Sees
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl


NAN = float("nan")


@dataclass(frozen=True)
class Rules:
    """What a crawl says of all that comes in: who judges a page, what is refused on sight, and how deep it goes."""

    judge: Callable[[Fetch], float]
    verdict: Callable[[str], str | None]  # why a host is refused
    max_depth: int = -1
    bans: Callable[[str, str], str | None] | None = None  # the rule that bans a URL on a host, if any are banned
    priorities: Mapping[str, float] = field(default_factory=dict)  # of single URLs
    follows: Callable[[Fetch, str], bool] | None = None  # whether the links of a page at a URL may be followed
    keeps: Callable[[Fetch, str], bool] | None = None  # whether a page at a URL may be kept, else it is worth nothing
    seers: Sequence[Sees] = ()  # filters that judge a URL by itself
    seeded: Callable[[str], None] | None = None  # who hears of the host of each seed

    def relevance(self, fetch: Fetch, url: str) -> float:
        """0 for a page that may not be kept."""
        return self.judge(fetch) if self.keeps is None or self.keeps(fetch, url) else 0.0

    def reason(self, url: str, host: str) -> str | None:
        """Why a URL is dropped on sight; None: it is not."""
        banned = self.verdict(host) or ("banned" if self.bans and self.bans(url, host) else None)
        if banned or not self.seers:
            return banned
        key = np.array([urls.identity(url, host)], np.uint64)
        return next((seer.name for seer in self.seers if seer.sight([host], [url], [""], key)[0]), None)


def reported(fetches: Sequence[Fetch], crawl: Crawl, crawler_id: str, at: float, rules: Rules) -> Report:
    """The fetches and links of a tell as columns; what cannot be used is skipped with its reason."""
    taken, links, skips, truncated = FetchColumns(), LinkColumns(rules), {}, 0
    for number, fetch in enumerate(fetches):
        try:
            _check(fetch)
            url = urls.canonical(fetch.url)
            target = urls.canonical(fetch.redirected_to, url) if fetch.redirected_to else url
        except UrlError as wrong:
            skips[number] = wrong.message
            continue
        outlinks = fetch.outlinks or ()
        if outlinks and rules.follows and not rules.follows(fetch, target):
            outlinks = ()
        truncated += max(0, len(outlinks) - MAX_OUTLINKS)
        links.add(outlinks[:MAX_OUTLINKS], len(taken), target)
        taken.add(number, fetch, url, target, NAN if is_file(url) else rules.relevance(fetch, target))
    return Report(
        crawl=crawl,
        at=at,
        fetches=taken.columns(crawler_id),
        links=links.columns(),
        urls=[fetch.url for fetch in fetches],
        skips=skips,
        truncated=truncated,
    )


def _check(fetch: Fetch) -> None:
    if fetch.status is None and fetch.error is None and fetch.reward is None:
        raise UrlError("status: expected a status or an error (or a reward as late feedback), got none of them")


# Links, one by one, become columns


@dataclass
class LinkColumns:
    """Collects links one by one and turns them into columns."""

    rules: Rules
    parent: list[int] = field(default_factory=list)
    url: list[str] = field(default_factory=list)
    host: list[str] = field(default_factory=list)
    page: list[str] = field(default_factory=list)  # the queue of the page it stands on
    anchor: list[str] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    metadata: list[bytes | None] = field(default_factory=list)
    seeds: dict[int, Seed] = field(default_factory=dict)

    def add(self, outlinks: Sequence[Outlink], parent: int, base: str) -> None:
        """Links of one page in their order; one that nobody can fetch, or to the page itself, says nothing."""
        base_queue = urls.queue(base)
        for number, link in enumerate(outlinks):
            try:
                url, host = urls.located(link.url, base, base_queue)
            except UrlError:
                continue
            if url != base:
                self.parent.append(parent)
                self.url.append(url)
                self.host.append(host)
                self.page.append(base_queue)
                self.anchor.append(link.anchor)
                self.position.append(number if link.position is None else link.position)
                self.metadata.append(_packed_or_none(link.metadata) if link.metadata else None)

    def seed(self, seed: Seed) -> None:
        self.seeds[len(self.url)] = seed
        self.parent.append(-1)
        self.url.append(seed.url)
        self.host.append(urls.queue(seed.url))
        if self.rules.seeded:
            self.rules.seeded(self.host[-1])
        self.page.append("")
        self.anchor.append("")
        self.position.append(0)
        self.metadata.append(seed.metadata)

    def columns(self) -> Links:
        count = len(self.url)
        priority, max_depth = np.full(count, np.nan), np.full(count, -1, np.int32)
        for row, seed in self.seeds.items():
            priority[row] = np.nan if seed.priority is None else seed.priority
            max_depth[row] = -1 if seed.max_depth is None else seed.max_depth
        ids = np.array(list(map(urls.identity, self.url, self.host)), np.uint64)
        if self.rules.priorities:  # a person has said so, whoever finds it
            priority[:] = [self.rules.priorities.get(url, own) for url, own in zip(self.url, priority, strict=True)]
        return Links(
            parent=np.array(self.parent, np.int64),
            url=texts(self.url),
            id=ids,
            host=texts(self.host),
            anchor=texts(self.anchor),
            position=np.array(self.position, np.int32),
            manual_priority=priority,
            max_depth=max_depth,
            metadata=texts(self.metadata),
            reason=texts(self._reasons(ids)),
            deepest=self.rules.max_depth,
        )

    def _reasons(self, ids: U64) -> list[str | None]:
        verdicts = {host: self.rules.verdict(host) for host in set(self.host)}
        reasons = [verdicts[host] for host in self.host]
        if bans := self.rules.bans:
            banned = (bans(url, host) for url, host in zip(self.url, self.host, strict=True))
            reasons = [reason or ("banned" if rule else None) for reason, rule in zip(reasons, banned, strict=True)]
        for seer in self.rules.seers:
            self._seen_by(seer, reasons, ids)
        return reasons

    def _seen_by(self, seer: Sees, reasons: list[str | None], ids: U64) -> None:
        """What a filter refuses on sight, except seeds: people vouch for them."""
        rows: Sequence[int] = range(len(reasons))
        hosts, found, pages = self.host, self.url, self.page
        if self.seeds or any(reasons):
            rows = [row for row in rows if reasons[row] is None and row not in self.seeds]
            hosts, found, pages = ([column[row] for row in rows] for column in (hosts, found, pages))
            ids = ids[np.array(rows, np.int64)]
        for row, why in zip(rows, seer.sight(hosts, found, pages, ids), strict=True):
            if why is not None:
                reasons[row] = seer.name


def _packed_or_none(metadata: Mapping[str, Any] | None) -> bytes | None:
    """Metadata that is too large is left out; the link it came with is worth more."""
    packed = msgspec.json.encode(metadata) if metadata else b""
    return packed if 0 < len(packed) <= MAX_METADATA_BYTES else None


# Fetches, one by one, become columns


@dataclass
class FetchColumns:
    """Collects fetches row by row and turns them into columns."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, number: int, fetch: Fetch, url: str, target: str, relevance: float) -> None:
        self.rows.append(
            (
                number,
                url,
                target,
                -1 if fetch.status is None and fetch.error is None else fetch.status or 0,
                fetch.error or ("other" if fetch.status == 0 else ""),  # a status of 0 is what many call no answer
                _number(fetch.elapsed_ms),
                _number(fetch.bytes),
                relevance,
                _number(fetch.reward),
                _number(fetch.retry_after_s),
                fetch.fetch_time or "",
                fetch.content_hash or "",
            )
        )

    def columns(self, crawler_id: str) -> Fetches:
        numbers: Sequence[Sequence[Any]] = list(zip(*self.rows, strict=True)) or [()] * 12
        item, url, target, status, error, elapsed, size, relevance, reward, retry, time, content = numbers
        return Fetches(
            item=np.array(item, np.int64),
            url=texts(url),
            id=np.array([urls.identity(one) for one in url], np.uint64),
            host=texts(urls.queue(one) for one in url),
            target_url=texts(target),
            target_id=np.array([urls.identity(one) for one in target], np.uint64),
            target_host=texts(urls.queue(one) for one in target),
            status=np.array(status, np.int32),
            error=texts(error),
            elapsed_ms=np.array(elapsed, np.float64),
            bytes=np.array(size, np.float64),
            relevance=np.array(relevance, np.float64),
            reward=np.array(reward, np.float64),
            retry_after_s=np.array(retry, np.float64),
            fetch_time=texts(time),
            content_hash=texts(content),
            crawler_id=crawler_id,
        )


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)


# Seeds: what people and crawlers vouch for


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


def seeded(seeds: Sequence[Seed], rules: Rules) -> Links:
    """Seeds as links that come from nowhere."""
    links = LinkColumns(rules)
    for seed in seeds:
        links.seed(seed)
    return links.columns()
