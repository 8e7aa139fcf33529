"""What a crawl forgets: what it is told to, and pages that were fetched or dropped long ago, or are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.store import views
from crawlguide.store.tables.rows import DONE, DROPPED, LEASED

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, I64
    from crawlguide.store.frontier import Frontier

SWEPT_AT_ONCE = 20_000


def sweep(frontier: Frontier, at: float) -> int:
    """Look at the next few rows and forget what is too old; returns how many. Over quota the oldest part goes."""
    start = frontier.swept if frontier.swept < frontier.index.rows else 0
    frontier.swept = start + SWEPT_AT_ONCE
    rows, last = _past(frontier, start)
    gone = last < at - frontier.quota.keep_done_s
    over = int(frontier.states[DONE] + frontier.states[DROPPED]) - frontier.quota.done
    if over > 0:
        gone |= _oldest(last, over / (over + frontier.quota.done))
    if gone.any():
        frontier.counts["forgotten"] += int(gone.sum())
        frontier.forget(rows[gone])
    return int(gone.sum())


def purge(frontier: Frontier, state: str | None, host: str | None, start: int) -> int:
    """Forget the matching rows among the next few, except leased ones; returns how many."""
    rows = views.matching(frontier, state, host, start, start + views.SCANNED_AT_ONCE)
    rows = rows[frontier.table["state"][rows] != LEASED]
    if len(rows):
        frontier.forget(rows)
    return len(rows)


def _past(frontier: Frontier, start: int) -> tuple[I64, F64]:
    """Rows that are done or dropped and will not be fetched again by themselves, and when they last mattered."""
    table = frontier.table[start : min(start + SWEPT_AT_ONCE, frontier.index.rows)]
    past = ((table["state"] == DONE) | (table["state"] == DROPPED)) & np.isnan(table["due"])
    last = np.where(np.isnan(table["fetched"]), table["discovered"], table["fetched"])
    return start + np.flatnonzero(past), last[past]


def _oldest(last: F64, fraction: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The oldest part of these instants: every piece of the table gives its share."""
    count = int(np.ceil(fraction * len(last)))
    gone = np.zeros(len(last), np.bool_)
    gone[np.argsort(last, kind="stable")[:count]] = True
    return gone
