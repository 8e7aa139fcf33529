"""What crawlers say besides when they ask: numbers about URLs from elsewhere, and what they got before."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from crawlguide.core import urls
from crawlguide.core.errors import UrlError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crawlguide.core.messages import Context
    from crawlguide.core.types import Seed

NAN = float("nan")


def external(features: Mapping[str, Mapping[str, float | str | None]]) -> dict[int, dict[str, float]]:
    """Numbers that the crawler knows of URLs from elsewhere; an instant is a number of days."""
    found = {}
    for url, signals in features.items():
        numbers = {
            name: _days(value) if isinstance(value, str) else NAN if value is None else float(value)
            for name, value in signals.items()
        }
        for known in canonical([url]):
            found[urls.identity(known)] = {name: value for name, value in numbers.items() if math.isfinite(value)}
    return found


def _days(text: str) -> float:
    """Days since 1970; NaN where it is no instant."""
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() / 86_400
    except (ValueError, OverflowError):
        return NAN


def yields(context: Context, seeds: Sequence[Seed]) -> dict[int, tuple[float, float]]:
    """What the crawler got before, for the domains of its focus; without one, of what it has just fetched."""
    said = context.historical_yield
    domains = {urls.domain_hash(urls.domain_of(urls.queue(seed.url))) for seed in seeds}
    if context.domain_hash is not None:
        domains.add(context.domain_hash)
    if not domains:
        fetched = canonical([fetch.url for fetch in context.recent_history or ()])
        domains = {urls.domain_hash(urls.domain_of(urls.queue(url))) for url in fetched}
    return {int(domain, 16): (said.visited, said.new_pages) for domain in domains} if said else {}


def canonical(given: Sequence[str]) -> list[str]:
    """Those that somebody can fetch; others say nothing."""
    found = []
    for url in given:
        try:
            found.append(urls.canonical(url))
        except UrlError:
            continue
    return found
