"""A line a request: what `pages.jsonl` says of each, and what is told to the guide of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import xxhash
from msgspec import Struct

from crawlguide.core.messages import MAX_OUTLINKS, Fetch, Outlink
from crawlguide.core.outcomes import is_failure, is_retryable, is_success
from crawlguide.core.types import READ_ROBOTS, READ_TEXT, READ_TITLE
from crawlguide.crawler.hops import TOO_MANY, leading, leads_on
from crawlguide.crawler.parse import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.crawler.fetched import Fetched, Redirect
    from crawlguide.crawler.parse import Link
    from crawlguide.gateway.client.assignments import Assignment

ROBOTS = "robots"
MOST_LINK_BYTES = 2 << 20  # of one page: a message may have 4 MiB
LONGEST_HEADER = 200
ROBOTS_BYTES = READ_ROBOTS + 1  # as far as rules are read, and one more, by which a last line is known to be cut off
NOTHING = Page()


class PageLine(Struct, kw_only=True):
    """What became of one request; a column of `pages.parquet` for each field."""

    url: str
    kind: str = "page"  # page, or robots
    fetched: str = ""  # when, ISO 8601
    status: int | None = None  # None: nobody answered
    error: str | None = None  # timeout dns connect tls too_large blocked other
    problem: str | None = None  # the same for people; or why a document that came could not be read
    redirected_to: str | None = None  # the target has a line of its own, once it is fetched
    relevance: float | None = None  # 0 to 1, as the guide judges the page
    p: float | None = None  # the probability of being relevant by which it was chosen
    score: float | None = None
    reason: str | None = None
    title: str | None = None
    language: str | None = None
    content_type: str | None = None
    canonical: str | None = None
    published: str | None = None
    modified: str | None = None
    content_hash: str | None = None  # of its text: equal where nothing has changed
    etag: str | None = None  # as the server named this copy
    last_modified: str | None = None  # as the server says
    revisited: bool = False  # it was fetched before, as `--recrawl-after` wants it
    links: int = 0
    bytes: int = 0
    elapsed_ms: float = 0.0
    warc_offset: int | None = None  # of its record in pages.warc.gz
    warc_length: int | None = None


def now() -> str:
    """With microseconds: by its URL and this instant the guide knows a fetch again."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def redirect_of(fetched: Fetched) -> Redirect | None:
    """The answer that led elsewhere. That of a page is told and not followed: the guide decides about the target."""
    return fetched.redirects[0] if fetched.redirects else None


def trouble_of(line: PageLine) -> str:
    """Why nothing came; of a robots.txt, why its rules are not known: one that is not there permits all.

    A document that came and could not be read is no failure of the fetch: `problem` alone says so.
    """
    if line.error is not None:
        return line.problem or line.error
    failed = is_retryable if line.kind == ROBOTS else is_failure
    return f"status {line.status}" if failed(line.status or 0) else ""


def line_of(one: Assignment, fetched: Fetched, page: Page, at: str) -> PageLine:
    hop = None if one.kind == ROBOTS else redirect_of(fetched)  # what a robots.txt leads to is that robots.txt
    return PageLine(
        url=one.url,
        kind=one.kind,
        fetched=at,
        status=hop.status if hop else fetched.status,
        error=None if hop else fetched.error,
        problem=_problem(one, hop, fetched, page),
        redirected_to=hop.target or None if hop else None,
        p=round(one.p, 4),
        score=round(one.score, 4),
        reason=one.reason,
        title=page.title[:READ_TITLE] or None,
        language=page.language or None,
        content_type=fetched.content_type or None,
        canonical=page.canonical,
        published=page.published,
        modified=page.modified,
        content_hash=xxhash.xxh3_64_hexdigest(page.text.encode("utf-8", "replace")) if page.text else None,
        etag=fetched.header("etag")[:LONGEST_HEADER] or None,
        last_modified=fetched.header("last-modified")[:LONGEST_HEADER] or None,
        links=len(page.links),
        bytes=fetched.received_bytes,
        elapsed_ms=round(fetched.elapsed_ms, 1),
    )


def _problem(one: Assignment, hop: Redirect | None, fetched: Fetched, page: Page) -> str | None:
    if hop:
        return TOO_MANY if hop.target and not leads_on(one.metadata) else None
    return fetched.problem or page.problem or None


def report_of(one: Assignment, line: PageLine, fetched: Fetched, page: Page) -> Fetch:
    """What the guide is told. A redirect is a page with one link: going there is another fetch."""
    status = line.status if line.error is None else None
    text = robots_text(status, fetched.body) if line.kind == ROBOTS else page.text[:READ_TEXT] or None
    return Fetch(
        url=line.url,
        status=status,
        error=line.error,
        fetch_time=line.fetched,
        elapsed_ms=line.elapsed_ms,
        bytes=line.bytes or None,
        content_type=line.content_type,
        content_hash=line.content_hash,
        etag=line.etag,
        last_modified=line.last_modified,
        cache_control=fetched.header("cache-control")[:LONGEST_HEADER] or None,
        retry_after_s=fetched.retry_after_s,
        title=line.title,
        text=text if status is not None else None,
        language=line.language,
        robots_meta=list(page.robots_meta) or None,
        outlinks=leading(line.redirected_to, one.metadata) if line.redirected_to else outlinks(page.links),
    )


def robots_text(status: int | None, body: bytes) -> str | None:
    """What is told of a robots.txt; None: what came is an error page, or a redirect, and no rules."""
    return body[:ROBOTS_BYTES].decode("utf-8", "replace") if is_success(status or 0) else None


def outlinks(links: Sequence[Link]) -> list[Outlink] | None:
    """As many as go into a message."""
    kept, size = [], 0
    for link in links[:MAX_OUTLINKS]:
        size += len(link.url) + 4 * len(link.anchor) + 4 * len(link.rel)
        if size > MOST_LINK_BYTES:
            break
        kept.append(Outlink(link.url, link.anchor, link.rel, link.position))
    return kept or None
