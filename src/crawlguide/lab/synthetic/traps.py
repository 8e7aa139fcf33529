"""Spider traps: pages without end, made when they are fetched.

calendar   /calendar/2026/11        a month leads to the next and the one before, for ever
session    /view/17?sid=…           the same pages again, each visit under new addresses
path       /browse/by/name/by/…     relative links that make the path longer
filter     /list?colour=red&size=m  the same list under every order of its filters
"""

from __future__ import annotations

import re
from typing import NamedTuple

import xxhash

from crawlguide.lab.synthetic.texts import generator

KINDS = ("calendar", "session", "path", "filter")
STEPS = ("by", "name", "all", "more", "sort", "next")
FILTERS = {
    "colour": ("red", "green", "blue", "white"),
    "size": ("s", "m", "l", "xl"),
    "sort": ("price", "name", "new", "rating"),
    "view": ("grid", "list", "table", "cards"),
    "brand": ("acorn", "birch", "cedar", "dogwood"),
}
DEEPEST = 400  # segments, which keeps a URL below what any crawler accepts
_CALENDAR = re.compile(r"/calendar/(\d{4})/(\d\d)")
_SESSION = re.compile(r"/view/(\d+)")
_SID = re.compile(r"sid=[0-9a-f]{16}")
_PATH = re.compile(rf"/browse(?:/(?:{'|'.join(STEPS)}))+")


class TrapLink(NamedTuple):
    """A link of a trap, relative to its host."""

    path: str
    anchor: str


def entrance(kind: int, row: int) -> TrapLink:
    """The link that leads into a trap from page `row`."""
    return (
        TrapLink("/calendar/2026/11", "calendar"),
        TrapLink(f"/view/{row}?sid={_session(row)}", "continue reading"),
        TrapLink("/browse/by/name", "browse"),
        TrapLink("/list?colour=red", "all products"),
    )[kind]


def kind_of(path: str, query: str) -> int:
    """Which trap this belongs to, or -1."""
    is_of_kind = (
        _CALENDAR.fullmatch(path) and not query,
        _SESSION.fullmatch(path) and _SID.fullmatch(query),
        _PATH.fullmatch(path) and not query and path.count("/") <= DEEPEST,
        path == "/list" and _filters(query),
    )
    return next((kind for kind, is_this in enumerate(is_of_kind) if is_this), -1)


def links(kind: int, path: str, query: str) -> list[TrapLink]:
    """The links of a page in a trap."""
    return (_months, _sessions, _paths, _lists)[kind](path, query)


def repeated_page(kind: int, path: str) -> int:
    """The page whose text a session shows again; -1 for traps with texts of their own."""
    session = _SESSION.fullmatch(path) if KINDS[kind] == "session" else None
    return int(session[1]) if session else -1


def _session(*names: object) -> str:
    return str(xxhash.xxh3_64_hexdigest("/".join(map(str, names)).encode()))


def _months(path: str, _: str) -> list[TrapLink]:
    year, month = (int(part) for part in path.split("/")[2:])
    count = 12 * year + month - 1
    steps = {"previous month": -1, "next month": 1, "next year": 12}
    months = [(*divmod(count + step, 12), anchor) for anchor, step in steps.items()]
    return [TrapLink(f"/calendar/{y:04}/{m + 1:02}", anchor) for y, m, anchor in months if 0 < y <= 9_999]


def _sessions(path: str, query: str) -> list[TrapLink]:
    row = int(path.rpartition("/")[2])
    return [TrapLink(f"/view/{row}?sid={_session(query, step)}", f"part {step + 1}") for step in range(6)]


def _paths(path: str, _: str) -> list[TrapLink]:
    return [TrapLink(f"{path}/{step}", step) for step in STEPS] if path.count("/") < DEEPEST else []


def _lists(_: str, query: str) -> list[TrapLink]:
    """One filter more in all its values, and the ones there are in another order."""
    chosen = query.split("&")
    missing = [name for name in FILTERS if not any(part.startswith(name + "=") for part in chosen)]
    more = [f"{query}&{missing[0]}={value}" for value in FILTERS[missing[0]]] if missing else []
    mixed = generator(query).sample(chosen, len(chosen))
    return [
        TrapLink("/list?" + to, to.rpartition("=")[2]) for to in dict.fromkeys([*more, "&".join(mixed)]) if to != query
    ]


def _filters(query: str) -> bool:
    pairs = [part.partition("=")[::2] for part in query.split("&")]
    return len({name for name, _ in pairs}) == len(pairs) and all(
        value in FILTERS.get(name, ()) for name, value in pairs
    )
