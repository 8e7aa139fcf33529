"""Nothing that is likely malicious, by what its URL looks like: a model that comes with the package.

Only links that enter a domain are judged: links within a domain, seeds and hosts that gave pages before are not. What
is refused is dropped when it is found. URLs that came in other ways (an import, a changed definition) are judged before
they would be assigned; risks are cached, so that an ask reads the texts of hardly any URL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.core import urls as addresses
from crawlguide.core.kernels import bools, f64s, i64s, kernel, one_f64, one_i64, u64s
from crawlguide.core.telemetry import happened
from crawlguide.core.value_cache import ValueCache
from crawlguide.policy.disabled import Disabled
from crawlguide.policy.risk.model import Model, shipped
from crawlguide.policy.risk.outcomes import SHEETS, Outcomes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F32, F64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson


def score(urls: Sequence[str]) -> F32:
    """How likely each URL is malicious, from 0 to 1, by what it looks like."""
    return shipped().probabilities([addresses.canonical(url) for url in urls])


@dataclass
class Risk:
    label: ClassVar = "looks malicious"
    revivable: ClassVar = True
    reads: ClassVar = ("policy.risk_threshold",)

    threshold: float
    model: Model
    known: ValueCache = field(default_factory=ValueCache, compare=False)  # risks, by URL
    outcomes: Outcomes = field(default_factory=Outcomes, compare=False)
    kept: bool = False  # whether outcomes are written into a notebook
    name: str = "risk"
    refusal: str = "forbid"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        keep, unknown = np.empty(len(batch), np.bool_), np.empty(len(batch), np.int64)
        count = recall(
            batch.host, batch.hosts.pages, batch.depth, batch.manual_priority, batch.id, *self.known.slots,
            self.threshold, keep, unknown,
        )  # fmt: skip
        if count:
            new = unknown[:count]
            risk = self.model.probabilities(batch.url[new].tolist()).astype(np.float64)
            if not ask.looking:
                self.known.put(batch.id[new], risk)
            keep[new] = risk < self.threshold
        return keep

    def judge_links(
        self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64
    ) -> list[str | None]:
        """Why each URL is dropped when it is found; None: it is not."""
        reasons: list[str | None] = [None] * len(urls)
        away = [
            row for row, (to, page) in enumerate(zip(queues, pages, strict=True)) if to != page and _leaves(to, page)
        ]
        risk = np.zeros(len(urls))  # 0 for links within a domain
        if away:
            there, here = [queues[row] for row in away], [pages[row] for row in away]
            odds = self.model.odds([urls[row] for row in away]) + self.outcomes.shift(there, here)
            risk[away] = 1.0 / (1.0 + np.exp(-odds))
            self.outcomes.record_sources(ids[away], here)
        self._cache(ids, risk)
        if not away:
            return reasons
        risk = risk[away]
        bad = np.flatnonzero(risk >= self.threshold).tolist()
        for number in bad:
            reasons[away[number]] = self._described(float(risk[number]))
        if bad:
            first, sure = urls[away[bad[0]]], round(float(risk[bad[0]]), 2)
            happened("high_risk", "high risk: possibly malicious ({risk}): {url}", url=first, risk=sure, urls=len(bad))
        return reasons

    def learn(self, lesson: Lesson) -> None:
        self.outcomes.learn(lesson)

    def remember(self, notebook: Notebook) -> None:
        """Go on with what lies in the crawl's notebook, and write there from now on."""
        self.outcomes, self.kept = Outcomes(*(notebook.sheet(name, kind) for name, kind in SHEETS.items())), True

    def inherit(self, before: Risk) -> None:
        """Go on with what another filter of the crawl has learned, unless it lies in a notebook that is read anew."""
        if not self.kept or self.outcomes.domains.sheet is before.outcomes.domains.sheet:
            self.outcomes, self.kept = before.outcomes, before.kept

    def _cache(self, ids: U64, risk: F64) -> None:
        """Of several risks of a URL the lowest counts: once it was found within its domain it is harmless."""
        before, misses = self.known.get(ids)
        before[misses] = np.inf
        self.known.put(ids, np.minimum(before, risk))

    def why(self, batch: Batch, ask: Ask) -> str:
        if not self.keep(batch, ask)[0]:
            (risk,), misses = self.known.get(batch.id)
            return self._described(float(self.model.probabilities(batch.url.tolist())[0] if len(misses) else risk))
        return "it is a seed, on a host that is known, or does not look malicious"

    def _described(self, risk: float) -> str:
        return f"it is malicious with a probability of {risk:.2f}, policy.risk_threshold is {self.threshold:g}"


def _leaves(to: str, page: str) -> bool:
    """Whether a link leads to another registrable domain than that of its page."""
    return not page or addresses.domain_of(to) != addresses.domain_of(page)


@kernel(one_i64(i64s, f64s, f64s, f64s, u64s, u64s, f64s, one_f64, bools, i64s))
def recall(host, pages, depth, manual_priority, ids, slot_ids, slot_risks, threshold, keep, misses):  # type: ignore[no-untyped-def]
    """Decide rows by their cached risks; returns how many are misses. Rows on a host that gave pages, seeds, and rows
    with a manual priority are kept without a look.
    """
    count, last = 0, np.uint64(len(slot_ids) - 1)
    for row in range(len(host)):
        slot = ids[row] & last
        keep[row] = pages[host[row]] > 0 or depth[row] == 0 or not np.isnan(manual_priority[row])
        if keep[row]:
            continue
        if slot_ids[slot] == ids[row]:
            keep[row] = slot_risks[slot] < threshold
        else:
            misses[count] = row
            count += 1
    return count


def build(definition: Definition) -> Risk | Disabled:
    threshold = definition.policy.risk_threshold
    return Risk(threshold, shipped()) if threshold < 1 else Disabled("risk", "policy.risk_threshold is 1")
