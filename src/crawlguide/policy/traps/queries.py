"""Names and values in a URL, for kernels: what `shape.py` and `templates.py` find by patterns."""

import numpy as np

from crawlguide.core.kernels import part
from crawlguide.core.url_bytes import (
    EMPTY,
    NUMBER,
    alpha,
    digit,
    exact,
    find,
    joined,
    kind_of,
    kind_of_hash,
    lower,
    stepped,
    together,
)
from crawlguide.policy.traps.dates import NONE, year_at
from crawlguide.policy.traps.names import (
    ACTION,
    DATE,
    DIRECTION,
    DO,
    DOES,
    EDIT,
    EDITS,
    FILTER,
    ORDER,
    PAGE,
    SESSION,
    VISIT,
    WAY,
    YEAR,
)

SHORTEST_SESSION, SHORTEST_RANDOM = 8, 12
LONGEST_NUMBER, LONGEST_VALUE = 15, 7  # digits of a page; letters of a value in EDITS
LONGEST_SUFFIX = 5


@part
def walked(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """What the names in a part of a URL say: how many are orders; the number of the first page, NONE without; whether
    a session is named (1) or named by chance (2); whether something is done; the first year; whether a date is given.
    """
    orders, page, session, action, year, date = 0, NONE, 0, False, NONE, False
    at, before = start, 38  # what stands before a name: & ; or /
    while True:
        cut = find(text, at, next_part(text, at, end), 61)
        if cut < end and text[cut] == 61:
            kind = kind_of(text, at, cut, names, kinds)
            first = before == 38
            orders += first and (kind & ORDER > 0 or filtered(text, at, cut, names, kinds))
            page = page_at(text, cut + 1, end) if first and page == NONE and kind & PAGE else page
            year = year_named(text, at, cut, end, names, kinds) if first and year == NONE else year
            date = date or (first and spoken(text, cut + 1, end) and suffixed(text, at, cut, DATE, names, kinds))
            named_here = before != 47 and session == 0 and kind & SESSION
            session = session_at(text, cut + 1, end) if named_here else session
            action = action or (before != 59 and acts(text, cut + 1, end, kind, names, kinds))
            cut = next_part(text, cut, end)
        if cut == end:
            return orders, page, session, action, year, date
        at, before = cut + 1, text[cut]


@part
def next_part(text, at, end):  # type: ignore[no-untyped-def]
    while at < end and text[at] not in (38, 59, 47):  # & ; /
        at += 1
    return at


@part
def filtered(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """filter[colour], as it is or escaped."""
    first = start
    while first < end and alpha(text[first]):
        first += 1
    if first == end or not kind_of(text, start, first, names, kinds) & FILTER:
        return False
    if text[first] == 91 and text[end - 1] == 93:
        return within(text, first + 1, end - 1)
    return (
        end - first >= 6
        and text[first] == 37 and text[first + 1] == 53 and lower(text[first + 2]) == 98
        and text[end - 3] == 37 and text[end - 2] == 53 and lower(text[end - 1]) == 100
        and within(text, first + 3, end - 3)
    )  # fmt: skip


@part
def within(text, start, end):  # type: ignore[no-untyped-def]
    """Letters, digits and _ alone."""
    for place in range(start, end):
        if not alpha(text[place]) and not digit(text[place]) and text[place] != 95:
            return False
    return start <= end


@part
def page_at(text, at, end):  # type: ignore[no-untyped-def]
    """The number that a value is; NONE: it is none."""
    number, size = 0, 0
    while at < end and digit(text[at]) and size <= LONGEST_NUMBER:
        number = 10 * number + text[at] - 48
        at, size = at + 1, size + 1
    whole = 1 <= size <= LONGEST_NUMBER and (at == end or text[at] == 38)
    return number if whole else NONE


@part
def suffixed(text, start, end, kind, names, kinds):  # type: ignore[no-untyped-def]
    """Does a name of letters and _ end with a word of this kind?"""
    for place in range(start, end):
        if not alpha(text[place]) and text[place] != 95:
            return False
    for first in range(max(start, end - LONGEST_SUFFIX), end):  # noqa: SIM110 - numba knows no generators
        if kind_of(text, first, end, names, kinds) & kind:
            return True
    return False


@part
def year_named(text, start, cut, end, names, kinds):  # type: ignore[no-untyped-def]
    year = year_at(text, cut + 1, end)
    if year < 0 or (cut + 5 < end and text[cut + 5] != 38):
        return NONE
    return year if suffixed(text, start, cut, YEAR, names, kinds) else NONE


@part
def spoken(text, at, end):  # type: ignore[no-untyped-def]
    """Does a value begin as a date does?"""
    return at < end and (digit(text[at]) or 45 <= text[at] <= 47)  # - . /


@part
def session_at(text, at, end):  # type: ignore[no-untyped-def]
    """1: long enough for the name of a session, 2: and it looks like chance."""
    size, digits, letters, strange = 0, 0, 0, 0
    while at < end:
        byte = text[at]
        sign = byte in (95, 46, 33, 126, 45)  # _ . ! ~ -
        if not (sign or byte == 37 or alpha(byte) or digit(byte)):
            break
        size, digits, letters, strange = size + 1, digits + digit(byte), letters + alpha(byte), strange + (byte == 37)
        at += 1
    if size < SHORTEST_SESSION:
        return 0
    return 2 if size >= SHORTEST_RANDOM and digits > 0 and letters > 0 and strange == 0 else 1


@part
def acts(text, at, end, kind, names, kinds):  # type: ignore[no-untyped-def]
    if kind & ACTION:
        return True
    wanted = EDITS if kind & EDIT else (DOES if kind & DO else 0)
    code = EMPTY
    for place in range(at, min(end, at + LONGEST_VALUE) if wanted else at):
        code = stepped(code, lower(text[place]))
        if kind_of_hash(code, names, kinds) & wanted:
            return True
    return False


@part
def counted(text, start, end, codes):  # type: ignore[no-untyped-def]
    """How many pairs a query has, and whether it says the same twice."""
    count, at = 0, start
    while at < end:
        stop = find(text, at, end, 38)
        if stop > at:
            codes[count] = exact(text, at, stop)
            count += 1
        at = stop + 1
    return count, together(codes, count)[1] or escaped_twice(text, start, end)


@part
def escaped_twice(text, start, end):  # type: ignore[no-untyped-def]
    """Is there an amp;amp; in it?"""
    for place in range(start, end - 7):
        same = True
        for step in range(8):
            byte = text[place + step]
            wanted = 97 if step % 4 == 0 else (109 if step % 4 == 1 else (112 if step % 4 == 2 else 59))
            same = same and byte == wanted
        if same:
            return True
    return False


@part
def named(text, start, end, codes):  # type: ignore[no-untyped-def]
    """One hash of the names in a query, numbers in them being alike; in whatever order, however often."""
    count, at = 0, start
    while at <= end:
        stop = find(text, at, end, 38)
        code = EMPTY
        for place in range(at, find(text, at, stop, 61)):
            if not digit(text[place]):
                code = stepped(code, text[place])
            elif place == at or not digit(text[place - 1]):
                code = stepped(code, NUMBER)
        codes[count] = code
        count, at = count + 1, stop + 1
    return together(codes, count)[0]


@part
def visits(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """Does a pair only say how a page is visited, and not which?"""
    cut = find(text, start, end, 61)
    if cut == end:
        return False
    kind = kind_of(text, start, cut, names, kinds)
    if kind & VISIT or (kind & DIRECTION and kind_of(text, cut + 1, end, names, kinds) & WAY):
        return True
    tagged = cut - start > 4 and lower(text[start]) == 117 and lower(text[start + 1]) == 116  # utm_
    return tagged and lower(text[start + 2]) == 109 and text[start + 3] == 95 and within(text, start + 4, cut)


@part
def bared(text, start, mark, end, names, kinds):  # type: ignore[no-untyped-def]
    """The hash of a URL without sessions and orders, its parameters in any order; whether it was bare itself."""
    code, bare, hidden = EMPTY, True, False
    for place in range(start, mark):
        hidden = (hidden or text[place] == 59) and text[place] != 47
        bare = bare and not hidden
        if not hidden:
            code = stepped(code, text[place])
    total, kept, last, at = EMPTY, 0, -1, mark + 1
    while at <= end and mark < end:
        stop = find(text, at, end, 38)
        if stop == at or visits(text, at, stop, names, kinds):
            bare = False
        else:
            total += joined(exact(text, at, stop), EMPTY)
            kept += 1
            bare = bare and (last < 0 or not before(text, at, stop, last, at - 1))
            last = at
        at = stop + 1
    return (joined(code, total) if kept else joined(code, np.uint64(0))), bare


@part
def before(text, start, end, other, other_end):  # type: ignore[no-untyped-def]
    """Does one piece stand before another in the alphabet?"""
    while start < end and other < other_end and text[start] == text[other]:
        start, other = start + 1, other + 1
    if start == end or other == other_end:
        return start == end and other < other_end
    return text[start] < text[other]
