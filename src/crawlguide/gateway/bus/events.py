"""What happens in the guide, through whatever door, as messages for buses: fetches, decisions, states of crawls.

The guide says what happens and goes on. A moment later all of it is written down together, and delivered when the bus
takes it.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from crawlguide.core.clock import iso
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.gateway.bus.messages import BusMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from crawlguide.core.messages import Ack, Advice, Fetch
    from crawlguide.core.types import Crawl
    from crawlguide.gateway.bus.spool import Spool

GATHERED_S = 0.02
MOST_GATHERED = 100_000  # URLs in events that are not written down yet
URLS_OF_EVENT = 200  # a longer one is cut in several: a bus does not carry messages of every size
encode, packed = msgspec.json.Encoder().encode, msgspec.msgpack.Encoder().encode


class FetchEvent(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """`taken` is what the report was answered: `ok`, `skip` or `retry`."""

    url: str
    taken: str
    status: int | None = None
    error: str | None = None
    relevance: float | None = None
    reason: str | None = None


class AssignedEvent(msgspec.Struct, frozen=True, gc=False):
    url: str
    score: float
    p: float
    reason: str
    not_before_ms: int
    lease_expires: str


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. Which fields there are depends on `event`."""

    event: str
    at: str
    tenant: str
    crawl_id: str
    crawler_id: str | None = None
    change: str | None = None
    request_id: str | None = None
    crawl_state: str | None = None
    strategy: str | None = None
    fetches: list[FetchEvent] | None = None
    assigned: list[AssignedEvent] | None = None
    deferred: int | None = None
    dropped: dict[str, int] | None = None


class Events:
    """A `Watcher` of the guide that writes into spools."""

    def __init__(self, spools: Sequence[Spool], written: Callable[[], None], lost: Callable[[int], None]) -> None:
        self._spools, self._written, self._lost = spools, written, lost
        self._gathered: list[Event] = []
        self._urls = 0
        self._timer: asyncio.TimerHandle | None = None
        self._run, self._numbers = uuid4().hex[:16], count(1)  # together the id of an event
        self._failed = False

    def fetched(self, crawl: Crawl, crawler_id: str, fetches: Sequence[Fetch], ack: Ack, at: float) -> None:
        items = [
            FetchEvent(fetch.url, result.status, fetch.status, fetch.error, result.relevance, result.reason)
            for fetch, result in zip(fetches, ack.results, strict=True)
        ]
        for some in _cut(items):
            self._add(Event("fetches", iso(at), *crawl, crawler_id, fetches=some), len(some))

    def decided(self, crawl: Crawl, crawler_id: str, advice: Advice, at: float) -> None:
        about = advice.metadata
        items = [
            AssignedEvent(one.url, one.score, one.p, one.reason, one.not_before_ms, one.lease_expires)
            for one in advice.assigned_urls
        ]
        for some in _cut(items):
            event = Event(
                "decision", iso(at), *crawl, crawler_id, request_id=about.request_id, crawl_state=about.crawl_state,
                strategy=about.strategy, assigned=some, deferred=len(advice.deferred), dropped=about.dropped,
            )  # fmt: skip
            self._add(event, len(some))

    def changed(self, crawl: Crawl, change: str, at: float) -> None:
        self._add(Event("crawl", iso(at), *crawl, change=change), 1)

    def _add(self, event: Event, urls: int) -> None:
        if self._urls >= MOST_GATHERED:
            self._lost(1)
            return
        self._gathered.append(event)
        self._urls += urls
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHERED_S, self.write)

    def write(self) -> None:
        """Now, what was gathered. A disk that takes nothing costs events, and nothing else."""
        if self._timer is not None:
            self._timer.cancel()
        events, self._gathered, self._urls, self._timer = self._gathered, [], 0, None
        if not events:
            return
        records = [packed(self._outgoing(event)) for event in events]
        problems = [problem for spool in self._spools if (problem := self._appended(spool, records))]
        if problems and not self._failed:
            words = "events for the bus cannot be written, and are lost until they can: {problem}"
            happened("bus_events_lost", words, WARNING, problem=problems[0])
        self._failed = bool(problems)
        self._written()

    def _appended(self, spool: Spool, records: Sequence[bytes]) -> str:
        """Why they are lost, if they are."""
        try:
            spool.append(records)
        except OSError as problem:
            self._lost(len(records))
            return str(problem.strerror)
        return ""

    def _outgoing(self, event: Event) -> BusMessage:
        headers = {"id": f"{self._run}-{next(self._numbers)}", "event": event.event}
        return BusMessage("events", event.tenant, event.event, event.crawl_id, encode(event), headers)


def _cut(items: list[Any]) -> Iterator[list[Any]]:
    for first in range(0, max(1, len(items)), URLS_OF_EVENT):
        yield items[first : first + URLS_OF_EVENT]
