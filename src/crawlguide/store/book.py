"""One crawl on the shelf: its definition, frontier, answers and what its strategy has learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawlguide.core.notebook import Notebook

if TYPE_CHECKING:
    from crawlguide.store.expiring import Kept
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.shelves import Shelf


@dataclass
class Book:
    definition: bytes
    frontier: Frontier
    answers: Kept
    told: Kept
    states: Shelf
    notebook: Notebook = field(default_factory=Notebook)
