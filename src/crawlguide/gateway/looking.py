"""Looking in: the URLs of a crawl page by page, and why one of them stands where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from crawlguide.core.clock import iso
from crawlguide.core.errors import MalformedRequest, UrlError
from crawlguide.core.messages import Explanation, UrlShown, UrlsMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway import wire
from crawlguide.guide import explain as explaining

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.types import UrlRecord
    from crawlguide.gateway.routes import Call

STATES = ("queued", "leased", "done", "dropped")
MOST = 10_000


class Forgotten(msgspec.Struct, frozen=True):
    deleted: int


async def urls(call: Call) -> UrlsMessage:
    state, host = _state(call.query), call.query.get("host")
    crawl = await _known(call)
    limit, cursor = _limit(call.query), call.query.get("cursor")
    records, cursor = await call.guide.store.scan(crawl, state, host, limit, cursor)
    return UrlsMessage([_shown(record) for record in records], cursor)


async def forget_urls(call: Call) -> Forgotten:
    """Forget matching URLs, except what crawlers hold. Without a state or a host it would be everything: say so."""
    state, host = _state(call.query), call.query.get("host")
    if state is None and host is None:
        raise MalformedRequest("state: expected a state or a host; to forget all of a crawl, delete it", field="state")
    gone = await call.guide.store.purge(await _known(call), state, host)
    await call.guide.store.commit()
    return Forgotten(gone)


async def explain(call: Call) -> Explanation:
    crawl = await _known(call)
    url = call.query.get("url")
    if not url:
        raise MalformedRequest("url: expected the URL to be explained, got none", field="url")
    try:
        return await explaining.explain(call.guide, crawl, url)
    except UrlError as wrong:
        raise MalformedRequest(f"url: {wrong.message}", field="url") from None


async def _known(call: Call) -> Crawl:
    """The crawl that the query names; it has to be there."""
    crawl = Crawl(call.tenant, wire.crawl_id(call.query.get("crawl_id", "default")))
    await call.guide.crawls.get(crawl, call.guide.clock.now(), create=False)
    return crawl


def _state(query: Mapping[str, str]) -> str | None:
    state = query.get("state")
    if state is not None and state not in STATES:
        raise MalformedRequest(f"state: expected one of {', '.join(STATES)}, got {state[:40]!r}", field="state")
    return state


def _limit(query: Mapping[str, str]) -> int:
    given = query.get("limit", "1000")
    if not given.isdecimal() or not 1 <= int(given[:9]) <= MOST:
        raise MalformedRequest(f"limit: expected an integer from 1 to {MOST}, got {given[:40]!r}", field="limit")
    return int(given)


def _shown(record: UrlRecord) -> UrlShown:
    ends = None if record.lease_expires is None else iso(record.lease_expires)
    fetched = None if record.fetched is None else iso(record.fetched)
    return UrlShown(
        record.url, record.state, record.reason, record.priority, record.crawler_id, ends, record.status, fetched
    )
