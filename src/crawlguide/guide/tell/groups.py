"""Asks first, tells in groups: what is told while others are served is taken in one pass, and is written together.

A group is of one crawl and costs no more than one portion of a report, so whoever asks waits for one at the most.
Tenants take turns, and so do the crawls of a tenant.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlguide.core.errors import UnavailableError
from crawlguide.core.turns import short_requests_first
from crawlguide.guide.tell.intake import reported
from crawlguide.guide.tell.portions import MOST_COST, cost_in_group
from crawlguide.guide.under_way import ENDS_WITHIN_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence

    from crawlguide.core.messages import Ack, Fetch
    from crawlguide.core.types import Crawl, Report
    from crawlguide.guide.tell.intake import IntakeRules

RETRY_AFTER_S = 1.0
# The work of tells that may lie before one; with all else meanwhile it waits about as long as who is refused.
# The work of tells that may lie before one; with all else meanwhile it waits about as long as who is refused.
LONGEST_WORK_S, FEW_WAITING = 0.5, 16
LONGEST_WORK_S, FEW_WAITING = 0.5, 16
MOST_PASSES = 32  # at once: all but one of them wait for the disk
MOST_PASSES = 32  # at once: all but one of them wait for the disk


async def nothing_more(_ack: Ack) -> None:
    pass


class Told(NamedTuple):
    """One portion of what a crawler tells. `then` is written with it, all or nothing."""

    crawler_id: str
    fetches: Sequence[Fetch]
    then: Callable[[Ack], Awaitable[None]] = nothing_more
    is_last: bool = False  # of its report: now all of it has to be on the disk


class Unread(Exception):
    """Several tells could not be read together, so nothing of them was taken."""


class Waiting(NamedTuple):
    told: Told
    cost: int
    ack: asyncio.Future[Ack]


class Steps:
    """Work and how long its steps take, without what is done while it waits."""

    def __init__(self, work: Coroutine[Any, Any, Sequence[Ack]]) -> None:
        self._work, self.took_s = work, 0.0

    def __await__(self) -> Generator[Any, Any, Sequence[Ack]]:
        answer: Any = None
        fault: BaseException | None = None
        while True:
            began = time.perf_counter()
            try:
                waits_for = self._work.send(answer) if fault is None else self._work.throw(fault)
            except StopIteration as end:
                acks: Sequence[Ack] = end.value
                return acks
            finally:
                self.took_s += time.perf_counter() - began
            answer = fault = None
            try:
                answer = yield waits_for
            except BaseException as thrown:  # noqa: BLE001 - a cancellation: the work hears of it
                fault = thrown


Lane = tuple["Crawl", bool]  # tells of one crawl, and whether they train it


class TellGroups:
    """What waits to be taken, by tenant and crawl; those that were not served for longest come first."""

    def __init__(self, take: Callable[[Crawl, Sequence[Told], bool], Coroutine[Any, Any, Sequence[Ack]]]) -> None:
        """`take` is given a crawl, some tells and whether they train, and gives an acknowledgement for each."""
        self._take = take
        self._tenants: OrderedDict[str, OrderedDict[Lane, deque[Waiting]]] = OrderedDict()
        self._unanswered: Counter[str] = Counter()  # by tenant
        self._each_s = 0.0  # the work of one, as a moving average: refusals in between must not bring more of them
        self._serving: asyncio.Task[None] | None = None
        self._passes: set[asyncio.Future[Sequence[Ack]]] = set()

    def check_room(self, tenant: str) -> None:
        """Raise `UnavailableError` where one more of this tenant would wait too long. Doors ask before they read it."""
        if self.is_crowded(tenant):
            raise UnavailableError("more reports than can be taken within a second", retry_after_s=RETRY_AFTER_S)

    def is_crowded(self, tenant: str) -> bool:
        ahead = self._unanswered[tenant] * max(len(self._tenants), 1)  # as many of each other tenant have their turns
        return ahead > max(FEW_WAITING, LONGEST_WORK_S / max(self._each_s, 1e-6))

    async def taken(self, crawl: Crawl, told: Told, trains: bool) -> Ack:
        """The acknowledgement of this one, which was taken with others or alone."""
        waiting = Waiting(told, cost_in_group(told.fetches), asyncio.get_running_loop().create_future())
        self._unanswered[crawl.tenant] += 1
        waiting.ack.add_done_callback(lambda _: self._answered(crawl.tenant))
        self._wait((crawl, trains), waiting)
        return await waiting.ack

    def _wait(self, lane: Lane, waiting: Waiting) -> None:
        lanes = self._tenants.setdefault(lane[0].tenant, OrderedDict())
        lanes.setdefault(lane, deque()).append(waiting)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.ensure_future(self._serve())

    def _answered(self, tenant: str) -> None:
        self._unanswered[tenant] -= 1
        if not self._unanswered[tenant]:
            del self._unanswered[tenant]

    async def end(self) -> None:
        """Let all that was told come to its end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDS_WITHIN_S):
                while left := [task for task in (self._serving, *self._passes) if task is not None and not task.done()]:
                    await asyncio.wait(left)

    async def _serve(self) -> None:
        """A group, then others: whoever asks meanwhile is answered before the next one."""
        await short_requests_first()
        while self._tenants:
            lane, group = self._next()
            if group:
                self._begin(lane, group)
            await short_requests_first()
            while len(self._passes) >= MOST_PASSES:  # the disk is slow: whoever tells waits, and is counted
                await asyncio.wait(self._passes, return_when=asyncio.FIRST_COMPLETED)

    def _next(self) -> tuple[Lane, list[Waiting]]:
        """The first of the crawl whose turn it is, as many as are one portion; tenant and crawl go to the end."""
        tenant, lanes = self._tenants.popitem(last=False)
        lane, waiting = lanes.popitem(last=False)
        group, left = [waiting.popleft()], MOST_COST
        left -= group[0].cost
        while waiting and waiting[0].cost <= left:
            group.append(waiting.popleft())
            left -= group[-1].cost
        if waiting:
            lanes[lane] = waiting
        if lanes:
            self._tenants[tenant] = lanes
        return lane, [one for one in group if not one.ack.done()]  # of the others nobody waits for an answer

    def _begin(self, lane: Lane, group: Sequence[Waiting]) -> None:
        crawl, trains = lane
        task = asyncio.ensure_future(self._timed(self._take(crawl, [one.told for one in group], trains), len(group)))
        self._passes.add(task)
        task.add_done_callback(lambda done: self._ended(lane, group, done))

    async def _timed(self, work: Coroutine[Any, Any, Sequence[Ack]], size: int) -> Sequence[Ack]:
        steps = Steps(work)
        try:
            return await steps
        finally:
            self._each_s += 0.1 * (steps.took_s / size - self._each_s)

    def _ended(self, lane: Lane, group: Sequence[Waiting], done: asyncio.Future[Sequence[Ack]]) -> None:
        """Each is told what came of it. Where one of them cannot be read, the others are none the worse for it."""
        self._passes.discard(done)
        problem = asyncio.CancelledError() if done.cancelled() else done.exception()
        if isinstance(problem, Unread):
            for one in group:
                self._wait(lane, one._replace(cost=MOST_COST))  # alone, when it is its turn
            return
        for number, one in enumerate(group):
            if one.ack.done():  # nobody waits for it any more
                continue
            if problem is None:
                one.ack.set_result(done.result()[number])
            else:
                one.ack.set_exception(problem)


async def read_together(
    group: Sequence[Told], fetches: Sequence[Fetch], crawl: Crawl, at: float, intake: IntakeRules
) -> Report:
    """All their fetches as one report, each with its teller. Raises `Unread` where one spoils it for the others."""
    tellers = [told.crawler_id for told in group for _ in told.fetches]
    try:
        return await reported(fetches, crawl, tellers, at, intake)
    except Exception:
        if len(group) > 1:
            raise Unread from None
        raise
