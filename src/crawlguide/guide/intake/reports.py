"""What a crawler tells: its fetches and the links on them, as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core import urls
from crawlguide.core.errors import UrlError
from crawlguide.core.messages import MAX_OUTLINKS
from crawlguide.core.types import Report
from crawlguide.guide.intake.fetches import NAN, FetchColumns
from crawlguide.guide.intake.links import LinkColumns
from crawlguide.policy.robots.copies import is_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.messages import Fetch
    from crawlguide.core.types import Crawl
    from crawlguide.guide.intake.rules import Rules


def reported(fetches: Sequence[Fetch], crawl: Crawl, crawler_id: str, at: float, rules: Rules) -> Report:
    """The fetches and links of a tell as columns; what cannot be used is skipped with its reason."""
    told, links, skips, truncated = FetchColumns(), LinkColumns(rules), {}, 0
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
        links.add(outlinks[:MAX_OUTLINKS], len(told), target)
        told.add(number, fetch, url, target, NAN if is_file(url) else rules.worth(fetch, target))
    return Report(
        crawl=crawl,
        at=at,
        fetches=told.columns(crawler_id),
        links=links.columns(),
        urls=[fetch.url for fetch in fetches],
        skips=skips,
        truncated=truncated,
    )


def _check(fetch: Fetch) -> None:
    if fetch.status is None and fetch.error is None and fetch.reward is None:
        raise UrlError("status: expected a status or an error (or a reward as late feedback), got none of them")
