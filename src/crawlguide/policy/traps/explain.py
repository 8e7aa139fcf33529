"""Why the form of one canonical URL looks like a trap, in words for people.

These are the rules that `url_scan.py` applies to whole columns, written as patterns; most URLs meet none of them.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

LONG, VERY_LONG = 500, 1_500  # characters
DEEP, VERY_DEEP = 12, 25  # segments
AHEAD, BACK = 2, 25  # years within which a calendar is not surprising
HIGH_PAGE = 1_000

_MONTH = re.compile(r"(?:^|[/=])(\d{4})([-/_.])(?:0?[1-9]|1[0-2])(?:\2\d\d?)?(?=$|[/&])")
_SHORT = re.compile(r"(?:^|[/=])(\d{4})(?:0[1-9]|1[0-2])(?:[0-3]\d)?(?=$|[/&])")
_YEAR = re.compile(r"(?:^|&)[a-z_]*(?:year|yr)=(\d{4})(?=&|$)", re.IGNORECASE)
_DATED = re.compile(r"(?:^|&)[a-z_]*(?:date|day|month|week)=[-\d/.]+", re.IGNORECASE)
_CALENDAR = re.compile(
    r"(?:^|[/_.?&=])(?:calend[a-z]*|kalend[a-z]*|cal|agenda|ical|month|week|day)(?=$|[/_.?&=])", re.IGNORECASE
)
_SESSION_NAME = re.compile(
    r"(?:^|[;&])(?:(?:php|j|asp|cf|o?s)?(?:sess(?:ion)?)[_-]?(?:id|key|token)?|sid|cfid|cftoken|zenid|oscsid|s_id)="
    r"([\w.!%~-]{8,})",
    re.IGNORECASE,
)
_RANDOM = re.compile(r"(?=.*\d)(?=.*[a-z])[0-9a-z._!~-]{12,}", re.IGNORECASE)
_ORDER = re.compile(
    r"(?:^|&)(?:sort|sort_?by|sort_?order|order|order_?by|dir|direction|view|view_?as|display|layout|mode|per_?page"
    r"|page_?size|limit|filters?(?:\[\w*\]|%5b\w*%5d)?)=",
    re.IGNORECASE,
)
_PAGE = re.compile(r"(?:^|&)(?:page|paged|p|pg|offset|start|skip|from|cursor)=(\d{1,15})(?:&|$)", re.IGNORECASE)
_VISIT = re.compile(
    r"(?:(?:php|j|asp|cf|os?)?sess(?:ion)?[_-]?(?:id|key|token)?|sid|cfid|cftoken|zenid|oscsid|s_id"
    r"|sort|sort_?by|sort_?order|order_?by|utm_\w+)=.*|(?:order|dir|direction)=(?:asc|desc|up|down|[ad])",
    re.IGNORECASE,
)
_IN_PATH = re.compile(r";[^/]*")
_ACTION = re.compile(
    r"(?:^|[/&])(?:action=(?:edit|history|raw|delete|login)|do=(?:edit|diff|login)|oldid=|diff=|replytocom=|share="
    r"|add-to-cart=|returnto=|redirect(?:_to|_url)?=|printable=)",
    re.IGNORECASE,
)


class Suspicion(NamedTuple):
    """How likely a URL is part of a trap, from 0 to 1, and why in words."""

    probability: float
    why: str = ""


NONE = Suspicion(0.0)


def suspicion(url: str, year: int | None = None) -> Suspicion:
    """The strongest suspicion; `year` is the present one, None where nobody knows it."""
    address, _, query = url.partition("?")
    path = address[address.index("/", 8) :]
    segments = path.split("/")[1:]
    found = [size(url, segments)]
    if len(set(segments)) < len(segments):
        found.append(repeats(segments))
    if any(map(str.isdigit, url)):
        found.append(calendar(path, query, year))
    if query or ";" in path:
        found += [session(path, query), parameters(query), pages(query), actions(query)]
    return max(found)


def size(url: str, segments: list[str]) -> Suspicion:
    """Very long or very deep."""
    if len(url) > VERY_LONG or len(segments) > VERY_DEEP:
        return Suspicion(0.95, f"it has {len(url)} characters and {len(segments)} segments")
    if len(url) > LONG or len(segments) > DEEP:
        return Suspicion(0.6, f"it has {len(url)} characters and {len(segments)} segments")
    return NONE


def repeats(segments: list[str]) -> Suspicion:
    """A path that repeats itself: relative links make it longer at every step."""
    named = [one for one in segments if one and not one.isdigit()]
    if len(set(named)) == len(named):
        return NONE
    (most, times), *_ = Counter(named).most_common(1)
    if times > 2:
        return Suspicion(0.95, f"{most[:40]!r} stands {times} times in its path")
    if _again(named):
        return Suspicion(0.95, "several segments of its path repeat in their order")
    twice = len(named) - len(set(named))
    return Suspicion(min(0.2 + 0.2 * twice, 0.8), f"{most[:40]!r} stands twice in its path")


def _again(named: list[str]) -> bool:
    """Two or more segments, and the same once more later on: a/b/…/a/b."""
    pairs = list(pairwise(named))
    return len(set(pairs)) < len(pairs)


def calendar(path: str, query: str, year: int | None) -> Suspicion:
    """Calendars have pages without end; those far from now are empty."""
    words = _CALENDAR.search(path) or _CALENDAR.search(query)
    found = _MONTH.search(path) or _MONTH.search(query) or _YEAR.search(query)
    if words and not found:
        found = _SHORT.search(path) or _SHORT.search(query)
    if not found:
        return Suspicion(0.5, "it turns the pages of a calendar") if words and _DATED.search(query) else NONE
    named = int(found[1])
    if words:
        far = year is not None and not year - BACK <= named <= year + AHEAD
        return Suspicion(0.95 if far else 0.65, f"it is a page of a calendar, {named}")
    return Suspicion(0.9, f"it is dated {named}") if year is not None and year + AHEAD < named else NONE


def session(path: str, query: str) -> Suspicion:
    """A session id: the same page has another URL at every visit."""
    found = _SESSION_NAME.search(query) or _SESSION_NAME.search(path)
    if found and _RANDOM.fullmatch(found[1]):
        return Suspicion(0.75, "it carries the name of a session")
    return NONE


def parameters(query: str) -> Suspicion:
    """Filters and sort orders, which can be combined at will; and parameters that are repeated."""
    pairs = [pair for pair in query.split("&") if pair]
    if len(set(pairs)) < len(pairs) or "amp;amp;" in query:
        return Suspicion(0.9, "its query says the same twice")
    orders = len(_ORDER.findall(query))
    more = 0.08 * (len(pairs) - 1) + 0.2 * orders
    return Suspicion(min(more, 0.85), f"it combines {len(pairs)} parameters") if more > 0 else NONE


def pages(query: str) -> Suspicion:
    """Page numbers that grow without bound."""
    found = _PAGE.search(query)
    if not found or int(found[1]) <= HIGH_PAGE:
        return NONE
    return Suspicion(0.8 if int(found[1]) > 100 * HIGH_PAGE else 0.55, f"it counts to {found[1]}")


def actions(query: str) -> Suspicion:
    """Actions on a page (edit, share, log in), of which there is one for every page."""
    return Suspicion(0.6, "it does something to a page") if _ACTION.search(query) else NONE


def normal_form(url: str) -> str:
    """A URL without sessions and sort orders, its parameters sorted: URLs with one normal form show the same page."""
    if "?" not in url and ";" not in url:
        return url
    address, _, query = url.partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    kept = sorted(pair for pair in pairs if not _VISIT.fullmatch(pair))
    plain = _IN_PATH.sub("", address) if ";" in address else address
    return f"{plain}?{'&'.join(kept)}" if kept else plain
