"""The door for message buses: each bus that is configured is joined, and joined again whenever it was away.

A bus that is away stops nothing else. What the guide does meanwhile is kept for it in a spool.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crawlguide.core.telemetry import WARNING, happened, without_secrets
from crawlguide.core.watching import NOBODY
from crawlguide.gateway.bus.answering import Answering, Faults
from crawlguide.gateway.bus.events import Events
from crawlguide.gateway.bus.messages import BusAway, BusMessage, Names, TooLargeForBus, check
from crawlguide.gateway.bus.spool import Spool
from crawlguide.gateway.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from crawlguide.core.config import BusOptions
    from crawlguide.gateway.bus.messages import Connection
    from crawlguide.gateway.service import Service

FIRST_REST_S, LONGEST_REST_S = 0.2, 5.0
PUBLISHED_AT_ONCE = 200
LAST_EVENTS_S = 2.0  # for which a server that ends tries to deliver them
FOLDER = "bus"  # of the data folder
KINDS = {"nats": "NatsConnection", "kafka": "KafkaConnection"}
log = logging.getLogger(__name__)


class BusDoor:
    """Opened by `bus.nats` and `bus.kafka`."""

    def __init__(self, service: Service) -> None:
        options, self._names = service.config.bus, Names(service.config.bus.prefix)
        check(options)
        self._service = service
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._kinds = {kind: _loaded(kind) for kind in KINDS if getattr(options, kind)}
        self.buses: list[Bus] = []
        self._supervisor = Supervisor(service.metrics)

    async def open(self) -> dict[str, Any]:
        """Whether a bus is there or not: it is joined as soon as it can be."""
        service = self._service
        self.buses = [self._bus(kind, make) for kind, make in self._kinds.items()]
        service.buses_away = lambda: [f"bus {bus.kind}" for bus in self.buses if bus.is_away]
        service.bus_figures = lambda: {
            "buses_away": sum(bus.is_away for bus in self.buses),
            "bus_spool_bytes": sum(bus.spool.waiting_bytes for bus in self.buses),
        }
        spools = [bus.spool for bus in self.buses]
        self._events = Events(spools, self._wake, self._lost)
        if service.config.bus.events:
            service.guide.watch(self._events)
        for bus in self.buses:
            self._supervisor.start(f"bus {bus.kind}", bus.run)
        return {"bus": [bus.kind for bus in self.buses]}

    async def leave(self) -> None:
        await asyncio.gather(*(bus.finish(self._service.options.drain_s) for bus in self.buses))

    async def close(self) -> None:
        """What is in work is answered; events that cannot be delivered any more wait for the next start."""
        await self.leave()
        self._service.guide.watch(NOBODY)
        self._events.write()
        await asyncio.gather(*(bus.deliver_last() for bus in self.buses))
        await self._supervisor.stop()
        for bus in self.buses:
            await bus.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _bus(self, kind: str, make: Callable[[BusOptions, Names], Connection]) -> Bus:
        service, options = self._service, self._service.config.bus
        spool = Spool(self._folder() / kind, options.spool_bytes, self._lost)
        return Bus(service, kind, lambda: make(options, self._names), self._names, spool)

    def _folder(self) -> Path:
        """A guide that keeps nothing on disk has no place for a spool that outlives it."""
        folder = self._service.guide.store.folder
        if folder is not None:
            return folder / FOLDER
        self._temporary = self._temporary or tempfile.TemporaryDirectory(prefix="crawlguide-bus-")
        return Path(self._temporary.name)

    def _wake(self) -> None:
        for bus in self.buses:
            bus.written.set()

    def _lost(self, number: int) -> None:
        self._service.metrics.count("bus_events", number, outcome="lost")


def _loaded(kind: str) -> Callable[[BusOptions, Names], Connection]:
    found: Callable[[BusOptions, Names], Connection] = getattr(
        import_module(f"crawlguide.gateway.bus.{kind}"), KINDS[kind]
    )
    return found


class Bus:
    """One bus: a connection to it at a time."""

    def __init__(self, service: Service, kind: str, make: Callable[[], Connection], names: Names, spool: Spool) -> None:
        self._service, self._make, self._names = service, make, names
        self.kind, self.spool = kind, spool
        self.is_away = True
        self.joined = asyncio.Event()
        self.written = asyncio.Event()  # something was put into the spool
        self.emptied = asyncio.Event()  # nothing is left in it
        self._faults = Faults()
        self._answering: Answering | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._last_problem = ""

    async def run(self) -> None:
        rest_s = FIRST_REST_S
        while True:
            connection = self._make()
            try:
                answering = await self._join(connection)
                rest_s = FIRST_REST_S
                await self._work(connection, answering)
            except BusAway as problem:
                self._leave(str(problem))
            finally:
                self.is_away = True
                self.joined.clear()
                await connection.close()
            await asyncio.sleep(rest_s)
            rest_s = min(2 * rest_s, LONGEST_REST_S)

    async def finish(self, within_s: float) -> None:
        """Take nothing new, and answer what came in."""
        if self._receiving is not None:
            self._receiving.cancel()
        if self._answering is not None:
            await self._answering.end(within_s)

    async def deliver_last(self) -> None:
        """Events that wait, if the bus takes them soon."""
        if self.spool.waiting and not self.is_away:
            self.emptied.clear()
            self.written.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_EVENTS_S):
                    await self.emptied.wait()

    async def close(self) -> None:
        self.spool.close()

    async def _join(self, connection: Connection) -> Answering:
        answering = Answering(self._service, connection, self._names, self._faults)
        await connection.connect(answering.requested)
        self._answering = answering
        self.is_away, self._last_problem = False, ""
        self.joined.set()
        words = "messages of {bus} are answered, prefix {prefix}"
        happened("bus_joined", words, bus=self.kind, prefix=self._names.prefix)
        return answering

    async def _work(self, connection: Connection, answering: Answering) -> None:
        """Until one of them fails: mostly since the bus went away."""
        delivering = asyncio.create_task(self._deliver(connection))
        self._receiving = receiving = asyncio.create_task(answering.run())
        try:
            ended, _ = await asyncio.wait({receiving, delivering}, return_when=asyncio.FIRST_COMPLETED)
            if receiving.cancelled():  # the door closes, and what is left is delivered
                await delivering
            for task in ended:
                task.result()
        finally:
            receiving.cancel()
            delivering.cancel()
            await asyncio.gather(receiving, delivering, return_exceptions=True)

    async def _deliver(self, connection: Connection) -> None:
        """Events, in their order."""
        while True:
            self.written.clear()
            while records := self.spool.read(PUBLISHED_AT_ONCE):
                events = list(filter(None, map(self._event, records)))
                delivered = len(events)
                try:
                    await connection.publish(events)
                except TooLargeForBus:
                    delivered = await self._deliver_singly(connection, events)
                self.spool.delivered(records)
                self._service.metrics.count("bus_events", delivered, outcome="delivered")
            self.emptied.set()
            await self.written.wait()

    def _event(self, record: bytes) -> BusMessage | None:
        """What is none is lost: it must not stop those behind it."""
        try:
            return msgspec.msgpack.decode(record, type=BusMessage)
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._service.metrics.count("bus_events", outcome="lost")
            return None

    async def _deliver_singly(self, connection: Connection, events: list[BusMessage]) -> int:
        """How many of them; those that the bus does not carry are lost."""
        delivered = 0
        for event in events:
            try:
                await connection.publish([event])
                delivered += 1
            except TooLargeForBus:
                self._service.metrics.count("bus_events", outcome="lost")
        return delivered

    def _leave(self, why: str) -> None:
        """The log is told once."""
        if why != self._last_problem:
            words = "{bus} cannot be reached, and is tried again and again: {problem}"
            happened("bus_away", words, WARNING, bus=self.kind, problem=without_secrets(why)[:300])
        self._last_problem = why
