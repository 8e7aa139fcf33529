"""What a store does with the URLs of a crawl while they wait and while they are held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crawlguide.core.tables import F64, U64
    from crawlguide.core.types import Ask, Batch, Crawl, Discovery, Fetches, Grants, LeaseTerms, Links, Paths, Recorded


class Queues(Protocol):
    """What waits, what was found and fetched, and in which order it goes out."""

    async def discover(self, crawl: Crawl, links: Links, parents: Fetches | None, at: float) -> Discovery:
        """Add links. A known URL gains evidence and keeps its state; one with a `reason` is dropped on sight."""
        ...

    async def record(self, crawl: Crawl, fetches: Fetches, at: float, max_retries: int) -> Recorded:
        """Fetched state, host profiles, retries and redirects."""
        ...

    async def rank(self, crawl: Crawl, ids: U64, priority: F64) -> None:
        """Write the priority at rest of queued URLs; then, over quota, the lowest-ranked are forgotten."""
        ...

    async def give(self, crawl: Crawl, ids: U64, given: F64) -> None:
        """Set the priority of known URLs by hand; NaN lifts it. It counts when they are ranked the next time."""
        ...

    async def look(self, crawl: Crawl, ids: U64) -> Batch:
        """The rows of known URLs, in the order of `ids`, without touching them."""
        ...

    async def parents(self, crawl: Crawl, ids: U64) -> Paths: ...

    async def children(self, crawl: Crawl, ids: U64) -> Paths: ...

    async def gather(
        self, crawl: Crawl, ask: Ask, limit: int, horizon_s: float, per_host: int, also: U64 | None = None
    ) -> Batch:
        """The best queued URLs of hosts that may be fetched within the horizon, best first, O(limit).

        A store spread over partitions looks into a few of them: best first then means among those it looked into.
        Those named in `also` stand behind them, as far as they wait and their hosts may be fetched.
        """
        ...

    async def wait(self, crawl: Crawl, at: float) -> float | None:
        """Seconds until something may be given again; None if nothing is queued, leased or scheduled."""
        ...

    async def schedule(self, crawl: Crawl, ids: U64, due: F64) -> None:
        """Queue done URLs again at the given instants (recrawl); one that waits for a sooner one already keeps it."""
        ...

    async def drop(self, crawl: Crawl, ids: U64, reason: str) -> None:
        """Queued URLs become dropped, and stay known so that they are not asked again."""
        ...

    async def revive(self, crawl: Crawl, ids: U64, deepest: int = ...) -> None:
        """Dropped URLs become queued again, except those that lie deeper than `deepest` (-1: no bound)."""
        ...


class Leases(Protocol):
    """Who holds which URLs, and how politely hosts are asked."""

    async def reserve(self, crawl: Crawl, batch: Batch, terms: LeaseTerms) -> Grants:
        """Take host slots and leases for all rows at once; atomic per partition, partial is normal."""
        ...

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        """Give back everything a crawler holds."""
        ...

    async def held(self, crawl: Crawl, crawler_id: str, at: float) -> int:
        """How many URLs a crawler holds."""
        ...

    async def expire(self, crawl: Crawl, at: float) -> int:
        """Leases that ended go back to the queue."""
        ...

    async def withhold(self, crawl: Crawl, hosts: Sequence[str], until: F64) -> None:
        """Keep a crawl's hosts out of `gather`, each until its instant; one in the past lets a host in again."""
        ...

    async def admit(self, crawl: Crawl) -> None:
        """Every host of the crawl that is kept out of `gather` is let in again."""
        ...

    async def control(
        self,
        queue: str,
        *,
        delay_s: float | None = None,
        block_until: float | None = None,
        limit: int | None = None,
    ) -> None:
        """Set a politeness queue's own delay, block it until an instant, or cap its leases at once (0 lifts)."""
        ...

    async def located(self, host: str, address: str) -> None:
        """A host (as its politeness queue names it) is at an address.

        Where addresses are what is asked politely (`store.politeness_queue`) it shares from now on the slots of all
        that were found there; else nothing comes of it.
        """
        ...
