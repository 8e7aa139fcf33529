"""What a fetch is worth to those who learn from it: gains less penalties, by the weights of the crawl's goal.

    sum   = relevance + novelty + change − error − duplicate − cost, each times its weight
    worth = (sum − worst) / (best − worst), in 0…1

Where relevance counts an ordinary page is one that is new and off the goal: it is worth nothing, and novelty is what a
page loses that brings nothing new. Where it does not count, novelty is what a new page gains. A downstream reward
stands for all of it.
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

SLOW_MS, HEAVY_BYTES = 5_000.0, 1_048_576.0  # a fetch that costs as much as any
MOST = 1 << 20  # pages, and contents, that are remembered
PAGE = np.dtype([("key", np.uint64), ("content", np.uint64)])  # what a page held when it was fetched last
CONTENT = np.dtype([("key", np.uint64), ("owner", np.uint64)])  # where it was met first


class Met(NamedTuple):
    """What the content of each fetch is to the crawl; all 0 where no hash was told."""

    told: Mask
    new: Mask  # nobody has seen it
    changed: Mask  # the page held something else before
    copied: Mask  # another page holds it
    again: Mask  # what the page held before is known


class Rewards:
    """Goes on from what lies in a notebook, and writes into it: the contents met, and what each page held."""

    def __init__(self, weights: Reward) -> None:
        self.weights, self.penalties = weights, penalties(weights)
        self._bounds = bounds(weights, self.penalties)
        self._looks = bool(weights.novelty or weights.change or self.penalties.duplicate)
        self.remember(Notebook())

    def remember(self, notebook: Notebook) -> None:
        self._pages = LossyTable(PAGE, notebook.sheet("rw-pages", PAGE), MOST)
        self._contents = LossyTable(CONTENT, notebook.sheet("rw-known", CONTENT), MOST)

    def inherit(self, before: Rewards) -> None:
        """Go on with what was met before the crawl was defined anew."""
        self._pages, self._contents = before._pages, before._contents

    def hear(self, fetches: Fetches) -> tuple[F64, Mask]:
        """What each fetch was worth, in 0…1 (NaN where nobody says, or it came back unused); and which pages were
        fetched before, where it counts whether they have changed since, and is known.
        """
        failed = failures(fetches)
        met = self._met(fetches, failed)
        worth = self._worth(fetches, failed, met)
        worth = np.where(np.isnan(fetches.reward), worth, np.minimum(np.maximum(fetches.reward, 0.0), 1.0))
        worth[releases(fetches)] = np.nan
        return worth, met.again & bool(self.weights.change)

    def _worth(self, fetches: Fetches, failed: Mask, met: Met) -> F64:
        weights, penalties, (best, worst) = self.weights, self.penalties, self._bounds
        if best <= worst:
            return np.full(len(fetches), np.nan)
        relevance = np.where(failed, 0.0, fetches.relevance) if weights.relevance else np.zeros(len(fetches))
        unknown = ~(failed | met.told) & bool(not weights.relevance and (weights.novelty or weights.change))
        usual = (met.told & (weights.relevance > 0)).astype(np.float64)  # what is new is no surprise
        gain = weights.relevance * relevance + weights.novelty * (met.new - usual) + weights.change * met.changed
        loss = penalties.error * failed + penalties.duplicate * met.copied
        if penalties.cost:
            loss += penalties.cost * cost(fetches)
        worth = np.minimum(np.maximum((gain - loss - worst) / (best - worst), 0.0), 1.0)
        return np.where(unknown, np.nan, worth)

    def _met(self, fetches: Fetches, failed: Mask) -> Met:
        """In their order, so that of two fetches of a tell with one content the second has met it."""
        met = Met(*np.zeros((len(Met._fields), len(fetches)), np.bool_))
        if self._looks:
            told = zip(fetches.content_hash.tolist(), fetches.target_id.tolist(), strict=True)
            for row, (content, page) in enumerate(told):
                if content and not failed[row]:
                    met.told[row] = True
                    met.new[row], met.changed[row], met.copied[row], met.again[row] = self._meet(content, page)
        return met

    def _meet(self, content: str, page: int) -> tuple[bool, bool, bool, bool]:
        """Whether a content is new, another than the page held before, another page's; and the page known."""
        key = xxhash.xxh3_64_intdigest(content.encode())
        place, known = self._contents.claim_one(key)
        owners, (at, fetched) = self._contents.rows["owner"], self._pages.claim_one(page)
        if not known:
            owners[place] = page
        held = self._pages.rows["content"]
        changed = fetched and int(held[at]) != key
        held[at] = key
        if changed:
            self._pages.sheet.changed(np.array([at]))
        return not known, changed, int(owners[place]) != page, fetched


class Penalties(NamedTuple):
    error: float
    duplicate: float
    cost: float


def penalties(weights: Reward) -> Penalties:
    """0 for those that nobody set."""
    return Penalties(weights.error or 0.0, weights.duplicate or 0.0, weights.cost or 0.0)


def bounds(weights: Reward, penalties: Penalties) -> tuple[float, float]:
    """The sums of the best and of the worst of fetches."""
    best = weights.relevance if weights.relevance > 0 else max(weights.novelty, 0.0) + max(weights.change, 0.0)
    return best, -max(penalties.error, penalties.duplicate, 0.0) - max(penalties.cost, 0.0)


def cost(fetches: Fetches) -> F64:
    """The mean of how slow and how heavy each fetch was, each at most 1; 0 where nobody says."""
    slow, heavy = np.nan_to_num(fetches.elapsed_ms) / SLOW_MS, np.nan_to_num(fetches.bytes) / HEAVY_BYTES
    return (np.minimum(slow, 1.0) + np.minimum(heavy, 1.0)) / 2.0
