"""What a crawler asks: how much it can take, where its focus lies, and what else it knows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core import urls
from crawlguide.core.clock import instant
from crawlguide.core.errors import MalformedRequest, UrlError
from crawlguide.core.messages import digest
from crawlguide.core.types import Ask, Budget, Crawl, Seed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.messages import AskMessage, Context

DEFAULT_TIMEOUT_MS = 120_000
DEFAULT_CONCURRENCY = 8
NAN = float("nan")


def asked(message: AskMessage, tenant: str, at: float) -> Ask:
    """An ask without its history, which is told first and apart."""
    budget = message.budget
    timeout_ms = DEFAULT_TIMEOUT_MS if budget.timeout_ms is None else budget.timeout_ms
    ask = Ask(
        crawl=Crawl(tenant, message.crawl_id),
        crawler_id=message.crawler_id,
        at=at,
        budget=Budget(budget.max_urls, budget.max_bytes, timeout_ms),
        request_id=message.request_id,
    )
    if message.request_id is not None:  # client timestamps are information: they do not make another request
        ask = replace(ask, digest=digest(msgspec.structs.replace(message, request_timestamp=None)))
    return _in_context(ask, message.context) if message.context else ask


def _in_context(ask: Ask, context: Context) -> Ask:
    """Seeds say what to add and where the focus lies. A bad one is passed over: no reason to give nothing."""
    seeds = tuple(Seed(url) for url in canonical(context.seed_urls or ()))
    return replace(
        ask,
        seeds=seeds,
        focus=frozenset(urls.queue(seed.url) for seed in seeds),
        domain_hash=context.domain_hash,
        external=external(context.external_features or {}),
        yields=yields(context, seeds) if context.historical_yield else {},
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


def external(features: Mapping[str, Mapping[str, float | str | None]]) -> dict[int, dict[str, float]]:
    """Numbers that the crawler knows of URLs from elsewhere; an instant is a number of days."""
    found = {}
    for url, signals in features.items():
        numbers = {
            name: instant(value) / 86_400 if isinstance(value, str) else NAN if value is None else float(value)
            for name, value in signals.items()
        }
        for known in canonical([url]):
            found[urls.identity(known)] = {name: value for name, value in numbers.items() if math.isfinite(value)}
    return found


def yields(context: Context, seeds: Sequence[Seed]) -> dict[int, tuple[float, float]]:
    """What the crawler got before, for the domains of its focus; without one, of what it has just fetched."""
    earlier = context.historical_yield
    domains = {urls.domain_hash(urls.domain_of(urls.queue(seed.url))) for seed in seeds}
    if context.domain_hash is not None:
        domains.add(context.domain_hash)
    if not domains:
        fetched = canonical([fetch.url for fetch in context.recent_history or ()])
        domains = {urls.domain_hash(urls.domain_of(urls.queue(url))) for url in fetched}
    return {int(domain, 16): (earlier.visited, earlier.new_pages) for domain in domains} if earlier else {}


def canonical(texts: Sequence[str]) -> list[str]:
    """Those that somebody can fetch; others say nothing."""
    found = []
    for url in texts:
        try:
            found.append(urls.canonical(url))
        except UrlError:
            continue
    return found
