"""The politeness slots of an answer, taken in its order."""

import numpy as np

from crawlguide.core.kernels import F64, I64, U8, flag, kernel, nothing, one_f64, records
from crawlguide.store.rows import PACE

LEASED, DEFERRED = 0, 1


@kernel(nothing(I64, one_f64, one_f64, one_f64, flag, records(PACE), F64, U8, F64))
def slots(queues, at, delay, horizon, strict, pace, opens, outcome, start):
    """slot = max(now, next fetch, end of a block, last fetch + delay), for each row after those before it.

    A row whose slot lies beyond the horizon is deferred, as is one of a queue that already gave out all it may.
    """
    for number in range(len(queues)):
        queue = queues[number]
        row = pace[queue]
        own = delay if np.isnan(row.delay) else row.delay
        slot = max(at, row.next_fetch, row.blocked, row.last + own)
        full = (strict and row.leases > 0) or (row.limit > 0 and row.leases >= row.limit)
        if full:
            slot = max(slot, at + own)
        start[number] = slot
        if full or slot > at + horizon:
            outcome[number] = DEFERRED
            continue
        outcome[number] = LEASED
        pace[queue].last = slot
        pace[queue].next_fetch = slot + own
        pace[queue].leases += 1
        opens[queue] = max(slot + own, row.blocked)
