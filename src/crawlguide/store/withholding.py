"""Hosts that a crawl leaves alone for a while, because they are full or fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, I32, I64
    from crawlguide.store.frontier import Frontier


def withhold(frontier: Frontier, hosts: Sequence[str], until: F64) -> None:
    """Keep hosts out, each until its instant."""
    rows = frontier.hosts.rows_of(hosts)
    frontier.queues.fit(0, len(frontier.hosts.rows))
    frontier.any_withheld = True
    _set(frontier, rows, until)


def admit(frontier: Frontier) -> None:
    """Let all in again."""
    held = np.flatnonzero(frontier.hosts.rows["withheld"][: frontier.hosts.end] > -np.inf).astype(np.int32)
    frontier.any_withheld = False
    _set(frontier, held, -np.inf)


def _set(frontier: Frontier, hosts: I32, until: F64 | float) -> None:
    """Their queues are looked at anew, which shuts those that must wait."""
    frontier.hosts.rows["withheld"][hosts] = until
    frontier.queues.open(hosts)
    frontier.changes.hosts(hosts)


def withheld(frontier: Frontier, rows: I64, until: float) -> I32:
    """Which hosts of these rows are kept out longer than `until`."""
    hosts = np.unique(frontier.table["host"][rows])
    held: I32 = hosts[frontier.hosts.rows["withheld"][hosts] > until]
    return held
