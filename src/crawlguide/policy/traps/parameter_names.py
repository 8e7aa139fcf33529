"""Words with a meaning in URLs, as hashes that kernels look up: parameters of sessions, sort orders, pages, calendars.

One word may be of several kinds, so its kinds are a set of bits.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from crawlguide.core.kernels import part
from crawlguide.core.url_bytes import HASH_FACTOR, HASH_START, hash_lower

SESSION, VISIT, ORDER, FILTER, PAGE = 1, 2, 4, 8, 16
ACTION, EDIT, DO = 32, 64, 128  # an action: by itself, with an EDIT_VALUE, with a DO_VALUE
EDIT_VALUE, DO_VALUE, DIRECTION, WAY = 256, 512, 1024, 2048  # a DIRECTION is a sort order if its value is a WAY
CALENDAR, CALENDAR_STEM, YEAR, DATE = 4096, 8192, 16384, 32768

_SESSIONS = "sid cfid cftoken zenid oscsid s_id"
_WORDS = {
    SESSION: _SESSIONS,
    VISIT: _SESSIONS + " sort sortby sort_by sortorder sort_order orderby order_by",
    ORDER: "sort sortby sort_by sortorder sort_order order orderby order_by dir direction view viewas view_as display"
    " layout mode perpage per_page pagesize page_size limit filter filters",
    FILTER: "filter filters",
    PAGE: "page paged p pg offset start skip from cursor",
    ACTION: "oldid diff replytocom share add-to-cart returnto redirect redirect_to redirect_url printable",
    EDIT: "action",
    DO: "do",
    EDIT_VALUE: "edit history raw delete login",
    DO_VALUE: "edit diff login",
    DIRECTION: "order dir direction",
    WAY: "asc desc up down a d",
    CALENDAR: "cal agenda ical month week day",
    CALENDAR_STEM: "calend kalend",
    YEAR: "year yr",
    DATE: "date day month week",
}


def _session_names(prefixes: list[str]) -> list[str]:
    return [
        "".join(parts) for parts in product(prefixes, ["sess", "session"], ["", "_", "-"], ["", "id", "key", "token"])
    ]


def _hashed(word: str) -> int:
    """As `hash_lower` does it in kernels."""
    code = int(HASH_START)
    for byte in word.encode():
        code = (code ^ byte) * int(HASH_FACTOR) & 0xFFFF_FFFF_FFFF_FFFF
    return code


def _table() -> dict[int, int]:
    kinds: dict[int, int] = {}
    known = [(kind, word) for kind, words in _WORDS.items() for word in words.split()]
    known += [(SESSION, word) for word in _session_names(["", "php", "j", "asp", "cf", "s", "os"])]
    known += [(VISIT, word) for word in _session_names(["", "php", "j", "asp", "cf", "o", "os"])]
    for kind, word in known:
        kinds[_hashed(word)] = kinds.get(_hashed(word), 0) | kind
    return dict(sorted(kinds.items()))


NAMES = np.array(list(_table()), np.uint64)  # hashes, sorted
KINDS = np.array(list(_table().values()), np.int64)


@part
def kind_of(text, start, end, names, kinds):  # type: ignore[no-untyped-def]
    """The kinds of the word text[start:end]; 0: it means nothing."""
    return kind_of_hash(hash_lower(text, start, end), names, kinds)


@part
def kind_of_hash(code, names, kinds):  # type: ignore[no-untyped-def]
    first, last = 0, len(names)
    while first < last:
        middle = (first + last) // 2
        if names[middle] < code:
            first = middle + 1
        else:
            last = middle
    return kinds[first] if first < len(names) and names[first] == code else 0
