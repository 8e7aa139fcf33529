"""A hash of all that a store knows: equal for two that know the same in the same rows, for backups, restarts and tests.

The facts of a moment are copied at once, which takes a fraction of the time that it takes to hash them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from crawlguide.core.notebook import unpacked
from crawlguide.store.embedded import format as formats
from crawlguide.store.embedded import journal
from crawlguide.store.tables.rows import FREE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from crawlguide.core.notebook import Sheet
    from crawlguide.core.tables import I64
    from crawlguide.core.types import Crawl
    from crawlguide.store.crawls import CrawlData
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.local import LocalStore

ALL = slice(None)


@dataclass(frozen=True)
class Rows:
    """Some rows of a copied column."""

    column: journal.Column
    numbers: I64 | list[int] | slice

    def bytes(self) -> Iterator[bytes]:
        """Field by field: behind the last field of a record lies whatever memory held there."""
        for name in self.column.dtype.names or (None,):
            yield (self.column if name is None else self.column[name])[self.numbers].tobytes()


@dataclass(frozen=True)
class PackedRows:
    """The rows of a sheet that nobody uses: they are unpacked when they are hashed, one sheet at a time."""

    packed: bytes
    kind: np.dtype[Any]

    def bytes(self) -> Iterator[bytes]:
        yield from Rows(unpacked(self.packed, self.kind), ALL).bytes()


Fact = bytes | Rows | PackedRows


@dataclass(frozen=True)
class CrawlFacts:
    known: tuple[Fact, ...]
    learned: tuple[Fact, ...]


@dataclass(frozen=True)
class Facts:
    """What a store knew at one moment."""

    crawls: tuple[CrawlFacts, ...]
    politeness: Rows


class Room:
    """Memory for copies. The system hands memory out when it is first touched, which takes longer than the copying.

    So the room that a large store needs is made beforehand, in a thread.
    """

    def __init__(self, size: int = 0) -> None:
        self._free = np.empty(size, np.uint8)
        self._free.fill(1)

    def copied(self, column: journal.Column) -> journal.Column:
        """A copy of the bytes: numpy copies records field by field, which takes ten times as long."""
        data = column.view(np.uint8)
        here = self._free[: len(data)] if len(data) <= len(self._free) else np.empty(len(data), np.uint8)
        self._free = self._free[len(data) :]
        np.copyto(here, data)
        return here.view(column.dtype)


def needed(crawls: Collection[CrawlData]) -> int:
    """How many bytes a copy of all facts takes, or nearly so."""
    frontiers = [data.frontier for data in crawls]
    rows = sum(one.table[: one.index.rows].nbytes + 8 * one.index.rows + one.hosts.rows.nbytes for one in frontiers)
    return rows + sum(data.notebook.nbytes for data in crawls)


def facts(store: LocalStore, owners: Mapping[Crawl, int], room: Room) -> Facts:
    """Copies, so that the store may go on while they are hashed."""
    crawls = [_crawl_facts(crawl, owner, store.crawls[crawl], room) for crawl, owner in sorted(owners.items())]
    return Facts(tuple(crawls), Rows(room.copied(store.politeness.rows), store.politeness.numbers()))


def state_hash(facts: Facts) -> str:
    """Behind a dash follows what was learned: a strategy that does not say what it changed harms that part alone."""
    digest, learned = xxhash.xxh3_128(), xxhash.xxh3_64()
    for crawl in facts.crawls:
        for fact in _bytes(*crawl.known):
            digest.update(fact)
        for fact in _bytes(*crawl.learned):
            learned.update(fact)
    for fact in facts.politeness.bytes():
        digest.update(fact)
    return f"{digest.hexdigest()}-{learned.hexdigest()}"


def _bytes(*facts: Fact) -> Iterator[bytes]:
    for fact in facts:
        yield from (fact,) if isinstance(fact, bytes) else fact.bytes()


def _crawl_facts(crawl: Crawl, owner: int, data: CrawlData, room: Room) -> CrawlFacts:
    known = (repr(crawl).encode() + data.definition, *_frontier_facts(owner, data.frontier, room))
    learned: list[Fact] = []
    for name, sheet in data.notebook.in_use().items():
        learned.append(repr((crawl, name, sheet.used)).encode() + formats.layout(sheet.kind).encode())
        learned.append(_sheet_facts(sheet, room))
    return CrawlFacts(known, tuple(learned))


def _sheet_facts(sheet: Sheet, room: Room) -> Fact:
    if sheet.packed is not None:
        return PackedRows(sheet.packed, sheet.kind)
    return Rows(room.copied(sheet.look()[: sheet.used]), ALL)


def _frontier_facts(owner: int, frontier: Frontier, room: Room) -> Iterator[Fact]:
    counters = journal.counters(owner, frontier)
    counters.counts = dict(sorted((+frontier.counts).items()))  # a zero says nothing, stored or not
    yield journal.encode(counters)
    table = room.copied(frontier.table[: frontier.index.rows])
    live = np.flatnonzero(table["state"] != FREE)
    yield Rows(table, live)
    yield Rows(room.copied(frontier.index.ids[: frontier.index.rows]), live)
    yield Rows(room.copied(frontier.hosts.rows), frontier.hosts.numbers())
    yield repr(sorted((row, lease.expires) for row, lease in frontier.leases.by_row.items())).encode()
