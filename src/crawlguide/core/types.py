"""The nouns of the guide: frozen sets of columns that walk the corridor, and the two questions and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Text = npt.NDArray[np.object_]
Records = np.ndarray[Any, np.dtype[np.void]]
Array = TypeVar("Array", bound=np.ndarray[Any, Any])


@cache
def column_names(table: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(table) if f.metadata.get("column", True))


@dataclass(frozen=True)
class Table:
    """A frozen set of equally long columns. Columns of numbers may lie together in a block, `facts`, one row each."""

    def take(self, rows: Rows | Mask) -> Self:
        """The given rows of every column."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        mine, kind = self.__dict__, cast(Any, type(self))
        return self._with({name: mine[name].take(numbers, -1) for name in column_names(kind)})

    def attach(self, **columns: Any) -> Self:
        """The same table with some columns replaced."""
        kind = type(self)
        numbers = {name: columns.pop(name) for name in list(columns) if isinstance(vars(kind).get(name), Fact)}
        if numbers:
            columns["facts"] = self.__dict__["facts"].copy()
            for name, column in numbers.items():
                columns["facts"][vars(kind)[name].place] = column
        return self._with(columns)

    def _with(self, columns: Mapping[str, Any]) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **columns)
        return new


class Fact:
    """A column that lies in its table's block of numbers, at the place at which it is declared."""

    def __init__(self, place: int, meaning: str) -> None:
        self.place, self.__doc__ = place, meaning

    def __get__(self, table: Any, owner: Any = None) -> F64:
        column: F64 = table.__dict__["facts"][self.place]
        return column


class Lookup:
    """A column of texts that is read when somebody asks for it, and only the rows that are left by then.

    Of two hundred candidates thirty reach the answer; the texts of the others are never touched.
    """

    def __init__(self, source: Text, rows: Rows) -> None:
        self._source, self._rows = source, rows

    def take(self, rows: Rows, axis: int = -1) -> Lookup:
        return Lookup(self._source, self._rows.take(rows, axis))

    def __getitem__(self, rows: Rows | Mask) -> Text:
        return self._source[self._rows[rows]]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def tolist(self) -> list[str]:
        return self._source.take(self._rows).tolist()  # type: ignore[no-any-return]


BESIDE = {"column": False}  # marks a field that belongs to the whole table and not to a row


def rows_of(records: Array, rows: Rows) -> Array:
    """The given rows of a column of records, copied whole: several times faster than numpy's copy field by field."""
    size = records.dtype.itemsize
    taken = records.view(np.uint8).reshape(-1, size).take(rows, axis=0)
    return taken.reshape(-1).view(records.dtype)  # type: ignore[no-any-return]


class Crawl(NamedTuple):
    """Whose frontier: every call to a store carries it, so no tenant or crawl ever sees another."""

    tenant: str
    name: str


@dataclass(frozen=True)
class Budget:
    """What one crawler can take until it asks again. `None` means no bound of that kind."""

    max_urls: int
    max_bytes: int | None = None
    timeout_ms: int = 120_000


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
    history: Report | None = None
    external: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    concurrency: int = 8


@dataclass(frozen=True)
class Seed:
    """A URL that a person or a crawler vouches for."""

    url: str
    priority: float | None = None
    max_depth: int | None = None
    metadata: bytes | None = None


@dataclass(frozen=True)
class Hosts(Table):
    """One row for each host that occurs in a batch: what this crawl and the whole deployment know of it."""

    name: Text
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


HOST_FACTS = BATCH_FACTS = 14


@dataclass(frozen=True)
class Sample:
    """Chosen rows, the arm each stands for, and the chance with which it was chosen (for off-policy evaluation)."""

    rows: Rows
    arm: F64
    chance: F64


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
    report_id: str | None = None
    digest: bytes = b""


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


LEASED, DEFERRED, TAKEN = 0, 1, 2


@dataclass(frozen=True)
class Grants:
    """One row for each row of the reserved batch: LEASED, DEFERRED or TAKEN, when it may start, and its metadata.

    A row that the same crawler holds for the same request is LEASED again, at its first start: a retry finds its own.
    """

    outcome: U8
    start: F64
    metadata: Sequence[bytes | None]


@dataclass(frozen=True)
class Discovery:
    """What came of `discover`: how many URLs were new, and every known URL the links touched."""

    new: int
    touched: U64


@dataclass(frozen=True)
class Recorded:
    """What came of `record`: per fetch "ok" or the reason for a skip, and the URLs whose evidence changed."""

    skipped: Sequence[str | None]
    changed: U64


@dataclass(frozen=True)
class Page:
    """What a judge of relevance may read of a fetched page."""

    url: str
    title: str = ""
    text: str = ""
    status: int = 200


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


@dataclass(frozen=True)
class Paths(Table):
    """Rows of the link table: from which page to which, with which words, at which place."""

    parent: U64
    child: U64
    anchor: Text
    position: I32

    def __len__(self) -> int:
        return len(self.parent)
