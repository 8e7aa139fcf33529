"""The journal: what a commit writes about changed rows, and how it is applied again.

A commit is one `Entry`. It holds changed rows whole, so that applying an entry twice, or to newer rows, does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from crawlguide.core.kernels import allocating_part, i32s, i64s, kernel, named_tuple, nothing, records, u64s
from crawlguide.core.tables import rows_of
from crawlguide.store.columns import grown
from crawlguide.store.embedded.keyspaces import FOLDER
from crawlguide.store.tables.rows import ASSIGNED, HOST, POLITENESS, ROW, TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.tables import I64
    from crawlguide.store.frontier import Frontier

Column = np.ndarray[Any, Any]
TABLE_KINDS: Mapping[str, np.dtype[Any]] = {
    "rows": ROW,
    "ids": np.dtype(np.uint64),
    "hosts": HOST,
    "domains": np.dtype(np.int64),
    "pace": POLITENESS,
    "given": ASSIGNED,  # in the journal alone
}


class Update(msgspec.Struct, array_like=True):
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
    updates: list[Update]
    counters: list[Counters]


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Entry).decode
decode_counters = msgspec.msgpack.Decoder(Counters).decode


# writing


def update(owner: int, table: str, column: Column, rows: I64) -> Update:
    values = column.take(rows) if column.dtype.names is None else rows_of(column, rows)
    return Update(owner, table, rows.astype(np.int32).tobytes(), values.tobytes())


def crawl_updates(owner: int, frontier: Frontier, rows: I64, hosts: I64, queues: I64) -> list[Update]:
    """Changed rows with their ids, hosts, domains and politeness queues, each once."""
    most_hosts = len(rows) + len(hosts)
    copies, counts = _room(len(rows), most_hosts, most_hosts + len(queues)), np.zeros(4, np.int64)
    collect(rows, hosts, queues, frontier.tables, frontier.index.ids, counts, copies)
    many_rows, many_hosts, many_domains, many_queues = counts.tolist()

    def first(owner: int, table: str, count: int, numbers: Column, values: Column) -> Update:
        return Update(owner, table, numbers[:count].tobytes(), values[:count].tobytes())

    return [
        first(owner, "rows", many_rows, copies.row_numbers, copies.rows),
        first(owner, "ids", many_rows, copies.row_numbers, copies.ids),
        first(owner, "hosts", many_hosts, copies.host_numbers, copies.hosts),
        first(owner, "domains", many_domains, copies.domain_numbers, copies.domains),
        first(FOLDER, "pace", many_queues, copies.queue_numbers, copies.queues),
    ]


def assigned_update(owner: int, frontier: Frontier, rows: I64) -> Update:
    """Rows that were leased, with what that changed of their politeness queues and domains."""
    values = np.zeros(len(rows), ASSIGNED)
    collect_assigned(rows, frontier.tables, values)
    return Update(owner, "given", rows.astype(np.int32).tobytes(), values.tobytes())


def forgotten_domains(owner: int, frontier: Frontier) -> Update:
    """Domains of which nothing is left: no host leads to them any more."""
    gone = np.array(sorted(frontier.hosts.forgotten_domains), np.int64)
    return update(owner, "domains", frontier.hosts.domain_pages, gone)


def counters(owner: int, frontier: Frontier) -> Counters:
    return Counters(
        owner, frontier.sequence, frontier.stamp, frontier.links_kept, dict(frontier.counts), frontier.reasons
    )


def each_once(rows: list[I64]) -> I64:
    """The rows in all of these, in order. numpy's `unique` takes several times as long."""
    if len(rows) == 1 and len(rows[0]) == 1:  # half of all sheets that change
        return rows[0]
    ordered = np.sort(np.concatenate(rows))
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


# reading


def put(column: Column, rows: np.ndarray[Any, Any], values: Column) -> Column:
    """The column with these records in these rows, longer if need be."""
    if not len(rows):
        return column
    column = grown(column, int(rows.max()) + 1)
    size = column.dtype.itemsize
    column.view(np.uint8).reshape(-1, size)[rows] = values.view(np.uint8).reshape(-1, size)
    return column


def restore_counters(frontier: Frontier, stored: Counters) -> None:
    frontier.sequence, frontier.stamp, frontier.links_kept = stored.sequence, stored.stamp, stored.links
    frontier.counts.clear()
    frontier.counts.update(stored.counts)
    frontier.reasons[:] = stored.reasons


# copying changed rows


class Copies(NamedTuple):
    """Room for changed records, and the numbers of their rows."""

    row_numbers: Column
    rows: Column
    ids: Column
    host_numbers: Column
    hosts: Column
    domain_numbers: Column
    domains: Column
    queue_numbers: Column
    queues: Column


COPIES = named_tuple(
    Copies, i32s, records(ROW), u64s, i32s, records(HOST), i32s, i64s, i32s, records(POLITENESS)
)  # fmt: skip


def _room(rows: int, hosts: int, queues: int) -> Copies:
    return Copies(
        np.empty(rows, np.int32),
        np.empty(rows, ROW),
        np.empty(rows, np.uint64),
        np.empty(hosts, np.int32),
        np.empty(hosts, HOST),
        np.empty(hosts, np.int32),
        np.empty(hosts, np.int64),
        np.empty(queues, np.int32),
        np.empty(queues, POLITENESS),
    )


@allocating_part
def distinct(values, numbers):  # type: ignore[no-untyped-def]
    """The values in order, each once; returns how many there are."""
    values.sort()
    count = 0
    for at in range(len(values)):
        if at == 0 or values[at] != values[at - 1]:
            numbers[count] = values[at]
            count += 1
    return count


@kernel(nothing(i64s, i64s, i64s, TABLES, u64s, i64s, COPIES))
def collect(rows, hosts, queues, tables, ids, counts, copies):  # type: ignore[no-untyped-def]
    """Copy changed rows and all that hangs on them; `counts` receives how many of each: rows, hosts, domains, queues.

    `hosts` and `queues` changed by themselves; a row stands for its host, a host for its domain and its queue.
    """
    count = distinct(rows.copy(), copies.row_numbers)
    their_hosts = np.empty(count + len(hosts), np.int32)
    for number in range(count):
        row = copies.row_numbers[number]
        copies.rows[number], copies.ids[number] = tables.rows[row], ids[row]
        their_hosts[number] = tables.rows[row].host
    their_hosts[count:] = hosts
    host_count = distinct(their_hosts, copies.host_numbers)
    domains, their_queues = np.empty(host_count, np.int32), np.empty(host_count + len(queues), np.int32)
    for number in range(host_count):
        host = tables.hosts[copies.host_numbers[number]]
        copies.hosts[number], domains[number], their_queues[number] = host, host.domain, host.pace
    their_queues[host_count:] = queues
    domain_count = distinct(domains, copies.domain_numbers)
    queue_count = distinct(their_queues, copies.queue_numbers)
    for number in range(domain_count):
        copies.domains[number] = tables.domain_pages[copies.domain_numbers[number]]
    for number in range(queue_count):
        copies.queues[number] = tables.politeness[copies.queue_numbers[number]]
    counts[0], counts[1], counts[2], counts[3] = count, host_count, domain_count, queue_count


@kernel(nothing(i64s, TABLES, records(ASSIGNED)))
def collect_assigned(rows, tables, assigned):  # type: ignore[no-untyped-def]
    """What a commit writes of rows that were leased: far less than all that hangs on them."""
    for number in range(len(rows)):
        row, mine = tables.rows[rows[number]], assigned[number]
        host = tables.hosts[row.host]
        queue = tables.politeness[host.pace]
        mine.last, mine.next_fetch, mine.leases = queue.last, queue.next_fetch, queue.leases
        mine.domain_pages, mine.queue, mine.domain = tables.domain_pages[host.domain], host.pace, host.domain
        mine.state = row.state
