"""One pass over the bytes of URLs: how suspicious each one is by its form, and the hashes of its template and variants.

`explain.py` holds the same rules as patterns, in words, for one URL; a test holds that the two never differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numba
import numpy as np

from crawlguide.core.kernels import f64s, fixed_bytes, i64s, kernel, nothing, one_i64, part, u64s
from crawlguide.core.url_bytes import (
    HASH_START,
    LINE_END,
    NUMBER,
    find_byte,
    hash_byte,
    hash_exact,
    hash_pair,
    hash_skeleton,
    host_start,
    is_digit,
    is_letter,
)
from crawlguide.policy.traps.explain import AHEAD, BACK, DEEP, HIGH_PAGE, LONG, VERY_DEEP, VERY_LONG
from crawlguide.policy.traps.parameter_names import KINDS, NAMES
from crawlguide.policy.traps.url_dates import NONE, find_date, has_calendar_word
from crawlguide.policy.traps.url_queries import count_pairs, hash_names, hash_normal_form, read_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, U64

DEEPEST = 4  # segments that a template tells apart
LONGEST_WORD = 24  # letters; what is longer is no word
NO_YEAR = -1
HOST_FINE, HOST_COARSE, FINE, COARSE, NORMAL_FORM, WHOLE, IS_VARIANT, SLUG = range(8)  # rows of `codes`
CODES, BUDGETS = 8, 4
MATRIX = numba.uint64[:, ::1]
ALL, MORE, ALL_COARSELY, MORE_COARSELY = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@dataclass(frozen=True)
class UrlScan:
    """Columns with a row for each URL: its suspicion, and its hashes, one row of `codes` for each kind.

    The fine template of a URL tells apart which segments and parameters there are, and whether each is a word, a
    number or neither; the coarse one only its section: the first segment, and whether more follows.
    """

    suspicion: F64
    codes: U64

    def take(self, rows: Sequence[int]) -> UrlScan:
        places = np.array(rows, np.intp)
        return UrlScan(self.suspicion.take(places), self.codes.take(places, axis=1))

    def code(self, kind: int) -> U64:
        """The hashes of one kind: COARSE (section of any host), HOST_COARSE (section of its host), NORMAL_FORM (without
        sessions and sort orders), WHOLE (the URL itself), IS_VARIANT (1 if it is not its own normal form), SLUG (the
        words it ends with, 0 without).
        """
        found: U64 = self.codes[kind]
        return found

    @property
    def budget_keys(self) -> U64:
        """The keys of its four accounts (see `template_budgets.py`), one row each; 0 in the first for a home page."""
        found: U64 = self.codes[:BUDGETS]
        return found


def scan_urls(urls: Sequence[str], year: int | None) -> UrlScan:
    """Canonical URLs; `year` is the present one, None where nobody knows it."""
    found = UrlScan(np.empty(len(urls)), np.empty((CODES, len(urls)), np.uint64))
    lines = "\n".join(urls)
    if lines.count("\n") >= len(urls):  # clients of URLFrontier spell theirs as they like
        lines = "\n".join(url.replace("\n", "") for url in urls)
    text = np.frombuffer(lines.encode("ascii", "replace"), np.uint8)
    scan(text, NO_YEAR if year is None else year, NAMES, KINDS, found.suspicion, found.codes)
    return found


@part
def suspicion(text, start, path, mark, end, year, names, kinds, scratch):  # type: ignore[no-untyped-def]
    """How likely a URL is part of a trap, by its form; the rules are those of `explain.py`."""
    most = path_suspicion(text, path, mark, end - start, scratch)
    query = min(mark + 1, end)
    orders, page, session, action, named_year, date = read_parameters(text, query, end, names, kinds)
    if query < end or find_byte(text, path, mark, 59) < mark:  # ;
        if session == 0:
            session = read_parameters(text, path, mark, names, kinds)[2]
        pairs, twice = count_pairs(text, query, end, scratch)
        combined = 0.08 * (pairs - 1) + 0.2 * orders
        most = max(most, 0.9 if twice else min(combined, 0.85), 0.75 if session == 2 else 0.0, 0.6 if action else 0.0)
        if page > HIGH_PAGE:
            most = max(most, 0.8 if page > 100 * HIGH_PAGE else 0.55)
    for place in range(start, end):
        if is_digit(text[place]):
            return max(most, calendar_suspicion(text, path, mark, end, year, named_year, date, names, kinds))
    return most


@part
def path_suspicion(text, path, mark, length, codes):  # type: ignore[no-untyped-def]
    """Too long, too deep, or a path that comes back to itself."""
    segments, count, at = 0, 0, path + 1
    while at <= mark and segments <= VERY_DEEP:
        stop, digits = find_byte(text, at, mark, 47), 0
        for place in range(at, stop):
            digits += is_digit(text[place])
        if digits < stop - at:
            codes[count] = hash_exact(text, at, stop)
            count += 1
        segments, at = segments + 1, stop + 1
    if length > VERY_LONG or segments > VERY_DEEP:
        return 0.95
    repeated, cycles = 0, False
    for later in range(1, count):
        times = 0
        for earlier in range(later):
            same = codes[earlier] == codes[later]
            times += same
            cycles = cycles or (same and earlier > 0 and codes[earlier - 1] == codes[later - 1])
        repeated += times > 0
        cycles = cycles or times > 1
    most = 0.6 if length > LONG or segments > DEEP else 0.0
    if cycles:
        return 0.95
    return max(most, min(0.2 + 0.2 * repeated, 0.8)) if repeated else most


@part
def calendar_suspicion(text, path, mark, end, year, named_year, date, names, kinds):  # type: ignore[no-untyped-def]
    query = min(mark + 1, end)
    found = find_date(text, path, mark, False)
    found = find_date(text, query, end, False) if found == NONE else found
    found = named_year if found == NONE else found
    late = 0.9 if year != NO_YEAR and found > year + AHEAD else 0.0
    if found == NONE:
        found = find_date(text, path, mark, True)
        found = find_date(text, query, end, True) if found == NONE else found
    if found == NONE and not date:
        return 0.0
    if not (has_calendar_word(text, path, mark, names, kinds) or has_calendar_word(text, query, end, names, kinds)):
        return late
    far = year != NO_YEAR and not year - BACK <= found <= year + AHEAD
    return 0.5 if found == NONE else (0.95 if far else 0.65)


@part
def template(text, path, mark, end, scratch):  # type: ignore[no-untyped-def]
    """The hashes of a URL's fine and coarse template. The first segment counts as it is, unless it is the page."""
    stop = find_byte(text, path + 1, mark, 47)
    fine = HASH_START
    if (stop < mark or mark < end) and is_word(text, path + 1, stop):
        fine = hash_exact(text, path + 1, stop)
    elif stop > path + 1:
        fine = hash_byte(fine, segment_kind(text, path + 1, stop))
    coarse = hash_pair(fine, MORE_COARSELY if stop < mark else ALL_COARSELY)
    depth = 1
    while stop < mark and depth < DEEPEST:
        at = stop + 1
        stop, depth = find_byte(text, at, mark, 47), depth + 1
        fine = hash_byte(fine, 47)
        fine = hash_byte(fine, segment_kind(text, at, stop)) if stop > at else fine
    fine = hash_pair(fine, MORE if stop < mark else ALL)
    if mark == end:
        return fine, coarse
    return hash_pair(fine, hash_names(text, mark + 1, end, scratch)), hash_pair(coarse, HASH_START)


@part
def segment_kind(text, start, end):  # type: ignore[no-untyped-def]
    """A word, a number, or anything else."""
    if is_word(text, start, end):
        return 119  # w
    for place in range(start, end):
        if not is_digit(text[place]):
            return 42  # *
    return NUMBER


@part
def is_word(text, start, end):  # type: ignore[no-untyped-def]
    for place in range(start, end):
        if not is_letter(text[place]):
            return False
    return 0 < end - start <= LONGEST_WORD


@part
def hash_slug(text, start, end):  # type: ignore[no-untyped-def]
    """The hash of the last piece of a URL if it is two words or more ("a-long-story"), numbers being alike; else 0."""
    while end > start and text[end - 1] == 47:
        end -= 1
    at = end
    while at > start and text[at - 1] not in (47, 61, 38, 63):  # / = & ?
        at -= 1
    letters, after_word = 0, False
    for place in range(at, end):
        byte = text[place]
        if is_letter(byte):
            letters += 1
            if after_word and letters > 2:
                return hash_skeleton(text, at, end)
        else:
            after_word = letters > 2 and byte in (45, 95, 43, 46)  # - _ + .
            letters = 0
    return np.uint64(0)


@part
def hash_queue(text, start, end):  # type: ignore[no-untyped-def]
    """The hash of the politeness queue of scheme://authority (see `urls.queue`)."""
    first = host_start(text, start, end)
    last = end
    while last > first and text[last - 1] == 46:  # example.org. is example.org
        last -= 1
    last = last if last > first else end
    code = HASH_START
    for place in range(first, last):
        if text[place] != 46 or place + 1 == last or text[place + 1] != 58:  # so is example.org.:81
            code = hash_byte(code, text[place])
    return code


@kernel(nothing(fixed_bytes, one_i64, u64s, i64s, f64s, MATRIX))
def scan(text, year, names, kinds, suspicions, codes):  # type: ignore[no-untyped-def]
    """A line for each URL."""
    scratch = np.empty(len(text) + 2, np.uint64)
    start = 0
    for row in range(len(suspicions)):
        end = find_byte(text, start, len(text), LINE_END)
        mark = find_byte(text, start, end, 63)  # ?
        path = find_byte(text, min(start + 8, mark), mark, 47)
        suspicions[row] = suspicion(text, start, path, mark, end, year, names, kinds, scratch)
        fine, coarse = template(text, path, mark, end, scratch)
        host = hash_queue(text, start, path)
        home = mark == end and path + 1 >= mark
        codes[HOST_FINE, row] = np.uint64(0) if home else hash_pair(host, fine)
        codes[HOST_COARSE, row] = hash_pair(host, coarse)
        codes[FINE, row], codes[COARSE, row] = fine, coarse
        code, is_normal = hash_normal_form(text, start, mark, end, names, kinds)
        codes[NORMAL_FORM, row], codes[IS_VARIANT, row] = code, np.uint64(0 if is_normal else 1)
        codes[WHOLE, row] = code if is_normal else hash_exact(text, start, end)
        codes[SLUG, row] = hash_slug(text, start, end)
        start = end + 1
