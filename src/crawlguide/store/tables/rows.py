"""The records that columns are made of, for a URL, a host and a politeness queue, and the states of a URL.

The names of fields are written into data folders: they stay as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crawlguide.core.kernels import f64s, i64s, named_tuple, records

QUEUED, LEASED, DONE, DROPPED, FREE = 0, 1, 2, 3, 4
STATES = ("queued", "leased", "done", "dropped")

ROW = np.dtype(
    [
        ("sequence", np.int64),  # number of its discovery within the crawl
        ("discovered", np.float64),
        ("fetched", np.float64),  # NaN: never
        ("due", np.float64),  # waits for this instant instead of its turn, NaN: for its turn
        ("priority", np.float64),  # at rest
        ("parent_sum", np.float64),  # of the relevance of all pages known to link here
        ("parent_best", np.float64),
        ("given", np.float64),  # manual priority, NaN: none
        ("relevance", np.float64),  # of its last fetch, NaN: unknown
        ("newest_in", np.uint64),  # id of the page with the newest link that leads here, 0: none
        ("outs", np.int32),  # links it was last seen to hold
        ("parents", np.int32),
        ("host", np.int32),  # row in the crawl's hosts
        ("arm", np.int32),
        ("stamp", np.int32),  # the last page that was counted as a parent
        ("depth", np.int16),
        ("max_depth", np.int16),  # -1: no bound of its own
        ("status", np.int16),  # of its last fetch, 0: none
        ("tries", np.uint8),  # failed tries since its last success
        ("state", np.uint8),
        ("counted", np.uint8),  # among the pages of its domain
        ("noted", np.uint8),  # metadata came with it
        ("reason", np.uint8),  # why dropped: a number in the crawl's list of reasons
    ],
    align=True,
)

POLITENESS = np.dtype(
    [
        ("last", np.float64),  # instant of the newest slot granted
        ("next_fetch", np.float64),
        ("blocked", np.float64),  # Retry-After, back-off or an operator's block ends then
        ("delay", np.float64),  # its own delay beside those of crawls; NaN: none
        ("backoff", np.float64),  # seconds; doubles on 429 and 503, halves on success
        ("median_ms", np.float64),
        ("fetches", np.int64),
        ("failures", np.int64),
        ("leases", np.int32),
        ("limit", np.int32),  # leases at once, 0: no limit
        ("crawls", np.int32),  # how many crawls know the queue
        ("timed", np.int32),
        ("recent_ms", np.float32, 15),  # a ring of the newest values
    ],
    align=True,
)

ASSIGNED = np.dtype(  # what leasing a URL changes in its own row, its politeness queue's and its domain's
    [
        ("last", np.float64),
        ("next_fetch", np.float64),
        ("domain_pages", np.int64),
        ("queue", np.int32),
        ("domain", np.int32),
        ("leases", np.int32),
        ("state", np.uint8),
    ],
    align=True,
)

HOST = np.dtype(
    [
        ("pace", np.int32),  # row of its politeness queue
        ("domain", np.int32),  # row in the crawl's domains
        ("pages", np.int64),  # fetched well
        ("failures", np.int64),
        ("errors", np.int64),  # failures that are the host's and not the URL's: no answer, 429, 5xx
        ("judged", np.int64),
        ("relevance_sum", np.float64),
        ("withheld", np.float64),  # kept out until then
        ("urls", np.int32),  # rows that belong to it
        ("weighed", np.int32),
        ("median_bytes", np.float64),  # of the newest good fetches; NaN: none yet
        ("recent_bytes", np.float32, 15),
    ],
    align=True,
)


class Tables(NamedTuple):
    """The columns that most kernels work on. They grow in place, so one tuple serves a frontier all its life."""

    rows: np.ndarray[Any, Any]
    hosts: np.ndarray[Any, Any]
    politeness: np.ndarray[Any, Any]
    opens: np.ndarray[Any, Any]  # per politeness queue: when it may be fetched again
    domain_pages: np.ndarray[Any, Any]  # per registrable domain: fetched well or leased


TABLES = named_tuple(Tables, records(ROW), records(HOST), records(POLITENESS), f64s, i64s)
