"""What is known of the risk of a batch's rows: one pass, no texts."""

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


@kernel(one_i64(i64s, f64s, f64s, f64s, u64s, u64s, f64s, one_f64, bools, i64s))
def recall(host, pages, depth, given, ids, known, risks, threshold, keep, unknown):  # type: ignore[no-untyped-def]
    """Returns how many rows have to be read. Not judged are those on a host that gave pages, seeds, and those for
    which a person has set a priority.
    """
    count, last = 0, np.uint64(len(known) - 1)
    for row in range(len(host)):
        place = ids[row] & last
        keep[row] = pages[host[row]] > 0 or depth[row] == 0 or not np.isnan(given[row])
        if keep[row]:
            continue
        if known[place] == ids[row]:
            keep[row] = risks[place] < threshold
        else:
            unknown[count] = row
            count += 1
    return count


# Nothing that is likely malicious: judged by what a URL looks like when it is found, with a model that comes along.
#
# Judged is who enters a domain: links within one, seeds and hosts that gave pages before are not. What is refused is
# dropped at once. What came by other ways (an import, a definition that changed) is judged before it would leave;
# judgements are remembered, so that an ask reads hardly a URL for it.


def score(urls: Sequence[str]) -> F32:
    """How likely each URL is malicious, from 0 to 1, by what it looks like."""
    return shipped().probabilities([addresses.canonical(url) for url in urls])


@dataclass
class Risk:
    label: ClassVar = "looks malicious"
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

    def sight(self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64) -> list[str | None]:
        """Why each URL is dropped when it is found; None: it is not."""
        reasons: list[str | None] = [None] * len(urls)
        away = [
            row for row, (to, page) in enumerate(zip(queues, pages, strict=True)) if to != page and _leaves(to, page)
        ]
        risk = np.zeros(len(urls))  # of links within a domain
        if away:
            there, here = [queues[row] for row in away], [pages[row] for row in away]
            odds = self.model.odds([urls[row] for row in away]) + self.outcomes.shift(there, here)
            risk[away] = 1.0 / (1.0 + np.exp(-odds))
            self.outcomes.found(ids[away], here)
        self._remember(ids, risk)
        if not away:
            return reasons
        risk = risk[away]
        bad = np.flatnonzero(risk >= self.threshold).tolist()
        for number in bad:
            reasons[away[number]] = self._words(float(risk[number]))
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
        """Go on with what another filter of the crawl has met, unless it lies in a notebook that is read anew."""
        if not self.kept or self.outcomes.domains.sheet is before.outcomes.domains.sheet:
            self.outcomes, self.kept = before.outcomes, before.kept

    def _remember(self, ids: U64, risk: F64) -> None:
        """Whoever was found within its domain once stays what it is, whoever else finds it."""
        before, new = self.known.get(ids)
        before[new] = np.inf
        self.known.put(ids, np.minimum(before, risk))

    def why(self, batch: Batch, ask: Ask) -> str:
        if not self.keep(batch, ask)[0]:
            (risk,), unknown = self.known.get(batch.id)
            return self._words(float(self.model.probabilities(batch.url.tolist())[0] if len(unknown) else risk))
        return "it is a seed, on a host that is known, or does not look malicious"

    def _words(self, risk: float) -> str:
        return f"it is malicious with a probability of {risk:.2f}, policy.risk_threshold is {self.threshold:g}"


def _leaves(to: str, page: str) -> bool:
    """Whether a link leads to another registrable domain than that of its page."""
    return not page or addresses.domain_of(to) != addresses.domain_of(page)


def build(definition: Definition) -> Risk | Disabled:
    threshold = definition.policy.risk_threshold
    return Risk(threshold, shipped()) if threshold < 1 else Disabled("risk", "policy.risk_threshold is 1")
