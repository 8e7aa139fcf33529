"""What a fetch says of a page that was fetched before: is it different, is it gone, or does nobody know?

A crawler that says `unchanged`, and a 304, are believed. Else the content hash decides where both copies have one, then
a sketch of the text that ignores dates and counters, then the entity tag, then when the server says it was modified.
"""

from __future__ import annotations

import re
from math import isnan, nan
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from crawlguide.core.clock import http_instant
from crawlguide.features import sketch

if TYPE_CHECKING:
    from crawlguide.core.messages import Fetch

SAME, CHANGED, UNKNOWN, GONE, FAILED = range(5)
NOT_MODIFIED = 304
BUSY = (401, 407, 408, 425, 429)  # of 4xx those that say nothing of the page
LONGEST_FRESH_S = 86_400.0  # for which a server is believed that a copy stays fresh
MAX_AGE = re.compile(r"(?:^|[,\s])(?:s-maxage|max-age)\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
UNCACHED = re.compile(r"no-cache|no-store", re.IGNORECASE)


class Held(NamedTuple):
    """What one copy of a page held, as far as is known; 0, "" and NaN where it is not."""

    hash: int = 0
    sketch: int = 0
    tag: str = ""
    modified: float = nan


def held_in(fetch: Fetch) -> Held:
    return Held(
        xxhash.xxh3_64_intdigest(fetch.content_hash.encode()) if fetch.content_hash else 0,
        sketch.sketch(fetch.text) if fetch.text else 0,
        fetch.etag or "",
        http_instant(fetch.last_modified or ""),
    )


def look(fetch: Fetch, before: Held, now: Held) -> int:
    """What came of looking at a page again."""
    status = fetch.status or 0
    if 400 <= status < 500 and status not in BUSY and not fetch.error:
        return GONE
    if fetch.unchanged or (status == NOT_MODIFIED and not fetch.error):
        return SAME
    if fetch.error or not 200 <= status < 400:
        return FAILED
    if status >= 300:  # it leads elsewhere, which is a page of its own
        return UNKNOWN
    if fetch.unchanged is False:
        return CHANGED
    return _compared(before, now)


def _compared(before: Held, now: Held) -> int:
    if before.hash and now.hash:
        return SAME if before.hash == now.hash else CHANGED
    if before.sketch and now.sketch:
        return SAME if sketch.is_same(before.sketch, now.sketch) else CHANGED
    if before.tag and now.tag:
        return SAME if _strong(before.tag) == _strong(now.tag) else CHANGED
    if not isnan(before.modified) and not isnan(now.modified):
        return SAME if now.modified <= before.modified else CHANGED
    return UNKNOWN


def _strong(tag: str) -> str:
    """A weak tag names the same content as a strong one, as far as we care."""
    return tag.removeprefix("W/")


def fresh_for_s(cache_control: str | None) -> float:
    """How long a server says that a copy stays fresh, up to a day; 0 where it does not say."""
    if not cache_control or UNCACHED.search(cache_control):
        return 0.0
    found = MAX_AGE.search(cache_control)
    return min(float(found[1]), LONGEST_FRESH_S) if found else 0.0
