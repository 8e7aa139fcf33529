"""The crawls of a store, and what is kept of each besides its URLs: definition, answers, what was learned."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crawlguide.core.errors import NotFound
from crawlguide.core.notebook import Notebook
from crawlguide.core.types import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crawlguide.core.tables import I64, U64
    from crawlguide.core.types import Crawl
    from crawlguide.store.frontier import Frontier
    from crawlguide.store.moves.rank import Quota
    from crawlguide.store.tables.keyspace import Expiring, Keyspace
    from crawlguide.store.tables.politeness import PolitenessQueues

QUEUES = b"queues"  # a state of crawls whose queues clients name: what tells it from earlier ones of the same name
CLEARED_AT_ONCE = 4  # expired answers removed at each look-up: so they never pile up


@dataclass
class CrawlData:
    """All that is kept of one crawl."""

    definition: bytes
    frontier: Frontier
    answers: Expiring  # by request
    reported: Expiring  # fetches that were told, to recognise one that is told again
    states: Keyspace
    notebook: Notebook = field(default_factory=Notebook)
    page_limits: dict[str, int] | None = None  # of queues that clients name; None: not read yet

    @property
    def names_queues(self) -> bool:
        """Whether clients name its queues."""
        return bool(self.frontier.hosts.pace_prefix)

    def find_queues(self, crawl: Crawl) -> None:
        """Where clients name its queues these are the crawl's own: no host has a slash in its name."""
        mark, name = self.states.get(QUEUES), crawl.name.replace("%", "%25").replace(" ", "%20")
        if mark is not None:
            self.frontier.hosts.pace_prefix = f"{crawl.tenant}/{name}/{mark.decode()}/"

    @property
    def nbytes(self) -> int:
        """About what it takes, in memory and on the disk."""
        return len(self.definition) + self.frontier.nbytes + self.notebook.nbytes


class Crawls:
    """Every crawl by its name. All operations of a store build on this: they look up a crawl's frontier here."""

    def __init__(self, quota: Quota, politeness: PolitenessQueues) -> None:
        self.quota = quota
        self.politeness = politeness
        self.crawls: dict[Crawl, CrawlData] = {}
        self._of_tenant: dict[str, dict[Crawl, None]] = {}
        self._turns: list[Crawl] = []  # crawls that were not looked after since all of them were

    def _enter(self, crawl: Crawl, data: CrawlData) -> None:
        data.find_queues(crawl)
        self.crawls[crawl] = data
        self._of_tenant.setdefault(crawl.tenant, {})[crawl] = None

    def _leave(self, crawl: Crawl) -> CrawlData | None:
        data = self.crawls.pop(crawl, None)
        if data is not None:
            del self._of_tenant[crawl.tenant][crawl]
            if not self._of_tenant[crawl.tenant]:
                del self._of_tenant[crawl.tenant]
        return data

    def data(self, crawl: Crawl) -> CrawlData:
        try:
            return self.crawls[crawl]
        except KeyError:
            raise NotFound(f"crawl_id: no crawl named {crawl.name!r}", field="crawl_id") from None

    def frontier(self, crawl: Crawl) -> Frontier:
        return self.data(crawl).frontier

    def frontiers(self) -> list[Frontier]:
        return [data.frontier for data in self.crawls.values()]

    def known_rows(self, crawl: Crawl, ids: U64) -> tuple[Frontier, I64]:
        """The crawl's frontier, and the rows of those ids that it knows."""
        frontier = self.frontier(crawl)
        rows = frontier.index.find(ids)
        return frontier, rows[rows >= 0]

    def before_change(self, at: float) -> None:
        """Called before anything changes; raises where no change can be kept."""

    async def commit(self, durable: bool = True) -> None:
        """What was done is written; durable: it survives a loss of power. In memory nothing lasts."""

    def new_crawl(self, crawl: Crawl, definition: bytes) -> CrawlData:
        """Empty tables for a crawl; where they are kept is up to the kind of store."""
        raise NotImplementedError

    # catalogue

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:
        self.before_change(at)
        if crawl in self.crawls:
            self.crawls[crawl].definition = definition
            return False
        self._enter(crawl, self.new_crawl(crawl, definition))
        return True

    async def crawl_get(self, crawl: Crawl) -> bytes | None:
        return self.crawls[crawl].definition if crawl in self.crawls else None

    async def crawl_list(self, tenant: str) -> list[Crawl]:
        return sorted(self._of_tenant.get(tenant, ()))

    async def tenants(self) -> list[str]:
        return sorted(tenant for tenant in self._of_tenant if tenant)

    async def crawl_turns(self, most: int) -> list[Crawl]:
        if not self._turns:
            self._turns = [crawl for crawl in reversed(self.crawls) if crawl.tenant]
        some, self._turns = self._turns[-most:], self._turns[:-most]
        return [crawl for crawl in reversed(some) if crawl in self.crawls]

    async def is_untouched(self, crawl: Crawl) -> bool:
        data = self.data(crawl)
        return not (data.frontier.sequence or data.notebook.in_use())

    async def usage(self, tenant: str) -> Usage:
        kept = [self.crawls[crawl] for crawl in self._of_tenant.get(tenant, ())]
        urls = sum(data.frontier.index.live for data in kept)
        return Usage(len(kept), urls, sum(data.nbytes for data in kept))

    async def crawl_delete(self, crawl: Crawl) -> bool:
        self.before_change(0.0)
        data = self._leave(crawl)
        if data is None:
            return False
        data.frontier.end_leases(list(data.frontier.leases.by_row))
        data.frontier.hosts.leave()
        return True

    async def count(self, crawl: Crawl, numbers: Mapping[str, int]) -> None:
        frontier = self.frontier(crawl)
        for name, number in numbers.items():
            frontier.counts[name] += number
        frontier.dirty.counters()

    # answers and learned state

    async def answer_get(self, crawl: Crawl, key: str, at: float) -> bytes | None:
        answers = self.data(crawl).answers
        answers.expire(at, CLEARED_AT_ONCE)
        return answers.get(key, at)

    async def answer_put(self, crawl: Crawl, key: str, answer: bytes, expires: float) -> None:
        self.data(crawl).answers.put(key, answer, expires)

    async def state_get(self, crawl: Crawl, name: str) -> tuple[bytes, int] | None:
        stored = self.data(crawl).states.get(name.encode())
        return None if stored is None else (stored[8:], int.from_bytes(stored[:8], "big"))

    async def state_put(self, crawl: Crawl, name: str, state: bytes, version: int) -> bool:
        stored = await self.state_get(crawl, name)
        if stored is not None and stored[1] >= version:
            return False
        self.data(crawl).states.put(name.encode(), version.to_bytes(8, "big") + state)
        return True

    async def notebook(self, crawl: Crawl) -> Notebook:
        return self.data(crawl).notebook

    async def generation(self) -> int:
        return 0  # memory is never read anew
