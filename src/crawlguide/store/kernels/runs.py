"""Runs of slots whose lengths are powers of two, cut from one column; a run given back serves the next taker.

`free[order]` is the first free run of 2**order slots (-1: none); a free run's first slot holds the next one in its
`item`. `used[0]` is the end of what was ever cut.
"""

from crawlguide.core.kernels import part

ORDERS = 40


@part
def take_run(slots, free, used, order):
    """The start of a run of 2**order slots, or -1 if the column must grow first."""
    start = free[order]
    if start >= 0:
        free[order] = slots[start].item
        return start
    start = used[0]
    if start + (1 << order) > len(slots):
        return -1
    used[0] = start + (1 << order)
    return start


@part
def give_run(slots, free, start, order):
    slots[start].item = free[order]
    free[order] = start
