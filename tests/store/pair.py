"""Two stores that are told the same and have to say the same: one in memory, and one that is stopped and started."""

from __future__ import annotations

import asyncio
import copy
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlguide.core.errors import CrawlGuideError
from crawlguide.store.embedded import EmbeddedStore
from crawlguide.store.memory import MemoryStore
from crawlguide.store.tables.rows import FREE, QUEUED

from . import files
from .builders import ask
from .plain import known, plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from pathlib import Path

    from crawlguide.core.protocols import Store
    from crawlguide.core.tables import U64
    from crawlguide.core.types import Crawl
    from crawlguide.store.moves.rank import Quota

ALL = 1_000


class Pair:
    """`same` asks both; `restarted`, `crashed`, `copied` and `lost` are four ways to stop and start one of them."""

    def __init__(self, folder: Path, quota: Quota) -> None:
        self._loop = asyncio.new_event_loop()
        self._folders = (folder / str(number) for number in count())
        self._quota = quota
        self._stopped = False
        self.memory = MemoryStore(quota)
        self.embedded = EmbeddedStore(next(self._folders), quota)
        self._written = copy.deepcopy(self.memory)

    def run(self, waits: Coroutine[Any, Any, Any] | Awaitable[Any]) -> Any:
        return self._loop.run_until_complete(waits)

    def same(self, question: Callable[[Store], Awaitable[Any]]) -> Any:
        """What both stores answer, or which error both raise."""
        memory, embedded = (self.run(_answered(store, question)) for store in (self.memory, self.embedded))
        assert memory == embedded
        return memory

    @property
    def dumps(self) -> tuple[Callable[..., Awaitable[Any]], Callable[..., Awaitable[Any]]]:
        """How one crawl says all it knows."""
        return self.memory.dump, self.memory.dump_links

    # looking

    def compare(self, crawl: Crawl, ids: U64) -> None:
        self.same(lambda store: known(store, crawl, ids))

    def gathered(self, crawl: Crawl, at: float, horizon_s: float, limit: int = ALL, per_host: int = ALL) -> list[int]:
        """The ids both give, in their order.

        Of hosts with a strict lease a store may show URLs or not, `reserve` defers them anyway: a store that was
        started anew holds such hosts back, one that ran on may have let them in again.
        """
        strict = self._strictly_held(crawl)
        limit, per_host = (ALL, ALL) if strict else (limit, per_host)
        found: list[list[int]] = []
        for store in (self.memory, self.embedded):
            batch = self.run(store.gather(crawl, ask(at, crawl), limit, horizon_s, per_host))
            named = zip(batch.id.tolist(), batch.hosts.name[batch.host], strict=True)
            found.append([key for key, host in named if host not in strict])
        assert found[0] == found[1]
        return found[0]

    def compare_wait(self, crawl: Crawl, at: float) -> None:
        """Both say when to come again, never later than something can be given.

        It may be earlier: hosts count as open until somebody gathers and finds them shut, and one found shut is looked
        at again at the instant it was to open at then. A store that was started anew has found nothing yet.
        """
        memory, embedded = (self.run(store.wait(crawl, at)) for store in (self.memory, self.embedded))
        if not self._stopped:
            assert memory == embedded
        first = self._first(crawl)
        for said in (memory, embedded):
            assert said in {None, 0.0} if first is None else said is not None and said <= max(first - at, 0.0)

    def _strictly_held(self, crawl: Crawl) -> set[str]:
        frontier = self.memory.frontier(crawl)
        rows = [row for row, lease in frontier.leases.by_row.items() if lease.strict]
        return {str(frontier.hosts.names[host]) for host in frontier.table["host"][rows]}

    def _first(self, crawl: Crawl) -> float | None:
        """The first instant at which a URL can be given, found the long way; None if none ever can."""
        frontier = self.memory.frontier(crawl)
        table, hosts = frontier.table[: frontier.index.rows], frontier.hosts
        turn = table[(table["state"] == QUEUED) & np.isnan(table["due"])]["host"]
        turn = turn[~np.isin(hosts.names[turn].astype(str), list(self._strictly_held(crawl)))]
        opens = np.maximum(frontier.politeness.opens[hosts.queue_row[turn]], hosts.rows["withheld"][turn])
        dues = table["due"][(table["state"] != FREE) & ~np.isnan(table["due"])]
        ends = [lease.expires for lease in frontier.leases.by_row.values()]
        first = min([*opens.tolist(), *dues.tolist(), *ends], default=np.inf)
        return None if first == np.inf else first

    # what lasts

    def commit(self, durable: bool = True) -> None:
        self.run(self.embedded.commit(durable))
        self._written = copy.deepcopy(self.memory)

    def restarted(self) -> None:
        """Stopped in peace and started again."""
        self.commit()
        self._continue_with(self.embedded.folder, close_first=True)

    def crashed(self, durable: bool) -> None:
        """Ended without a word after a commit: what is in the files now is all there is."""
        self.commit(durable)
        self._continue_with(self._files(), close_first=False)

    def copied(self) -> None:
        """Gone on with a backup."""
        target = next(self._folders)
        said = self.run(self.embedded.backup(target))
        assert said == self.embedded.state_hash()
        self._written = copy.deepcopy(self.memory)
        self._continue_with(target, close_first=False)

    def lost(self) -> None:
        """Ended without a word before a commit: all since the last one is gone, and nothing else."""
        self.memory = copy.deepcopy(self._written)
        self._continue_with(self._files(), close_first=False, same_hash=False)

    def _files(self) -> Path:
        """A copy of the files as they are."""
        return files.copy(self.embedded.folder, next(self._folders), self.embedded)

    def _continue_with(self, folder: Path, *, close_first: bool, same_hash: bool = True) -> None:
        old, before = self.embedded, self.embedded.state_hash()
        if close_first:
            self.run(old.close())
        self.embedded, self._stopped = EmbeddedStore(folder, self._quota), True
        if not close_first:
            self.run(old.close())
        assert not same_hash or self.embedded.state_hash() == before
        _from_the_lowest(self.memory)

    def close(self) -> None:
        self.run(self.embedded.close())
        self._loop.close()


def _from_the_lowest(store: MemoryStore) -> None:
    """A store that was started anew gives new URLs the lowest free rows first, so this one does from now on.

    Rows decide between equals where nothing else does: which of equally old pages is forgotten first.
    """
    for book in store.crawls.values():
        book.frontier.index._spare.sort(reverse=True)
        book.frontier.hosts._hosts._spare.sort(reverse=True)
        book.frontier.hosts._domains._spare.sort(reverse=True)
    store.politeness._queues._spare.sort(reverse=True)


async def _answered(store: Store, question: Callable[[Store], Awaitable[Any]]) -> Any:
    try:
        return plain(await question(store))
    except CrawlGuideError as problem:
        return type(problem).__name__
