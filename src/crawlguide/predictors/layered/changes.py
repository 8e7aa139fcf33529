"""Which records change with a link: those of pages that lead to it, of its places, of its words, of links beside it.

Links that stand side by side mostly share them: of equals that follow each other one is told.
"""

from crawlguide.core.kernels import I64, U64, kernel, one_i64, part
from crawlguide.predictors.layered.evidence import LINKS, PAGES
from crawlguide.predictors.layered.records import PARENTS, WAITING


@part
def add(value, found, count):  # type: ignore[no-untyped-def]
    """Returns how many there are then."""
    if count > 0 and found[count - 1] == value:
        return count
    found[count] = value
    return count + 1


@kernel(one_i64(I64, LINKS, one_i64, I64))
def pages_of(rows, links, used, found):  # type: ignore[no-untyped-def]
    """Of `used` pages those that are known to lead to these links; returns how many."""
    count = 0
    for row in rows:
        link = links[row]
        for number in range(PARENTS):
            if 0 <= link.parents[number] < used:
                count = add(link.parents[number], found, count)
        if 0 <= link.finder < used and link.finder != link.parents[0]:
            count = add(link.finder, found, count)
    return count


@kernel(one_i64(I64, LINKS, one_i64, I64))
def places_of(rows, links, levels, found):  # type: ignore[no-untyped-def]
    """Level by level, as that is how links share them."""
    count = 0
    for level in range(levels):
        for row in rows:
            if level < links[row].levels:
                count = add(links[row].places[level], found, count)
    return count


@kernel(one_i64(I64, LINKS, I64))
def words_of(rows, links, found):  # type: ignore[no-untyped-def]
    count = 0
    for row in rows:
        for number in range(links[row].spoken):
            found[count] = links[row].words[number]
            count += 1
    return count


@kernel(one_i64(I64, LINKS, one_i64, PAGES, one_i64, U64))
def waiting_beside(rows, links, used, pages, around, ids):  # type: ignore[no-untyped-def]
    """The ids of links that wait and were found beside these, up to `around` places away; returns how many."""
    count = 0
    for row in rows:
        if links[row].finder < 0:
            continue
        page = pages[links[row].finder]
        for other in range(max(page.first, row - around), min(page.first + page.found, row + around, used)):
            if links[other].state == WAITING:
                ids[count] = links[other].id
                count += 1
    return count
