"""URL templates and link words by patterns, one URL at a time: what the kernels of the traps filter must agree with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.policy.traps.evidence import skeleton
from crawlguide.policy.traps.url_scan import DEEPEST, LONGEST_WORD, scan_urls

if TYPE_CHECKING:
    from crawlguide.policy.traps.template_budgets import TemplateBudgets

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(rf"[a-zA-Z]{{1,{LONGEST_WORD}}}")
_WORDS = re.compile(r"[a-z]{3,}[-_+.][a-z]{3,}", re.IGNORECASE)
_SEPARATOR = re.compile(r"[/=&?]")


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


def link_words(url: str, anchor: str) -> str:
    """The words of a link: the slug of its URL if it has one, else its anchor; "" without either."""
    last = _SEPARATOR.split(url.rstrip("/"))[-1]
    return skeleton(last if _WORDS.search(last) else anchor)


def _first(segments: list[str], mark: str) -> str:
    """The first segment names a section of the site, unless it is the page itself."""
    return segments[0] if (len(segments) > 1 or mark) and _WORD.fullmatch(segments[0]) else _kind(segments[0])


def _kind(segment: str) -> str:
    """A number, a word, an empty end, or anything else."""
    if not segment:
        return ""
    if _WORD.fullmatch(segment):
        return "w"
    return "#" if segment.isdigit() else "*"


def account(budgets: TemplateBudgets, queue: str, url: str, suspicion: float = 0.0) -> int:
    """The account of one URL's template on a host."""
    found = scan_urls([f"https://{queue}{url[url.index('/', 8) :]}"], None)
    return int(budgets.numbers(found.budget_keys, np.array([suspicion]))[0])
