"""What a commit writes: the changed rows, and the hosts, domains and politeness queues they belong to, each once."""

import numpy as np

from crawlguide.core.kernels import I32, I64, U64, allocating_part, kernel, nothing, records
from crawlguide.store.rows import GIVEN, HOST, PACE, ROW


@allocating_part
def distinct(values, numbers):
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
        I64, I64, I64, records(ROW), U64, records(HOST), records(PACE), I64,
        I64, I32, records(ROW), U64, I32, records(HOST), I32, I64, I32, records(PACE),
    )
)  # fmt: skip
def collect(
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


@kernel(nothing(I64, records(ROW), records(HOST), records(PACE), I64, records(GIVEN)))
def collect_given(rows, table, host_table, pace, domain_pages, given):
    """What a commit writes of rows that were given out: far less than all that hangs on them."""
    for number in range(len(rows)):
        row, mine = table[rows[number]], given[number]
        host = host_table[row.host]
        queue = pace[host.pace]
        mine.last, mine.next_fetch, mine.leases = queue.last, queue.next_fetch, queue.leases
        mine.domain_pages, mine.queue, mine.domain = domain_pages[host.domain], host.pace, host.domain
        mine.state = row.state
