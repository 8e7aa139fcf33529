"""What the tools take and give, one struct each: checked like all messages, and shown to models as JSON schemas."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from crawlguide.core.messages import CrawlId, Explanation, Fetch, Identifier, UrlShown
from crawlguide.store.tables.rows import STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_ASKED, MOST_TOLD, MOST_SEEDS, MOST_LISTED = 20, 50, 100, 100
MOST_RESULTS, LONGEST_URL = 50, 2_000


def said(words: str, **bounds: Any) -> Any:
    """What a model reads of a field; `description` among the bounds is what a message says was expected."""
    return Meta(extra_json_schema={"description": words}, **bounds)


Crawl = Annotated[CrawlId, said("The crawl, by the name it was created with.")]
Crawler = Annotated[
    Identifier,
    said(
        "Your name. URLs that you are given are leased to it. Choose one of your own if several agents share a crawl."
    ),
]
Cursor = Annotated[
    str, said("From the answer before, to go on where it ended; leave it out to begin.", max_length=10_000)
]
Words = Annotated[str, Meta(min_length=1, max_length=2_000, description="text of 1 to 2000 characters")]
Keywords = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=100, description="a word or phrase")]],
    Meta(max_length=50, description="a list of at most 50 words"),
]
Domains = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=253, description="a domain")]],
    Meta(max_length=100, description="a list of at most 100 domains"),
]
Url = Annotated[str, Meta(min_length=1, max_length=8_192, description="a URL")]


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a tool takes. A field that nobody knows is refused by name."""


class FindPages(Arguments, frozen=True):
    topic: Annotated[Words, said("What to look for, in plain words, such as 'B-tree indexes in databases'.")]
    start: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=LONGEST_URL, description="a URL or a host name")]],
        said(
            "1 to 20 pages to begin with: absolute URLs, as near to the topic as you know. A bare host name such as "
            "'example.org' also works: its home page, sitemaps and feeds are looked at first.",
            min_length=1,
            max_length=20,
            description="a list of 1 to 20 URLs or host names",
        ),
    ]
    keywords: Annotated[Keywords, said("Words that relevant pages use, if you know some; they sharpen the topic.")] = []
    max_pages: Annotated[
        int,
        said(
            "Requests for pages at most. 50 is a quick look, 500 a thorough one.",
            ge=1,
            le=500,
            description="an integer from 1 to 500",
        ),
    ] = 50
    max_seconds: Annotated[
        int,
        said(
            "Seconds at most. One request a second goes to each host, so pages of one site take as many seconds. "
            "Stay below the time limit of your own tool calls.",
            ge=1,
            le=600,
            description="an integer from 1 to 600",
        ),
    ] = 45
    max_results: Annotated[
        int,
        said(
            "Pages in the answer at most, the most relevant first.",
            ge=1,
            le=MOST_RESULTS,
            description=f"an integer from 1 to {MOST_RESULTS}",
        ),
    ] = 10
    same_site: Annotated[bool, said("true: stay on the hosts of the starting points.")] = False
    crawl_id: (
        Annotated[
            CrawlId,
            said(
                "Leave it out to begin. To go on where an earlier call ended, give its crawl_id with the same "
                "topic: nothing is fetched twice."
            ),
        ]
        | None
    ) = None


class CreateCrawl(Arguments, frozen=True):
    crawl_id: Annotated[CrawlId, said("A new name of 1 to 200 characters without slash, such as 'btree-indexes'.")]
    topic: Annotated[Words, said("What the crawl looks for, in plain words: URLs are ordered by it.")]
    keywords: Annotated[Keywords, said("Words that relevant pages use.")] = []
    seeds: Annotated[
        list[Url],
        said(
            "Absolute URLs to begin with; add_seeds adds more.",
            max_length=MOST_SEEDS,
            description="a list of at most 100 URLs",
        ),
    ] = []
    allow_domains: Annotated[Domains, said("Only these domains and what is below them; empty: all.")] = []
    deny_domains: Annotated[Domains, said("Never these domains.")] = []
    max_pages: Annotated[
        int,
        said(
            "The crawl is finished after so many pages; 0: no limit.", ge=0, le=10**9, description="an integer from 0"
        ),
    ] = 0
    max_depth: Annotated[
        int, said("Links from a seed at most; 0: no limit.", ge=0, le=1_000, description="an integer from 0 to 1000")
    ] = 0
    delay_s: Annotated[
        float,
        said("Seconds between two requests to one host.", ge=0, le=3_600, description="a number from 0 to 3600"),
    ] = 1.0


class AddSeeds(Arguments, frozen=True):
    crawl_id: Crawl
    urls: Annotated[
        list[Url],
        said("Absolute URLs.", min_length=1, max_length=MOST_SEEDS, description="a list of 1 to 100 URLs"),
    ]


class NextUrls(Arguments, frozen=True):
    crawl_id: Crawl
    max_urls: Annotated[
        int,
        said("How many you will fetch now.", ge=1, le=MOST_ASKED, description=f"an integer from 1 to {MOST_ASKED}"),
    ] = 5
    crawler_id: Crawler = "agent"
    timeout_ms: (
        Annotated[
            int,
            said(
                "Milliseconds that you need for all of them: so long, and a quarter more, nobody else is given them. "
                "120000 if you do not say.",
                ge=1,
                le=3_600_000,
                description="an integer from 1 to 3600000",
            ),
        ]
        | None
    ) = None
    max_bytes: (
        Annotated[
            int, said("Bytes of all pages together, as estimated.", ge=0, le=2**53, description="an integer from 0")
        ]
        | None
    ) = None
    request_id: (
        Annotated[
            Identifier, said("Of your choice: the same call with the same id gives the same answer, nothing twice.")
        ]
        | None
    ) = None
    seed_urls: (
        Annotated[
            list[Url],
            said(
                "Added to the crawl first, and preferred.",
                max_length=MOST_SEEDS,
                description="a list of at most 100 URLs",
            ),
        ]
        | None
    ) = None
    recent_history: (
        Annotated[
            list[Fetch],
            said(
                "Fetches, as in report_fetches, told in the same call.",
                max_length=MOST_TOLD,
                description="a list of at most 50 fetches",
            ),
        ]
        | None
    ) = None


class ReportFetches(Arguments, frozen=True):
    crawl_id: Crawl
    fetches: Annotated[
        list[Fetch],
        said(
            "One entry for each URL: 'url', and 'status' (of HTTP) or 'error' (why there is none; 'released' gives "
            "the URL back unfetched). Add 'title', 'text' and 'outlinks' ([{'url', 'anchor'}], also relative) of "
            "the page: the guide judges the text and learns from it. 'relevance' (0 to 1) instead of 'text' is "
            "your own judgement.",
            max_length=MOST_TOLD,
            description=f"a list of at most {MOST_TOLD} fetches",
        ),
    ]
    crawler_id: Crawler = "agent"
    report_id: (
        Annotated[Identifier, said("Of your choice: a report that comes again with the same id counts once.")] | None
    ) = None


class ExplainUrl(Arguments, frozen=True):
    crawl_id: Crawl
    url: Annotated[Url, said("A URL that the crawl knows.")]


class SearchFrontier(Arguments, frozen=True):
    crawl_id: Crawl
    state: (
        Annotated[
            Literal[STATES],  # type: ignore[valid-type]
            said(
                "queued: waits to be fetched; leased: being fetched; done: fetched; dropped: refused by a filter.",
                description=f"one of {', '.join(STATES)}",
            ),
        ]
        | None
    ) = None
    host: (
        Annotated[
            str, said("A host such as 'www.example.org'.", min_length=1, max_length=253, description="a host name")
        ]
        | None
    ) = None
    text: (
        Annotated[
            str,
            said(
                "Only URLs that contain this, in lower or upper case.",
                min_length=1,
                max_length=200,
                description="text of 1 to 200 characters",
            ),
        ]
        | None
    ) = None
    limit: Annotated[
        int,
        said("URLs in the answer at most.", ge=1, le=MOST_LISTED, description=f"an integer from 1 to {MOST_LISTED}"),
    ] = 20
    cursor: Cursor | None = None


class CrawlStats(Arguments, frozen=True):
    crawl_id: Crawl


class PauseCrawl(Arguments, frozen=True):
    crawl_id: Crawl


class ResumeCrawl(Arguments, frozen=True):
    crawl_id: Crawl


class ListCrawls(Arguments, frozen=True):
    limit: Annotated[
        int,
        said("Crawls in the answer at most.", ge=1, le=MOST_LISTED, description=f"an integer from 1 to {MOST_LISTED}"),
    ] = 20
    cursor: Cursor | None = None


class FoundPage(msgspec.Struct, frozen=True):
    url: str
    title: str
    relevance: float  # 0 to 1, as the guide judges it
    snippet: str
    why: str


class FoundPages(msgspec.Struct, frozen=True):
    """What `find_pages` gives."""

    crawl_id: str
    ended: str
    fetched: int
    relevant: int
    seconds: float
    pages: list[FoundPage]
    problems: list[str]
    notice: str
    next: str


class Created(msgspec.Struct, frozen=True):
    crawl_id: str
    created: bool  # false: it was there already, and is the same
    seeds_added: int
    next: str


class SeedsAdded(msgspec.Struct, frozen=True):
    added: int  # that were new
    known: int
    next: str


class UrlPage(msgspec.Struct, frozen=True):
    urls: list[UrlShown]
    cursor: str | None  # null: that was all
    scanned: int  # URLs that were looked at
    next: str


class CrawlNumbers(msgspec.Struct, frozen=True):
    crawl_id: str
    state: str
    meaning: str
    strategy: str
    queued: int
    leased: int
    done: int
    failed: int
    relevant: int
    fetches: int
    harvest: float  # relevant pages for each fetch
    discovered: int
    hosts: int
    dropped: dict[str, int]
    next: str


class CrawlLine(msgspec.Struct, frozen=True):
    crawl_id: str
    state: str
    topic: str
    strategy: str


class CrawlLines(msgspec.Struct, frozen=True):
    crawls: list[CrawlLine]
    cursor: str | None
    next: str


class Explained(msgspec.Struct, frozen=True):
    explanation: Explanation
    left_out: dict[str, int]  # entries of history and links that are not shown
    notice: str


@lru_cache
def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON schema of a message in one piece: not every model follows references."""
    (reference,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    whole: dict[str, Any] = _inlined(reference, parts)
    whole.pop("title", None)
    return whole


def _inlined(value: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(one, parts) for one in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _inlined(parts[value["$ref"]], parts)
    return {name: _inlined(one, parts) for name, one in value.items()}
