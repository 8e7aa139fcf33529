"""The reward of a fetch, from which strategies learn: gains less penalties, by the weights of the crawl's goal.

    sum   = relevance + novelty + change − error − duplicate − cost, each times its weight
    reward = (sum − worst) / (best − worst), in 0…1

Where relevance has a weight, an ordinary page is new and off topic and is worth nothing; novelty is what a page loses
that brings nothing new. Where it has none, novelty is what a new page gains. A downstream reward replaces the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xxhash

from crawlguide.core.lossy_table import LossyTable
from crawlguide.core.notebook import Notebook
from crawlguide.core.outcomes import failures, releases

if TYPE_CHECKING:
    from crawlguide.core.definition import Reward
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Fetches

SLOW_MS, HEAVY_BYTES = 5_000.0, 1_048_576.0  # of a fetch with full cost
MOST = 1 << 20  # pages, and contents, in the tables
PAGE = np.dtype([("key", np.uint64), ("content", np.uint64)])  # of a page when it was fetched last
CONTENT = np.dtype([("key", np.uint64), ("owner", np.uint64)])  # the page that had it first


class Contents(NamedTuple):
    """How the content of each fetch compares with earlier ones; all False where no content hash was reported."""

    reported: Mask
    new: Mask  # no page had it before
    changed: Mask  # the page had another before
    copied: Mask  # another page had it first
    refetched: Mask  # the page's content before is known


class Rewards:
    """Keeps in the crawl's notebook which contents were seen, and the content of each page."""

    def __init__(self, weights: Reward) -> None:
        self.weights, self.penalties = weights, penalties(weights)
        self._bounds = bounds(weights, self.penalties)
        self._compares = bool(weights.novelty or weights.change or self.penalties.duplicate)
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._pages = LossyTable(PAGE, notebook.sheet("rw-pages", PAGE), MOST)
        self._contents = LossyTable(CONTENT, notebook.sheet("rw-known", CONTENT), MOST)

    def inherit(self, before: Rewards) -> None:
        """Go on with what was seen before the crawl was redefined."""
        self._pages, self._contents = before._pages, before._contents

    def hear(self, fetches: Fetches) -> tuple[F64, Mask]:
        """What each fetch was worth, in 0…1 (NaN where nobody knows, or the lease was released); and which pages were
        fetched before with a known content, where it counts whether that has changed.
        """
        failed = failures(fetches)
        contents = self._compared(fetches, failed)
        reward = self._reward(fetches, failed, contents)
        reward = np.where(np.isnan(fetches.reward), reward, np.minimum(np.maximum(fetches.reward, 0.0), 1.0))
        reward[releases(fetches)] = np.nan
        return reward, contents.refetched & bool(self.weights.change)

    def _reward(self, fetches: Fetches, failed: Mask, contents: Contents) -> F64:
        weights, penalties, (best, worst) = self.weights, self.penalties, self._bounds
        if best <= worst:
            return np.full(len(fetches), np.nan)
        relevance = np.where(failed, 0.0, fetches.relevance) if weights.relevance else np.zeros(len(fetches))
        unknown = ~(failed | contents.reported) & bool(not weights.relevance and (weights.novelty or weights.change))
        expected_new = (contents.reported & (weights.relevance > 0)).astype(np.float64)
        novelty, change = contents.new - expected_new, contents.changed
        gain = weights.relevance * relevance + weights.novelty * novelty + weights.change * change
        loss = penalties.error * failed + penalties.duplicate * contents.copied
        if penalties.cost:
            loss += penalties.cost * cost(fetches)
        reward = np.minimum(np.maximum((gain - loss - worst) / (best - worst), 0.0), 1.0)
        return np.where(unknown, np.nan, reward)

    def _compared(self, fetches: Fetches, failed: Mask) -> Contents:
        """In their order: of two fetches of one tell with the same content only the first is new."""
        found = Contents(*np.zeros((len(Contents._fields), len(fetches)), np.bool_))
        if self._compares:
            pages = zip(fetches.content_hash.tolist(), fetches.target_id.tolist(), strict=True)
            for row, (content, page) in enumerate(pages):
                if content and not failed[row]:
                    for column, value in zip(found, (True, *self._compare(content, page)), strict=True):
                        column[row] = value
        return found

    def _compare(self, content: str, page: int) -> tuple[bool, bool, bool, bool]:
        """Whether a content is new, has changed, is a copy; and whether the page's content before is known."""
        key = xxhash.xxh3_64_intdigest(content.encode())
        slot, known = self._contents.claim_one(key)
        page_slot, fetched = self._pages.claim_one(page)
        owners, contents = self._contents.rows["owner"], self._pages.rows["content"]
        if not known:
            owners[slot] = page
        changed = fetched and int(contents[page_slot]) != key
        contents[page_slot] = key
        if changed:
            self._pages.sheet.changed(np.array([page_slot]))
        return not known, changed, int(owners[slot]) != page, fetched


class Penalties(NamedTuple):
    error: float
    duplicate: float
    cost: float


def penalties(weights: Reward) -> Penalties:
    """0 for those that are not set."""
    return Penalties(weights.error or 0.0, weights.duplicate or 0.0, weights.cost or 0.0)


def bounds(weights: Reward, penalties: Penalties) -> tuple[float, float]:
    """The sums of the best and of the worst possible fetch."""
    best = weights.relevance if weights.relevance > 0 else max(weights.novelty, 0.0) + max(weights.change, 0.0)
    return best, -max(penalties.error, penalties.duplicate, 0.0) - max(penalties.cost, 0.0)


def cost(fetches: Fetches) -> F64:
    """The mean of how slow and how heavy each fetch was, each at most 1; 0 where that is unknown."""
    slow, heavy = np.nan_to_num(fetches.elapsed_ms) / SLOW_MS, np.nan_to_num(fetches.bytes) / HEAVY_BYTES
    return (np.minimum(slow, 1.0) + np.minimum(heavy, 1.0)) / 2.0
