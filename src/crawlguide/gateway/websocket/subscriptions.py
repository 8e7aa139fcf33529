"""What a socket subscribes to: assignments as politeness allows, and statistics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import msgspec

from crawlguide.core.messages import AskMessage
from crawlguide.core.types import Crawl
from crawlguide.gateway.assigned import Holder
from crawlguide.gateway.conversation import waited
from crawlguide.gateway.websocket.messages import State

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from crawlguide.core.messages import Advice, StatsMessage
    from crawlguide.core.types import Crawl
    from crawlguide.gateway.assigned import AssignedUrls
    from crawlguide.gateway.websocket.connection import Connection
    from crawlguide.gateway.websocket.messages import Id, StatsWanted, Subscribe
    from crawlguide.guide.local import LocalGuide

GATHERED_S = 0.02  # reports that come together free their places together: one ask for all of them
UNDER_WAY = ("running", "waiting")


class Stream(Protocol):
    """Says something now and then until it is stopped. It is never cancelled: an ask cut short would lose leases."""

    async def run(self) -> None: ...

    def stop(self) -> None: ...


class Subscription:
    """Asks for a crawler as often as there are free places and something to fill them."""

    def __init__(  # noqa: PLR0913, PLR0917 - what one subscription is made of
        self,
        name: Id,
        wanted: Subscribe,
        crawl: Crawl,
        ask: Callable[[AskMessage, bool], Awaitable[Advice | float]],
        guide: LocalGuide,
        connection: Connection,
        assigned: AssignedUrls,
    ) -> None:
        self._asks = ask
        self.holder = Holder(crawl, wanted.crawler_id, assigned, self._freed)
        self._name, self._wanted, self._guide, self._connection = name, wanted, guide, connection
        self._woken = asyncio.Event()
        self._stopped = False
        self._ask_at = 0.0  # by the guide's clock
        self._said_state = UNDER_WAY[0]
        self._may_create = True  # the crawl, with the first ask; who deletes it later means it

    async def run(self) -> None:
        while not self._stopped:
            self._woken.clear()
            await self._connection.writable.wait()
            if self._stopped:
                return
            lease_ends = self.holder.next_end(self._guide.clock.now())
            wakes_at = lease_ends if lease_ends is not None else float("inf")
            if places := max(0, self._wanted.budget.max_urls - len(self.holder)):
                if self._ask_at <= self._guide.clock.now():
                    await self._ask(places)
                wakes_at = min(wakes_at, self._ask_at)
            await waited(self._woken, max(GATHERED_S, wakes_at - self._guide.clock.now()))
            if self._woken.is_set() and not self._stopped:
                await asyncio.sleep(GATHERED_S)

    def stop(self) -> None:
        self._stopped = True
        self._woken.set()

    async def _ask(self, places: int) -> None:
        budget = msgspec.structs.replace(self._wanted.budget, max_urls=places)
        wanted = self._wanted
        ask = AskMessage(wanted.mcp_version, wanted.crawler_id, budget, crawl_id=wanted.crawl_id)
        advice = await self._asks(ask, self._may_create)
        if isinstance(advice, float):
            self._ask_at = self._guide.clock.now() + advice
            return
        self._may_create = False
        self.holder.add(advice)
        self._ask_at = self._guide.clock.now() + advice.retry_after_ms / 1_000
        self._say_state(advice.metadata.crawl_state)
        if advice.assigned_urls:
            self._connection.say("assignment", self._name, advice)

    def _say_state(self, state: str) -> None:
        """Only what the assignments, or their absence, do not say themselves."""
        state = UNDER_WAY[0] if state in UNDER_WAY else state
        if state != self._said_state:
            self._said_state = state
            self._connection.say("state", self._name, State(state))

    def _freed(self) -> None:
        self._ask_at = 0.0
        self._woken.set()


class StatsSubscription:
    """The statistics, every so often."""

    def __init__(
        self,
        name: Id,
        wanted: StatsWanted,
        numbers: Callable[[StatsWanted], Awaitable[StatsMessage | None]],
        connection: Connection,
    ) -> None:
        self._name, self._wanted, self._numbers, self._connection = name, wanted, numbers, connection
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        while not self._stopped.is_set():
            await self._connection.writable.wait()
            stats = await self._numbers(self._wanted)
            if stats is not None and not self._stopped.is_set():
                self._connection.say("stats", self._name, stats)
            await waited(self._stopped, self._wanted.every_s)

    def stop(self) -> None:
        self._stopped.set()
