"""The table of a strategy with arms: which URLs it has heard of, what speaks for each, and what every arm has paid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.columns import texts
from crawlguide.core.tables import rows_of
from crawlguide.strategies.arms import evidence
from crawlguide.strategies.arms.line import Line
from crawlguide.strategies.arms.naming import hashed
from crawlguide.strategies.arms.records import ARM, AWAY, CRAWL, DONE, GIVEN, URL, WAITING
from crawlguide.strategies.shared.draws import drawn
from crawlguide.strategies.shared.outcomes import outcomes
from crawlguide.strategies.shared.record_table import RecordTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawlguide.core.notebook import Notebook, Records
    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.types import Batch, Lesson
    from crawlguide.strategies.arms.naming import Naming, Scan


JITTER = 1e-7  # of equals a random one goes first, whatever the order in which they came
STRANGER = 0.5  # how much less is expected of a URL that nobody told of
FIRST_TRIES = 4.0  # arms that have to be tried before that is believed
LYING = 1e-3  # what does not stand in line waits behind all that does


@dataclass(frozen=True)
class Kind:
    """What one strategy with arms has of its own."""

    prefix: str  # of its sheets
    naming: Naming
    scan: Scan
    seed: int
    opening: float = 0.0  # the value of a new arm
    memory: float = 1.0  # how much of what an arm has paid still counts after its next fetch
    standing: int = 16  # URLs of an arm that stand in line
    merging: Callable[[Sequence[str], I64], list[str]] | None = None  # of the names that links of each page have


@dataclass(frozen=True)
class Heard:
    """A lesson by rows: what was fetched, what it was worth (NaN: nobody says), and which arms are not as they were."""

    fetched: I64
    reward: F64
    late: Mask
    linked: I64  # of every link
    arms: I64  # each once


class ArmTable:
    """Goes on from what lies in a notebook, and writes into it.

    `key` says where URLs stand in their arm, from 0; `worth` what they are worth among those of all arms.
    """

    def __init__(self, kind: Kind, notebook: Notebook, key: Callable[[I64], F64], worth: Callable[[I64], F64]) -> None:
        self._kind, self._key, self._worth = kind, key, worth
        self._urls = RecordTable(notebook.sheet(f"{kind.prefix}urls", URL))
        self._arms = RecordTable(notebook.sheet(f"{kind.prefix}arms", ARM))
        self._crawl = notebook.sheet(f"{kind.prefix}all", CRAWL)
        self.blank = not self._crawl.used
        self._crawl.fit(1)
        self._line = Line(kind.standing)
        self._line.load(self.urls[: self._urls.sheet.used], self.many)

    @property
    def urls(self) -> Records:
        return self._urls.records

    @property
    def arms(self) -> Records:
        return self._arms.records

    @property
    def many(self) -> int:
        """How many arms there are."""
        return self._arms.sheet.used

    @property
    def crawl(self) -> Any:
        """The one record of the crawl; whoever takes it may change it."""
        self._crawl.changed(np.zeros(1, np.int64))
        return self._crawl.rows[0]

    def hope(self, first: float) -> float:
        """What an arm that was never tried is thought to pay: what others paid when they were; until then, `first`."""
        crawl = self._crawl.rows[0]
        return float((crawl["paid"] + FIRST_TRIES * first) / (crawl["tried"] + FIRST_TRIES))

    def hear(self, lesson: Lesson) -> Heard:
        """Take in everything that a lesson says of URLs, pages and arms."""
        said, links = outcomes(lesson), lesson.links
        pages, unheard = self._urls.claim(lesson.fetches.id)
        rows, fresh = self._urls.claim(links.id)
        self._blank(np.concatenate([pages[unheard], rows[fresh]]))
        self._read(lesson, rows, fresh, pages)
        self._came(lesson, pages, said.released)
        counted = self.crawl["counted"]
        evidence.link(self.urls, rows, links.parent, np.nan_to_num(said.reward), int(counted))
        self._crawl.rows["counted"] += len(pages) + 1
        failed, late = said.failed.view(np.uint8), said.late.view(np.uint8)
        evidence.credit(self.urls, self.arms, self._crawl.rows, pages, said.reward, failed, late, self._kind.memory)
        self._keyed(np.unique(rows))
        arms = self.urls["arm"][np.concatenate([rows, pages])]
        heard = Heard(pages, said.reward, said.late, rows, np.unique(arms[arms >= 0]).astype(np.int64))
        self._changed(heard)
        return heard

    def assigned(self, batch: Batch) -> I64:
        """These rows went to a crawler and wait no longer."""
        rows = self._urls.find(batch.id)
        rows = rows[rows >= 0]
        self._line.remove(rows)
        evidence.mark(self.urls, rows, GIVEN)
        self._urls.sheet.changed(rows)
        return rows

    def settled(self, arms: I64, stirred: Mask) -> U64:
        """URLs to rank anew: of arms whose value was `stirred`, and those that stand in line now or no longer."""
        rows = self._line.settle(self.arms, arms, stirred)
        self._arms.sheet.changed(arms)
        return self.urls["id"][rows]

    def first(self, arm: int) -> int:
        """The best URL of an arm that waits; -1: none does."""
        return self._line.first(arm)

    @property
    def waiting(self) -> int:
        """How many URLs wait."""
        return int(self._line.waiting.sum())

    def awake(self) -> I64:
        """The arms of which something waits."""
        return np.flatnonzero(self._line.waiting[: self.many])

    def to_front(self, row: int) -> U64:
        """This URL goes before all others."""
        self.urls["front"][row] = 1
        self._urls.sheet.changed(np.array([row]))
        return self.urls["id"][row : row + 1]

    def rows(self, ids: U64) -> I64:
        """The row of each URL, -1 where it is unknown or has no arm."""
        rows = self._urls.find(ids)
        if self.many:
            rows[self.urls["arm"][rows] < 0] = -1  # of an unknown URL that is some record or other, and no matter
        return rows

    def predict(self, batch: Batch) -> F64:
        """The value of each row of a batch: what it is worth in line, at the front, or behind all others."""
        stranger: F64 = STRANGER * (batch.parent_sum + 0.5) / (batch.parents + 2.0)
        if not self.many:
            return stranger
        rows = self.rows(batch.id)
        worth, urls = self._worth(rows), rows_of(self.urls, rows)
        lying = (urls["state"] == WAITING) & (urls["key"] < self.arms["floor"][urls["arm"]])
        value = np.where(lying, LYING * np.minimum(urls["key"], 1.0), worth)
        value = np.where(urls["front"] == 1, 1.0 - LYING * (1.0 - worth), value)
        return np.where(rows < 0, stranger, np.clip(value, 0.0, 1.0))

    def _blank(self, rows: I64) -> None:
        urls = self.urls
        urls["arm"][rows], urls["page"][rows], urls["worth"][rows] = -1, -1, np.nan

    def _read(self, lesson: Lesson, rows: I64, fresh: Mask, pages: I64) -> None:
        """New links get an arm and a place in line, unless they were dropped on sight."""
        links = lesson.links.take(fresh)
        if not len(links):
            return
        home = [addresses.queue(url) for url in lesson.fetches.url]
        homes = texts([host if page < 0 else home[page] for host, page in zip(links.host, links.parent, strict=True)])
        names = self._kind.naming(links.url.tolist(), links.host.tolist(), homes.tolist())
        if self._kind.merging is not None:
            names = self._kind.merging(names, links.parent)
        mine, urls = rows[fresh], self.urls
        urls["arm"][mine] = self._called(names)
        read = self._kind.scan.read(links.url.tolist(), links.anchor.tolist())
        urls["words"][mine], urls["folders"][mine], urls["query"][mine] = read
        urls["near"][mine] = links.host == homes
        urls["state"][mine] = [AWAY if reason else WAITING for reason in links.reason]
        evidence.made_known(urls, mine, links.parent, pages)
        self._line.push(mine[urls["state"][mine] == WAITING], urls, self.many)

    def _called(self, names: Sequence[str]) -> I64:
        """The rows of arms of these names."""
        arms, new = self._arms.claim(hashed(names))
        self.arms["value"][arms[new]] = self._kind.opening
        return arms

    def _came(self, lesson: Lesson, pages: I64, released: Mask) -> None:
        """What was fetched is done, also where it was redirected to; what was given back waits again."""
        again = pages[released]
        again = again[self.urls["arm"][again] >= 0]
        targets = self._urls.find(lesson.fetches.target_id)
        done = np.concatenate([pages[~released], targets[(targets >= 0) & ~released]])
        self._line.remove(done)
        evidence.mark(self.urls, done, DONE)
        evidence.mark(self.urls, again, WAITING)
        self._line.push(again, self.urls, self.many)
        self._urls.sheet.changed(done)

    def _keyed(self, rows: I64) -> None:
        """Something else speaks for these URLs: their places within their arms."""
        tie = drawn(self._kind.seed, 0, self.urls["id"][rows])
        self.urls["key"][rows] = self._key(rows) + JITTER * tie
        self._line.move(rows, self.urls)

    def _changed(self, heard: Heard) -> None:
        pages = self.urls["page"][heard.fetched]
        self._urls.sheet.changed(np.concatenate([heard.fetched, heard.linked, pages[pages >= 0]]))
        self._arms.sheet.changed(heard.arms)
