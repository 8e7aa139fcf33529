"""Rows of URLs as a batch: their facts, the distinct hosts among them, and the facts of those.

The places below are those of the facts in core.types.Batch and core.types.Hosts; a test compares them by name.
"""

from crawlguide.core.kernels import F64, I32, I64, kernel, matrix, one_i64, part, records
from crawlguide.store.rows import HOST, PACE, ROW


@part
def note_url(facts, number, row, queue):
    facts[0, number] = row.arm
    facts[1, number] = row.depth
    facts[2, number] = row.sequence
    facts[3, number] = row.discovered
    facts[4, number] = row.fetched
    facts[5, number] = row.parents
    facts[6, number] = row.parent_sum
    facts[7, number] = row.parent_best
    facts[8, number] = row.given
    facts[9, number] = row.priority
    facts[10, number] = queue.median_ms
    facts[11, number] = queue.median_bytes
    facts[12, number] = row.priority
    facts[13, number] = row.priority


@part
def note_host(facts, number, host, queue, domain_pages, opens):
    facts[0, number] = host.pages
    facts[1, number] = host.failures
    facts[2, number] = host.errors
    facts[3, number] = host.judged
    facts[4, number] = host.relevance_sum
    facts[5, number] = host.domain
    facts[6, number] = domain_pages
    facts[7, number] = queue.median_ms
    facts[8, number] = queue.median_bytes
    facts[9, number] = queue.delay
    facts[10, number] = queue.last
    facts[11, number] = opens
    facts[12, number] = queue.leases
    facts[13, number] = queue.limit


@part
def fetch_ahead(rows, table, hosts, pace, host, queue):
    """Touch what is needed soon, each kind in a loop of its own: so the waits for memory overlap."""
    for number in range(len(rows)):
        host[number] = table[rows[number]].host
    for number in range(len(rows)):
        queue[number] = hosts[host[number]].pace
    touched = 0
    for number in range(len(rows)):
        touched += pace[queue[number]].fetches
    return touched


@kernel(one_i64(I64, records(ROW), records(HOST), records(PACE), F64, I64, I32, I64, I64, matrix, matrix))
def join(rows, table, hosts, pace, opens, domain_pages, place, host, numbers, facts, host_facts):
    """Fill in the facts of rows and of their hosts, which are numbered in the order of their first row.

    `place` is a column of zeros over all hosts, and is left so. Returns how many distinct hosts there are.
    """
    count = 0 * fetch_ahead(rows, table, hosts, pace, host, numbers)
    for number in range(len(rows)):
        row = table[rows[number]]
        if place[row.host] == 0:
            numbers[count] = row.host
            count += 1
            place[row.host] = count
        host[number] = place[row.host] - 1
        note_url(facts, number, row, pace[hosts[row.host].pace])
    for number in range(count):
        mine = hosts[numbers[number]]
        place[numbers[number]] = 0
        note_host(host_facts, number, mine, pace[mine.pace], domain_pages[mine.domain], opens[mine.pace])
    return count
