"""Rows that nothing is known of yet."""

import numpy as np

from crawlguide.core.kernels import I32, I64, kernel, nothing, one_f64, one_i64, records
from crawlguide.store.rows import FREE, HOST, ROW

DEEPEST = np.iinfo(np.int16).max


@kernel(nothing(I64, I32, one_i64, one_f64, records(ROW), records(HOST)))
def clear(rows, hosts, sequence, at, table, host_rows):
    """Number the rows from `sequence` on; they belong to no state yet, and nothing leads to them."""
    for number in range(len(rows)):
        row = table[rows[number]]
        host_rows[hosts[number]].urls += 1
        row.sequence, row.discovered, row.host, row.state = sequence + number, at, hosts[number], FREE
        row.fetched, row.due, row.relevance, row.given = np.nan, np.nan, np.nan, np.nan
        row.priority, row.parent_sum, row.parent_best = 0.0, 0.0, 0.0
        row.newest_in, row.arm, row.max_depth, row.stamp = 0, -1, -1, -1
        row.outs, row.parents, row.status, row.tries = 0, 0, 0, 0
        row.counted, row.noted, row.reason = 0, 0, 0
        row.depth = DEEPEST
