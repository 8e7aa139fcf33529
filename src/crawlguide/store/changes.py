"""Which rows a crawl has changed since they were last written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from crawlguide.core.kernels import allocating_part, i32s, i64s, kernel, nothing, records, u64s
from crawlguide.store.tables.rows import GIVEN, HOST, PACE, ROW

if TYPE_CHECKING:
    from crawlguide.core.tables import I32, I64


class Watch(Protocol):
    def rows(self, rows: I64) -> None:
        """These rows changed, and with them perhaps their hosts."""
        ...

    def row(self, row: int) -> None: ...

    def given(self, rows: I64) -> None:
        """These rows were given out, and nothing else: their state, their queues' pace, their domains' pages."""
        ...

    def hosts(self, hosts: I32) -> None: ...

    def counters(self) -> None:
        """A number that stands in no row changed."""
        ...


class Unwatched:
    """For a store that forgets: nobody will ask."""

    def rows(self, rows: I64) -> None: ...

    def row(self, row: int) -> None: ...

    def given(self, rows: I64) -> None: ...

    def hosts(self, hosts: I32) -> None: ...

    def counters(self) -> None: ...


@dataclass(eq=False)
class Changes:
    """Rows and hosts that changed; a row stands for its host as well. Whoever changed is listed in `dirty`."""

    dirty: dict[Changes, None]
    _rows: list[I64] = field(default_factory=list)
    _one: list[int] = field(default_factory=list)
    _given: list[I64] = field(default_factory=list)
    _hosts: list[I32] | list[I64] = field(default_factory=list)

    def rows(self, rows: I64) -> None:
        self._rows.append(rows)
        self.dirty[self] = None

    def row(self, row: int) -> None:
        self._one.append(row)
        self.dirty[self] = None

    def given(self, rows: I64) -> None:
        self._given.append(rows)
        self.dirty[self] = None

    def hosts(self, hosts: I32 | I64) -> None:
        self._hosts.append(hosts)  # type: ignore[arg-type]
        self.dirty[self] = None

    def counters(self) -> None:
        self.dirty[self] = None

    def take(self) -> tuple[I64, I64, I64]:
        """The rows, hosts and given rows that changed, some perhaps more than once; from here on nothing has."""
        rows = _joined([*self._rows, np.array(self._one, np.int64)] if self._one else self._rows)
        hosts, given = _joined(self._hosts), _joined(self._given)
        self._rows, self._one, self._given, self._hosts = [], [], [], []
        return rows, hosts, given


def _joined(pieces: list[I32] | list[I64]) -> I64:
    return np.concatenate(pieces).astype(np.int64) if pieces else NOTHING


NOTHING = np.zeros(0, np.int64)

# What a commit writes: the changed rows, and the hosts, domains and politeness queues they belong to, each once.


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


@kernel(
    nothing(
        i64s, i64s, i64s, records(ROW), u64s, records(HOST), records(PACE), i64s,
        i64s, i32s, records(ROW), u64s, i32s, records(HOST), i32s, i64s, i32s, records(PACE),
    )
)  # fmt: skip
def collect(  # type: ignore[no-untyped-def]
    rows, hosts, queues, table, ids, host_table, pace, domain_pages,
    counts, row_numbers, row_records, row_ids, host_numbers, host_records, domain_numbers, domain_records,
    queue_numbers, queue_records,
):  # fmt: skip
    """Copy changed rows and all that hangs on them; `counts` receives how many of each: rows, hosts, domains, queues.

    `hosts` and `queues` changed by themselves; a row stands for its host, a host for its domain and its queue.
    """
    count = distinct(rows.copy(), row_numbers)
    their_hosts = np.empty(count + len(hosts), np.int32)
    for number in range(count):
        row = row_numbers[number]
        row_records[number], row_ids[number], their_hosts[number] = table[row], ids[row], table[row].host
    their_hosts[count:] = hosts
    host_count = distinct(their_hosts, host_numbers)
    domains, their_queues = np.empty(host_count, np.int32), np.empty(host_count + len(queues), np.int32)
    for number in range(host_count):
        host = host_table[host_numbers[number]]
        host_records[number], domains[number], their_queues[number] = host, host.domain, host.pace
    their_queues[host_count:] = queues
    domain_count, queue_count = distinct(domains, domain_numbers), distinct(their_queues, queue_numbers)
    for number in range(domain_count):
        domain_records[number] = domain_pages[domain_numbers[number]]
    for number in range(queue_count):
        queue_records[number] = pace[queue_numbers[number]]
    counts[0], counts[1], counts[2], counts[3] = count, host_count, domain_count, queue_count


@kernel(nothing(i64s, records(ROW), records(HOST), records(PACE), i64s, records(GIVEN)))
def collect_given(rows, table, host_table, pace, domain_pages, given):  # type: ignore[no-untyped-def]
    """What a commit writes of rows that were given out: far less than all that hangs on them."""
    for number in range(len(rows)):
        row, mine = table[rows[number]], given[number]
        host = host_table[row.host]
        queue = pace[host.pace]
        mine.last, mine.next_fetch, mine.leases = queue.last, queue.next_fetch, queue.leases
        mine.domain_pages, mine.queue, mine.domain = domain_pages[host.domain], host.pace, host.domain
        mine.state = row.state
