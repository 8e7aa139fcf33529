"""From a message of a bus to its answer, through what every door passes. Which kind of bus it is nobody knows here.

A message that the bus keeps is acknowledged when the bus has its answer, and not before: one that comes again has the
same id, so the guide gives the same answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from crawlguide.core.bounded import Bounded
from crawlguide.core.errors import (
    CrawlGuideError,
    Forbidden,
    NotFound,
    RateLimited,
    StorageFull,
    TooLarge,
    Unauthenticated,
    UnavailableError,
)
from crawlguide.core.messages import AskMessage, ReportMessage
from crawlguide.core.telemetry import WARNING, happened
from crawlguide.gateway import routes, wire
from crawlguide.gateway.access.entrance import Caller
from crawlguide.gateway.bus.messages import VERBS, BusAway, BusMessage, TooLargeForBus, header
from crawlguide.gateway.responses import JSON, STATUS
from crawlguide.gateway.service import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from crawlguide.gateway.bus.messages import Connection, Names, Received
    from crawlguide.gateway.routes import Route, RouteCall
    from crawlguide.gateway.service import Service

LATER = (UnavailableError, StorageFull)
POISON = ("internal", "too_large")
MOST_FAULTS, FAULTS_REMEMBERED = 5, 10_000
FAULT_REST_S = 1.0  # after the first; after each more twice as long
LONGEST_LATER_S = 60.0
MOST_WAITS = 100  # of one message for the limits of its sender
FORGOTTEN_S = 4 * LONGEST_LATER_S  # after which a message that has not come again is another guide's by now
LONGEST_HEADER = 100  # of a dead letter, before it is escaped: JetStream keeps 64 KiB of all of them
ROUTE_OF: dict[str, Route] = {verb: routes.BY_ENDPOINT["POST", f"/v1/{verb}"] for verb in VERBS}
AUTHORIZATION, CORRELATION, REPLY_TO = "authorization", "correlation-id", "reply-to"
log = logging.getLogger(__name__)


class Named(msgspec.Struct, frozen=True):
    """Who sent it, of a message that may be wrong in every other way."""

    crawler_id: str
    request_id: str | None = None
    report_id: str | None = None


class Addressed(NamedTuple):
    """Whose it is, under which id, and what is said."""

    tenant: str
    crawler_id: str
    request_id: str | None
    result: Any


class Faults(Bounded[str, int]):
    """How often the guide failed on a message of a bus, by its id; kept when the bus is joined again."""

    def __init__(self) -> None:
        super().__init__(FAULTS_REMEMBERED)


class Wait(NamedTuple):
    """Of a message: whose it is, how large, how often it has waited, and when that was last."""

    tenant: str
    size: int
    times: int
    began: float


class Waiting:
    """Messages whose senders are over their limits. They come again, and take no place of those in work.

    Of each tenant there are so many, and each comes so often: what is beyond is answered, so that it keeps nobody up.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._waits: OrderedDict[str, Wait] = OrderedDict()  # by the id of the message; who waits the longest is first
        self._count: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def put(self, received: Received, tenant: str) -> int:
        """How many of this tenant wait now; 0: this one may not."""
        self._forget()
        wait = Wait(tenant, len(received.body), self.end(received) + 1, time.monotonic())
        has_room = self._count[tenant] < self._most and self._bytes[tenant] + wait.size <= self._most_bytes
        if not has_room or wait.times > MOST_WAITS:
            return 0
        self._waits[received.delivery_id] = wait
        self._count[tenant] += 1
        self._bytes[tenant] += wait.size
        return self._count[tenant]

    def end(self, received: Received) -> int:
        """It waits no more. How often it has."""
        return self._remove(received.delivery_id) if received.delivery_id in self._waits else 0

    def _forget(self) -> None:
        while self._waits and next(iter(self._waits.values())).began < time.monotonic() - FORGOTTEN_S:
            self._remove(next(iter(self._waits)))

    def _remove(self, name: str) -> int:
        wait = self._waits.pop(name)
        self._bytes[wait.tenant] -= wait.size
        self._count[wait.tenant] -= 1
        if not self._count[wait.tenant]:
            del self._count[wait.tenant], self._bytes[wait.tenant]
        return wait.times


class Answering:
    """Works on messages of one connection, on so many at once."""

    def __init__(self, service: Service, connection: Connection, names: Names, faults: Faults) -> None:
        self._service, self._connection, self._names, self._faults = service, connection, names, faults
        self._most = service.config.bus.in_flight
        self._working: set[asyncio.Task[None]] = set()
        self._requests: set[asyncio.Task[None]] = set()
        self._refusals: set[asyncio.Task[None]] = set()
        self._waiting = Waiting(self._most, service.options.max_bodies_bytes // 4)
        self._room = asyncio.Event()
        self._routes = {verb: replace(route, serve=partial(self._serve, route)) for verb, route in ROUTE_OF.items()}

    async def run(self) -> None:
        """Until the connection ends. No more is taken than there is room for: the bus keeps the rest."""
        while True:
            while len(self._working) > self._most * 3 // 4:
                self._room.clear()
                await self._room.wait()
            for received in await self._connection.receive(self._most - len(self._working)):
                self._start(self._kept(received), self._working)

    def requested(self, received: Received) -> None:
        """Somebody waits. What is too much is refused, as at every door; what is far too much is not answered."""
        if len(self._requests) < self._most:
            self._start(self._request(received), self._requests)
            return
        self._count("refused")
        if len(self._refusals) < self._most:
            problem = UnavailableError(f"more than {self._most} messages at once", retry_after_s=1.0)
            self._start(self._respond(received, wire.error(problem), STATUS[problem.code]), self._refusals)

    async def end(self, within_s: float) -> None:
        """What is in work comes to its end. It is never cancelled: an ask cut short would lose leases."""
        if left := self._working | self._requests | self._refusals:
            await asyncio.wait(left, timeout=within_s)

    def _start(self, work: Coroutine[None, None, None], among: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(self._guarded(work))
        among.add(task)
        task.add_done_callback(lambda ended: self._ended(ended, among))

    def _ended(self, task: asyncio.Task[None], among: set[asyncio.Task[None]]) -> None:
        among.discard(task)
        self._room.set()

    async def _guarded(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except BusAway:
            self._count("later")  # whoever waits asks again; what the bus keeps comes again
        except Exception:
            log.exception("a fault while answering a message of the bus")

    # somebody waits

    async def _request(self, received: Received) -> None:
        try:
            answer = await self._answer(received)
        except CrawlGuideError as problem:
            if received.respond is not None:
                self._count("refused")
                await self._respond(received, wire.error(problem), STATUS[problem.code])
            else:
                await self._bury(received, problem)
            return
        self._count("answered")
        await self._respond(received, wire.encode(answer.result), 200)

    async def _respond(self, received: Received, body: bytes, status: int) -> None:
        """Headers only where they say something: to read them costs whoever waits a quarter of the way."""
        if received.respond is None:
            return
        headers = self._headers(received, status)
        is_plain = status == 200 and CORRELATION not in headers
        try:
            await received.respond(body, {} if is_plain else headers)
        except TooLargeForBus as problem:
            await received.respond(_too_large(body, problem), headers | {"status": "413"})

    # the bus keeps it until it is acknowledged

    async def _kept(self, received: Received) -> None:
        try:
            answer = await self._answer(received)
        except CrawlGuideError as problem:
            await self._refused(received, problem)
            return
        self._waiting.end(received)
        headers = self._headers(received, 200, answer.request_id)
        to = received.headers.get(REPLY_TO, "") if self._is_reply_to_good(received) else ""
        await self._send(received, self._outgoing(answer, wire.encode(answer.result), headers, to))
        self._count("answered")

    async def _refused(self, received: Received, problem: CrawlGuideError) -> None:
        """Later, where that helps; to the crawler, where it is known; else to the dead letters."""
        if _is_rate(problem) and (number := self._wait(received)):  # each after those before it
            await self._later(received, number * (problem.retry_after_s or 1.0), aside=True)
            return
        self._waiting.end(received)
        if isinstance(problem, LATER):
            await self._later(received, problem.retry_after_s or 1.0)
            return
        if problem.code == "internal" and (faults := self._note_fault(received)) < MOST_FAULTS:
            await self._later(received, FAULT_REST_S * 2 ** (faults - 1))
            return
        is_poison = received.verb not in ROUTE_OF or problem.code in POISON
        to = None if is_poison else self._sender(received, problem)
        if to is None:
            await self._bury(received, problem)
            return
        headers = self._headers(received, STATUS[problem.code], to.request_id)
        await self._send(received, self._outgoing(to, wire.error(problem), headers))
        self._count("refused")

    async def _later(self, received: Received, delay_s: float, aside: bool = False) -> None:
        self._count("later")
        await self._connection.later(received, min(max(delay_s, 0.05), LONGEST_LATER_S), aside)

    def _wait(self, received: Received) -> int:
        """How many messages of its tenant wait with it; 0: it may not."""
        try:
            return self._waiting.put(received, self._service.entrance.identify(self._caller(received)).tenant)
        except Unauthenticated:  # since a moment ago
            return 0

    async def _send(self, received: Received, answer: BusMessage) -> None:
        def smaller(problem: TooLargeForBus) -> BusMessage:
            body, headers = _too_large(answer.body, problem), answer.headers | {"status": "413"}
            return msgspec.structs.replace(answer, body=body, headers=headers)

        await self._publish(received, answer, smaller)

    async def _publish(
        self, received: Received, message: BusMessage, smaller: Callable[[TooLargeForBus], BusMessage]
    ) -> None:
        """What was received is done when the bus has the message, or the smaller one in its place."""
        try:
            try:
                await self._connection.publish([message])
            except TooLargeForBus as problem:
                await self._connection.publish([smaller(problem)])
        except BusAway:
            if message.reply_to:
                self._note_fault(received)
            await self._connection.later(received, 1.0)
            raise
        await self._connection.done(received)

    def _note_fault(self, received: Received) -> int:
        """How often this message could not be answered."""
        faults = self._faults[received.delivery_id] = self._faults.get(received.delivery_id, 0) + 1
        return faults

    def _is_reply_to_good(self, received: Received) -> bool:
        """A place that does not take an answer is the caller's mistake: then the answer goes where all others go."""
        return self._faults.get(received.delivery_id, 0) < MOST_FAULTS

    async def _bury(self, received: Received, problem: CrawlGuideError) -> None:
        """To the dead letters, with the reason and without its credential."""
        self._count("dead")
        words = "a message of {subject} is a dead letter: {problem}"
        about = {"subject": received.subject, "problem": problem.message, "code": problem.code}
        happened("bus_dead_letter", words, WARNING, **about)
        headers = {name: text for name, text in received.headers.items() if name not in (AUTHORIZATION, REPLY_TO)}
        few = list(headers.items())[:20]
        headers = {header(name[:LONGEST_HEADER]): header(text[:LONGEST_HEADER]) for name, text in few}
        headers |= {
            "subject": header(received.subject[:1_000]),
            "code": problem.code,
            "error": header(problem.message[:1_000]),
        }
        headers |= {"field": header(problem.field[:200])} if problem.field else {}
        headers |= {"id": f"dead-{received.delivery_id}"} if received.delivery_id else {}
        letter = BusMessage("dead", "", "", "", received.body, headers)
        await self._publish(received, letter, lambda _: msgspec.structs.replace(letter, body=b""))

    # the guide

    async def _answer(self, received: Received) -> Addressed:
        route = self._routes.get(received.verb)
        if route is None:
            raise NotFound(f"subject: expected one that ends with {' or '.join(VERBS)}, got {received.subject[:200]!r}")
        query = {REPLY_TO: reply_to} if (reply_to := received.headers.get(REPLY_TO)) else {}
        label, size = f"{self._connection.kind} {received.verb}", len(received.body)
        answers: list[Addressed] = []

        def served(call: RouteCall, result: Any) -> None:
            answers.append(_addressed(call, result))

        wanted = Wanted(label, route, {}, query, lambda: self._read(received), size, on_served=served)
        await self._service.answer(self._caller(received), wanted)
        return answers[0]

    async def _serve(self, route: Route, call: RouteCall) -> Any:
        """Nothing is done for an answer that could go nowhere."""
        reply_to = call.query.get(REPLY_TO)
        if reply_to and not self._names.is_own(reply_to, call.tenant):
            expected = self._names.of("answers", call.tenant) + "."
            words = f"reply-to: expected a name that begins with {expected}, got {reply_to[:200]!r}"
            raise Forbidden(words, field="reply-to")
        return await route.serve(call)

    def _read(self, received: Received) -> AskMessage | ReportMessage:
        """What can come again gets an id, if it has none of its own."""
        most = self._service.options.max_message_bytes
        if len(received.body) > most:
            raise TooLarge(f"body: expected at most {most} bytes, got {len(received.body)}")
        message: AskMessage | ReportMessage = wire.decode(received.body, ROUTE_OF[received.verb].takes)
        if isinstance(message, AskMessage):
            return msgspec.structs.replace(message, request_id=message.request_id or received.delivery_id or None)
        return msgspec.structs.replace(message, report_id=message.report_id or received.delivery_id or None)

    def _caller(self, received: Received) -> Caller:
        return Caller(self._connection.kind, received.headers.get(AUTHORIZATION, ""), is_shared=True)

    def _sender(self, received: Received, problem: CrawlGuideError) -> Addressed | None:
        """Who is told of an error: a crawler of a tenant that we know. None: nobody."""
        try:
            credential = self._service.entrance.identify(self._caller(received))
            named = msgspec.json.decode(received.body, type=Named)
        except (CrawlGuideError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        crawler = credential.crawler_id or named.crawler_id
        if not 1 <= len(crawler) <= 200:
            return None
        return Addressed(credential.tenant, crawler, named.request_id or named.report_id, problem)

    # messages out

    def _headers(self, received: Received, status: int, name: str | None = None) -> dict[str, str]:
        headers = {"status": str(status), "content-type": JSON}
        if received.delivery_id:
            headers["id"] = f"answer-{received.delivery_id}"
        if name:
            headers["request-id"] = header(name[:200])
        if correlation := received.headers.get(CORRELATION):
            headers[CORRELATION] = header(correlation[:200])
        return headers

    def _outgoing(self, answer: Addressed, body: bytes, headers: Mapping[str, str], to: str = "") -> BusMessage:
        crawler = answer.crawler_id
        return BusMessage("answers", answer.tenant, crawler, crawler, body, dict(headers), to)

    def _count(self, outcome: str) -> None:
        self._service.metrics.count("bus_messages", bus=self._connection.kind, outcome=outcome)


def _is_rate(problem: CrawlGuideError) -> bool:
    """Whether there is room again by itself. Of a field, as of crawls that nobody defined, there may never be."""
    return isinstance(problem, RateLimited) and problem.field is None


def _addressed(call: RouteCall, result: Any) -> Addressed:
    message = call.message
    name = message.request_id if isinstance(message, AskMessage) else message.report_id
    return Addressed(call.tenant, message.crawler_id, name, result)


def _too_large(body: bytes, problem: TooLargeForBus) -> bytes:
    words = f"the bus does not carry an answer of {len(body)} bytes ({problem}); ask for fewer URLs"
    return wire.error(TooLarge(words))
