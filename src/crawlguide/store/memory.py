"""Everything in this process: the store for tests, the lab and crawls that may be forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.errors import MalformedRequest
from crawlguide.store.changes import Unwatched
from crawlguide.store.crawl_data import CrawlData
from crawlguide.store.frontier import Frontier
from crawlguide.store.local import LocalStore
from crawlguide.store.moves.rank import Quota
from crawlguide.store.tables import politeness_queues
from crawlguide.store.tables.expiring import Expiring
from crawlguide.store.tables.pace import Pace
from crawlguide.store.tables.shelves import MemoryShelf, in_memory

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.config import StoreOptions
    from crawlguide.core.types import Crawl
    from crawlguide.store.tables.politeness_queues import Sharing


def build(options: StoreOptions) -> MemoryStore:
    return MemoryStore(Quota.of(options), politeness_queues.sharing(options))


class MemoryStore(LocalStore):
    """Forgets everything when the process ends."""

    def __init__(self, quota: Quota, shared: Sharing = politeness_queues.ALONE) -> None:
        super().__init__(quota, Pace(MemoryShelf(), MemoryShelf(), shared))

    def _new_book(self, crawl: Crawl, definition: bytes) -> CrawlData:  # noqa: ARG002 - all crawls are alike here
        shelves = in_memory()
        frontier = Frontier(self._pace, self._quota, shelves, Unwatched())
        return CrawlData(definition, frontier, Expiring(), Expiring(), shelves.states)

    async def backup(self, target: Path) -> str:
        raise MalformedRequest(f"data: nothing here lasts, so nothing can be copied to {target}")

    async def close(self) -> None:
        self._books.clear()
