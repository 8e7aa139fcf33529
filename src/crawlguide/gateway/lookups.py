"""What people look up and change: a crawl's definition, its URLs page by page, and why one stands where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from crawlguide.core.aside import aside
from crawlguide.core.clock import iso
from crawlguide.core.definition import Definition
from crawlguide.core.errors import MalformedRequest, UrlError
from crawlguide.core.messages import Explanation, UrlShown, UrlsMessage, crawl_id
from crawlguide.core.turns import LONG_BYTES, let_others
from crawlguide.gateway import wire
from crawlguide.guide import explain as explaining
from crawlguide.store.tables.rows import STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.types import Crawl, UrlRecord
    from crawlguide.gateway.routes import RouteCall
    from crawlguide.guide.local import LocalGuide

MOST, SCANNED_AT_ONCE = 10_000, 1_000
MOST_CHARACTERS = 4 * 1024 * 1024  # of the URLs of a page


class CrawlMessage(msgspec.Struct, frozen=True):
    crawl_id: str
    state: str
    definition: Definition


class Forgotten(msgspec.Struct, frozen=True):
    deleted: int


@dataclass(frozen=True)
class Selection:
    """Which URLs of a crawl, from where on, and how many of them at once."""

    state: str | None = None
    host: str | None = None
    limit: int = 1_000
    cursor: str | None = None


async def crawl(guide: LocalGuide, name: Crawl) -> CrawlMessage:
    """A crawl's definition, and the state it is in."""
    at = guide.clock.now()
    outline = await guide.crawls.outline(name, at)
    return CrawlMessage(name.name, await guide.crawls.state(name, outline, at), outline.shown)


async def patched_definition(definition: Definition, changes: Mapping[str, Any]) -> Definition:
    """A definition with changes; a long one keeps nobody waiting."""
    long = len(msgspec.json.encode((definition, changes))) > LONG_BYTES
    return await aside(patched, definition, changes) if long else patched(definition, changes)


def patched(definition: Definition, patch: Mapping[str, Any]) -> Definition:
    """The definition after a JSON merge patch (RFC 7396): null brings a field back to its default."""
    return wire.convert(_merged(msgspec.to_builtins(definition), patch, Definition, ""), Definition)


def _merged(target: Any, patch: Any, kind: Any, path: str) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        where = f"{path}.{name}" if path else name
        inner = _kind_of(kind, name, where)
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value, inner, where)
    return merged


def _kind_of(kind: Any, name: str, where: str) -> Any:
    """The type of a field; a field that is not there is refused, also where a null would leave no trace of it."""
    kind = wire.plain_type(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        known = get_type_hints(kind, include_extras=True)
        if name not in known:
            expected, where = ", ".join(sorted(known)), where[:200]
            raise MalformedRequest(f"{where}: unknown field; expected one of {expected}", field=where)
        return known[name]
    return get_args(kind)[-1] if get_origin(kind) is dict else Any


async def urls(call: RouteCall) -> UrlsMessage:
    query = call.query
    wanted = Selection(query.get("state"), query.get("host"), limit(query), query.get("cursor"))
    return await page(call.guide, _named(call), wanted)


async def page(guide: LocalGuide, name: Crawl, wanted: Selection) -> UrlsMessage:
    """Some URLs, and where to go on: of very long ones fewer than are wanted."""
    _check_state(wanted.state)
    await guide.crawls.check(name)
    shown, cursor, size = list[UrlShown](), wanted.cursor, 0
    while len(shown) < wanted.limit and size < MOST_CHARACTERS:
        most = min(SCANNED_AT_ONCE, wanted.limit - len(shown))
        records, cursor = await guide.store.scan(name, wanted.state, wanted.host, most, cursor)
        shown += map(_shown, records)
        size += sum(len(record.url) for record in records)
        if cursor is None:
            break
        await let_others()  # others are served in between
    return UrlsMessage(shown, cursor)


async def forget_urls(call: RouteCall) -> Forgotten:
    """Forget matching URLs, except what crawlers hold. Without a state or a host it would be everything: say so."""
    state, host = call.query.get("state"), call.query.get("host")
    _check_state(state)
    if state is None and host is None:
        raise MalformedRequest("state: expected a state or a host; to forget all of a crawl, delete it", field="state")
    name = _named(call)
    await call.guide.crawls.check(name)
    gone = await call.guide.store.purge(name, state, host)
    await call.guide.store.commit()
    return Forgotten(gone)


async def explain(call: RouteCall) -> Explanation:
    return await explained(call.guide, _named(call), call.query.get("url"))


async def explained(guide: LocalGuide, name: Crawl, url: str | None) -> Explanation:
    """Why a URL stands where it stands."""
    await guide.crawls.get(name, guide.clock.now(), create=False)
    if not url:
        raise MalformedRequest("url: expected the URL to be explained, got none", field="url")
    try:
        return await explaining.explain(guide, name, url)
    except UrlError as wrong:
        raise MalformedRequest(f"url: {wrong.message}", field="url") from None


def _named(call: RouteCall) -> Crawl:
    """The crawl that the query names."""
    return call.permitted(crawl_id(call.query.get("crawl_id", "default")))


def _check_state(state: str | None) -> None:
    if state is not None and state not in STATES:
        raise MalformedRequest(f"state: expected one of {', '.join(STATES)}, got {state[:40]!r}", field="state")


def limit(query: Mapping[str, str]) -> int:
    given = query.get("limit", "1000")
    if not given.isdecimal() or len(given) > len(str(MOST)) or not 1 <= int(given) <= MOST:
        raise MalformedRequest(f"limit: expected an integer from 1 to {MOST}, got {given[:40]!r}", field="limit")
    return int(given)


def _shown(record: UrlRecord) -> UrlShown:
    ends = None if record.lease_expires is None else iso(record.lease_expires)
    fetched = None if record.fetched is None else iso(record.fetched)
    return UrlShown(
        record.url, record.state, record.reason, record.priority, record.crawler_id, ends, record.status, fetched
    )
