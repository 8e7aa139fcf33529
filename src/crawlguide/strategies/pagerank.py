"""PageRank over the links found so far, brought up to date a little with every lesson; the largest first.

    rank(u) = 0.15 + 0.85 · Σ rank(p) / links(p)   over the fetched pages p that link to u

That is n times the usual PageRank of a web whose unfetched pages have no links. A page passes its rank on when it is
fetched. What reaches it later is owed to its links, and paid page after page: with each lesson six times as many links
as the lesson has. The ranks are exact when nothing is owed. value = rank / (rank + 1), ties at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.definition import CLASSIC, Fixed
from crawlguide.core.kernels import i32s, i64s, kernel, nothing, one_i64, part, records
from crawlguide.core.notebook import Notebook
from crawlguide.strategies.shared.composition import Composition, Top
from crawlguide.strategies.shared.draws import TIE, fixed_by_id
from crawlguide.strategies.shared.learning import RecordTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.definition import Goal
    from crawlguide.core.protocols import Strategy
    from crawlguide.core.tables import F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson

URL = np.dtype(
    [
        ("id", np.uint64),
        ("rank", np.float64),
        ("rested", np.float64),  # its rank when its priority was written last
        ("owed", np.float64),  # the part of its rank that its links have not received yet
        ("first", np.int64),  # where its links begin in the sheet of links
        ("links", np.int32),  # 0: not fetched, or without links
        ("fetched", np.int32),
    ],
    align=True,
)
TURN = np.dtype([("page", np.int64)])
URLS, TURNS = records(URL), records(TURN)
FOLLOWED = 0.85
PAID_PER_LINK = 6  # links that are paid what they are owed, for each link of a lesson
MOST_LINKS = 10_000  # of a page
VISITED = 4_096  # pages that one lesson looks at
LITTLE = 0.05  # a page that owes less than this share of its rank is passed over
MOVED = 1.05  # a URL whose rank grew by this factor is ranked again


class Options(Fixed, frozen=True):
    kind: str = "pagerank"


def build(options: Options, seed: int, goal: Goal) -> Strategy:
    return Composition(Top(), PageRank(seed), CLASSIC)


class PageRank:
    version = "pagerank-1"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._urls = RecordTable(notebook.sheet("pr-urls", URL))
        self._links = notebook.sheet("pr-links", np.dtype(np.int32))  # rows that pages link to, page after page
        self._pages = notebook.sheet("pr-pages", np.dtype(np.int32))  # rows of pages that link anywhere
        self._turn = notebook.sheet("pr-turn", TURN)  # whose turn it is to pass on
        self._turn.fit(1)

    def predict(self, batch: Batch) -> F64:
        """A URL without a record has the rank of one to which no page links."""
        rank = self._urls.column("rank", batch.id, 1.0 - FOLLOWED)
        rank *= 1.0 + TIE * fixed_by_id(batch.id, self._seed)
        value: F64 = rank / (rank + 1.0)
        return value

    def assigned(self, batch: Batch, ask: Ask) -> None:
        """Rank moves when a page was fetched, not before."""

    def learn(self, lesson: Lesson) -> U64:
        pages, new_pages = self._urls.claim(lesson.fetches.id)
        rows, new_rows = self._urls.claim(lesson.links.id)
        self._urls.records["rank"][np.concatenate([pages[new_pages], rows[new_rows]])] = 1.0 - FOLLOWED
        begin = self._linked(pages, rows, lesson.links.parent)
        ids = self._paid(begin, PAID_PER_LINK * len(rows))
        self._urls.sheet.changed(pages)
        return ids

    def stats(self) -> Mapping[str, float]:
        urls = self._urls.records[: self._urls.sheet.used]
        return {"urls": len(urls), "links": self._links.used, "owed": float(urls["owed"].sum())}

    def _linked(self, pages: I64, rows: I64, parents: I64) -> int:
        """Record the links of new pages; returns the number of the first of these pages."""
        start, begin = self._links.used, self._pages.used
        self._links.fit(start + len(rows))
        self._pages.fit(begin + len(pages))
        counts = np.array([start, begin])
        link(self._urls.records, self._links.rows, self._pages.rows, counts, pages, rows, parents)
        self._links.used, self._pages.used = counts.tolist()  # give back what was not needed
        self._links.changed(np.arange(start, self._links.used))
        self._pages.changed(np.arange(begin, self._pages.used))
        return begin

    def _paid(self, begin: int, most: int) -> U64:
        """Pay the links of new pages, and about `most` other links; returns the URLs to rank again."""
        room = (
            most + 2 * MOST_LINKS + int(self._urls.records["links"][self._pages.rows[begin : self._pages.used]].sum())
        )
        changed, moved = np.empty(room, np.int64), np.empty(room, np.int64)
        counts = np.zeros(2, np.int64)
        pages = self._pages.rows[: self._pages.used]
        pay(self._urls.records, self._links.rows, pages, begin, self._turn.rows, most, changed, moved, counts)
        self._urls.sheet.changed(changed[: int(counts[0])])
        self._turn.changed(np.zeros(1, np.int64))
        return self._urls.records["id"][moved[: int(counts[1])]]


@kernel(nothing(URLS, i32s, i32s, i64s, i64s, i64s, i64s))
def link(urls, links, linking, counts, pages, rows, parents):  # type: ignore[no-untyped-def]
    """Each page counts once for a URL, with the links of its first fetch. `counts`: links, linking pages so far."""
    for page in pages:
        urls[page].fetched = 1
    start = 0
    while start < len(rows):
        end, parent = start, parents[start]
        while end < len(rows) and parents[end] == parent:
            end += 1
        if parent >= 0 and urls[pages[parent]].links == 0:
            page, different = urls[pages[parent]], np.unique(rows[start:end])
            page.first, page.links, page.owed = counts[0], len(different), page.rank
            links[counts[0] : counts[0] + len(different)] = different
            linking[counts[1]] = pages[parent]
            counts[0] += len(different)
            counts[1] += 1
        start = end


@part
def pay_one(urls, links, page, changed, moved, counts):  # type: ignore[no-untyped-def]
    """A page passes on what it owes; those of its links that were fetched owe that much more."""
    share = FOLLOWED * page.owed / page.links
    page.owed = 0.0
    for place in range(page.first, page.first + page.links):
        row = links[place]
        url = urls[row]
        url.rank += share
        changed[counts[0]] = row
        counts[0] += 1
        if url.links > 0:
            url.owed += share
        elif url.fetched == 0 and url.rank > MOVED * url.rested:
            url.rested = url.rank
            moved[counts[1]] = row
            counts[1] += 1


@kernel(nothing(URLS, i32s, i32s, one_i64, TURNS, one_i64, i64s, i64s, i64s))
def pay(urls, links, pages, begin, turns, most, changed, moved, counts):  # type: ignore[no-untyped-def]
    """First the pages from `begin` on, then others in turn until `most` links were paid. `counts`: changed, moved."""
    for row in pages[begin:]:
        pay_one(urls, links, urls[row], changed, moved, counts)
    already = counts[0]
    for _ in range(min(VISITED, len(pages))):
        if counts[0] - already >= most:
            break
        turns[0].page = (turns[0].page + 1) % len(pages)
        row = pages[turns[0].page]
        if urls[row].owed > LITTLE * urls[row].rank:
            changed[counts[0]] = row
            counts[0] += 1
            pay_one(urls, links, urls[row], changed, moved, counts)
