"""Whether a fetched page paid: was it new, and did it lead anywhere but further into itself?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.policy.traps.novelty import GROWTH
from crawlguide.policy.traps.templates import said, skeleton, template

if TYPE_CHECKING:
    from crawlguide.core.types import Lesson
    from crawlguide.policy.traps import Memory

LOOKED_AT = 64  # new links of one page
GONE = frozenset((404, 410))
ON_ITS_HOST = 2  # levels of an account
WASTED = 6.0  # uses that a page of which everything was known before counts for
NAME = "traps"


class Spread(NamedTuple):
    """The new links of a page: under words that led elsewhere before; under words of their own, to its own part of
    the host and elsewhere.
    """

    echoes: int
    inside: int
    outside: int


def heard(memory: Memory, lesson: Lesson) -> None:
    """Every fetch of a lesson goes to the account of its template."""
    fetches = lesson.fetches
    memory.at = max(memory.at, lesson.at)
    ok = (fetches.status >= 200) & (fetches.status < 300) & (fetches.error == "")
    for row, (status, good) in enumerate(zip(fetches.status.tolist(), ok.tolist(), strict=True)):
        if good or status in GONE:
            number = memory.number(fetches.target_host[row], fetches.target_url[row])
            if good:
                memory.novelty.note(number, *_worth(memory, lesson, row, memory.novelty.tried(number)))
            else:  # a dead link says nothing about other hosts
                memory.novelty.note(number, 1.0, 0.0, ON_ITS_HOST)


def _worth(memory: Memory, lesson: Lesson, row: int, tried: bool) -> tuple[float, float]:
    """What a page used up and what it paid.

    A copy pays nothing. A page pays if it leads elsewhere under new words, or further inside under new words with a
    title of its own, or nowhere and is new in any way. One that leads only to new addresses under old words pays just
    what it used, if it has a title of its own and is on topic; else it is worse than nothing. What only leads inside
    may be the first step into a trap, so the first page of its kind (not `tried`) pays no more either.
    """
    spread, copied, titled = _spread(memory, lesson, row), _copied(memory, lesson, row), _titled(memory, lesson, row)
    relevant = not lesson.fetches.relevance[row] < 0.5  # also where nobody said
    leads = spread.outside or (spread.inside and titled and tried)
    inward = not leads and spread.echoes + spread.inside > 0
    if copied or (inward and not titled):
        return (WASTED if inward else 1.0), 0.0
    if inward:
        return (1.0, 1 / GROWTH) if relevant else (2.0, 0.0)
    return 1.0, (1.0 if leads or titled or relevant else 0.0)


def _copied(memory: Memory, lesson: Lesson, row: int) -> bool:
    """The same content was met under another address; where no hash was told, the same title and weight."""
    fetches, title = lesson.fetches, lesson.title[row]
    content, size = fetches.content_hash[row], fetches.bytes[row]
    if not content and (not title or np.isnan(size)):
        return False
    named = content or f"{fetches.target_host[row]} {title} {size:.0f}"
    return memory.contents.met(named, int(fetches.target_id[row]))


def _titled(memory: Memory, lesson: Lesson, row: int) -> bool:
    """Its title is its own among the pages of its part of the host; unknown titles are."""
    fetches, title = lesson.fetches, skeleton(lesson.title[row])
    if not title:
        return True
    part = template(fetches.target_url[row]).coarse
    return not memory.titles.met(f"{fetches.target_host[row]}{part} {title}", int(fetches.target_id[row]))


def _spread(memory: Memory, lesson: Lesson, row: int) -> Spread:
    links, host = lesson.links, lesson.fetches.target_host[row]
    own = template(lesson.fetches.target_url[row]).coarse
    echoes = inside = outside = 0
    for link in np.flatnonzero(lesson.fresh & (links.parent == row))[:LOOKED_AT].tolist():
        url = links.url[link]
        part, words = template(url).coarse, said(url, links.anchor[link])
        met = words and memory.words.met(f"{part} {words}", int(links.id[link]))
        if met or links.reason[link] == NAME:
            echoes += 1
        elif part == own and links.host[link] == host:
            inside += 1
        else:
            outside += 1
    return Spread(echoes, inside, outside)
