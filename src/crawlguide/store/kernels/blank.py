"""Rows that nothing is known of yet."""

import numpy as np

from crawlguide.core.kernels import I32, I64, kernel, nothing, one_f64, one_i64, records
from crawlguide.store.rows import FREE, ROW

DEEPEST = np.iinfo(np.int32).max


@kernel(nothing(I64, I32, one_i64, one_f64, records(ROW)))
def clear(rows, hosts, sequence, at, table):
    """Number the rows from `sequence` on; they belong to no state yet, and nothing leads to them."""
    for number in range(len(rows)):
        row = table[rows[number]]
        row.sequence, row.discovered, row.host, row.state = sequence + number, at, hosts[number], FREE
        row.fetched, row.relevance, row.given = np.nan, np.nan, np.nan
        row.priority, row.parent_sum, row.parent_best = 0.0, 0.0, 0.0
        row.first_in, row.first_out, row.arm, row.max_depth, row.stamp = -1, -1, -1, -1, -1
        row.outs, row.parents, row.status, row.tries, row.reason, row.counted = 0, 0, 0, 0, 0, 0
        row.depth = DEEPEST
