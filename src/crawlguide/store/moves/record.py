"""What a told fetch changes about its row, its host and its politeness queue; and what the end of a lease does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from crawlguide.core.columns import texts
from crawlguide.core.kernels import (
    allocating_part,
    f64s,
    flag,
    i32s,
    i64s,
    kernel,
    nothing,
    one_f64,
    one_i64,
    part,
    records,
)
from crawlguide.core.outcomes import RELEASED, blames_host, is_failure, is_retryable
from crawlguide.core.types import Recorded
from crawlguide.store.moves import lease as leasing
from crawlguide.store.moves.discover import UNKNOWN_RELEVANCE
from crawlguide.store.tables.rows import DONE, DROPPED, HOST, PACE, QUEUED, ROW

if TYPE_CHECKING:
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Fetches
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.tables.expiring import Kept

LONGEST_BLOCK_S = 86_400.0
LONGEST_BACKOFF_S = 3_600.0


@allocating_part
def remembered(ring, count, value):  # type: ignore[no-untyped-def]
    """Keep the newest values in a ring; returns their median, which one liar cannot move far."""
    ring[count % len(ring)] = value
    newest = np.sort(ring[: min(count + 1, len(ring))])
    return newest[(len(newest) - 1) // 2]


@part
def slow_down(queue, status, retry_after_s, at):  # type: ignore[no-untyped-def]
    """Retry-After is obeyed; without it 429 and 503 double the back-off, and a success halves it."""
    busy = status in (429, 503)
    if busy:
        queue.backoff = min(max(2 * queue.backoff, 2.0), LONGEST_BACKOFF_S)
    elif 200 <= status < 400:
        queue.backoff = queue.backoff / 2 if queue.backoff >= 2 else 0.0
    wait = retry_after_s if retry_after_s >= 0 else (queue.backoff if busy else 0.0)
    if wait > 0:
        queue.blocked = max(queue.blocked, at + min(wait, LONGEST_BLOCK_S))


@kernel(
    nothing(
        one_i64, one_i64, flag, flag, flag, one_f64, one_f64, one_f64, one_f64,
        records(ROW), records(HOST), records(PACE), f64s, i64s,
    )
)  # fmt: skip
def told(  # type: ignore[no-untyped-def]
    row_number, status, failed, is_the_hosts, strict, elapsed_ms, size, retry_after_s, at,
    table, hosts, pace, opens, domain_pages,
):  # fmt: skip
    """The deployment learns pace, latency and failures, the crawl pages and failures, the row its status.

    Under strict politeness the delay counts from the telling: the fetch reached the host no later.
    """
    row = table[row_number]
    host = hosts[row.host]
    queue = pace[host.pace]
    if strict:
        queue.last = max(queue.last, at)
    queue.fetches += 1
    queue.failures += failed
    if elapsed_ms >= 0:
        queue.median_ms = remembered(queue.recent_ms, queue.timed, elapsed_ms)
        queue.timed += 1
    if size >= 0 and not failed:
        queue.median_bytes = remembered(queue.recent_bytes, queue.weighed, size)
        queue.weighed += 1
    slow_down(queue, status, retry_after_s, at)
    opens[host.pace] = max(queue.blocked, queue.next_fetch)
    if failed:
        host.failures += 1
    else:
        host.pages += 1
        if not row.counted:
            row.counted = 1
            domain_pages[host.domain] += 1
    host.errors += is_the_hosts
    row.status = max(status, 0)
    row.fetched = at


@kernel(nothing(i64s, records(ROW), records(HOST), records(PACE), i64s, i32s))
def leave(rows, table, hosts, pace, domain_pages, left):  # type: ignore[no-untyped-def]
    """Leases of these rows ended; `left` receives their hosts.

    What was withheld because of these leases gets a new hearing.
    """
    for number in range(len(rows)):
        host = hosts[table[rows[number]].host]
        left[number] = table[rows[number]].host
        pace[host.pace].leases -= 1
        domain_pages[host.domain] -= 1
        host.withheld = -np.inf


@kernel(nothing(i64s, one_i64, records(ROW), i64s))
def move(rows, state, table, states):  # type: ignore[no-untyped-def]
    """Mark rows, and count how many are in each state."""
    for row in rows:
        states[table[row].state] -= 1
        states[state] += 1
        table[row].state = state


# How told fetches change rows and hosts: done, retried, redirected, corrected.

FIRST_RETRY_S = 10.0
LONGEST_RETRY_S = 3_600.0
REMEMBERED_S = 86_400.0
RELEVANT = 0.5
CHILDREN_LOOKED_AT, PARENTS_LOOKED_AT = 2_000, 100  # a correction costs no more than so many look-ups


class One(NamedTuple):
    """One fetch of a tell: what happened to a URL is a story of its own, told in plain numbers and words."""

    id: int
    url: str
    host: str
    target_id: int
    target_url: str
    target_host: str
    status: int
    error: str
    elapsed_ms: float
    bytes: float
    relevance: float
    reward: float
    retry_after_s: float
    fetch_time: str


@dataclass
class Outcomes:
    """Applies the fetches of one tell to a frontier, one by one."""

    frontier: Frontier
    told: Kept
    crawler_id: str
    at: float
    max_retries: int

    def record(self, fetches: Fetches) -> Recorded:
        columns = (getattr(fetches, name).tolist() for name in One._fields)
        skipped = [self._apply(One._make(values)) for values in zip(*columns, strict=True)]
        return Recorded(skipped, self._changed(fetches))

    def _apply(self, one: One) -> str | None:
        """Apply one fetch; returns why it was skipped, or None."""
        row = int(self.frontier.index.find(np.array([one.id], np.uint64))[0])
        if one.status < 0 and not one.error:
            return self._late(row, one.reward)
        if one.error == RELEASED:
            return None if leasing.give_back(self.frontier, row, self.crawler_id) else "not_leased"
        if self._told_before(one):
            return "duplicate"
        self._fetched(one, row if row >= 0 else self._claim(one.id, one.url, one.host))
        return None

    def _claim(self, key: int, url: str, host: str) -> int:
        """A row for a page that was never discovered: what was fetched is recorded all the same."""
        rows, fresh = self.frontier.claim(np.array([key], np.uint64), texts([url]), texts([host]), self.at)
        row = int(rows[0])
        if fresh[0]:
            self.frontier.counts["discovered"] += 1
            self.frontier.table["depth"][row] = 0
        return row

    def _told_before(self, one: One) -> bool:
        if not one.fetch_time:
            return False
        key = f"{one.id} {one.fetch_time}"
        if self.told.get(key, self.at) is not None:
            return True
        self.told.put(key, b"", self.at + REMEMBERED_S)
        return False

    def _fetched(self, one: One, row: int) -> None:
        failed = is_failure(one.status, one.error)
        self._told(row, one, failed)
        self.frontier.counts["fetches"] += 1
        self.frontier.counts["failed"] += failed
        if failed and is_retryable(one.status, one.error) and self._stays(row):
            return
        leasing.finish(self.frontier, row)
        self.frontier.table["tries"][row] = 0
        self._judged(self._target(row, one), 0.0 if failed else one.relevance)

    def _told(self, row: int, one: One, failed: bool) -> None:
        frontier = self.frontier
        lease, hosts, pace = frontier.leases.by_row.get(row), frontier.hosts, frontier.pace
        frontier.changes.row(row)
        told(
            row, one.status, failed, blames_host(one.status, one.error), bool(lease and lease.strict),
            one.elapsed_ms, one.bytes, one.retry_after_s, self.at,
            frontier.table, hosts.rows, pace.rows, pace.opens, hosts.domain_pages,
        )  # fmt: skip

    def _target(self, row: int, one: One) -> int:
        """The page the content belongs to: after a redirect both URLs are done."""
        if one.target_id == one.id:
            return row
        target, table = self._claim(one.target_id, one.target_url, one.target_host), self.frontier.table
        new = np.isnan(table["fetched"][target]) and not table["parents"][target]
        table["depth"][target] = table["depth"][row] if new else min(table["depth"][row], table["depth"][target])
        table["max_depth"][target] = table["max_depth"][row] if new else table["max_depth"][target]
        self._note(target, one.status)
        leasing.finish(self.frontier, target)
        self.frontier.pace.ended(int(self.frontier.hosts.pace_row[table["host"][target]]), self.at)
        return target

    def _note(self, row: int, status: int) -> None:
        self.frontier.changes.row(row)
        self.frontier.table["status"][row] = max(status, 0)
        self.frontier.table["fetched"][row] = self.at

    def _stays(self, row: int) -> bool:
        """After a passing failure a row is queued again, later each time, until it has been tried often enough.

        A late failure changes nothing for a row that was dropped, is done, or is with another crawler by now.
        """
        frontier, table = self.frontier, self.frontier.table
        lease = frontier.leases.by_row.get(row)
        if table["state"][row] in (DROPPED, DONE) or (lease and lease.crawler_id != self.crawler_id):
            return True
        if table["tries"][row] >= self.max_retries:
            return False
        table["tries"][row] += 1
        wait = min(FIRST_RETRY_S * 2.0 ** (int(table["tries"][row]) - 1), LONGEST_RETRY_S)
        here = np.array([row])
        leasing.end(frontier, [row])
        frontier.queues.remove(here.astype(np.int32))
        frontier.move(here, QUEUED)
        frontier.postpone(here, np.array([self.at + wait]))
        return True

    def _judged(self, row: int, relevance: float) -> None:
        """The page's relevance is known: its host's mean and its children's evidence follow."""
        if np.isnan(relevance):  # nobody knows: what was known stays
            return
        frontier, table = self.frontier, self.frontier.table
        before = float(table["relevance"][row])
        frontier.changes.row(row)
        table["relevance"][row] = relevance
        frontier.counts["relevant"] += int(relevance >= RELEVANT) - int(before >= RELEVANT)
        host = frontier.hosts.rows[int(table["host"][row])]
        host["relevance_sum"] += relevance - (0.0 if np.isnan(before) else before)
        host["judged"] += np.isnan(before)
        shift = _known(relevance) - _known(before)
        if table["outs"][row] and shift:
            self._shift_children(row, shift, _known(before))

    def _shift_children(self, row: int, shift: float, before: float) -> None:
        """The children's sum moves by the correction; their best parent may now be this page, or another one."""
        frontier, table = self.frontier, self.frontier.table
        children = np.unique(frontier.children(row))
        frontier.changes.rows(children)
        table["parent_sum"][children] += shift
        lost = children[(table["parent_best"][children] <= before) & (shift < 0)]
        table["parent_best"][children] = np.maximum(table["parent_best"][children], before + shift)
        for child in lost[:CHILDREN_LOOKED_AT].tolist():
            parents = frontier.index.find(frontier.parents(child, PARENTS_LOOKED_AT).parent)
            relevance = table["relevance"][parents[parents >= 0]]
            table["parent_best"][child] = max(np.where(np.isnan(relevance), UNKNOWN_RELEVANCE, relevance), default=0.0)

    def _late(self, row: int, reward: float) -> str | None:
        """A downstream signal about a page that was fetched before."""
        if row < 0 or np.isnan(self.frontier.table["fetched"][row]):
            return "never_fetched"
        self._judged(row, min(max(reward, 0.0), 1.0))
        return None

    def _changed(self, fetches: Fetches) -> U64:
        """Waiting URLs that are linked from pages whose relevance these fetches told or corrected."""
        frontier = self.frontier
        rows = frontier.index.find(fetches.target_id)
        rows = rows[rows >= 0]
        rows = rows[frontier.table["outs"][rows] > 0]
        if not len(rows):
            return np.zeros(0, np.uint64)
        children = np.concatenate([frontier.children(row) for row in rows.tolist()])
        return np.unique(frontier.index.ids[children])


def _known(relevance: float) -> float:
    return UNKNOWN_RELEVANCE if np.isnan(relevance) else relevance
