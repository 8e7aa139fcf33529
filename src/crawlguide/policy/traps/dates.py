"""Dates in a URL, for kernels: what `shape.py` finds by patterns."""

from crawlguide.core.kernels import part
from crawlguide.core.url_bytes import EMPTY, alpha, digit, kind_of_hash, lower, stepped
from crawlguide.policy.traps.names import CALENDAR, CALENDARS

NONE = -1
LONGEST = 6  # letters of `calend` and `kalend`


@part
def ended(text, at, end):  # type: ignore[no-untyped-def]
    """Is this the end of a piece, or of all?"""
    return at == end or text[at] == 47 or text[at] == 38  # / &


@part
def year_at(text, at, end):  # type: ignore[no-untyped-def]
    """The number that four digits make; NONE if they are not there."""
    if at + 4 > end:
        return NONE
    year = 0
    for place in range(at, at + 4):
        if not digit(text[place]):
            return NONE
        year = 10 * year + text[place] - 48
    return year


@part
def month_of_two(text, at):  # type: ignore[no-untyped-def]
    return (text[at] == 48 and 49 <= text[at + 1] <= 57) or (text[at] == 49 and 48 <= text[at + 1] <= 50)


@part
def month_after(text, at, end):  # type: ignore[no-untyped-def]
    """After a year: -04, /4, .04.12 and the like, and nothing more."""
    if at + 2 > end:
        return False
    sign = text[at]
    if sign not in (45, 47, 95, 46):  # - / _ .
        return False
    if 49 <= text[at + 1] <= 57 and day_after(text, at + 2, end, sign):
        return True
    return at + 3 <= end and month_of_two(text, at + 1) and day_after(text, at + 3, end, sign)


@part
def day_after(text, at, end, sign):  # type: ignore[no-untyped-def]
    """After a month: nothing, or the same sign and a day of one or two digits."""
    if ended(text, at, end):
        return True
    if at + 1 >= end or text[at] != sign or not digit(text[at + 1]):
        return False
    return ended(text, at + 2, end) or (digit(text[at + 2]) and ended(text, at + 3, end))


@part
def short_after(text, at, end):  # type: ignore[no-untyped-def]
    """After a year: 04 or 0412."""
    if at + 2 > end or not month_of_two(text, at):
        return False
    if ended(text, at + 2, end):
        return True
    return at + 4 <= end and 48 <= text[at + 2] <= 51 and digit(text[at + 3]) and ended(text, at + 4, end)


@part
def dated(text, start, end, short):  # type: ignore[no-untyped-def]
    """The year of the first date that stands after / or = or at the start; NONE: there is no date."""
    for place in range(start, end - 5):
        if digit(text[place]) and (place == start or text[place - 1] == 47 or text[place - 1] == 61):
            year = year_at(text, place, end)
            if year >= 0 and (short_after(text, place + 4, end) if short else month_after(text, place + 4, end)):
                return year
    return NONE


@part
def seam(byte):  # type: ignore[no-untyped-def]
    return byte in (47, 95, 46, 63, 38, 61)  # / _ . ? & =


@part
def speaks_of_calendar(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """Is one of the words between seams that of a calendar?"""
    code, size, letters, begins = EMPTY, 0, True, False
    for place in range(start, end + 1):
        if place == end or seam(text[place]):
            if size > 0 and letters and (begins or kind_of_hash(code, names, kinds) & CALENDAR):
                return True
            code, size, letters, begins = EMPTY, 0, True, False
            continue
        letters = letters and alpha(text[place])
        code = stepped(code, lower(text[place]))
        size += 1
        if size == LONGEST and letters:
            begins = kind_of_hash(code, names, kinds) & CALENDARS > 0
    return False
