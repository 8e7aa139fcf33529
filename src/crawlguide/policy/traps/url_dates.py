"""Parts of the URL scan that find dates and words of calendars."""

from crawlguide.core.kernels import part
from crawlguide.core.url_bytes import HASH_START, hash_byte, is_digit, is_letter, lower
from crawlguide.policy.traps.parameter_names import CALENDAR, CALENDAR_STEM, kind_of_hash

NONE = -1
STEM_LETTERS = 6  # of `calend` and `kalend`


@part
def at_end(text, at, end):  # type: ignore[no-untyped-def]
    """Whether a value or a segment ends here."""
    return at == end or text[at] == 47 or text[at] == 38  # / &


@part
def year_at(text, at, end):  # type: ignore[no-untyped-def]
    """The year that four digits name; NONE if they are not there."""
    if at + 4 > end:
        return NONE
    year = 0
    for place in range(at, at + 4):
        if not is_digit(text[place]):
            return NONE
        year = 10 * year + text[place] - 48
    return year


@part
def is_two_digit_month(text, at):  # type: ignore[no-untyped-def]
    return (text[at] == 48 and 49 <= text[at + 1] <= 57) or (text[at] == 49 and 48 <= text[at + 1] <= 50)


@part
def month_follows(text, at, end):  # type: ignore[no-untyped-def]
    """After a year: -04, /4, .04.12 and the like, and nothing more."""
    if at + 2 > end:
        return False
    sign = text[at]
    if sign not in (45, 47, 95, 46):  # - / _ .
        return False
    if 49 <= text[at + 1] <= 57 and day_or_end_follows(text, at + 2, end, sign):
        return True
    return at + 3 <= end and is_two_digit_month(text, at + 1) and day_or_end_follows(text, at + 3, end, sign)


@part
def day_or_end_follows(text, at, end, sign):  # type: ignore[no-untyped-def]
    """After a month: nothing, or the same sign and a day of one or two digits."""
    if at_end(text, at, end):
        return True
    if at + 1 >= end or text[at] != sign or not is_digit(text[at + 1]):
        return False
    return at_end(text, at + 2, end) or (is_digit(text[at + 2]) and at_end(text, at + 3, end))


@part
def digits_follow(text, at, end):  # type: ignore[no-untyped-def]
    """After a year: 04 or 0412, and nothing more."""
    if at + 2 > end or not is_two_digit_month(text, at):
        return False
    if at_end(text, at + 2, end):
        return True
    return at + 4 <= end and 48 <= text[at + 2] <= 51 and is_digit(text[at + 3]) and at_end(text, at + 4, end)


@part
def find_date(text, start, end, short):  # type: ignore[no-untyped-def]
    """The year of the first date after "/" or "=" or at the start; NONE without. `short`: 204104, else 2041-04."""
    for place in range(start, end - 5):
        if is_digit(text[place]) and (place == start or text[place - 1] == 47 or text[place - 1] == 61):
            year = year_at(text, place, end)
            if year >= 0 and (digits_follow(text, place + 4, end) if short else month_follows(text, place + 4, end)):
                return year
    return NONE


@part
def is_separator(byte):  # type: ignore[no-untyped-def]
    return byte in (47, 95, 46, 63, 38, 61)  # / _ . ? & =


@part
def has_calendar_word(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """Whether one of the words between separators is one of a calendar."""
    code, size, letters, has_stem = HASH_START, 0, True, False
    for place in range(start, end + 1):
        if place == end or is_separator(text[place]):
            if size > 0 and letters and (has_stem or kind_of_hash(code, names, kinds) & CALENDAR):
                return True
            code, size, letters, has_stem = HASH_START, 0, True, False
            continue
        letters = letters and is_letter(text[place])
        code = hash_byte(code, lower(text[place]))
        size += 1
        if size == STEM_LETTERS and letters:
            has_stem = kind_of_hash(code, names, kinds) & CALENDAR_STEM > 0
    return False
