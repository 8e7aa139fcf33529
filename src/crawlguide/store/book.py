"""One crawl on the shelf: its definition, frontier, answers and learned state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
