"""What a crawler asks: how much it can take, and where its focus lies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core import urls
from crawlguide.core.errors import MalformedRequest
from crawlguide.core.types import Ask, Budget, Crawl, Seed
from crawlguide.guide import hints
from crawlguide.guide.intake.messages import digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.messages import AskMessage, Context

DEFAULT_TIMEOUT_MS = 120_000
DEFAULT_CONCURRENCY = 8


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
    seeds = tuple(Seed(url) for url in hints.canonical(context.seed_urls or ()))
    return replace(
        ask,
        seeds=seeds,
        focus=frozenset(urls.queue(seed.url) for seed in seeds),
        domain_hash=context.domain_hash,
        external=hints.external(context.external_features or {}),
        yields=hints.yields(context, seeds) if context.historical_yield else {},
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
