"""The pages that a crawl fetches again, by their id: how often they change, what they held, and what they weigh.

Of a page 48 bytes are kept for its rate and schedule (`PAGE` and `freshness.rates.PAGE`), 16 for its content, all in
sheets of the crawl's notebook, so that they are on the disk with the fetch that they follow from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from crawlguide.core.lossy_table import LossyTable
from crawlguide.freshness import Rates
from crawlguide.store.tables.index import Index

if TYPE_CHECKING:
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import I64, U64

MOST_PAGES = 20_000_000  # as many as a crawl keeps that are done
MOST_NAMED = 1 << 18  # copies of which is known how their servers named them
MOST_SAMPLED = 50_000
LONGEST_TAG = 52

PAGE = np.dtype(
    [
        ("key", np.uint64),  # id of its URL; 0: the row is free
        ("weight", np.float32),
        ("promise", np.uint8),  # number of the first promise that holds for it, from 1; 0: none
        ("released", np.uint8),  # 1: it waits to be fetched again; 2: and is said to have changed
        ("spare", np.uint16),
    ],
    align=True,
)
CONTENT = np.dtype([("hash", np.uint64), ("sketch", np.uint64)])  # of the last copy; 0: unknown
NAMED = np.dtype(
    [("key", np.uint64), ("modified", np.float64), ("length", np.int64), ("tag", np.uint8, LONGEST_TAG)], align=True
)


class KnownPages:
    def __init__(self, notebook: Notebook) -> None:
        self.rates = Rates()
        self.rates.remember(notebook)
        self.pages, self.contents = notebook.sheet("fr-pages", PAGE), notebook.sheet("fr-held", CONTENT)
        self.named = LossyTable(NAMED, notebook.sheet("fr-named", NAMED), MOST_NAMED)
        self._index = Index()
        keys = self.pages.rows["key"][: self.pages.used]
        self._index.ids = keys.copy()
        self._index.load(len(keys), np.flatnonzero(keys))

    def __len__(self) -> int:
        return self._index.live

    def find(self, ids: U64) -> I64:
        """The row of each page; -1 for those that are not known."""
        return self._index.find(ids)

    def claim(self, ids: U64) -> I64:
        """The row of each page; -1 for new ones once there are too many."""
        if len(self) + len(ids) > MOST_PAGES:
            return self.find(ids)
        rows, fresh = self._index.claim(ids)
        self.pages.fit(self._index.rows)
        self.contents.fit(self._index.rows)
        self.rates.fit(self._index.rows)
        new = fresh > 0
        self.pages.rows[rows[new]] = 0
        self.pages.rows["key"][rows[new]] = ids[new]
        self.pages.rows["weight"][rows[new]] = 1.0
        self.contents.rows[rows[new]] = 0
        self.pages.changed(rows)
        self.contents.changed(rows)
        return rows

    def forget(self, rows: I64) -> None:
        """Their rows serve other pages."""
        self.rates.forget(rows)
        self._index.forget(rows)
        self.pages.rows[rows] = 0
        self.pages.changed(rows)

    def release(self, rows: I64, released: int) -> None:
        self.pages.rows["released"][rows] = released
        self.pages.changed(rows)

    def sample(self) -> tuple[I64, float]:
        """Some of the rows in use, evenly, and how many each stands for: all of them where there are few."""
        every = -(-self.pages.used // MOST_SAMPLED) or 1
        rows = np.arange(0, self.pages.used, every)
        return rows[(self.pages.rows["key"][rows] > 0) & (self.rates.pages.rows["seen"][rows] > 0)], float(every)

    # how servers named the copies

    def name(self, ids: U64, tags: list[str], modified: list[float]) -> None:
        """As servers told with these copies: an entity tag, "" for none, and when they were modified, NaN: unknown."""
        slots = self.named.claim(ids)
        rows = self.named.rows
        for slot, tag, when in zip(slots.tolist(), tags, modified, strict=True):
            encoded = tag.encode("latin-1", "replace")
            encoded = encoded if len(encoded) <= LONGEST_TAG else b""
            rows["length"][slot], rows["modified"][slot] = len(encoded), when
            rows["tag"][slot, : len(encoded)] = np.frombuffer(encoded, np.uint8)

    def names(self, ids: U64) -> list[tuple[str, float]]:
        """The entity tag and the instant of modification of each copy; "" and NaN where they are not known."""
        slots, rows = self.named.find(ids), self.named.rows
        return [
            ("", np.nan)
            if slot < 0
            else (rows["tag"][slot, : rows["length"][slot]].tobytes().decode("latin-1"), float(rows["modified"][slot]))
            for slot in slots.tolist()
        ]
