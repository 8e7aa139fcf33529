"""What a link says about where it leads, added to the row of its target, and what becomes of that row."""

import numpy as np

from crawlguide.core.kernels import F64, I32, I64, U8, U64, kernel, nothing, one_i64, part, records
from crawlguide.store.kernels.blank import DEEPEST
from crawlguide.store.rows import DROPPED, FREE, QUEUED, ROW

NOTHING, WAITS, REFUSED, BACK = 0, 1, 2, 3  # what becomes of a link's target
UNKNOWN_RELEVANCE = 0.5


@part
def tighter(a, b):
    """Of two bounds on depth, of which -1 is none."""
    return max(a, b) if a < 0 or b < 0 else min(a, b)


@part
def looser(a, b):
    return -1 if a < 0 or b < 0 else max(a, b)


@part
def count_link(row, relevance, depth):
    row.depth = min(row.depth, depth)
    row.parents += 1
    row.parent_sum += relevance
    row.parent_best = max(row.parent_best, relevance)


@kernel(one_i64(I64, I64, I64, F64, F64, I32, U8, one_i64, I64, U8, one_i64, records(ROW), U8, U8))
def add(
    rows, page, page_rows, page_relevance, given, max_depth, refused, deepest, fresh, known, stamp, table, kept, fate
):
    """Count each link once per page; a page's links stand together, so one stamp per page is enough.

    `page` numbers the pages of this tell; -1 is a seed, which counts as one page of relevance 1 if nothing else leads
    there. `known` marks links that their page had when it was fetched before: nothing new. `kept` receives a mark for
    the first of equal links on a page, `fate` what the link alone asks for. Of several ways to a URL the one with the
    loosest bound on depth counts. Returns the last stamp used.
    """
    last = -2
    for number in range(len(rows)):
        row, mine = rows[number], page[number]
        if mine != last or mine < 0:
            last = mine
            stamp += 1
        depth, bound, relevance = 0, min(max_depth[number], DEEPEST), 1.0
        if mine >= 0:
            parent = table[page_rows[mine]]
            depth, bound = min(parent.depth + 1, DEEPEST), tighter(bound, parent.max_depth)
            relevance = UNKNOWN_RELEVANCE if np.isnan(page_relevance[mine]) else page_relevance[mine]
        table[row].max_depth = bound if fresh[number] else looser(table[row].max_depth, bound)
        if not np.isnan(given[number]):
            table[row].given = given[number]
        too_deep = (0 <= bound < depth) or (0 <= deepest < depth)
        fate[number] = REFUSED if refused[number] or too_deep else WAITS
        if table[row].stamp == stamp:
            continue
        table[row].stamp = stamp
        kept[number] = 1
        if known[number] or (mine < 0 and table[row].parents > 0):
            table[row].depth = min(table[row].depth, depth)
        else:
            count_link(table[row], relevance, depth)
    return stamp


@kernel(nothing(I64, records(ROW), U8))
def settle(rows, table, fate):
    """What becomes of each target, all its links heard: a new row waits if one of them is permitted.

    Until a strategy ranks it, a row rests at the priority given by hand, else at its parents' mean relevance.
    """
    for number in range(len(rows)):
        row = table[rows[number]]
        if fate[number] == WAITS and row.state == FREE:
            row.state = QUEUED
            row.priority = row.parent_sum / max(row.parents, 1) if np.isnan(row.given) else row.given
        elif fate[number] == WAITS:
            fate[number] = BACK if row.state == DROPPED else NOTHING
    for number in range(len(rows)):
        if fate[number] == REFUSED and table[rows[number]].state != FREE:
            fate[number] = NOTHING


@kernel(nothing(I64, U64, U64, records(ROW)))
def chain(rows, pages, next_in, table):
    """Hang links of these pages before those that lead to the same rows already."""
    for number in range(len(rows)):
        next_in[number] = table[rows[number]].newest_in
        table[rows[number]].newest_in = pages[number]
