"""Everything in this process: the store for tests, the lab and crawls that may be forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlguide.core.errors import MalformedRequest
from crawlguide.store.crawls import CrawlData
from crawlguide.store.dirty import Untracked
from crawlguide.store.frontier import Frontier
from crawlguide.store.local import LocalStore
from crawlguide.store.moves.rank import Quota
from crawlguide.store.tables.keyspace import MOST_REPORTED, MemoryExpiring, MemoryKeyspace, in_memory, most_answers
from crawlguide.store.tables.politeness import PolitenessQueues
from crawlguide.store.tables.sharing import ALONE, sharing

if TYPE_CHECKING:
    from pathlib import Path

    from crawlguide.core.config import StoreOptions
    from crawlguide.core.types import Crawl
    from crawlguide.store.tables.sharing import Sharing


def build(options: StoreOptions) -> MemoryStore:
    return MemoryStore(Quota.of(options), sharing(options))


class MemoryStore(LocalStore):
    """Forgets everything when the process ends."""

    def __init__(self, quota: Quota, shared: Sharing = ALONE) -> None:
        super().__init__(quota, PolitenessQueues(MemoryKeyspace(), MemoryKeyspace(), shared))

    def new_crawl(self, crawl: Crawl, definition: bytes) -> CrawlData:
        keyspaces = in_memory()
        frontier = Frontier(self.politeness, self.quota, keyspaces, Untracked())
        answers, reported = MemoryExpiring(most_answers(crawl)), MemoryExpiring(MOST_REPORTED)
        return CrawlData(definition, frontier, answers, reported, keyspaces.states)

    async def backup(self, target: Path) -> str:
        raise MalformedRequest(f"data: nothing here lasts, so nothing can be copied to {target}")
