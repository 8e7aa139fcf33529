"""The politeness slots and leases of an answer, taken in its order."""

import numpy as np

from crawlguide.core.kernels import F64, I64, U8, flag, kernel, one_f64, one_i64, records
from crawlguide.core.pacing import paced
from crawlguide.core.types import DEFERRED, LEASED, TAKEN
from crawlguide.store.rows import HOST, PACE, QUEUED, ROW
from crawlguide.store.rows import LEASED as LEASED_STATE


@kernel(
    one_i64(
        I64, records(ROW), records(HOST), records(PACE), F64, I64, one_f64, one_f64, one_f64, one_f64, flag, one_i64,
        U8, F64,
    )
)  # fmt: skip
def reserve(rows, table, hosts, pace, opens, domain_pages, at, delay, factor, horizon, strict, limit, outcome, start):
    """slot = max(now, next fetch, end of a block, last fetch + delay), for each row after those before it.

    A row that does not wait any more is taken by somebody else. One whose slot lies beyond the horizon is deferred,
    as is one of a queue that already gave out all it may. Returns how many rows were leased.
    """
    count = 0
    for number in range(len(rows)):
        row = rows[number]
        start[number] = at
        outcome[number] = TAKEN
        if row < 0 or table[row].state != QUEUED:
            continue
        host = hosts[table[row].host]
        queue, mine = host.pace, pace[host.pace]
        own = paced(delay if np.isnan(mine.delay) else mine.delay, factor, mine.median_ms)
        slot = max(at, mine.next_fetch, mine.blocked, mine.last + own)
        slot = at + np.ceil((slot - at) * 1_000.0 - 1e-3) / 1_000.0  # as the crawler is told it: in milliseconds
        full = (strict and mine.leases > 0) or (mine.limit > 0 and mine.leases >= mine.limit)
        full = full or (limit > 0 and mine.leases >= limit)
        start[number] = max(slot, at + own) if full else slot
        outcome[number] = DEFERRED
        if full or slot > at + horizon:
            continue
        outcome[number] = LEASED
        count += 1
        table[row].state = LEASED_STATE
        domain_pages[host.domain] += 1
        pace[queue].last = slot
        pace[queue].next_fetch = slot + own
        pace[queue].leases += 1
        opens[queue] = max(slot + own, mine.blocked)
    return count
