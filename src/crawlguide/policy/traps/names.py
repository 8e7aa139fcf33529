"""Names that mean something in a URL, as hashes for kernels to look up; what a name may stand for is a set of bits."""

from __future__ import annotations

from itertools import product

import numpy as np

from crawlguide.core.url_bytes import EMPTY, FACTOR

SESSION, VISIT, ORDER, FILTER, PAGE = 1, 2, 4, 8, 16
ACTION, EDIT, DO = 32, 64, 128  # does something to a page: by itself, with a value of EDITS, with one of DOES
EDITS, DOES, DIRECTION, WAY = 256, 512, 1024, 2048  # a name that is an order if its value is a WAY
CALENDAR, CALENDARS, YEAR, DATE = 4096, 8192, 16384, 32768

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
    EDITS: "edit history raw delete login",
    DOES: "edit diff login",
    DIRECTION: "order dir direction",
    WAY: "asc desc up down a d",
    CALENDAR: "cal agenda ical month week day",
    CALENDARS: "calend kalend",
    YEAR: "year yr",
    DATE: "date day month week",
}


def _sessions(before: list[str]) -> list[str]:
    return [
        "".join(parts) for parts in product(before, ["sess", "session"], ["", "_", "-"], ["", "id", "key", "token"])
    ]


def hashed(text: str) -> int:
    """As `letters.lowered` does it."""
    code = int(EMPTY)
    for byte in text.encode():
        code = (code ^ byte) * int(FACTOR) & 0xFFFF_FFFF_FFFF_FFFF
    return code


def _table() -> dict[int, int]:
    kinds: dict[int, int] = {}
    named = [(kind, word) for kind, words in _WORDS.items() for word in words.split()]
    named += [(SESSION, word) for word in _sessions(["", "php", "j", "asp", "cf", "s", "os"])]
    named += [(VISIT, word) for word in _sessions(["", "php", "j", "asp", "cf", "o", "os"])]
    for kind, word in named:
        kinds[hashed(word)] = kinds.get(hashed(word), 0) | kind
    return dict(sorted(kinds.items()))


NAMES = np.array(list(_table()), np.uint64)  # in order
KINDS = np.array(list(_table().values()), np.int64)
