"""What a fetched page says about its template: did it bring something new, or lead only further into itself?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.columns import rank_within
from crawlguide.core.kernels import bools, fixed_bytes, i64s, kernel, matrix_i64, nothing, one_i64, u64s
from crawlguide.core.outcomes import GONE, is_success
from crawlguide.core.url_bytes import LINE_END, find_byte, hash_pair, hash_skeleton
from crawlguide.policy.traps.duplicates import owned_by_another
from crawlguide.policy.traps.template_budgets import GROWTH
from crawlguide.policy.traps.url_scan import COARSE, HOST_COARSE, SLUG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import I64, U8, Mask
    from crawlguide.core.types import Lesson
    from crawlguide.policy.traps import TrapMemory
    from crawlguide.policy.traps.url_scan import UrlScan

NAME = "traps"
MOST_LINKS = 64  # new links of one page that are looked at
WASTED = 9.0  # pages that a page counts for of which everything was known before
DOUBTFUL = 3.0  # the same for one that was on topic
_NUMBER = re.compile(r"\d+")


class NewLinks(NamedTuple):
    """How many new links of a page have the words of an earlier link to another URL, and how many have words of their
    own and lead into the page's own section of its host, or elsewhere.
    """

    echoes: int
    inside: int
    outside: int


class FetchedPage(NamedTuple):
    """One row of a lesson, the hash of its section of its host, and its new links."""

    lesson: Lesson
    row: int
    section: int
    links: NewLinks


def record(memory: TrapMemory, lesson: Lesson) -> None:
    """Add every fetch of a lesson to the account of its template."""
    fetches = lesson.fetches
    memory.at = max(memory.at, lesson.at)
    outcomes = list(zip(fetches.status.tolist(), fetches.error.tolist(), strict=True))
    ok = [is_success(status, error) for status, error in outcomes]
    rows = [row for row, (status, _) in enumerate(outcomes) if ok[row] or status in GONE]
    if not rows:
        return
    pages = memory.scan(fetches.target_url.tolist())
    numbers = memory.accounts(pages if len(rows) == len(ok) else pages.take(rows)).tolist()
    sections, links = pages.code(HOST_COARSE), _new_links(memory, lesson, np.array(ok), pages).tolist()
    for row, number in zip(rows, numbers, strict=True):
        probed = int(fetches.id[row]) in memory.probes
        memory.probes.discard(int(fetches.id[row]))
        if ok[row]:
            page = FetchedPage(lesson, row, int(sections[row]), NewLinks(*links[row]))
            copied = _is_copy(memory, page)
            used, paid = _used_and_paid(memory, page, memory.novelty.section_tried(number), copied)
            memory.novelty.record_page(number, used, paid, copied=copied, probed=probed)
        else:  # a dead link says nothing about other hosts
            memory.novelty.record_page(number, 1.0, 0.0, everywhere=False, copied=True, probed=probed)


def _used_and_paid(memory: TrapMemory, page: FetchedPage, section_tried: bool, copied: bool) -> tuple[float, float]:
    """What a page takes from its template's budget, and what it pays into it.

    - A copy pays nothing.
    - A page pays if it links elsewhere with new words, or further inside with new words and a title of its own, or
      nowhere and is new in any way.
    - A page that only links to new URLs with old words pays just what it used, if it has a title of its own and is on
      topic; else it wastes more than one page. A crawler that reports no titles has not said that pages repeat
      themselves, so being off topic alone closes nothing.
    - What only leads inside may be the first step into a trap, so the first page of its section pays no more either.
    - A page that is on topic is less of a waste, but no proof: what a trap shows may be on topic as well.
    """
    links, own_title = page.links, _has_own_title(memory, page)
    relevance = page.lesson.fetches.relevance[page.row]
    relevant = not relevance < 0.5  # also where nobody said
    leads_on = links.outside or (links.inside and own_title and section_tried)
    inward = not leads_on and links.echoes + links.inside > 0
    if copied or (inward and not own_title):
        return (1.0 if not inward else WASTED if copied or not relevance >= 0.5 else DOUBTFUL), 0.0
    if inward:
        return (1.0, 1 / GROWTH) if relevant or not page.lesson.title[page.row] else (2.0, 0.0)
    return 1.0, (1.0 if leads_on or own_title or relevant else 0.0)


def _is_copy(memory: TrapMemory, page: FetchedPage) -> bool:
    """Another URL had the same content before; where no hash was reported, the same title and size."""
    fetches, row, title = page.lesson.fetches, page.row, page.lesson.title[page.row]
    content, size = fetches.content_hash[row], fetches.bytes[row]
    if not content and (not title or np.isnan(size)):
        return False
    identity = content or f"{fetches.target_host[row]} {title} {size:.0f}"
    return memory.contents.owned_by_another(identity, int(fetches.target_id[row]))


def _has_own_title(memory: TrapMemory, page: FetchedPage) -> bool:
    """No other page of its section had the same title; a page without a title counts as having its own."""
    title = skeleton(page.lesson.title[page.row])
    if not title:
        return True
    owner = int(page.lesson.fetches.target_id[page.row])
    return not memory.titles.owned_by_another(f"{page.section} {title}", owner)


def _new_links(memory: TrapMemory, lesson: Lesson, ok: Mask, pages: UrlScan) -> I64:
    """`NewLinks` of each page, a row for each; accounts of the links' templates are cached on the way."""
    links, texts = lesson.links, memory.link_texts
    rows = np.flatnonzero(lesson.fresh & ok[links.parent])
    if len(rows) > MOST_LINKS:
        rows = rows[rank_within(links.parent[rows]) < MOST_LINKS]
    counts = np.zeros((len(ok), len(NewLinks._fields)), np.int64)
    if len(rows):
        parent, ids, refused = links.parent[rows], links.id[rows], links.reason[rows] == NAME
        found = memory.scan_again(links.url[rows].tolist())
        memory.cache_accounts(ids, found)
        texts.expect(len(rows))
        count_links(
            parent, found.code(HOST_COARSE), found.code(COARSE), found.code(SLUG), ids, pages.code(HOST_COARSE),
            refused, anchor_lines(links.anchor[rows].tolist()), texts.keys, texts.owners, texts.slots,
            counts,
        )  # fmt: skip
    return counts


@kernel(nothing(i64s, u64s, u64s, u64s, u64s, u64s, bools, fixed_bytes, u64s, u64s, one_i64, matrix_i64))
def count_links(  # type: ignore[no-untyped-def]
    parent, link_section, section, slug, ids, page_section, refused, anchors, keys, owners, slots, counts
):
    """The words of a link are those of its URL's slug, else of its anchor. A link that was refused is an echo too."""
    start = 0
    for link in range(len(parent)):
        end = find_byte(anchors, start, len(anchors), LINE_END)
        words = slug[link] if slug[link] != 0 else hash_skeleton(anchors, start, end)
        echo = words != 0 and owned_by_another(hash_pair(section[link], words), ids[link], keys, owners, slots)
        if echo or refused[link]:
            counts[parent[link], 0] += 1
        elif link_section[link] == page_section[parent[link]]:
            counts[parent[link], 1] += 1
        else:
            counts[parent[link], 2] += 1
        start = end + 1


def skeleton(text: str) -> str:
    """A text with every number alike: the titles of two months of a calendar are one."""
    return _NUMBER.sub("#", text).strip().lower()


def anchor_lines(anchors: Sequence[str]) -> U8:
    """A line for each anchor, for `count_links`; texts that a kernel cannot bring into their skeleton come as such."""
    text = "\n".join(anchors)
    if not text.isascii() or text.count("\n") >= len(anchors):
        text = "\n".join(skeleton(anchor).replace("\n", "\0") for anchor in anchors)
    return np.frombuffer(text.encode(), np.uint8)
