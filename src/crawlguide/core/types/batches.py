"""What walks the corridor: candidate URLs with their hosts, and those that are chosen among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from crawlguide.core.tables import BESIDE, F64, I64, U64, Fact, Lookup, Rows, Table, Text, count_facts


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
    crawl_delay = Fact(9, "the queue's own delay; NaN: the crawl's default holds")
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
    given = Fact(8, "priority set by hand; NaN: none")
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


class Also(NamedTuple):
    """What a strategy wants to look at besides the best: URLs, and the best of some hosts."""

    ids: U64
    hosts: frozenset[str]
