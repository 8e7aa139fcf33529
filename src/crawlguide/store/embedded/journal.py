"""The log of changed rows: what a commit writes, and how it is applied again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core.tables import rows_of
from crawlguide.store.columns import grown
from crawlguide.store.rows import HOST, PACE, ROW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.tables import I64
    from crawlguide.store.frontier import Frontier

Column = np.ndarray[Any, Any]
TABLES: Mapping[str, np.dtype[Any]] = {
    "rows": ROW,
    "ids": np.dtype(np.uint64),
    "hosts": HOST,
    "domains": np.dtype(np.int64),
    "pace": PACE,
}


class Piece(msgspec.Struct, array_like=True):
    """Some rows of one table of one crawl, whole."""

    owner: int
    table: str
    rows: bytes
    records: bytes


class Counters(msgspec.Struct, array_like=True):
    """The numbers of a crawl that stand in no row."""

    owner: int
    sequence: int
    stamp: int
    links: int
    counts: dict[str, int]
    reasons: list[str]


class Entry(msgspec.Struct, array_like=True):
    """One commit."""

    at: float
    pieces: list[Piece]
    counters: list[Counters]


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Entry).decode
decode_counters = msgspec.msgpack.Decoder(Counters).decode


def piece(owner: int, table: str, column: Column, rows: I64) -> Piece:
    records = column.take(rows) if column.dtype.names is None else rows_of(column, rows)
    return Piece(owner, table, rows.astype(np.int32).tobytes(), records.tobytes())


def crawl_pieces(owner: int, frontier: Frontier, rows: I64, hosts: I64) -> list[Piece]:
    """Rows with their ids, and the hosts and domains in question."""
    pages = frontier.hosts.domain_pages
    domains = np.unique(frontier.hosts.rows["domain"][hosts]).astype(np.int64)
    pieces = [piece(owner, "rows", frontier.table, rows), piece(owner, "ids", frontier.index.ids, rows)]
    pieces += [piece(owner, "hosts", frontier.hosts.rows, hosts)]
    return [*pieces, piece(owner, "domains", pages, domains[domains < len(pages)])]


def counters(owner: int, frontier: Frontier) -> Counters:
    return Counters(
        owner, frontier.sequence, frontier.stamp, frontier.links_kept, dict(frontier.counts), frontier.reasons
    )


def restore(frontier: Frontier, kept: Counters) -> None:
    frontier.sequence, frontier.stamp, frontier.links_kept = kept.sequence, kept.stamp, kept.links
    frontier.counts.clear()
    frontier.counts.update(kept.counts)
    frontier.reasons[:] = kept.reasons


def put(column: Column, rows: np.ndarray[Any, Any], records: Column) -> Column:
    """The column with these records in these rows, longer if need be."""
    if not len(rows):
        return column
    column = grown(column, int(rows.max()) + 1)
    size = column.dtype.itemsize
    column.view(np.uint8).reshape(-1, size)[rows] = records.view(np.uint8).reshape(-1, size)
    return column
