"""Never more URLs, bytes or time than the crawler's budget allows; one huge file does not starve the rest.

What does not fit stays in the frontier, for a crawler with a larger budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crawlguide.policy.sizes import EXTENSION, Sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.definition import Definition
    from crawlguide.core.notebook import Notebook
    from crawlguide.core.tables import F64, U64, Mask
    from crawlguide.core.types import Ask, Batch, Lesson


@dataclass
class Budget:
    label: ClassVar = "answer full"

    sizes: Sizes = field(default_factory=Sizes, compare=False)
    kept: bool = False  # whether sizes are written into a notebook
    name: str = "budget"
    refusal: str = "pass"

    def keep(self, batch: Batch, ask: Ask) -> Mask:
        """Row by row, best first: what fits in what is left is taken, what does not is passed over."""
        budget = ask.budget
        self.weigh(batch, ask)
        room = float("inf") if budget.max_bytes is None else float(budget.max_bytes)
        keep = np.zeros(len(batch), np.bool_)
        fill(
            keep, batch.estimated_bytes, batch.estimated_ms, budget.max_urls, room, budget.timeout_ms * ask.concurrency
        )
        return keep

    def weigh(self, batch: Batch, ask: Ask) -> None:
        """Files are estimated by their extensions, in the answer too."""
        expected = self.sizes.expected(batch, remember=not ask.looking)
        np.copyto(batch.estimated_bytes, np.ceil(expected), where=~np.isnan(expected))

    def judge_links(
        self, queues: Sequence[str], urls: Sequence[str], pages: Sequence[str], ids: U64
    ) -> list[str | None]:
        """Nothing is dropped for its size; extensions are cached while the texts are at hand."""
        self.sizes.see(urls, ids)
        return [None] * len(urls)

    def learn(self, lesson: Lesson) -> None:
        self.sizes.learn(lesson)

    def remember(self, notebook: Notebook) -> None:
        """Go on with what lies in the crawl's notebook, and write there from now on."""
        self.sizes, self.kept = Sizes(notebook.sheet("sizes", EXTENSION)), True

    def inherit(self, before: Budget) -> None:
        """Go on with what another filter of the crawl has met, unless it lies in a notebook that is read anew."""
        if not self.kept or self.sizes.sheet is before.sizes.sheet:
            self.sizes, self.kept = before.sizes, before.kept

    def why(self, batch: Batch, ask: Ask) -> str:
        self.weigh(batch, ask)
        size, ms = float(batch.estimated_bytes[0]), float(batch.estimated_ms[0])
        if ask.budget.max_bytes is not None and size > ask.budget.max_bytes:
            return f"it may weigh {size:.0f} bytes, budget.max_bytes is {ask.budget.max_bytes}"
        return f"it may take {ms:.0f} ms and weigh {size:.0f} bytes, which fits"


def fill(keep: Mask, size: F64, ms: F64, urls: int, room: float, time_ms: float) -> None:
    top = slice(0, urls)
    if size[top].sum() <= room and ms[top].sum() <= time_ms:
        keep[top] = True
        return
    for row, (needs_bytes, needs_ms) in enumerate(zip(size.tolist(), ms.tolist(), strict=True)):
        if needs_bytes <= room and needs_ms <= time_ms:
            keep[row] = True
            room, time_ms, urls = room - needs_bytes, time_ms - needs_ms, urls - 1
            if not urls:
                return


def build(definition: Definition) -> Budget:
    return Budget()
