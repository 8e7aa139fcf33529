"""One candidate of each leaf of a tree, and of the others as many as it takes to fill an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from crawlguide.core.types import Sample

if TYPE_CHECKING:
    from crawlguide.core.tables import F64, Mask
    from crawlguide.core.types import Ask, Batch


class Drawing(Protocol):
    """Whoever draws from leaves: what it has drawn for this ask stands in the batch beside what was gathered."""

    def places(self, batch: Batch) -> F64:
        """The place of each row in the draw; infinite for one that was not drawn."""
        ...

    def acceptable(self, batch: Batch, wanted: int) -> Mask:
        """Rows that may go out."""
        ...

    def arms(self, batch: Batch) -> tuple[F64, F64]:
        """The leaf of each row, and the chance with which it was drawn from it."""
        ...


@dataclass(frozen=True)
class Leaves:
    """Refuses first and cuts then, so that others fill the answer; or cuts first (`before`), and it stays short.

    With `only_drawn` nothing fills it but what was drawn.
    """

    drawing: Drawing
    cut: str = "after"
    only_drawn: bool = False

    def sample(self, batch: Batch, ask: Ask, limit: int) -> Sample:
        wanted = ask.budget.max_urls
        place, keep = self.drawing.places(batch), self.drawing.acceptable(batch, wanted)
        order = np.argsort(place, kind="stable")
        if self.only_drawn:
            order = order[: np.count_nonzero(np.isfinite(place))]
        if self.cut == "before":
            order = order[:wanted]
        rows = order[keep[order]][: max(limit, wanted)]
        arm, chance = self.drawing.arms(batch)
        return Sample(rows, arm[rows], chance[rows])
