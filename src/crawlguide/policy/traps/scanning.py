"""One look at the bytes of many URLs, a line for each."""

import numba
import numpy as np

from crawlguide.core.kernels import f64s, fixed_bytes, i64s, kernel, nothing, one_i64, part, u64s
from crawlguide.core.url_bytes import EMPTY, LINE_END, alpha, digit, exact, find, joined, skeleton, stepped
from crawlguide.policy.traps.dates import NONE, dated, speaks_of_calendar
from crawlguide.policy.traps.queries import bared, counted, named, walked
from crawlguide.policy.traps.shape import AHEAD, BACK, DEEP, HIGH_PAGE, LONG, VERY_DEEP, VERY_LONG
from crawlguide.policy.traps.templates import DEEPEST, LONGEST_WORD

NO_YEAR = -1
LEVELS = 4  # on the host finely, on the host coarsely, in the crawl finely, in the crawl coarsely
HOST_FINE, HOST_COARSE, FINE, COARSE, BARE, WHOLE, CLOTHED, SAID = range(8)
CODES = 8
MATRIX = numba.uint64[:, ::1]
ALL, MORE, ALL_COARSELY, MORE_COARSELY = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@part
def suspicion(text, start, path, mark, end, year, names, kinds, scratch):  # type: ignore[no-untyped-def]
    """How likely a URL is part of a trap, by its form; the rules stand in `shape.py`."""
    much = repeats(text, path, mark, end - start, scratch)
    query = min(mark + 1, end)
    orders, page, session, action, named_year, date = walked(text, query, end, names, kinds)
    if query < end or find(text, path, mark, 59) < mark:
        if session == 0:
            session = walked(text, path, mark, names, kinds)[2]
        pairs, twice = counted(text, query, end, scratch)
        more = 0.08 * (pairs - 1) + 0.2 * orders
        much = max(much, 0.9 if twice else min(more, 0.85), 0.75 if session == 2 else 0.0, 0.6 if action else 0.0)
        if page > HIGH_PAGE:
            much = max(much, 0.8 if page > 100 * HIGH_PAGE else 0.55)
    for place in range(start, end):
        if digit(text[place]):
            return max(much, calendar(text, path, mark, end, year, named_year, date, names, kinds))
    return much


@part
def repeats(text, path, mark, length, codes):  # type: ignore[no-untyped-def]
    """Too long, too deep, or a path that comes back to itself."""
    segments, count, at = 0, 0, path + 1
    while at <= mark and segments <= VERY_DEEP:
        stop, digits = find(text, at, mark, 47), 0
        for place in range(at, stop):
            digits += digit(text[place])
        if digits < stop - at:
            codes[count] = exact(text, at, stop)
            count += 1
        segments, at = segments + 1, stop + 1
    if length > VERY_LONG or segments > VERY_DEEP:
        return 0.95
    twice, thrice = 0, False
    for later in range(1, count):
        times = 0
        for earlier in range(later):
            same = codes[earlier] == codes[later]
            times += same
            thrice = thrice or (same and earlier > 0 and codes[earlier - 1] == codes[later - 1])
        twice += times > 0
        thrice = thrice or times > 1
    much = 0.6 if length > LONG or segments > DEEP else 0.0
    if thrice:
        return 0.95
    return max(much, min(0.2 + 0.2 * twice, 0.8)) if twice else much


@part
def calendar(text, path, mark, end, year, named_year, date, names, kinds):  # type: ignore[no-untyped-def]
    query = min(mark + 1, end)
    found = dated(text, path, mark, False)
    found = dated(text, query, end, False) if found == NONE else found
    found = named_year if found == NONE else found
    late = 0.9 if year != NO_YEAR and found > year + AHEAD else 0.0
    if found == NONE:
        found = dated(text, path, mark, True)
        found = dated(text, query, end, True) if found == NONE else found
    if found == NONE and not date:
        return 0.0
    if not (speaks_of_calendar(text, path, mark, names, kinds) or speaks_of_calendar(text, query, end, names, kinds)):
        return late
    far = year != NO_YEAR and not year - BACK <= found <= year + AHEAD
    return 0.5 if found == NONE else (0.95 if far else 0.65)


@part
def template(text, path, mark, end, scratch):  # type: ignore[no-untyped-def]
    """The hashes of a URL's template, finely and coarsely; what they tell apart stands in `templates.py`."""
    stop = find(text, path + 1, mark, 47)
    fine = EMPTY
    if (stop < mark or mark < end) and wordly(text, path + 1, stop):
        fine = exact(text, path + 1, stop)
    elif stop > path + 1:
        fine = stepped(fine, kind(text, path + 1, stop))
    coarse = joined(fine, MORE_COARSELY if stop < mark else ALL_COARSELY)
    deep = 1
    while stop < mark and deep < DEEPEST:
        at = stop + 1
        stop, deep = find(text, at, mark, 47), deep + 1
        fine = stepped(fine, 47)
        fine = stepped(fine, kind(text, at, stop)) if stop > at else fine
    fine = joined(fine, MORE if stop < mark else ALL)
    if mark == end:
        return fine, coarse
    return joined(fine, named(text, mark + 1, end, scratch)), joined(coarse, EMPTY)


@part
def kind(text, start, end):  # type: ignore[no-untyped-def]
    """A number, a word, or anything else."""
    if wordly(text, start, end):
        return 119  # w
    for place in range(start, end):
        if not digit(text[place]):
            return 42  # *
    return 35  # the sign of a number


@part
def wordly(text, start, end):  # type: ignore[no-untyped-def]
    for place in range(start, end):
        if not alpha(text[place]):
            return False
    return 0 < end - start <= LONGEST_WORD


@part
def said(text, start, end):  # type: ignore[no-untyped-def]
    """The hash of the last words of a URL; 0: it does not speak in words."""
    while end > start and text[end - 1] == 47:
        end -= 1
    at = end
    while at > start and not seam(text[at - 1]):
        at -= 1
    letters, armed = 0, False
    for place in range(at, end):
        byte = text[place]
        if alpha(byte):
            letters += 1
            if armed and letters > 2:
                return skeleton(text, at, end)
        else:
            armed = letters > 2 and byte in (45, 95, 43, 46)  # - _ + .
            letters = 0
    return np.uint64(0)


@part
def seam(byte):  # type: ignore[no-untyped-def]
    return byte in (47, 61, 38, 63)  # / = & ?


@part
def queue(text, start, end):  # type: ignore[no-untyped-def]
    """The hash of the politeness queue of scheme://authority (see `urls.queue`)."""
    first = find(text, start, end, 47) + 2
    for place in range(first, end):
        if text[place] == 64:  # @
            first = place + 1
    last = end
    while last > first and text[last - 1] == 46:  # example.org. is example.org
        last -= 1
    last = last if last > first else end
    code = EMPTY
    for place in range(first, last):
        if text[place] != 46 or place + 1 == last or text[place + 1] != 58:  # so is example.org.:81
            code = stepped(code, text[place])
    return code


@kernel(nothing(fixed_bytes, one_i64, u64s, i64s, f64s, MATRIX))
def scan(text, year, names, kinds, much, codes):  # type: ignore[no-untyped-def]
    scratch = np.empty(len(text) + 2, np.uint64)
    start = 0
    for row in range(len(much)):
        end = find(text, start, len(text), LINE_END)
        mark = find(text, start, end, 63)
        path = find(text, min(start + 8, mark), mark, 47)
        much[row] = suspicion(text, start, path, mark, end, year, names, kinds, scratch)
        fine, coarse = template(text, path, mark, end, scratch)
        host = queue(text, start, path)
        home = mark == end and path + 1 >= mark
        codes[HOST_FINE, row] = np.uint64(0) if home else joined(host, fine)
        codes[HOST_COARSE, row] = joined(host, coarse)
        codes[FINE, row], codes[COARSE, row] = fine, coarse
        code, bare = bared(text, start, mark, end, names, kinds)
        codes[BARE, row], codes[CLOTHED, row] = code, np.uint64(0 if bare else 1)
        codes[WHOLE, row] = code if bare else exact(text, start, end)
        codes[SAID, row] = said(text, start, end)
        start = end + 1
