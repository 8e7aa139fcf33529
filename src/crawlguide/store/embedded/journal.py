"""The log of changed rows: what a commit writes, and how it is applied again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crawlguide.core.tables import rows_of
from crawlguide.store.changes import collect, collect_given
from crawlguide.store.columns import grown
from crawlguide.store.embedded.keys import FOLDER
from crawlguide.store.tables.rows import GIVEN, HOST, PACE, ROW

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
    "given": GIVEN,  # in the log alone
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


def each_once(rows: list[I64]) -> I64:
    """The rows in all of these, in order. numpy's `unique` takes several times as long."""
    ordered = np.sort(np.concatenate(rows))
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


def crawl_pieces(owner: int, frontier: Frontier, rows: I64, hosts: I64, queues: I64) -> list[Piece]:
    """Changed rows with their ids, hosts, domains and politeness queues."""
    pace, known = frontier.pace, frontier.hosts
    most, most_hosts = len(rows), len(rows) + len(hosts)
    most_queues = most_hosts + len(queues)
    counts = np.zeros(4, np.int64)
    row_numbers, row_records, row_ids = np.empty(most, np.int32), np.empty(most, ROW), np.empty(most, np.uint64)
    host_numbers, host_records = np.empty(most_hosts, np.int32), np.empty(most_hosts, HOST)
    domain_numbers, domain_records = np.empty(most_hosts, np.int32), np.empty(most_hosts, np.int64)
    queue_numbers, queue_records = np.empty(most_queues, np.int32), np.empty(most_queues, PACE)
    collect(
        rows, hosts, queues, frontier.table, frontier.index.ids, known.rows, pace.rows, known.domain_pages,
        counts, row_numbers, row_records, row_ids, host_numbers, host_records, domain_numbers, domain_records,
        queue_numbers, queue_records,
    )  # fmt: skip
    many_rows, many_hosts, many_domains, many_queues = counts.tolist()
    numbers = row_numbers[:many_rows].tobytes()
    return [
        Piece(owner, "rows", numbers, row_records[:many_rows].tobytes()),
        Piece(owner, "ids", numbers, row_ids[:many_rows].tobytes()),
        Piece(owner, "hosts", host_numbers[:many_hosts].tobytes(), host_records[:many_hosts].tobytes()),
        Piece(owner, "domains", domain_numbers[:many_domains].tobytes(), domain_records[:many_domains].tobytes()),
        Piece(FOLDER, "pace", queue_numbers[:many_queues].tobytes(), queue_records[:many_queues].tobytes()),
    ]


def given_piece(owner: int, frontier: Frontier, rows: I64) -> Piece:
    """Rows that were given out, with what that changed of their queues and domains."""
    records, hosts = np.zeros(len(rows), GIVEN), frontier.hosts
    collect_given(rows, frontier.table, hosts.rows, frontier.pace.rows, hosts.domain_pages, records)
    return Piece(owner, "given", rows.astype(np.int32).tobytes(), records.tobytes())


def forgotten_domains(owner: int, frontier: Frontier) -> Piece:
    """Domains of which nothing is left: no host leads to them any more."""
    gone = np.array(sorted(frontier.hosts.forgotten_domains), np.int64)
    return piece(owner, "domains", frontier.hosts.domain_pages, gone)


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
