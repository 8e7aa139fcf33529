"""What a link says about where it leads, added to the row of its target."""

from crawlguide.core.kernels import F64, I32, I64, U8, kernel, nothing, one_i64, records
from crawlguide.store.rows import ROW


@kernel(one_i64(I64, I32, F64, I32, U8, U8, one_i64, records(ROW)))
def add(rows, parents, relevance, depths, known, kept, stamp, table):
    """Count each link once per page; a page's links stand together, so one stamp per page is enough.

    `parents` numbers the pages of this tell (-1: a seed, which counts as one page of relevance 1).
    `known` marks links that this page had when it was fetched before: nothing new. `kept` receives a mark for the
    first of equal links on a page. Returns the last stamp used.
    """
    last = -2
    for number in range(len(rows)):
        if parents[number] != last or parents[number] < 0:
            last = parents[number]
            stamp += 1
        row = rows[number]
        if table[row].stamp == stamp:
            continue
        table[row].stamp = stamp
        table[row].depth = min(table[row].depth, depths[number])
        kept[number] = 1
        if known[number] or (parents[number] < 0 and table[row].parents > 0):
            continue
        table[row].parents += 1
        table[row].parent_sum += relevance[number]
        table[row].parent_best = max(table[row].parent_best, relevance[number])
    return stamp


@kernel(nothing(I64, one_i64, I64, records(ROW)))
def chain(rows, first, next_in, table):
    """Hang links numbered from `first` on before those that already lead to the same rows."""
    for number in range(len(rows)):
        next_in[number] = table[rows[number]].first_in
        table[rows[number]].first_in = first + number
