"""Parts of the URL scan that read parameters: what each is for, and the normal form of a URL."""

import numpy as np

from crawlguide.core.kernels import part
from crawlguide.core.url_bytes import (
    HASH_START,
    NUMBER,
    find_byte,
    hash_byte,
    hash_exact,
    hash_pair,
    hash_set,
    is_digit,
    is_letter,
    lower,
)
from crawlguide.policy.traps.parameter_names import (
    ACTION,
    DATE,
    DIRECTION,
    DO,
    DO_VALUE,
    EDIT,
    EDIT_VALUE,
    FILTER,
    ORDER,
    PAGE,
    SESSION,
    VISIT,
    WAY,
    YEAR,
    kind_of,
    kind_of_hash,
)
from crawlguide.policy.traps.url_dates import NONE, year_at

SHORTEST_SESSION, SHORTEST_RANDOM = 8, 12
LONGEST_NUMBER, LONGEST_VALUE = 15, 7  # digits of a page number; letters of an EDIT_VALUE
LONGEST_SUFFIX = 5


@part
def read_parameters(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """What the parameters in a part of a URL are for.

    Returns how many are sort orders and filters; the first page number, NONE without; a session id (0: none, 1: some
    value, 2: one that looks random); whether one is an action; the first year, NONE without; whether one is a date.
    """
    orders, page, session, action, year, date = 0, NONE, 0, False, NONE, False
    at, before = start, 38  # the separator before a name: & ; or /
    while True:
        cut = find_byte(text, at, next_separator(text, at, end), 61)
        if cut < end and text[cut] == 61:
            kind = kind_of(text, at, cut, names, kinds)
            first = before == 38
            orders += first and (kind & ORDER > 0 or is_filter(text, at, cut, names, kinds))
            page = page_number(text, cut + 1, end) if first and page == NONE and kind & PAGE else page
            year = named_year(text, at, cut, end, names, kinds) if first and year == NONE else year
            date = date or (
                first and looks_dated(text, cut + 1, end) and ends_with_kind(text, at, cut, DATE, names, kinds)
            )
            session_named = before != 47 and session == 0 and kind & SESSION
            session = session_value(text, cut + 1, end) if session_named else session
            action = action or (before != 59 and is_action(text, cut + 1, end, kind, names, kinds))
            cut = next_separator(text, cut, end)
        if cut == end:
            return orders, page, session, action, year, date
        at, before = cut + 1, text[cut]


@part
def next_separator(text, at, end):  # type: ignore[no-untyped-def]
    while at < end and text[at] not in (38, 59, 47):  # & ; /
        at += 1
    return at


@part
def is_filter(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """Whether a name is like filter[colour], as it is or escaped."""
    first = start
    while first < end and is_letter(text[first]):
        first += 1
    if first == end or not kind_of(text, start, first, names, kinds) & FILTER:
        return False
    if text[first] == 91 and text[end - 1] == 93:
        return is_word_like(text, first + 1, end - 1)
    return (
        end - first >= 6
        and text[first] == 37 and text[first + 1] == 53 and lower(text[first + 2]) == 98
        and text[end - 3] == 37 and text[end - 2] == 53 and lower(text[end - 1]) == 100
        and is_word_like(text, first + 3, end - 3)
    )  # fmt: skip


@part
def is_word_like(text, start, end):  # type: ignore[no-untyped-def]
    """Whether it consists of letters, digits and _ alone."""
    for place in range(start, end):
        if not is_letter(text[place]) and not is_digit(text[place]) and text[place] != 95:
            return False
    return start <= end


@part
def page_number(text, at, end):  # type: ignore[no-untyped-def]
    """The number that a value consists of; NONE: it is no number."""
    number, size = 0, 0
    while at < end and is_digit(text[at]) and size <= LONGEST_NUMBER:
        number = 10 * number + text[at] - 48
        at, size = at + 1, size + 1
    whole = 1 <= size <= LONGEST_NUMBER and (at == end or text[at] == 38)
    return number if whole else NONE


@part
def ends_with_kind(text, start, end, kind, names, kinds):  # type: ignore[no-untyped-def]
    """Whether a name of letters and _ ends with a word of this kind."""
    for place in range(start, end):
        if not is_letter(text[place]) and text[place] != 95:
            return False
    for first in range(max(start, end - LONGEST_SUFFIX), end):  # noqa: SIM110 - numba knows no generators
        if kind_of(text, first, end, names, kinds) & kind:
            return True
    return False


@part
def named_year(text, start, cut, end, names, kinds):  # type: ignore[no-untyped-def]
    year = year_at(text, cut + 1, end)
    if year < 0 or (cut + 5 < end and text[cut + 5] != 38):
        return NONE
    return year if ends_with_kind(text, start, cut, YEAR, names, kinds) else NONE


@part
def looks_dated(text, at, end):  # type: ignore[no-untyped-def]
    """Whether a value begins like a date."""
    return at < end and (is_digit(text[at]) or 45 <= text[at] <= 47)  # - . /


@part
def session_value(text, at, end):  # type: ignore[no-untyped-def]
    """1: long enough for a session id, 2: and it looks random."""
    size, digits, letters, escapes = 0, 0, 0, 0
    while at < end:
        byte = text[at]
        sign = byte in (95, 46, 33, 126, 45)  # _ . ! ~ -
        if not (sign or byte == 37 or is_letter(byte) or is_digit(byte)):
            break
        digits, letters, escapes = digits + is_digit(byte), letters + is_letter(byte), escapes + (byte == 37)
        at, size = at + 1, size + 1
    if size < SHORTEST_SESSION:
        return 0
    return 2 if size >= SHORTEST_RANDOM and digits > 0 and letters > 0 and escapes == 0 else 1


@part
def is_action(text, at, end, kind, names, kinds):  # type: ignore[no-untyped-def]
    if kind & ACTION:
        return True
    wanted = EDIT_VALUE if kind & EDIT else (DO_VALUE if kind & DO else 0)
    code = HASH_START
    for place in range(at, min(end, at + LONGEST_VALUE) if wanted else at):
        code = hash_byte(code, lower(text[place]))
        if kind_of_hash(code, names, kinds) & wanted:
            return True
    return False


@part
def count_pairs(text, start, end, codes):  # type: ignore[no-untyped-def]
    """How many pairs a query has, and whether one of them occurs twice."""
    count, at = 0, start
    while at < end:
        stop = find_byte(text, at, end, 38)
        if stop > at:
            codes[count] = hash_exact(text, at, stop)
            count += 1
        at = stop + 1
    return count, hash_set(codes, count)[1] or escaped_twice(text, start, end)


@part
def escaped_twice(text, start, end):  # type: ignore[no-untyped-def]
    """Whether it contains amp;amp;, an ampersand that was escaped twice."""
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
def hash_names(text, start, end, codes):  # type: ignore[no-untyped-def]
    """One hash of the set of names in a query, all numbers in them being alike."""
    count, at = 0, start
    while at <= end:
        stop = find_byte(text, at, end, 38)
        code = HASH_START
        for place in range(at, find_byte(text, at, stop, 61)):
            if not is_digit(text[place]):
                code = hash_byte(code, text[place])
            elif place == at or not is_digit(text[place - 1]):
                code = hash_byte(code, NUMBER)
        codes[count] = code
        count, at = count + 1, stop + 1
    return hash_set(codes, count)[0]


@part
def is_about_visit(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """Whether a pair only says how a page is visited, and not which: sessions, sort orders, utm_ tags."""
    cut = find_byte(text, start, end, 61)
    if cut == end:
        return False
    kind = kind_of(text, start, cut, names, kinds)
    if kind & VISIT or (kind & DIRECTION and kind_of(text, cut + 1, end, names, kinds) & WAY):
        return True
    tagged = cut - start > 4 and lower(text[start]) == 117 and lower(text[start + 1]) == 116  # utm_
    return tagged and lower(text[start + 2]) == 109 and text[start + 3] == 95 and is_word_like(text, start + 4, cut)


@part
def hash_normal_form(text, start, mark, end, names, kinds):  # type: ignore[no-untyped-def]
    """The hash of a URL without what is only about the visit, its parameters in any order; whether it is so already."""
    code, is_normal, hidden = HASH_START, True, False
    for place in range(start, mark):
        hidden = (hidden or text[place] == 59) and text[place] != 47
        is_normal = is_normal and not hidden
        if not hidden:
            code = hash_byte(code, text[place])
    total, kept, last, at = HASH_START, 0, -1, mark + 1
    while at <= end and mark < end:
        stop = find_byte(text, at, end, 38)
        if stop == at or is_about_visit(text, at, stop, names, kinds):
            is_normal = False
        else:
            total += hash_pair(hash_exact(text, at, stop), HASH_START)
            kept += 1
            is_normal = is_normal and (last < 0 or not sorts_before(text, at, stop, last, at - 1))
            last = at
        at = stop + 1
    return (hash_pair(code, total) if kept else hash_pair(code, np.uint64(0))), is_normal


@part
def sorts_before(text, start, end, other, other_end):  # type: ignore[no-untyped-def]
    """Whether one piece sorts before another."""
    while start < end and other < other_end and text[start] == text[other]:
        start, other = start + 1, other + 1
    if start == end or other == other_end:
        return start == end and other < other_end
    return text[start] < text[other]
