"""The learner: hears what was found and fetched, keeps it as evidence, and says how likely each link pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.notebook import Notebook
from crawlguide.core.types import Also
from crawlguide.predictors.layered import arms, evidence, logistic, reading
from crawlguide.predictors.layered.columns import ADDRESS, ANCHOR, PRIOR, TITLE
from crawlguide.predictors.layered.goal import Aim, addresses, ends_of, meanings
from crawlguide.predictors.layered.records import (
    COLUMNS,
    CRAWL,
    EXAMPLE,
    HOST,
    LEVELS,
    LINK,
    MEANING,
    PAGE,
    DEFAULTS,
    PLACE,
    TUNING,
    VOCABULARY,
    WAITING,
    WEIGHT,
)
from crawlguide.store.index import Index

if TYPE_CHECKING:
    from crawlguide.core.crawls import Goal
    from crawlguide.core.tables import F32, F64, I64, U64
    from crawlguide.core.types import Ask, Batch, Lesson, Links

EXAMPLES = 4_096
LONGEST_NAME = 100  # of a host that can be drawn
READ_OF_A_PAGE = 600  # letters of its text
LIKED, DISLIKED = 0, 1
TASTE = np.dtype([("count", np.float32), ("sum", np.float32, MEANING)], align=True)
AROUND = 100  # links of the same page that are judged anew, on either side
RELEASED = "released"
NOTHING: U64 = np.zeros(0, np.uint64)


class Layered:
    version = "layered-1"

    def __init__(self, goal: Goal, seed: int) -> None:
        self.aim, self.seed = Aim(goal), seed
        self.tuning = np.zeros(1, TUNING)
        import json, os
        for name, number in {**DEFAULTS, **json.loads(os.environ.get("TUNE", "{}"))}.items():
            if name in TUNING.names:
                self.tuning[name] = number
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self.links, self.pages = notebook.sheet("urls", LINK), notebook.sheet("pages", PAGE)
        self.places, self.examples = notebook.sheet("places", PLACE), notebook.sheet("past", EXAMPLE)
        self.dense, self.words = notebook.sheet("dense", WEIGHT), notebook.sheet("words", WEIGHT)
        self.hub, self.hub_words = notebook.sheet("hub", WEIGHT), notebook.sheet("hubwords", WEIGHT)
        self.crawl, self.taste = notebook.sheet("crawl", CRAWL), notebook.sheet("taste", TASTE)
        self.hosts = notebook.sheet("hosts", HOST)
        self.index, self.place_index = Index(), Index()
        self._hosts_drawn: list[int] = []
        self._pages_drawn: list[int] = []
        if not self.crawl.used:
            self._begin()
        self._looked: tuple[U64, F64, F64] | None = None

    def _begin(self) -> None:
        self.crawl.fit(1)
        self.crawl.rows["steepness"] = 1.0
        self.crawl.rows["steep_square"] = self.crawl.rows["offset_square"] = 1.0
        self.dense.fit(COLUMNS + MEANING)
        self.dense.rows["weight"][:COLUMNS] = PRIOR
        self.dense.rows["square"] = 1.0
        self.words.fit(VOCABULARY)
        self.words.rows["square"] = 0.1
        self.examples.fit(EXAMPLES)
        self.hub.fit(2)
        self.hub.rows["weight"][1] = 1.0
        self.hub.rows["square"] = 1.0
        self.hub_words.fit(VOCABULARY)
        self.hub_words.rows["square"] = 0.1
        self.taste.fit(2)

    # judging

    def predict(self, batch: Batch) -> F64:
        value, wish = self._judged(self.index.find(batch.id))
        self._looked = batch.id, value, wish
        return value

    def _judged(self, rows: I64) -> tuple[F64, F64]:
        value, wish = np.empty(len(rows)), np.empty(len(rows))
        logistic.judge(
            rows, self._taste(), self.tuning, self.links.rows, self.links.used, self.pages.rows,
            self.places.rows, self.crawl.rows, self.dense.rows, self.words.rows,
            self.hub.rows, self.hub_words.rows, value, wish,
        )  # fmt: skip
        return value, wish

    def explore(self, batch: Batch) -> F64:
        """What each row is worth for being little known."""
        if self._looked is None or self._looked[0] is not batch.id:
            self.predict(batch)
        _, value, wish = self._looked
        return wish - value

    def also(self, ask: Ask, wanted: int) -> Also:  # noqa: ARG002 - all who ask are alike
        """Hosts and links of pages that were drawn for some places of the answer, hosts and pages in turn."""
        crawl, tuning = self.crawl.rows, self.tuning[0]
        chance = tuning["least_draws"] + tuning["most_draws"] * (1.0 - crawl["luck"][0]) ** 2
        self._hosts_drawn, self._pages_drawn, names, rows = [], [], [], []
        for _ in range(arms.places_for_draws(self.seed, crawl, chance, wanted) if self.hosts.used else 0):
            if int(crawl["draws"][0]) % 2:
                host = arms.draw_host(self.seed, crawl, self.hosts.rows, self.hosts.used, self.places.rows)
                if host >= 0:
                    self._hosts_drawn.append(int(self.hosts.rows["place"][host]))
                    names.append(self.hosts.rows["name"][host].decode())
            else:
                page = arms.draw_page(self.seed, crawl, self.pages.rows, self.pages.used)
                if page >= 0:
                    self._pages_drawn.append(page)
                    rows.append(self._best_of(page))
        ids = self.links.rows["id"][rows] if rows else NOTHING
        return Also(ids, frozenset(names))

    def _best_of(self, page: int) -> int:
        """The best waiting link that a page made known, among some of them."""
        here = self.pages.rows[page]
        rows = np.arange(here["first"], here["first"] + here["found"])
        rows = rows[(self.links.rows["state"][rows] == WAITING) & (self.links.rows["finder"][rows] == page)][:AROUND]
        _, wish = self._judged(rows)
        return int(rows[wish.argmax()]) if len(rows) else -1

    def drawn(self, batch: Batch) -> F64:
        """1 for the best row of each arm that was drawn, as far as the batch holds one."""
        mark = np.zeros(len(batch))
        if not (self._hosts_drawn or self._pages_drawn):
            return mark
        rows = self.index.find(batch.id)
        wish = batch.value + self.explore(batch)
        host, finder = self.links.rows["places"][rows, 0], self.links.rows["finder"][rows]
        for column, wanted in ((host, self._hosts_drawn), (finder, self._pages_drawn)):
            for arm in wanted:
                mine = np.flatnonzero((column == arm) & (rows >= 0) & (mark == 0))
                if len(mine):
                    mark[mine[wish[mine].argmax()]] = 1.0
        self.links.rows["chosen"][rows[(mark > 0)]] = 1
        return mark

    def given(self, batch: Batch) -> None:
        evidence.give(self.index.find(batch.id), self.links.rows, self.pages.rows, self.places.rows)

    # learning

    def learn(self, lesson: Lesson) -> U64 | None:
        told = lesson.fetches
        fetched = self._rows(told.id)
        used = np.array([error != RELEASED for error in told.error], np.bool_) & (told.status != -1)
        page = np.full(len(told), -1, np.int64)
        page[used] = self._fetched(lesson, fetched, used)
        self._found(lesson.links, page)
        evidence.open_pages(
            page, self.links.rows, self.pages.rows, self.places.rows, self.crawl.rows, self.hub.rows,
            self.hub_words.rows, self.tuning,
        )  # fmt: skip
        return self._moved(fetched[used])

    def _rows(self, ids: U64) -> I64:
        rows, fresh = self.index.claim(ids)
        self.links.fit(self.index.rows)
        if fresh.any():  # fetched without having been found
            new = rows[fresh != 0]
            self.links.rows["id"][new] = ids[fresh != 0]
            self.links.rows["parents"][new] = -1
            self.links.rows["finder"][new] = self.links.rows["page"][new] = -1
            self._place(new, np.zeros((len(new), LEVELS), np.uint64))
        return rows

    def _fetched(self, lesson: Lesson, fetched: I64, used) -> I64:
        told = lesson.fetches.take(used)
        rows = fetched[used]
        failed = (told.status >= 400) | np.array([bool(error) for error in told.error], np.bool_)
        label = np.where(failed | np.isnan(told.relevance), 0.0, told.relevance).astype(np.float32)
        page = self._pages(rows)
        title = self._read_pages(lesson.title[used].tolist(), lesson.text[used].tolist(), label, failed)
        logistic.learn(
            self.seed, rows, label, (~failed).astype(np.int64), title, page, self._taste(), self.tuning, self.links.rows,
            self.links.used, self.pages.rows, self.places.rows, self.crawl.rows, self.examples.rows, self.dense.rows,
            self.words.rows,
        )  # fmt: skip
        return page

    def _pages(self, rows: I64) -> I64:
        page = self.links.rows["page"][rows].astype(np.int64)
        new = np.flatnonzero(page < 0)
        page[new] = self.pages.used + np.arange(len(new))
        self.pages.fit(self.pages.used + len(new))
        return page

    def _read_pages(self, titles, texts, label: F32, failed) -> F32:
        """Likeness of each title to the goal; and the taste learns what pages of worth are like."""
        title = self.aim.likeness(meanings(titles))
        evidence.notice(title, TITLE, self.crawl.rows)
        told = [f"{one} {text[:READ_OF_A_PAGE]}" for one, text in zip(titles, texts, strict=True)]
        page = meanings(told)[:, :MEANING]
        for kind, mine in ((LIKED, label >= 0.5), (DISLIKED, (label < 0.5) & ~failed)):
            self.taste.rows["count"][kind] += mine.sum()
            self.taste.rows["sum"][kind] += page[mine].sum(0)
        return title

    def _taste(self) -> F32:
        """Where pages of worth lie, seen from the others."""
        counts, sums = self.taste.rows["count"][:2], self.taste.rows["sum"][:2]
        if not counts[LIKED]:
            return np.zeros(MEANING, np.float32)
        found = sums[LIKED] / counts[LIKED] - sums[DISLIKED] / max(counts[DISLIKED], 1.0)
        return found / max(float(np.linalg.norm(found)), 1e-6)

    def _found(self, links: Links, page: I64) -> None:
        rows, fresh = self.index.claim(links.id)
        self.links.fit(self.index.rows)
        new = np.flatnonzero(fresh)
        if len(new):
            self._read(links, new, rows[new])
        parents = np.where(links.parent >= 0, page[links.parent], -1) if len(page) else np.full(len(rows), -1)
        evidence.find(rows, parents, fresh.astype(np.uint8), self.links.rows, self.pages.rows)

    def _read(self, links: Links, new: I64, rows: I64) -> None:
        urls, anchors = links.url[new].tolist(), links.anchor[new].tolist()
        coded_urls, coded_anchors = [url.encode() for url in urls], [anchor.encode() for anchor in anchors]
        goal, goal_ends = self.aim.letters
        keys = np.empty(LEVELS * len(rows), np.uint64)
        self.links.rows["id"][rows] = links.id[new]
        reading.read(
            np.frombuffer(b"".join(coded_urls), np.uint8), ends_of(coded_urls),
            np.frombuffer(b"".join(coded_anchors) or b"\0", np.uint8), ends_of(coded_anchors),
            goal, goal_ends, np.zeros(len(goal_ends), np.uint8), rows, self.links.rows, keys,
        )  # fmt: skip
        self._place(rows, keys.reshape(-1, LEVELS))
        self._name(rows, links.host[new].tolist())
        self._mean(rows, anchors, addresses(urls))

    def _place(self, rows: I64, keys) -> None:
        keys[:, 0] |= np.uint64(1)  # every link has a host
        inside = keys != 0
        numbers, _ = self.place_index.claim(keys[inside])
        self.places.fit(self.place_index.rows)
        self.places.rows["key"][numbers] = keys[inside]
        evidence.settle(rows, numbers, inside.sum(1), self.links.rows, self.places.rows)

    def _name(self, rows: I64, names: list[str]) -> None:
        """Hosts that are new get a record with their name, by which a store knows them."""
        places = self.links.rows["places"][rows, 0]
        fresh = np.flatnonzero(self.places.rows["named"][places] == 0).tolist()
        for number in fresh:
            place, name = int(places[number]), names[number].encode()
            if not self.places.rows["named"][place]:
                self.places.rows["named"][place] = 1
                if len(name) <= LONGEST_NAME:
                    self.hosts.fit(self.hosts.used + 1)
                    self.hosts.rows[self.hosts.used - 1] = place, name

    def _mean(self, rows: I64, anchors: list[str], words: list[str]) -> None:
        vectors = meanings([*anchors, *words])
        said, named = vectors[: len(rows)], vectors[len(rows) :]
        anchor, address = self.aim.likeness(said), self.aim.likeness(named)
        evidence.notice(anchor, ANCHOR, self.crawl.rows)
        evidence.notice(address, ADDRESS, self.crawl.rows)
        self.links.rows["anchor"][rows], self.links.rows["address"][rows] = anchor, address
        both = said[:, :MEANING] + named[:, :MEANING]
        size = np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-6)
        self.links.rows["meaning"][rows] = np.rint(127.0 * both / size)

    def _moved(self, fetched: I64) -> U64:
        """Links that stand beside those that were fetched: what they are worth has changed most."""
        found = []
        for row in fetched.tolist():
            finder = int(self.links.rows["finder"][row])
            if finder >= 0:
                page = self.pages.rows[finder]
                start, end = max(page["first"], row - AROUND), min(page["first"] + page["found"], row + AROUND)
                found.append(np.arange(start, end))
        import os
        many = int(os.environ.get("SWEEP", "0"))
        if many and self.links.used:
            self._at = getattr(self, "_at", 0)
            found.append((self._at + np.arange(min(many, self.links.used))) % self.links.used)
            self._at = (self._at + many) % self.links.used
        if not found:
            return np.zeros(0, np.uint64)
        rows = np.concatenate(found[::-1])
        return self.links.rows["id"][rows[self.links.rows["state"][rows] == WAITING]]
