"""What the server goes out for on behalf of crawls: in turns, so that no crawl and no host keeps the others waiting.

Tenants take turns, crawls of a tenant take turns, and so do the registrable domains of a crawl. A host that accepts
and says nothing holds a place until its time is up; so of the places that are left to a tenant a crawl takes at most
half, and of those that are left at all a tenant takes at most three quarters: there is room for whoever comes next.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from crawlguide.guide.robots import unfinished

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from crawlguide.core.clock import Clock
    from crawlguide.core.types import Crawl

TENANT_SHARE = 0.75
MOST_OF_TENANT, MOST_OF_CRAWL = 50_000, 10_000  # that wait, also for their time; what is beyond is asked for again


class Errand(Protocol):
    """Something to fetch, for whom and from where."""

    @property
    def crawl(self) -> Crawl: ...

    @property
    def domain(self) -> str: ...

    def __hash__(self) -> int: ...


Kind = TypeVar("Kind", bound=Errand)


@dataclass(eq=False)
class Line(Generic[Kind]):
    """The errands of one crawl, by domain; those that were not served for longest come first."""

    crawl: Crawl
    domains: OrderedDict[str, deque[Kind]] = field(default_factory=OrderedDict)
    running: int = 0


class Errands(Generic[Kind]):
    """A queue of errands, a bounded number of which are under way at once."""

    def __init__(self, clock: Clock, at_once: int, at_once_of_domain: int) -> None:
        self._clock, self._at_once, self._of_domain = clock, at_once, at_once_of_domain
        self._tenants: OrderedDict[str, OrderedDict[Crawl, Line[Kind]]] = OrderedDict()
        self._ready: set[Kind] = set()
        self._timed: set[Kind] = set()
        self._later: list[tuple[float, int, Kind]] = []
        self._numbers = count()
        self._waiting: Counter[Any] = Counter()  # of each crawl, and of each tenant
        self._running: Counter[str] = Counter()  # of each tenant
        self._asked: Counter[str] = Counter()  # of each domain
        self._under_way: dict[Kind, tuple[Kind, Line[Kind]]] = {}  # itself: one that is forgotten may have an equal
        self._changed = asyncio.Event()

    def put_nowait(self, errand: Kind, at: float | None = None) -> bool:
        """It waits for its turn, from an instant on if one is given. False: no room is left, or it is here already."""
        known = self._ready if at is None else self._timed
        here = errand in known or (at is None and errand in self._under_way)
        full = self._waiting[errand.crawl] >= MOST_OF_CRAWL or self._waiting[errand.crawl.tenant] >= MOST_OF_TENANT
        if full or here:
            return False
        known.add(errand)
        self._waiting.update((errand.crawl, errand.crawl.tenant))
        if at is None:
            self._line_up(errand)
        else:
            heapq.heappush(self._later, (at, next(self._numbers), errand))
        self._changed.set()
        return True

    def empty(self) -> bool:
        """Whether nothing waits for its turn; something may wait for its time."""
        return not self._ready

    def __len__(self) -> int:
        return len(self._ready) + len(self._later)

    def get_nowait(self) -> Kind | None:
        """The errand whose turn it is, from now on under way; None: there is none, or no place for it."""
        self._bring_due()
        free = self._at_once - len(self._under_way)
        for tenant, lines in self._tenants.items() if free > 0 else ():
            mine = self._running[tenant]
            room = TENANT_SHARE * (free + mine) - mine
            for line in lines.values() if room > 0 else ():
                domain = next((one for one in line.domains if self._asked[one] < self._of_domain), None)
                if line.running < room and domain is not None:
                    return self._begin(line, domain)
        return None

    async def get(self) -> Kind:
        while (errand := self.get_nowait()) is None:
            self._changed.clear()
            wait_s = max(self._later[0][0] - self._clock.now(), 0.0) if self._later else None
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                pass
        return errand

    def done(self, errand: Kind) -> None:
        """It is no longer under way, whatever came of it."""
        if not self.is_wanted(errand):
            return
        _, line = self._under_way.pop(errand)
        line.running -= 1
        for numbers, key in ((self._running, line.crawl.tenant), (self._asked, errand.domain)):
            _less(numbers, key)
        self._drop_if_empty(line)
        self._changed.set()

    def is_wanted(self, errand: Kind) -> bool:
        """Whether the crawl for which it is under way was not deleted since."""
        return errand in self._under_way and self._under_way[errand][0] is errand

    def forget(self, crawl: Crawl) -> None:
        """The crawl is deleted: one of the same name that comes after it has nothing to do with its errands."""
        line = self._tenants.get(crawl.tenant, OrderedDict()).get(crawl)
        waiting = [errand for errands in line.domains.values() for errand in errands] if line else []
        for errand in waiting:
            self._leave(errand, self._ready)
        if line is not None:
            line.domains.clear()
            self._drop_if_empty(line)
        for errand in [one for one in self._timed if one.crawl == crawl]:
            self._leave(errand, self._timed)
        self._later = [entry for entry in self._later if entry[2].crawl != crawl]
        heapq.heapify(self._later)
        for errand in [one for one in self._under_way if one.crawl == crawl]:
            self.done(errand)

    async def run(self, go: Callable[[Kind], Awaitable[None]]) -> None:
        """For ever: go for whatever has its turn. `go` says itself what went wrong, and when to try again."""
        tasks: set[asyncio.Task[None]] = set()
        try:
            while True:
                task = asyncio.create_task(self._gone(await self.get(), go))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _gone(self, errand: Kind, go: Callable[[Kind], Awaitable[None]]) -> None:
        """It keeps its place until nothing goes on for it any more."""
        try:
            async with unfinished.all_finished():
                await go(errand)
        finally:
            self.done(errand)

    def _line_up(self, errand: Kind) -> None:
        lines = self._tenants.setdefault(errand.crawl.tenant, OrderedDict())
        line = lines.setdefault(errand.crawl, Line(errand.crawl))
        line.domains.setdefault(errand.domain, deque()).append(errand)

    def _bring_due(self) -> None:
        now = self._clock.now()
        while self._later and self._later[0][0] <= now:
            errand = heapq.heappop(self._later)[2]
            self._leave(errand, self._timed)
            self.put_nowait(errand)

    def _begin(self, line: Line[Kind], domain: str) -> Kind:
        """Take the first errand of the domain; tenant, crawl and domain go to the end of their lines."""
        errand = line.domains[domain].popleft()
        line.domains.move_to_end(domain)
        if not line.domains[domain]:
            del line.domains[domain]
        self._tenants[line.crawl.tenant].move_to_end(line.crawl)
        self._tenants.move_to_end(line.crawl.tenant)
        self._leave(errand, self._ready)
        self._under_way[errand] = errand, line
        line.running += 1
        self._running[line.crawl.tenant] += 1
        self._asked[domain] += 1
        return errand

    def _leave(self, errand: Kind, known: set[Kind]) -> None:
        known.discard(errand)
        for key in (errand.crawl, errand.crawl.tenant):
            _less(self._waiting, key)

    def _drop_if_empty(self, line: Line[Kind]) -> None:
        lines = self._tenants.get(line.crawl.tenant)
        if lines is not None and not line.domains and not line.running and lines.get(line.crawl) is line:
            del lines[line.crawl]
            if not lines:
                del self._tenants[line.crawl.tenant]


def _less(numbers: Counter[Any], key: Crawl | str) -> None:
    """One less; what has come to nothing takes no room."""
    numbers[key] -= 1
    if numbers[key] <= 0:
        del numbers[key]
