"""What is told: fetches, the links found on them, and what learners hear of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from crawlguide.core.tables import BESIDE, F64, I32, I64, U64, Mask, Table, Text
from crawlguide.core.types.asking import Crawl


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
    given: F64
    max_depth: I32
    metadata: Text
    reason: Text
    deepest: int = field(default=-1, metadata=BESIDE)  # the crawl's own bound on depth, -1: none

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
    crawler_id: str = field(default="", metadata=BESIDE)  # who tells

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class Report:
    """One crawler's story: the fetches it made and the links it found.

    `urls` names every item as it came, `skips` says why some of them could not be used.
    """

    crawl: Crawl
    at: float
    fetches: Fetches
    links: Links
    urls: Sequence[str]
    skips: Mapping[int, str]
    truncated: int = 0


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
    worth: F64 = field(default_factory=lambda: np.zeros(0))  # of each fetch, for those who learn; NaN: nobody says
    again: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))  # fetched before, and it may have changed


@dataclass(frozen=True)
class Page:
    """What a judge of relevance may read of a fetched page."""

    url: str
    title: str = ""
    text: str = ""
    status: int = 200
