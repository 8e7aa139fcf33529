"""What a crawler asks: how much it can take, where its focus lies, and what else it knows."""

from __future__ import annotations

from dataclasses import replace
from heapq import nsmallest
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core import urls
from crawlguide.core.clock import instant
from crawlguide.core.errors import MalformedRequest, UrlError
from crawlguide.core.messages import digest
from crawlguide.core.turns import in_turns
from crawlguide.core.types import Ask, Budget, Crawl, Seed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from crawlguide.core.messages import AskMessage, Context

DEFAULT_TIMEOUT_MS = 120_000
DEFAULT_CONCURRENCY = 8
AT_ONCE = 500  # URLs that are looked at between others
MOST_SIGNALS = 100  # of one URL: the first that are named
MOST_FOCUS = 1_000  # hosts that one ask may prefer: the first by name
NAN = float("nan")


async def asked(message: AskMessage, tenant: str, at: float) -> Ask:
    """An ask without its history, which is told first and apart."""
    budget = message.budget
    timeout_ms = DEFAULT_TIMEOUT_MS if budget.timeout_ms is None else budget.timeout_ms
    ask = Ask(
        crawl=Crawl(tenant, message.crawl_id),
        crawler_id=message.crawler_id,
        at=at,
        budget=Budget(budget.max_urls, budget.max_bytes, timeout_ms),
        request_id=message.request_id,
        digest=b"" if message.request_id is None else _digest(message),
    )
    return await _in_context(ask, message.context) if message.context else ask


def _digest(message: AskMessage) -> bytes:
    """Client timestamps are information: they do not make another request."""
    return digest(msgspec.structs.replace(message, request_timestamp=None))


async def _in_context(ask: Ask, context: Context) -> Ask:
    """Seeds say what to add and where the focus lies. A bad one is passed over: no reason to give nothing."""
    seeds = await canonical(context.seed_urls or ())
    focus = await queues(seeds)
    return replace(
        ask,
        seeds=tuple([Seed(url) async for some in in_turns(seeds, AT_ONCE) for url in some]),
        focus=focus if len(focus) <= MOST_FOCUS else frozenset(nsmallest(MOST_FOCUS, focus)),
        domain_hash=context.domain_hash,
        external=await external(context.external_features or {}),
        yields=await yields(context, focus) if context.historical_yield else {},
        concurrency=_concurrency(context.metadata or {}),
    )


def _concurrency(metadata: Mapping[str, Any]) -> int:
    wanted = metadata.get("concurrency")
    if wanted is None:
        return DEFAULT_CONCURRENCY
    if not isinstance(wanted, int) or isinstance(wanted, bool) or not 1 <= wanted <= 100_000:
        where = "context.metadata.concurrency"
        raise MalformedRequest(f"{where}: expected an integer from 1 to 100000, got {str(wanted)[:80]!r}", field=where)
    return wanted


async def external(features: Mapping[str, Mapping[str, float | str | None]]) -> dict[int, dict[str, float]]:
    """Numbers that the crawler knows of URLs from elsewhere; an instant is a number of days."""
    found = {}
    async for some in in_turns(list(features.items()), AT_ONCE):
        for url, signals in some:
            for known in _canonical([url]):
                found[urls.identity(known)] = {name: number for name, number in _numbers(signals) if isfinite(number)}
    return found


def _numbers(signals: Mapping[str, float | str | None]) -> Iterator[tuple[str, float]]:
    for name, value in islice(signals.items(), MOST_SIGNALS):
        yield name, instant(value) / 86_400 if isinstance(value, str) else NAN if value is None else float(value)


async def yields(context: Context, focus: Iterable[str]) -> dict[int, tuple[float, float]]:
    """What the crawler got before, for the domains of its focus; without one, of what it has just fetched."""
    earlier = context.historical_yield
    domains = await _domains(focus)
    if context.domain_hash is not None:
        domains.add(context.domain_hash)
    if not domains:
        fetched = await canonical([fetch.url for fetch in context.recent_history or ()])
        domains = await _domains(await queues(fetched))
    return {int(domain, 16): (earlier.visited, earlier.new_pages) for domain in domains} if earlier else {}


async def _domains(hosts: Iterable[str]) -> set[str]:
    """The registrable domains of politeness queues, as crawlers name them."""
    some = in_turns(list(hosts), AT_ONCE)
    return {urls.domain_hash(urls.domain_of(host)) async for portion in some for host in portion}


async def queues(canonical_urls: Sequence[str]) -> frozenset[str]:
    """The politeness queues of URLs."""
    some = in_turns(canonical_urls, AT_ONCE)
    return frozenset({urls.queue(url) async for portion in some for url in portion})


async def canonical(texts: Sequence[str]) -> list[str]:
    """Those that somebody can fetch; others say nothing."""
    return [url async for portion in in_turns(texts, AT_ONCE) for url in _canonical(portion)]


def _canonical(texts: Sequence[str]) -> Iterator[str]:
    for url in texts:
        try:
            yield urls.canonical(url)
        except UrlError:
            continue
