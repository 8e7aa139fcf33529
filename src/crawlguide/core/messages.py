"""The messages of the guide protocol, one struct each. Every transport carries these, whatever its encoding.

Unknown fields of asks and tells are ignored, so that newer crawlers can talk to older guides; a definition of a
crawl refuses them (`core.definition`), because there a typo would silently change what is crawled.
Messages that come by the dozen never hold cycles, so the garbage collector does not need to look at them (`gc=False`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import xxhash
from msgspec import UNSET, Meta, Struct, UnsetType

from crawlguide.core.errors import MalformedRequest, UnsupportedVersion
from crawlguide.core.type_words import in_words

VERSION = "2025-11"
DEFAULT_TENANT = "default"  # of whoever names none
MAX_URLS = 10_000
MAX_OUTLINKS = 10_000
MAX_METADATA_BYTES = 4_096
ERRORS = ("timeout", "dns", "connect", "tls", "too_large", "blocked", "other", "released")

Identifier = Annotated[str, Meta(min_length=1, max_length=200, description="text of 1 to 200 characters")]
CrawlId = Annotated[
    str,
    Meta(min_length=1, max_length=200, pattern="^[^/]+$", description="text of 1 to 200 characters without slash"),
]


def crawl_id(text: Any) -> str:
    """The name of a crawl, wherever it stands: in a path, a query, a command or a program."""
    try:
        msgspec.convert(text, CrawlId).encode()
    except (msgspec.ValidationError, UnicodeEncodeError):
        words = f"crawl_id: expected {in_words(CrawlId)}, got {str(text)[:80]!r}"
        raise MalformedRequest(words, field="crawl_id") from None
    return str(text)


def check_version(version: str) -> None:
    if version != VERSION:
        raise UnsupportedVersion(f"mcp_version: expected {VERSION!r}, got {version[:40]!r}", field="mcp_version")


def digest(message: Any) -> bytes:
    """What makes two messages the same: all they say, whatever the order of their keys."""
    return xxhash.xxh3_128_digest(msgspec.json.encode(message, order="deterministic"))


Text = Annotated[str, Meta(max_length=4 * 1024 * 1024, description="text")]
Version = Annotated[Text, Meta(extra_json_schema={"const": VERSION})]  # another one gets an error of its own
Instant = Annotated[str, Meta(max_length=64, description="an ISO 8601 instant such as 2025-11-03T14:17:31Z")]
Amount = Annotated[float, Meta(ge=0, le=1e15, description="a number from 0")]
Share = Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")]
Metadata = dict[str, Any]


class BudgetMessage(Struct, frozen=True, gc=False):
    max_urls: Annotated[int, Meta(ge=1, le=MAX_URLS, description=f"an integer from 1 to {MAX_URLS}")]
    max_bytes: Annotated[int, Meta(ge=0, le=2**53, description="an integer from 0")] | None = None
    timeout_ms: Annotated[int, Meta(ge=1, le=604_800_000, description="an integer from 1 to 604800000")] | None = None


class Outlink(Struct, frozen=True, gc=False):
    url: Text
    anchor: Text = ""
    rel: Text = ""
    position: Annotated[int, Meta(ge=0, le=2**31 - 1, description="an integer from 0")] | None = None
    metadata: Metadata | None = None


class Fetch(Struct, frozen=True, gc=False):
    url: Text
    status: Annotated[int, Meta(ge=0, le=999, description="an HTTP status from 0 to 999")] | None = None
    error: Annotated[Literal[ERRORS], Meta(description=f"one of {', '.join(ERRORS)}")] | None = None  # type: ignore[valid-type]
    fetch_time: Instant | None = None
    elapsed_ms: Amount | None = None
    bytes: Amount | None = None
    content_type: Text | None = None
    content_hash: Text | None = None
    unchanged: bool | None = None
    etag: Text | None = None
    last_modified: Text | None = None
    cache_control: Text | None = None
    redirected_to: Text | None = None
    ip: Annotated[str, Meta(max_length=64, description="an IP address")] | None = None
    retry_after_s: Amount | None = None
    title: Text | None = None
    text: Text | None = None
    language: Text | None = None
    robots_meta: list[Text] | None = None
    relevance: Share | None = None
    reward: Annotated[float, Meta(ge=-1e6, le=1e6, description="a number")] | None = None
    request_id: Text | None = None
    model_version: Text | None = None
    outlinks: list[Outlink] | None = None


class Yield(Struct, frozen=True):
    visited: Amount = 0
    new_pages: Amount = 0


class Context(Struct, frozen=True):
    seed_urls: list[Text] | None = None
    domain_hash: Annotated[str, Meta(pattern="^[0-9a-f]{16}$", description="16 hex digits")] | None = None
    recent_history: list[Fetch] | None = None
    historical_yield: Yield | None = None
    external_features: dict[str, dict[str, float | str | None]] | None = None
    metadata: Metadata | None = None


class AskMessage(Struct, frozen=True):
    mcp_version: Version
    crawler_id: Identifier
    budget: BudgetMessage
    request_id: Identifier | None = None
    crawl_id: CrawlId = "default"
    context: Context | None = None
    request_timestamp: Instant | None = None


class ReportMessage(Struct, frozen=True):
    mcp_version: Version
    crawler_id: Identifier
    fetches: list[Fetch]
    crawl_id: CrawlId = "default"
    report_id: Identifier | None = None


class SeedMessage(Struct, frozen=True, forbid_unknown_fields=True):
    url: Text
    priority: Share | None = None
    max_depth: Annotated[int, Meta(ge=0, le=2**31 - 1, description="an integer from 0")] | None = None
    metadata: Metadata | None = None


class SeedsMessage(Struct, frozen=True, forbid_unknown_fields=True):
    urls: list[Text | SeedMessage]


class ReleaseMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that this crawler holds goes back."""

    crawler_id: Identifier


class Released(Struct, frozen=True):
    released: int


class Terms(Struct, frozen=True, gc=False):
    relevance: float
    freshness: float
    authority: float
    cost: float
    politeness: float
    exploration: float
    focus: float


class Assigned(Struct, frozen=True, gc=False):
    url: str
    kind: str
    score: float
    p: float
    reason: str
    estimated_fetch_ms: int
    estimated_bytes: int
    not_before_ms: int
    lease_expires: str
    terms: Terms
    metadata: msgspec.Raw | UnsetType = UNSET
    if_none_match: str | UnsetType = UNSET  # of a page that is fetched again: as its server named the last copy
    if_modified_since: str | UnsetType = UNSET


class Deferred(Struct, frozen=True, gc=False):
    url: str
    retry_after_ms: int
    reason: str


class AdviceMetadata(Struct, frozen=True):
    request_id: str | None
    crawl_state: str
    num_queries_completed: int
    last_model_version: str
    strategy: str
    filters_applied: list[str]
    dropped: dict[str, int]
    degraded: str | None
    degraded_why: str | UnsetType = UNSET
    exhausted_why: str | UnsetType = UNSET  # where something waits that is not given out


class Advice(Struct, frozen=True):
    assigned_urls: list[Assigned]
    deferred: list[Deferred]
    retry_after_ms: int
    metadata: AdviceMetadata


class ItemResult(Struct, frozen=True, gc=False, omit_defaults=True):
    url: str
    status: str
    reason: str | None = None
    relevance: float | None = None  # as it was reported, or as the guide judges the page; none where nobody knows


class Ack(Struct, frozen=True):
    accepted: int
    discovered: int
    truncated: int
    results: list[ItemResult]


class CrawlStats(Struct, frozen=True):
    state: str
    strategy: str
    queued: int
    leased: int
    done: int
    dropped: dict[str, int]
    hosts: int
    asks: int
    assigned: int
    fetches: int
    failed: int
    relevant: int
    discovered: int
    evicted: int
    forgotten: int
    learner: dict[str, Any]
    freshness: dict[str, Any] = {}  # of a crawl that fetches pages again as they change


class StatsMessage(Struct, frozen=True):
    version: str
    uptime_s: float
    num_queries_completed: int
    crawls: dict[str, CrawlStats]


class FilterVerdict(Struct, frozen=True):
    name: str
    verdict: str
    why: str


class LeaseHeld(Struct, frozen=True):
    crawler_id: str
    lease_expires: str


class LinkSeen(Struct, frozen=True):
    url: str
    anchor: str


class Explanation(Struct, frozen=True):
    """Why a URL stands where it stands."""

    url: str
    canonical: str
    state: str
    reason: str | None
    score: float
    p: float
    terms: dict[str, float]
    features: dict[str, float | None]
    rank: int | None
    history: list[dict[str, Any]]
    links: list[LinkSeen]
    filters: list[FilterVerdict]
    lease: LeaseHeld | None
    rules: list[str]
    words: str
    needs: list[str]


class UrlShown(Struct, frozen=True):
    url: str
    state: str
    reason: str | None
    priority: float
    crawler_id: str | None
    lease_expires: str | None
    status: int | None
    fetched: str | None


class UrlsMessage(Struct, frozen=True):
    urls: list[UrlShown]
    cursor: str | None


class ErrorBody(Struct, frozen=True):
    code: str
    message: str
    field: str | None = None
    retry_after_s: float | None = None


class ErrorMessage(Struct, frozen=True):
    error: ErrorBody
