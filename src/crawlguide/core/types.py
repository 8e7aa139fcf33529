"""The central types, in the order in which they come up: an ask, the batch that walks the pipeline, the lease at its
end, the report that comes back, and what is known of single URLs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from crawlguide.core.tables import BESIDE, F64, I32, I64, U8, U64, Fact, Lookup, Mask, Rows, Table, Text, count_facts

TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
TENANT_WORDS = "1 to 63 of the characters a-z 0-9 . _ - that begin with a letter or digit"

# What is asked: by whom, for which crawl, how much at the most


class Crawl(NamedTuple):
    """Whose frontier: every call to a store carries it, so no tenant or crawl ever sees another."""

    tenant: str
    name: str

    @property
    def logged(self) -> dict[str, str]:
        """As the fields of a log event name it."""
        return {"tenant": self.tenant, "crawl": self.name}


class Usage(NamedTuple):
    """How much a tenant keeps: the bytes are about what its URLs and what was learned take, on the disk and beside."""

    crawls: int
    urls: int
    bytes: int


@dataclass(frozen=True)
class Budget:
    """What one crawler can take until it asks again. `None` means no bound of that kind."""

    max_urls: int
    max_bytes: int | None = None
    timeout_ms: int = 120_000


@dataclass(frozen=True)
class Seed:
    """A URL that a person or a crawler vouches for."""

    url: str
    priority: float | None = None
    max_depth: int | None = None
    metadata: bytes | None = None


@dataclass(frozen=True)
class Ask:
    """One crawler's question: where should I go next?"""

    crawl: Crawl
    crawler_id: str
    at: float
    budget: Budget
    request_id: str | None = None
    digest: bytes = b""
    seeds: tuple[Seed, ...] = ()
    focus: frozenset[str] = frozenset()
    domain_hash: str | None = None
    external: Mapping[int, Mapping[str, float]] = field(default_factory=dict)  # by URL
    yields: Mapping[int, tuple[float, float]] = field(default_factory=dict)  # by domain: pages visited, new ones
    concurrency: int = 8
    draw: Draw | None = None  # None until the strategy has drawn
    looking: bool = False  # nobody asks, somebody looks: nothing is counted, remembered or written for it

    def limited(self, most: int) -> Ask:
        """For no more than so many URLs."""
        return self if most >= self.budget.max_urls else replace(self, budget=replace(self.budget, max_urls=most))


# What walks the pipeline: candidate URLs with their hosts, and those that are chosen among them


@dataclass(frozen=True)
class Hosts(Table):
    """One row for each host that occurs in a batch: what this crawl and the whole deployment know of it."""

    name: Text | Lookup
    facts: F64  # a row for each fact below

    pages = Fact(0, "fetched well")
    failures = Fact(1, "fetches that failed")
    errors = Fact(2, "failures that are the host's and not the URL's")
    judged = Fact(3, "pages whose relevance is known")
    relevance_sum = Fact(4, "of those pages")
    domain = Fact(5, "number of its registrable domain within the crawl")
    domain_pages = Fact(6, "of that domain, fetched or on their way")
    median_ms = Fact(7, "of the newest fetches; NaN: none yet")
    median_bytes = Fact(8, "of the newest good fetches; NaN: none yet")
    crawl_delay = Fact(9, "the queue's own delay; NaN: none. The longer of it and the crawl's counts")
    last_fetch = Fact(10, "the newest slot given out")
    next_fetch = Fact(11, "when the queue opens")
    leases = Fact(12, "held by all crawlers")
    limit = Fact(13, "leases at once; 0: no limit")


@dataclass(frozen=True)
class Batch(Table):
    """Candidate URLs as columns, best first; `host` is a row number in `hosts`."""

    url: Text | Lookup
    id: U64
    host: I64
    facts: F64  # a row for each fact below
    hosts: Hosts = field(metadata=BESIDE)

    arm = Fact(0, "tree leaf, link group or bandit arm it came from; -1: none")
    depth = Fact(1, "links from the nearest seed")
    sequence = Fact(2, "number of its discovery within the crawl")
    discovered = Fact(3, "when")
    fetched = Fact(4, "when last; NaN: never")
    parents = Fact(5, "pages known to link here")
    parent_sum = Fact(6, "of their relevance")
    parent_best = Fact(7, "the largest relevance among them")
    manual_priority = Fact(8, "priority set by hand; NaN: none")
    priority = Fact(9, "at rest")
    estimated_ms = Fact(10, "of a fetch; NaN: not known")
    estimated_bytes = Fact(11, "of a page; NaN: not known")
    value = Fact(12, "the predictor's estimate")
    score = Fact(13, "the weighted sum by which an answer is sorted")

    def __len__(self) -> int:
        return len(self.id)


BATCH_FACTS, HOST_FACTS = count_facts(Batch), count_facts(Hosts)


@dataclass(frozen=True)
class Sample:
    """Chosen rows, the arm each stands for, and the chance with which it was chosen (for off-policy evaluation)."""

    rows: Rows
    arm: F64
    chance: F64


class Draw(NamedTuple):
    """What a strategy drew for one ask: URLs to gather besides the best, and hosts whose best to gather."""

    ids: U64
    hosts: frozenset[str]
    state: Any = None  # the strategy's own, of this ask alone


# What is promised: URLs leased to a crawler, on which terms


@dataclass(frozen=True)
class LeaseTerms:
    """Under which conditions `reserve` hands out URLs: who, for how long, and how politely."""

    crawler_id: str
    request_id: str | None
    at: float
    lease_s: float
    delay_s: float
    horizon_s: float
    strict: bool = False
    factor: float = 0.0  # a queue whose fetches take long waits at least so many times as long
    limit: int = 0  # leases of a queue at once, 0: no bound but its own


GRANTED, DEFERRED, TAKEN = 0, 1, 2


@dataclass(frozen=True)
class Grants:
    """One row for each row of the reserved batch: GRANTED, DEFERRED or TAKEN, when it may start, and its metadata.

    A row that the same crawler holds for the same request is GRANTED again, at its first start: a retry finds its own.
    """

    outcome: U8
    start: F64
    metadata: Sequence[bytes | None]


# What is told: fetches, the links found on them, and what learners hear of both


@dataclass(frozen=True)
class Links(Table):
    """Links as columns: the page they were found on (row of the fetch; -1 for a seed) and where they lead.

    `max_depth` is a seed's bound for all that is found from it (-1: none), `reason` why a link is dropped on sight.
    """

    parent: I64
    url: Text
    id: U64
    host: Text
    anchor: Text
    position: I32
    manual_priority: F64
    max_depth: I32
    metadata: Text
    reason: Text
    deepest: int = field(default=-1, metadata=BESIDE)  # the crawl's own bound on depth, -1: none
    revivable: frozenset[str] = field(default=frozenset(), metadata=BESIDE)  # reasons that may cease to hold

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class Fetches(Table):
    """What a tell carries, as columns. NaN or "" where the crawler did not say.

    `relevance` is the crawler's judgement, or the guide's where the crawler gave none.
    """

    item: I64
    url: Text
    id: U64
    host: Text
    target_url: Text
    target_id: U64
    target_host: Text
    status: I32
    error: Text
    elapsed_ms: F64
    bytes: F64
    relevance: F64
    reward: F64
    retry_after_s: F64
    fetch_time: Text
    content_hash: Text
    crawler_id: Text  # who tells
    labelled: Mask  # the crawler said itself how relevant the page is, or what it was worth

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class Revisits(Table):
    """What clients of named queues say of URLs: from which second on each may be fetched (again); 0: never again."""

    url: Text
    id: U64
    host: Text  # its queue
    date: F64
    metadata: Text  # as it is handed out with the URL; None: none

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class Report:
    """What crawlers tell together: the fetches they made and the links they found.

    `urls` names every item as it came, `skips` says why some of them could not be used, `truncated` how many links of
    an item were left out.
    """

    crawl: Crawl
    at: float
    fetches: Fetches
    links: Links
    urls: Sequence[str]
    skips: Mapping[int, str]
    truncated: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Lesson:
    """What a learner hears of one tell: the fetches that the store accepted, and every link found on them.

    Late feedback is a fetch with a reward and a status of -1; a lease that came back unused has the error "released".
    Seeds make a lesson of their own, without fetches: links whose parent is -1.
    """

    at: float
    fetches: Fetches
    title: Text  # of each fetch; "" where the crawler did not say
    text: Text
    links: Links
    fresh: Mask  # links to URLs that nobody knew before this lesson
    reward: F64 = field(default_factory=lambda: np.zeros(0))  # of each fetch, for those who learn; NaN: nobody says
    again: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))  # fetched before, and it may have changed


READ_TITLE, READ_TEXT, READ_ANCHOR = 1_000, 100_000, 1_000  # characters; nobody reads what follows
READ_ROBOTS = 512_000  # bytes of a robots.txt; RFC 9309 asks for at least 500 KiB


@dataclass(frozen=True)
class Page:
    """What a judge of relevance may read of a fetched page."""

    url: str
    title: str = ""
    text: str = ""
    status: int = 200


# What came of what a store was told


@dataclass(frozen=True)
class Discovery:
    """What came of `discover`: how many URLs were new, every known URL the links touched, and the new among them."""

    new: int
    touched: U64
    fresh: U64


@dataclass(frozen=True)
class Recorded:
    """What came of `record`: per fetch None or the reason for a skip, and whether strategies may learn from it.

    `changed` are the URLs whose evidence is another one now.
    """

    skipped: Sequence[str | None]
    changed: U64
    taught: Mask


# Queues that clients name


DATED = 1_024.0  # from here on a priority was made of a date: before all that is ranked


class QueueAsk(NamedTuple):
    """How much is wanted of which queues: of all that are open, or of one by its name."""

    at: float
    queues: int
    per_queue: int
    key: str | None = None
    spare: int = 1  # so many times as many rows are looked at
    most: int = 2**31  # URLs of all queues; the last queue is not cut short
    opened_by: float = np.inf  # only queues that were open by then


class QueueFacts(NamedTuple):
    """URLs of one queue, or of all queues of a crawl, and how many queues these are."""

    active: int  # waiting or leased
    leased: int
    done: int
    queues: int
    active_queues: int


class QueuedUrl(NamedTuple):
    """One URL as clients of named queues know it."""

    url: str
    key: str
    metadata: bytes | None
    date: int  # the second from which on it may be fetched, 0: never again
    created: int


# What is known of single URLs and of the links between them, as people and other stores see it


@dataclass(frozen=True)
class UrlRecord:
    """One URL as `scan` and `find` show it."""

    url: str
    state: str
    reason: str | None
    priority: float
    crawler_id: str | None
    lease_expires: float | None
    status: int | None
    fetched: float | None


class KnownUrl(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """Everything a crawl knows of one URL, as it goes out of one store and into another; one line of an export."""

    url: str
    state: Literal["queued", "done", "dropped"]
    reason: Annotated[str, Meta(max_length=200)] | None = None
    priority: Annotated[float, Meta(ge=-1e6, le=1e6)] | None = None
    given: Annotated[float, Meta(ge=-1e6, le=1e6)] | None = None
    relevance: Annotated[float, Meta(ge=0, le=1)] | None = None
    discovered: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    fetched: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    due: Annotated[float, Meta(ge=0, le=1e12)] | None = None
    parent_sum: Annotated[float, Meta(ge=-1e9, le=1e9)] | None = None
    parent_best: Annotated[float, Meta(ge=-1e9, le=1e9)] | None = None
    depth: Annotated[int, Meta(ge=0, le=32_767)] = 0
    max_depth: Annotated[int, Meta(ge=-1, le=32_767)] = -1
    status: Annotated[int, Meta(ge=0, le=999)] = 0
    tries: Annotated[int, Meta(ge=0, le=255)] = 0
    parents: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    metadata: dict[str, Any] | None = None


class KnownLink(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    url: str
    anchor: str = ""
    position: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] = 0


class KnownPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The links of one page; another line of an export."""

    page: str
    links: list[KnownLink]


@dataclass(frozen=True)
class Paths(Table):
    """Rows of the link table: from which page to which, with which words, at which place."""

    parent: U64
    child: U64
    anchor: Text
    position: I32

    def __len__(self) -> int:
        return len(self.parent)
