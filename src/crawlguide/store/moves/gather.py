"""Which rows an ask looks at: the best that may be fetched, those of the crawler's focus, and those named besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.columns import among
from crawlguide.store.moves.withhold import withheld
from crawlguide.store.tables.rows import QUEUED

if TYPE_CHECKING:
    from crawlguide.core.tables import I64, U64, Mask
    from crawlguide.core.types import Ask
    from crawlguide.store.frontier import Frontier

FOCUS_HOSTS = 20
FOCUS_PER_HOST = 10


def gathered(frontier: Frontier, ask: Ask, limit: int, until: float, per_host: int, also: U64 | None = None) -> I64:
    """The focus first, then the best, then those named in `also`; each once, of hosts that open by `until`."""
    rows = _best(frontier, limit, per_host, until)
    focus = _focus(frontier, ask, until)
    if len(focus):
        rows = np.concatenate([focus, rows[~_among(rows, focus)]])
    if also is not None and len(also):
        more = _waiting(frontier, also, until)
        rows = np.concatenate([rows, more[~_among(more, rows)]])
    return rows


def _among(rows: I64, others: I64) -> Mask:
    return among(rows.astype(np.uint64), others.astype(np.uint64))


def _waiting(frontier: Frontier, ids: U64, until: float) -> I64:
    """The rows of those that wait on hosts that open by then."""
    rows = np.unique(frontier.index.find(ids))
    rows = rows[rows >= 0]
    rows = rows[(frontier.table["state"][rows] == QUEUED) & np.isnan(frontier.table["due"][rows])]
    hosts = frontier.table["host"][rows]
    opens = np.maximum(frontier.hosts.rows["withheld"][hosts], frontier.pace.opens[frontier.hosts.pace_row[hosts]])
    waiting: I64 = rows[opens <= until]
    return waiting


def _focus(frontier: Frontier, ask: Ask, until: float) -> I64:
    """Some rows of the hosts the crawler works on, so that they are considered whatever their rank."""
    hosts = [host for name in sorted(ask.focus) if (host := frontier.hosts.find(name)) is not None]
    hosts += frontier.hosts.of_domain(ask.domain_hash) if ask.domain_hash else []
    allowed = [host for host in hosts[:FOCUS_HOSTS] if _opens(frontier, host) <= until]
    found = [frontier.queues.of_host(host, FOCUS_PER_HOST) for host in allowed]
    return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)


def _opens(frontier: Frontier, host: int) -> float:
    held = float(frontier.hosts.rows["withheld"][host])
    return max(held, float(frontier.pace.opens[frontier.hosts.pace_row[host]]))


def _best(frontier: Frontier, limit: int, per_host: int, until: float) -> I64:
    """The best waiting rows of hosts that open by `until` and are not withheld longer, best first."""
    while True:
        found = frontier.queues.best(limit, per_host, until, frontier.pace.opens, frontier.hosts.pace_row)
        rows = found.astype(np.int64)
        held = withheld(frontier, rows, until) if frontier.any_withheld else np.zeros(0, np.int32)
        if not len(held):
            return rows
        frontier.queues.shut(held, frontier.hosts.rows["withheld"][held])
