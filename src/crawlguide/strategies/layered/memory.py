"""Which records change with a link: those of pages that lead to it, of its places, of its words, of links beside it.

Links that stand side by side mostly share them: of equals that follow each other one is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.kernels import i64s, kernel, one_i64, part, u64s
from crawlguide.store.tables.index import Index
from crawlguide.strategies.layered import ingest
from crawlguide.strategies.layered.evidence import LINKS, PAGES
from crawlguide.strategies.layered.hubs import TRAITS
from crawlguide.strategies.layered.model import FIRST_SQUARE
from crawlguide.strategies.layered.records import (
    COLUMNS,
    CRAWL,
    EXAMPLE,
    GIVEN,
    HOST,
    LEVELS,
    LINK,
    MEANING,
    PAGE,
    PARENTS,
    PLACE,
    TASTE,
    VOCABULARY,
    WAITING,
    WEIGHT,
    WORDS,
)

if TYPE_CHECKING:
    from crawlguide.core.notebook import Notebook, Sheet
    from crawlguide.core.tables import F32, I64, U64


@part
def add(value, found, count):  # type: ignore[no-untyped-def]
    """Returns how many there are then."""
    if count > 0 and found[count - 1] == value:
        return count
    found[count] = value
    return count + 1


@kernel(one_i64(i64s, LINKS, one_i64, i64s))
def pages_of(rows, links, used, found):  # type: ignore[no-untyped-def]
    """Of `used` pages those that are known to lead to these links; returns how many."""
    count = 0
    for row in rows:
        link = links[row]
        for number in range(PARENTS):
            if 0 <= link.parents[number] < used:
                count = add(link.parents[number], found, count)
        if 0 <= link.finder < used and link.finder != link.parents[0]:
            count = add(link.finder, found, count)
    return count


@kernel(one_i64(i64s, LINKS, one_i64, i64s))
def places_of(rows, links, levels, found):  # type: ignore[no-untyped-def]
    """Level by level, as that is how links share them."""
    count = 0
    for level in range(levels):
        for row in rows:
            if level < links[row].levels:
                count = add(links[row].places[level], found, count)
    return count


@kernel(one_i64(i64s, LINKS, i64s))
def words_of(rows, links, found):  # type: ignore[no-untyped-def]
    count = 0
    for row in rows:
        for number in range(links[row].spoken):
            found[count] = links[row].words[number]
            count += 1
    return count


@kernel(one_i64(i64s, LINKS, one_i64, PAGES, one_i64, u64s))
def waiting_beside(rows, links, used, pages, around, ids):  # type: ignore[no-untyped-def]
    """The ids of links that wait and were found beside these, up to `around` places away; returns how many."""
    count = 0
    for row in rows:
        if links[row].finder < 0:
            continue
        page = pages[links[row].finder]
        for other in range(max(page.first, row - around), min(page.first + page.found, row + around, used)):
            if links[other].state == WAITING:
                ids[count] = links[other].id
                count += 1
    return count


# All that is remembered of a crawl, in sheets of its notebook, and which of it has changed.
#
# Bounded: beyond `most` URLs the oldest make room for new ones, and are judged as if nothing were known of them.

EXAMPLES = 4_096
MOST_PLACES, MOST_PAGES = 1 << 20, 1 << 20
FORGOTTEN_AT_ONCE = 4_096
TRANSFERABLE = ("dense", "words", "hub", "hubwords", "signals")  # what means the same in another crawl
TIED = ("urls", "pages", "places", "hosts", "past", "taste", "crawl")  # sheets that know each other's rows
NOTHING = np.dtype([("nothing", np.int8)])
FIRST = np.zeros(1, np.int64)


class LayeredMemory:
    def __init__(self, notebook: Notebook, prior: F32, most: int) -> None:
        self.most = most
        self.turn = 1  # goes on when something is learned
        self._open(notebook)
        if self._torn():
            for name in TIED:
                notebook.sheet(name, NOTHING)  # with other records, so that it is blank when it is opened anew
            self._open(notebook)
        self.index, self.place_index = known(self.links, "id"), known(self.places, "key")
        if not self.crawl.used:
            self._begin()
        dense = self.dense.rows[:COLUMNS]
        new = np.flatnonzero((dense["square"] == 1.0) & (dense["weight"] == 0.0))  # columns that never counted yet
        dense["weight"][new] = prior[new]

    def _open(self, notebook: Notebook) -> None:
        sheet = notebook.sheet
        self.links, self.pages = sheet("urls", LINK), sheet("pages", PAGE)
        self.places, self.hosts = sheet("places", PLACE), sheet("hosts", HOST)
        self.examples, self.taste = sheet("past", EXAMPLE), sheet("taste", TASTE)
        self.dense, self.words = sheet("dense", WEIGHT), sheet("words", WEIGHT)
        self.hub, self.hub_words = sheet("hub", WEIGHT), sheet("hubwords", WEIGHT)
        self.crawl = sheet("crawl", CRAWL)

    def _torn(self) -> bool:
        """Some of it was written by a version with other records, and is blank: numbers of rows lead nowhere."""
        fetched = bool(self.crawl.used and self.crawl.rows["pages"][0])
        whole = self.crawl.used and self.links.used and self.places.used and (self.pages.used or not fetched)
        return bool(fetched or self.hosts.used or self.links.used) and not whole

    def _begin(self) -> None:
        """A crawl that nothing is known of; weights may have come from another."""
        fresh(self.crawl, 1, steepness=1.0, luck=0.5, steep_square=FIRST_SQUARE, offset_square=FIRST_SQUARE)
        fresh(self.examples, EXAMPLES)
        fresh(self.taste, 2)
        if not self.dense.used:
            fresh(self.dense, COLUMNS + MEANING, square=1.0)
        if not self.words.used:
            fresh(self.words, VOCABULARY, square=0.01)
        if self.hub.used != TRAITS:
            fresh(self.hub, TRAITS, square=1.0)
            self.hub.rows["weight"][1] = 1.0
        if not self.hub_words.used:
            fresh(self.hub_words, VOCABULARY, square=0.1)

    def find(self, ids: U64) -> I64:
        return self.index.find(ids)

    def claim(self, ids: U64) -> tuple[I64, I64]:
        """The record of each URL, and 1 for those that are new; of many the oldest are forgotten."""
        room = self.index.rows if self.crawl.rows["forgotten"][0] else self.most  # once round, always round
        if self.index.live + len(ids) > room:
            self._forget(len(ids))
        rows, new = self.index.claim(ids)
        self.links.fit(self.index.rows)
        ingest.begin(rows, new, ids, ingest.BLANK, self.links.rows)
        return rows, new

    def _forget(self, wanted: int) -> None:
        """In the order of their records, round and round; not those that are under way."""
        crawl = self.crawl.rows
        count = min(max(wanted, FORGOTTEN_AT_ONCE), self.index.rows)
        rows = (int(crawl["forgotten"][0]) + np.arange(count)) % self.index.rows
        known = self.index.find(self.links.rows["id"][rows]) == rows
        rows = rows[known & (self.links.rows["state"][rows] != GIVEN)]
        self.index.forget(rows[::-1], patient=True)
        self.links.rows["id"][rows] = 0
        crawl["forgotten"] += count
        self.links.changed(rows)

    def claim_places(self, keys: U64) -> I64:
        """The records of places, -1 where there is no room for a new one."""
        if self.places.used + len(keys) > MOST_PLACES:
            return self.place_index.find(keys)
        rows, new = self.place_index.claim(keys)
        self.places.fit(self.place_index.rows)
        fresh_rows = rows[new != 0]
        self.places.rows["key"][fresh_rows] = keys[new != 0]
        self.places.rows["square"][fresh_rows] = 0.03
        return rows

    def claim_pages(self, rows: I64) -> I64:
        """The page of each link, new ones for those not fetched before; of many the oldest are overwritten."""
        page = self.links.rows["page"][rows].astype(np.int64)
        new = np.flatnonzero(page < 0)
        made = int(self.crawl.rows["pages"][0]) + np.arange(len(new))
        page[new] = made % MOST_PAGES
        self.crawl.rows["pages"] += len(new)
        self.pages.fit(int(page.max(initial=-1)) + 1)
        self.pages.rows.view(np.uint8).reshape(-1, PAGE.itemsize)[page[new]] = 0
        return page

    # what has changed

    def told(self, links: I64, pages: I64, taught: I64) -> None:
        """Of these links something was learned, `taught` are those whose words and places were."""
        self.told_around(links)
        self.pages.changed(pages[pages >= 0])
        self.told_places(taught)
        words = np.empty(WORDS * len(taught), np.int64)
        words = words[: words_of(taught, self.links.rows, words)]
        self.words.changed(words)
        self.hub_words.changed(words)
        for sheet in (self.dense, self.hub, self.taste):
            sheet.changed(np.arange(sheet.used))
        self.crawl.changed(FIRST)

    def told_around(self, links: I64) -> None:
        """What is known of these links has changed, with the pages that lead to them and the places they lie in."""
        pages = np.empty((PARENTS + 1) * len(links), np.int64)
        self.links.changed(links)
        self.pages.changed(pages[: pages_of(links, self.links.rows, self.pages.used, pages)])
        self.told_places(links)

    def told_places(self, links: I64) -> None:
        places = np.empty(LEVELS * len(links), np.int64)
        self.places.changed(places[: places_of(links, self.links.rows, LEVELS, places)])

    def told_examples(self, before: int) -> None:
        after = int(self.crawl.rows["examples"][0])
        self.examples.changed(np.arange(before, after) % self.examples.used)


def known(sheet: Sheet, name: str) -> Index:
    """An index of the records that lie in a sheet."""
    index = Index()
    index.ids = sheet.rows[name][: sheet.used].astype(np.uint64)
    index.load(sheet.used, np.flatnonzero(index.ids))
    return index


def fresh(sheet: Sheet, count: int, **values: Any) -> None:
    """So many records, all alike."""
    sheet.fit(count)
    sheet.rows[:count] = np.zeros(1, sheet.rows.dtype)
    for name, value in values.items():
        sheet.rows[name][:count] = value
    sheet.changed(np.arange(count))
