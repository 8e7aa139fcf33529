"""Which URLs are made alike: the template of a URL, and its bare form without what only says how it is visited."""

from __future__ import annotations

import re
from typing import NamedTuple

DEEPEST = 4  # segments that a template tells apart
LONGEST_WORD = 24  # letters
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(rf"[a-zA-Z]{{1,{LONGEST_WORD}}}")
_VISIT = re.compile(
    r"(?:(?:php|j|asp|cf|os?)?sess(?:ion)?[_-]?(?:id|key|token)?|sid|cfid|cftoken|zenid|oscsid|s_id"
    r"|sort|sort_?by|sort_?order|order_?by|utm_\w+)=.*|(?:order|dir|direction)=(?:asc|desc|up|down|[ad])",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[a-z]{3,}[-_+.][a-z]{3,}", re.IGNORECASE)
_SEAM = re.compile(r"[/=&?]")
_IN_PATH = re.compile(r";[^/]*")


class Template(NamedTuple):
    """Two grains: `fine` tells apart which segments and parameters there are, `coarse` only where a URL begins."""

    fine: str
    coarse: str


def template(url: str) -> Template:
    """The template of a canonical URL, without its host."""
    address, mark, query = url.partition("?")
    segments = address.split("/")[3:]
    first = _first(segments, mark)
    kinds = [_kind(segment) for segment in segments[1:DEEPEST]]
    tail = "/…" if len(segments) > DEEPEST else ""
    names = sorted({_NUMBER.sub("#", pair.partition("=")[0]) for pair in query.split("&")}) if mark else []
    fine = "/".join(["", first, *kinds]) + tail + (mark and "?" + "&".join(names))
    return Template(fine, f"/{first}{'/…' if kinds else ''}{mark}")


def _first(segments: list[str], mark: str) -> str:
    """The first segment names a part of the site, unless it is the page itself."""
    return segments[0] if (len(segments) > 1 or mark) and _WORD.fullmatch(segments[0]) else _kind(segments[0])


def _kind(segment: str) -> str:
    """A number, a word, an empty end, or anything else."""
    if not segment:
        return ""
    if _WORD.fullmatch(segment):
        return "w"
    return "#" if segment.isdigit() else "*"


def bare(url: str) -> str:
    """A URL without sessions and orders, its parameters sorted: two URLs with one bare form show the same page."""
    if "?" not in url and ";" not in url:
        return url
    address, _, query = url.partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    kept = sorted(pair for pair in pairs if not _VISIT.fullmatch(pair))
    plain = _IN_PATH.sub("", address) if ";" in address else address
    return f"{plain}?{'&'.join(kept)}" if kept else plain


def skeleton(text: str) -> str:
    """Words without their numbers: the titles of two months of a calendar are one."""
    return _NUMBER.sub("#", text).strip().lower()


def said(url: str, anchor: str) -> str:
    """The words under which a link stands: those of its address, if that speaks in words, else those of its anchor.

    "" where nobody says anything.
    """
    last = _SEAM.split(url.rstrip("/"))[-1]
    return skeleton(last if _WORDS.search(last) else anchor)
