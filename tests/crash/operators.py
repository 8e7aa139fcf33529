"""The operators of the fleet: they change definitions, pause and resume a crawl, make crawls and delete them.

Each crawl is changed by one of them alone, one change after another, so the last change that was answered counts.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.crash import web, wire

if TYPE_CHECKING:
    from random import Random

    from tests.crash.wire import Call, Wire

MAIN, SIDE, BULK = "main", "side", "bulk"
HOSTS = {MAIN: web.FAST, SIDE: web.SLOW, BULK: web.FAST}
SCRATCH = [f"scratch-{number}" for number in range(10)]
REST_S = 0.04
BULK_PAGES = 1_500
STRATEGIES = ("breadth-first", "depth-first")


@dataclass
class Operator:
    """Prepares the crawls that the fleet works for, and changes them."""

    wire: Wire
    chance: Random
    strategy: str = STRATEGIES[0]

    async def prepare(self) -> None:
        """Crawls with something to begin with, the last of them large."""
        for crawl in (MAIN, SIDE):
            await self.wire.send(definition(self.wire.name(), crawl))
            urls = [web.some_page(self.chance, HOSTS[crawl]) for _ in range(100)]
            await self.wire.send(wire.seed(self.wire.name(), crawl, urls))
        for _ in STRATEGIES:  # each of them once
            await self.wire.send(self.change_bulk())
        urls = [web.page(web.FAST[number % len(web.FAST)], number) for number in range(BULK_PAGES)]
        await self.wire.send(wire.seed(self.wire.name(), BULK, urls))

    async def live(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.wire.send(self.chance.choice((self.change_side, self.change_bulk))())
            await asyncio.sleep(REST_S * self.chance.random())

    def change_bulk(self) -> Call:
        """Another strategy gives every URL another rank: so a log grows that is worth a snapshot."""
        self.strategy = STRATEGIES[self.strategy == STRATEGIES[0]]
        return definition(self.wire.name(), BULK, strategy={"kind": self.strategy})

    def change_side(self) -> Call:
        name = self.wire.name()
        if self.chance.random() < 0.4:
            return definition(name, SIDE)
        return self.chance.choice((wire.pause, wire.resume, wire.resume))(name, SIDE)


@dataclass
class Gardener:
    """Makes crawls that nobody works for, adds to them, and deletes them."""

    wire: Wire
    chance: Random
    there: set[str] = field(default_factory=set)

    async def live(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.wire.send(self.change(self.chance.choice(SCRATCH)))
            await asyncio.sleep(REST_S * self.chance.random())

    def change(self, crawl: str) -> Call:
        name = self.wire.name()
        if crawl not in self.there:
            self.there.add(crawl)
            return definition(name, crawl)
        if self.chance.random() < 0.5:
            self.there.remove(crawl)
            return wire.delete(name, crawl)
        return wire.seed(name, crawl, [web.some_page(self.chance, web.FAST) for _ in range(5)])


def definition(name: str, crawl: str, **more: Any) -> Call:
    """A definition whose topic no other has."""
    delay_s = web.SLOW_DELAY_S if HOSTS.get(crawl) is web.SLOW else web.DELAY_S
    policy = {"robots": "ignore", "default_delay_s": delay_s, "deny_domains": [web.DENIED]}
    return wire.define(name, crawl, {"goal": {"topic": name}, "policy": policy} | more)
