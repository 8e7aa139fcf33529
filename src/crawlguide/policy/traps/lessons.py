"""Whether a fetched page paid: was it new, and did it lead anywhere but further into itself?"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.columns import rank_within
from crawlguide.core.outcomes import GONE, is_success
from crawlguide.policy.traps import kernels
from crawlguide.policy.traps.novelty import GROWTH
from crawlguide.policy.traps.templates import skeleton

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I64, U8, Mask
    from crawlguide.core.types import Lesson
    from crawlguide.policy.traps import TrapMemory
    from crawlguide.policy.traps.reading import Reading

LOOKED_AT = 64  # new links of one page
WASTED = 9.0  # uses that a page of which everything was known before counts for
DOUBTFUL = 3.0  # the same of one that was on topic
NAME = "traps"


class Spread(NamedTuple):
    """The new links of a page: under words that led elsewhere before; under words of their own, to its own part of
    the host and elsewhere.
    """

    echoes: int
    inside: int
    outside: int


class Told(NamedTuple):
    """One page of a lesson: its row, the hash of its part of the host, and its new links."""

    lesson: Lesson
    row: int
    part: int
    spread: Spread


def heard(memory: TrapMemory, lesson: Lesson) -> None:
    """Every fetch of a lesson goes to the account of its template."""
    fetches = lesson.fetches
    memory.at = max(memory.at, lesson.at)
    told = list(zip(fetches.status.tolist(), fetches.error.tolist(), strict=True))
    ok = [is_success(status, error) for status, error in told]
    rows = [row for row, (status, _) in enumerate(told) if ok[row] or status in GONE]
    if not rows:
        return
    pages = memory.read(fetches.target_url.tolist())
    numbers = memory.account(pages if len(rows) == len(ok) else pages.take(rows)).tolist()
    spreads = _spread(memory, lesson, np.array(ok), pages).tolist()
    for row, number in zip(rows, numbers, strict=True):
        probed = int(fetches.id[row]) in memory.probes
        memory.probes.discard(int(fetches.id[row]))
        if ok[row]:
            page = Told(lesson, row, int(pages.here[row]), Spread(*spreads[row]))
            copied = _copied(memory, page)
            used, paid = _worth(memory, page, memory.novelty.tried(number), copied)
            memory.novelty.note(number, used, paid, copied=copied, probed=probed)
        else:  # a dead link says nothing about other hosts
            memory.novelty.note(number, 1.0, 0.0, everywhere=False, copied=True, probed=probed)


def _worth(memory: TrapMemory, page: Told, tried: bool, copied: bool) -> tuple[float, float]:
    """What a page used up and what it paid.

    A copy pays nothing. A page pays if it leads elsewhere under new words, or further inside under new words with a
    title of its own, or nowhere and is new in any way. One that leads only to new addresses under old words pays just
    what it used, if it has a title of its own and is on topic; else it is worse than nothing. A crawler that tells no
    titles has not said that pages repeat themselves, so being off topic alone shuts nothing. What only leads inside
    may be the first step into a trap, so the first page of its kind (not `tried`) pays no more either. A page that was
    found to be on topic is less of a waste, but no proof: what a trap shows may be on topic as well.
    """
    spread, titled = page.spread, _titled(memory, page)
    relevance = page.lesson.fetches.relevance[page.row]
    relevant = not relevance < 0.5  # also where nobody said
    leads = spread.outside or (spread.inside and titled and tried)
    inward = not leads and spread.echoes + spread.inside > 0
    if copied or (inward and not titled):
        return (1.0 if not inward else WASTED if copied or not relevance >= 0.5 else DOUBTFUL), 0.0
    if inward:
        return (1.0, 1 / GROWTH) if relevant or not page.lesson.title[page.row] else (2.0, 0.0)
    return 1.0, (1.0 if leads or titled or relevant else 0.0)


def _copied(memory: TrapMemory, page: Told) -> bool:
    """The same content was met under another address; where no hash was told, the same title and weight."""
    fetches, row, title = page.lesson.fetches, page.row, page.lesson.title[page.row]
    content, size = fetches.content_hash[row], fetches.bytes[row]
    if not content and (not title or np.isnan(size)):
        return False
    named = content or f"{fetches.target_host[row]} {title} {size:.0f}"
    return memory.contents.met(named, int(fetches.target_id[row]))


def _titled(memory: TrapMemory, page: Told) -> bool:
    """Its title is its own among the pages of its part of the host; unknown titles are."""
    title = skeleton(page.lesson.title[page.row])
    if not title:
        return True
    return not memory.titles.met(f"{page.part} {title}", int(page.lesson.fetches.target_id[page.row]))


def _spread(memory: TrapMemory, lesson: Lesson, ok: Mask, pages: Reading) -> I64:
    """How the new links of each page are spread, a row for each; what is known of their templates is remembered."""
    links, sightings = lesson.links, memory.words
    rows = np.flatnonzero(lesson.fresh & ok[links.parent])
    if len(rows) > LOOKED_AT:
        rows = rows[rank_within(links.parent[rows]) < LOOKED_AT]
    counts = np.zeros((len(ok), len(Spread._fields)), np.int64)
    if len(rows):
        parent, ids, refused = links.parent[rows], links.id[rows], links.reason[rows] == NAME
        found = memory.read_again(links.url[rows].tolist())
        memory.remember(ids, found)
        kernels.spread(
            parent, found.here, found.coarse, found.words, ids, pages.here, refused, lines(links.anchor[rows].tolist()),
            sightings.keys, sightings.owners, counts,
        )  # fmt: skip
    return counts


def lines(anchors: Sequence[str]) -> U8:
    """A line for each anchor. What kernels cannot tell, letters outside ASCII and their kinds, is told apart here."""
    text = "\n".join(anchors)
    if not text.isascii() or text.count("\n") >= len(anchors):
        text = "\n".join(skeleton(anchor).replace("\n", "\0") for anchor in anchors)
    return np.frombuffer(text.encode(), np.uint8)
