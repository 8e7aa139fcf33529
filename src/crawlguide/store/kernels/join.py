"""Rows of URLs as a batch: their facts, the distinct hosts among them, and the facts of those."""

from crawlguide.core.kernels import F64, I32, I64, kernel, matrix, one_i64, records
from crawlguide.store.rows import HOST, PACE, ROW

# The order of the assignments below is the order of the facts in core.types.Batch and core.types.Hosts.


@kernel(one_i64(I64, records(ROW), records(HOST), records(PACE), F64, I64, I32, I64, I64, matrix, matrix))
def join(rows, table, hosts, pace, opens, domain_pages, place, host, numbers, facts, host_facts):
    """Fill in the facts of rows and of their hosts, which are numbered in the order of their first row.

    `place` is a column of zeros over all hosts, and is left so. Returns how many distinct hosts there are.
    """
    count = 0
    for number in range(len(rows)):
        row = table[rows[number]]
        if place[row.host] == 0:
            numbers[count] = row.host
            count += 1
            place[row.host] = count
        host[number] = place[row.host] - 1
        queue = pace[hosts[row.host].pace]
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
    for number in range(count):
        mine = hosts[numbers[number]]
        queue = pace[mine.pace]
        place[numbers[number]] = 0
        host_facts[0, number] = mine.pages
        host_facts[1, number] = mine.failures
        host_facts[2, number] = mine.errors
        host_facts[3, number] = mine.judged
        host_facts[4, number] = mine.relevance_sum
        host_facts[5, number] = mine.domain
        host_facts[6, number] = domain_pages[mine.domain]
        host_facts[7, number] = queue.median_ms
        host_facts[8, number] = queue.median_bytes
        host_facts[9, number] = queue.delay
        host_facts[10, number] = queue.last
        host_facts[11, number] = opens[mine.pace]
        host_facts[12, number] = queue.leases
        host_facts[13, number] = queue.limit
    return count
