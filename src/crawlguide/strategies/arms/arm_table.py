"""The table of a strategy with arms: the URLs it knows, what speaks for each of them, and what every arm has paid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.columns import texts
from crawlguide.core.kernels import f64s, i64s, kernel, nothing, one_f64, one_i64, records, u8s
from crawlguide.core.tables import rows_of
from crawlguide.strategies.arms.arm_queues import ArmQueues
from crawlguide.strategies.arms.naming import hashed
from crawlguide.strategies.arms.records import ARM, ASSIGNED, CRAWL, DONE, DROPPED, URL, WAITING
from crawlguide.strategies.shared.draws import uniform_by_id
from crawlguide.strategies.shared.learning import RecordTable, outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crawlguide.core.notebook import Notebook, Records
    from crawlguide.core.tables import F64, I64, U64, Mask
    from crawlguide.core.types import Batch, Lesson
    from crawlguide.strategies.arms.link_features import Scan
    from crawlguide.strategies.arms.naming import Naming

TIE = 1e-7  # ties between URLs are decided at random, whatever the order in which they came
UNKNOWN = 0.5  # a URL without a record (imported, say) is expected to be worth so much less
FIRST_TRIES = 4.0  # arms that have to be tried before their mean first reward is believed
PARKED = 1e-3  # the largest value of a parked URL
DEEPEST = 255


@dataclass(frozen=True)
class ArmSettings:
    """What distinguishes one strategy with arms from another."""

    prefix: str  # of its sheets
    naming: Naming
    scan: Scan
    seed: int
    opening: float = 0.0  # the value of a new arm
    decay: float = 1.0  # how much of what an arm has paid still counts after its next fetch
    active: int = 16  # URLs of an arm that are ranked by its value; the others are parked
    merging: Callable[[Sequence[str], I64], list[str]] | None = None  # merges the arm names of each page's links


@dataclass(frozen=True)
class ArmLesson:
    """A lesson in rows of the table."""

    fetched: I64
    reward: F64  # NaN: not judged
    counted: Mask  # fetches whose reward is learned from
    arms: I64  # arms that changed, each once


class ArmTable:
    """Goes on from what lies in a notebook, and writes into it.

    `key` orders the URLs within their arm, from 0; `value` compares them with those of other arms, from 0 to 1.
    """

    def __init__(
        self, settings: ArmSettings, notebook: Notebook, key: Callable[[I64], F64], value: Callable[[I64], F64]
    ) -> None:
        self._settings, self._key, self._value = settings, key, value
        self._urls = RecordTable(notebook.sheet(f"{settings.prefix}urls", URL))
        self._arms = RecordTable(notebook.sheet(f"{settings.prefix}arms", ARM))
        self._crawl = notebook.sheet(f"{settings.prefix}all", CRAWL)
        self.is_new = not self._crawl.used
        self._crawl.fit(1)
        self._queues = ArmQueues(settings.active)
        self._queues.load(self.urls[: self._urls.sheet.used], self.count)

    @property
    def urls(self) -> Records:
        return self._urls.records

    @property
    def arms(self) -> Records:
        return self._arms.records

    @property
    def count(self) -> int:
        """How many arms there are."""
        return self._arms.sheet.used

    @property
    def crawl(self) -> Any:
        """The one record of the crawl; whoever takes it may change it."""
        self._crawl.changed(np.zeros(1, np.int64))
        return self._crawl.rows[0]

    @property
    def waiting(self) -> int:
        """How many URLs wait."""
        return int(self._queues.sizes.sum())

    def rows(self, ids: U64) -> I64:
        """The row of each URL, -1 where it is unknown or has no arm."""
        rows = self._urls.find(ids)
        if self.count:
            rows[self.urls["arm"][rows] < 0] = -1  # for a row of -1 this reads some other record, which does no harm
        return rows

    def predict(self, batch: Batch) -> F64:
        """The value of each row of a batch, by its arm if it is active; parked URLs come last."""
        unknown: F64 = UNKNOWN * (batch.parent_sum + 0.5) / (batch.parents + 2.0)
        if not self.count:
            return unknown
        rows = self.rows(batch.id)
        by_arm, urls = self._value(rows), rows_of(self.urls, rows)
        parked = (urls["state"] == WAITING) & (urls["key"] < self.arms["floor"][urls["arm"]])
        value = np.where(parked, PARKED * np.minimum(urls["key"], 1.0), by_arm)
        value = np.where(urls["front"] == 1, 1.0 - PARKED * (1.0 - by_arm), value)
        return np.where(rows < 0, unknown, np.clip(value, 0.0, 1.0))

    def assigned(self, batch: Batch) -> None:
        """These rows went to a crawler and wait no longer."""
        rows = self._urls.find(batch.id)
        rows = rows[rows >= 0]
        self._queues.remove(rows)
        set_state(self.urls, rows, ASSIGNED)
        self._urls.sheet.changed(rows)

    def learn(self, lesson: Lesson) -> ArmLesson:
        """Learn everything that a lesson says of URLs, pages and arms."""
        outcome, links = outcomes(lesson), lesson.links
        pages, new_pages = self._urls.claim(lesson.fetches.id)
        rows, new_rows = self._urls.claim(links.id)
        self._queues.fit(self.urls, self.count)  # also for pages on which nothing was found
        self._blank(np.concatenate([pages[new_pages], rows[new_rows]]))
        self._add_links(lesson, rows, new_rows, pages)
        self._mark_fetched(lesson, pages, outcome.released)
        count_parents(self.urls, rows, links.parent, np.nan_to_num(outcome.reward), int(self.crawl["counted"]))
        self._crawl.rows["counted"] += len(pages) + 1
        failed, late = outcome.failed.view(np.uint8), outcome.late.view(np.uint8)
        credit(self.urls, self.arms, self._crawl.rows, pages, outcome.reward, failed, late, self._settings.decay)
        self._set_keys(np.unique(rows))
        arms = self.urls["arm"][np.concatenate([rows, pages])]
        arms = np.unique(arms[arms >= 0]).astype(np.int64)
        finders = self.urls["page"][pages]
        self._urls.sheet.changed(np.concatenate([pages, rows, finders[finders >= 0]]))
        self._arms.sheet.changed(arms)
        return ArmLesson(pages, outcome.reward, outcome.counted, arms)

    def to_rank(self, arms: I64, changed: Mask) -> U64:
        """URLs to rank again: those of arms whose value `changed`, and those that became active or parked."""
        rows = self._queues.set_floors(self.arms, arms, changed)
        self._arms.sheet.changed(arms)
        return self.urls["id"][rows]

    def expected_first_reward(self, prior: float) -> float:
        """What an arm that was never tried is expected to pay: what others paid when they were tried first."""
        crawl = self._crawl.rows[0]
        return float((crawl["paid"] + FIRST_TRIES * prior) / (crawl["tried"] + FIRST_TRIES))

    def nonempty(self) -> I64:
        """The arms of which something waits."""
        return np.flatnonzero(self._queues.sizes[: self.count])

    def best_to_front(self, arm: int) -> U64:
        """The best URL of an arm goes before all others."""
        row = self._queues.first(arm)
        self.urls["front"][row] = 1
        self._urls.sheet.changed(np.array([row]))
        return self.urls["id"][row : row + 1]

    def _blank(self, rows: I64) -> None:
        urls = self.urls
        urls["arm"][rows], urls["page"][rows], urls["worth"][rows] = -1, -1, np.nan

    def _add_links(self, lesson: Lesson, rows: I64, new: Mask, pages: I64) -> None:
        """New links get an arm, and wait in its queue unless they were dropped when they were found."""
        links = lesson.links.take(new)
        if not len(links):
            return
        page_hosts = [addresses.queue(url) for url in lesson.fetches.url]
        homes = texts(
            [host if page < 0 else page_hosts[page] for host, page in zip(links.host, links.parent, strict=True)]
        )
        names = self._settings.naming(links.url.tolist(), links.host.tolist(), homes.tolist())
        if self._settings.merging is not None:
            names = self._settings.merging(names, links.parent)
        added, urls = rows[new], self.urls
        urls["arm"][added] = self._arms_named(names)
        read = self._settings.scan.read(links.url.tolist(), links.anchor.tolist())
        urls["words"][added], urls["folders"][added], urls["query"][added] = read
        urls["near"][added] = links.host == homes
        urls["state"][added] = [DROPPED if reason else WAITING for reason in links.reason]
        set_finder(urls, added, links.parent, pages)
        self._queues.push(added[urls["state"][added] == WAITING], urls, self.count)

    def _arms_named(self, names: Sequence[str]) -> I64:
        """The rows of arms of these names."""
        arms, new = self._arms.claim(hashed(names))
        self.arms["value"][arms[new]] = self._settings.opening
        return arms

    def _mark_fetched(self, lesson: Lesson, pages: I64, released: Mask) -> None:
        """What was fetched is done, also where it was redirected to; what was released waits again."""
        again = pages[released]
        again = again[self.urls["arm"][again] >= 0]
        targets = self._urls.find(lesson.fetches.target_id)
        done = np.concatenate([pages[~released], targets[(targets >= 0) & ~released]])
        self._queues.remove(done)
        set_state(self.urls, done, DONE)
        set_state(self.urls, again, WAITING)
        self._queues.push(again, self.urls, self.count)
        self._urls.sheet.changed(done)

    def _set_keys(self, rows: I64) -> None:
        """The evidence for these URLs changed, and with it their places within their arms."""
        tie = uniform_by_id(self._settings.seed, 0, self.urls["id"][rows])
        self.urls["key"][rows] = self._key(rows) + TIE * tie
        self._queues.move(rows, self.urls)


URLS, ARMS, CRAWLS = records(URL), records(ARM), records(CRAWL)


@kernel(nothing(URLS, i64s, i64s, i64s))
def set_finder(urls, rows, parents, pages):  # type: ignore[no-untyped-def]
    """New links: on which page they were found (`parents`: which of `pages`, -1: a seed), and how far from a seed."""
    for number in range(len(rows)):
        url, parent = urls[rows[number]], parents[number]
        url.page = -1 if parent < 0 else pages[parent]
        url.depth = 0 if parent < 0 else min(urls[pages[parent]].depth + 1, DEEPEST)


@kernel(nothing(URLS, i64s, i64s, f64s, one_i64))
def count_parents(urls, rows, parents, reward, counted):  # type: ignore[no-untyped-def]
    """Each page counts once for a URL it links to. A seed counts as linked from a page that was worth 1."""
    for number in range(len(rows)):
        url, parent = urls[rows[number]], parents[number]
        mark = np.uint32(counted + parent + 2)
        if url.counted == mark:
            continue
        url.counted = mark
        paid = 1.0 if parent < 0 else reward[parent]
        url.parents += 1.0
        url.total += paid
        url.best = max(url.best, paid)


@kernel(nothing(URLS, ARMS, CRAWLS, i64s, f64s, u8s, u8s, one_f64))
def credit(urls, arms, crawls, rows, reward, failed, late, decay):  # type: ignore[no-untyped-def]
    """Rewards of fetches go to their arms and to the pages on which they were found; NaN: not judged.

    Late feedback replaces the reward that was counted before.
    """
    for number in range(len(rows)):
        url, paid = urls[rows[number]], reward[number]
        if np.isnan(paid):
            continue
        before = url.worth if late[number] and not np.isnan(url.worth) else np.nan
        again = not np.isnan(before)
        change = paid - before if again else paid
        url.worth = paid
        if url.arm >= 0:
            arm = arms[url.arm]
            if arm.fetches == 0:
                crawls[0].tried += 1.0
                crawls[0].paid += paid
            if not again:
                arm.plays, arm.reward, arm.failed = decay * arm.plays + 1.0, decay * arm.reward, decay * arm.failed
                arm.fetches += 1
            arm.reward += change
            arm.failed += failed[number]
        if url.page >= 0:
            page = urls[url.page]
            page.tried += 0.0 if again else 1.0
            page.paid += change


@kernel(nothing(URLS, i64s, one_i64))
def set_state(urls, rows, state):  # type: ignore[no-untyped-def]
    """A new state; a URL that waits no longer gives up its place in front."""
    for row in rows:
        if row >= 0 and not (state == ASSIGNED and urls[row].state == DONE):
            urls[row].state = state
            if state != WAITING:
                urls[row].front = 0
