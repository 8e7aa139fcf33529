"""What a told fetch changes about its row, its host and its politeness queue; and what the end of a lease does."""

import numpy as np

from crawlguide.core.kernels import (
    F64,
    I32,
    I64,
    allocating_part,
    flag,
    kernel,
    nothing,
    one_f64,
    one_i64,
    part,
    records,
)
from crawlguide.store.rows import HOST, PACE, ROW

LONGEST_BLOCK_S = 86_400.0
LONGEST_BACKOFF_S = 3_600.0


@allocating_part
def remembered(ring, count, value):
    """Keep the newest values in a ring; returns their median, which one liar cannot move far."""
    ring[count % len(ring)] = value
    newest = np.sort(ring[: min(count + 1, len(ring))])
    return newest[(len(newest) - 1) // 2]


@part
def slow_down(queue, status, retry_after_s, at):
    """Retry-After is obeyed; without it 429 and 503 double the back-off, and a success halves it."""
    busy = status in (429, 503)
    if busy:
        queue.backoff = min(max(2 * queue.backoff, 2.0), LONGEST_BACKOFF_S)
    elif 200 <= status < 400:
        queue.backoff = queue.backoff / 2 if queue.backoff >= 2 else 0.0
    wait = retry_after_s if retry_after_s >= 0 else (queue.backoff if busy else 0.0)
    if wait > 0:
        queue.blocked = max(queue.blocked, at + min(wait, LONGEST_BLOCK_S))


@kernel(
    nothing(
        one_i64, one_i64, flag, flag, flag, one_f64, one_f64, one_f64, one_f64,
        records(ROW), records(HOST), records(PACE), F64, I64,
    )
)  # fmt: skip
def told(
    row_number, status, failed, is_the_hosts, strict, elapsed_ms, size, retry_after_s, at,
    table, hosts, pace, opens, domain_pages,
):  # fmt: skip
    """The deployment learns pace, latency and failures, the crawl pages and failures, the row its status.

    Under strict politeness the delay counts from the telling: the fetch reached the host no later.
    """
    row = table[row_number]
    host = hosts[row.host]
    queue = pace[host.pace]
    if strict:
        queue.last = max(queue.last, at)
    queue.fetches += 1
    queue.failures += failed
    if elapsed_ms >= 0:
        queue.median_ms = remembered(queue.recent_ms, queue.timed, elapsed_ms)
        queue.timed += 1
    if size >= 0 and not failed:
        queue.median_bytes = remembered(queue.recent_bytes, queue.weighed, size)
        queue.weighed += 1
    slow_down(queue, status, retry_after_s, at)
    opens[host.pace] = max(queue.blocked, queue.next_fetch)
    if failed:
        host.failures += 1
    else:
        host.pages += 1
        if not row.counted:
            row.counted = 1
            domain_pages[host.domain] += 1
    host.errors += is_the_hosts
    row.status = max(status, 0)
    row.fetched = at


@kernel(nothing(I64, records(ROW), records(HOST), records(PACE), I64, I32))
def leave(rows, table, hosts, pace, domain_pages, left):
    """Leases of these rows ended; `left` receives their hosts.

    What was withheld because of these leases gets a new hearing.
    """
    for number in range(len(rows)):
        host = hosts[table[rows[number]].host]
        left[number] = table[rows[number]].host
        pace[host.pace].leases -= 1
        domain_pages[host.domain] -= 1
        host.withheld = -np.inf


@kernel(nothing(I64, one_i64, records(ROW), I64))
def move(rows, state, table, states):
    """Mark rows, and count how many are in each state."""
    for row in rows:
        states[table[row].state] -= 1
        states[state] += 1
        table[row].state = state
