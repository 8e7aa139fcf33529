"""All that is remembered of a crawl, in sheets of its notebook, and which of it has changed.

Bounded: beyond `most` URLs the oldest make room for new ones, and are scored as if nothing were known of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.kernels import i64s, kernel, nothing, one_i64, part, records, u64s
from crawlguide.core.lossy_table import LossyTable
from crawlguide.store.tables.index import Index
from crawlguide.strategies.layered.answers import ANSWER_TRAITS
from crawlguide.strategies.layered.evidence import FAR
from crawlguide.strategies.layered.exploration import NEWNESS, TRAITS
from crawlguide.strategies.layered.meaning import profile_direction
from crawlguide.strategies.layered.model import FIRST_SQUARE
from crawlguide.strategies.layered.records import (
    ASSIGNED,
    COLUMNS,
    COVARIANCE,
    CRAWL,
    EXAMPLE,
    LEVELS,
    LINK,
    LINKS,
    MEANING,
    PAGE,
    PARENTS,
    PLACE,
    PROFILE,
    SEED,
    TABLES,
    VECTOR,
    VOCABULARY,
    WAITING,
    WEIGHT,
    WORDS,
    Tables,
)
from crawlguide.strategies.layered.trust import OFFSET_DOUBT, STEEP_DOUBT, TRUST

if TYPE_CHECKING:
    from crawlguide.core.notebook import Notebook, Sheet
    from crawlguide.core.tables import F32, I64, U64
    from crawlguide.strategies.layered.records import Records

BLANK = np.zeros(1, LINK)  # what is known of a link to begin with
BLANK["parents"], BLANK["finder"], BLANK["page"], BLANK["distance"] = -1, SEED, -1, FAR
EXAMPLES = 4_096
MOST_VECTORS = 1 << 13  # pages that move in the profile when a late reward comes
MOST_PLACES, MOST_PAGES = 1 << 20, 1 << 20
FORGOTTEN_AT_ONCE = 4_096
OTHER_HOSTS = np.array([1], np.uint64)  # key of the place of all hosts that have none of their own
TRANSFERABLE = ("dense", "doubts", "words", "hub", "hubwords", "signals")  # sheets that mean the same in another crawl
TIED = ("urls", "pages", "places", "past", "taste", "vectors", "crawl")  # sheets that rely on each other
FORMAT = np.dtype([("version", np.int64)])  # 1: `count`, `sum` and `best` of a link are of its older parents alone
NOTHING = np.dtype([("nothing", np.int8)])
FIRST = np.zeros(1, np.int64)

# Which records change with a link: those of pages linking to it, of its places, and of its words. Links that stand side
# by side mostly share them, so the same number twice in a row is written once.


@part
def append(value, found, count):  # type: ignore[no-untyped-def]
    """Returns how many there are then."""
    if count > 0 and found[count - 1] == value:
        return count
    found[count] = value
    return count + 1


@kernel(one_i64(i64s, LINKS, one_i64, i64s))
def pages_of(rows, links, used, found):  # type: ignore[no-untyped-def]
    """The pages that are known to link to these links, among the first `used`; returns how many."""
    count = 0
    for row in rows:
        link = links[row]
        for number in range(PARENTS):
            if 0 <= link.parents[number] < used:
                count = append(link.parents[number], found, count)
        if 0 <= link.finder < used and link.finder != link.parents[0]:
            count = append(link.finder, found, count)
    return count


@kernel(one_i64(i64s, LINKS, i64s))
def places_of(rows, links, found):  # type: ignore[no-untyped-def]
    """Level by level, as that is how links share them."""
    count = 0
    for level in range(LEVELS):
        for row in rows:
            if level < links[row].levels:
                count = append(links[row].places[level], found, count)
    return count


@kernel(one_i64(i64s, LINKS, i64s))
def words_of(rows, links, found):  # type: ignore[no-untyped-def]
    count = 0
    for row in rows:
        for number in range(links[row].spoken):
            found[count] = links[row].words[number]
            count += 1
    return count


@kernel(one_i64(i64s, TABLES, one_i64, u64s))
def waiting_beside(rows, tables, reach, ids):  # type: ignore[no-untyped-def]
    """The ids of waiting links that stand on the same page, up to `reach` places away; returns how many."""
    links, count = tables.links, 0
    for row in rows:
        if links[row].finder < 0:
            continue
        page = tables.pages[links[row].finder]
        last = min(page.first + page.found, row + reach, tables.links_used)
        for other in range(max(page.first, row - reach), last):
            if links[other].state == WAITING:
                ids[count] = links[other].id
                count += 1
    return count


@kernel(nothing(i64s, i64s, u64s, LINKS, LINKS))
def begin_links(rows, fresh, ids, blank, links):  # type: ignore[no-untyped-def]
    """New links (`fresh` is 1) of which nothing is known yet; `blank` is what all of them begin with."""
    for number in range(len(rows)):
        if fresh[number]:
            links[rows[number]] = blank[0]
            links[rows[number]].id = ids[number]


@kernel(nothing(LINKS, records(PAGE)))
def keep_older_parents(links, pages):  # type: ignore[no-untyped-def]
    """Records of a version that counted all parents of a link: take off those that are remembered one by one.

    The best of the older ones is known if it is above those; else all that is certain is their mean.
    """
    for row in range(len(links)):
        link, newest = links[row], np.float32(0.0)
        for number in range(PARENTS):
            parent = link.parents[number]
            if 0 <= parent < len(pages):
                link.count = max(link.count - 1.0, 0.0)
                link.sum = max(link.sum - pages[parent].label, 0.0)
                newest = max(newest, pages[parent].label)
        link.sum = min(link.sum, link.count)
        link.best = min(link.best, link.sum) if link.best > newest else link.sum / max(link.count, 1.0)


class LayeredMemory:
    def __init__(self, notebook: Notebook, tuning: Records, prior: F32, most: int) -> None:
        self.tuning, self.most, self.most_places = tuning, most, MOST_PLACES
        self.generation = 1  # goes up with every change of what is known, so that scores of before do not hold
        self._open(notebook)
        if self._torn():
            for name in TIED:
                notebook.sheet(name, NOTHING)  # with other records, so that it is blank when it is opened anew
            self._open(notebook)
        self._migrate(notebook.sheet("format", FORMAT))
        self.index, self.place_index = indexed(self.links, "id"), indexed(self.places, "key")
        self.find = self.index.find  # the record of each URL, -1 where there is none
        if not self.crawl.used:
            self._begin()
        if not self.covariance.used:
            fill(self.covariance, COLUMNS, of=tuning["doubt"][0] * np.eye(COLUMNS))
        if not self.trust.used:
            fill(self.trust, 1, steepness=1.0, steep_doubt=STEEP_DOUBT, offset_doubt=OFFSET_DOUBT)
        if not self.answer_weights.used:
            fill(self.answer_weights, ANSWER_TRAITS + VOCABULARY, square=0.1)
        weights = self.weights.rows[:COLUMNS]
        new = np.flatnonzero((weights["square"] == 1.0) & (weights["weight"] == 0.0))  # columns that never counted yet
        weights["weight"][new] = prior[new]
        self.profile_direction = profile_direction(self.profile.rows)

    def _open(self, notebook: Notebook) -> None:
        sheet = notebook.sheet
        self.links, self.pages = sheet("urls", LINK), sheet("pages", PAGE)
        self.places = sheet("places", PLACE)
        self.examples, self.profile = sheet("past", EXAMPLE), sheet("taste", PROFILE)
        self.weights, self.word_weights = sheet("dense", WEIGHT), sheet("words", WEIGHT)
        self.covariance = sheet("doubts", COVARIANCE)
        self.hub_weights, self.hub_word_weights = sheet("hub", WEIGHT), sheet("hubwords", WEIGHT)
        self.answer_weights = sheet("answers", WEIGHT)
        self.vectors = LossyTable(VECTOR, sheet("vectors", VECTOR), MOST_VECTORS)
        self.crawl, self.trust = sheet("crawl", CRAWL), sheet("trust", TRUST)

    def _torn(self) -> bool:
        """Some sheets were written by a version with other records, and are blank: numbers of rows lead nowhere."""
        fetched = bool(self.crawl.used and self.crawl.rows["pages"][0])
        whole = self.crawl.used and self.links.used and self.places.used and (self.pages.used or not fetched)
        return bool(fetched or self.links.used) and not whole

    def _migrate(self, form: Sheet) -> None:
        if form.used:
            return
        keep_older_parents(self.links.rows[: self.links.used], self.pages.rows[: self.pages.used])
        self.links.changed(np.arange(self.links.used))
        fill(form, 1, version=1)

    def _begin(self) -> None:
        """A crawl of which nothing is known; weights may have come from another."""
        fill(self.crawl, 1, steepness=1.0, luck=0.5, steep_square=FIRST_SQUARE, offset_square=FIRST_SQUARE)
        fill(self.examples, EXAMPLES)
        fill(self.profile, 2)
        if not self.weights.used:
            fill(self.weights, COLUMNS + MEANING, square=1.0)
        if not self.word_weights.used:
            fill(self.word_weights, VOCABULARY, square=0.01)
        if self.hub_weights.used != TRAITS:
            fill(self.hub_weights, TRAITS, square=1.0)
            self.hub_weights.rows["weight"][NEWNESS] = 1.0
        if not self.hub_word_weights.used:
            fill(self.hub_word_weights, VOCABULARY, square=0.1)

    def tables(self) -> Tables:
        """The arrays as they are now, for one call of a kernel: while somebody holds them no sheet grows in place."""
        return Tables(
            self.links.rows, self.pages.rows, self.places.rows, self.crawl.rows, self.tuning,
            self.examples.rows, self.weights.rows, self.covariance.rows, self.word_weights.rows, self.hub_weights.rows,
            self.hub_word_weights.rows, self.answer_weights.rows, self.trust.rows, self.profile_direction,
            self.links.used,
        )  # fmt: skip

    # records

    def claim(self, ids: U64) -> tuple[I64, I64]:
        """The record of each URL, and 1 for those that are new; beyond the bound the oldest are forgotten."""
        room = self.index.rows if self.crawl.rows["forgotten"][0] else self.most  # once records were used again, always
        if self.index.live + len(ids) > room:
            self._forget(len(ids))
        rows, new = self.index.claim(ids)
        self.links.fit(self.index.rows)
        begin_links(rows, new, ids, BLANK, self.links.rows)
        return rows, new

    def _forget(self, wanted: int) -> None:
        """In the order of their records, round and round; not those that are assigned."""
        crawl = self.crawl.rows
        count = min(max(wanted, FORGOTTEN_AT_ONCE), self.index.rows)
        rows = (int(crawl["forgotten"][0]) + np.arange(count)) % self.index.rows
        live = self.index.find(self.links.rows["id"][rows]) == rows
        rows = rows[live & (self.links.rows["state"][rows] != ASSIGNED)]
        self.index.forget(rows[::-1], patient=True)
        self.links.rows["id"][rows] = 0
        crawl["forgotten"] += count
        self.links.changed(rows)

    def claim_places(self, keys: U64) -> I64:
        """The records of places, -1 where there is no room for a new one; for that of other hosts there always is."""
        if self.places.used + len(keys) > self.most_places and keys is not OTHER_HOSTS:
            return self.place_index.find(keys)
        rows, new = self.place_index.claim(keys)
        self.places.fit(self.place_index.rows)
        fresh_rows = rows[new != 0]
        self.places.rows["key"][fresh_rows] = keys[new != 0]
        self.places.rows["square"][fresh_rows] = 0.03
        return rows

    def other_hosts(self) -> int:
        """The place that stands for a host where there is no room for a new one."""
        (row,) = self.claim_places(OTHER_HOSTS)
        return int(row)

    def claim_pages(self, rows: I64) -> I64:
        """The page of each link, a new one if it was not fetched before; beyond the bound it overwrites the oldest."""
        page = self.links.rows["page"][rows].astype(np.int64)
        new = np.flatnonzero(page < 0)
        made = int(self.crawl.rows["pages"][0]) + np.arange(len(new))
        page[new] = made % MOST_PAGES
        self.crawl.rows["pages"] += len(new)
        self.pages.fit(int(page.max(initial=-1)) + 1)
        self.pages.rows.view(np.uint8).reshape(-1, PAGE.itemsize)[page[new]] = 0
        return page

    # what has changed

    def mark_learned(self, links: I64, pages: I64, taught: I64, examples: int) -> None:
        """After a tell: records of these links and pages, the words and places of links that were `taught`, and all
        examples since there were so many.
        """
        self.mark_changed(links, taught)
        self.pages.changed(pages[pages >= 0])
        self.examples.changed(np.arange(examples, int(self.crawl.rows["examples"][0])) % self.examples.used)
        words = np.empty(WORDS * len(taught), np.int64)
        words = words[: words_of(taught, self.links.rows, words)]
        self.word_weights.changed(words)
        self.hub_word_weights.changed(words)
        self.answer_weights.changed(np.concatenate([np.arange(ANSWER_TRAITS), ANSWER_TRAITS + words]))
        for sheet in (self.weights, self.covariance, self.hub_weights, self.profile):
            sheet.changed(np.arange(sheet.used))
        self.crawl.changed(FIRST)
        self.trust.changed(FIRST)

    def mark_changed(self, links: I64, taught: I64) -> None:
        """These links, the pages linking to them, and the places in which they or links that were `taught` lie."""
        self.links.changed(links)
        self.mark_parents(links)
        located = np.concatenate([links, taught])
        places = np.empty(LEVELS * len(located), np.int64)
        self.places.changed(places[: places_of(located, self.links.rows, places)])

    def mark_parents(self, links: I64) -> None:
        """The pages linking to these links, as far as they are remembered."""
        pages = np.empty((PARENTS + 1) * len(links), np.int64)
        self.pages.changed(pages[: pages_of(links, self.links.rows, self.pages.used, pages)])


def indexed(sheet: Sheet, name: str) -> Index:
    """An index of the records in a sheet, by the field of that name."""
    index = Index()
    index.ids = sheet.rows[name][: sheet.used].astype(np.uint64)
    index.load(sheet.used, np.flatnonzero(index.ids))
    return index


def fill(sheet: Sheet, count: int, **values: Any) -> None:
    """So many records, all alike."""
    sheet.fit(count)
    sheet.rows[:count] = np.zeros(1, sheet.rows.dtype)
    for name, value in values.items():
        sheet.rows[name][:count] = value
    sheet.changed(np.arange(count))
