"""One crawl on the shelf: its definition, frontier, answers and what its strategy has learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawlguide.core.notebook import Notebook

if TYPE_CHECKING:
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.tables.expiring import Kept
    from crawlguide.store.tables.shelves import Shelf


@dataclass
class CrawlData:
    definition: bytes
    frontier: Frontier
    answers: Kept
    told: Kept
    states: Shelf
    notebook: Notebook = field(default_factory=Notebook)

    def state(self, name: str) -> tuple[bytes, int] | None:
        """What was kept under a name, and its version."""
        kept = self.states.get(name.encode())
        return None if kept is None else (kept[8:], int.from_bytes(kept[:8], "big"))

    def keep_state(self, name: str, state: bytes, version: int) -> bool:
        """Keep it unless what is there is as new; True if it was kept."""
        known = self.state(name)
        if known is not None and known[1] >= version:
            return False
        self.states.put(name.encode(), version.to_bytes(8, "big") + state)
        return True
