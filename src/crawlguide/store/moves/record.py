"""Record: what fetches change about their rows, hosts and politeness queues. Done, retried, redirected, corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crawlguide.core.kernels import (
    allocating_part,
    bools,
    f64s,
    flag,
    i32s,
    kernel,
    named_tuple,
    nothing,
    one_f64,
    one_i64,
    part,
)
from crawlguide.core.outcomes import RELEASED, failures, host_errors, retryables
from crawlguide.core.types import Recorded
from crawlguide.store.crawls import Crawls
from crawlguide.store.moves.discover import UNKNOWN_RELEVANCE
from crawlguide.store.tables.rows import DONE, DROPPED, QUEUED, TABLES

if TYPE_CHECKING:
    from crawlguide.core.tables import U64, Mask, Text
    from crawlguide.core.types import Crawl, Fetches
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.tables.keyspace import Expiring

FIRST_RETRY_S = 10.0
LONGEST_RETRY_S = 3_600.0
LONGEST_BLOCK_S = 86_400.0
LONGEST_BACKOFF_S = 3_600.0
REMEMBERED_S = 86_400.0  # how long a fetch that is told again is recognised
RELEVANT = 0.5
MOST_CHILDREN, MOST_PARENTS = 2_000, 100  # a correction costs no more than so many look-ups


class FetchColumns(NamedTuple):
    """What the host and its politeness queue learn of each fetch."""

    status: np.ndarray[Any, Any]
    failed: np.ndarray[Any, Any]
    is_host_error: np.ndarray[Any, Any]
    elapsed_ms: np.ndarray[Any, Any]
    bytes: np.ndarray[Any, Any]
    retry_after_s: np.ndarray[Any, Any]


FETCHES = named_tuple(FetchColumns, i32s, bools, bools, f64s, f64s, f64s)


class Recording(Crawls):
    async def record(
        self, crawl: Crawl, fetches: Fetches, at: float, max_retries: int, trains: bool = True
    ) -> Recorded:
        self.before_change(at)
        data = self.data(crawl)
        data.reported.expire(at, 2 * len(fetches))
        retryable = retryables(fetches)
        columns = FetchColumns(
            fetches.status,
            failures(fetches),
            host_errors(fetches),
            fetches.elapsed_ms,
            fetches.bytes,
            fetches.retry_after_s,
        )
        taught = np.ones(len(fetches), np.bool_)
        record = _Record(data.frontier, data.reported, fetches, columns, retryable, at, max_retries, trains, taught)
        skipped = [record.apply(number) for number in range(len(fetches))]  # in order: two may be of one URL
        return Recorded(skipped, _linked_from(data.frontier, fetches.target_id), taught)


def _linked_from(frontier: Frontier, pages: U64) -> U64:
    """URLs that these pages link to: what the pages' relevance says about them may have changed."""
    rows = frontier.index.find(pages)
    rows = rows[rows >= 0]
    rows = rows[frontier.table["outs"][rows] > 0]
    if not len(rows):
        return np.zeros(0, np.uint64)
    children = np.concatenate([frontier.children(row) for row in rows.tolist()])
    return np.unique(frontier.index.ids[children])


@dataclass(frozen=True)
class _Record:
    """The fetches of one tell, each named by its number, and the frontier they are applied to."""

    frontier: Frontier
    reported: Expiring
    fetches: Fetches
    columns: FetchColumns
    retryable: Mask
    at: float
    max_retries: int
    trains: bool  # also what was never assigned
    taught: Mask  # which of them say something about relevance

    def apply(self, number: int) -> str | None:
        """Apply one fetch; returns why it was skipped, or None."""
        fetches = self.fetches
        row, error = int(self.frontier.index.find(fetches.id[number : number + 1])[0]), fetches.error[number]
        if fetches.status[number] < 0 and not error:
            return self._late_reward(number, row)
        if error == RELEASED:
            return self._released(number, row)
        if self._is_repeated(number):
            return "duplicate"
        self._fetched(number, row if row >= 0 else self._claim(number, fetches.id, fetches.url, fetches.host))
        return None

    def _late_reward(self, number: int, row: int) -> str | None:
        """A downstream signal about a page that was fetched before."""
        if row < 0 or np.isnan(self.frontier.table["fetched"][row]):
            return "never_fetched"
        self.taught[number] = self.trains or not np.isnan(self.frontier.table["relevance"][row])
        if not self.taught[number]:  # of a page that nobody was sent to, as far as is known
            return None
        self._set_relevance(row, min(max(float(self.fetches.reward[number]), 0.0), 1.0))
        return None

    def _released(self, number: int, row: int) -> str | None:
        """A crawler gives one lease back without having fetched."""
        lease = self.frontier.leases.by_row.get(row)
        if lease is None or lease.crawler_id != self.fetches.crawler_id[number]:
            return "not_leased"
        self.frontier.requeue(self.frontier.leases.end([row]))
        return None

    def _is_repeated(self, number: int) -> bool:
        """The same fetch was told before."""
        if not self.fetches.fetch_time[number]:
            return False
        key = f"{self.fetches.id[number]} {self.fetches.fetch_time[number]}"
        if self.reported.get(key, self.at) is not None:
            return True
        self.reported.put(key, b"", self.at + REMEMBERED_S)
        return False

    def _claim(self, number: int, ids: U64, urls: Text, hosts: Text) -> int:
        """A row for a page that was never discovered: what was fetched is recorded all the same."""
        here = slice(number, number + 1)
        rows, new = self.frontier.claim(ids[here], urls[here], hosts[here], self.at)
        if new[0]:
            self.frontier.counts["discovered"] += 1
            self.frontier.table["depth"][rows] = 0
        return int(rows[0])

    def _fetched(self, number: int, row: int) -> None:
        frontier, failed = self.frontier, bool(self.columns.failed[number])
        lease = frontier.leases.by_row.get(row)
        self.taught[number] = self.trains or (lease is not None and lease.crawler_id == self.fetches.crawler_id[number])
        frontier.dirty.row(row)
        strict, taught = bool(lease and lease.strict), bool(self.taught[number])
        count_fetch(number, row, strict, taught, self.at, self.columns, frontier.tables)
        frontier.counts["fetches"] += 1
        frontier.counts["failed"] += failed
        if self.retryable[number] and self._retries(number, row):
            return
        frontier.finish(row)
        frontier.table["tries"][row] = 0
        page = self._redirected(number, row)
        if self.taught[number]:
            self._set_relevance(page, 0.0 if failed else float(self.fetches.relevance[number]))

    def _retries(self, number: int, row: int) -> bool:
        """After a passing failure a row is queued again, later each time, until it has been tried often enough.

        A late failure changes nothing for a row that was dropped, is done, or is leased to another crawler by now.
        """
        frontier, table, who = self.frontier, self.frontier.table, self.fetches.crawler_id[number]
        lease = frontier.leases.by_row.get(row)
        if table["state"][row] in (DROPPED, DONE) or (lease and lease.crawler_id != who):
            return True
        if table["tries"][row] >= self.max_retries:
            return False
        table["tries"][row] += 1
        wait = min(FIRST_RETRY_S * 2.0 ** (int(table["tries"][row]) - 1), LONGEST_RETRY_S)
        here = np.array([row])
        frontier.end_leases([row])
        frontier.queues.remove(here.astype(np.int32))
        frontier.move(here, QUEUED)
        frontier.postpone(here, np.array([self.at + wait]))
        return True

    def _redirected(self, number: int, row: int) -> int:
        """The page the content belongs to: after a redirect both URLs are done."""
        fetches, frontier, table = self.fetches, self.frontier, self.frontier.table
        if fetches.target_id[number] == fetches.id[number]:
            return row
        target = self._claim(number, fetches.target_id, fetches.target_url, fetches.target_host)
        new = np.isnan(table["fetched"][target]) and not table["parents"][target]
        table["depth"][target] = table["depth"][row] if new else min(table["depth"][row], table["depth"][target])
        table["max_depth"][target] = table["max_depth"][row] if new else table["max_depth"][target]
        frontier.dirty.row(target)
        table["status"][target], table["fetched"][target] = max(fetches.status[number], 0), self.at
        frontier.finish(target)
        queue = frontier.politeness.rows[frontier.hosts.queue_row[table["host"][target]]]
        queue["last"] = max(queue["last"], self.at)  # the fetch reached that host no later
        return target

    def _set_relevance(self, row: int, relevance: float) -> None:
        """The page's relevance is known: its host's mean and its children's evidence follow."""
        if np.isnan(relevance):  # nobody knows: what was known stays
            return
        frontier, table = self.frontier, self.frontier.table
        before = float(table["relevance"][row])
        frontier.dirty.row(row)
        table["relevance"][row] = relevance
        frontier.counts["relevant"] += int(relevance >= RELEVANT) - int(before >= RELEVANT)
        host = frontier.hosts.rows[int(table["host"][row])]
        host["relevance_sum"] += relevance - (0.0 if np.isnan(before) else before)
        host["judged"] += np.isnan(before)
        assumed = UNKNOWN_RELEVANCE if np.isnan(before) else before
        if table["outs"][row] and relevance != assumed:
            self._correct_children(row, relevance - assumed, assumed)

    def _correct_children(self, row: int, change: float, before: float) -> None:
        """The children's sum moves by the correction; their best parent may now be this page, or another one."""
        frontier, table = self.frontier, self.frontier.table
        children = np.unique(frontier.children(row))
        frontier.dirty.rows(children)
        table["parent_sum"][children] += change
        lost = children[(table["parent_best"][children] <= before) & (change < 0)]
        table["parent_best"][children] = np.maximum(table["parent_best"][children], before + change)
        for child in lost[:MOST_CHILDREN].tolist():
            parents = frontier.index.find(frontier.parents(child, MOST_PARENTS).parent)
            relevance = table["relevance"][parents[parents >= 0]]
            table["parent_best"][child] = max(np.where(np.isnan(relevance), UNKNOWN_RELEVANCE, relevance), default=0.0)


@allocating_part
def median_with(ring, count, value):  # type: ignore[no-untyped-def]
    """Keep the newest values in a ring; returns their median, which one wrong value cannot move far."""
    ring[count % len(ring)] = value
    newest = np.sort(ring[: min(count + 1, len(ring))])
    return newest[(len(newest) - 1) // 2]


@part
def back_off(queue, status, retry_after_s, at):  # type: ignore[no-untyped-def]
    """Retry-After is obeyed; without it 429 and 503 double the back-off, and a success halves it."""
    busy = status in (429, 503)
    if busy:
        queue.backoff = min(max(2 * queue.backoff, 2.0), LONGEST_BACKOFF_S)
    elif 200 <= status < 400:
        queue.backoff = queue.backoff / 2 if queue.backoff >= 2 else 0.0
    wait = retry_after_s if retry_after_s >= 0 else (queue.backoff if busy else 0.0)
    if wait > 0:
        queue.blocked = max(queue.blocked, at + min(wait, LONGEST_BLOCK_S))


@allocating_part
def measure(number, host, queue, failed, fetches):  # type: ignore[no-untyped-def]
    queue.fetches += 1
    queue.failures += failed
    if fetches.elapsed_ms[number] >= 0:
        queue.median_ms = median_with(queue.recent_ms, queue.timed, fetches.elapsed_ms[number])
        queue.timed += 1
    if fetches.bytes[number] >= 0 and not failed:
        host.median_bytes = median_with(host.recent_bytes, host.weighed, fetches.bytes[number])
        host.weighed += 1


@kernel(nothing(one_i64, one_i64, flag, flag, one_f64, FETCHES, TABLES))
def count_fetch(number, row_number, strict, taught, at, fetches, tables):  # type: ignore[no-untyped-def]
    """The deployment learns pace, latency and failures, the crawl pages, failures and sizes, the row its status.

    Where a fetch teaches nothing, its teller may have made it up: pace and sizes stay as they were.
    Under strict politeness the delay counts from the telling: the fetch reached the host no later.
    """
    row = tables.rows[row_number]
    host = tables.hosts[row.host]
    queue = tables.politeness[host.pace]
    failed = fetches.failed[number]
    if strict:
        queue.last = max(queue.last, at)
    if taught:
        measure(number, host, queue, failed, fetches)
        back_off(queue, fetches.status[number], fetches.retry_after_s[number], at)
        tables.opens[host.pace] = max(queue.blocked, queue.next_fetch)
    if failed:
        host.failures += 1
    else:
        host.pages += 1
        if not row.counted:
            row.counted = 1
            tables.domain_pages[host.domain] += 1
    host.errors += fetches.is_host_error[number]
    row.status = max(fetches.status[number], 0)
    row.fetched = at
